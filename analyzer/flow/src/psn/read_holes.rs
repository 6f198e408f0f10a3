//! READs with both directions: which responses are due, missing, and requested again. PSNs are the requester's, beyond 24 bits.

use std::collections::VecDeque;

use roce_model::{Span, Time};

use crate::psn::acks::LONGEST_ANSWER;
use crate::psn::holes::{DecidedHole, LossClass};
use crate::psn::read_awaited::AwaitedResponse;
use crate::psn::read_hole::{RepairReads, ResponseHole, Stage};
use crate::psn::read_replay::{Replay, Response};
use crate::psn::request::Again;

/// READs remembered that are not answered. Adapters allow 16 at once to a queue pair, few as many as this.
const MAX_READS: usize = 128;
/// Answers that are remembered; the oldest is forgotten.
const MAX_ANSWERS: usize = 128;
/// Least time between two of them that are in order: a round trip through full queues has 128 of them.
const APART: Span = Span(500);
/// Holes remembered; the oldest is forgotten.
const MAX_READ_HOLES: usize = 128;
/// Rounds after which a requester that missed a response has asked again: requests that were in flight take the first.
const ROUNDS: u8 = 2;

/// The READs of one flow and the responses to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// READs of known span: first PSN and one past the last.
    due: VecDeque<(u64, u64)>,
    /// The first PSNs of the latest READs.
    begins: VecDeque<u64>,
    /// Responses before this PSN were judged; 0: no READ was seen.
    next: u64,
    /// The first PSN of the first READ.
    begin: u64,
    holes: Vec<ResponseHole>,
    /// The response that the requester waits for.
    awaited: AwaitedResponse,
    /// Responses that come once more, and the latest ones that did not.
    replay: Replay,
    lost_again: VecDeque<DecidedHole>,
    /// Some of the latest answers: PSN and time.
    answers: VecDeque<(u64, Time)>,
    /// The PSN of the latest one.
    latest_answer: u64,
    /// The responder answered the rest of a READ with a First. Soft-RoCE goes on with Middles (`rxe_resp.c`, `read_reply`).
    rests_begin_messages: bool,
    /// Responses before this one may have been missing in a hole that was forgotten.
    forgotten_to: u64,
    /// The latest READs that were retransmitted: what they requested, and when.
    requested_again: core::ops::Range<u64>,
    requested_again_at: Time,
    /// Some responses came late.
    is_reordered: bool,
    /// Packets between the flow's hosts came late.
    is_shuffled: bool,
    /// The latest response.
    latest: u64,
    /// Responses that came behind a later one, and READs that were retransmitted. A responder answers each READ in the order of PSNs (IBTA
    /// 9.7.5.1.9), so that responses step back once for each READ at the most, unless they overtake each other.
    steps_back: u32,
    sent_again: u32,
    decided: Vec<DecidedHole>,
}

/// The evidence of a READ that is retransmitted after a silence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Silence {
    /// Nothing: its responses are not due, or came.
    Nothing,
    /// No response to it came.
    Unanswered,
    /// The responses from the first PSN up to the second one never came, after others of the same READ had.
    Tail(u64, u64),
}

/// The evidence of a READ response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponseEvidence {
    /// It belongs to a READ that is known: these responses are missing before it, from first to one past the last.
    Missing(Vec<(u64, u64)>),
    /// It belongs to no READ that is known.
    Unknown,
}

impl Reads {
    /// A READ was sent for the first time; without `end`, nothing tells how many responses it has.
    pub(crate) fn requested(&mut self, first: u64, end: Option<u64>) {
        if self.next == 0 {
            (self.begin, self.next) = (first, first);
        }
        self.awaited.sent(first);
        if self.begins.len() == MAX_READS {
            self.begins.pop_front();
        }
        self.begins.push_back(first);
        let Some(end) = end else { return };
        if self.due.len() == MAX_READS
            && let Some((_, end)) = self.due.pop_front()
        {
            self.next = self.next.max(end);
        }
        self.due.push_back((first, end));
    }

    /// A READ was sent for the first time, before the other direction was known.
    pub(crate) fn begins_unpaired(&mut self, first: u64) {
        if self.begins.len() == MAX_READS {
            self.begins.pop_front();
        }
        self.begins.push_back(first);
    }

    /// True if a READ that begins at `psn` is the rest of one before it: it begins where no READ began, after one that did.
    fn is_rest(&self, psn: u64) -> bool {
        self.begins.front().is_some_and(|first| psn >= *first) && !self.begins.contains(&psn)
    }

    fn hole_with(&self, psn: u64) -> Option<usize> {
        self.holes
            .iter()
            .position(|hole| (hole.first..hole.end).contains(&psn))
    }

    /// True if no response with `psn` came.
    fn is_missing(&self, psn: u64) -> bool {
        let came = |stage| matches!(stage, Stage::Requested(RepairReads { responses: 1.., .. }));
        self.hole_with(psn).is_some_and(|at| !came(self.holes[at].stage))
    }

    /// The knowledge about the response with `psn`, which a READ requests again.
    pub(crate) fn again(&self, psn: u64) -> Again {
        if self.is_missing(psn) {
            Again::Missing
        } else if (self.begin..self.next).contains(&psn) {
            // READs from before the other direction was known are not listed.
            let is_unlisted = self.begins.front().is_none_or(|first| psn < *first);
            if is_unlisted || self.begins.contains(&psn) {
                Again::Whole
            } else if psn < self.forgotten_to {
                Again::Rest
            } else {
                Again::Captured
            }
        } else if self.is_rest(psn) && (self.next == 0 || psn < self.begin) {
            Again::Rest
        } else {
            Again::Nothing
        }
    }

    /// The requester falls back to `psn` after a silence: responses that were due from there on never came. Says which ones
    /// are missing; nothing when the READ at `psn` has had no response at all, or all of them.
    pub(crate) fn never_came(&mut self, psn: u64, time: Time) -> Silence {
        let due = self.due.iter().find(|(first, end)| (*first..*end).contains(&psn));
        let Some((first, end)) = due.copied().filter(|_| psn >= self.next) else {
            return Silence::Nothing;
        };
        if psn == first {
            return Silence::Unanswered;
        }
        self.holes.push(ResponseHole {
            first: psn,
            end,
            time,
            until: u64::MAX,
            rounds: 0,
            stage: Stage::Decided,
            may_have_come: false,
        });
        self.decided.push(DecidedHole {
            first: psn,
            end,
            time,
            class: LossClass::NetworkLost,
        });
        self.next = end;
        self.bound();
        Silence::Tail(psn, end)
    }

    /// The responses from `first` up to `end` were seen to be missing when the other direction was not known yet: at `time` at the latest.
    /// `may_have_come`: they may have come before.
    pub(crate) fn were_missing(&mut self, first: u64, end: u64, may_have_come: bool, time: Time) {
        let is_known = self.begin != 0 && self.begin <= first;
        if is_known || self.holes.iter().any(|hole| hole.first < end && first < hole.end) {
            return;
        }
        self.holes.push(ResponseHole {
            first,
            end,
            time,
            until: u64::MAX,
            rounds: 0,
            stage: Stage::Open,
            may_have_come,
        });
        self.bound();
    }

    /// A READ came once more, and nobody knows why: responses come once more that the requester did not ask for.
    pub(crate) fn came_again(&mut self) {
        self.replay = Replay::default();
    }

    /// True if responses may have overtaken each other: one that is missing may still come.
    fn may_be_late(&self) -> bool {
        self.is_reordered || self.is_shuffled || self.steps_back > self.sent_again
    }

    /// Packets between the flow's hosts came late: responses come once more in any order.
    pub(crate) fn are_shuffled(&mut self) {
        self.is_shuffled = true;
    }

    /// A READ asks again at `time`, from `psn` up to `end`. `begins`: with it the requester falls back; otherwise it repeats what
    /// follows on something earlier.
    pub(crate) fn requested_again(&mut self, psn: u64, end: u64, begins: bool, time: Time) {
        if begins && let Some(lost) = self.replay.begin(psn) {
            self.keep_lost_again(lost);
        }
        self.sent_again += 1;
        let goes_on = !begins && self.requested_again.contains(&psn.saturating_sub(1));
        self.requested_again = if goes_on { self.requested_again.start } else { psn }..end;
        self.requested_again_at = time;
        for at in 0..self.holes.len() {
            let hole = self.holes[at];
            let is_asked = hole.first < end && hole.end > psn;
            let requested = RepairReads {
                from: u64::MAX,
                reads: u32::from(is_asked),
                responses: 0,
                at: time,
                class: LossClass::Ambiguous,
            };
            match hole.stage {
                Stage::Requested(before) if is_asked => {
                    // A requester that goes back to it has all before, and not this.
                    let is_first = begins && psn == hole.first && before.responses == 0;
                    self.holes[at].stage = Stage::Requested(RepairReads {
                        from: if psn == before.from { psn } else { u64::MAX },
                        reads: before.reads + 1,
                        at: time,
                        class: if is_first { hole.class() } else { before.class },
                        ..before
                    });
                }
                Stage::Requested(_) | Stage::Decided => {}
                // Responses that were not requested had arrived.
                Stage::Open if begins && hole.end <= psn => self.decide(at, LossClass::CaptureLost),
                Stage::Open if hole.end <= psn => {}
                Stage::Open if begins && hole.first <= psn => {
                    if hole.first < psn {
                        self.report(&hole, hole.first..psn, LossClass::CaptureLost);
                    }
                    self.holes[at].first = psn;
                    self.holes[at].stage = Stage::Requested(RepairReads {
                        from: psn,
                        class: hole.class(),
                        ..requested
                    });
                }
                // The requester waited for an earlier one.
                Stage::Open => self.holes[at].stage = Stage::Requested(requested),
            }
        }
    }

    /// The requester falls back to `psn`, and the response to that was captured (`was_captured`). Says if it was lost behind the tap: see
    /// [`Reads::may_have_had`].
    pub(crate) fn falls_back(&mut self, psn: u64, was_captured: bool) -> bool {
        let is_lost = was_captured && self.may_have_had(psn);
        self.awaited.requested_again(psn, was_captured);
        is_lost
    }

    /// True if the requester may have had the response with `psn`, had it not been lost behind the tap. One that waited for an earlier
    /// response discarded it. Where responses overtake each other, it may have come before an earlier one there.
    pub(crate) fn may_have_had(&self, psn: u64) -> bool {
        !self.may_be_late() && self.awaited.may_have_had(psn)
    }

    /// An answer to `psn` came at `time`. In the order of PSNs some are enough.
    fn note_answer(&mut self, psn: u64, time: Time) {
        let is_next = core::mem::replace(&mut self.latest_answer, psn) + 1 == psn;
        let latest = self.answers.back().map_or(Time(0), |(_, latest)| *latest);
        if is_next && time.since(latest) < APART {
            return;
        }
        if self.answers.len() == MAX_ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back((psn, time));
    }

    /// When an answer to something behind `psn` came first while the requester waited for that: since the latest answer to something before,
    /// and since it last asked for it. 0: none did, as far as answers are remembered.
    pub(crate) fn first_beyond(&self, psn: u64) -> Time {
        let asked = if self.requested_again.contains(&psn) {
            self.requested_again_at
        } else {
            Time(0)
        };
        let is_before = |(at, time): &(u64, Time)| *at < psn || *time <= asked;
        let begin = self.answers.iter().rposition(is_before).map_or(0, |at| at + 1);
        let mut since = self.answers.range(begin..);
        since.find(|(at, _)| *at > psn).map_or(Time(0), |(_, time)| *time)
    }

    /// Responses, since the last call, that were overtaken behind the tap: requested again, and taken although they did not come
    /// once more.
    pub(crate) fn take_overtaken(&mut self) -> u64 {
        self.awaited.take_overtaken()
    }

    fn decide(&mut self, at: usize, class: LossClass) {
        let hole = self.holes[at];
        self.holes[at].stage = Stage::Decided;
        if hole.stage != Stage::Decided {
            self.report(&hole, hole.first..hole.end, class);
        }
    }

    /// Reports what became of missing responses; neighbours that share one end are one.
    fn report(&mut self, hole: &ResponseHole, psns: core::ops::Range<u64>, class: LossClass) {
        match self.decided.last_mut() {
            Some(last) if last.end == psns.start && (last.time, last.class) == (hole.time, class) => {
                last.end = psns.end;
            }
            _ => self.decided.push(DecidedHole {
                first: psns.start,
                end: psns.end,
                time: hole.time,
                class,
            }),
        }
    }

    /// Keeps responses that did not come once more, until packets that come late would have shown.
    fn keep_lost_again(&mut self, lost: DecidedHole) {
        let mut is_known = false;
        for hole in &mut self.holes {
            if hole.stage == Stage::Open && hole.first < lost.end && lost.first < hole.end {
                hole.may_have_come = false;
                is_known = true;
            }
        }
        if is_known {
            return;
        }
        if self.lost_again.len() == MAX_READ_HOLES {
            self.lost_again.pop_front();
        }
        self.lost_again.push_back(lost);
    }

    /// Responses, since the last call, that were requested again, and lost once more; `now` is `None` at the end, when nothing more will be known.
    pub(crate) fn take_lost_again(&mut self, now: Option<Time>) -> Vec<DecidedHole> {
        let is_over = |lost: &&DecidedHole| now.is_none_or(|now| now.since(lost.time) >= LONGEST_ANSWER);
        let over = self.lost_again.iter().take_while(is_over).count();
        // Where packets come late, one that was jumped over still comes.
        let is_lost = !self.may_be_late();
        let lost = self.lost_again.drain(..over);
        lost.filter(|_| is_lost).collect()
    }

    /// Decides what was requested again so long before `time` that a response which was only late has come since.
    fn settle(&mut self, time: Time) {
        let mut at = 0;
        while let Some(hole) = self.holes.get(at) {
            match hole.stage {
                Stage::Requested(requested) if time.since(requested.at) >= LONGEST_ANSWER => {
                    // READs that were lost behind the tap bring no response, nor do those that a responder discards behind a late request:
                    // where packets come late, a count alone proves no loss.
                    let class = if self.may_be_late() {
                        LossClass::Unresolved
                    } else {
                        requested.class
                    };
                    self.decide(at, class);
                    if requested.responses > 0 {
                        self.holes.remove(at);
                        continue;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// A READ response with `psn` at `time`; requests before `sent` have been sent. `is_first`: it begins a message; `is_last`: it ends one.
    pub(crate) fn response(
        &mut self,
        psn: u64,
        is_first: bool,
        is_last: bool,
        time: Time,
        sent: u64,
    ) -> ResponseEvidence {
        self.settle(time);
        self.round(psn, sent);
        let next = if is_last {
            self.begins.iter().copied().find(|begin| *begin > psn)
        } else {
            Some(psn + 1)
        };
        self.awaited.came(psn, next, sent);
        self.note_answer(psn, time);
        if psn < self.begin {
            // The READ is from before the two directions were known.
            return ResponseEvidence::Unknown;
        }
        self.steps_back += u32::from(psn < self.latest);
        self.latest = psn;
        if psn < self.next {
            let begin = self.begins.iter().rev().copied().find(|begin| *begin <= psn);
            let ends = self
                .begins
                .iter()
                .copied()
                .find(|begin| *begin > self.replay.expected());
            let response = Response {
                psn,
                is_first,
                is_last,
                next,
                begin,
                time,
            };
            self.replay.came(response, self.next, ends.or(Some(self.next)));
        } else {
            self.replay.came_new(psn);
        }
        if psn < self.next {
            self.fill(psn, is_first);
            return ResponseEvidence::Missing(Vec::new());
        }
        let is_due = self.due.iter().any(|(first, end)| (*first..*end).contains(&psn));
        let missing = self.advance(psn, time, sent);
        self.next = psn + 1;
        if is_due {
            ResponseEvidence::Missing(missing)
        } else {
            ResponseEvidence::Unknown
        }
    }

    /// Another answer, to all before `psn`: responses that were due before are missing.
    pub(crate) fn passed(&mut self, psn: u64, time: Time, sent: u64) -> Vec<(u64, u64)> {
        self.settle(time);
        self.round(psn.saturating_sub(1), sent);
        self.note_answer(psn.saturating_sub(1), time);
        if psn <= self.next {
            return Vec::new();
        }
        let missing = self.advance(psn, time, sent);
        self.next = psn;
        missing
    }

    /// Responses that were due between the last one and `psn`.
    fn advance(&mut self, psn: u64, time: Time, sent: u64) -> Vec<(u64, u64)> {
        let mut missing: Vec<(u64, u64)> = Vec::new();
        while let Some((first, end)) = self.due.front().copied().filter(|(first, _)| *first < psn) {
            let (from, to) = (first.max(self.next), end.min(psn));
            if from < to {
                match missing.last_mut() {
                    Some(last) if last.1 == from => last.1 = to,
                    _ => missing.push((from, to)),
                }
            }
            if end > psn + 1 {
                break;
            }
            self.due.pop_front();
        }
        let is_recent = time.since(self.requested_again_at) < LONGEST_ANSWER;
        for (first, end) in &missing {
            // Responses to a READ that was retransmitted before they were seen to be missing are still in flight.
            let was_asked = is_recent && self.requested_again.contains(first);
            let requested = RepairReads {
                from: u64::MAX,
                reads: 1,
                responses: 0,
                at: self.requested_again_at,
                class: LossClass::Ambiguous,
            };
            self.holes.push(ResponseHole {
                first: *first,
                end: *end,
                time,
                until: sent,
                rounds: 0,
                stage: if was_asked {
                    Stage::Requested(requested)
                } else {
                    Stage::Open
                },
                may_have_come: false,
            });
        }
        self.bound();
        missing
    }

    /// A missing response came after all, or one that was requested again.
    fn fill(&mut self, psn: u64, is_first: bool) {
        let Some(at) = self.hole_with(psn) else { return };
        let hole = self.holes.remove(at);
        let mut kept = None;
        let is_late = match hole.stage {
            Stage::Open => true,
            Stage::Decided => false,
            Stage::Requested(requested) => {
                let responses = requested.responses + 1;
                let begins_read = psn == requested.from;
                self.rests_begin_messages |= begins_read && is_first && self.is_rest(psn);
                let is_other = begins_read && !is_first && self.rests_begin_messages;
                let is_late = is_other || responses > requested.reads;
                if !is_late {
                    kept = Some(ResponseHole {
                        first: psn,
                        end: psn + 1,
                        stage: Stage::Requested(RepairReads {
                            responses,
                            ..requested
                        }),
                        ..hole
                    });
                }
                is_late
            }
        };
        if is_late {
            self.is_reordered = true;
            self.report(&hole, psn..psn + 1, LossClass::Reordered);
        }
        let before = (hole.first < psn).then_some(ResponseHole { end: psn, ..hole });
        let after = (psn + 1 < hole.end).then_some(ResponseHole {
            first: psn + 1,
            ..hole
        });
        for part in [after, kept, before].into_iter().flatten() {
            self.holes.insert(at, part);
        }
        self.bound();
    }

    fn bound(&mut self) {
        while self.holes.len() > MAX_READ_HOLES {
            let oldest = self.holes.remove(0);
            self.forgotten_to = self.forgotten_to.max(oldest.end);
            self.conclude(&oldest);
        }
    }

    /// An answer to `psn` passes.
    fn round(&mut self, psn: u64, sent: u64) {
        for at in 0..self.holes.len() {
            let hole = &mut self.holes[at];
            if hole.stage == Stage::Open && psn >= hole.until {
                hole.rounds += 1;
                hole.until = sent;
                if hole.rounds >= ROUNDS {
                    self.decide(at, LossClass::CaptureLost);
                }
            }
        }
    }

    /// The end: nothing more will be known. `others_late`: packets of other flows between the hosts came late.
    pub(crate) fn close(&mut self, others_late: bool) {
        self.is_reordered |= others_late;
        for hole in core::mem::take(&mut self.holes) {
            self.conclude(&hole);
        }
    }

    /// Nothing more will be known of a hole. One round is enough when no other follows. Where responses come late, one that was requested
    /// again may be on its way.
    fn conclude(&mut self, hole: &ResponseHole) {
        let class = match hole.stage {
            Stage::Decided => return,
            Stage::Requested(requested) if !self.may_be_late() => requested.class,
            Stage::Open if hole.rounds > 0 => LossClass::CaptureLost,
            Stage::Open | Stage::Requested(_) => LossClass::Unresolved,
        };
        self.report(hole, hole.first..hole.end, class);
    }

    /// Missing responses of which it was decided since the last call what became of them.
    pub(crate) fn take_decided(&mut self) -> Vec<DecidedHole> {
        core::mem::take(&mut self.decided)
    }
}

#[cfg(test)]
mod tests;
