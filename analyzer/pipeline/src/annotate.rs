//! Captures with comments: a second pass over the frames of an analysed run says of each what the analysis knows of it. They become a
//! pcapng file (`file`), or a list in which each frame has the number that it has in its own capture (`list`).
//!
//! [`KnownResults`] is a sink of the first pass: events, flows, episodes. The second pass reads the same frames in the same
//! order, so that its taps have the same numbers. Which options select frames is left to the caller.

mod comments;
mod credits;
mod file;
mod known;
mod list;
mod mrc;
mod passed;
mod role;

use std::io::{self, Write};

use roce_model::{Filter, PacketBatch};
use roce_wire::Roce;

use crate::captures::Captures;
use crate::decode::Decoder;
use crate::error::text;
use crate::feed::{MergedInputs, Work};
use crate::routes::{PickedFrames, Shard};
use crate::run::Plan;
use crate::taps::Taps;
use comments::Commenter;
use file::CommentedFile;
pub use file::WrittenCounts;
pub use known::KnownResults;
use list::FrameList;
pub use list::ListedFrame;
use passed::{FrameOutput, PassedFrame};
pub use role::PacketRole;

/// Selection of the frames that are written.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only RoCE packets of these flows, in both directions, and frames that are no RoCE packets but have a comment.
    pub flow: Option<Filter>,
    /// Only frames with a comment.
    pub commented_only: bool,
    /// Each RoCE packet gets a comment, at least the name of its flow.
    pub all: bool,
}

impl Captures {
    /// Writes the frames of the captures as one pcapng file, with comments by what an analysis of the same captures, with the same
    /// plan, has `known`.
    ///
    /// # Errors
    /// If `output` fails, or the captures have more interfaces than a file may.
    pub(crate) fn annotate<W: Write>(
        self,
        plan: &Plan,
        known: KnownResults,
        selection: &Selection,
        output: W,
    ) -> io::Result<WrittenCounts> {
        let file = CommentedFile::new(output, known.section())?;
        self.pass(plan, known, selection, file)?.finish()
    }

    /// Gives `take` the frames of the captures with a comment, with the numbers that they have there; see
    /// [`annotate`](Self::annotate).
    ///
    /// # Errors
    /// If `take` fails, or the frames have other places in the captures than in the order of time: then they would get wrong numbers.
    pub(crate) fn list_frames(
        self,
        plan: &Plan,
        known: KnownResults,
        selection: &Selection,
        take: &mut dyn FnMut(&ListedFrame<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(reason) = known.unnumbered() {
            return Err(io::Error::other(reason));
        }
        if self.shares_records() {
            return Err(io::Error::other(
                "the captures share records, which are read once: frames cannot be numbered\nhint: give one capture at a time",
            ));
        }
        self.pass(plan, known, selection, FrameList { take })?;
        Ok(())
    }

    /// Passes all frames to `output`.
    fn pass<O: FrameOutput>(
        self,
        plan: &Plan,
        known: KnownResults,
        selection: &Selection,
        output: O,
    ) -> io::Result<O> {
        // Failures that the first pass had, too, it has reported.
        let before = known.failed;
        let mut failed: Vec<String> = self.errors().map(str::to_owned).collect();
        let (merge, apart) = self.into_frames();
        let mut source = MergedInputs::new(merge, &apart);
        let taps = Taps::new(&plan.lags, apart);
        // Packets that are not analysed have no comment, but are written: no filter here.
        let mut decoder = Decoder::new(Shard::ALL, None, None, plan.range.clone(), taps);
        decoder.assigned = plan.assigned;
        let mut pass = Pass {
            decoder,
            output,
            counted: Vec::new(),
            commenter: Commenter::new(known),
            selection,
            range: plan.range.clone(),
        };
        let mut batch = PacketBatch::default();
        while let Some(work) = source.work() {
            pass.run(&work, &mut batch)?;
            source.merge.recycle(work.run);
        }
        failed.extend(source.errors.iter().map(|(_, error)| text(error)));
        match failed.first() {
            Some(error) if failed.len() > before => {
                Err(io::Error::other(format!("the second reading fails: {error}")))
            }
            _ => Ok(pass.output),
        }
    }
}

/// The second pass.
struct Pass<'a, O> {
    decoder: Decoder,
    output: O,
    /// Frames of each input up to the current one.
    counted: Vec<u64>,
    commenter: Commenter,
    selection: &'a Selection,
    range: std::ops::Range<u64>,
}

impl<O: FrameOutput> Pass<'_, O> {
    fn run(&mut self, work: &Work, batch: &mut PacketBatch) -> io::Result<()> {
        let frames = work.run.batch.frames();
        let input = work.run.input;
        if self.counted.len() <= input {
            self.counted.resize(input + 1, 0);
        }
        for at in work.run.range.clone() {
            batch.clear();
            self.decoder
                .decode(work, at..at + 1, &mut PickedFrames::All, batch);
            let Some(frame) = frames.get(at) else { continue };
            let number = self.counted.get_mut(input).map_or(0, |counted| {
                *counted += 1;
                *counted
            });
            if !self.range.contains(&frame.time.0) {
                continue;
            }
            let roce = batch.packets.first().map(|packet| &packet.roce);
            let is_chosen = roce.is_none_or(|roce| self.selects(roce));
            let remark = self.commenter.frame(batch, self.selection.all);
            let is_selected = match (roce.is_none(), self.selection.flow.is_some()) {
                (true, true) => remark.is_some(),
                _ => is_chosen && (remark.is_some() || !self.selection.commented_only),
            };
            let number = self.output.frame(&PassedFrame {
                work,
                frame,
                number,
                roce,
                remark: remark.as_ref(),
                is_selected,
            })?;
            if let Some(number) = number {
                self.commenter.written(number);
            }
        }
        Ok(())
    }

    /// True of packets of the flows that are selected, and of those that answer them.
    fn selects(&self, packet: &Roce) -> bool {
        let Some(filter) = &self.selection.flow else {
            return true;
        };
        filter.matches(packet) || self.commenter.answers_a_selected_flow(packet, filter)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// The first pass has read the capture, which is gone at the second one.
    #[test]
    fn a_second_reading_that_fails_is_an_error() {
        let list = |failed| {
            let captures = Captures::open(&[PathBuf::from("/nowhere/a.pcap")], 1, true, None, &[]);
            let mut known = KnownResults::default();
            known.failed = failed;
            let selection = Selection {
                flow: None,
                commented_only: false,
                all: false,
            };
            captures.list_frames(&Plan::default(), known, &selection, &mut |_| Ok(()))
        };
        let error = list(0).unwrap_err().to_string();
        assert!(
            error.starts_with("the second reading fails: /nowhere/a.pcap: cannot be opened"),
            "{error}"
        );
        // The first pass has said so, and the other captures are read.
        assert!(list(1).is_ok());
    }
}
