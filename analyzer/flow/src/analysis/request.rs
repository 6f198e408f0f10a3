//! Judgement of a request by its PSN, and the consequences of an unusual one: runs, decisions, epochs.

use roce_model::{EventKind, EventRow, Nanos, Packet};
use roce_verdict::PacketTimes;
use roce_wire::{ExtendedHeaders, Operation, Psn};

use crate::analysis::{Analysis, CopyCheck};
use crate::counts::{Counts, Rare};
use crate::key::FlowSlot;
use crate::psn::acks::REACH;
use crate::psn::holes::{DecidedHole, LossClass};
use crate::psn::jump::{Jump, Refusal, has_other_port};
use crate::psn::recent_naks::NakMatch;
use crate::psn::request::{Again, NewConnection, Request, Verdict, psn_of};
use crate::psn::tracker::Tracker;
use crate::psn::undecided::{BehindVerdict, Decision};
use crate::table::state::{Cold, Hot};
use crate::timing::latency::Times;
use crate::timing::messages::{PathMtu, PendingRead};

/// Time after a notification in which a sender may still send less than one packet in a millisecond. The least
/// rate of DCQCN, 40 Mbit/s in the paper's simulator, is one 4 KiB packet in 0.8 ms, and it rises by as much
/// each 55 us at the earliest.
const SLOWED: Nanos = Nanos(20_000_000);

impl Analysis {
    /// Judges the PSN of a request; anything else is in order.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a few instructions for nearly every packet: the call would cost more"
    )]
    pub(super) fn judge(&mut self, at: FlowSlot, bin: u64, seen: CopyCheck, packet: &Packet) -> Verdict {
        let traits = packet.roce.bth.opcode().traits();
        if !traits.is_sequenced() {
            return Verdict::InOrder;
        }
        let hot = &mut self.table.hot[at];
        let generation = self.taps.losses(packet.tap);
        if traits.takes_one_psn()
            && hot.losses == generation
            && hot.requests.advance(packet.roce.bth.psn(), 1)
        {
            let silence = packet.time.since(hot.last_request);
            hot.last_request = hot.last_request.max(packet.time);
            if hot.quiet.is_reached(silence) {
                let open = hot.messages.is_open() && !packet.roce.bth.opcode().is_first();
                self.request_after_silence(at, silence, packet, Verdict::InOrder, open);
            }
            return Verdict::InOrder;
        }
        self.judge_unusual(at, bin, seen, packet, generation)
    }

    #[inline(never)]
    #[expect(clippy::too_many_lines, reason = "gathers what one request is judged by")]
    fn judge_unusual(
        &mut self,
        at: FlowSlot,
        bin: u64,
        seen: CopyCheck,
        packet: &Packet,
        generation: u32,
    ) -> Verdict {
        let is_read = packet.roce.bth.opcode().operation() == Operation::ReadRequest;
        let is_fetch = is_read || packet.roce.bth.opcode().operation() == Operation::Atomic;
        let cold = &self.table.cold[at];
        let waits = cold.pending_read.is_some() || cold.tracker.longest_unsure_read().is_some();
        // Both directions of a connection have one path MTU; of READs the responses show it.
        let peer = Some(self.table.hot[at].peer).filter(|peer| (is_read || waits) && *peer != FlowSlot::NONE);
        let mtu_of_peer = peer.map_or_else(PathMtu::default, |peer| PathMtu {
            known: self.table.hot[peer].messages.path_mtu(),
            least: self.table.cold[peer].responses.longest_only(),
        });
        let max_holes = self.table.max_holes();
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        let psn = packet.roce.bth.psn();
        note_losses(hot, cold, generation);
        let mut read_before = 0;
        hot.messages.bound_path_mtu(mtu_of_peer.least);
        if let Some(read) = cold.pending_read.take() {
            read_before = read.length;
            hot.messages.learn_from_read(read, psn);
            if let Some(span) = hot.messages.read_span(read.length, mtu_of_peer) {
                cold.tracker.read_takes(&mut hot.requests, read.psn, span);
            }
        }
        let span_of = |length| hot.messages.read_span(length, mtu_of_peer);
        if cold.tracker.longest_unsure_read().and_then(span_of).is_some() {
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
        let mut span = Some(1);
        if is_read {
            let length = packet.roce.dma_length;
            let is_known = packet.roce.seen.has(ExtendedHeaders::RETH);
            span = is_known
                .then(|| hot.messages.read_span(length, mtu_of_peer))
                .flatten();
            cold.pending_read = (is_known && span.is_none()).then_some(PendingRead { psn, length });
        }
        let nak_match = if cold.tracker.is_paired() {
            NakMatch::None
        } else {
            self.recent_naks.matching(hot.tap, &cold.key, psn, packet.time)
        };
        let position = Tracker::position(&hot.requests, psn);
        let times = cold.times.as_deref();
        let silence = if hot.requests.next == 0 {
            Nanos(0)
        } else {
            packet.time.since(hot.last_request)
        };
        let is_behind = position.is_some_and(|position| position < hot.requests.next);
        let is_open = is_behind || cold.tracker.is_undecided();
        let (others_answer, others_answers) = if is_behind {
            self.recent_naks.longest_answer(hot.tap, &cold.key)
        } else {
            (Nanos(0), 0)
        };
        let request = Request {
            psn,
            span,
            time: packet.time,
            silence,
            bin,
            payload_bytes: packet.roce.payload_bytes,
            ack_requested: packet.roce.bth.ack_request(),
            is_naked: nak_match != NakMatch::None,
            refused: !cold.tracker.is_paired()
                && self.recent_naks.is_refused(hot.tap, &cold.key, packet.time),
            is_naked_exactly: nak_match == NakMatch::Exact,
            others_are_answered: is_behind && self.recent_naks.is_answered(hot.tap, &cold.key),
            is_read,
            read_before,
            read_length: if is_read && packet.roce.seen.has(ExtendedHeaders::RETH) {
                packet.roce.dma_length
            } else {
                0
            },
            again: match (&cold.reads, position) {
                (Some(reads), Some(position)) if is_read => reads.again(position),
                _ => Again::Nothing,
            },
            waiting_since: times.map_or(Nanos(0), Times::waiting_since),
            oldest_sent: times.map_or(Nanos(0), Times::waiting_since),
            implied_since: cold.implied_since(position.filter(|_| is_read && is_behind)),
            nak_before: if is_behind {
                let reach = u32::try_from(REACH).unwrap_or(u32::MAX);
                let naks = &self.recent_naks;
                naks.latest_for(hot.tap, &cold.key, psn, packet.time, reach)
            } else {
                None
            },
            is_fetch,
            rtt: times.map_or(Nanos(0), Times::shortest),
            usual_rtt: times.map_or(Nanos(0), Times::usual),
            others_answer,
            others_answers,
            is_slowed: cold
                .congestion
                .as_ref()
                .is_some_and(|congestion| congestion.was_congested(packet.time, SLOWED)),
            ids: hot.evidence.ids(packet.roce.ip_id),
            in_message: hot.messages.is_open(),
            has_new_id: is_behind
                && !seen.sighting.is_repeated()
                && hot.evidence.ids_vary(packet.roce.ip_id)
                && self.recent.remembers(seen.fingerprint, packet),
            has_old_id: is_behind && seen.sighting.is_repeated() && hot.evidence.ids_vary(packet.roce.ip_id),
            has_other_port: is_behind && {
                let messages = cold.totals.messages() + u64::from(hot.counts.messages);
                has_other_port(silence, messages, cold.only_port(), packet)
            },
            others_late: is_open && self.recent_naks.is_reordered(hot.tap, &cold.key),
            max_holes,
        };
        let open = hot.messages.is_open() && !packet.roce.bth.opcode().is_first();
        hot.last_request = hot.last_request.max(packet.time);
        let jump = look_at_jump(hot, cold, &request, packet);
        if let Some(at) = position.filter(|_| is_behind) {
            let unpaired =
                (!cold.tracker.is_paired()).then(|| self.recent_naks.fatal(hot.tap, &cold.key, psn));
            // Its sender stopped there, too, if the NAK was for this flow.
            let is_last = |time: &Nanos| packet.time.since(*time) <= silence;
            let named = unpaired
                .flatten()
                .filter(is_last)
                .map(|time| Refusal { at, time });
            look_at_refusal(hot, cold, &request, (at, named), packet);
        }
        let reliable = cold.key.service.is_reliable();
        let started = hot.requests.next != 0;
        let undecided = cold.tracker.is_undecided();
        let mut verdict = if reliable {
            cold.tracker.observe(&mut hot.requests, &request)
        } else {
            cold.tracker.observe_unreliable(&mut hot.requests, &request)
        };
        if !started {
            cold.first_psn = Some(psn);
        }
        cold.completed.jumped(jump, verdict);
        if matches!(verdict, Verdict::Late { .. }) {
            self.recent_naks.note_late(hot.tap, &cold.key);
        }
        if is_open {
            let (took, answers) = cold.tracker.take_new_answers();
            self.recent_naks.note_answer(hot.tap, &cold.key, took, answers);
        }
        if !undecided && cold.tracker.is_undecided() {
            self.bins.undecided_at(bin, at);
        }
        if matches!(
            verdict,
            Verdict::Retransmission { .. } | Verdict::Undecided { .. }
        ) && let (Some(times), Some(position)) = (&mut cold.times, position)
        {
            times.sent_again(position, hot.requests.next);
        }
        self.settle(at);
        match verdict {
            Verdict::Retransmission { .. } if is_read => self.read_sent_again(at, &request, packet),
            Verdict::Undecided {
                captured_before: true,
            }
            | Verdict::Late {
                captured_before: true,
            }
            | Verdict::Duplicate
                if is_read =>
            {
                self.read_came_again(at, &request);
            }
            _ => {}
        }
        // A packet of another connection ends no silence.
        let goes_on = !matches!(verdict, Verdict::Stale | Verdict::NewEpoch(_));
        if goes_on && self.table.hot[at].quiet.is_reached(request.silence) {
            self.request_after_silence(at, request.silence, packet, verdict, open);
        }
        if let Verdict::NewEpoch(reason) = verdict {
            self.new_epoch(at, packet, reason);
            verdict = self.observe_first(at, &request, packet);
        }
        verdict
    }

    /// The first request of an epoch.
    fn observe_first(&mut self, at: FlowSlot, request: &Request, packet: &Packet) -> Verdict {
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        hot.evidence.restart(packet.roce.ip_id);
        cold.first_psn = Some(request.psn);
        cold.tracker.observe(&mut hot.requests, request)
    }

    /// Reports the runs that ended and applies the decisions that were taken.
    #[inline]
    pub(super) fn settle(&mut self, at: FlowSlot) {
        if self.table.cold[at].tracker.has_news() {
            self.settle_news(at, false);
        }
    }

    /// As `settle`, where there is news; at the `end` nothing waits for later runs.
    pub(super) fn settle_news(&mut self, at: FlowSlot, end: bool) {
        while let Some(run) = self.table.cold[at].tracker.take_ended() {
            self.run_ended(at, &run);
        }
        if end {
            self.decide_runs(at);
        }
        let (tap, flow_id) = (self.table.hot[at].tap, self.table.cold[at].id);
        self.report_holes(at, false);
        for psn in self.table.cold[at].tracker.take_revoked() {
            self.take_back_hole(at, psn);
        }
        let only_reads = self.table.hot[at].sent_bytes == 0;
        if let Some((first, end)) = self.table.cold[at].tracker.take_lost_again(only_reads) {
            self.bins.events.push(EventRow {
                time: self.table.hot[at].last_request,
                kind: EventKind::LostAgain,
                tap,
                flow_id: Some(flow_id),
                psn: Some(psn_of(first).value()),
                value: Some(end - first),
                ..EventRow::default()
            });
        }
        while let Some(decision) = self.table.cold[at].tracker.take_decision() {
            self.apply_decision(at, &decision);
        }
    }

    /// Counts packets behind the highest one, of which it was decided what they were.
    fn apply_decision(&mut self, at: FlowSlot, decision: &Decision) {
        let cold = &mut self.table.cold[at];
        let sum: u64 = decision
            .parts
            .iter()
            .map(|(_, packets, _)| u64::from(*packets))
            .sum();
        match decision.judged {
            BehindVerdict::Duplicate => cold.trouble.get_or_insert_default().duplicates_network += sum,
            BehindVerdict::Unknown => cold.trouble.get_or_insert_default().unknown_packets += sum,
            BehindVerdict::Late => {
                let tap = self.table.hot[at].tap;
                self.recent_naks.note_late(tap, &cold.key);
                self.bins.events.push(EventRow {
                    time: decision.time,
                    kind: EventKind::Late,
                    tap,
                    flow_id: Some(cold.id),
                    psn: Some(decision.psn.value()),
                    value: Some(sum),
                    ..EventRow::default()
                });
            }
            BehindVerdict::Retransmitted if decision.captured_before => {
                let bytes: u64 = decision.parts.iter().map(|(.., bytes)| bytes).sum();
                let position = Tracker::position(&self.table.hot[at].requests, decision.psn);
                let is_acknowledged = cold.tracker.has_acknowledged(position);
                let trouble = cold.trouble.get_or_insert_default();
                trouble.wasted_bytes += bytes;
                trouble.acknowledged_again += bytes * u64::from(is_acknowledged);
                if let Some(measures) = &mut self.measures {
                    measures.at(self.table.hot[at].tap).wasted_bytes += bytes;
                }
                let peer = self.table.hot[at].peer;
                let may_be_lost = cold
                    .reads
                    .as_ref()
                    .is_none_or(|reads| position.is_none_or(|position| reads.may_have_had(position)));
                // Where packets overtake each other, the requester may have dropped a response that came before another one.
                let is_whole =
                    decision.again == Again::Whole && !decision.by_nak && !cold.tracker.may_be_reordered();
                if is_whole && may_be_lost && peer != FlowSlot::NONE {
                    self.lost_downstream(peer, decision.psn, decision.time);
                }
            }
            BehindVerdict::Retransmitted => {}
        }
        let mut lost = PacketTimes::default();
        lost.note(decision.time);
        for (bin, packets, bytes) in decision.parts.iter().copied() {
            let counts = Counts::from(match decision.judged {
                BehindVerdict::Retransmitted => Rare {
                    retransmitted_packets: packets,
                    retransmitted_bytes: bytes,
                    // The first of them; where more lie in later bins, the data of those says when.
                    lost: core::mem::take(&mut lost),
                    ..Rare::default()
                },
                BehindVerdict::Late => Rare {
                    late: packets,
                    ..Rare::default()
                },
                BehindVerdict::Duplicate | BehindVerdict::Unknown => return,
            });
            let hot = &mut self.table.hot[at];
            if bin == self.bins.current() && hot.active {
                hot.counts.add(&counts);
            } else {
                self.add_earlier(at, bin, &counts);
            }
        }
    }

    /// Reports what became of missing PSNs. At the `end` nothing waits for the other direction.
    pub(super) fn report_holes(&mut self, at: FlowSlot, end: bool) {
        let hot = &self.table.hot[at];
        let only_reads = hot.sent_bytes == 0;
        let now = if end {
            hot.last_time.max(self.ended)
        } else {
            hot.last_time
        };
        let cold = &mut self.table.cold[at];
        for DecidedHole {
            first,
            end,
            time,
            class,
        } in cold.tracker.take_holes(end, only_reads, now)
        {
            self.bins.events.push(EventRow {
                time,
                kind: EventKind::Hole,
                tap: self.table.hot[at].tap,
                flow_id: Some(cold.id),
                psn: Some(psn_of(first).value()),
                value: Some(end - first),
                detail: Some(class.name().into()),
                ..EventRow::default()
            });
        }
    }

    /// A packet that was reported as lost came late after all: the report is taken back while its row is open.
    fn take_back_hole(&mut self, at: FlowSlot, psn: Psn) {
        let tap = self.table.hot[at].tap;
        let cold = &mut self.table.cold[at];
        let psn = u64::from(psn.value());
        let is_it = |event: &EventRow| {
            let first = event.psn.map_or(u64::MAX, u64::from);
            event.kind == EventKind::Hole
                && (event.tap, event.flow_id) == (tap, Some(cold.id))
                && (first..first.saturating_add(event.value.unwrap_or(0))).contains(&psn)
        };
        let Some(event) = self.bins.recent_events().find(|event| is_it(event)) else {
            return;
        };
        let reported = [LossClass::NetworkLost, LossClass::Ambiguous];
        let Some(reported) = reported
            .into_iter()
            .find(|class| event.detail.as_deref() == Some(class.name()))
        else {
            return;
        };
        let late = EventRow {
            psn: Some(psn_of(psn).value()),
            value: Some(1),
            detail: Some(LossClass::Reordered.name().into()),
            ..event.clone()
        };
        let whole = core::mem::replace(event, late);
        let first = whole.psn.map_or(0, u64::from);
        let before = psn - first;
        let after = whole.value.unwrap_or(0) - before - 1;
        let rest = [(first, before), (psn + 1, after)];
        for (first, count) in rest.into_iter().filter(|(_, count)| *count > 0) {
            self.bins.events.push(EventRow {
                psn: Some(psn_of(first).value()),
                value: Some(count),
                ..whole.clone()
            });
        }
        cold.tracker.take_back(reported);
    }

    /// Ends the epoch of a flow: what was counted goes under the old one.
    pub(super) fn new_epoch(&mut self, at: FlowSlot, packet: &Packet, reason: &'static str) {
        self.close_flow(at, false);
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        cold.tracker.restart(&mut hot.requests);
        cold.next_epoch(packet.time);
        hot.next_epoch(packet.time);
        if let Some(matcher) = &mut self.taps.matcher {
            matcher.renew(at, packet.time);
        }
        self.keep_peer(at);
        let hot = &self.table.hot[at];
        let cold = &self.table.cold[at];
        self.bins.events.push(EventRow {
            time: packet.time,
            kind: EventKind::Epoch,
            tap: hot.tap,
            flow_id: Some(cold.id),
            psn: Some(packet.roce.bth.psn().value()),
            value: Some(u64::from(cold.epoch)),
            detail: Some(reason.into()),
            ..EventRow::default()
        });
    }
}

/// A request that jumps ahead: where it shows that a new connection begins, the tracker begins an epoch; else the next answer may show it.
fn look_at_jump(hot: &mut Hot, cold: &mut Cold, request: &Request, packet: &Packet) -> Option<Jump> {
    let messages = cold.totals.messages() + u64::from(hot.counts.messages);
    let jump = Jump::from_request(&hot.requests, request, messages, packet)?;
    if let Some(reason) = jump.begins_anew(request, cold.only_port(), packet) {
        let connected = NewConnection { reason, first: None };
        cold.tracker.connect(&mut hot.requests, connected);
    }
    Some(jump)
}

/// A request behind the highest PSN, at `position`: where a fatal NAK had ended the one there, it begins another connection. `named`: a
/// NAK between its hosts that names it, where the other direction is not known.
fn look_at_refusal(
    hot: &mut Hot,
    cold: &mut Cold,
    request: &Request,
    (position, named): (u64, Option<Refusal>),
    packet: &Packet,
) {
    let refusal = cold
        .trouble
        .as_ref()
        .and_then(|trouble| trouble.refusal)
        .or(named);
    if refusal.is_some_and(|refusal| refusal.is_over(request, position, packet)) {
        let connected = NewConnection {
            reason: "a fatal NAK ended the request before",
            first: None,
        };
        cold.tracker.connect(&mut hot.requests, connected);
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
