//! What the other direction's answers say of a flow's requests: how far they are acknowledged, which PSN the receiver
//! waits for, why the sender falls back. How long answers take is left to `times`.

use std::collections::VecDeque;

use roce_model::Nanos;
use roce_wire::Psn;

use super::runs::Recovery;
use super::{LARGEST_GAP, Request, Requests, SILENCE, STALE, Tracker};
use crate::holes::Fate;

/// Why a sender fell back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trigger {
    /// A sequence NAK.
    Nak,
    /// READ responses were missing, or came out of their order.
    ImpliedNak,
    /// An RNR NAK, after its timer.
    Rnr,
    /// Nothing came for as long as the sender's timer.
    Timeout,
    /// Nothing that was captured explains it.
    Unknown,
}

impl Trigger {
    /// The word in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nak => "nak",
            Self::ImpliedNak => "implied_nak",
            Self::Rnr => "rnr",
            Self::Timeout => "timeout",
            Self::Unknown => "unknown",
        }
    }
}

/// A sender answers a NAK within its timeouts: within a second.
const WINDOW: Nanos = Nanos(Nanos::SECOND);
/// So far behind the PSN of a NAK the run that answers it may seem to begin: its first packets may be lost, too.
pub(crate) const REACH: u64 = 1024;
/// A NAK is not what made the sender fall back when that took so many times longer than after any NAK before, and no less
/// than a timeout: it never reached the sender.
const MUCH_LONGER: u64 = 8;
/// What the longest way from a NAK to its run is taken for while there was none.
pub(super) const LONGEST_ANSWER: Nanos = Nanos(1_000_000);
/// NAKs remembered that no run has answered. A receiver sends one for each gap that it sees; few are under way at once.
const MOST_NAKS: usize = 4;

/// A PSN that the receiver asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: u64,
    time: Nanos,
    /// RNR NAK: not before this time is over.
    timer: Nanos,
    /// What it asks for was under way.
    overtaken: bool,
}

impl Asked {
    fn explains(self, at: u64) -> bool {
        (self.at..self.at + REACH).contains(&at)
    }
}

/// What a NAK says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NakSays {
    /// Nothing that was not known: it was overtaken, or came twice.
    Nothing,
    /// The receiver waits for a PSN that it could have had from what this tap saw.
    CouldHaveIt,
    /// The receiver waits for a PSN that it could not have had, or not in its place.
    WaitsFor,
}

/// What is known of a flow's requests from the answers to them. What an ACK needs stands in front.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Answers {
    /// All before this PSN is acknowledged; 0: nothing was yet.
    acked: u64,
    /// When that last advanced.
    progress: Nanos,
    /// The PSN that the receiver waits for, as far as the requests seen here tell it; 0: for the next new one.
    expects: u64,
    /// ACKs that acknowledged nothing new.
    duplicates: u64,
    rnr: Option<Asked>,
    /// The latest sequence NAKs that no run has answered yet, in their order; those acknowledged since may still be on
    /// their way to the sender.
    naks: VecDeque<Asked>,
    /// The latest PSNs that came late: a NAK that was sent before does not mean that they were lost.
    late: core::ops::Range<u64>,
    /// The PSN last counted as lost downstream, until it is sent again.
    downstream: u64,
    /// The latest run: its PSNs so far, and its begin.
    run: core::ops::Range<u64>,
    run_begin: Nanos,
    /// The shortest time that a timeout took; 0: there was none.
    timer: Nanos,
    /// The longest time from a NAK to the run that answered it.
    longest_answer: Nanos,
    /// The latest one, and the PSN that the NAK asked for; 0: there was none.
    latest_answer: Nanos,
    answered: u64,
    /// When the first PSNs were acknowledged.
    begin: Nanos,
}

impl Answers {
    /// All before this PSN is acknowledged; 0: nothing was yet.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    /// ACKs that acknowledged nothing new.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// For how long, at `time`, something has been acknowledged.
    pub(super) fn acknowledges_for(&self, time: Nanos) -> Nanos {
        time.since(self.begin)
    }

    /// When the acknowledged PSN last advanced.
    pub(crate) fn progress(&self) -> Nanos {
        self.progress
    }

    /// All before `psn` is acknowledged; says whether that is new.
    fn acknowledge(&mut self, psn: u64, next: u64, time: Nanos) -> bool {
        if psn <= self.acked {
            return false;
        }
        if self.acked == 0 {
            self.begin = time;
        }
        self.acked = psn;
        self.progress = time;
        match self.expects {
            0 => {}
            // It has that, perhaps because it was only late: what came after, it may have dropped.
            expects if psn == expects || psn == expects + 1 => self.wait_for(psn, next),
            // More than that: it keeps what comes out of order, or a resend was not captured.
            expects if psn > expects => self.expects = 0,
            _ => {}
        }
        if self.rnr.is_some_and(|rnr| rnr.at < psn) {
            self.rnr = None;
        }
        true
    }

    fn wait_for(&mut self, psn: u64, next: u64) {
        self.expects = if psn < next { psn } else { 0 };
    }

    /// A sequence NAK for `psn`. `selective`: the receiver keeps what comes out of order. `rtt`: the shortest time that
    /// an answer took; 0: not known.
    fn nak(&mut self, psn: u64, next: u64, time: Nanos, selective: bool, rtt: Nanos) -> NakSays {
        if psn < self.acked {
            return NakSays::Nothing;
        }
        let again = self.naks.iter().any(|nak| nak.at == psn);
        if self.naks.len() == MOST_NAKS {
            self.naks.pop_front();
        }
        // Sent before the resend could reach the receiver: only the sender may make something of it.
        let overtaken = self.run.contains(&psn) && time.since(self.run_begin) < rtt;
        self.naks.push_back(Asked {
            at: psn,
            time,
            timer: Nanos(0),
            overtaken,
        });
        if overtaken {
            return NakSays::Nothing;
        }
        let expected = if self.expects == 0 {
            next
        } else {
            // What it waited for may have come late, and what followed on that was dropped.
            self.expects.max(psn)
        };
        self.acknowledge(psn, next, time);
        self.wait_for(psn, next);
        if psn >= next || self.late.contains(&psn) {
            return NakSays::WaitsFor;
        }
        let new = if selective {
            psn != self.downstream
        } else {
            psn < expected
        };
        match (new, again) {
            (true, _) => NakSays::CouldHaveIt,
            (false, true) => NakSays::Nothing,
            (false, false) => NakSays::WaitsFor,
        }
    }

    /// A packet was captured and asked for: it counts once, until it is sent again.
    fn count_downstream(&mut self, psn: u64) {
        self.downstream = psn;
    }

    /// The receiver had no buffer for `psn`, and asks for it after `timer`.
    fn rnr(&mut self, psn: u64, next: u64, time: Nanos, timer: Nanos) -> bool {
        if psn < self.acked {
            return false;
        }
        self.acknowledge(psn, next, time);
        self.rnr = Some(Asked {
            at: psn,
            time,
            timer,
            overtaken: false,
        });
        self.wait_for(psn, next);
        true
    }

    /// PSNs were jumped over.
    pub(super) fn gap(&mut self, first: u64) {
        if self.expects == 0 {
            self.expects = first;
        }
    }

    /// Whether the receiver waits for a PSN before `psn`, so that it does not take what comes behind.
    pub(super) fn waits_before(&self, psn: u64) -> bool {
        self.expects != 0 && self.expects < psn
    }

    /// The PSN that a NAK asked for last, when it is not acknowledged and no run answered yet.
    pub(super) fn asked_for(&self) -> Option<u64> {
        let asks = |nak: &&Asked| !nak.overtaken && nak.at >= self.acked;
        self.naks.back().filter(asks).map(|nak| nak.at)
    }

    /// Whether a NAK after `time` may make the sender fall back to `at`.
    pub(super) fn asked_since(&self, at: u64, time: Nanos) -> bool {
        self.naks.iter().any(|nak| nak.explains(at) && nak.time > time)
    }

    /// The latest NAK that may make the sender fall back to `at` at `time`.
    fn nak_for(&self, at: u64, time: Nanos) -> Option<Asked> {
        let may = |nak: &&Asked| {
            // What arrived after all is not asked for again, but the sender knows only when the acknowledgement comes.
            let window = if nak.overtaken || nak.at < self.acked {
                LONGEST_ANSWER
            } else {
                WINDOW
            };
            nak.explains(at) && time.since(nak.time) <= window
        };
        self.naks.iter().rev().find(may).copied()
    }

    /// For how long, at `time`, the NAK has been there that may make the sender fall back to `at`.
    pub(super) fn waited_since_asked(&self, at: u64, time: Nanos) -> Option<Nanos> {
        self.nak_for(at, time).map(|nak| time.since(nak.time))
    }

    /// Packets that are behind the highest fill the PSNs `first..end`: the receiver takes them when it waits for them.
    pub(super) fn behind(&mut self, first: u64, end: u64, next: u64) {
        if self.expects != 0 && (first..end).contains(&self.expects) {
            self.wait_for(end, next);
        }
        if (first..end).contains(&self.downstream) {
            self.downstream = 0;
        }
    }

    /// The PSNs `first..end` came late. `missing`: the first PSN that is still missing.
    pub(super) fn late(&mut self, first: u64, end: u64, missing: Option<u64>) {
        self.late = first..end;
        // Nobody asked for them, or for what came before: the receiver keeps what comes out of order.
        let mut asked = self.naks.iter().map(|nak| nak.at).chain([self.answered]);
        let asked = asked.any(|at| (first..end).contains(&at));
        if !asked && self.asked_for().is_none() && self.rnr.is_none() {
            self.expects = missing.unwrap_or(0);
        }
    }

    /// Why the sender falls back to `at` with `request`.
    pub(super) fn trigger(&self, at: u64, request: &Request) -> Trigger {
        let waited = |asked: Asked| request.time.since(asked.time);
        let rnr = self.rnr.filter(|rnr| rnr.explains(at));
        let nak = self.nak_for(at, request.time);
        let timer_over = rnr.is_some_and(|rnr| waited(rnr).0 >= rnr.timer.0 / 4 * 3);
        if timer_over {
            return Trigger::Rnr;
        }
        if let Some(nak) = nak {
            let much_longer = match self.longest_answer.0 {
                0 => LONGEST_ANSWER.0 * MUCH_LONGER,
                longest => LONGEST_ANSWER.0.max(longest * MUCH_LONGER),
            };
            let as_a_timeout = waited(nak).0 >= self.timer.0 / 4 * 3;
            return if as_a_timeout && waited(nak).0 >= much_longer {
                Trigger::Timeout
            } else {
                Trigger::Nak
            };
        }
        if request.again == Again::Missing {
            return Trigger::ImpliedNak;
        }
        let waited = self.waited(request);
        // Half of the shortest one: timers are randomised.
        let least = SILENCE.0.max(self.timer.0 / 2).max(request.rtt.0 * 2);
        if waited.0 >= least {
            Trigger::Timeout
        } else if request.again == Again::Captured {
            Trigger::ImpliedNak
        } else {
            Trigger::Unknown
        }
    }

    /// For how long nothing had come when `request` was sent again: since the last progress, since the oldest request
    /// was sent, or since the last run began.
    fn waited(&self, request: &Request) -> Nanos {
        let since = self.progress.max(request.waiting_since).max(self.run_begin);
        if since.0 == 0 {
            request.silence
        } else {
            request.time.since(since)
        }
    }

    /// A run begins at `at` because of `trigger`: what asked for it is answered.
    pub(super) fn begin_run(&mut self, at: u64, request: &Request, trigger: Trigger) {
        match trigger {
            Trigger::Nak => {
                if let Some(nak) = self.nak_for(at, request.time) {
                    let took = request.time.since(nak.time);
                    self.longest_answer = self.longest_answer.max(took);
                    self.latest_answer = took;
                    self.answered = nak.at;
                }
            }
            Trigger::Timeout => {
                let waited = self.waited(request);
                self.timer = if self.timer.0 == 0 {
                    waited
                } else {
                    self.timer.min(waited)
                };
            }
            _ => {}
        }
        self.naks.retain(|nak| !nak.explains(at));
        self.rnr = self.rnr.filter(|rnr| !rnr.explains(at));
        self.run = at..at;
        self.run_begin = request.time;
    }

    /// At `time` the sender has gone on after a run that a NAK made it begin. Another NAK for what the run sent again would have
    /// made it fall back by then, if it came after that.
    pub(super) fn forget_answered_naks(&mut self, time: Nanos) {
        let (run, answer) = (&self.run, self.latest_answer);
        self.naks
            .retain(|nak| !run.contains(&nak.at) || time.since(nak.time).0 < answer.0 * 2);
    }

    /// The run has come to `end`.
    pub(super) fn extend_run(&mut self, end: u64) {
        self.run.end = self.run.end.max(end);
    }
}

/// What is known of the responses that a request sent again asks for again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Again {
    /// It is no READ, or none of them was due or captured.
    #[default]
    Nothing,
    /// The first of them is missing.
    Missing,
    /// The first of them was captured.
    Captured,
}

/// What came of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Answered {
    /// It acknowledges something new.
    pub(crate) is_new: bool,
    /// The receiver asks for a packet that was captured.
    pub(crate) lost_downstream: bool,
}

impl Tracker {
    /// The other direction is known from now on.
    pub(crate) fn pair(&mut self) {
        self.paired = true;
        self.await_answers();
    }

    /// Makes room for what the other direction says, once that is known and there was a request.
    pub(super) fn await_answers(&mut self) {
        if self.paired && self.begin != 0 {
            self.answers.get_or_insert_default();
        }
    }

    /// Whether the other direction is known.
    pub(crate) fn is_paired(&self) -> bool {
        self.paired
    }

    /// What the other direction says of the requests; `None` while it is not known, and without requests.
    pub(crate) fn answers(&self) -> Option<&Answers> {
        self.answers.as_deref()
    }

    /// Where `psn`, as an answer names it, is among the requests; `None` when it fits none of them.
    pub(crate) fn position(requests: &Requests, psn: Psn) -> Option<u64> {
        let ahead = psn.offset_from(requests.expected());
        if requests.next == 0 || ahead <= -STALE || ahead > LARGEST_GAP {
            return None;
        }
        requests.next.checked_add_signed(i64::from(ahead))
    }

    /// An answer shows that everything before `psn` arrived.
    pub(crate) fn acknowledge(&mut self, requests: &Requests, psn: u64, time: Nanos) -> Answered {
        let Some(answers) = &mut self.answers else {
            return Answered::default();
        };
        let is_new = answers.acknowledge(psn, requests.next, time);
        if let Some(holes) = &mut self.holes {
            if is_new {
                holes.cover(psn, time);
            }
            holes.decide_covered(time);
        }
        Answered {
            is_new,
            lost_downstream: false,
        }
    }

    /// The same for an ACK, which is for nothing else: one that says nothing new is counted.
    pub(crate) fn acknowledged(&mut self, requests: &Requests, psn: u64, time: Nanos) -> Answered {
        let answered = self.acknowledge(requests, psn, time);
        if let Some(answers) = self.answers.as_mut().filter(|_| !answered.is_new) {
            answers.duplicates += 1;
        }
        answered
    }

    /// A sequence NAK for `psn`: all before arrived. `rtt`: the shortest time that an answer took; 0: not known.
    pub(crate) fn nak(&mut self, requests: &Requests, psn: u64, time: Nanos, rtt: Nanos) -> Answered {
        let missing = self.is_missing(psn);
        let filled = self
            .undecided
            .as_ref()
            .map_or(self.refilled.end, |undecided| undecided.next);
        if !missing && psn < requests.next && psn == filled {
            // It has what was missing, and asks for what was captured behind that: it had not kept it. That says more than
            // runs do, whose ends may be lost.
            self.go_back_n += 4;
        }
        let selective = self.recovery() == Some(Recovery::Selective);
        // What is filling a hole right now may be late, and the NAK older.
        let filling = self.undecided.as_ref().is_some_and(|undecided| {
            undecided
                .filled
                .iter()
                .any(|part| (part.first..part.end).contains(&psn))
        });
        let (begin, next) = (self.begin, requests.next);
        let Some(answers) = &mut self.answers else {
            return Answered::default();
        };
        let before = answers.acked();
        let says = answers.nak(psn, next, time, selective, rtt);
        let lost_downstream = says == NakSays::CouldHaveIt && !missing && !filling && psn >= begin;
        if lost_downstream {
            answers.count_downstream(psn);
        }
        let is_new = answers.acked() > before;
        if let Some(holes) = self.holes.as_mut().filter(|_| says != NakSays::Nothing) {
            holes.cover(psn, time);
            holes.decide_at(psn, Fate::NetworkLost);
        }
        Answered {
            is_new,
            lost_downstream,
        }
    }

    /// An RNR NAK for `psn`: all before arrived, and it, too.
    pub(crate) fn rnr(&mut self, requests: &Requests, psn: u64, time: Nanos, timer: Nanos) -> Answered {
        let Some(answers) = &mut self.answers else {
            return Answered::default();
        };
        let before = answers.acked();
        let is_new = answers.rnr(psn, requests.next, time, timer);
        if let Some(holes) = self.holes.as_mut().filter(|_| is_new) {
            holes.cover(psn + 1, time);
        }
        Answered {
            is_new: self.answers().is_some_and(|answers| answers.acked() > before),
            lost_downstream: false,
        }
    }
}
