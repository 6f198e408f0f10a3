//! Flows of two hosts that carried CE marks in the last millisecond. A notification that nothing else
//! attributes is for that flow, if there is one alone.

use std::collections::HashMap;

use roce_model::{FlowId, Span, Time};

use crate::key::FlowSlot;

/// Time before a notification in which CE marks count. Adapters send one within tens of microseconds.
const WINDOW: Span = Span(1_000_000);
/// A flow's marks are noted once in such a unit of time, 65.5 us.
const TICK_SHIFT: u32 = 16;
/// Flows remembered of two hosts.
const FLOWS: usize = 4;
/// Pairs of hosts from which on those without a recent mark are forgotten.
const MANY_PAIRS: usize = 1 << 10;
/// A pair whose last mark is older than this is forgotten: packets are judged at most a millisecond out of their order.
const FORGOTTEN: Span = Span(4 * WINDOW.0);

/// The unit of time in which a mark came: a flow notes no second one in it. Never 0.
#[expect(
    clippy::cast_possible_truncation,
    reason = "compared for equality with the one before"
)]
pub(crate) fn tick(time: Time) -> u32 {
    (time.0 >> TICK_SHIFT) as u32 | 1 << 31
}

/// A flow with marks.
#[derive(Clone, Copy, Debug, Default)]
struct MarkedFlow {
    at: FlowSlot,
    id: FlowId,
    /// 0: none.
    time: Time,
}

/// The flows with marks between two hosts.
type PairFlows = [MarkedFlow; FLOWS];

/// The latest marks, by a hash of tap and hosts. None is overlooked, so what they say does not depend on how hosts are divided among threads.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pairs: HashMap<u64, PairFlows, foldhash::fast::RandomState>,
    /// Pairs that were left when some were forgotten.
    kept: usize,
}

impl Marks {
    /// A data packet of the flow at `at`, between hosts with the hash `pair`, was marked.
    pub(crate) fn note(&mut self, pair: u64, at: FlowSlot, id: FlowId, time: Time) {
        if self.pairs.len() >= MANY_PAIRS.max(2 * self.kept) {
            self.forget(time);
        }
        let flows = self.pairs.entry(pair).or_default();
        let known = flows.iter().position(|flow| flow.id == id && flow.time.0 != 0);
        let oldest = || {
            let flows = flows.iter().enumerate();
            flows.min_by_key(|(_, flow)| flow.time).map_or(0, |(at, _)| at)
        };
        let slot = known.unwrap_or_else(oldest);
        flows[slot] = MarkedFlow { at, id, time };
    }

    /// Forgets the pairs without a mark lately: those of a few milliseconds are left.
    fn forget(&mut self, time: Time) {
        self.pairs.retain(|_, flows| {
            flows
                .iter()
                .any(|flow| flow.time.0 != 0 && flow.time + FORGOTTEN >= time)
        });
        self.kept = self.pairs.len();
    }

    /// The only flow between these hosts, of those that may be meant, with a mark in the millisecond before `time`.
    pub(crate) fn sole(
        &self,
        pair: u64,
        time: Time,
        mut may_be_meant: impl FnMut(FlowSlot, FlowId) -> bool,
    ) -> Option<(FlowSlot, FlowId)> {
        // A flow's mark is noted up to a tick before its last one.
        let from = Time(time.0.saturating_sub(WINDOW.0 + (1 << TICK_SHIFT)));
        let flows = self.pairs.get(&pair)?.iter();
        let mut marked =
            flows.filter(|flow| flow.time.0 != 0 && flow.time >= from && may_be_meant(flow.at, flow.id));
        let only = marked.next()?;
        marked.next().is_none().then_some((only.at, only.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::slot;

    const MS: u64 = 1_000_000;

    fn sole(marks: &Marks, pair: u64, time: u64) -> Option<FlowSlot> {
        marks.sole(pair, Time(time), |_, _| true).map(|(at, _)| at)
    }

    #[test]
    fn one_alone_within_a_millisecond() {
        let mut marks = Marks::default();
        let begin = 1_000 * MS;
        marks.note(1, slot(7), FlowId(70), Time(begin));
        assert_eq!(sole(&marks, 1, begin + MS), Some(slot(7)));
        assert_eq!(sole(&marks, 1, begin + 2 * MS), None, "too late");
        assert_eq!(sole(&marks, 2, begin), None, "other hosts");
        marks.note(1, slot(8), FlowId(80), Time(begin + MS));
        assert_eq!(sole(&marks, 1, begin + MS), None, "two");
        assert_eq!(
            sole(&marks, 1, begin + 2 * MS),
            Some(slot(8)),
            "the first is out of it"
        );
        let but_8 = marks.sole(1, Time(begin + MS), |at, _| at != slot(8));
        assert_eq!(but_8, Some((slot(7), FlowId(70))));
    }

    #[test]
    fn each_of_many_pairs_has_its_own_marks() {
        let mut marks = Marks::default();
        let time = |pair: u64| 1_000 * MS + pair * 1_000;
        for pair in 1..=100_000 {
            let flow = u32::try_from(pair).unwrap_or_default();
            marks.note(pair, slot(flow), FlowId(pair), Time(time(pair)));
            // The pair of 0.9 ms before.
            let before = pair.saturating_sub(900);
            let expected = (before > 0).then(|| slot(flow - 900));
            assert_eq!(sole(&marks, before, time(pair)), expected, "{pair}");
        }
        // A mark each microsecond: those of 4 ms are kept, and as many until they are looked through.
        assert!(marks.pairs.len() <= 2 * 4_001, "{}", marks.pairs.len());
    }

    #[test]
    fn more_flows_than_are_remembered_are_never_one_alone() {
        let mut marks = Marks::default();
        for flow in 0..100 {
            marks.note(
                1,
                slot(flow),
                FlowId(u64::from(flow)),
                Time(1_000 * MS + u64::from(flow)),
            );
        }
        assert_eq!(sole(&marks, 1, 1_000 * MS + 200), None);
    }
}
