//! Facts about a flow that one tap shows, at times when no other tap of the flow recorded. There its word
//! counts, whichever tap counts otherwise.

use std::collections::HashMap;

use roce_model::cast::whole;
use roce_model::{FlowId, HopRow, RunSummary, TapId, Time};

/// Facts of all taps that are kept: some 3 MB. Of more, the word of the tap that counts is all.
const MAX_FACTS: usize = 1 << 16;

/// Event of a flow at one time, as one tap shows it.
#[derive(Clone, Copy, Debug)]
struct Fact<K> {
    flow: FlowId,
    tap: TapId,
    time: Time,
    kind: K,
    amount: u64,
}

/// Facts of all taps.
#[derive(Clone, Debug)]
pub(super) struct Facts<K> {
    list: Vec<Fact<K>>,
}

impl<K> Default for Facts<K> {
    fn default() -> Self {
        Self { list: Vec::new() }
    }
}

impl<K: Copy> Facts<K> {
    /// Notes a fact of a flow at a tap; `amount` in the unit of the kind.
    pub(super) fn note(&mut self, (flow, tap): (FlowId, TapId), time: Time, kind: K, amount: u64) {
        if self.list.len() < MAX_FACTS {
            self.list.push(Fact {
                flow,
                tap,
                time,
                kind,
                amount,
            });
        }
    }

    /// Calls `take` with the flow, the tap, the kind and the amount of each fact that another tap's rows do not have: the flow counts at
    /// another tap, and neither that one nor any other that saw the flow was recording.
    pub(super) fn each(
        &self,
        run: &RunSummary,
        counts_at: impl Fn(FlowId, TapId) -> bool,
        mut take: impl FnMut(FlowId, TapId, K, u64),
    ) {
        if run.hops.is_empty() {
            return;
        }
        let mut others: HashMap<(FlowId, TapId), Vec<(TapId, u64)>, foldhash::fast::RandomState> =
            HashMap::default();
        for hop in &run.hops {
            for (tap, other) in [(hop.from_tap, hop.to_tap), (hop.to_tap, hop.from_tap)] {
                let others = others.entry((hop.flow_id, tap)).or_default();
                others.push((other, longest_delay(hop)));
            }
        }
        let spans: HashMap<TapId, (Time, Time), foldhash::fast::RandomState> = run
            .taps
            .iter()
            .filter_map(|tap| Some((tap.tap, (tap.first_time?, tap.last_time?))))
            .collect();
        // The packet of a fact passes the other tap earlier or later by the delay between the two.
        let was_recording = |tap: TapId, delay: u64, time: Time| {
            let span = spans.get(&tap);
            span.is_none_or(|(first, last)| {
                time.0.saturating_add(delay) >= first.0 && time.0 <= last.0.saturating_add(delay)
            })
        };
        for fact in &self.list {
            let Some(others) = others.get(&(fact.flow, fact.tap)) else {
                continue;
            };
            let is_alone = !others
                .iter()
                .any(|(tap, delay)| was_recording(*tap, *delay, fact.time));
            if is_alone && !counts_at(fact.flow, fact.tap) {
                take(fact.flow, fact.tap, fact.kind, fact.amount);
            }
        }
    }
}

/// The longest time between two taps, whichever is first, in ns; 0 where it is not known.
fn longest_delay(hop: &HopRow) -> u64 {
    let delays = [hop.delay_min_ns, hop.delay_max_ns].into_iter().flatten();
    delays.map(|delay| whole(delay.abs())).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use roce_model::TapRow;

    use super::*;

    #[test]
    fn a_fact_counts_once_and_only_where_no_other_tap_recorded() {
        let tap = |tap, first, last| TapRow {
            tap: TapId(tap),
            first_time: Some(Time(first)),
            last_time: Some(Time(last)),
            ..TapRow::default()
        };
        let run = RunSummary {
            taps: vec![tap(0, 100, 200), tap(1, 150, 300)],
            hops: vec![HopRow {
                flow_id: FlowId(7),
                to_tap: TapId(1),
                ..HopRow::default()
            }],
            ..RunSummary::default()
        };
        let mut facts = Facts::default();
        // The facts are of flow 7, which counts at tap 0 (within its time, at its end, and behind), of flow 8,
        // which one tap alone saw, and of tap 0 itself.
        for (flow, tap, time, amount) in [
            (7, 1, 160, 1),
            (7, 1, 200, 2),
            (7, 1, 201, 4),
            (8, 1, 250, 8),
            (7, 0, 120, 16),
        ] {
            facts.note((FlowId(flow), TapId(tap)), Time(time), (), amount);
        }
        let mut sum = 0;
        facts.each(&run, |_, tap| tap == TapId(0), |_, _, (), amount| sum += amount);
        assert_eq!(sum, 4);
        // Packets come to tap 1 by 1 ns later: the one of 201 was at tap 0 at its end.
        let mut delayed = run.clone();
        delayed.hops[0].delay_max_ns = Some(1.0);
        let mut sum = 0;
        facts.each(
            &delayed,
            |_, tap| tap == TapId(0),
            |_, _, (), amount| sum += amount,
        );
        assert_eq!(sum, 0);
    }
}
