//! Packets behind the highest PSN: sent again, late, or delivered twice.
//!
//! A sender sends again for a cause: a NAK for the PSN or an earlier one, an RNR NAK, missing READ responses, or a silence of its
//! timer's length (IBTA 9.7.5.1). A packet without a cause is late when it was missing, and a copy that the network made when it
//! was not. Where the sender counts IP identifications up, these tell directly when a packet was sent. Where neither decides, the
//! packets that follow may: a sender that falls back repeats what was captured, in order.

use roce_model::Nanos;

use crate::psn::acks::{LONGEST_ANSWER, SHORT_SILENCE};
use crate::psn::cause::{Cause, MIN_TIMEOUT, Trigger};
use crate::psn::holes::Hole;
use crate::psn::request::{Again, Request, SILENCE, Verdict, psn_of};
use crate::psn::run::{Recovery, Run};
use crate::psn::tracker::{MAX_UNSURE_READS, ReadBehind, Tracker};
use crate::psn::undecided::{Decision, Judged, Pending};

/// So many packets in order, all captured before, are a sender that has fallen back even if nothing shows why. Copies that
/// the network makes come one at a time.
const FALLBACK: u64 = 3;

/// True if a PSN behind the highest was captured before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sighting {
    /// It is missing.
    Missing,
    /// It was captured.
    Captured,
    /// It is before the first PSN captured, in a hole that was forgotten, or behind a READ of unknown span.
    NotKnown,
}

impl Tracker {
    /// A packet behind the highest, `next` being one past that.
    pub(super) fn behind(&mut self, next: u64, request: &Request, span: u64) -> Verdict {
        let back = request.psn.offset_from(psn_of(next));
        let at = next - u64::from(back.unsigned_abs());
        let sighting = if self.is_missing(at) {
            Sighting::Missing
        } else if at < self.begin.max(self.forgotten_to()) || self.unsure.contains(&at) {
            Sighting::NotKnown
        } else {
            Sighting::Captured
        };
        let is_unsure = request.is_read && self.unsure.contains(&at);
        let verdict = self.behind_as(at, next, request, span, sighting);
        if is_unsure && self.reads_behind.len() < MAX_UNSURE_READS {
            self.reads_behind.push(ReadBehind {
                at,
                length: request.read_length,
                time: request.time,
                is_late: matches!(verdict, Verdict::Unknown | Verdict::Late { .. }),
            });
        }
        verdict
    }

    fn behind_as(&mut self, at: u64, next: u64, request: &Request, span: u64, sighting: Sighting) -> Verdict {
        if let Some(sent_again) = self.sent_again_by_identification(at, next, request, sighting) {
            self.decide_alone();
            return if sent_again {
                self.again(at, span, next, request, sighting)
            } else {
                self.sent_before(at, span, next, request, sighting)
            };
        }
        match sighting {
            Sighting::Missing => self.missing(at, span, next, request),
            Sighting::Captured => self.captured(at, span, next, request),
            Sighting::NotKnown => self.not_known(at, span, next, request),
        }
    }

    /// True if the IP identification shows that the packet was sent after those that had shown the gap, or after all others.
    fn sent_again_by_identification(
        &self,
        at: u64,
        next: u64,
        request: &Request,
        sighting: Sighting,
    ) -> Option<bool> {
        let ids = request.ids?;
        if sighting == Sighting::Missing {
            let hole = self.holes.as_ref()?.hole_with(at)?;
            return Some(ids.is_after(hole.ip_id?));
        }
        // A copy is as old as its original. A retransmission that was overtaken is younger.
        let packets_since = next - 1 - at;
        Some(
            ids.behind().is_none_or(|behind| {
                behind > 0 && u64::from(behind) < packets_since && request.span == Some(1)
            }),
        )
    }

    /// The packet was sent again.
    fn again(&mut self, at: u64, span: u64, next: u64, request: &Request, sighting: Sighting) -> Verdict {
        self.resend(at, span, next, request, sighting == Sighting::Missing);
        Verdict::Retransmission {
            captured_before: sighting == Sighting::Captured,
        }
    }

    /// The packet was sent before others that were captured already.
    fn sent_before(
        &mut self,
        at: u64,
        span: u64,
        next: u64,
        request: &Request,
        sighting: Sighting,
    ) -> Verdict {
        match sighting {
            Sighting::Missing => self.late_at_once(at, span, next, request),
            // It was missing, and its retransmission came first.
            Sighting::Captured if self.was_resent(at) => {
                if let Some(holes) = &mut self.holes {
                    holes.came_after_all(at);
                }
                self.reordering.note(next - 1 - at, &[], request.time);
                Verdict::Late {
                    captured_before: true,
                }
            }
            Sighting::Captured => Verdict::Duplicate,
            Sighting::NotKnown => {
                self.reordering.note(next - 1 - at, &[], request.time);
                Verdict::Late {
                    captured_before: false,
                }
            }
        }
    }

    /// True if `at` was missing and sent again, and its first transmission has not come since.
    fn was_resent(&mut self, at: u64) -> bool {
        let Some(place) = self
            .resent
            .iter()
            .position(|(first, end)| (*first..*end).contains(&at))
        else {
            return false;
        };
        let (first, end) = self.resent[place];
        self.resent[place] = (at + 1, end);
        if first < at {
            self.resent.insert(place, (first, at));
        }
        true
    }

    /// Whether `at` was missing and sent again, not longer before `time` than packets of the flow are late, and its first transmission has
    /// not come since.
    fn was_just_resent(&mut self, at: u64, time: Nanos) -> bool {
        let latest = SILENCE.0.max(self.reordering.bound().0.saturating_mul(2));
        time.since(self.refilled_at).0 < latest && self.was_resent(at)
    }

    fn late_at_once(&mut self, at: u64, span: u64, next: u64, request: &Request) -> Verdict {
        let filled = self.fill(at, at + span);
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
        }
        self.came_late(&filled, next, request.time, next - 1 - at);
        Verdict::Late {
            captured_before: false,
        }
    }

    /// True if the run goes on with `at`. A run repeats PSNs in their order. Beyond the next one it goes on where the packets
    /// between were lost again: it has repeated what was captured, or nothing of the flow is ever late.
    fn continues(&self, at: u64, is_missing: bool) -> bool {
        // Where packets come late, one that was missing may be late, too.
        let may_be_late = is_missing && self.reordering.is_seen();
        let skips = |run: &Run| run.repeats || run.trigger != Trigger::Unknown && !self.reordering.is_seen();
        self.run
            .is_some_and(|run| (at == run.next && !may_be_late) || at >= run.next && skips(&run))
    }

    /// A packet that was missing.
    fn missing(&mut self, at: u64, span: u64, next: u64, request: &Request) -> Verdict {
        // Of a READ that was not captured before, responses say nothing.
        let request = &Request {
            again: Again::Nothing,
            ..*request
        };
        if self.continues(at, true) {
            self.settle_pending(next, request.time);
            return self.again(at, span, next, request, Sighting::Missing);
        }
        if self.is_named_by_run(at) {
            self.settle_pending(next, request.time);
            self.resend_overtaken(at, span, next, request);
            return Verdict::Retransmission {
                captured_before: false,
            };
        }
        let cause = self.cause(at, request);
        if cause.is_none() && self.answers.is_some() && self.reordering.is_usual() {
            self.settle_pending(next, request.time);
            return self.late_at_once(at, span, next, request);
        }
        let joins = |pending: &Pending| {
            let is_named = cause.is_some_and(|cause| cause.exact);
            // Where packets come late, what follows on a packet that a NAK named may be late.
            let is_in_order = !self.reordering.is_seen();
            let follows = at == pending.next && (is_in_order || pending.cause.is_none())
                || at > pending.next && pending.cause.is_some() && is_in_order;
            !pending.repeats && follows && !is_named && (pending.cause.is_some() || cause.is_none())
        };
        if !self.pending.as_deref().is_some_and(joins) {
            self.settle_pending(next, request.time);
            let mut pending = Pending::new(at, request, next - 1 - at, false);
            pending.cause = cause;
            pending.since_nak = self
                .answers()
                .and_then(|answers| answers.waited_since_nak(at, request.time));
            pending.waits_before = self.answers().is_some_and(|answers| answers.waits_before(at));
            self.pending = Some(Box::new(pending));
        }
        let filled = self.fill(at, at + span);
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
        }
        if let Some(pending) = &mut self.pending {
            pending.add(at, at + span, request, filled);
        }
        Verdict::Undecided {
            captured_before: false,
        }
    }

    /// A packet that was captured before.
    fn captured(&mut self, at: u64, span: u64, next: u64, request: &Request) -> Verdict {
        if self.continues(at, false) {
            self.settle_pending(next, request.time);
            return self.again(at, span, next, request, Sighting::Captured);
        }
        if self.comes_after_its_resend(at, request) {
            self.settle_pending(next, request.time);
            self.reordering.note(next - 1 - at, &[], request.time);
            if let Some(holes) = &mut self.holes {
                holes.came_after_all(at);
            }
            return Verdict::Late {
                captured_before: true,
            };
        }
        if self.was_overtaken_in_run(at, request) {
            return Verdict::Retransmission {
                captured_before: true,
            };
        }
        self.settle_answer(at, next, request.time);
        self.recall_waiting(at, request);
        let cause = self.cause(at, request);
        let follows = self.pending.as_deref().is_some_and(|pending| {
            pending.next == at || self.is_shuffled_among(pending, at) || self.skips_to(pending, at)
        });
        if follows && let Some(pending) = self.pending.take() {
            if pending.repeats {
                let mut pending = pending;
                pending.add(at, at + span, request, Vec::new());
                if pending.packets() >= FALLBACK || at + span >= next {
                    self.apply(*pending, Judged::Resent, false);
                } else {
                    self.pending = Some(pending);
                }
                return Verdict::Undecided {
                    captured_before: true,
                };
            }
            // The sender repeats what follows on the missing packet, so it has sent that again, too; unless the
            // cause came only after that.
            let was_late = self.answers.is_some() && pending.cause.is_none() && cause.is_some();
            let judged = if was_late {
                Judged::Late
            } else {
                self.judge_by_next_answer(&pending, at, request)
            };
            self.apply(*pending, judged, false);
            return self.again(at, span, next, request, Sighting::Captured);
        }
        self.settle_pending(next, request.time);
        if cause.is_some_and(|cause| self.is_enough_alone(at, request, cause)) {
            return self.again(at, span, next, request, Sighting::Captured);
        }
        let mut pending = Pending::new(at, request, next - 1 - at, true);
        pending.cause = cause;
        pending.add(at, at + span, request, Vec::new());
        self.pending = Some(Box::new(pending));
        Verdict::Undecided {
            captured_before: true,
        }
    }

    /// True if one packet that was captured before is a retransmission for this cause, although a copy could come then, too.
    fn is_enough_alone(&self, at: u64, request: &Request, cause: Cause) -> bool {
        let is_long = request.silence.0 >= SHORT_SILENCE.0.max(request.rtt.0 * 8);
        match cause.trigger {
            Trigger::Rnr => true,
            Trigger::ImpliedNak => cause.certain,
            Trigger::Nak => cause.exact,
            // A timer sends again from the oldest packet that is not acknowledged.
            Trigger::Timeout if request.is_read => true,
            Trigger::Timeout => self.answers().is_some_and(|answers| answers.acked() == at) && is_long,
            Trigger::Unknown => false,
        }
    }

    /// A packet of which nobody knows whether it was captured before.
    fn not_known(&mut self, at: u64, span: u64, next: u64, request: &Request) -> Verdict {
        let cause = self.cause(at, request);
        self.settle_pending(next, request.time);
        let has_cause = cause.is_some_and(|cause| cause.trigger != Trigger::Timeout || cause.certain);
        if self.continues(at, false) || has_cause && self.answers.is_some() {
            return self.again(at, span, next, request, Sighting::NotKnown);
        }
        Verdict::Unknown
    }

    /// True if a packet that was missing, named by a NAK and sent again turns out to be late: the sender has no cause to send it
    /// once more.
    fn comes_after_its_resend(&mut self, at: u64, request: &Request) -> bool {
        self.answers.is_some() && self.cause(at, request).is_none() && self.was_just_resent(at, request.time)
    }

    /// Why the sender would send `at` again; `None`: nothing shows a cause.
    pub(super) fn cause(&self, at: u64, request: &Request) -> Option<Cause> {
        if let Some(answers) = &self.answers {
            // The timer of a missing packet runs from when it was sent, which may have been just before the packet that showed the gap.
            let since = self.holes.as_ref().and_then(|holes| holes.hole_with(at));
            let request = Request {
                waiting_since: since
                    .map_or(request.waiting_since, |hole| hole.time.max(request.waiting_since)),
                ..*request
            };
            return answers.cause(at, &request, self.reordering.bound(), self.may_be_reordered());
        }
        let nak = |exact| Cause {
            trigger: Trigger::Nak,
            exact,
            certain: true,
        };
        if request.refused {
            // Its timer may have the length of any silence.
            None
        } else if request.is_naked {
            Some(nak(request.is_naked_exactly))
        } else {
            Cause::by_silence(request.silence, Nanos(0), self.reordering.bound())
        }
    }

    /// Something else than the continuation of pending packets came, `next` being one past the highest PSN.
    pub(super) fn settle_pending(&mut self, next: u64, time: Nanos) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let judged = if pending.repeats {
            Some(self.judge_repeats(&pending, next))
        } else {
            self.judge_fills(&pending)
        };
        if let Some(judged) = judged {
            self.apply(*pending, judged, false);
        } else {
            self.decide_waiting();
            self.waiting = Some(pending);
            self.settle_waiting(time);
        }
    }

    /// What packets were that filled a hole; `None`: it may still turn out that they were late.
    fn judge_fills(&self, pending: &Pending) -> Option<Judged> {
        let Some(cause) = pending.cause else {
            // Where nothing else ever came late, and the sender does go back, a cause may have gone unseen.
            let may_be_resent = self.answers.is_some() && !self.may_be_reordered() && self.go_back_n > 0;
            return Some(if may_be_resent {
                Judged::Unknown
            } else {
                Judged::Late
            });
        };
        match cause.trigger {
            // Of an unknown cause a NAK is one: either it or a timer after it made the sender send this again.
            Trigger::Nak | Trigger::Unknown if cause.exact => {
                self.comes_before_answers(pending).then_some(Judged::Late)
            }
            // Without what was captured between: a sender that falls back would have repeated that.
            Trigger::Nak if self.may_be_reordered() => Some(Judged::Late),
            Trigger::Rnr | Trigger::ImpliedNak | Trigger::Nak => Some(Judged::Resent),
            // A sender that was seen to go back does so, and nothing else ever came late.
            Trigger::Timeout if cause.certain || self.go_back_n > 0 && !self.may_be_reordered() => {
                Some(Judged::Resent)
            }
            _ if pending.begin.silence.0 <= self.reordering.bound().0.saturating_mul(2) => Some(Judged::Late),
            _ => Some(Judged::Unknown),
        }
    }

    /// What packets were that had been captured before, and after which the sender did not go on to repeat.
    fn judge_repeats(&mut self, pending: &Pending, next: u64) -> Judged {
        let reaches_the_end = pending.next >= next;
        let has_nak = pending
            .cause
            .is_some_and(|cause| matches!(cause.trigger, Trigger::Nak | Trigger::Rnr | Trigger::ImpliedNak));
        if self.answers.is_none() {
            // Without the other direction, no cause can be seen, and senders repeat packets more often than networks.
            return Judged::Resent;
        }
        let may_be_alone = pending.cause.is_some_and(|cause| cause.certain) && reaches_the_end;
        let is_shuffled = self.may_be_reordered() && self.recovery() == Some(Recovery::GoBackN);
        if has_nak && (may_be_alone || pending.packets() > 1 || is_shuffled) {
            return Judged::Resent;
        }
        let silent = pending.begin.silence >= SILENCE;
        // The network's copy has the identification of its original.
        let is_new = pending.begin.has_new_id;
        match pending.packets() {
            1 if is_new && pending.cause.is_none() && self.was_just_resent(pending.first, pending.time) => {
                Judged::Late
            }
            _ if is_new => Judged::Resent,
            2 if silent && reaches_the_end => Judged::Resent,
            packets if packets >= FALLBACK => Judged::Resent,
            // Missing, sent again, and here once more: the first transmission, late.
            1 if pending.cause.is_none() && self.was_just_resent(pending.first, pending.time) => Judged::Late,
            // The last packet once more, after a silence: its ACK was lost, or the network had a copy.
            1 if silent => Judged::Unknown,
            _ => Judged::Duplicate,
        }
    }

    /// A packet of those that seemed to answer a NAK came once more: the first one was late if this is the answer.
    fn recall_waiting(&mut self, at: u64, request: &Request) {
        let Some(waiting) = self.waiting.as_deref() else {
            return;
        };
        if !(waiting.first..waiting.next).contains(&at) {
            return;
        }
        if at > waiting.first {
            // The answer to the NAK would begin where the NAK says: a later run repeats these.
            let judged = self.judge_by_next_answer(waiting, at, request);
            return self.decide_waiting_as(judged);
        }
        let Some(answers) = self.answers() else {
            return self.decide_waiting();
        };
        let begin = waiting.begin.time;
        let judged = if answers.named_since(at, begin) {
            self.judge_by_next_answer(waiting, at, request)
        } else if request.time.since(begin) < LONGEST_ANSWER && request.silence < SILENCE {
            Judged::Late
        } else if request.time.since(begin) < MIN_TIMEOUT {
            // A short timer, or a late packet and a slow answer.
            self.judge_by_times(waiting, at, request)
        } else {
            // After a silence it may be a timeout's answer as well, and the first one was lost behind the tap.
            self.judge_by_next_answer(waiting, at, request)
        };
        self.decide_waiting_as(judged);
    }

    /// A packet at `at` is captured once more: when it is one of those that fill a hole right now, they wait for no other.
    fn settle_answer(&mut self, at: u64, next: u64, time: Nanos) {
        let is_again = |pending: &Pending| !pending.repeats && (pending.first..pending.next).contains(&at);
        if self.pending.as_deref().is_some_and(is_again) {
            self.settle_pending(next, time);
        }
    }

    /// Decides packets that seemed to answer a NAK once the true answer would have come.
    pub(super) fn settle_waiting(&mut self, time: Nanos) {
        let is_over = |waiting: &Pending| time.since(waiting.time) >= LONGEST_ANSWER;
        if self.waiting.as_deref().is_some_and(is_over) {
            self.decide_waiting();
        }
    }

    fn decide_waiting(&mut self) {
        if let Some(waiting) = self.waiting.as_deref() {
            self.decide_waiting_as(self.judge_named(waiting));
        }
    }

    fn decide_waiting_as(&mut self, judged: Judged) {
        if let Some(waiting) = self.waiting.take() {
            self.apply(*waiting, judged, true);
        }
    }

    /// Decides everything that waits for more packets.
    pub(crate) fn decide_alone(&mut self) {
        self.decide_waiting();
        if let Some(pending) = self.pending.take() {
            let judged = if pending.repeats {
                self.judge_repeats(&pending, pending.next)
            } else {
                self.judge_fills(&pending)
                    .unwrap_or_else(|| self.judge_named(&pending))
            };
            self.apply(*pending, judged, false);
        }
    }

    /// True if some packets are not judged yet.
    pub(crate) fn is_undecided(&self) -> bool {
        self.pending.is_some() || self.waiting.is_some()
    }

    /// Settles what pending packets were. `passed`: new packets have followed since.
    fn apply(&mut self, pending: Pending, judged: Judged, passed: bool) {
        match judged {
            Judged::Resent => self.apply_resent(&pending, passed),
            Judged::Late if pending.repeats => {
                self.reordering.note(pending.depth, &[], pending.time);
                if let Some(holes) = &mut self.holes {
                    holes.came_after_all(pending.first);
                }
            }
            Judged::Late => self.came_late(
                &pending.filled,
                pending.first + pending.depth,
                pending.time,
                pending.depth,
            ),
            Judged::Unknown => {
                for part in &pending.filled {
                    self.holes.get_or_insert_default().stays_unresolved(part);
                }
            }
            Judged::Duplicate => {}
        }
        self.decisions.push(Decision {
            judged,
            captured_before: pending.repeats,
            again: pending.begin.again,
            by_nak: pending.cause.is_some_and(|cause| cause.trigger == Trigger::Nak),
            psn: psn_of(pending.first),
            time: pending.begin.time,
            parts: pending.parts,
        });
    }

    fn apply_resent(&mut self, pending: &Pending, passed: bool) {
        let fate_at_the_begin = if pending.waits_before {
            self.fate_within_a_run()
        } else {
            crate::psn::holes::LossClass::NetworkLost
        };
        let cause = pending.cause;
        let run = Run {
            packets: pending.packets(),
            next: pending.next,
            skipped: pending.skipped,
            fills: !pending.repeats,
            repeats: pending.repeats,
            ..Run::new(pending.first, pending.begin.time, cause)
        };
        if passed && self.run.is_some() {
            self.end_this_run(run, u64::MAX);
        } else {
            self.end_run();
            self.begin_run(pending.first, run, &pending.begin, pending.repeats);
            self.run_reach = pending.first + pending.depth + 1;
            if let Some(answers) = &mut self.answers {
                answers.extend_run(pending.next);
            }
        }
        if !pending.repeats {
            self.refilled = pending.first..pending.next;
            self.refilled_at = pending.begin.time;
            self.note_resent(pending.first, pending.next);
        }
        for part in &pending.filled {
            let begins = part.first <= pending.first && pending.first < part.end;
            let class = if begins {
                fate_at_the_begin
            } else {
                self.fate_within_a_run()
            };
            if begins {
                self.prove(cause, part.end - part.first);
            }
            let holes = self.holes.get_or_insert_default();
            holes.was_sent_again(part, class);
            // The rest of the same hole.
            holes.decide_at(part.end, class);
        }
        if passed && self.run == Some(run) {
            // New packets have followed: this was all of it.
            self.end_run_before_new(u64::MAX);
        }
    }

    /// Missing packets were sent again for `cause`. The NAK proves the loss if no packet of the flow was ever late.
    pub(super) fn prove(&mut self, cause: Option<Cause>, psns: u64) {
        let is_named = cause.is_some_and(|cause| cause.trigger == Trigger::Nak && cause.exact);
        if is_named && !self.reordering.is_seen() {
            self.proven += psns;
        }
    }

    /// Parts of holes came late, `depth` PSNs behind the highest; `next`: one past that.
    fn came_late(&mut self, parts: &[Hole], next: u64, time: Nanos, depth: u64) {
        self.reordering.note(depth, parts, time);
        for part in parts {
            let holes = self.holes.get_or_insert_default();
            holes.came_late(part);
            if let Some(answers) = &mut self.answers {
                answers.late(part.first, part.end, holes.first_open(), next);
            }
        }
    }
}
