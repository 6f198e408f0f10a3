//! Effects of one direction's answers on the requests of the other, once the two are known to belong together: losses,
//! times, stalls. `count` puts them into rows.

use roce_model::{EventKind, EventRow, Packet, Span, Time};
use roce_wire::{AethKind, ExtendedHeaders, Nak, Operation, Psn, Roce};

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::psn::answer::{AnswerMeaning, RequestAnswer};
use crate::psn::holes::{DecidedHole, LossClass};
use crate::psn::jump::Refusal;
use crate::psn::read_holes::{ResponseEvidence, Silence};
use crate::psn::request::{Again, Request, Verdict, psn_of};
use crate::psn::tracker::Tracker;
use crate::table::state::Cold;
use crate::timing::latency::{Answer, SentRequest, Times, What};
use crate::timing::stall::{MIN_STALL, is_late_answer};
use crate::transport::{AnswerEvidence, Transport as _};

impl Analysis {
    /// An answer of a paired flow: ACK, NAK, RNR NAK, READ response (every packet of it), atomic ACK. Called in the order
    /// of capture, after the packet was counted. The flow at `response_at` carries it; the flow at `requests_at`, its
    /// peer, carries the requests that it answers. Both are live and stay so during the call.
    pub(super) fn on_response(&mut self, requests_at: FlowSlot, response_at: FlowSlot, packet: &Packet) {
        let hot = &self.table.hot[requests_at];
        let requests = hot.requests;
        let roce = &packet.roce;
        let time = packet.time;
        let Some(psn) = Tracker::position(&requests, roce.bth.psn()) else {
            return;
        };
        let before = self.waiting(requests_at);
        let cold = &mut self.table.cold[requests_at];
        let Some((answer, covered)) = answer_of(roce, psn) else {
            return;
        };
        if roce.seen.has(ExtendedHeaders::AETH) {
            let captured = || cold.totals.messages() + u64::from(hot.counts.messages);
            let all = covered == requests.next;
            if cold.completed.note(covered, roce.aeth.msn(), all, captured) {
                // Nothing was lost where the PSNs jumped. The requests since stay with the connection before.
                let reason = "the receiver counts its messages from 0 again";
                return self.new_epoch(requests_at, packet, reason);
            }
        }
        let mut oldest = Time(0);
        if answer != Answer::Nak {
            oldest = cold.times.as_deref().map_or(Time(0), Times::waiting_since);
            cold.tracker.awaited(covered, oldest, time);
        }
        if answer == Answer::Ack && !hot.writes.are_plain {
            self.connections
                .credits
                .acknowledge(cold.kinds.writes, roce.bth.psn(), time);
        }
        let meaning = match answer {
            Answer::Ack => AnswerMeaning::Ack,
            Answer::Nak => meaning_of_nak(cold, roce.aeth.kind(), psn, time),
            _ => AnswerMeaning::Arrived,
        };
        let said = RequestAnswer {
            covered,
            time,
            meaning,
        };
        let answered = cold.tracker.answer(&requests, &said);
        if answered.is_new {
            self.end_of_silence(requests_at, before, time);
            self.divide_answer(requests_at, before, time);
        }
        // A READ that was requested since the last progress has waited for nothing else.
        let first_response =
            oldest >= before.progress && matches!(answer, Answer::ReadBegun | Answer::ReadDone);
        if first_response && roce.bth.opcode().is_first() && oldest.0 != 0 {
            self.divide_round_trip(requests_at, oldest, time);
        }
        self.times_of_answer(requests_at, answer, covered, time);
        self.read_answered(requests_at, response_at, answer, psn, packet);
        self.settle(requests_at);
        self.trouble_behind(requests_at, &answered, time);
    }

    /// Notes losses and packets that were overtaken behind the tap, as an answer shows them.
    fn trouble_behind(&mut self, requests_at: FlowSlot, answered: &AnswerEvidence, time: Time) {
        if answered.was_overtaken {
            let cold = &mut self.table.cold[requests_at];
            cold.trouble.get_or_insert_default().overtaken_downstream += 1;
        }
        if let Some((psn, times)) = answered.lost_downstream {
            for _ in 0..times {
                self.lost_downstream(requests_at, psn, time);
            }
        }
    }

    /// The flows at `one` and `other` turned out, at `time`, to be the two directions of a connection. Called once for
    /// each pairing, before the first [`Analysis::on_response`] of the two.
    pub(super) fn on_paired(&mut self, one: FlowSlot, other: FlowSlot, time: Time) {
        self.pair_sends(one, other);
        for (at, other) in [(one, other), (other, one)] {
            let answers = (self.table.hot[other].tap, self.table.cold[other].id);
            self.connections
                .credits
                .pair(self.table.cold[at].kinds.writes, answers);
        }
        for at in [one, other] {
            self.table.hot[at].trust.was_known = true;
            self.table.cold[at].tracker.pair();
            let tap = self.table.hot[at].tap;
            self.recent_naks.note_answered(tap, &self.table.cold[at].key);
            self.settle(at);
            for psn in self.table.cold[at].tracker.take_early_downstream() {
                self.lost_downstream(at, psn, time);
            }
        }
    }

    fn times_of_answer(&mut self, at: FlowSlot, answer: Answer, covered: u64, time: Time) {
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        let Some(times) = &mut cold.times else { return };
        let measures = self.measures.as_mut().map(|measures| measures.at(hot.tap));
        let is_active = times.answered(answer, covered, time, hot.sent_bytes, measures);
        let sent = times.measured();
        if is_active {
            hot.timed = true;
            self.activate(at);
        }
        if let Some(sent) = sent {
            self.divide_round_trip(at, sent, time);
        }
    }

    /// The flow has something in the current bin, be it no packet.
    pub(super) fn activate(&mut self, at: FlowSlot) {
        let hot = &mut self.table.hot[at];
        if !core::mem::replace(&mut hot.active, true) {
            self.bins.active.push(at);
        }
    }

    /// A packet of the flow was captured, and its receiver asks for it again.
    pub(super) fn lost_downstream(&mut self, at: FlowSlot, psn: Psn, time: Time) {
        self.activate(at);
        let hot = &mut self.table.hot[at];
        let rare = hot.counts.rare_mut();
        rare.lost_downstream += 1;
        rare.lost.note(time);
        self.bins.events.push(EventRow {
            time,
            kind: EventKind::LostDownstream,
            tap: hot.tap,
            flow_id: Some(self.table.cold[at].id),
            psn: Some(psn.value()),
            ..EventRow::default()
        });
    }

    /// Applies an answer to the READs of the flow at `at`, whose responses the flow at `response_at` carries.
    fn read_answered(
        &mut self,
        at: FlowSlot,
        response_at: FlowSlot,
        answer: Answer,
        psn: u64,
        packet: &Packet,
    ) {
        let sent = self.table.hot[at].requests.next;
        let Some(reads) = &mut self.table.cold[at].reads else {
            return;
        };
        let is_first = packet.roce.bth.opcode().is_first();
        let missing = match answer {
            Answer::ReadBegun | Answer::ReadDone => {
                let is_last = answer == Answer::ReadDone;
                match reads.response(psn, is_first, is_last, packet.time, sent) {
                    ResponseEvidence::Missing(missing) => {
                        // This count is exact, so the gap that the response alone showed is dropped.
                        self.read_gap = None;
                        missing
                    }
                    ResponseEvidence::Unknown => Vec::new(),
                }
            }
            Answer::Ack | Answer::Atomic => reads.passed(psn + 1, packet.time, sent),
            Answer::Nak => Vec::new(),
        };
        for (first, end) in missing {
            self.count_read_gap(response_at, psn_of(first), end - first, packet.time);
        }
        self.settle_reads(at, response_at, Some(packet.time));
    }

    /// Counts missing READ responses of the flow at `at`.
    pub(super) fn count_read_gap(&mut self, at: FlowSlot, first: Psn, missing: u64, time: Time) {
        let cold = &mut self.table.cold[at];
        cold.trouble.get_or_insert_default().response_missing += missing;
        self.tally.totals.response_missing += missing;
        self.bins.events.push(EventRow {
            time,
            kind: EventKind::ResponseGap,
            tap: self.table.hot[at].tap,
            flow_id: Some(cold.id),
            psn: Some(first.value()),
            value: Some(missing),
            ..EventRow::default()
        });
    }

    /// Counts and reports, for the flow at `response_at`, what became of missing responses to the flow at `at`.
    /// `now` is `None` at the end.
    fn settle_reads(&mut self, at: FlowSlot, response_at: FlowSlot, now: Option<Time>) {
        let Some(reads) = &mut self.table.cold[at].reads else {
            return;
        };
        let (decided, lost_again) = (reads.take_decided(), reads.take_lost_again(now));
        for lost in &lost_again {
            self.count_read_gap(response_at, psn_of(lost.first), lost.end - lost.first, lost.time);
        }
        for DecidedHole {
            first,
            end,
            time,
            class,
        } in decided.into_iter().chain(lost_again)
        {
            let cold = &mut self.table.cold[response_at];
            cold.trouble.get_or_insert_default().response_fates[class as usize] += end - first;
            if class == LossClass::Reordered {
                self.recent_naks
                    .note_late(self.table.hot[response_at].tap, &cold.key);
            }
            self.bins.events.push(EventRow {
                time,
                kind: EventKind::ResponseHole,
                tap: self.table.hot[response_at].tap,
                flow_id: Some(cold.id),
                psn: Some(psn_of(first).value()),
                value: Some(end - first),
                detail: Some(class.name().into()),
                ..EventRow::default()
            });
        }
    }

    /// The flow at `at` closes: READs that its responses, and the responses to it, have not decided by now stay undecided.
    pub(super) fn close_reads(&mut self, at: FlowSlot) {
        let hot = &self.table.hot[at];
        if !hot.is_paired() {
            return;
        }
        let (tap, peer) = (hot.tap, hot.peer);
        let is_late = |at: FlowSlot| self.recent_naks.is_reordered(tap, &self.table.cold[at].key);
        let others_late = is_late(at) || is_late(peer);
        for (at, response_at) in [(at, peer), (peer, at)] {
            if let Some(reads) = &mut self.table.cold[at].reads {
                reads.close(others_late);
                self.settle_reads(at, response_at, None);
            }
        }
    }

    /// A READ came once more, as `request`, and nobody knows why: its receiver answers it all the same.
    pub(super) fn read_came_again(&mut self, at: FlowSlot, request: &Request) {
        let position = Tracker::position(&self.table.hot[at].requests, request.packet.psn);
        if let (Some(position), Some(reads)) = (position, &mut self.table.cold[at].reads) {
            let end = request
                .packet
                .span
                .map_or(u64::MAX, |span| position + u64::from(span));
            reads.came_again();
            reads.requested_again(position, end, false, request.packet.time);
        }
    }

    /// A READ was retransmitted, as `request`.
    pub(super) fn read_retransmitted(&mut self, at: FlowSlot, request: &Request, packet: &Packet) {
        let (psn, again) = (request.packet.psn, request.flow.again);
        let hot = &self.table.hot[at];
        let Some(position) = Tracker::position(&hot.requests, psn) else {
            return;
        };
        let response_at = hot.peer;
        if !hot.is_paired() {
            return;
        }
        let missing = self.table.cold[response_at].responses.take_missing(psn);
        let is_late = |at: FlowSlot| self.recent_naks.is_reordered(hot.tap, &self.table.cold[at].key);
        let is_shuffled = is_late(at) || is_late(response_at);
        let cold = &mut self.table.cold[at];
        let Some(reads) = &mut cold.reads else { return };
        if let Some(missing) = missing
            && let Some(first) = Tracker::position(&hot.requests, missing.first)
        {
            let end = first + u64::from(missing.count);
            reads.were_missing(first, end, missing.may_have_come, packet.time);
        }
        if is_shuffled {
            reads.are_shuffled();
        }
        let begins = cold.tracker.has_begun_a_run();
        // A receiver that names the request in a NAK has sent no response to it.
        let is_request_lost = cold.tracker.is_run_by_nak();
        let end = request
            .packet
            .span
            .map_or(u64::MAX, |span| position + u64::from(span));
        reads.requested_again(position, end, begins, packet.time);
        let silence = if begins && cold.tracker.is_run_by_timeout() {
            reads.never_came(position, packet.time)
        } else {
            Silence::Nothing
        };
        let was_captured = !is_request_lost && matches!(again, Again::Captured | Again::Whole);
        // Where packets overtake each other, the requester may have dropped a response that came before another one.
        let is_lost = begins && reads.falls_back(position, was_captured) && !cold.tracker.may_be_reordered();
        let overtaken = reads.take_overtaken();
        if overtaken > 0 {
            let cold = &mut self.table.cold[response_at];
            cold.trouble.get_or_insert_default().overtaken_downstream += overtaken;
        }
        self.settle_reads(at, response_at, Some(packet.time));
        match silence {
            Silence::Nothing => {}
            Silence::Unanswered => {
                let cold = &mut self.table.cold[at];
                cold.trouble.get_or_insert_default().reads_unanswered += 1;
            }
            Silence::Tail(first, end) => {
                self.count_read_gap(response_at, psn_of(first), end - first, packet.time);
            }
        }
        if is_lost {
            self.lost_downstream(response_at, psn, packet.time);
        }
    }

    /// A request of the flow was sent for the first time: it is remembered until its answer comes.
    #[inline]
    pub(super) fn note_sent(&mut self, at: FlowSlot, packet: &Packet, verdict: Verdict) {
        if self.table.hot[at].is_paired() {
            self.note_sent_of_paired(at, packet, verdict);
        } else if packet.roce.bth.opcode().operation() == Operation::ReadRequest {
            let requests = &self.table.hot[at].requests;
            if let Some(first) = Tracker::position(requests, packet.roce.bth.psn()) {
                let reads = &mut self.table.cold[at].reads;
                reads.get_or_insert_default().begins_unpaired(first);
            }
        }
    }

    fn note_sent_of_paired(&mut self, at: FlowSlot, packet: &Packet, verdict: Verdict) {
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        let bth = &packet.roce.bth;
        let opcode = bth.opcode();
        let Some(first) = Tracker::position(&hot.requests, bth.psn()) else {
            return;
        };
        let what = match opcode.operation() {
            Operation::ReadRequest => What::Read,
            Operation::Atomic => What::Atomic,
            Operation::Flush | Operation::AtomicWrite => What::Other,
            _ => What::Message,
        };
        let end = hot.requests.next;
        if what == What::Read {
            let known = cold.pending_read.is_none().then_some(end);
            cold.reads.get_or_insert_default().requested(first, known);
        }
        let sent = SentRequest {
            first,
            end,
            time: packet.time,
            what,
            is_first: opcode.is_first(),
            is_last: opcode.is_last(),
            after_gap: verdict != Verdict::InOrder,
            ack_requested: bth.ack_request(),
            bytes: hot.sent_bytes,
        };
        if cold.times.get_or_insert_default().sent(&sent) {
            hot.timed = true;
        }
    }

    /// When the flow at `at` last went on, and whether it awaits answers.
    fn waiting(&self, at: FlowSlot) -> WaitingFlow {
        let hot = &self.table.hot[at];
        let answers = self.table.cold[at].tracker.answers();
        let progress = answers.map_or(Time(0), crate::psn::acks::Answers::progress);
        let acked = answers.map_or(0, crate::psn::acks::Answers::acked);
        WaitingFlow {
            since: hot.last_request.max(progress),
            progress,
            acked,
            awaits: answers.is_some() && acked < hot.requests.next,
        }
    }

    /// An answer after a silence.
    fn end_of_silence(&mut self, at: FlowSlot, before: WaitingFlow, time: Time) {
        let silence = time.since(before.since);
        if silence < MIN_STALL || !before.awaits {
            return;
        }
        // Without an answer before there is nothing to compare the first one with.
        let cold = &self.table.cold[at];
        let shortest = cold.times.as_deref().map_or(Span(0), Times::shortest);
        if is_late_answer(silence, self.packets_of(at), shortest) {
            self.table.cold[at].pace.end(time);
            self.stall(at, before.since, silence, None, "ended by an answer");
        }
    }

    /// Packets of the flow at `at` until now.
    pub(super) fn packets_of(&self, at: FlowSlot) -> u64 {
        self.table.cold[at].totals.packets + u64::from(self.table.hot[at].counts.packets)
    }

    fn is_stall(&self, at: FlowSlot, silence: Span) -> bool {
        let hot = &self.table.hot[at];
        let cold = &self.table.cold[at];
        let age = hot.last_time.since(cold.first_time);
        let answer = cold.times.as_deref().map_or(Span(0), Times::shortest);
        cold.pace.is_stall(silence, self.packets_of(at), age, answer)
    }

    fn stall(&mut self, at: FlowSlot, since: Time, silence: Span, psn: Option<Psn>, how: &'static str) {
        let hot = &self.table.hot[at];
        self.bins.events.push(EventRow {
            time: since,
            kind: EventKind::Stall,
            tap: hot.tap,
            flow_id: Some(self.table.cold[at].id),
            psn: psn.map(Psn::value),
            value: Some(silence.0),
            detail: Some(how.into()),
            ..EventRow::default()
        });
    }

    /// A request after a silence of at least `Hot::quiet`, as it was judged; `open`: its message had begun before. Between messages the
    /// flow was idle.
    #[cold]
    pub(super) fn request_after_silence(
        &mut self,
        at: FlowSlot,
        silence: Span,
        packet: &Packet,
        verdict: Verdict,
        open: bool,
    ) {
        let cold = &self.table.cold[at];
        let ended = packet.time.since(cold.pace.ended());
        let silence = silence.min(ended);
        let how = match verdict {
            Verdict::InOrder | Verdict::Gap { .. } if open => Some("ended by the next packet"),
            Verdict::InOrder | Verdict::Gap { .. } => None,
            _ => Some("ended by a retransmission"),
        };
        if let Some(how) = how
            && silence >= MIN_STALL
            && self.is_stall(at, silence)
        {
            self.stall(
                at,
                packet.time - silence,
                silence,
                Some(packet.roce.bth.psn()),
                how,
            );
        }
        if silence >= MIN_STALL {
            let quiet = self.table.cold[at].pace.note(silence);
            self.table.hot[at].quiet = quiet;
        }
    }
}

/// The kind of an answer, and the PSN before which all is acknowledged; `psn`: its own place among the requests.
#[inline]
fn answer_of(roce: &Roce, psn: u64) -> Option<(Answer, u64)> {
    let opcode = roce.bth.opcode();
    match opcode.operation() {
        Operation::ReadResponse if opcode.is_last() => Some((Answer::ReadDone, psn + 1)),
        Operation::ReadResponse => Some((Answer::ReadBegun, psn + 1)),
        Operation::AtomicAcknowledge => Some((Answer::Atomic, psn + 1)),
        _ if !roce.seen.has(ExtendedHeaders::AETH) => None,
        _ => match roce.aeth.kind() {
            AethKind::Ack { .. } => Some((Answer::Ack, psn + 1)),
            AethKind::Nak(_) | AethKind::RnrNak { .. } => Some((Answer::Nak, psn)),
            AethKind::Reserved(_) => None,
        },
    }
}

/// The meaning of a NAK for the request at `psn` of a flow; a fatal one ends that request.
fn meaning_of_nak(cold: &mut Cold, kind: AethKind, psn: u64, time: Time) -> AnswerMeaning {
    match kind {
        AethKind::RnrNak { timer } => AnswerMeaning::RnrNak {
            timer: Span(timer.nanos()),
        },
        AethKind::Nak(Nak::PsnSequenceError) => {
            let times = cold.times.as_deref();
            let oldest = times.filter(|times| !times.is_measured());
            AnswerMeaning::SequenceNak {
                rtt: times.map_or(Span(0), Times::shortest),
                oldest_sent: oldest.map_or(Time(0), Times::waiting_since),
            }
        }
        _ => {
            let refusal = &mut cold.trouble.get_or_insert_default().refusal;
            refusal.get_or_insert(Refusal { at: psn, time });
            AnswerMeaning::Arrived
        }
    }
}

/// A flow between its packets.
#[derive(Clone, Copy)]
pub(super) struct WaitingFlow {
    since: Time,
    /// When something new was acknowledged last; 0: never.
    progress: Time,
    /// All before this PSN was acknowledged; 0: nothing was.
    pub(super) acked: u64,
    awaits: bool,
}
