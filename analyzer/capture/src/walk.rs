//! Common parts of the walkers of all formats: results, and the reason to stop.
//!
//! Leaves the formats to `pcap` and `pcapng`, the choice between them to `walker`, and getting bytes to `blocks`.

use std::collections::HashMap;
use std::ops::Range;

use roce_model::Time;

use crate::error::Fault;
use crate::frame::{Frame, FrameProcess, Interface, LostFrames, Note};
use crate::frames::Skim;
use crate::summary::Times;

/// Captured bytes that a record may always claim: libpcap's MAXIMUM_SNAPLEN.
pub(crate) const USUAL_LIMIT: u32 = 256 << 10;
/// Captured bytes that a record may claim where the file declares such a snaplen.
pub(crate) const MAX_LIMIT: u32 = 16 << 20;

/// The captured bytes that a record may claim under a declared snaplen.
pub(crate) fn captured_limit(snaplen: u32) -> u32 {
    snaplen.clamp(USUAL_LIMIT, MAX_LIMIT)
}

/// Results of a walker.
#[derive(Debug, Default)]
pub(crate) struct FoundFrames {
    pub(crate) frames: Vec<Frame>,
    pub(crate) lost: Vec<LostFrames>,
    pub(crate) notes: Vec<Note>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) processes: Vec<FrameProcess>,
    /// Numbers of the processes, from 1 on.
    pub(crate) process_numbers: HashMap<FrameProcess, u16>,
    pub(crate) times: Times,
    pub(crate) untimed: u64,
    /// Records are skimmed where their frames can be made later.
    pub(crate) skims: bool,
    pub(crate) skim: Option<Skim>,
}

/// Skims records. It has its own times while it does: they stay in the processor's registers.
#[derive(Debug)]
pub(crate) struct Skimmer {
    times: Times,
    count: usize,
    first: Time,
    last: Time,
}

impl Skimmer {
    pub(crate) fn begin(found: &FoundFrames) -> Self {
        Self {
            times: found.times,
            count: 0,
            first: Time(0),
            last: Time(0),
        }
    }

    /// The next record.
    #[inline]
    pub(crate) fn record(&mut self, time: Time) {
        self.times.note(time.0);
        if self.count == 0 {
            self.first = time;
        }
        self.last = time;
        self.count += 1;
    }

    /// The records were those in `range` of the data.
    pub(crate) fn end(self, range: Range<usize>, found: &mut FoundFrames) {
        found.times = self.times;
        found.skim = (self.count > 0).then_some(Skim {
            range,
            count: self.count,
            first: self.first,
            last: self.last,
        });
    }
}

/// Why a walker stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The next record needs this many bytes in total (or to know its length); fewer are there.
    Need(usize),
    /// This many bytes, more than there are, are skipped.
    Skip(u64),
    /// The next record makes no sense.
    Fault(Fault),
}

/// End of a walk.
#[derive(Debug)]
pub(crate) struct WalkEnd {
    /// Everything before this place in the data is done with.
    pub(crate) at: usize,
    pub(crate) stop: Stop,
}

/// Four bytes as a number.
#[inline]
pub(crate) fn u32_of<const BIG: bool>(bytes: [u8; 4]) -> u32 {
    if BIG {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    }
}

/// Two bytes as a number.
#[inline]
pub(crate) fn u16_of<const BIG: bool>(bytes: [u8; 2]) -> u16 {
    if BIG {
        u16::from_be_bytes(bytes)
    } else {
        u16::from_le_bytes(bytes)
    }
}
