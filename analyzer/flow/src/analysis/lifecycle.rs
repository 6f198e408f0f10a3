//! The life of a flow: it opens with its first packet, closes with each epoch, and goes when it is the idlest of too many,
//! or at the end.

use roce_model::{EventKind, EventRow, FlowKey, FlowRow, Packet, Time, Totals};

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::rows::Row;
use crate::table::lookup::FoundFlow;
use crate::table::state::{Cold, Hosts, Hot};
use crate::timing::latency::BinTimes;
use crate::transport::Transport as _;

impl Analysis {
    /// Opens the flow of a packet that was not found.
    pub(super) fn open_flow(&mut self, found: &FoundFlow, packet: &Packet) -> FlowSlot {
        if self.taps.note(packet.tap) {
            self.match_taps();
        }
        if self.table.is_full()
            && let Some(idle) = self.table.idle()
        {
            self.close_flow(idle, true);
            self.expect_return(idle);
            self.drop_flow(idle);
        }
        let dscp = packet.roce.carrier.has_ip().then(|| packet.roce.dscp());
        self.output
            .opened
            .push((FlowKey::from_packet(&packet.roce), dscp));
        let hosts = Hosts::from_packet(packet);
        let hot = Hot::new(packet, found.key);
        let serial = self.connections.next_serial();
        let cold = Cold::new(packet, self.table.first_epoch, serial, hosts);
        let at = self.table.insert(hot, cold);
        let (turns, first) = self.limits.turns.enter(hosts.groups.pair, at);
        self.table.hot[at].turns = turns;
        if let Some(first) = first {
            self.table.hot[first].turns = turns;
        }
        self.connections.enter(&self.table, at, packet.time);
        self.notifications.enter(&self.table.cold[at], at);
        self.link_as_expected(at, packet.time);
        self.link_as_reported(at, packet.time);
        at
    }

    /// Takes a closed flow out of the table.
    pub(super) fn drop_flow(&mut self, at: FlowSlot) {
        self.unlink(at);
        self.connections.leave(&self.table.cold[at], at);
        self.limits.turns.leave(self.table.cold[at].groups.pair, at);
        self.connections.credits.leave(self.table.cold[at].kinds.writes);
        self.notifications.leave(&self.table.cold[at], at);
        if let Some(matcher) = &mut self.taps.matcher {
            matcher.forget(at);
        }
        self.table.remove(at);
    }

    /// Closes a flow's epoch: its row in the current bin, and its row in `flows`.
    pub(super) fn close_flow(&mut self, at: FlowSlot, evicted: bool) {
        let last = self.table.hot[at].last_time;
        self.table.cold[at].tracker.close(last.max(self.ended));
        self.settle_news(at, true);
        self.report_holes(at, true);
        self.close_reads(at);
        self.close_row(at, Time(0));
        let times = self.divide_whole(at);
        let other = self.other(at);
        let hot = &self.table.hot[at];
        let cold = &self.table.cold[at];
        if cold.totals.packets == 0 {
            // All it showed were copies of packets that were counted before it was evicted and came back.
            return;
        }
        let mut row = cold.flow_row(hot, evicted, self.outside_evidence(at, other));
        if let Some(times) = &times {
            row.set_time_by_state(times);
        }
        if let Some(behind) = self.taps.matcher.as_ref().and_then(|matcher| matcher.behind(at)) {
            row.lost_downstream = row.lost_downstream.map(|_| behind.lost);
            row.wasted_bytes = behind.wasted_bytes;
        }
        self.name_process(&cold.key, &mut row);
        self.name_service(&mut row, cold.key.service);
        cold.totals.add_to_run(&mut self.tally.totals);
        let trouble = cold.trouble.as_ref();
        if trouble.is_some_and(|trouble| trouble.is_recorded_out_of_order()) {
            // A packet that came late here was late on its way to the tap.
            let late = &mut self.tally.totals.late;
            *late = late.saturating_sub(row.late);
            (row.late, row.reordered) = (0, 0);
            (row.reorder_depth_max, row.reorder_time_max_ns) = (None, None);
        }
        add_verdicts(&row, &mut self.tally.totals);
        self.tally.totals.icrc_checked += hot.icrc_checked;
        self.tally.totals.icrc_bad += row.icrc_bad;
        if evicted {
            self.tally.totals.evicted += 1;
            self.table.first_epoch = self.table.first_epoch.max(cold.epoch + 1);
            self.bins.events.push(EventRow {
                time: hot.last_time,
                kind: EventKind::Evicted,
                tap: hot.tap,
                flow_id: Some(cold.id),
                value: Some(row.packets),
                ..EventRow::default()
            });
        }
        self.keep_exchange(at, &row);
        self.emit_flow(at, row);
    }

    /// Ends the open row of a flow, if it has one. `since`: when its first packet in the bin came; 0: not known.
    #[inline]
    pub(super) fn close_row(&mut self, at: FlowSlot, since: Time) {
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        if !core::mem::take(&mut hot.active) {
            return;
        }
        let counts = core::mem::take(&mut hot.counts);
        cold.totals.add(&counts);
        let mut times = BinTimes::default();
        if core::mem::take(&mut hot.timed)
            && let Some(of_flow) = &mut cold.times
        {
            times = of_flow.take_bin();
        }
        let limits = self.limits.in_bin(&mut self.table, &self.bins, at, &counts);
        let hot = &self.table.hot[at];
        let cold = &mut self.table.cold[at];
        let (place, pair) = self.bins.place_row(&mut cold.pair, &cold.groups, hot.tap);
        cold.row_at = place;
        self.bins.latest.push(Row {
            pair,
            times,
            limits,
            active: self.bins.active_from(since, hot.last_time),
            ..cold.row(hot.tap, hot.trust.was_known, counts)
        });
    }
}

/// Adds what a closed flow's row says of losses and retransmissions to the run.
fn add_verdicts(row: &FlowRow, totals: &mut Totals) {
    totals.reordered += row.reordered;
    totals.network_lost += row.network_lost;
    totals.network_lost_again += row.network_lost_again;
    totals.trimmed += row.trimmed;
    totals.capture_lost += row.capture_lost;
    totals.ambiguous += row.ambiguous;
    totals.unresolved += row.unresolved;
    totals.lost_downstream += row.lost_downstream.unwrap_or_default();
    totals.wasted_bytes += row.wasted_bytes.unwrap_or_default();
    totals.retransmission_runs += row.retransmission_runs;
    totals.runs_nak += row.runs_nak;
    totals.runs_implied_nak += row.runs_implied_nak;
    totals.runs_rnr += row.runs_rnr;
    totals.runs_timeout += row.runs_timeout;
    totals.runs_unknown += row.runs_unknown;
    totals.duplicate_acks += row.duplicate_acks.unwrap_or_default();
    totals.response_network_lost += row.response_network_lost.unwrap_or_default();
    totals.response_capture_lost += row.response_capture_lost.unwrap_or_default();
}
