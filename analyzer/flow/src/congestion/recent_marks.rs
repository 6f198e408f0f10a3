//! Flows of two hosts that carried CE marks in the last millisecond. A notification that nothing else
//! attributes is for that flow, if there is one alone.

use roce_model::{FlowId, Span, Time};

use crate::key::FlowSlot;

/// Time before a notification in which CE marks count. Adapters send one within tens of microseconds.
const WINDOW: Span = Span(1_000_000);
/// A flow's marks are noted once in such a unit of time, 65.5 us.
const TICK_SHIFT: u32 = 16;
/// Flows remembered of two hosts.
const FLOWS: usize = 4;
/// Pairs of hosts, by hash.
const PAIRS: usize = 1 << 10;

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
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    /// A hash of tap and hosts.
    hosts: u64,
    /// From here on nothing was overlooked: before, the place was another pair's.
    since: Time,
    flows: [MarkedFlow; FLOWS],
}

/// The latest marks, by pair of hosts. Of two pairs that share a place the later one has it.
#[derive(Debug)]
pub(crate) struct Marks(Box<[Pair]>);

impl Default for Marks {
    fn default() -> Self {
        Self(vec![Pair::default(); PAIRS].into_boxed_slice())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "masked to the number of places")]
fn place(pair: u64) -> usize {
    (pair ^ pair >> 32) as usize & (PAIRS - 1)
}

impl Marks {
    /// A data packet of the flow at `at`, between hosts with the hash `pair`, was marked.
    pub(crate) fn note(&mut self, pair: u64, at: FlowSlot, id: FlowId, time: Time) {
        let entry = &mut self.0[place(pair)];
        if entry.hosts != pair {
            let is_free = entry.hosts == 0;
            *entry = Pair {
                hosts: pair,
                since: if is_free { Time(0) } else { time },
                ..Pair::default()
            };
        }
        let known = entry
            .flows
            .iter()
            .position(|flow| flow.id == id && flow.time.0 != 0);
        let oldest = || {
            let flows = entry.flows.iter().enumerate();
            flows.min_by_key(|(_, flow)| flow.time).map_or(0, |(at, _)| at)
        };
        let slot = known.unwrap_or_else(oldest);
        entry.flows[slot] = MarkedFlow { at, id, time };
    }

    /// The only flow between these hosts, of those that may be meant, with a mark in the millisecond before `time`.
    pub(crate) fn sole(
        &self,
        pair: u64,
        time: Time,
        mut may_be_meant: impl FnMut(FlowSlot, FlowId) -> bool,
    ) -> Option<(FlowSlot, FlowId)> {
        let entry = &self.0[place(pair)];
        // A flow's mark is noted up to a tick before its last one.
        let from = Time(time.0.saturating_sub(WINDOW.0 + (1 << TICK_SHIFT)));
        if entry.hosts != pair || entry.since > from {
            return None;
        }
        let mut marked = entry
            .flows
            .iter()
            .filter(|flow| flow.time.0 != 0 && flow.time >= from && may_be_meant(flow.at, flow.id));
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
    fn a_pair_that_took_a_place_waits_a_millisecond() {
        let mut marks = Marks::default();
        let begin = 1_000 * MS;
        let other = 1 + PAIRS as u64;
        assert_eq!(place(1), place(other));
        marks.note(1, slot(7), FlowId(70), Time(begin));
        marks.note(other, slot(8), FlowId(80), Time(begin));
        assert_eq!(
            sole(&marks, other, begin + 500_000),
            None,
            "what it had before is not known"
        );
        marks.note(other, slot(8), FlowId(80), Time(begin + 2 * MS));
        assert_eq!(sole(&marks, other, begin + 2 * MS), Some(slot(8)));
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
