//! Usual pace of a flow, which separates a silence in a message from its own rhythm. Between messages a flow is idle, however long.

use roce_model::{Span, Time};

/// A silence shorter than this is no stall: a packet waits as long in a deep buffer (12.5 MB at 100 Gb/s take 1 ms).
pub(crate) const MIN_STALL: Span = Span(1_000_000);
/// A stall is this multiple of the flow's usual time between packets, and of its answers' time: beyond
/// what a filling queue, or a sender that waits for its turn, does to either.
const TIMES: u64 = 50;
/// Packets without which a flow has no pace yet.
const KNOWN_AFTER: u64 = 32;
/// Silences of about that length, or longer, come at most once in this number of packets. More frequent
/// ones are the flow's habit (a guest that is not scheduled, an application that feeds its messages
/// slowly).
const RARE: u64 = 256;

/// Silences of about one length are a flow's habit after this number of them; they are not examined any
/// more.
const HABIT: u8 = 16;

/// True if a sender that had sent `packets` waited for `silence` for an answer, far beyond the `shortest` time of one; 0: none was
/// measured. How often that happens is no habit of the sender: others answer.
pub(crate) fn is_late_answer(silence: Span, packets: u64, shortest: Span) -> bool {
    let usual = shortest.0.saturating_mul(TIMES);
    shortest.0 > 0 && packets >= KNOWN_AFTER && silence >= MIN_STALL && silence.0 >= usual
}

/// Length of a silence from which a flow's [`SilenceHistory`] examines it: [`MIN_STALL`], times four for
/// each class of silences that are the flow's habit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SilenceThreshold(u8);

impl SilenceThreshold {
    /// True if a silence reaches it.
    #[inline]
    pub(crate) fn is_reached(self, silence: Span) -> bool {
        silence.0 >> (2 * u32::from(self.0)) >= MIN_STALL.0
    }
}

/// Silences of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SilenceHistory {
    /// Gaps between packets of at least [`MIN_STALL`], by powers of four of it: how many, up to [`HABIT`].
    long: [u8; SilenceHistory::CLASSES],
    /// The end of the last silence that an answer ended: it is not counted again with the next packet.
    ended: Time,
}

impl SilenceHistory {
    const CLASSES: usize = 8;

    /// The class of a gap of at least [`MIN_STALL`].
    fn class(gap: Span) -> usize {
        let power = (gap.0 / MIN_STALL.0).max(1).ilog2() / 2;
        (power as usize).min(Self::CLASSES - 1)
    }

    /// Notes a gap of at least [`MIN_STALL`] between two packets; returns the threshold for the next
    /// ones.
    pub(crate) fn note(&mut self, gap: Span) -> SilenceThreshold {
        let count = &mut self.long[Self::class(gap)];
        *count = (*count + 1).min(HABIT);
        let first = (0..).zip(&self.long).fold(
            0,
            |first, (class, count)| {
                if *count == HABIT { class + 1 } else { first }
            },
        );
        SilenceThreshold(first)
    }

    /// Gaps of a class or a longer one; `None` when they are habitual.
    fn from(&self, class: usize) -> Option<u64> {
        let counts = &self.long[class..];
        let is_habitual = counts.contains(&HABIT);
        (!is_habitual).then(|| counts.iter().map(|count| u64::from(*count)).sum())
    }

    /// True if `silence`, in a message or while requests wait for answers, is far beyond the pace of a flow with `packets` in `age`
    /// before it, and beyond the time of its answers.
    pub(crate) fn is_stall(&self, silence: Span, packets: u64, age: Span, answer: Span) -> bool {
        // The mean; a median would need all gaps.
        let usual = (age.0 / packets.max(1)).max(answer.0);
        if silence < MIN_STALL || packets < KNOWN_AFTER || silence.0 < usual.saturating_mul(TIMES) {
            return false;
        }
        let class = Self::class(silence);
        self.from(class.saturating_sub(1))
            .is_some_and(|gaps| gaps <= packets / RARE)
    }

    /// An answer ended a silence at `time`.
    pub(crate) fn end(&mut self, time: Time) {
        self.ended = time;
    }

    /// The end of the last silence that an answer ended.
    pub(crate) fn ended(&self) -> Time {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    #[test]
    fn a_fast_flow_stalls_after_a_millisecond() {
        let pace = SilenceHistory::default();
        // 1000 packets in 1 ms: 1 us each, 50 of them are less than 1 ms.
        let stalls = |silence| pace.is_stall(Span(silence), 1_000, Span(MS), Span(0));
        assert!(!stalls(999 * US));
        assert!(stalls(MS));
        // Answers take 100 us: 5 ms.
        assert!(!pace.is_stall(Span(4 * MS), 1_000, Span(MS), Span(100 * US)));
        assert!(pace.is_stall(Span(5 * MS), 1_000, Span(MS), Span(100 * US)));
    }

    #[test]
    fn an_answer_is_late_against_the_shortest_one() {
        let late = |silence, packets, shortest| is_late_answer(Span(silence), packets, Span(shortest));
        assert!(late(MS, 32, 6 * US), "50 x 6 us are less than 1 ms");
        assert!(!late(MS - 1, 32, 6 * US));
        assert!(!late(MS, 31, 6 * US));
        assert!(!late(4 * MS, 1_000, 100 * US) && late(5 * MS, 1_000, 100 * US));
        assert!(!late(100 * MS, 1_000, 0), "no answer was measured");
    }

    #[test]
    fn a_slow_flow_has_its_own_measure() {
        let mut pace = SilenceHistory::default();
        for _ in 0..100 {
            pace.note(Span(10 * MS));
        }
        let age = Span(1_000 * MS);
        let stalls = |silence| pace.is_stall(Span(silence), 100, age, Span(0));
        assert!(!stalls(499 * MS), "10 ms * 50");
        assert!(stalls(500 * MS));
    }

    #[test]
    fn frequent_silences_are_no_stalls() {
        let mut pace = SilenceHistory::default();
        // 2560 packets in 100 ms: 39 us * 50 = 2 ms.
        let age = Span(100 * MS);
        let stalls = |pace: &SilenceHistory| pace.is_stall(Span(21 * MS), 2_560, age, Span(0));
        for _ in 0..10 {
            pace.note(Span(30 * MS));
        }
        assert!(stalls(&pace), "10 in 2560 packets");
        pace.note(Span(5 * MS));
        assert!(!stalls(&pace), "11, counting one of a fourth");
    }

    #[test]
    fn habits_are_not_looked_at() {
        let mut pace = SilenceHistory::default();
        for _ in 0..15 {
            assert!(pace.note(Span(10 * MS)).is_reached(MIN_STALL));
        }
        // The 16th gap between 4 and 16 ms: only those from 16 ms on are looked at.
        let quiet = pace.note(Span(10 * MS));
        assert!(!quiet.is_reached(Span(16 * MS - 1)) && quiet.is_reached(Span(16 * MS)));
        let stalls =
            |pace: &SilenceHistory, silence| pace.is_stall(Span(silence), 1 << 30, Span(MS), Span(0));
        assert!(!stalls(&pace, 20 * MS));
        assert!(stalls(&pace, 64 * MS));
        for _ in 0..16 {
            pace.note(Span(1 << 60));
        }
        assert!(!stalls(&pace, 1 << 60));
    }

    #[test]
    fn a_flow_that_just_began_has_no_pace() {
        let stalls = |packets| SilenceHistory::default().is_stall(Span(900 * MS), packets, Span(MS), Span(0));
        assert!(!stalls(31));
        assert!(stalls(32));
    }
}
