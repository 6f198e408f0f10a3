//! Verdicts on packets behind the highest PSN, once the packets that follow decide.
//!
//! Packets that fill a hole and that a NAK names wait for the sender's answer to that NAK: what comes once more was late before.
//! Several wait at once, because a receiver that keeps what comes out of order names one packet after the other.

use roce_model::Time;

use crate::psn::acks::LONGEST_ANSWER;
use crate::psn::cause::{Cause, MIN_TIMEOUT, Trigger};
use crate::psn::holes::{Hole, LossClass};
use crate::psn::request::{Request, SILENCE, psn_of};
use crate::psn::run::{Recovery, RetransmittedRun};
use crate::psn::tracker::Tracker;
use crate::psn::undecided::{BehindVerdict, Decision, PendingPackets};

/// Number of packets in order, all captured before, that show a fallback of the sender even if nothing shows
/// why. Copies that the network makes come one at a time.
pub(super) const FALLBACK: u64 = 3;

impl Tracker {
    /// Something else than the continuation of pending packets came, `next` being one past the highest PSN.
    pub(super) fn settle_pending(&mut self, next: u64, time: Time) {
        let Some(pending) = self.undecided.take_pending() else {
            return;
        };
        let judged = if pending.repeats {
            Some(self.judge_repeats(&pending, next))
        } else {
            self.judge_fills(&pending)
        };
        if let Some(judged) = judged {
            self.apply(pending, judged, false);
        } else {
            if let Some(oldest) = self.undecided.wait(pending) {
                self.decide_waiting(oldest);
            }
            self.settle_waiting(time);
        }
    }

    /// The verdict on packets that filled a hole; `None`: later packets may still show that they were late.
    pub(super) fn judge_fills(&self, pending: &PendingPackets) -> Option<BehindVerdict> {
        let Some(cause) = pending.cause else {
            // Where nothing else ever came late, and the sender does go back, a cause may have gone unseen.
            let may_be_retransmitted =
                self.answers.is_some() && !self.may_be_reordered() && self.runs.goes_back();
            return Some(if may_be_retransmitted {
                BehindVerdict::Unknown
            } else {
                BehindVerdict::Late
            });
        };
        match cause.trigger {
            // A NAK is one of the possible causes: either it or a timer after it made the sender retransmit
            // this.
            Trigger::Nak | Trigger::Unknown if cause.exact => {
                self.comes_before_answers(pending).then_some(BehindVerdict::Late)
            }
            // Without what was captured between: a sender that falls back would have repeated that.
            Trigger::Nak if self.may_be_reordered() => Some(BehindVerdict::Late),
            Trigger::Rnr | Trigger::ImpliedNak | Trigger::Nak => Some(BehindVerdict::Retransmitted),
            // A sender that was seen to go back does so, and nothing else ever came late.
            Trigger::Timeout if cause.certain || self.runs.goes_back() && !self.may_be_reordered() => {
                Some(BehindVerdict::Retransmitted)
            }
            _ if pending.begin.flow.silence.0 <= self.reordering.bound().0.saturating_mul(2) => {
                Some(BehindVerdict::Late)
            }
            _ => Some(BehindVerdict::Unknown),
        }
    }

    /// The verdict on packets that had been captured before, and after which the sender did not go on to repeat.
    pub(super) fn judge_repeats(&mut self, pending: &PendingPackets, next: u64) -> BehindVerdict {
        let reaches_the_end = pending.next >= next;
        let has_nak = pending
            .cause
            .is_some_and(|cause| matches!(cause.trigger, Trigger::Nak | Trigger::Rnr | Trigger::ImpliedNak));
        if self.answers.is_none() {
            // Without the other direction, no cause can be seen, and senders repeat packets more often than networks.
            return BehindVerdict::Retransmitted;
        }
        let may_be_alone = pending.cause.is_some_and(|cause| cause.certain) && reaches_the_end;
        let is_shuffled = self.may_be_reordered() && self.recovery() == Some(Recovery::GoBackN);
        if has_nak && (may_be_alone || pending.packets() > 1 || is_shuffled) {
            return BehindVerdict::Retransmitted;
        }
        let silent = pending.begin.flow.silence >= SILENCE;
        // The network's copy has the identification of its original.
        let is_new = pending.begin.packet.has_new_id;
        match pending.packets() {
            1 if is_new
                && pending.cause.is_none()
                && self.was_just_retransmitted(pending.first, pending.time) =>
            {
                BehindVerdict::Late
            }
            _ if is_new => BehindVerdict::Retransmitted,
            2 if silent && reaches_the_end => BehindVerdict::Retransmitted,
            packets if packets >= FALLBACK => BehindVerdict::Retransmitted,
            // Missing, retransmitted, and here once more: the first transmission, late.
            1 if pending.cause.is_none() && self.was_just_retransmitted(pending.first, pending.time) => {
                BehindVerdict::Late
            }
            // The last packet once more, after a silence: its ACK was lost, or the network had a copy.
            1 if silent && !pending.begin.packet.has_old_id => BehindVerdict::Unknown,
            _ => BehindVerdict::Duplicate,
        }
    }

    /// A packet of those that seemed to answer a NAK came once more: the first one was late if this is the answer.
    pub(super) fn recall_waiting(&mut self, at: u64, request: &Request) {
        let Some(waiting) = self.undecided.take_waiting_with(at) else {
            return;
        };
        let judged = match self.answers() {
            None => self.judge_named(&waiting),
            // The answer to the NAK would begin where the NAK says: a later run repeats these.
            Some(_) if at > waiting.first => self.judge_by_next_answer(&waiting, at, request),
            Some(answers) => {
                let begin = waiting.begin.packet.time;
                if answers.named_since(at, begin) {
                    self.judge_by_next_answer(&waiting, at, request)
                } else if request.packet.time.since(begin) < LONGEST_ANSWER && request.flow.silence < SILENCE
                {
                    BehindVerdict::Late
                } else if request.packet.time.since(begin) < MIN_TIMEOUT {
                    // A short timer, or a late packet and a slow answer.
                    self.judge_by_times(&waiting, at, request)
                } else {
                    // After a silence it may be a timeout's answer as well, and the first one was lost behind the tap.
                    self.judge_by_next_answer(&waiting, at, request)
                }
            }
        };
        if judged == BehindVerdict::Late {
            self.undecided.note_named_late();
        }
        self.apply(waiting, judged, true);
    }

    /// A packet at `at` is captured once more: when it is one of those that fill a hole right now, they wait for no other.
    pub(super) fn settle_answer(&mut self, at: u64, next: u64, time: Time) {
        let is_again = |pending: &PendingPackets| !pending.repeats && pending.contains(at);
        if self.undecided.pending().is_some_and(is_again) {
            self.settle_pending(next, time);
        }
    }

    /// Decides packets that seemed to answer a NAK once the true answer would have come.
    pub(super) fn settle_waiting(&mut self, time: Time) {
        while let Some(overdue) = self.undecided.take_overdue(time, LONGEST_ANSWER) {
            self.decide_waiting(overdue);
        }
    }

    /// Decides packets that have waited for the answer to a NAK.
    fn decide_waiting(&mut self, waiting: PendingPackets) {
        let judged = self.judge_named(&waiting);
        self.apply(waiting, judged, true);
    }

    /// Decides everything that waits for more packets.
    pub(crate) fn decide_alone(&mut self) {
        while let Some(oldest) = self.undecided.take_oldest() {
            self.decide_waiting(oldest);
        }
        if let Some(pending) = self.undecided.take_pending() {
            let judged = if pending.repeats {
                self.judge_repeats(&pending, pending.next)
            } else {
                self.judge_fills(&pending)
                    .unwrap_or_else(|| self.judge_named(&pending))
            };
            self.apply(pending, judged, false);
        }
    }

    /// True if some packets are not judged yet.
    pub(crate) fn is_undecided(&self) -> bool {
        !self.undecided.is_empty()
    }

    /// Settles what pending packets were. `passed`: new packets have followed since.
    pub(super) fn apply(&mut self, pending: PendingPackets, judged: BehindVerdict, passed: bool) {
        match judged {
            BehindVerdict::Retransmitted => self.apply_retransmitted(&pending, passed),
            BehindVerdict::Late if pending.repeats => {
                self.reordering.note(pending.depth, &[], pending.time);
                if let Some(holes) = &mut self.holes {
                    holes.came_after_all(pending.first);
                }
            }
            BehindVerdict::Late => self.came_late(
                &pending.filled,
                pending.first + pending.depth,
                pending.time,
                pending.depth,
            ),
            BehindVerdict::Unknown => {
                for part in &pending.filled {
                    self.holes.get_or_insert_default().stays_unresolved(part);
                }
            }
            BehindVerdict::Duplicate => {}
        }
        self.news.decided(Decision {
            judged,
            captured_before: pending.repeats,
            again: pending.begin.flow.again,
            by_nak: pending.cause.is_some_and(|cause| cause.trigger == Trigger::Nak),
            psn: psn_of(pending.first),
            time: pending.begin.packet.time,
            parts: pending.parts,
        });
    }

    fn apply_retransmitted(&mut self, pending: &PendingPackets, passed: bool) {
        let fate_at_the_begin = if pending.waits_before {
            self.fate_within_a_run()
        } else {
            LossClass::NetworkLost
        };
        let cause = pending.cause;
        let run = RetransmittedRun {
            packets: pending.packets(),
            next: pending.next,
            skipped: pending.skipped,
            fills: !pending.repeats,
            repeats: pending.repeats,
            ..RetransmittedRun::new(pending.first, pending.begin.packet.time, cause)
        };
        if passed && self.runs.current().is_some() {
            self.end_this_run(&run, pending.before);
        } else {
            self.end_run();
            self.begin_run(
                pending.first,
                run,
                &pending.begin,
                pending.repeats,
                pending.before,
            );
            self.runs.reach_to(pending.first + pending.depth + 1);
            if let Some(answers) = &mut self.answers {
                answers.extend_run(pending.next);
            }
        }
        if !pending.repeats {
            let gap = self.gap_with(pending.first);
            let time = pending.begin.packet.time;
            self.refilled.note(pending.first, pending.next, time, gap);
        }
        for part in &pending.filled {
            let begins = part.first <= pending.first && pending.first < part.end;
            let class = if begins {
                fate_at_the_begin
            } else {
                self.fate_within_a_run()
            };
            if begins {
                self.prove(cause, part.end - part.first, pending.begin.packet.time);
            }
            let holes = self.holes.get_or_insert_default();
            holes.was_sent_again(part, class);
            // The rest of the same hole.
            holes.decide_at(part.end, class);
        }
        if passed && self.runs.current() == Some(&run) {
            // New packets have followed: this was all of it.
            self.end_run_before_new(u64::MAX);
        }
    }

    /// Missing packets were retransmitted for `cause`. The NAK proves the loss if no packet of the flow was ever late.
    /// They came at `time`.
    pub(super) fn prove(&mut self, cause: Option<Cause>, psns: u64, time: Time) {
        let is_named = cause.is_some_and(|cause| cause.trigger == Trigger::Nak && cause.exact);
        if is_named && !self.reordering.is_seen() {
            self.proven.add(psns, time);
        }
    }

    /// Parts of holes came late, `depth` PSNs behind the highest; `next`: one past that.
    pub(super) fn came_late(&mut self, parts: &[Hole], next: u64, time: Time, depth: u64) {
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
