//! Captures with comments: a second pass over the frames of an analysed run writes them as pcapng, each with what the analysis knows of it.
//!
//! [`KnownResults`] is a sink of the first pass: events, flows, episodes. The second pass reads the same frames in the same
//! order, so that its taps have the same numbers. Which options select frames is left to the caller.

mod comments;
mod credits;
mod known;
mod mrc;

use std::io::{self, Write};

use roce_capture::write::{ByteOrder, InterfaceOptions, Packet as Record, PcapngWriter, SectionOptions};
use roce_capture::{Direction, Interface};
use roce_model::{Filter, PacketBatch};

use crate::captures::Captures;
use crate::decode::{Decoder, Shard};
use crate::feed::{MergedInputs, Work};
use crate::run::Plan;
use crate::taps::Taps;
use comments::Commenter;
pub use known::KnownResults;

/// Interfaces of the written file. A pcapng file could have 2^32; a hostile capture would need a block for each.
const MAX_INTERFACES: usize = 1 << 16;

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

/// Counts of the frames and comments written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WrittenCounts {
    /// Frames.
    pub frames: u64,
    /// Frames with a comment.
    pub commented: u64,
    /// Packets whose comment calls them retransmissions.
    pub retransmissions: u64,
    /// Packets whose comment is about a mark.
    pub marks: u64,
    /// CNPs.
    pub cnps: u64,
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
        let about = SectionOptions {
            comments: known.section(),
            system: None,
            application: Some(format!("roce-analyze {}", env!("CARGO_PKG_VERSION"))),
        };
        let writer = PcapngWriter::with(output, ByteOrder::Little, &about)?;
        let (merge, apart) = self.into_frames();
        let mut source = MergedInputs::new(merge, &apart);
        let taps = Taps::new(&plan.lags, apart);
        // Packets that are not analysed have no comment, but are written: no filter here.
        let mut decoder = Decoder::new(Shard::ALL, None, None, plan.range.clone(), taps);
        decoder.assigned = plan.assigned;
        let mut pass = Pass {
            decoder,
            writer,
            interfaces: Vec::new(),
            commenter: Commenter::new(known),
            selection,
            range: plan.range.clone(),
            written: WrittenCounts::default(),
        };
        let mut batch = PacketBatch::default();
        while let Some(work) = source.work() {
            pass.run(&work, &mut batch)?;
            source.merge.recycle(work.run);
        }
        pass.writer.finish()?;
        Ok(pass.written)
    }
}

/// The second pass.
struct Pass<'a, W: Write> {
    decoder: Decoder,
    writer: PcapngWriter<W>,
    /// The number in the written file of each input's interface.
    interfaces: Vec<(usize, u32, u32)>,
    commenter: Commenter,
    selection: &'a Selection,
    range: std::ops::Range<u64>,
    written: WrittenCounts,
}

impl<W: Write> Pass<'_, W> {
    fn run(&mut self, work: &Work, batch: &mut PacketBatch) -> io::Result<()> {
        let frames = work.run.batch.frames();
        for at in work.run.range.clone() {
            batch.clear();
            self.decoder.decode(work, at..at + 1, batch);
            let Some(frame) = frames.get(at) else { continue };
            if !self.range.contains(&frame.time.0) {
                continue;
            }
            let is_selected = batch
                .packets
                .first()
                .is_none_or(|packet| self.selects(&packet.roce));
            let remark = self.commenter.frame(batch, self.selection.all);
            let is_written = match (batch.packets.is_empty(), self.selection.flow.is_some()) {
                (true, true) => remark.is_some(),
                _ => is_selected && (remark.is_some() || !self.selection.commented_only),
            };
            if !is_written {
                continue;
            }
            let Some(interface) = work.interfaces.get(frame.interface as usize) else {
                continue;
            };
            let interface = self.interface(work, frame.interface, interface)?;
            let comment = remark.as_ref().map(|remark| remark.text.as_str());
            self.writer.packet(&Record {
                interface,
                ticks: frame.time.0,
                original: frame.original,
                data: work.run.batch.bytes(frame),
                flags: flags(frame.direction),
                dropped: None,
                comment,
            })?;
            let written = &mut self.written;
            written.frames += 1;
            // Wireshark counts frames from 1 on.
            self.commenter.written(written.frames);
            if let Some(remark) = &remark {
                written.commented += 1;
                written.retransmissions += u64::from(remark.is_retransmission);
                written.marks += u64::from(remark.is_mark);
                written.cnps += u64::from(remark.is_cnp);
            }
        }
        Ok(())
    }

    /// True of packets of the flows that are selected, and of those that answer them.
    fn selects(&self, packet: &roce_wire::Roce) -> bool {
        let Some(filter) = &self.selection.flow else {
            return true;
        };
        filter.matches(packet) || self.commenter.answers_a_selected_flow(packet, filter)
    }

    /// The number of an input's interface in the written file; it is described before its first frame.
    fn interface(&mut self, work: &Work, number: u32, about: &Interface) -> io::Result<u32> {
        let input = work.run.input;
        let known = self
            .interfaces
            .iter()
            .rev()
            .find(|known| known.0 == input && known.1 == number);
        if let Some((_, _, written)) = known {
            return Ok(*written);
        }
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(io::Error::other(format!(
                "the captures have more than {MAX_INTERFACES} interfaces"
            )));
        }
        let name = about.name.as_deref().unwrap_or_default();
        let capture = roce_model::text::clean(&work.capture).into_owned();
        let written = self.writer.interface(&InterfaceOptions {
            link: about.link,
            snaplen: about.snaplen,
            name: (!name.is_empty()).then(|| name.to_owned()),
            description: Some(capture),
            resolution: Some(9),
            offset: None,
            fcs_bits: (about.fcs_bytes > 0).then(|| about.fcs_bytes.saturating_mul(8)),
        })?;
        self.interfaces.push((input, number, written));
        Ok(written)
    }
}

/// `epb_flags`: the direction in the lowest two bits (pcapng, 4.3.1).
fn flags(direction: Direction) -> Option<u32> {
    match direction {
        Direction::Unknown => None,
        Direction::Inbound => Some(1),
        Direction::Outbound => Some(2),
    }
}
