//! Runs of packets sent again: where they begin and why, how far they come, what they say of the holes that they fill
//! and of the sender's way to recover.

use roce_model::Nanos;
use roce_wire::Psn;

use super::answers::Trigger;
use super::{Request, Tracker, psn_of};
use crate::holes::Fate;

/// How a sender recovers from a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Recovery {
    /// It sends everything again from the lost packet on.
    GoBackN,
    /// It sends what was lost: the receiver keeps what comes out of order.
    Selective,
}

impl Recovery {
    /// The word in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::GoBackN => "go_back_n",
            Self::Selective => "selective",
        }
    }
}

/// A run of packets sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The PSN that the sender fell back to.
    pub(crate) first: Psn,
    /// When.
    pub(crate) begin: Nanos,
    /// Packets in it.
    pub(crate) packets: u64,
    /// Why.
    pub(crate) trigger: Trigger,
    pub(super) next: u64,
    /// It repeats what had been captured.
    repeats: bool,
    /// It fills holes.
    pub(super) fills: bool,
}

impl Tracker {
    /// Adds a packet to the run, or begins one.
    pub(super) fn resend(&mut self, at: u64, span: u64, next: u64, request: &Request, fills: bool) {
        let continues = self.run.is_some_and(|run| at >= run.next);
        if !continues {
            self.end_run();
            let trigger = self.trigger(at, request);
            self.begin_run(at, request, trigger);
            if fills {
                let fate = self.fate_at_the_begin(at);
                self.holes.get_or_insert_default().decide_at(at, fate);
            }
        }
        if let Some(run) = &mut self.run {
            run.packets += 1;
            run.next = at + span;
            run.fills |= fills;
            run.repeats |= !fills;
        }
        if fills {
            let begin = if self.refilled.end == at {
                self.refilled.start
            } else {
                at
            };
            self.refilled = begin..at + span;
            self.refilled_at = request.time;
        }
        let fate = self.fate_within_a_run();
        if let Some(holes) = &mut self.holes {
            holes.decide_within(at..at + span, fate);
            holes.fill(at, at + span);
        }
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
            answers.extend_run(at + span);
        }
    }

    pub(super) fn begin_run(&mut self, at: u64, request: &Request, trigger: Trigger) {
        if let Some(answers) = &mut self.answers {
            answers.begin_run(at, request, trigger);
        }
        self.run = Some(Run {
            first: psn_of(at),
            begin: request.time,
            packets: 0,
            trigger,
            next: at,
            repeats: false,
            fills: false,
        });
    }

    /// What became of a hole at `at`, where a run begins.
    pub(super) fn fate_at_the_begin(&self, at: u64) -> Fate {
        match &self.answers {
            // The run may have begun there unseen.
            Some(answers) if answers.waits_before(at) => self.fate_within_a_run(),
            _ => Fate::NetworkLost,
        }
    }

    /// What became of a hole that a run fills which began before it.
    pub(super) fn fate_within_a_run(&self) -> Fate {
        if self.recovery() == Some(Recovery::Selective) {
            Fate::NetworkLost
        } else {
            Fate::Ambiguous
        }
    }

    pub(super) fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            self.ended.push(run);
        }
    }

    /// The sender goes on after a run, at `time`: it has no cause any more to answer older NAKs for what the run sent again.
    pub(super) fn forget_answered_naks(&mut self, time: Nanos) {
        let is_answer = self.run.is_some_and(|run| run.trigger == Trigger::Nak);
        if let Some(answers) = self.answers.as_mut().filter(|_| is_answer) {
            answers.forget_answered_naks(time);
        }
    }

    /// The sender goes on with `next`: how far its run came shows what it has to repeat.
    pub(super) fn end_run_before_new(&mut self, next: u64) {
        if let Some(run) = &self.run {
            let is_whole = run.next >= next;
            if is_whole && run.repeats && run.packets > 1 {
                self.go_back_n += 1;
            } else if !is_whole {
                // Nothing that was captured came again, or only what the NAK names; a run that did repeat lost its end.
                let only_fills = run.fills && !run.repeats;
                let only_named = run.packets == 1 && run.trigger == Trigger::Nak;
                self.selective += u32::from(only_fills || only_named);
            }
        }
        self.end_run();
    }

    /// Whether the last packet began a run.
    pub(crate) fn has_begun_a_run(&self) -> bool {
        self.run.is_some_and(|run| run.packets == 1)
    }

    /// How the sender recovers, as its runs show it.
    pub(crate) fn recovery(&self) -> Option<Recovery> {
        // One run that ends early may have lost its rest to the capture.
        match (self.go_back_n, self.selective) {
            (go_back_n, selective) if go_back_n > selective => Some(Recovery::GoBackN),
            (go_back_n, selective) if selective > go_back_n && selective > 1 => Some(Recovery::Selective),
            _ => None,
        }
    }
}
