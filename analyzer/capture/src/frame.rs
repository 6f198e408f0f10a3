//! Results of reading: frames, the interfaces they came through, and lost records.
//!
//! Leaves to others where the bytes come from (`blocks`) and how records are distinguished (`pcap`, `pcapng`).

use roce_model::Time;
use roce_wire::LinkType;

/// An interface that a file describes. A pcap file has exactly one, a pcapng file has any number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// First header of its frames.
    pub link: LinkType,
    /// Its name at the capturing host (`if_name`), such as `eth0`.
    pub name: Option<String>,
    /// Description by the capturing program (`if_description`).
    pub description: Option<String>,
    /// Bytes kept of each frame at most; 0 means no limit.
    pub snaplen: u32,
    /// Bytes of frame check sequence at the end of each whole frame; 0 when there is none or the file does not
    /// say. A frame's own [`Frame::fcs_bytes`] already takes it into account.
    pub fcs_bytes: u8,
    /// Resolution of the time stamps, in nanoseconds; 1 also for anything finer, which is cut off.
    pub quantum_ns: u64,
    /// Records that this interface lost, as far as the file says so: the sum of the packets' drop counts, or
    /// the interface's statistics where they say more. `None` when the file says nothing.
    pub dropped: Option<u64>,
    /// Number of the section of the file that describes it. The interfaces of a section record at the same time, those of two sections one
    /// after the other. 0 where a file has no sections.
    pub section: u32,
}

/// Direction of a frame at the capturing host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Direction {
    /// The file does not say.
    #[default]
    Unknown,
    /// Received by the capturing host.
    Inbound,
    /// Sent by the capturing host.
    Outbound,
}

/// One record of a capture: when, how long, and where in its batch the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Capture time, in ns since the Unix epoch. A record without a time of its own has that of the
    /// record before it.
    pub time: Time,
    /// Start of its bytes in the batch's data.
    pub offset: u32,
    /// Bytes there are of it.
    pub captured: u32,
    /// Bytes it had on the wire, as the file says (a careless writer may say less than `captured`).
    pub original: u32,
    /// Index into [`Reader::interfaces`](crate::Reader::interfaces).
    pub interface: u32,
    /// Bytes of frame check sequence that the frame had on the wire and that are part of `original`; 0 when
    /// there are none or the file does not say. Where the frame was cut they may be cut off, too.
    pub fcs_bytes: u8,
    /// Direction at the capturing host.
    pub direction: Direction,
    /// The process that sent or received it at the capturing host: its number in [`Reader::processes`](crate::Reader::processes), from 1 on.
    /// 0 where the file names none.
    pub process: u16,
}

/// A process that a pcapng file names as that of frames.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FrameProcess {
    /// Its number at the capturing host.
    pub pid: u32,
    /// Its name, `None` where the file has none. Long ones are cut.
    pub name: Option<String>,
    /// Its start, in ns since the Unix epoch; 0 where the file does not say.
    pub(crate) started_ns: u64,
}

/// Records that the capturing side lost, as a file says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostFrames {
    /// Index, in the batch, of the frame that they were lost before; the number of frames when nothing follows
    /// in this batch.
    pub before: u32,
    /// The interface that lost them: an index into [`Reader::interfaces`](crate::Reader::interfaces).
    pub interface: u32,
    /// Number of lost records.
    pub records: u64,
}

/// A block of local use (pcapng: a type with the highest bit set) among the records: what it says is for its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Index, in the batch, of the first frame after the note; the number of frames when nothing follows
    /// in this batch.
    pub before: u32,
    /// The block's type.
    pub kind: u32,
    /// Start of its body in the batch's data.
    pub offset: u32,
    /// Bytes of its body, with the padding at its end.
    pub length: u32,
}

/// `usize` to `u32` for places inside buffers, which are far below 4 GiB.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "buffers are far below 4 GiB")]
pub(crate) fn place(at: usize) -> u32 {
    at as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_stay_small() {
        // 8 (time) + 4 * 4 + 1 + 1, padded to the alignment of 8.
        assert_eq!(size_of::<Frame>(), 32);
    }
}
