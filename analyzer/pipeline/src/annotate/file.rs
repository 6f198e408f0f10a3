//! The pcapng file of an annotated capture.

use std::io::{self, Write};

use roce_capture::write::{ByteOrder, InterfaceOptions, Packet as Record, PcapngWriter, SectionOptions};
use roce_capture::{Direction, Interface};

use super::passed::{FrameOutput, PassedFrame};
use super::role::PacketRole;
use crate::feed::Work;

/// Interfaces of the written file. A pcapng file could have 2^32; a hostile capture would need a block for each.
const MAX_INTERFACES: usize = 1 << 16;

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

/// A file that is written.
pub(super) struct CommentedFile<W: Write> {
    writer: PcapngWriter<W>,
    /// The number in the written file of each input's interface.
    interfaces: Vec<(usize, u32, u32)>,
    written: WrittenCounts,
}

impl<W: Write> CommentedFile<W> {
    /// A file whose section has these comments.
    pub(super) fn new(output: W, comments: Vec<String>) -> io::Result<Self> {
        let about = SectionOptions {
            comments,
            system: None,
            application: Some(format!("roce-analyze {}", env!("CARGO_PKG_VERSION"))),
        };
        Ok(Self {
            writer: PcapngWriter::with(output, ByteOrder::Little, &about)?,
            interfaces: Vec::new(),
            written: WrittenCounts::default(),
        })
    }

    /// Ends the file.
    pub(super) fn finish(self) -> io::Result<WrittenCounts> {
        self.writer.finish()?;
        Ok(self.written)
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

impl<W: Write> FrameOutput for CommentedFile<W> {
    fn frame(&mut self, passed: &PassedFrame<'_>) -> io::Result<Option<u64>> {
        let PassedFrame {
            work, frame, remark, ..
        } = passed;
        let interface = work.interfaces.get(frame.interface as usize);
        let Some(interface) = interface.filter(|_| passed.is_selected) else {
            return Ok(None);
        };
        let interface = self.interface(work, frame.interface, interface)?;
        self.writer.packet(&Record {
            interface,
            ticks: frame.time.0,
            original: frame.original,
            data: work.run.batch.bytes(frame),
            flags: flags(frame.direction),
            dropped: None,
            comment: remark.map(|remark| remark.text.as_str()),
        })?;
        let written = &mut self.written;
        written.frames += 1;
        if let Some(remark) = remark {
            written.commented += 1;
            written.retransmissions += u64::from(remark.is(PacketRole::Retransmission));
            written.marks += u64::from(remark.is(PacketRole::Mark));
            written.cnps += u64::from(remark.is(PacketRole::Cnp));
        }
        // Wireshark counts frames from 1 on.
        Ok(Some(written.frames))
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
