//! PSNs that were missing and that retransmissions brought. A packet of them that comes once more was late.

use core::ops::Range;
use std::collections::VecDeque;

use roce_model::{Span, Time};

/// Ranges of PSNs that were retransmitted and are remembered: more than a network can hold up at once.
const MAX_RANGES: usize = 64;

/// Holes that retransmissions filled.
#[derive(Clone, Debug, Default)]
pub(super) struct RefilledHoles {
    /// The latest missing PSNs that were retransmitted: captured once.
    latest: Range<u64>,
    time: Time,
    /// The latest ranges, and when their gaps showed: a packet that was sent before comes late.
    ranges: VecDeque<(u64, u64, Time)>,
}

impl RefilledHoles {
    /// The PSNs `first..end` were retransmitted at `time`. `gap`: when the hole with the first of them showed, if there is one.
    pub(super) fn note(&mut self, first: u64, end: u64, time: Time, gap: Option<Time>) {
        self.latest = first..end;
        self.time = time;
        let gap = gap.unwrap_or(time);
        match self.ranges.back_mut() {
            Some(last) if last.1 == first && last.2 == gap => last.1 = end,
            _ => {
                if self.ranges.len() == MAX_RANGES {
                    self.ranges.pop_front();
                }
                self.ranges.push_back((first, end, gap));
            }
        }
    }

    /// The PSNs `first..end` were retransmitted by a run that goes on, perhaps behind the latest ones.
    pub(super) fn go_on(&mut self, first: u64, end: u64, time: Time, gap: Option<Time>) {
        let before = self.latest.clone();
        self.note(first, end, time, gap);
        if before.end == first {
            self.latest.start = before.start;
        }
    }

    /// One past the latest of them; 0: there were none.
    pub(super) fn end(&self) -> u64 {
        self.latest.end
    }

    /// How long before `time` the latest of them came.
    pub(super) fn since(&self, time: Time) -> Span {
        time.since(self.time)
    }

    /// The first transmission of `at` comes: when its gap had shown, if it is one of them and that did not come before.
    pub(super) fn take(&mut self, at: u64) -> Option<Time> {
        let is_in = |(first, end, _): &(u64, u64, Time)| (*first..*end).contains(&at);
        let place = self.ranges.iter().position(is_in)?;
        let (first, end, gap) = self.ranges[place];
        self.ranges[place] = (at + 1, end, gap);
        if first < at {
            self.ranges.insert(place, (first, at, gap));
        }
        Some(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_packet_is_taken_once() {
        let mut refilled = RefilledHoles::default();
        refilled.note(10, 12, Time(500), Some(Time(100)));
        refilled.go_on(12, 13, Time(600), Some(Time(100)));
        assert_eq!((refilled.latest.clone(), refilled.end()), (10..13, 13));
        assert_eq!(refilled.ranges, [(10, 13, Time(100))], "one hole");
        assert_eq!(refilled.take(11), Some(Time(100)));
        assert_eq!(refilled.take(11), None);
        assert_eq!(refilled.take(10), Some(Time(100)));
        assert_eq!(refilled.take(12), Some(Time(100)));
        assert_eq!(refilled.since(Time(1_600)), Span(1_000));
    }

    #[test]
    fn ranges_are_bounded() {
        let mut refilled = RefilledHoles::default();
        for first in 0..200 {
            refilled.note(first * 10, first * 10 + 1, Time(first), None);
        }
        assert_eq!(refilled.ranges.len(), MAX_RANGES);
        assert_eq!(refilled.take(0), None, "forgotten");
        assert_eq!(refilled.take(1_990), Some(Time(199)), "the gap is not known");
    }
}
