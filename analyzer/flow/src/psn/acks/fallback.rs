//! Why a sender falls back to a PSN: a NAK, an RNR NAK, missing READ responses, its timer, or nothing that was captured.

use roce_model::{Span, Time};

use super::{Answers, SHORT_SILENCE, SenderRest};
use crate::psn::acks::fallback_times::is_much_shorter;
use crate::psn::acks::nak_history::NakRecord;
use crate::psn::cause::{Cause, MIN_TIMEOUT, Trigger};
use crate::psn::request::{Again, Request, SILENCE};

/// A NAK is not what made the sender fall back when that took so many times longer than after any NAK before.
const MUCH_LONGER: u64 = 5;
/// Factor for a sender that was not silent meanwhile: queues fill while it sends, and hold back its answers.
const MUCH_LONGER_WHILE_SENDING: u64 = 10;
/// Number of answers between two hosts that show how long one takes. The next one, out of a distribution whose
/// tail is as heavy as that of 1/x, takes [`MUCH_LONGER_WHILE_SENDING`] times as long as all of n others in one
/// case of 10 (n + 1), here 60.
const MANY_ANSWERS: u32 = 5;
/// A sender in software, or on a busy host, takes some times as long to answer a NAK as its receiver does to answer a request.
const SLOW_ANSWER: u64 = 8;

impl Answers {
    /// Why the sender falls back to `at` with `request`. `reordering`: how long the flow's packets were overtaken;
    /// `is_reordered`: they may be, on the way that the flow takes.
    pub(in crate::psn) fn cause(
        &self,
        at: u64,
        request: &Request,
        reordering: Span,
        is_reordered: bool,
    ) -> Option<Cause> {
        let waited = |nak: NakRecord| request.packet.time.since(nak.time);
        let of = |trigger, exact| {
            Some(Cause {
                trigger,
                exact,
                certain: true,
            })
        };
        if let Some(rnr) = self.rnr.filter(|rnr| rnr.explains(at))
            && waited(rnr).0 >= rnr.timer.0 / 4 * 3
        {
            return of(Trigger::Rnr, rnr.at == at);
        }
        let is_early = |nak: &NakRecord| is_reordered && self.is_early(waited(*nak));
        if let Some(nak) = self.nak_for(at, request.packet.time).filter(|nak| !is_early(nak)) {
            return of(self.nak_or_timeout(nak, request, is_reordered), nak.at == at);
        }
        let waited = if request.packet.is_read {
            // As long as responses come, the timer does not expire.
            self.waited(request)
                .min(request.packet.time.since(self.last_answer))
        } else {
            self.waited(request)
        };
        if request.flow.again != Again::Nothing && waited < SHORT_SILENCE {
            // A response behind the missing one has just shown the gap.
            return Some(Cause {
                trigger: Trigger::ImpliedNak,
                exact: request.flow.again == Again::Missing,
                certain: request.flow.again != Again::Whole,
            });
        }
        if waited.0 < request.flow.rtt.0 * 2 {
            return None;
        }
        if self.may_be_asked(at, waited, request)
            || self.times.is_rnr_wait(waited)
            || self.may_answer_nak(at, request, is_reordered)
        {
            return of(Trigger::Unknown, false);
        }
        let silence = Cause::by_silence(waited, self.times.timer(), reordering);
        // As long as packets of the flow go on coming, the sender's timer does not expire.
        silence.map(|cause| Cause {
            certain: cause.certain && (request.flow.silence.0 >= waited.0 / 4 || waited >= MIN_TIMEOUT),
            ..cause
        })
    }

    /// True if `request`, sent after it had waited for so long, may be a READ whose responses came in an order that the requester does not
    /// take. Only an answer to something later shows it a gap (IBTA 9.7.5.1.9): the rest of a READ, behind which nothing was answered, is
    /// requested again by a timer alone.
    fn may_be_asked(&self, at: u64, waited: Span, request: &Request) -> bool {
        let again = request.flow.again;
        let has_responses = matches!(again, Again::Captured | Again::Rest | Again::Whole);
        let is_tail =
            matches!(again, Again::Captured | Again::Rest) && waited >= SHORT_SILENCE && self.acked == at + 1;
        has_responses
            && !is_tail
            && waited >= SILENCE
            && waited < MIN_TIMEOUT
            && !self.times.fits_timer(waited)
    }

    /// True if `request` may be a part of an answer to a NAK that others answered already, as it seemed, or that queues held back.
    fn may_answer_nak(&self, at: u64, request: &Request, is_reordered: bool) -> bool {
        // The receiver waits for what it named before. Queues may have held back a part of the answer; a timer retransmits from the begin.
        let is_part = request.flow.is_slowed
            && self.times.answered() == self.acked
            && self.is_behind_answered(at, is_reordered);
        // Queues may have held back the NAK or its answer; a timer retransmits from the oldest packet that is not acknowledged.
        is_part
            || self.named_before_it_came(at, request.packet.time)
            // One of two runs may answer the NAK, and the other one follow a timer: nothing shows which.
            || self.may_answer_before(at, request)
    }

    /// True if `at` may be a part of the answer to the NAK that a run answered last: behind its begin, or that itself where the run began
    /// behind it and packets overtake each other.
    fn is_behind_answered(&self, at: u64, is_reordered: bool) -> bool {
        let may_be_begin = is_reordered && self.run.psns().start > self.times.answered();
        self.times.is_behind_answered(at, may_be_begin)
    }

    /// True if a NAK that no run has answered named `at`, which the receiver has got since: it came late.
    fn named_before_it_came(&self, at: u64, time: Time) -> bool {
        at < self.acked && self.naks.have_named(at, time)
    }

    /// True if the packet at `at` may be the answer to a NAK before which a run had come: the timer is shorter than an answer takes, or
    /// that run did not begin where the NAK says, and the sender rested as long before.
    fn may_answer_before(&self, at: u64, request: &Request) -> bool {
        let mut naks = self.naks.answered_for(at, request.packet.time).peekable();
        let is_held_back = naks.peek().is_some() && self.times.is_held_back(request.pair.others_answer);
        is_held_back || naks.any(|answered| !answered.began_there && self.has_rested(answered.nak, request))
    }

    /// True if the sender was silent for half as long or longer, before it went on with the packets that brought the NAK, as it was from
    /// the NAK to `request`, and no answer to a NAK between the hosts was seen. What delays packets by so long, a queue or a window that is
    /// full, delays an answer as well.
    fn has_rested(&self, nak: NakRecord, request: &Request) -> bool {
        let is_known = self.times.longest_answer().max(request.pair.others_answer).0 != 0;
        let SenderRest { length, end } = self.rest;
        let is_just_before = nak.time >= end && nak.time.since(end) <= length;
        let waited = request.packet.time.since(nak.time);
        !is_known && length.0 != 0 && is_just_before && waited.0 <= length.0.saturating_mul(2)
    }

    /// A sender falls back so long after a NAK: because of it, or because the NAK or its retransmission was lost and the timer
    /// expired. A sender that answers a NAK goes on sending until it does; one that waits for its timer is silent.
    fn nak_or_timeout(&self, nak: NakRecord, request: &Request, is_reordered: bool) -> Trigger {
        let waited = request.packet.time.since(nak.time);
        if waited < SHORT_SILENCE {
            return Trigger::Nak;
        }
        let fits_timer = self.times.fits_timer(waited);
        let answer = self.times.longest_answer().max(request.pair.others_answer);
        let usual = answer.0.max(request.flow.usual_rtt.0 * 2);
        if self.times.is_held_back(request.pair.others_answer) {
            // This packet was on its way for longer than the timer: the sender may have sent it before the NAK,
            // or after it.
            return Trigger::Unknown;
        }
        let is_silent = request.flow.silence >= SHORT_SILENCE && request.flow.silence.0 >= waited.0 / 2;
        if !is_silent {
            // Its window lets it send on while it waits for its timer. A sender in software takes very different times to answer, so
            // only a timer that is known tells, or many answers that all took a tenth at most.
            let is_usual = answer.0 == 0 || waited.0 <= usual * 2;
            let is_delayed =
                request.flow.is_slowed || is_reordered || waited.0 < usual * MUCH_LONGER_WHILE_SENDING;
            let is_unlike_others = self.times.timer().0 == 0 && request.pair.others_answers >= MANY_ANSWERS;
            return match (fits_timer && !is_usual, is_delayed) {
                (true, false) => Trigger::Timeout,
                (false, false) if is_unlike_others => Trigger::Timeout,
                (false, _) => Trigger::Nak,
                (true, true) => Trigger::Unknown,
            };
        }
        if !fits_timer && self.has_rested(nak, request) {
            // Nothing shows that an answer takes less than the sender's last packets did.
            return Trigger::Unknown;
        }
        let is_long = waited.0 >= MIN_TIMEOUT.0.max(request.flow.usual_rtt.0 * SLOW_ANSWER);
        if !fits_timer && request.flow.is_slowed {
            // Congestion control may hold back the answer as long as a timer would.
            return Trigger::Unknown;
        }
        if self.times.timer().0 != 0 && !fits_timer {
            // Its timer takes much longer: the sender was slow to answer.
            return Trigger::Nak;
        }
        if is_reordered && !fits_timer && !is_long {
            // A retransmission takes its time on the way like any packet.
            return Trigger::Nak;
        }
        if fits_timer || is_long || usual != 0 && waited.0 >= usual * MUCH_LONGER {
            Trigger::Timeout
        } else if usual != 0 && waited.0 <= usual * 2 {
            Trigger::Nak
        } else {
            Trigger::Unknown
        }
    }

    /// For how long nothing had come when `request` was retransmitted: since the last progress, since the oldest request
    /// was sent, or since the last run began.
    fn waited(&self, request: &Request) -> Span {
        let since = self
            .progress
            .max(request.flow.waiting_since)
            .max(self.run.begun());
        if since.0 == 0 {
            request.flow.silence
        } else {
            request.packet.time.since(since)
        }
    }

    /// True if the sender repeated `at` alone, for a NAK, so long before `time` that no copy of it still arrives, and the receiver has not
    /// acknowledged it since. Such a sender goes on sending what follows while its timer runs (IBTA 9.7.6.1.3).
    pub(in crate::psn) fn waits_since_its_retransmission(
        &self,
        at: u64,
        time: Time,
        rtt: Span,
        reordering: Span,
    ) -> bool {
        let least = SHORT_SILENCE.0.max(rtt.0 * 8).max(reordering.0 * 4);
        self.run.repeated_alone(at, time, Span(least))
    }

    /// A packet that seems to answer a NAK came `took` after it, and no packet comes late: the sender takes no less for the next one.
    pub(in crate::psn) fn seems_answered(&mut self, took: Span) {
        self.times.seems_answered(took);
    }

    /// A run begins at `at` because of `trigger`: what requested it is answered.
    /// `repeats`: its first packet had been captured before, so that it is no late one.
    /// `is_sure`: no reordering explains the silence of a timeout.
    pub(in crate::psn) fn begin_run(
        &mut self,
        at: u64,
        request: &Request,
        trigger: Trigger,
        repeats: bool,
        is_sure: bool,
    ) {
        if at < self.acked && repeats && matches!(trigger, Trigger::Timeout | Trigger::Unknown) {
            self.times.note_held(request.packet.time.since(self.progress));
        }
        match trigger {
            Trigger::Nak => {
                if let Some(nak) = self.nak_for(at, request.packet.time) {
                    let took = request.packet.time.since(nak.time);
                    self.times.note_answer(at, nak.at, took, repeats);
                }
            }
            Trigger::Timeout => {
                self.has_lost_again |= self.acked == at && self.run.lose_again(at);
                self.times.note_timeout(self.waited(request), is_sure);
            }
            _ => {}
        }
        // A run that answers a younger NAK is still on its way, by slower paths than this one's first packet.
        let (time, shortest) = (request.packet.time, self.times.shortest_answer());
        self.naks.answer(at, |nak| {
            !is_sure && is_much_shorter(time.since(nak.time), shortest)
        });
        self.rnr = self.rnr.filter(|rnr| !rnr.explains(at));
        self.run.begin(at, time, trigger);
    }

    /// At `time` the sender has gone on after a run that a NAK made it begin. Another NAK for what the run retransmitted would have
    /// made it fall back by then, if it came after that.
    pub(in crate::psn) fn forget_answered_naks(&mut self, time: Time) {
        let answer = self.times.latest_answer();
        if answer.0 == 0 {
            // The NAK came before the other direction was known: nobody knows how long an answer takes.
            return;
        }
        self.naks.forget(self.run.psns(), time, Span(answer.0 * 2));
    }

    /// The run has come to `end`.
    pub(in crate::psn) fn extend_run(&mut self, end: u64) {
        self.run.extend(end);
    }
}
