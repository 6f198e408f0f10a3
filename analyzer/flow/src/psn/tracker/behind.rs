//! Packets behind the highest PSN: retransmitted, late, or delivered twice.
//!
//! A sender retransmits for a cause: a NAK for the PSN or an earlier one, an RNR NAK, missing READ responses, or a silence of its
//! timer's length (IBTA 9.7.5.1). A packet without a cause is late when it was missing, and a copy that the network made when it
//! was not. Where the sender counts IP identifications up, these tell directly when a packet was sent. Where neither decides, the
//! packets that follow may: a sender that falls back repeats what was captured, in order.

use roce_model::{Span, Time};

use crate::psn::acks::{Answers, SHORT_SILENCE};
use crate::psn::cause::{Cause, Trigger};
use crate::psn::request::{Again, Request, SILENCE, Verdict, psn_of};
use crate::psn::run::{Recovery, RetransmittedRun};
use crate::psn::tracker::Tracker;
use crate::psn::tracker::judge::FALLBACK;
use crate::psn::undecided::{BehindVerdict, PendingPackets};
use crate::taps::duplicates::SentWhen;

/// True if a PSN behind the highest was captured before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PsnSighting {
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
        let back = request.packet.psn.offset_from(psn_of(next));
        let at = next - u64::from(back.unsigned_abs());
        let sighting = if self.is_missing(at) {
            PsnSighting::Missing
        } else if at < self.first_known() || self.reads.may_have_taken(at) {
            PsnSighting::NotKnown
        } else {
            PsnSighting::Captured
        };
        let is_unsure = request.packet.is_read && self.reads.may_have_taken(at);
        // The timer of a missing packet runs from when it was sent, which may have been just before the packet that showed the gap.
        let hole = self.holes.as_ref().and_then(|holes| holes.hole_with(at));
        let mut request = *request;
        request.flow.wait_from(hole.map_or(Time(0), |hole| hole.time));
        let request = &request;
        if let Some(answers) = &mut self.answers {
            answers.come_again(at, at + span, request.packet.time);
        }
        let verdict = self.behind_as(at, next, request, span, sighting);
        if is_unsure {
            let is_late = matches!(verdict, Verdict::Unknown | Verdict::Late { .. });
            self.reads.came_behind(at, request, is_late);
        }
        verdict
    }

    fn behind_as(
        &mut self,
        at: u64,
        next: u64,
        request: &Request,
        span: u64,
        sighting: PsnSighting,
    ) -> Verdict {
        if self.is_trimmed(at) {
            return self.again_after_trim(at, span, next, request);
        }
        if let Some(sent_again) = self.sent_again_by_identification(at, next, request, sighting) {
            self.decide_alone();
            return if sent_again {
                self.again(at, span, next, request, sighting)
            } else {
                self.sent_before(at, span, next, request, sighting)
            };
        }
        match sighting {
            PsnSighting::Missing => self.missing(at, span, next, request),
            PsnSighting::Captured => self.captured(at, span, next, request),
            PsnSighting::NotKnown => self.not_known(at, span, next, request),
        }
    }

    /// True if the IP identification shows that the packet was sent after those that had shown the gap, or after all others.
    fn sent_again_by_identification(
        &self,
        at: u64,
        next: u64,
        request: &Request,
        sighting: PsnSighting,
    ) -> Option<bool> {
        let ids = request.packet.ids?;
        if sighting == PsnSighting::Missing {
            let hole = self.holes.as_ref()?.hole_with(at)?;
            return Some(hole.ids?.place(ids.id)? == SentWhen::After);
        }
        // A copy is as old as its original. A retransmission that was overtaken is younger.
        let packets_since = next - 1 - at;
        Some(ids.behind().is_none_or(|behind| {
            behind > 0 && u64::from(behind) < packets_since && request.packet.span == Some(1)
        }))
    }

    /// The packet was retransmitted.
    pub(super) fn again(
        &mut self,
        at: u64,
        span: u64,
        next: u64,
        request: &Request,
        sighting: PsnSighting,
    ) -> Verdict {
        if sighting == PsnSighting::Captured && self.runs.was_sent_within(at, request.packet.ids) {
            self.note_overtaken_in_run(at, span, request);
        } else {
            self.retransmission(at, span, next, request, sighting == PsnSighting::Missing);
        }
        Verdict::Retransmission {
            captured_before: sighting == PsnSighting::Captured,
        }
    }

    /// The packet was sent before others that were captured already.
    fn sent_before(
        &mut self,
        at: u64,
        span: u64,
        next: u64,
        request: &Request,
        sighting: PsnSighting,
    ) -> Verdict {
        match sighting {
            PsnSighting::Missing => self.late_at_once(at, span, next, request),
            // It was missing, and its retransmission came first.
            PsnSighting::Captured if self.was_retransmitted(at, request.packet.time) => {
                if let Some(holes) = &mut self.holes {
                    holes.came_after_all(at);
                }
                self.reordering.note(next - 1 - at, &[], request.packet.time);
                Verdict::Late {
                    captured_before: true,
                }
            }
            // A copy that the network made has the identification of its original.
            PsnSighting::Captured if request.packet.has_old_id => Verdict::Duplicate,
            // It was retransmitted, and one of its transmissions overtook another.
            PsnSighting::Captured => Verdict::Unknown,
            PsnSighting::NotKnown => {
                self.reordering.note(next - 1 - at, &[], request.packet.time);
                Verdict::Late {
                    captured_before: false,
                }
            }
        }
    }

    /// True if `at` was missing and retransmitted, and its first transmission has not come since.
    fn was_retransmitted(&mut self, at: u64, time: Time) -> bool {
        let Some(gap) = self.refilled.take(at) else {
            return false;
        };
        self.reordering.note_behind_retransmission(time.since(gap));
        true
    }

    /// True if `at` was missing and retransmitted, not longer before `time` than packets of the flow are late, and its first transmission has
    /// not come since.
    pub(super) fn was_just_retransmitted(&mut self, at: u64, time: Time) -> bool {
        let latest = SILENCE.0.max(self.reordering.bound().0.saturating_mul(2));
        self.refilled.since(time).0 < latest && self.was_retransmitted(at, time)
    }

    fn late_at_once(&mut self, at: u64, span: u64, next: u64, request: &Request) -> Verdict {
        let filled = self.fill(at, at + span);
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
        }
        self.came_late(&filled, next, request.packet.time, next - 1 - at);
        Verdict::Late {
            captured_before: false,
        }
    }

    /// True if the run goes on with `at`. A run repeats PSNs in their order. Beyond the next one it goes on where the packets
    /// between were lost again: it has repeated what was captured, or nothing of the flow is ever late. A sender that repeats
    /// what NAKs name, and no more, has skipped nothing.
    pub(super) fn continues(&self, at: u64, is_missing: bool) -> bool {
        let is_seen = self.reordering.is_seen();
        // Where packets come late, one that was missing may be late, too.
        let may_be_late = is_missing && is_seen;
        let is_selective =
            is_seen && matches!(self.recovery(), Some(Recovery::Selective | Recovery::OutOfOrder));
        let skips = |run: &RetransmittedRun| {
            !is_selective && (run.repeats || run.trigger != Trigger::Unknown && !is_seen)
        };
        self.runs
            .current()
            .is_some_and(|run| (at == run.next && !may_be_late) || at >= run.next && skips(run))
    }

    /// A packet that was missing.
    fn missing(&mut self, at: u64, span: u64, next: u64, request: &Request) -> Verdict {
        // Responses say nothing about a READ that was not captured before.
        let mut request = *request;
        request.flow.again = Again::Nothing;
        let request = &request;
        if self.continues(at, true) {
            self.settle_pending(next, request.packet.time);
            return self.again(at, span, next, request, PsnSighting::Missing);
        }
        if self.goes_on_from_pending(at)
            && let Some(pending) = self.undecided.take_pending()
        {
            self.apply(pending, BehindVerdict::Retransmitted, false);
            return self.again(at, span, next, request, PsnSighting::Missing);
        }
        if self.is_named_by_run(at) {
            self.settle_pending(next, request.packet.time);
            self.retransmission_overtaken(at, span, next, request);
            return Verdict::Retransmission {
                captured_before: false,
            };
        }
        let cause = self.cause(at, request);
        if cause.is_none() && self.answers.is_some() && self.reordering.is_usual() {
            self.settle_pending(next, request.packet.time);
            return self.late_at_once(at, span, next, request);
        }
        if !self.joins_pending(at, cause) {
            self.settle_pending(next, request.packet.time);
            let mut pending = PendingPackets::new(at, request, next - 1 - at, false);
            pending.cause = cause;
            pending.before = self.circumstances(at, next, request);
            pending.since_nak = self
                .answers()
                .and_then(|answers| answers.waited_since_nak(at, request.packet.time));
            pending.waits_before = self.answers().is_some_and(|answers| answers.waits_before(at));
            self.undecided.set_pending(pending);
        }
        self.fill_for_now(at, span, next, request, cause);
        Verdict::Undecided {
            captured_before: false,
        }
    }

    /// True if `at`, which was missing, and which the sender would send again for `cause`, goes on with the packets that fill a hole right
    /// now.
    fn joins_pending(&self, at: u64, cause: Option<Cause>) -> bool {
        let Some(pending) = self.undecided.pending() else {
            return false;
        };
        let is_named = cause.is_some_and(|cause| cause.exact);
        // Where packets come late, what follows on a packet that a NAK named may be late.
        let is_in_order = !self.reordering.is_seen();
        let follows = at == pending.next && (is_in_order || pending.cause.is_none())
            || at > pending.next && pending.cause.is_some() && is_in_order;
        !pending.repeats && follows && !is_named && (pending.cause.is_some() || cause.is_none())
    }

    /// A packet that was missing fills its hole, whatever turns out of it.
    fn fill_for_now(&mut self, at: u64, span: u64, next: u64, request: &Request, cause: Option<Cause>) {
        let filled = self.fill(at, at + span);
        let may_be_late = self.may_be_reordered();
        let since_nak = self.undecided.pending().and_then(|pending| pending.since_nak);
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
            let is_answer = cause.is_some_and(|cause| cause.exact && cause.trigger == Trigger::Nak);
            if let Some(took) = since_nak.filter(|_| is_answer && !may_be_late) {
                answers.seems_answered(took);
            }
        }
        if let Some(pending) = self.undecided.pending_mut() {
            pending.add(at, at + span, request, filled);
        }
    }

    /// A packet that was captured before.
    fn captured(&mut self, at: u64, span: u64, next: u64, request: &Request) -> Verdict {
        if self.continues(at, false) {
            self.settle_pending(next, request.packet.time);
            return self.again(at, span, next, request, PsnSighting::Captured);
        }
        if request.packet.has_old_id {
            // A copy that the network made has the identification of its original. It says nothing of what the sender did.
            return Verdict::Duplicate;
        }
        if self.comes_after_its_retransmission(at, request) {
            self.settle_pending(next, request.packet.time);
            self.reordering.note(next - 1 - at, &[], request.packet.time);
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
        self.settle_answer(at, next, request.packet.time);
        self.recall_waiting(at, request);
        let cause = self.cause(at, request);
        if let Some(verdict) = self.captured_behind_pending(at, span, next, request, cause) {
            return verdict;
        }
        self.settle_pending(next, request.packet.time);
        if cause.is_some_and(|cause| self.is_enough_alone(at, request, cause)) {
            return self.again(at, span, next, request, PsnSighting::Captured);
        }
        let mut pending = PendingPackets::new(at, request, next - 1 - at, true);
        pending.cause = cause;
        pending.before = self.circumstances(at, next, request);
        pending.add(at, at + span, request, Vec::new());
        self.undecided.set_pending(pending);
        Verdict::Undecided {
            captured_before: true,
        }
    }

    /// A packet that was captured before, if it goes on with packets that were not judged yet; `None` if it does not.
    fn captured_behind_pending(
        &mut self,
        at: u64,
        span: u64,
        next: u64,
        request: &Request,
        cause: Option<Cause>,
    ) -> Option<Verdict> {
        let follows = self.undecided.pending().is_some_and(|pending| {
            pending.next == at || self.is_shuffled_among(pending, at) || self.skips_to(pending, at)
        });
        let mut pending = follows.then(|| self.undecided.take_pending()).flatten()?;
        if pending.repeats {
            pending.add(at, at + span, request, Vec::new());
            if pending.packets() >= FALLBACK || at + span >= next {
                self.apply(pending, BehindVerdict::Retransmitted, false);
            } else {
                self.undecided.set_pending(pending);
            }
            return Some(Verdict::Undecided {
                captured_before: true,
            });
        }
        // The sender repeats what follows on the missing packet, so it has sent that again, too; unless the
        // cause came only after that.
        let was_late = self.answers.is_some() && pending.cause.is_none() && cause.is_some();
        let judged = if was_late {
            BehindVerdict::Late
        } else {
            self.judge_by_next_answer(&pending, at, request)
        };
        self.apply(pending, judged, false);
        Some(self.again(at, span, next, request, PsnSighting::Captured))
    }

    /// True if one packet that was captured before is a retransmission for this cause, although a copy could come then, too.
    fn is_enough_alone(&self, at: u64, request: &Request, cause: Cause) -> bool {
        let is_long = request.flow.silence.0 >= SHORT_SILENCE.0.max(request.flow.rtt.0 * 8);
        match cause.trigger {
            Trigger::Rnr => true,
            Trigger::ImpliedNak => cause.certain,
            Trigger::Nak => cause.exact,
            // A copy may come as late.
            Trigger::Timeout if request.packet.has_old_id => false,
            // A timer retransmits from the oldest packet that is not acknowledged.
            Trigger::Timeout if request.packet.is_read => true,
            Trigger::Timeout => {
                let is_repeated = |answers: &Answers| {
                    answers.waits_since_its_retransmission(
                        at,
                        request.packet.time,
                        request.flow.rtt,
                        self.reordering.bound(),
                    ) && !self.may_be_reordered()
                };
                // The receiver waits for it all the while, whatever else the sender sends: no copy of an old packet is that by chance.
                let is_stalled = cause.certain;
                self.answers().is_some_and(|answers| {
                    answers.acked() == at && (is_long || is_stalled || is_repeated(answers))
                })
            }
            Trigger::Unknown => false,
        }
    }

    /// A packet of which nobody knows whether it was captured before.
    fn not_known(&mut self, at: u64, span: u64, next: u64, request: &Request) -> Verdict {
        let cause = self.cause(at, request);
        self.settle_pending(next, request.packet.time);
        let has_cause = cause.is_some_and(|cause| match cause.trigger {
            Trigger::Timeout => cause.certain,
            // Without the other direction it may be the NAK of another flow.
            _ => self.answers.is_some(),
        });
        if self.continues(at, false) || has_cause {
            return self.again(at, span, next, request, PsnSighting::NotKnown);
        }
        Verdict::Unknown
    }

    /// True if a packet that was missing, named by a NAK and retransmitted turns out to be late: the sender has no cause to send it
    /// once more.
    fn comes_after_its_retransmission(&mut self, at: u64, request: &Request) -> bool {
        self.answers.is_some()
            && self.cause(at, request).is_none()
            && self.was_just_retransmitted(at, request.packet.time)
    }

    /// Why the sender would send `at` again; `None`: nothing shows a cause.
    pub(super) fn cause(&self, at: u64, request: &Request) -> Option<Cause> {
        if let Some(answers) = &self.answers {
            return answers.cause(at, request, self.reordering.bound(), self.may_be_reordered());
        }
        let nak = |exact| Cause {
            trigger: Trigger::Nak,
            exact,
            certain: true,
        };
        if request.pair.refused {
            // Its timer may have the length of any silence.
            None
        } else if request.pair.is_naked && request.flow.silence >= SHORT_SILENCE {
            // The NAK may be another flow's, or may have been lost on its way.
            Some(Cause {
                trigger: Trigger::Unknown,
                ..nak(request.pair.is_naked_exactly)
            })
        } else if request.pair.is_naked {
            Some(nak(request.pair.is_naked_exactly))
        } else {
            Cause::by_silence(request.flow.silence, Span(0), self.reordering.bound())
        }
    }
}
