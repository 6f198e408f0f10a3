//! A flow's latest intervals. Rows may come in any order; those older than all kept intervals are left
//! out.

use std::collections::VecDeque;

/// Intervals that are kept.
pub(super) const MAX_INTERVALS: usize = 120;

/// Sums of one interval, or of several that are added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Cell {
    pub(super) packets: u64,
    pub(super) payload: u64,
    pub(super) data: u64,
    pub(super) ce: u64,
    /// Congestion notifications, where any could be charged.
    pub(super) cnp: Option<u64>,
    pub(super) retransmitted: u64,
    pub(super) missing: u64,
    /// The sum of the bins' median times to an answer, and of how many bins, in ns.
    pub(super) answer_sum: u64,
    pub(super) answer_bins: u64,
    /// The longest such time, in ns.
    pub(super) answer_max: u64,
    /// Most bytes without an answer.
    pub(super) inflight: Option<u64>,
    /// Most senders to the destination in a bin.
    pub(super) senders: u64,
    /// Time paused, in ns.
    pub(super) paused: Option<u64>,
}

impl Cell {
    pub(super) fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        let add_known = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or_default().saturating_add(more));
            }
        };
        add(&mut self.packets, other.packets);
        add(&mut self.payload, other.payload);
        add(&mut self.data, other.data);
        add(&mut self.ce, other.ce);
        add_known(&mut self.cnp, other.cnp);
        add(&mut self.retransmitted, other.retransmitted);
        add(&mut self.missing, other.missing);
        add(&mut self.answer_sum, other.answer_sum);
        add(&mut self.answer_bins, other.answer_bins);
        self.answer_max = self.answer_max.max(other.answer_max);
        self.inflight = self.inflight.max(other.inflight);
        self.senders = self.senders.max(other.senders);
        add_known(&mut self.paused, other.paused);
    }

    /// The mean of the bins' median times to an answer, in ns.
    pub(super) fn answer(&self) -> Option<u64> {
        (self.answer_bins > 0).then(|| self.answer_sum / self.answer_bins)
    }

    /// Losses matter more than congestion, that more than volume.
    pub(super) fn trouble(&self) -> (u64, u64, u64) {
        (
            self.missing + self.retransmitted,
            self.ce + self.cnp.unwrap_or_default(),
            self.payload,
        )
    }

    /// True if anything was retransmitted or missing.
    pub(super) fn has_losses(&self) -> bool {
        self.missing + self.retransmitted > 0
    }

    /// True if anything was marked, or notified of congestion.
    pub(super) fn is_congested(&self) -> bool {
        self.ce + self.cnp.unwrap_or_default() > 0
    }
}

/// The latest intervals, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The number of the first cell.
    first: u64,
    cells: VecDeque<Cell>,
    /// The first interval of all time with packets.
    pub(super) begun: Option<u64>,
    /// Packets of all time.
    pub(super) packets: u64,
}

impl History {
    pub(super) fn add(&mut self, interval: u64, cell: &Cell) {
        self.packets = self.packets.saturating_add(cell.packets);
        self.begun = Some(self.begun.map_or(interval, |begun| begun.min(interval)));
        if self.cells.is_empty() || interval >= self.end().saturating_add(MAX_INTERVALS as u64) {
            self.cells.clear();
            self.first = interval;
        }
        while interval < self.first && self.cells.len() < MAX_INTERVALS {
            self.cells.push_front(Cell::default());
            self.first -= 1;
        }
        while self.end() <= interval {
            self.cells.push_back(Cell::default());
        }
        while self.cells.len() > MAX_INTERVALS {
            self.cells.pop_front();
            self.first += 1;
        }
        if let Some(sum) = self.place(interval).and_then(|place| self.cells.get_mut(place)) {
            sum.add(cell);
        }
    }

    /// One past the number of the last cell.
    pub(super) fn end(&self) -> u64 {
        self.first + self.cells.len() as u64
    }

    fn place(&self, interval: u64) -> Option<usize> {
        usize::try_from(interval.checked_sub(self.first)?).ok()
    }

    /// Sums of this interval.
    pub(super) fn at(&self, interval: u64) -> Cell {
        let place = self.place(interval);
        place
            .and_then(|place| self.cells.get(place))
            .copied()
            .unwrap_or_default()
    }

    /// Sums of the `many` intervals up to this one, in their order.
    pub(super) fn until(&self, interval: u64, many: usize) -> impl Iterator<Item = Cell> {
        let from = interval.saturating_add(1).saturating_sub(many as u64);
        (from..=interval).map(|interval| self.at(interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(packets: u64) -> Cell {
        Cell {
            packets,
            ..Cell::default()
        }
    }

    fn all(history: &History, until: u64, many: usize) -> Vec<u64> {
        history.until(until, many).map(|cell| cell.packets).collect()
    }

    #[test]
    fn intervals_come_in_any_order() {
        let mut history = History::default();
        history.add(7, &packets(1));
        history.add(5, &packets(2));
        history.add(8, &packets(3));
        history.add(5, &packets(10));
        assert_eq!(all(&history, 9, 6), [0, 12, 0, 1, 3, 0]);
        assert_eq!((history.packets, history.begun), (16, Some(5)));
    }

    #[test]
    fn what_is_old_goes() {
        let mut history = History::default();
        history.add(0, &packets(1));
        history.add(MAX_INTERVALS as u64, &packets(2));
        assert_eq!(history.cells.len(), MAX_INTERVALS);
        assert_eq!(
            (history.at(0), history.at(MAX_INTERVALS as u64).packets),
            (Cell::default(), 2)
        );
        // Too late for all that is kept.
        history.add(0, &packets(4));
        assert_eq!(history.at(0), Cell::default());
        // Long silence costs nothing.
        history.add(1 << 40, &packets(5));
        assert_eq!((history.cells.len(), history.at(1 << 40).packets), (1, 5));
        assert_eq!(history.packets, 12);
    }

    #[test]
    fn sums_means_and_highest() {
        let mut cell = Cell {
            cnp: None,
            answer_sum: 10,
            answer_bins: 1,
            answer_max: 30,
            inflight: None,
            ..packets(1)
        };
        assert!(!cell.is_congested());
        cell.add(&Cell {
            cnp: Some(0),
            answer_sum: 20,
            answer_bins: 1,
            answer_max: 25,
            inflight: Some(4096),
            ..packets(2)
        });
        // The mean of 10 and 20; that there was no CNP is known now.
        assert_eq!(
            (cell.answer(), cell.answer_max, cell.cnp),
            (Some(15), 30, Some(0))
        );
        assert_eq!((cell.packets, cell.inflight), (3, Some(4096)));
        assert_eq!(packets(1).answer(), None);
    }
}
