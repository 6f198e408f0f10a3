//! Packets that several taps of a run saw: packets of one flow are found in the other's, and one of the
//! rows counts.

use std::collections::HashMap;

use roce_model::{FlowId, FlowRow, Packet, TapId};

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::psn::acks::Answers;
use crate::psn::tracker::Tracker;
use crate::table::FlowTable;
use crate::taps::matching::counted::SeenByTap;
use crate::taps::matching::hops::Ends;
use crate::taps::matching::{Behind, TapMatcher, traffic};
use crate::taps::vantage::{Other, OutsideEvidence};

/// A second tap that recorded while so many of so many packets passed the first one tells of all of them.
const WHOLE_SHARE: (u64, u64) = (99, 100);

impl Analysis {
    /// Resolution of the stamps of the next tap, in nanoseconds: taps are told in the order of their numbers.
    pub fn add_resolution(&mut self, ns: u64) {
        self.taps.resolutions.push(ns);
    }

    /// Number of taps whose resolution is known.
    pub fn resolutions(&self) -> usize {
        self.taps.resolutions.len()
    }

    /// From now on packets are matched between taps. Matching starts by itself with the second tap.
    /// Started before the first packet, it also finds packets that were on their way at that time. It
    /// costs memory, and some time for each packet.
    pub fn match_taps(&mut self) {
        if self.taps.matcher.is_none() {
            let matcher = TapMatcher::new(self.table.most(), self.bins.shown());
            self.taps.matcher = Some(Box::new(matcher));
        }
    }

    /// Looks whether another tap saw a packet of the flow at `at`.
    pub(super) fn cross(&mut self, at: FlowSlot, packet: &Packet) {
        let Some(matcher) = &mut self.taps.matcher else {
            return;
        };
        if matcher.has_rested(packet.time) {
            conclude(matcher, &self.table);
            matcher.look_again();
        }
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

    /// Evidence of a flow's vantage that is not in its own packets. `other` is that of its other direction.
    pub(super) fn outside_evidence(&self, at: FlowSlot, other: Option<Other>) -> OutsideEvidence {
        let hot = self.table.hot.get(at);
        OutsideEvidence {
            other,
            by_taps: hot.and_then(|hot| self.taps.by_taps(at, hot.tap)),
            stated: self.taps.stated,
        }
    }

    /// Before flows close for good: which tap's rows count is decided by all that every tap saw.
    pub(super) fn choose_taps(&mut self) {
        let Some(matcher) = self
            .taps
            .matcher
            .as_mut()
            .filter(|matcher| !matcher.sides.is_complete())
        else {
            return;
        };
        conclude(matcher, &self.table);
        matcher.complete();
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
        Self::look_behind(matcher, &self.table);
        matcher.sides.complete();
        for row in matcher.sides.release() {
            self.count_flow(row);
        }
    }

    /// Adds to each live flow the packets that were lost between two taps, and those that were repeated
    /// although they had arrived. The first tap alone cannot know.
    fn look_behind(matcher: &mut TapMatcher, table: &FlowTable) {
        let flows = table.hot.iter().zip(table.cold.iter()).enumerate();
        let live = flows.filter(|(_, (hot, _))| hot.live && hot.matched);
        let places: HashMap<(FlowId, TapId), FlowSlot, foldhash::fast::RandomState> = live
            .map(|(at, (hot, cold))| ((cold.id, hot.tap), FlowSlot::from_index(at)))
            .collect();
        for flow in matcher.hops.flows() {
            let (Some(first), Some(second)) = (places.get(&flow.first), places.get(&flow.second)) else {
                continue;
            };
            let (Some(before), Some(behind)) = (table.cold.get(*first), table.cold.get(*second)) else {
                continue;
            };
            // Earlier epochs of the flow have rows of their own; where the second tap began later or ended earlier, its word is not all.
            let mut seen = before.totals;
            seen.add(&table.hot[*first].counts);
            let is_whole =
                flow.packets.saturating_mul(WHOLE_SHARE.1) >= seen.packets.saturating_mul(WHOLE_SHARE.0);
            if before.epoch > 0 || behind.epoch > 0 || !is_whole {
                continue;
            }
            // Packets that count as lost behind the second tap were NAKed, as the first tap saw.
            let own = seen.lost_downstream.saturating_sub(flow.lost);
            let lost_behind = behind.totals.lost_downstream.min(own);
            let trouble = behind.trouble.as_deref();
            let of_second = Behind {
                lost: flow.lost.saturating_add(lost_behind),
                wasted_bytes: (lost_behind == 0).then(|| trouble.map_or(0, |trouble| trouble.wasted_bytes)),
            };
            matcher.note_behind(*first, of_second);
        }
    }

    /// Emits the row of a flow that closes, or holds it back until it is known which tap saw most of it.
    pub(super) fn emit_flow(&mut self, at: FlowSlot, row: FlowRow) {
        let hot = &self.table.hot[at];
        let row = match &mut self.taps.matcher {
            Some(matcher) if hot.matched => matcher.sides.close(traffic(&self.table.cold[at].key), row),
            _ => Some(row),
        };
        if let Some(row) = row {
            self.count_flow(row);
        }
    }

    fn count_flow(&mut self, row: FlowRow) {
        if !row.counted {
            self.tally.totals.seen_again += row.packets;
        }
        self.output.flows.push(row);
    }
}

/// Judges all that taps saw so far: nothing of it can come any more.
fn conclude(matcher: &mut TapMatcher, table: &FlowTable) {
    matcher.conclude(|at, psn| {
        let (Some(hot), Some(cold)) = (table.hot.get(at), table.cold.get(at)) else {
            return false;
        };
        let acked = cold.tracker.answers().map_or(0, Answers::acked);
        Tracker::position(&hot.requests, psn).is_some_and(|position| position < acked)
    });
}
