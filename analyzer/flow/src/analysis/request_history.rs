//! The request that is judged because it is not in order: its packet, the history of its flow, and that of others between the same hosts.

use roce_model::{EventKind, EventRow, Packet, Span, Time};
use roce_wire::{ExtendedHeaders, Operation, Psn};

use crate::analysis::{Analysis, CopyCheck};
use crate::key::FlowSlot;
use crate::psn::acks::REACH;
use crate::psn::jump::has_other_port;
use crate::psn::recent_naks::NakMatch;
use crate::psn::request::{Again, FlowHistory, PairHistory, Request, RequestPacket};
use crate::psn::tracker::Tracker;
use crate::table::state::{Cold, Hot};
use crate::timing::latency::Times;
use crate::timing::messages::{PathMtu, PendingRead};

/// Time after a notification in which a sender may still send less than one packet in a millisecond. The least
/// rate of DCQCN, 40 Mbit/s in the paper's simulator, is one 4 KiB packet in 0.8 ms, and it rises by as much
/// each 55 us at the earliest.
const SLOWED: Span = Span(20_000_000);

/// The place of a request among those of its flow.
#[derive(Clone, Copy)]
pub(super) struct RequestPlace {
    /// Where its PSN is among the requests; `None` when it fits none of them.
    pub(super) position: Option<u64>,
    /// It is behind the highest one.
    pub(super) is_behind: bool,
    /// It is, or packets before it are not judged yet.
    pub(super) is_open: bool,
}

impl RequestPlace {
    pub(super) fn find(hot: &Hot, cold: &Cold, psn: Psn) -> Self {
        let position = Tracker::position(&hot.requests, psn);
        let is_behind = position.is_some_and(|position| position < hot.requests.next);
        Self {
            position,
            is_behind,
            is_open: is_behind || cold.tracker.is_undecided(),
        }
    }
}

/// PSNs of a request.
#[derive(Clone, Copy)]
pub(super) struct RequestSpan {
    /// PSNs that it takes; `None`: a READ whose responses cannot be counted yet.
    span: Option<u32>,
    /// Length of the READ before it, of which it was not known how many PSNs it takes; 0: it was.
    read_before: u32,
}

impl Analysis {
    /// The PSNs that a request takes, once those of the READs before it are known as far as they can be.
    pub(super) fn span_of_request(&mut self, at: FlowSlot, packet: &Packet, generation: u32) -> RequestSpan {
        let is_read = packet.roce.bth.opcode().operation() == Operation::ReadRequest;
        let cold = &self.table.cold[at];
        let waits = cold.pending_read.is_some() || cold.tracker.longest_unsure_read().is_some();
        let mtu_of_peer = if is_read || waits {
            self.path_mtu_of_peer(at)
        } else {
            PathMtu::default()
        };
        let (hot, cold) = (&mut self.table.hot[at], &mut self.table.cold[at]);
        note_losses(hot, cold, generation);
        hot.messages.bound_path_mtu(mtu_of_peer.least);
        let psn = packet.roce.bth.psn();
        let mut read_before = 0;
        if let Some(read) = cold.pending_read.take() {
            read_before = read.length;
            hot.messages.learn_from_read(read, psn);
            if let Some(span) = hot.messages.read_span(read.length, mtu_of_peer) {
                cold.tracker.read_takes(&mut hot.requests, read.psn, span);
            }
        }
        if waits {
            self.learn_spans(at, mtu_of_peer, packet);
        }
        let mut span = Some(1);
        if is_read {
            let (hot, cold) = (&self.table.hot[at], &mut self.table.cold[at]);
            let length = packet.roce.dma_length;
            let is_known = packet.roce.seen.has(ExtendedHeaders::RETH);
            span = is_known
                .then(|| hot.messages.read_span(length, mtu_of_peer))
                .flatten();
            cold.pending_read = (is_known && span.is_none()).then_some(PendingRead { psn, length });
        }
        RequestSpan { span, read_before }
    }

    /// The path MTU of the flow at `at` as its peer knows it: both directions of a connection have one, and of READs the responses show it.
    fn path_mtu_of_peer(&self, at: FlowSlot) -> PathMtu {
        let peer = self.table.hot[at].peer;
        if peer == FlowSlot::NONE {
            return PathMtu::default();
        }
        PathMtu {
            known: self.table.hot[peer].messages.path_mtu(),
            least: self.table.cold[peer].responses.longest_only(),
        }
    }

    /// READs that waited for the path MTU take as many PSNs as it says: requests are missing where they are further apart.
    fn learn_spans(&mut self, at: FlowSlot, mtu_of_peer: PathMtu, packet: &Packet) {
        let max_holes = self.table.max_holes();
        let (hot, cold) = (&mut self.table.hot[at], &mut self.table.cold[at]);
        let span_of = |length| hot.messages.read_span(length, mtu_of_peer);
        if cold.tracker.longest_unsure_read().and_then(span_of).is_none() {
            return;
        }
        for (first, missing) in cold.tracker.learn_spans(max_holes, span_of) {
            let counts = hot.counts.rare_mut();
            counts.missing += u64::from(missing);
            counts.lost.note(packet.time);
            self.bins.events.push(EventRow {
                time: packet.time,
                kind: EventKind::Gap,
                tap: packet.tap,
                flow_id: Some(cold.id),
                psn: Some(first.value()),
                value: Some(u64::from(missing)),
                ..EventRow::default()
            });
        }
    }

    /// A request, and all that it is judged by.
    pub(super) fn request(
        &self,
        at: FlowSlot,
        bin: u64,
        (RequestSpan { span, read_before }, place): (RequestSpan, RequestPlace),
        seen: CopyCheck,
        packet: &Packet,
    ) -> Request {
        let hot = &self.table.hot[at];
        let silence = if hot.requests.next == 0 {
            Span(0)
        } else {
            packet.time.since(hot.last_request)
        };
        Request {
            packet: RequestPacket {
                span,
                bin,
                ..self.request_packet(at, silence, place, seen, packet)
            },
            flow: FlowHistory {
                silence,
                read_before,
                max_holes: self.table.max_holes(),
                ..flow_history(hot, &self.table.cold[at], place, packet)
            },
            pair: self.pair_history(at, place, packet),
            ..Request::default()
        }
    }

    /// The contents of the packet, which comes after `silence`.
    fn request_packet(
        &self,
        at: FlowSlot,
        silence: Span,
        RequestPlace { is_behind, .. }: RequestPlace,
        seen: CopyCheck,
        packet: &Packet,
    ) -> RequestPacket {
        let (hot, cold) = (&self.table.hot[at], &self.table.cold[at]);
        let operation = packet.roce.bth.opcode().operation();
        let is_read = operation == Operation::ReadRequest;
        let ids_vary = is_behind && hot.evidence.ids_vary(packet.roce.ip_id);
        RequestPacket {
            psn: packet.roce.bth.psn(),
            time: packet.time,
            payload_bytes: packet.roce.payload_bytes,
            ack_requested: packet.roce.bth.ack_request(),
            is_read,
            is_fetch: is_read || operation == Operation::Atomic,
            read_length: if is_read && packet.roce.seen.has(ExtendedHeaders::RETH) {
                packet.roce.dma_length
            } else {
                0
            },
            ids: hot.evidence.ids(packet.roce.ip_id, seen.newest_id),
            has_new_id: ids_vary
                && !seen.sighting.is_repeated()
                && self.recent.remembers(seen.fingerprint, packet),
            has_old_id: ids_vary && seen.sighting.is_repeated(),
            has_other_port: is_behind && {
                let messages = cold.totals.messages() + u64::from(hot.counts.messages);
                has_other_port(silence, messages, cold.only_port(), packet)
            },
            ..RequestPacket::default()
        }
    }

    /// The history of other flows between the hosts of the flow at `at`.
    fn pair_history(
        &self,
        at: FlowSlot,
        RequestPlace {
            is_behind, is_open, ..
        }: RequestPlace,
        packet: &Packet,
    ) -> PairHistory {
        let (hot, cold) = (&self.table.hot[at], &self.table.cold[at]);
        let (tap, key, psn) = (hot.tap, &cold.key, packet.roce.bth.psn());
        let naks = &self.recent_naks;
        let mut history = PairHistory {
            others_late: is_open && naks.is_reordered(tap, key),
            ..PairHistory::default()
        };
        if !cold.tracker.is_paired() {
            let nak_match = naks.matching(tap, key, psn, packet.time);
            history.is_naked = nak_match != NakMatch::None;
            history.is_naked_exactly = nak_match == NakMatch::Exact;
            history.refused = naks.is_refused(tap, key, packet.time);
        }
        if is_behind {
            let reach = u32::try_from(REACH).unwrap_or(u32::MAX);
            history.others_are_answered = naks.is_answered(tap, key);
            history.nak_before = naks.latest_for(tap, key, psn, packet.time, reach);
            (history.others_answer, history.others_answers) = naks.longest_answer(tap, key);
        }
        history
    }
}

/// The history of the flow before a request at `place`.
fn flow_history(hot: &Hot, cold: &Cold, place: RequestPlace, packet: &Packet) -> FlowHistory {
    let is_read = packet.roce.bth.opcode().operation() == Operation::ReadRequest;
    let times = cold.times.as_deref();
    let waiting_since = times.map_or(Time(0), Times::waiting_since);
    FlowHistory {
        again: match (&cold.reads, place.position) {
            (Some(reads), Some(position)) if is_read => reads.again(position),
            _ => Again::Nothing,
        },
        waiting_since,
        oldest_sent: waiting_since,
        implied_since: cold.implied_since(place.position.filter(|_| is_read && place.is_behind)),
        rtt: times.map_or(Span(0), Times::shortest),
        usual_rtt: times.map_or(Span(0), Times::usual),
        is_slowed: cold
            .congestion
            .as_ref()
            .is_some_and(|congestion| congestion.was_congested(packet.time, SLOWED)),
        in_message: hot.messages.is_open(),
        ..FlowHistory::default()
    }
}

/// Tells a flow of the losses of its tap: a gap in its requests or responses would be the capture's own.
pub(super) fn note_losses(hot: &mut Hot, cold: &mut Cold, generation: u32) {
    if core::mem::replace(&mut hot.losses, generation) != generation {
        cold.tracker.capture_lost(&mut hot.requests);
        cold.responses.resynchronise();
        cold.pending_read = None;
    }
}
