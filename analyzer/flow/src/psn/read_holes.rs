//! READs whose two directions are known: which responses are due, which are missing, and whether they are asked for
//! again. PSNs are the requester's, counted on past their 24 bits.

use std::collections::VecDeque;

use roce_model::Nanos;

use crate::psn::holes::{DecidedHole, LossClass};
use crate::psn::request::Again;

/// READs remembered that are not answered. Adapters allow 16 at once to a queue pair, few as many as this.
const MAX_READS: usize = 128;
/// Holes remembered; the oldest is forgotten.
const MAX_READ_HOLES: usize = 64;
/// A requester that misses a response asks again before it goes on. New requests may be under way by then; those sent
/// after the answer to one that was sent after the gap are certainly later: two rounds.
const ROUNDS: u8 = 2;

/// Missing responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResponseHole {
    first: u64,
    end: u64,
    time: Nanos,
    /// An answer to this PSN ends a round.
    until: u64,
    rounds: u8,
    decided: bool,
}

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
    /// Responses before this one may have been missing in a hole that was forgotten.
    forgotten_to: u64,
    decided: Vec<DecidedHole>,
}

/// What a READ that is sent again after a silence shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Silence {
    /// Nothing: its responses are not due, or came.
    Nothing,
    /// No response to it came.
    Unanswered,
    /// The responses from the first PSN up to the second one never came, after others of the same READ had.
    Tail(u64, u64),
}

/// What a READ response shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// It belongs to a READ that is known: these responses are missing before it, from first to one past the last.
    Missing(Vec<(u64, u64)>),
    /// It belongs to no READ that is known.
    Unknown,
}

impl Reads {
    /// A READ was sent for the first time; without `end`, nothing tells how many responses it has.
    pub(crate) fn asked(&mut self, first: u64, end: Option<u64>) {
        if self.next == 0 {
            (self.begin, self.next) = (first, first);
        }
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

    /// What is known of the response with `psn`, for which a READ asks again.
    pub(crate) fn again(&self, psn: u64) -> Again {
        if self.hole_with(psn).is_some() {
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
    pub(crate) fn never_came(&mut self, psn: u64, time: Nanos) -> Silence {
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
            decided: true,
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

    /// A READ asks again, from `psn` on. `begins`: with it the requester falls back; otherwise it repeats what follows
    /// on something earlier.
    pub(crate) fn asked_again(&mut self, psn: u64, begins: bool) {
        for at in 0..self.holes.len() {
            let hole = self.holes[at];
            if !begins {
                if hole.end > psn {
                    self.decide(at, LossClass::Ambiguous);
                }
            } else if hole.end <= psn {
                // What is not asked for had arrived.
                self.decide(at, LossClass::CaptureLost);
            } else if hole.first > psn {
                // The requester waited for an earlier one.
                self.decide(at, LossClass::Ambiguous);
            } else {
                if hole.first < psn && !hole.decided {
                    self.decided
                        .push(decided(&hole, hole.first, psn, LossClass::CaptureLost));
                    self.holes[at].first = psn;
                }
                self.decide(at, LossClass::NetworkLost);
            }
        }
    }

    fn decide(&mut self, at: usize, class: LossClass) {
        let hole = &mut self.holes[at];
        if !core::mem::replace(&mut hole.decided, true) {
            self.decided.push(decided(hole, hole.first, hole.end, class));
        }
    }

    /// A READ response with `psn` at `time`; requests before `sent` have been sent.
    pub(crate) fn response(&mut self, psn: u64, time: Nanos, sent: u64) -> Judged {
        self.round(psn, sent);
        if psn < self.begin {
            // Of a READ from before the two directions were known.
            return Judged::Unknown;
        }
        if psn < self.next {
            self.fill(psn);
            return Judged::Missing(Vec::new());
        }
        let is_due = self.due.iter().any(|(first, end)| (*first..*end).contains(&psn));
        let missing = self.advance(psn, time, sent);
        self.next = psn + 1;
        if is_due {
            Judged::Missing(missing)
        } else {
            Judged::Unknown
        }
    }

    /// Another answer, to all before `psn`: responses that were due before are missing.
    pub(crate) fn passed(&mut self, psn: u64, time: Nanos, sent: u64) -> Vec<(u64, u64)> {
        self.round(psn.saturating_sub(1), sent);
        if psn <= self.next {
            return Vec::new();
        }
        let missing = self.advance(psn, time, sent);
        self.next = psn;
        missing
    }

    /// Responses that were due between the last one and `psn`.
    fn advance(&mut self, psn: u64, time: Nanos, sent: u64) -> Vec<(u64, u64)> {
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
        for (first, end) in &missing {
            self.holes.push(ResponseHole {
                first: *first,
                end: *end,
                time,
                until: sent,
                rounds: 0,
                decided: false,
            });
        }
        self.bound();
        missing
    }

    /// A missing response came after all.
    fn fill(&mut self, psn: u64) {
        let Some(at) = self.hole_with(psn) else { return };
        let hole = self.holes.remove(at);
        if !hole.decided {
            self.decided
                .push(decided(&hole, psn, psn + 1, LossClass::Reordered));
        }
        let left = [(hole.first, psn), (psn + 1, hole.end)];
        for (first, end) in left.into_iter().rev().filter(|(first, end)| first < end) {
            self.holes.insert(at, ResponseHole { first, end, ..hole });
        }
        self.bound();
    }

    fn bound(&mut self) {
        while self.holes.len() > MAX_READ_HOLES {
            let oldest = self.holes.remove(0);
            self.forgotten_to = self.forgotten_to.max(oldest.end);
            conclude(&oldest, &mut self.decided);
        }
    }

    /// An answer to `psn` passes.
    fn round(&mut self, psn: u64, sent: u64) {
        for at in 0..self.holes.len() {
            let hole = &mut self.holes[at];
            if !hole.decided && psn >= hole.until {
                hole.rounds += 1;
                hole.until = sent;
                if hole.rounds >= ROUNDS {
                    self.decide(at, LossClass::CaptureLost);
                }
            }
        }
    }

    /// The end: nothing more will be known.
    pub(crate) fn close(&mut self) {
        for hole in core::mem::take(&mut self.holes) {
            conclude(&hole, &mut self.decided);
        }
    }

    /// Missing responses of which it was decided since the last call what became of them.
    pub(crate) fn take_decided(&mut self) -> Vec<DecidedHole> {
        core::mem::take(&mut self.decided)
    }
}

const fn decided(hole: &ResponseHole, first: u64, end: u64, class: LossClass) -> DecidedHole {
    DecidedHole {
        first,
        end,
        time: hole.time,
        class,
    }
}

/// Nothing more will be known of a hole. One round is enough when no other follows.
fn conclude(hole: &ResponseHole, into: &mut Vec<DecidedHole>) {
    if !hole.decided {
        let class = if hole.rounds > 0 {
            LossClass::CaptureLost
        } else {
            LossClass::Unresolved
        };
        into.push(decided(hole, hole.first, hole.end, class));
    }
}
