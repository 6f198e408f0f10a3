//! Judgement of a request by its PSN, and the consequences of an unusual one: runs, decisions, epochs.

use roce_model::{EventKind, EventRow, Packet, RemoteWrite, Span, Time};
use roce_verdict::PacketTimes;
use roce_wire::Psn;

use crate::analysis::request_history::RequestPlace;
use crate::analysis::time_states::BeforeRequest;
use crate::analysis::{Analysis, CopyCheck};
use crate::counts::{Counts, Rare};
use crate::division::{IdPlace, TurnsHandle};
use crate::key::FlowSlot;
use crate::psn::holes::{DecidedHole, LossClass};
use crate::psn::jump::{Jump, Refusal};
use crate::psn::request::{Again, NewConnection, Request, Verdict, psn_of};
use crate::psn::tracker::Tracker;
use crate::psn::undecided::{BehindVerdict, Decision};
use crate::table::state::{Cold, Hot};
use crate::timing::stall::MIN_STALL;
use crate::transport::Transport as _;

impl Analysis {
    /// Judges the PSN of a request; anything else is in order.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a few instructions for nearly every packet: the call would cost more"
    )]
    pub(super) fn judge(
        &mut self,
        at: FlowSlot,
        bin: u64,
        seen: CopyCheck,
        (packet, write): (&Packet, Option<&RemoteWrite>),
    ) -> Verdict {
        let traits = packet.roce.bth.opcode().traits();
        if !traits.is_sequenced() {
            if !traits.is_response() {
                self.divide_datagram(at, packet);
            }
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
            if hot.turns != TurnsHandle::ALONE {
                self.limits
                    .turns
                    .request(hot.turns, at, packet.time, packet.wire_bytes);
            }
            if hot.burst_gap.is_passed(silence) {
                self.end_burst(at, silence, seen.newest_id, packet);
            }
            return Verdict::InOrder;
        }
        self.judge_unusual(at, bin, seen, (packet, write), generation)
    }

    /// A request in order comes after a silence that no burst has.
    #[inline(never)]
    fn end_burst(&mut self, at: FlowSlot, silence: Span, newest_id: u16, packet: &Packet) {
        self.look_for_unseen(at, silence, newest_id, packet);
        let hot = &self.table.hot[at];
        let in_message = hot.messages.is_open() && !packet.roce.bth.opcode().is_first();
        let before = BeforeRequest {
            since: packet.time - silence,
            next: hot.requests.next - 1,
            in_message,
            has_lost: false,
        };
        if hot.quiet.is_reached(silence) {
            self.request_after_silence(at, silence, packet, Verdict::InOrder, in_message);
        }
        self.divide_request(at, before, Verdict::InOrder, packet);
    }

    /// Packets that the sender of the flow at `at` sent in a silence, and that never came by; `newest_id`: the identification before.
    fn look_for_unseen(&mut self, at: FlowSlot, silence: Span, newest_id: u16, packet: &Packet) {
        let packets = self.packets_of(at);
        let (hot, cold) = (&self.table.hot[at], &mut self.table.cold[at]);
        let Some(division) = &mut cold.division else {
            return;
        };
        let skipped = division.ids().end_burst(IdPlace {
            before: newest_id,
            behind: packet.roce.ip_id,
            packets,
        });
        if skipped > 0 && silence >= MIN_STALL {
            self.bins.events.push(EventRow {
                time: packet.time - silence,
                kind: EventKind::Unseen,
                tap: hot.tap,
                flow_id: Some(cold.id),
                psn: Some(packet.roce.bth.psn().value()),
                value: Some(skipped.into()),
                detail: Some(silence.to_string().into()),
                ..EventRow::default()
            });
        }
    }

    #[inline(never)]
    fn judge_unusual(
        &mut self,
        at: FlowSlot,
        bin: u64,
        seen: CopyCheck,
        (packet, write): (&Packet, Option<&RemoteWrite>),
        generation: u32,
    ) -> Verdict {
        let hot = &self.table.hot[at];
        let before = BeforeRequest {
            since: hot.last_request,
            next: hot.requests.next,
            in_message: hot.messages.is_open() && !packet.roce.bth.opcode().is_first(),
            has_lost: hot.losses != generation,
        };
        self.limits
            .turns
            .request(hot.turns, at, packet.time, packet.wire_bytes);
        let span = self.span_of_request(at, packet, generation);
        let (hot, cold) = (&mut self.table.hot[at], &self.table.cold[at]);
        let place = RequestPlace::find(hot, cold, packet.roce.bth.psn());
        let open = hot.messages.is_open() && !packet.roce.bth.opcode().is_first();
        let request = Request {
            target: write.and_then(|write| write.target),
            ..self.request(at, bin, (span, place), seen, packet)
        };
        let hot = &mut self.table.hot[at];
        hot.last_request = hot.last_request.max(packet.time);
        let verdict = self.observe_request(at, &request, place, packet);
        self.settle(at);
        self.repeat_read(at, &request, verdict, packet);
        // A packet of another connection ends no silence.
        let goes_on = !matches!(verdict, Verdict::Stale | Verdict::NewEpoch(_));
        let silence = request.flow.silence;
        if goes_on && self.table.hot[at].quiet.is_reached(silence) {
            self.request_after_silence(at, silence, packet, verdict, open);
        }
        if let Verdict::NewEpoch(reason) = verdict {
            self.new_epoch(at, packet, reason);
            let verdict = self.observe_first(at, &request, packet);
            let since = Time(0);
            self.divide_request(at, BeforeRequest { since, ..before }, verdict, packet);
            return verdict;
        }
        self.divide_request(at, before, verdict, packet);
        verdict
    }

    /// The tracker judges a request at `place`, and what it has shown is noted for others.
    fn observe_request(
        &mut self,
        at: FlowSlot,
        request: &Request,
        place: RequestPlace,
        packet: &Packet,
    ) -> Verdict {
        let (hot, cold) = (&mut self.table.hot[at], &mut self.table.cold[at]);
        let jump = look_at_jump(hot, cold, request, packet);
        if let Some(position) = place.position.filter(|_| place.is_behind) {
            self.look_at_refusal(at, request, position, packet);
        }
        let (hot, cold) = (&mut self.table.hot[at], &mut self.table.cold[at]);
        let started = hot.requests.next != 0;
        let undecided = cold.tracker.is_undecided();
        let verdict = if cold.key.service.is_reliable() {
            cold.tracker.observe(&mut hot.requests, request)
        } else {
            cold.tracker.observe_unreliable(&mut hot.requests, request)
        };
        if !started {
            cold.first_psn = Some(request.packet.psn);
        }
        cold.completed.jumped(jump, verdict);
        if matches!(verdict, Verdict::Late { .. }) {
            self.recent_naks.note_late(hot.tap, &cold.key);
        }
        if place.is_open {
            let (took, answers) = cold.tracker.take_new_answers();
            self.recent_naks.note_answer(hot.tap, &cold.key, took, answers);
        }
        if !undecided && cold.tracker.is_undecided() {
            self.bins.undecided_at(request.packet.bin, at);
        }
        if matches!(
            verdict,
            Verdict::Retransmission { .. } | Verdict::Undecided { .. }
        ) && let (Some(times), Some(position)) = (&mut cold.times, place.position)
        {
            times.sent_again(position, hot.requests.next);
        }
        verdict
    }

    /// A request that was judged: if it is a READ that came once more, its responses do, too.
    fn repeat_read(&mut self, at: FlowSlot, request: &Request, verdict: Verdict, packet: &Packet) {
        match verdict {
            _ if !request.packet.is_read => {}
            Verdict::Retransmission { .. } => self.read_retransmitted(at, request, packet),
            Verdict::Undecided {
                captured_before: true,
            }
            | Verdict::Late {
                captured_before: true,
            }
            | Verdict::Duplicate => self.read_came_again(at, request),
            _ => {}
        }
    }

    /// A request behind the highest PSN, at `position`: where a fatal NAK had ended the one there, it begins another connection. Where the
    /// other direction is not known, a NAK between its hosts that names it may have.
    fn look_at_refusal(&mut self, at: FlowSlot, request: &Request, position: u64, packet: &Packet) {
        let (hot, cold) = (&mut self.table.hot[at], &mut self.table.cold[at]);
        let own = cold.trouble.as_ref().and_then(|trouble| trouble.refusal);
        let named = || {
            let naks = Some(&self.recent_naks).filter(|_| !cold.tracker.is_paired())?;
            let time = naks.fatal(hot.tap, &cold.key, request.packet.psn)?;
            // Its sender stopped there, too, if the NAK was for this flow.
            let is_last = packet.time.since(time) <= request.flow.silence;
            is_last.then_some(Refusal { at: position, time })
        };
        let refusal = own.or_else(named);
        if refusal.is_some_and(|refusal| refusal.is_over(request, position, packet)) {
            let connected = NewConnection {
                reason: "a fatal NAK ended the request before",
                first: None,
            };
            cold.tracker.connect(&mut hot.requests, connected);
        }
    }

    /// The first request of an epoch.
    fn observe_first(&mut self, at: FlowSlot, request: &Request, packet: &Packet) -> Verdict {
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        hot.evidence.restart(packet.roce.ip_id);
        cold.first_psn = Some(request.packet.psn);
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
        while let Some(run) = self.table.cold[at].tracker.take_run() {
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
            BehindVerdict::Retransmitted if decision.captured_before => self.captured_again(at, decision),
            BehindVerdict::Retransmitted => {}
        }
        self.count_decided(at, decision);
    }

    /// Packets that had been captured before were retransmitted.
    fn captured_again(&mut self, at: FlowSlot, decision: &Decision) {
        let cold = &mut self.table.cold[at];
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
        let is_whole = decision.again == Again::Whole && !decision.by_nak && !cold.tracker.may_be_reordered();
        if is_whole && may_be_lost && peer != FlowSlot::NONE {
            self.lost_downstream(peer, decision.psn, decision.time);
        }
    }

    /// Adds packets of which it was decided what they were to the bins that they came in.
    fn count_decided(&mut self, at: FlowSlot, decision: &Decision) {
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
        } in cold.tracker.take_missing(end, only_reads, now)
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
        self.connections
            .credits
            .begin_epoch(self.table.cold[at].kinds.writes);
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        hot.writes.are_plain = false;
        cold.tracker.restart(&mut hot.requests);
        cold.next_epoch(packet.time);
        hot.next_epoch(packet.time);
        if let Some(matcher) = &mut self.taps.matcher {
            matcher.renew(at, packet.time);
        }
        self.keep_peer(at);
        let peer = self.table.hot[at].peer;
        if peer != FlowSlot::NONE {
            self.table.cold[peer].responses.resynchronise();
        }
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
    if let Some(reason) = jump.begins_epoch(request, cold.only_port(), packet) {
        let connected = NewConnection { reason, first: None };
        cold.tracker.connect(&mut hot.requests, connected);
    }
    Some(jump)
}
