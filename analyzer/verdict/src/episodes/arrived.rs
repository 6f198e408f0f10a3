//! Data that came to a destination in a cell: times, and packets that showed trouble.

use roce_model::{EpisodeKind, Time};

use crate::bin_rows::{PacketTimes, PairTraffic};
use crate::settings::CELL;

/// The slowest link of RDMA adapters (IEEE 802.3ae), in bit/s.
const SLOWEST_LINK: u64 = 10_000_000_000;
/// Some packets that happen to come together are no rate: 30 of 4 KB at 10 Gbit/s take so long.
const SHORTEST: u64 = 100_000;
/// A flow's marks are noted once in such a unit of time, 65.5 us.
const TICK: u64 = 1 << 16;

/// Data to a destination in a cell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrivedData {
    all: PacketTimes,
    wire_bytes: u64,
    marked: PacketTimes,
    lost: PacketTimes,
}

impl ArrivedData {
    /// Traffic in the bin that begins at `bin`, of the cell that begins at `cell`.
    pub(super) fn add(&mut self, bin: Time, cell: Time, traffic: &PairTraffic) {
        self.marked.add(&traffic.marked);
        self.lost.add(&traffic.lost);
        if traffic.payload_bytes > 0 {
            self.wire_bytes = self.wire_bytes.saturating_add(traffic.wire_bytes);
            self.all.note(Time(bin.0.saturating_add(traffic.active.first)));
            let last = bin.0.saturating_add(traffic.active.last);
            self.all.note(Time(last.min(cell_end(cell).0)));
        }
    }

    /// True if data came at half of the speed of its last link or faster, `link_rate` in bit/s where that is known: else no queue stands
    /// before it, and what was lost was lost for another reason.
    pub(super) fn fills(&self, link_rate: Option<u64>) -> bool {
        self.reaches(link_rate.unwrap_or(SLOWEST_LINK) / 2)
    }

    /// True if data came at less than a quarter of the speed of its link. What is marked then is marked by a low threshold.
    pub(super) fn is_thin(&self, link_rate: Option<u64>) -> bool {
        link_rate.is_some_and(|rate| !self.reaches(rate / 4))
    }

    /// True if data came at this rate, in bit/s, or faster.
    fn reaches(&self, rate: u64) -> bool {
        let lasted = self.all.get().map_or(0, |(first, last)| last.since(first).0);
        let bits = u128::from(self.wire_bytes) * 8 * 1_000_000_000;
        bits >= u128::from(rate) * u128::from(lasted.max(SHORTEST))
    }

    /// From the first to the last packet in the cell that show an episode of this kind; of all data where it is not known which they are.
    pub(super) fn times(&self, kind: EpisodeKind, cell: Time) -> (Time, Time) {
        let mut telling = PacketTimes::default();
        if matches!(kind, EpisodeKind::Incast | EpisodeKind::Ecn)
            && let Some((first, last)) = self.marked.get()
        {
            // More marks may have followed in the last one's unit of time.
            let unit_end = last.0 | (TICK - 1);
            let arrived = self.all.get().map_or(last, |(_, arrived)| arrived);
            telling.note(first);
            telling.note(last.max(Time(arrived.0.min(unit_end))));
        }
        if matches!(kind, EpisodeKind::Incast | EpisodeKind::Loss) {
            telling.add(&self.lost);
        }
        let end = cell_end(cell);
        let known = telling.get().or(self.all.get()).unwrap_or((cell, end));
        (known.0.clamp(cell, end), known.1.clamp(cell, end))
    }
}

/// The end of the cell that begins at `cell`.
pub(super) fn cell_end(cell: Time) -> Time {
    cell + CELL
}
