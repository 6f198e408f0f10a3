//! A flow's row in `flows`.

use roce_model::{FlowRow, Span, Vantage};
use roce_wire::{Psn, Service};

use crate::psn::acks::Answers;
use crate::psn::cause::Trigger;
use crate::psn::holes::LossClass;
use crate::psn::run::Recovery;
use crate::table::state::{Cold, Hot, Trouble};
use crate::taps::vantage;
use crate::taps::vantage::OutsideEvidence;
use crate::timing::latency::Times;

impl Cold {
    /// Fills in what became of losses, and how the sender recovered. `only_reads`: the flow has no other requests.
    fn write_losses(&self, trouble: &Trouble, only_reads: bool, row: &mut FlowRow) {
        [
            row.reordered,
            row.network_lost,
            row.capture_lost,
            row.ambiguous,
            row.unresolved,
        ] = self.tracker.fates();
        row.network_lost_again = self.tracker.lost_again();
        row.network_lost += row.network_lost_again;
        let waiting = trouble.waiting_runs.len() as u64;
        row.retransmission_runs = trouble.runs.iter().sum::<u64>() + waiting;
        [
            row.runs_nak,
            row.runs_implied_nak,
            row.runs_rnr,
            row.runs_timeout,
            row.runs_unknown,
        ] = trouble.runs;
        row.runs_unknown += waiting;
        row.runs_timeout_sure = trouble.sure_runs[Trigger::Timeout as usize];
        row.recovery = self.tracker.recovery().map(Recovery::name);
        let reordering = self.tracker.reordering();
        row.reorder_depth_max = reordering.depth();
        row.reorder_time_max_ns = reordering.time().map(|time| time.0);
        row.duplicates_network = trouble.duplicates_network;
        row.unknown_packets = trouble.unknown_packets;
        row.losses_proven = self.tracker.proven_losses(only_reads);
        row.trimmed = trouble.trimmed;
        row.trim_dscp = trouble.trim_dscps.most();
        row.trim_dscp_values = trouble.trim_dscps.distinct();
        row.missing_forgotten = self.tracker.forgotten();
        row.reads_unanswered = trouble.reads_unanswered;
        if !self.tracker.is_paired() {
            return;
        }
        row.lost_downstream = Some(self.totals.lost_downstream);
        row.overtaken_downstream = Some(trouble.overtaken_downstream);
        row.response_late = Some(trouble.response_fates[LossClass::Reordered as usize]);
        row.duplicate_acks = Some(self.tracker.answers().map_or(0, Answers::duplicates));
        row.response_network_lost = Some(trouble.response_fates[LossClass::NetworkLost as usize]);
        row.response_capture_lost = Some(trouble.response_fates[LossClass::CaptureLost as usize]);
    }

    fn write_lengths(&self, row: &mut FlowRow) {
        let lengths = self.lengths.summary();
        row.message_bytes_min = lengths.min();
        row.message_bytes_p50 = lengths.quantile(50);
        row.message_bytes_p90 = lengths.quantile(90);
        row.message_bytes_p99 = lengths.quantile(99);
        row.message_bytes_max = lengths.max();
        row.message_bytes_stddev = lengths.stddev();
    }

    /// The flow's row in `flows`. Evidence of the tap's place besides the flow's own packets is `outside`.
    pub(crate) fn flow_row(&self, hot: &Hot, evicted: bool, outside: OutsideEvidence) -> FlowRow {
        let trouble = self.trouble.as_deref().cloned().unwrap_or_default();
        let mut row = FlowRow {
            evicted,
            counted: true,
            ..self.named_row(hot)
        };
        row.path_mtu = hot.messages.path_mtu();
        self.attributes
            .write_flow(hot.dscp, hot.dscp_run, self.totals.packets, &mut row);
        self.write_counts(hot, &trouble, &mut row);
        self.write_lengths(&mut row);
        self.totals.write_flow(&mut row);
        self.write_losses(&trouble, hot.sent_bytes == 0, &mut row);
        roce_verdict::leave_unclear(&mut row);
        if let Some(times) = &self.times {
            times.write_flow(&mut row);
        }
        row.cnp = (self.knows_cnp || self.totals.cnp > 0).then_some(self.totals.cnp);
        let evidence = vantage::Evidence {
            hop_limit: self.attributes.hop_limit(),
            outside,
            nak_answer: self.tracker.answers().map_or(Span(0), Answers::shortest_answer),
        };
        if let Some(congestion) = &self.congestion {
            congestion.write_charges(&mut row);
        }
        row.vantage = evidence.conclude(&row);
        row.wasted_bytes = wasted(&row, trouble.wasted_bytes, trouble.acknowledged_again);
        row.ack_rtt_kind = row.vantage.map(ack_time_at);
        if let Some(congestion) = &self.congestion {
            let shows_sent_rate = row.shows_sent_rate();
            congestion.write_times(&mut row, shows_sent_rate);
        }
        row
    }

    /// A row that names the flow, its other direction and its time.
    fn named_row(&self, hot: &Hot) -> FlowRow {
        let key = &self.key;
        let connected = !matches!(key.service, Service::Ud | Service::Rd);
        FlowRow {
            flow_id: self.id,
            tap: hot.tap,
            epoch: self.epoch,
            source: key.source,
            destination: key.destination,
            destination_qpn: key.destination_qpn.value(),
            source_qpn: (!connected).then_some(key.source_qpn.value()),
            service: key.service.name(),
            carrier: self.attributes.carrier().name(),
            vlan: key.vlan,
            vni: key.vni,
            peer_flow_id: self.peering.peer().map(|peer| peer.id),
            pairing: self.peering.peer().map(|peer| peer.how.name()),
            pairing_matches: self.peering.peer().and_then(|peer| peer.matches),
            first_time: self.first_time,
            last_time: hot.last_time,
            ..FlowRow::default()
        }
    }

    /// Fills in what was counted apart from the totals.
    fn write_counts(&self, hot: &Hot, trouble: &Trouble, row: &mut FlowRow) {
        [
            row.nak_sequence,
            row.nak_invalid_request,
            row.nak_remote_access,
            row.nak_remote_operational,
            row.nak_other,
        ] = trouble.naks;
        row.stale = trouble.stale;
        row.response_missing = trouble.response_missing;
        row.read_requests = self.kinds.reads;
        row.atomics = self.kinds.atomics;
        row.first_psn = self.first_psn.map(Psn::value);
        row.last_psn = self
            .first_psn
            .map(|_| hot.requests.expected().plus(Psn::COUNT - 1).value());
        row.icrc_checked = hot.icrc_checked;
        row.icrc_bad = trouble.icrc_bad;
        row.dcqcn_deviation = self.replay.as_ref().and_then(|replay| replay.deviation());
        row.pause_ns = self.pauses.as_ref().and_then(|sums| sums.paused);
        row.last_request_time = (hot.last_request.0 > 0).then_some(hot.last_request);
        let progress = self.tracker.answers().map(Answers::progress);
        row.last_answer_time = progress.filter(|time| time.0 > 0);
        row.unanswered_time = self.times.as_deref().and_then(Times::unanswered_time);
    }
}

/// Number of retransmitted bytes that had arrived before. A tap before the losses captured all of them before,
/// whatever arrived; a tap behind the losses, or on the receiver's side, captured those that passed it.
/// Acknowledged bytes had arrived wherever the tap is.
fn wasted(row: &FlowRow, captured_before: u64, acknowledged: u64) -> Option<u64> {
    let is_behind_all = row.network_lost > 0 && row.lost_downstream.unwrap_or_default() == 0;
    let shows = row.retransmitted_packets == 0 || row.vantage == Some(Vantage::Receiver) || is_behind_all;
    let shows = shows || captured_before > 0 && acknowledged == captured_before;
    shows.then_some(captured_before)
}

/// Name of the time from a request to its answer, measured at a tap with this vantage.
fn ack_time_at(vantage: Vantage) -> &'static str {
    match vantage {
        Vantage::Sender => "rtt",
        Vantage::Receiver => "turnaround",
        Vantage::Between => "partial",
    }
}
