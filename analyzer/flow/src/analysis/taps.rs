//! Packets that several taps of a run saw: packets of one flow are found in the other's, and one of the
//! rows counts.

use roce_model::{FlowRow, Packet, Vantage};

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::psn::acks::Answers;
use crate::psn::tracker::Tracker;
use crate::taps::matching::counted::SeenByTap;
use crate::taps::matching::hops::Ends;
use crate::taps::matching::{TapMatcher, traffic};

impl Analysis {
    /// From now on packets are matched between taps. Matching starts by itself with the second tap.
    /// Started before the first packet, it also finds packets that were on their way at that time. It
    /// costs memory, and some time for each packet.
    pub fn match_taps(&mut self) {
        if self.matcher.is_none() {
            self.matcher = Some(Box::new(TapMatcher::new(self.max_flows, self.bins.shown())));
        }
    }

    /// Looks whether another tap saw a packet of the flow at `at`.
    pub(super) fn cross(&mut self, at: FlowSlot, packet: &Packet) {
        let Some(matcher) = &mut self.matcher else {
            return;
        };
        let flows = &self.table.hot;
        let Some(key) = flows.get(at).map(|hot| &hot.packed) else {
            return;
        };
        let keys = |at: FlowSlot| {
            let hot = flows.get(at).filter(|hot| hot.live)?;
            Some((&hot.packed, hot.tap))
        };
        let Some(found) = matcher.sight(packet, at, key, keys) else {
            return;
        };
        let cold = &self.table.cold;
        let name = |at: FlowSlot| cold.get(at).map(|cold| cold.id);
        let names = || {
            Some(Ends {
                before: name(found.flow)?,
                now: name(at)?,
            })
        };
        matcher.note(&found, at, names);
        for at in [found.flow, at] {
            if let Some(hot) = self.table.hot.get_mut(at) {
                hot.matched = true;
            }
        }
    }

    /// Vantage of the flow's tap among those that saw its packets: `sender`, `receiver`, `between`.
    pub(super) fn by_taps(&self, at: FlowSlot) -> Option<Vantage> {
        let tap = self.table.hot.get(at)?.tap;
        self.matcher.as_ref()?.stands(at, tap)
    }

    /// Before flows close for good: which tap's rows count is decided by all that every tap saw.
    pub(super) fn choose_taps(&mut self) {
        let Some(matcher) = self
            .matcher
            .as_mut()
            .filter(|matcher| !matcher.sides.is_complete())
        else {
            return;
        };
        let (hot, cold) = (&self.table.hot, &self.table.cold);
        matcher.conclude(|at, psn| {
            let (Some(hot), Some(cold)) = (hot.get(at), cold.get(at)) else {
                return false;
            };
            let acked = cold.tracker.answers().map_or(0, Answers::acked);
            Tracker::position(&hot.requests, psn).is_some_and(|position| position < acked)
        });
        for (hot, cold) in self.table.hot.iter().zip(self.table.cold.iter()) {
            if hot.live && hot.matched {
                let mut totals = cold.totals;
                totals.add(&hot.counts);
                let mut row = FlowRow::default();
                totals.write_flow(&mut row);
                let seen = SeenByTap {
                    tap: hot.tap,
                    packets: row.packets,
                    marked: row.ce,
                };
                matcher.sides.add(traffic(&cold.key), seen);
            }
        }
        matcher.sides.complete();
        for row in matcher.sides.release() {
            self.count_flow(row);
        }
    }

    /// Emits the row of a flow that closes, or holds it back until it is known which tap saw most of it.
    pub(super) fn emit_flow(&mut self, at: FlowSlot, row: FlowRow) {
        let hot = &self.table.hot[at];
        let row = match &mut self.matcher {
            Some(matcher) if hot.matched => matcher.sides.close(traffic(&self.table.cold[at].key), row),
            _ => Some(row),
        };
        if let Some(row) = row {
            self.count_flow(row);
        }
    }

    fn count_flow(&mut self, row: FlowRow) {
        if !row.counted {
            self.totals.seen_again += row.packets;
        }
        self.output.flows.push(row);
    }
}
