//! Why a sender falls back to a PSN: a NAK, an RNR NAK, missing READ responses, its timer, or nothing that was captured.

use core::num::NonZeroU64;

use roce_model::Nanos;

use super::{
    AnsweredNak, Answers, MAX_NAK_AGE, MAX_NAKS, MAX_RUN_OFFSET, NakRecord, SHORT_SILENCE, is_much_shorter,
};
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
        reordering: Nanos,
        is_reordered: bool,
    ) -> Option<Cause> {
        let waited = |nak: NakRecord| request.time.since(nak.time);
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
        if let Some(nak) = self.nak_for(at, request.time).filter(|nak| !is_early(nak)) {
            return of(self.nak_or_timeout(nak, request, is_reordered), nak.at == at);
        }
        let waited = if request.is_read {
            // As long as responses come, the timer does not expire.
            self.waited(request).min(request.time.since(self.last_answer))
        } else {
            self.waited(request)
        };
        if request.again != Again::Nothing && waited < SHORT_SILENCE {
            // A response behind the missing one has just shown the gap.
            return Some(Cause {
                trigger: Trigger::ImpliedNak,
                exact: request.again == Again::Missing,
                certain: request.again != Again::Whole,
            });
        }
        if waited.0 < request.rtt.0 * 2 {
            return None;
        }
        let has_responses = matches!(request.again, Again::Captured | Again::Rest | Again::Whole);
        // Its responses may have come in an order that the requester does not take. Only an answer to something later shows it a gap
        // (IBTA 9.7.5.1.9): the rest of a READ, behind which nothing was answered, is requested again by a timer alone.
        let is_tail = matches!(request.again, Again::Captured | Again::Rest)
            && waited >= SHORT_SILENCE
            && self.acked == at + 1;
        let may_be_asked = has_responses
            && !is_tail
            && waited >= SILENCE
            && waited < MIN_TIMEOUT
            && !self.fits_timer(waited);
        if may_be_asked || self.is_rnr_wait(waited) {
            return of(Trigger::Unknown, false);
        }
        if request.is_slowed && self.answered == self.acked && self.is_behind_answered(at, is_reordered) {
            // The receiver waits for what it named before. Queues may have held back a part of the answer; a timer retransmits from the
            // begin.
            return of(Trigger::Unknown, false);
        }
        if self.named_before_it_came(at, request.time) {
            // Queues may have held back the NAK or its answer; a timer retransmits from the oldest packet that is not acknowledged.
            return of(Trigger::Unknown, false);
        }
        if self.may_answer_before(at, request) {
            // One of two runs may answer the NAK, and the other one follow a timer: nothing shows which.
            return of(Trigger::Unknown, false);
        }
        let silence = Cause::by_silence(waited, self.timer, reordering);
        // As long as packets of the flow go on coming, the sender's timer does not expire.
        silence.map(|cause| Cause {
            certain: cause.certain && (request.silence.0 >= waited.0 / 4 || waited >= MIN_TIMEOUT),
            ..cause
        })
    }

    /// True if `at` may be a part of the answer to the NAK that a run answered last: behind its begin, or that itself where the run began
    /// behind it and packets overtake each other.
    fn is_behind_answered(&self, at: u64, is_reordered: bool) -> bool {
        let may_be_begin = is_reordered && self.run.start > self.answered;
        let begin = self.answered + u64::from(!may_be_begin);
        self.answered != 0 && (begin..self.answered + MAX_RUN_OFFSET).contains(&at)
    }

    /// True if a NAK that no run has answered named `at`, which the receiver has got since: it came late.
    fn named_before_it_came(&self, at: u64, time: Nanos) -> bool {
        let is_recent = |nak: &NakRecord| time.since(nak.time) <= MAX_NAK_AGE;
        at < self.acked && self.naks.iter().any(|nak| nak.at == at && is_recent(nak))
    }

    /// True if the packet at `at` may be the answer to a NAK before which a run had come: the timer is shorter than an answer takes, or
    /// that run did not begin where the NAK says, and the sender rested as long before.
    fn may_answer_before(&self, at: u64, request: &Request) -> bool {
        let may_be = |answered: &&AnsweredNak| {
            answered.nak.explains(at) && request.time.since(answered.nak.time) <= MAX_NAK_AGE
        };
        let mut naks = self.answered_naks.iter().filter(may_be).peekable();
        let is_held_back = naks.peek().is_some() && self.is_held_back(request);
        is_held_back || naks.any(|answered| !answered.began_there && self.has_rested(answered.nak, request))
    }

    /// True if the sender was silent for half as long or longer, before it went on with the packets that brought the NAK, as it was from
    /// the NAK to `request`, and no answer to a NAK between the hosts was seen. What delays packets by so long, a queue or a window that is
    /// full, delays an answer as well.
    fn has_rested(&self, nak: NakRecord, request: &Request) -> bool {
        let is_known = self.longest_answer.max(request.others_answer).0 != 0;
        let is_just_before = nak.time >= self.rest_end && nak.time.since(self.rest_end) <= self.rest;
        let waited = request.time.since(nak.time);
        !is_known && self.rest.0 != 0 && is_just_before && waited.0 <= self.rest.0.saturating_mul(2)
    }

    /// True if the sender's timer, as far as it is known, may have expired in that time.
    fn fits_timer(&self, waited: Nanos) -> bool {
        self.timer.0 != 0 && waited.0 >= self.timer.0 / 4 * 3
    }

    /// True if a silence has the length that the receiver's RNR NAKs make it: one more of them may have been lost on its way or
    /// by the capture.
    fn is_rnr_wait(&self, waited: Nanos) -> bool {
        let timer = self.rnr_timer.0;
        timer != 0 && (timer / 4 * 3..=timer.saturating_mul(2)).contains(&waited.0)
    }

    /// A sender falls back so long after a NAK: because of it, or because the NAK or its retransmission was lost and the timer
    /// expired. A sender that answers a NAK goes on sending until it does; one that waits for its timer is silent.
    fn nak_or_timeout(&self, nak: NakRecord, request: &Request, is_reordered: bool) -> Trigger {
        let waited = request.time.since(nak.time);
        if waited < SHORT_SILENCE {
            return Trigger::Nak;
        }
        let fits_timer = self.fits_timer(waited);
        let answer = self.longest_answer.max(request.others_answer);
        let usual = answer.0.max(request.usual_rtt.0 * 2);
        if self.is_held_back(request) {
            // This packet was on its way for longer than the timer: the sender may have sent it before the NAK,
            // or after it.
            return Trigger::Unknown;
        }
        let is_silent = request.silence >= SHORT_SILENCE && request.silence.0 >= waited.0 / 2;
        if !is_silent {
            // Its window lets it send on while it waits for its timer. A sender in software takes very different times to answer, so
            // only a timer that is known tells, or many answers that all took a tenth at most.
            let is_usual = answer.0 == 0 || waited.0 <= usual * 2;
            let is_delayed =
                request.is_slowed || is_reordered || waited.0 < usual * MUCH_LONGER_WHILE_SENDING;
            let is_unlike_others = self.timer.0 == 0 && request.others_answers >= MANY_ANSWERS;
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
        let is_long = waited.0 >= MIN_TIMEOUT.0.max(request.usual_rtt.0 * SLOW_ANSWER);
        if !fits_timer && request.is_slowed {
            // Congestion control may hold back the answer as long as a timer would.
            return Trigger::Unknown;
        }
        if self.timer.0 != 0 && !fits_timer {
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

    /// True if the sender's timer expired while packets that had arrived were on their way, or their acknowledgement was, and no answer to a NAK
    /// between the hosts was much faster.
    fn is_held_back(&self, request: &Request) -> bool {
        let answer = self.longest_answer.max(request.others_answer);
        self.held.0 != 0 && (answer.0 == 0 || answer.0 >= self.held.0 / 2)
    }

    /// For how long nothing had come when `request` was retransmitted: since the last progress, since the oldest request
    /// was sent, or since the last run began.
    fn waited(&self, request: &Request) -> Nanos {
        let since = self.progress.max(request.waiting_since).max(self.run_begin);
        if since.0 == 0 {
            request.silence
        } else {
            request.time.since(since)
        }
    }

    /// True if the sender repeated `at` alone, for a NAK, so long before `time` that no copy of it still arrives, and the receiver has not
    /// acknowledged it since. Such a sender goes on sending what follows while its timer runs (IBTA 9.7.6.1.3).
    pub(in crate::psn) fn waits_since_its_retransmission(
        &self,
        at: u64,
        time: Nanos,
        rtt: Nanos,
        reordering: Nanos,
    ) -> bool {
        let least = SHORT_SILENCE.0.max(rtt.0 * 8).max(reordering.0 * 4);
        let is_alone = self.run.start == at && self.run.end <= at + 1;
        self.run_by_nak && is_alone && time.since(self.run_begin).0 >= least
    }

    /// A packet that seems to answer a NAK came `took` after it, and no packet comes late: the sender takes no less for the next one.
    pub(in crate::psn) fn seems_answered(&mut self, took: Nanos) {
        if took < SHORT_SILENCE {
            self.longest_answer = self.longest_answer.max(took);
        }
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
            self.held = self.held.max(request.time.since(self.progress));
        }
        match trigger {
            Trigger::Nak => {
                if let Some(nak) = self.nak_for(at, request.time) {
                    let took = request.time.since(nak.time);
                    let is_shortest = self.shortest_answer.0 == 0 || took < self.shortest_answer;
                    if repeats && nak.at == at && is_shortest {
                        self.shortest_answer = took;
                    }
                    // One that takes much longer than any before may have been lost on its way, and answered by the next. A run that
                    // begins behind the PSN of the NAK may be the rest of one whose first packets were lost.
                    let is_known = took < SHORT_SILENCE || self.longest_answer.0 != 0;
                    if is_known && took < MIN_TIMEOUT && nak.at == at {
                        self.longest_answer = self.longest_answer.max(took);
                        self.unreported = self.unreported.saturating_add(1);
                    }
                    self.latest_answer = took;
                    self.answered = nak.at;
                }
            }
            Trigger::Timeout => {
                if self.run_by_nak && self.run_requests_ack && self.run.start == at && self.acked == at {
                    let before = self.lost_again.filter(|(psn, _)| psn.get() == at);
                    let times = before.map_or(0, |(_, times)| times) + 1;
                    self.lost_again = NonZeroU64::new(at).map(|psn| (psn, times));
                    self.has_lost_again = true;
                }
                let waited = self.waited(request);
                self.timer = if !is_sure && waited < MIN_TIMEOUT {
                    self.timer
                } else if self.timer.0 == 0 {
                    waited
                } else {
                    self.timer.min(waited)
                };
            }
            _ => {}
        }
        self.answer_notes(at);
        self.run_by_nak = trigger == Trigger::Nak || self.run_by_nak && self.run.start == at;
        // A run that answers a younger NAK is still on its way, by slower paths than this one's first packet.
        let (time, shortest) = (request.time, self.shortest_answer);
        let is_early = |nak: &NakRecord| !is_sure && is_much_shorter(time.since(nak.time), shortest);
        let answered_naks = &mut self.answered_naks;
        self.naks.retain(|nak| {
            let stays = !nak.explains(at) || is_early(nak);
            if !stays {
                if answered_naks.len() == MAX_NAKS {
                    answered_naks.pop_front();
                }
                answered_naks.push_back(AnsweredNak {
                    nak: *nak,
                    began_there: nak.at == at,
                });
            }
            stays
        });
        self.rnr = self.rnr.filter(|rnr| !rnr.explains(at));
        self.run_requests_ack = false;
        self.run = at..at;
        self.run_begin = request.time;
    }

    /// At `time` the sender has gone on after a run that a NAK made it begin. Another NAK for what the run retransmitted would have
    /// made it fall back by then, if it came after that.
    pub(in crate::psn) fn forget_answered_naks(&mut self, time: Nanos) {
        let (run, answer) = (&self.run, self.latest_answer);
        if answer.0 == 0 {
            // The NAK came before the other direction was known: nobody knows how long an answer takes.
            return;
        }
        self.naks
            .retain(|nak| !run.contains(&nak.at) || time.since(nak.time).0 < answer.0 * 2);
    }

    /// The run has come to `end`.
    pub(in crate::psn) fn extend_run(&mut self, end: u64) {
        self.run.end = self.run.end.max(end);
    }
}
