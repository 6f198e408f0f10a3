//! State of a live flow: the part that every packet touches, and the rest.

mod attributes;
mod prefetch;
mod trouble;

use std::borrow::Cow;

use roce_model::{Active, FlowId, FlowKey, FlowRow, Groups, Nanos, Packet, TapId, Vantage};
use roce_wire::{Carrier, Psn, Service, Through, VlanTag};

use crate::congestion::dcqcn::replay::Replay;
use crate::congestion::pauses::PausedTime;
use crate::congestion::progress::WINDOW_PACKETS;
use crate::congestion::reaction::{Congestion, Meter};
use crate::counts::{Counts, FlowTotals};
use crate::key::{FlowSlot, Key};
use crate::pairing::evidence::{Evidence, Peer};
use crate::psn::acks::Answers;
use crate::psn::cause::Trigger;
use crate::psn::holes::LossClass;
use crate::psn::jump::CompletedMessages;
use crate::psn::read_holes::Reads;
use crate::psn::read_responses::Responses;
use crate::psn::request::Requests;
use crate::psn::run::Recovery;
use crate::psn::tracker::Tracker;
use crate::rows::{Limits, Row};
use crate::table::attributes::{Dscps, Ports};
pub(crate) use crate::table::state::trouble::Trouble;
use crate::taps::duplicates::CopyEvidence;
use crate::taps::vantage;
use crate::taps::vantage::Other;
use crate::timing::distribution::Distribution;
use crate::timing::latency::{BinTimes, Times};
use crate::timing::messages::{Messages, PendingRead};
use crate::timing::stall::{SilenceHistory, SilenceThreshold};

/// State that packets of a flow touch: three cache lines, and a fourth with the first and the last ones of messages, answers, and
/// when a row closes.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Hot {
    // The first line: what finds the flow, and what its next request should be.
    /// The key and the tap, as the table compares them.
    pub(crate) packed: Key,
    pub(crate) requests: Requests,
    // The second one.
    pub(crate) last_request: Nanos,
    pub(crate) last_time: Nanos,
    pub(crate) messages: Messages,
    pub(crate) evidence: CopyEvidence,
    /// The tap's count of losses that the flow knows of.
    pub(crate) losses: u32,
    source_port: u16,
    dscp: u8,
    /// Packets until its rate is looked at; from 0 it is 256.
    pub(crate) pace: u8,
    /// Length of a silence from which the flow's pace is compared.
    pub(crate) quiet: SilenceThreshold,
    /// Seen since the clock hand of the eviction last came by.
    pub(crate) referenced: bool,
    /// Has counts in the current bin.
    pub(crate) active: bool,
    // The third.
    pub(crate) counts: Counts,
    /// Data packets with this DSCP since the last change.
    pub(crate) dscp_run: u32,
    /// Application data in requests sent for the first time, modulo 2^32.
    pub(crate) sent_bytes: u32,
    // The fourth.
    pub(crate) icrc_checked: u64,
    pub(crate) tap: TapId,
    /// The place of the flow of the other direction; [`FlowSlot::NONE`] while that is not known.
    pub(crate) peer: FlowSlot,
    /// The unit of time in which the last CE mark was noted; see [`crate::congestion::recent_marks`].
    pub(crate) marked_in: u32,
    /// How much speaks against the peer.
    pub(crate) doubt: u8,
    /// The first CE mark since the last notification was noted.
    pub(crate) is_marked: bool,
    /// Another tap saw packets of it, too.
    pub(crate) matched: bool,
    /// The slot holds a flow.
    pub(crate) live: bool,
    /// Answers to its requests left times in the current bin.
    pub(crate) timed: bool,
    /// The other direction is known, or has been.
    pub(crate) knows_answers: bool,
}

/// State that is touched when something unusual happens, and when a row closes. Fields that are used together are neighbours:
/// the lines of one flow are seldom in a cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Cold {
    // When a row closes: the first two lines, and a third with what is rare.
    pub(crate) id: FlowId,
    pub(crate) groups: Groups,
    pub(crate) epoch: u32,
    /// Where its last row is among those of its bin.
    pub(crate) row_at: u32,
    /// The number of its pair of hosts; see [`crate::pair_places`].
    pub(crate) pair: u32,
    /// True if notifications that slow the flow are known as such: its other direction is known, or its packets say
    /// which queue pair they come from.
    knows_cnp: bool,
    pub(crate) totals: FlowTotals,
    // With requests: one line.
    /// Times of answers; made with the first request after the other direction is known.
    pub(crate) times: Option<Box<Times>>,
    /// Times and responses of READs, made likewise.
    pub(crate) reads: Option<Box<Reads>>,
    pub(crate) lengths: Distribution,
    // With answers: the line of requests, and the first one of this.
    pub(crate) tracker: Tracker,
    /// Messages that its receiver has completed.
    pub(crate) completed: CompletedMessages,
    pub(crate) pending_read: Option<PendingRead>,
    /// The rate before any time, once the flow has sent some packets.
    pub(crate) meter: Option<Box<Meter>>,
    /// Marks and notifications, once there are some.
    pub(crate) congestion: Option<Box<Congestion>>,
    pub(crate) pace: SilenceHistory,
    pub(crate) responses: Responses,
    pub(crate) read_requests: u64,
    pub(crate) atomics: u64,
    // While the other direction is looked for, and rarely.
    pub(crate) key: FlowKey,
    /// No other flow, and no other epoch of this one, has the same. Never 0.
    pub(crate) serial: u32,
    /// The other direction, as far as it was known in this epoch.
    peer: Option<Peer>,
    /// Its sender under DCQCN, from the first notification on.
    pub(crate) replay: Option<Box<Replay>>,
    /// The hash of the pair of the other direction.
    pub(crate) back: u64,
    /// Evidence for the other direction, until that is known.
    pub(crate) evidence: Option<Box<Evidence>>,
    ports: Ports,
    /// The other direction, as it is linked now.
    pub(crate) link: Option<Peer>,
    /// When the flow last carried a NAK, RNR NAKs not counted; 0: never.
    pub(crate) last_nak: Nanos,
    /// Knowledge of the other direction about the tap's place, when that has closed.
    pub(crate) other: Option<Other>,
    pub(crate) first_time: Nanos,
    pub(crate) first_psn: Option<Psn>,
    /// Its pauses, once there are some at its tap.
    pauses: Option<Box<PauseSums>>,
    /// Counts of retransmissions and losses, once there are some.
    pub(crate) trouble: Option<Box<Trouble>>,
    /// Packets by DSCP, from the second value on.
    dscps: Option<Box<Dscps>>,
    through: Through,
    carrier: Carrier,
    hop_limit: u8,
    /// Its first frame was addressed to the MAC address that sent it.
    to_itself: bool,
    priority: Option<u8>,
}

/// The pauses of one flow.
#[derive(Clone, Copy, Debug, Default)]
struct PauseSums {
    /// How long the flow was paused from its first row to its last.
    paused: Option<u64>,
    /// The pauses that it could have had up to its last row, since there are any at its tap.
    before: Option<u64>,
}

/// Hashes of a flow's tap and hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hosts {
    /// To which groups the flow belongs.
    pub(crate) groups: Groups,
    /// Tap, destination and source: the pair of the other direction.
    pub(crate) back: u64,
}

impl Hosts {
    /// Those of the flow of a packet.
    pub(crate) fn from_packet(packet: &Packet) -> Self {
        let (source, destination) = (packet.roce.source, packet.roce.destination);
        Self {
            groups: Groups::new(packet.tap, source, destination),
            back: Groups::new(packet.tap, destination, source).pair,
        }
    }
}

impl Hot {
    pub(crate) fn new(packet: &Packet, key: Key) -> Self {
        Self {
            packed: key,
            requests: Requests::default(),
            last_request: Nanos::default(),
            last_time: packet.time,
            messages: Messages::default(),
            evidence: CopyEvidence::default(),
            losses: 0,
            source_port: packet.roce.udp_source_port,
            dscp: packet.roce.dscp(),
            referenced: true,
            active: false,
            matched: false,
            live: true,
            counts: Counts::default(),
            dscp_run: 0,
            icrc_checked: 0,
            tap: packet.tap,
            peer: FlowSlot::NONE,
            marked_in: 0,
            doubt: 0,
            is_marked: false,
            pace: WINDOW_PACKETS,
            timed: false,
            knows_answers: false,
            quiet: SilenceThreshold::default(),
            sent_bytes: 0,
        }
    }

    /// True if the flow of the other direction is known.
    #[inline]
    pub(crate) fn is_paired(&self) -> bool {
        self.peer != FlowSlot::NONE
    }

    /// True if its next packet is that with which its rate is looked at.
    #[inline]
    pub(crate) fn is_paced_next(&self) -> bool {
        self.pace == 1
    }

    /// Starts the flow's next epoch at `time`.
    pub(crate) fn next_epoch(&mut self, time: Nanos) {
        self.last_time = time;
        self.matched = false;
        self.messages.restart();
        self.icrc_checked = 0;
        self.dscp_run = 0;
        self.sent_bytes = 0;
    }
}

impl Cold {
    /// When an answer came first to something behind the READ at `position`; 0: none did. `None`: of no READ.
    pub(crate) fn implied_since(&self, position: Option<u64>) -> Nanos {
        let reads = self.reads.as_ref().zip(position);
        reads.map_or(Nanos(0), |(reads, position)| reads.first_beyond(position))
    }

    /// The state of a flow that begins with `packet`.
    pub(crate) fn new(packet: &Packet, epoch: u32, serial: u32, hosts: Hosts) -> Self {
        let key = FlowKey::from_packet(&packet.roce);
        let mut ports = Ports::default();
        if !matches!(
            packet.roce.carrier,
            Carrier::RoceV1 | Carrier::InfinibandLocal | Carrier::InfinibandGlobal
        ) {
            ports.change_to(packet.roce.udp_source_port);
        }
        Self {
            id: key.id(),
            knows_cnp: key.service == Service::Ud,
            groups: hosts.groups,
            epoch,
            serial,
            row_at: u32::MAX,
            pair: u32::MAX,
            times: None,
            replay: None,
            totals: FlowTotals::default(),
            peer: None,
            key,
            reads: None,
            lengths: Distribution::default(),
            pending_read: None,
            tracker: Tracker::default(),
            completed: CompletedMessages::default(),
            meter: None,
            congestion: None,
            pace: SilenceHistory::default(),
            responses: Responses::default(),
            read_requests: 0,
            atomics: 0,
            back: hosts.back,
            evidence: None,
            ports,
            link: None,
            last_nak: Nanos(0),
            other: None,
            first_time: packet.time,
            first_psn: None,
            pauses: None,
            trouble: None,
            dscps: None,
            through: packet.roce.through,
            carrier: packet.roce.carrier,
            hop_limit: packet.roce.hop_limit,
            to_itself: packet.to_itself,
            priority: packet.roce.vlan.map(VlanTag::priority),
        }
    }

    /// Starts the flow's next epoch at `time`: identity and attributes stay.
    pub(crate) fn next_epoch(&mut self, time: Nanos) {
        self.epoch += 1;
        self.first_time = time;
        self.totals = FlowTotals::default();
        self.lengths = Distribution::default();
        self.pending_read = None;
        self.responses = Responses::default();
        self.first_psn = None;
        self.completed = CompletedMessages::default();
        self.trouble = None;
        (self.times, self.reads, self.pace) = (None, None, SilenceHistory::default());
        (self.read_requests, self.atomics) = (0, 0);
        self.dscps = None;
        self.ports.changes = 0;
        self.congestion = None;
        self.other = None;
        self.meter = None;
        self.pauses = None;
        // A queue pair that was made again begins with the whole line; if it was not, that is an upper bound, too.
        self.replay = None;
    }

    /// A row of the flow ends, up to whose end its path was paused for this time: in the row's bin, and in the bins without packets
    /// since the row before it.
    pub(crate) fn paused(&mut self, paused: Option<PausedTime>) {
        let Some(PausedTime {
            in_bin,
            in_all,
            first,
        }) = paused
        else {
            if let Some(sums) = &mut self.pauses {
                sums.before = None;
            }
            return;
        };
        let sums = self.pauses.get_or_insert_default();
        let before = sums.before.or_else(|| {
            // At its first row: nothing, when the flow is older than the tap's first pause.
            let older = sums.paused.is_none() && self.first_time < first;
            if older {
                Some(0)
            } else {
                in_all.map(|all| all.saturating_sub(in_bin))
            }
        });
        if let (Some(all), Some(before)) = (in_all, before) {
            *sums.paused.get_or_insert(0) += all.saturating_sub(before);
        }
        sums.before = in_all;
    }

    /// The other direction, as far as it was known in this epoch.
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// Sets the other direction, or forgets it.
    pub(crate) fn set_peer(&mut self, peer: Option<Peer>) {
        self.peer = peer;
        self.knows_cnp = peer.is_some() || self.key.service == Service::Ud;
    }

    /// A timeline row of the flow, without pair, times and limits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "most of it is replaced where it is called")]
    pub(crate) fn row(&self, tap: TapId, knows_answers: bool, counts: Counts) -> Row {
        Row {
            flow_id: self.id,
            tap,
            epoch: self.epoch,
            pair: 0,
            knows_cnp: self.knows_cnp,
            paired: knows_answers,
            times: BinTimes::default(),
            limits: Limits::default(),
            active: Active::ALL,
            counts,
        }
    }

    /// Knowledge of the tap's place that the flow gives to its other direction.
    pub(crate) fn to_other(&self) -> Other {
        Other {
            hop_limit: self.hop_limit,
            turnaround: self.times.as_ref().and_then(|times| {
                let (answers, median) = times.ack_rtt();
                vantage::turnaround(answers, median)
            }),
        }
    }

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
        row.timeout_wait_ns = trouble.stood_still[Trigger::Timeout as usize];
        row.rnr_wait_ns = trouble.stood_still[Trigger::Rnr as usize];
        row.recovery = self.tracker.recovery().map(Recovery::name);
        let reordering = self.tracker.reordering();
        row.reorder_depth_max = reordering.depth();
        row.reorder_time_max_ns = reordering.time().map(|time| time.0);
        row.duplicates_network = trouble.duplicates_network;
        row.unknown_packets = trouble.unknown_packets;
        row.losses_proven = self.tracker.proven_losses(only_reads);
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

    /// The flow's row in `flows`. `other`: what its other direction says of the tap's place; `by_taps`: what other taps say of it.
    pub(crate) fn flow_row(
        &self,
        hot: &Hot,
        evicted: bool,
        other: Option<Other>,
        by_taps: Option<Vantage>,
    ) -> FlowRow {
        let key = &self.key;
        let trouble = self.trouble.as_deref().cloned().unwrap_or_default();
        let mut dscps = self.dscps.as_deref().cloned().unwrap_or_default();
        dscps.add(hot.dscp, hot.dscp_run.into());
        let connected = !matches!(key.service, Service::Ud | Service::Rd);
        let [
            nak_sequence,
            nak_invalid_request,
            nak_remote_access,
            nak_remote_operational,
            nak_other,
        ] = trouble.naks;
        let mut row = FlowRow {
            flow_id: self.id,
            tap: hot.tap,
            epoch: self.epoch,
            source: key.source,
            destination: key.destination,
            destination_qpn: key.destination_qpn.value(),
            source_qpn: (!connected).then_some(key.source_qpn.value()),
            service: key.service.name(),
            carrier: self.carrier.name(),
            vlan: key.vlan,
            vni: key.vni,
            encapsulation: if self.through.is_nothing() {
                Cow::Borrowed("")
            } else {
                self.through.to_string().into()
            },
            peer_flow_id: self.peer.map(|peer| peer.id),
            pairing: self.peer.map(|peer| peer.how.name()),
            pairing_matches: self.peer.and_then(|peer| peer.matches),
            first_time: self.first_time,
            last_time: hot.last_time,
            nak_sequence,
            nak_invalid_request,
            nak_remote_access,
            nak_remote_operational,
            nak_other,
            stale: trouble.stale,
            response_missing: trouble.response_missing,
            read_requests: self.read_requests,
            atomics: self.atomics,
            path_mtu: hot.messages.path_mtu(),
            dscp: self.carrier.has_ip().then(|| dscps.most().unwrap_or(hot.dscp)),
            dscp_values: dscps.distinct(),
            pcp: self.priority,
            source_ports: u32::from(self.ports.count),
            source_port: (self.ports.count > 0).then_some(self.ports.seen[0]),
            // Some ports over a life are new paths; many changes among several are spraying.
            multipath: self.ports.count > 3 && self.ports.changes > self.totals.packets / 16,
            first_psn: self.first_psn.map(Psn::value),
            last_psn: self
                .first_psn
                .map(|_| hot.requests.expected().plus(Psn::COUNT - 1).value()),
            icrc_checked: hot.icrc_checked,
            icrc_bad: trouble.icrc_bad,
            dcqcn_deviation: self.replay.as_ref().and_then(|replay| replay.deviation()),
            pause_ns: self.pauses.as_ref().and_then(|sums| sums.paused),
            last_request_time: (hot.last_request.0 > 0).then_some(hot.last_request),
            last_answer_time: self
                .tracker
                .answers()
                .map(Answers::progress)
                .filter(|time| time.0 > 0),
            awaiting_since: self.times.as_deref().and_then(Times::awaiting_since),
            to_itself: self.to_itself,
            evicted,
            counted: true,
            ..FlowRow::default()
        };
        self.write_lengths(&mut row);
        self.totals.write_flow(&mut row);
        self.write_losses(&trouble, hot.sent_bytes == 0, &mut row);
        roce_verdict::leave_unclear(&mut row);
        if let Some(times) = &self.times {
            times.write_flow(&mut row);
        }
        row.cnp = (self.knows_cnp || self.totals.cnp > 0).then_some(self.totals.cnp);
        let evidence = vantage::Evidence {
            hop_limit: self.hop_limit,
            other,
            by_taps,
            nak_answer: self.tracker.answers().map_or(Nanos(0), Answers::shortest_answer),
        };
        if let Some(congestion) = &self.congestion {
            congestion.write_charges(&mut row);
        }
        row.vantage = evidence.conclude(&row);
        row.wasted_bytes = wasted(&row, trouble.wasted_bytes, trouble.acknowledged_again);
        row.ack_rtt_kind = row.vantage.map(ack_time_at);
        if let Some(congestion) = &self.congestion {
            let is_sender_side = row.vantage == Some(Vantage::Sender);
            congestion.write_times(&mut row, is_sender_side);
        }
        row
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

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn what_comes_together_shares_cache_lines() {
        assert_eq!(size_of::<Hot>(), 256);
        assert_eq!(
            offset_of!(Hot, icrc_checked),
            192,
            "every packet touches three lines"
        );
        assert_eq!(
            offset_of!(Cold, times),
            192,
            "a row two, and a third with what is rare"
        );
        assert_eq!(offset_of!(Cold, tracker), 256, "requests one line, answers two");
        // State that a paired flow has besides; distributions, marks and holes come as they are needed.
        let paired = size_of::<Cold>() + size_of::<Times>() + size_of::<crate::psn::acks::Answers>();
        assert!(256 + paired <= 3 * 1024, "{paired}");
    }

    /// 3 KB are for all of a flow; what it needs seldom is apart, in boxes of their own.
    #[test]
    fn the_rest_is_small_as_well() {
        assert!(size_of::<Cold>() <= 1280, "{}", size_of::<Cold>());
        assert!(size_of::<Congestion>() <= 384, "{}", size_of::<Congestion>());
    }
}
