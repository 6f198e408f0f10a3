//! A walker of either format.

use crate::frames::FrameMaker;
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::walk::{FoundFrames, WalkEnd};

/// A walker of either format.
#[derive(Debug)]
pub(crate) enum Walker {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl Walker {
    /// Walks the records of `data[from..]`, whose first byte has the offset `offset` in the file.
    pub(crate) fn walk(&mut self, data: &[u8], from: usize, offset: u64, found: &mut FoundFrames) -> WalkEnd {
        match self {
            Self::Pcap(pcap) => pcap.walk(data, from, found),
            Self::Pcapng(pcapng) => pcapng.walk(data, from, offset, found),
        }
    }

    /// Makes the frames of records that this walker has skimmed.
    pub(crate) fn maker(&self) -> Box<dyn FrameMaker> {
        match self {
            Self::Pcap(pcap) => Box::new(pcap.clone()),
            Self::Pcapng(pcapng) => Box::new(pcapng.plain().clone()),
        }
    }

    /// Offset and length of a block whose end has not been seen although nothing is left of it to be read.
    pub(crate) fn unfinished(&self) -> Option<(u64, u64)> {
        match self {
            Self::Pcap(_) => None,
            Self::Pcapng(pcapng) => pcapng.unfinished(),
        }
    }
}
