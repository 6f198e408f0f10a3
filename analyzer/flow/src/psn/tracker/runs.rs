//! Runs of packets retransmitted: where they begin and why, how far they come, what they say of the holes that they fill
//! and of the sender's way to recover.

use roce_model::Nanos;

use crate::psn::cause::Trigger;
use crate::psn::causes::Circumstances;
use crate::psn::holes::LossClass;
use crate::psn::request::{Request, psn_of};
use crate::psn::run::{EndedRun, Recovery, RetransmittedRun};
use crate::psn::tracker::{MAX_WAITING_PSNS, Tracker};

/// So often must a receiver have acknowledged what came before a late packet, without a NAK, until it is said to take packets in
/// any order: one such sighting may be a NAK that the capture lost.
const MIN_OUT_OF_ORDER: u32 = 3;

/// Ranges of PSNs that were retransmitted and are remembered: more than a network can hold up at once.
const MAX_RETRANSMITTED: usize = 64;

impl Tracker {
    /// Adds a packet to the run, or begins one.
    pub(super) fn retransmission(&mut self, at: u64, span: u64, next: u64, request: &Request, fills: bool) {
        let continues = self.run.is_some_and(|run| at >= run.next);
        if !continues {
            self.end_run();
            let cause = self.cause(at, request);
            if fills {
                let class = self.fate_at_the_begin(at);
                let holes = self.holes.get_or_insert_default();
                let psns = holes.hole_with(at).map_or(0, |hole| hole.end - at);
                holes.decide_at(at, class);
                self.prove(cause, psns, request.time);
            } else if self.answers.is_none()
                && at >= self.begin
                && cause.is_some_and(|cause| cause.trigger == Trigger::Nak && cause.exact)
                && self.early_downstream.len() < MAX_WAITING_PSNS
            {
                self.early_downstream.push(psn_of(at));
            }
            let before = self.circumstances(at, next, request);
            self.begin_run(
                at,
                RetransmittedRun::new(at, request.time, cause),
                request,
                !fills,
                before,
            );
        }
        self.keep_run_id(at, request);
        if let Some(run) = &mut self.run {
            if at > run.next && run.skipped.1 == 0 {
                run.skipped = (run.next, at);
            }
            run.ack_requested |= request.ack_requested && run.skipped.1 == 0;
            run.packets += 1;
            run.next = at + span;
            self.run_time = request.time;
            self.run_reach = next;
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
            self.note_retransmitted(at, at + span);
        }
        let class = self.fate_within_a_run();
        if let Some(holes) = &mut self.holes {
            holes.decide_within(at..at + span, class);
            holes.fill(at, at + span);
        }
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
            answers.extend_run(at + span);
            answers.run_requests_ack = self.run.is_some_and(|run| run.ack_requested);
        }
    }

    /// `run` begins at `at` with `request`. `repeats`: its first packet had been captured before.
    /// `before`: what was captured before it.
    pub(super) fn begin_run(
        &mut self,
        at: u64,
        mut run: RetransmittedRun,
        request: &Request,
        repeats: bool,
        before: Circumstances,
    ) {
        let fallen_back_to = self.answers().and_then(|answers| match run.trigger {
            Trigger::Nak => answers.named_before(at, request.time),
            Trigger::Timeout => Some(answers.acked()).filter(|acked| (self.begin..at).contains(acked)),
            _ => None,
        });
        self.count_skipped(fallen_back_to.unwrap_or(at));
        if let Some(begin) = fallen_back_to {
            run.skipped = (begin, at);
        }
        let is_sure = !self.may_be_reordered();
        if let Some(answers) = &mut self.answers {
            answers.begin_run(at, request, run.trigger, repeats, is_sure);
        }
        self.run = Some(run);
        self.before_run = Some(Box::new(before));
        self.run_time = request.time;
        self.run_ids.clear();
    }

    /// A run begins at `at`. A run before it skipped what this one may show: those retransmissions were lost before the tap.
    fn count_skipped(&mut self, at: u64) {
        if self.skipped.is_empty() || self.skipped.start != at {
            return;
        }
        let skipped = core::mem::replace(&mut self.skipped, 0..0);
        let psns = skipped.end - at;
        self.new_lost_again = (at, at + psns);
    }

    /// The fate of a hole at `at`, where a run begins.
    pub(super) fn fate_at_the_begin(&self, at: u64) -> LossClass {
        match &self.answers {
            // The run may have begun there unseen.
            Some(answers) if answers.waits_before(at) => self.fate_within_a_run(),
            _ => LossClass::NetworkLost,
        }
    }

    /// The fate of a hole that is filled by a run which began before it.
    pub(super) fn fate_within_a_run(&self) -> LossClass {
        let is_kept = matches!(self.recovery(), Some(Recovery::Selective | Recovery::OutOfOrder));
        // The packet was lost before the tap, or by the capture, as often as the flow shows either; the
        // receiver's state does not matter. Where packets come late, it may be late as well.
        let are_losses = self.holes.as_ref().is_some_and(|holes| holes.are_losses());
        if is_kept || are_losses && !self.may_be_reordered() {
            LossClass::NetworkLost
        } else {
            LossClass::Ambiguous
        }
    }

    /// Remembers missing PSNs that were retransmitted.
    pub(super) fn note_retransmitted(&mut self, first: u64, end: u64) {
        let hole = self.holes.as_ref().and_then(|holes| holes.hole_with(first));
        let gap = hole.map_or(self.refilled_at, |hole| hole.time);
        match self.retransmitted.back_mut() {
            Some(last) if last.1 == first && last.2 == gap => last.1 = end,
            _ => {
                if self.retransmitted.len() == MAX_RETRANSMITTED {
                    self.retransmitted.pop_front();
                }
                self.retransmitted.push_back((first, end, gap));
            }
        }
    }

    /// Adds a packet to the run behind those that overtook it.
    pub(super) fn retransmission_overtaken(&mut self, at: u64, span: u64, next: u64, request: &Request) {
        if let Some(run) = &mut self.run {
            run.packets += 1;
            run.start = run.start.min(at);
            run.fills = true;
        }
        self.refilled = at..at + span;
        self.refilled_at = request.time;
        self.note_retransmitted(at, at + span);
        let class = self.fate_at_the_begin(at);
        if let Some(holes) = &mut self.holes {
            holes.decide_at(at, class);
            holes.fill(at, at + span);
        }
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
        }
    }

    pub(super) fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            let before = self.before_run.take();
            self.keep_ended(run, *before.unwrap_or_default());
        }
    }

    fn keep_ended(&mut self, run: RetransmittedRun, before: Circumstances) {
        if run.repeats {
            self.repeated = run.start..run.next.max(self.run_reach);
        }
        // A sender that repeats what was captured sends everything again, in order.
        self.skipped = if run.repeats && !self.reordering.is_seen() {
            run.skipped.0..run.skipped.1
        } else {
            0..0
        };
        self.ended.push(EndedRun {
            first: run.first,
            begin: run.begin,
            packets: run.packets,
            before,
            seeming: if run.trigger == Trigger::Timeout && !run.certain && self.may_be_reordered() {
                // Packets of an answer to a NAK that others overtook look like it.
                Trigger::Unknown
            } else {
                run.trigger
            },
        });
    }

    /// The sender goes on after a run, at `time`: it has no cause any more to answer older NAKs for what the run retransmitted.
    pub(super) fn forget_answered_naks(&mut self, time: Nanos) {
        let is_answer = self.run.is_some_and(|run| run.trigger == Trigger::Nak);
        if let Some(answers) = self.answers.as_mut().filter(|_| is_answer) {
            answers.forget_answered_naks(time);
        }
    }

    /// The sender goes on with `next`: how far its run came shows what it has to repeat.
    pub(super) fn end_run_before_new(&mut self, next: u64) {
        if let Some(run) = self.run.take() {
            let before = self.before_run.take();
            self.end_this_run(run, next, *before.unwrap_or_default());
        }
    }

    pub(super) fn end_this_run(&mut self, run: RetransmittedRun, next: u64, before: Circumstances) {
        let is_whole = run.next >= next;
        if is_whole && run.repeats && run.packets > 1 {
            self.go_back_n += 1;
        } else if !is_whole {
            // Nothing that was captured came again, or only what the NAK names; a run that did repeat lost its end.
            let only_fills = run.fills && !run.repeats;
            let only_named = run.packets == 1 && run.trigger == Trigger::Nak;
            self.selective += u32::from(only_fills || only_named);
        }
        self.keep_ended(run, before);
    }

    /// True if the last packet began a run.
    pub(crate) fn has_begun_a_run(&self) -> bool {
        self.run.is_some_and(|run| run.packets == 1)
    }

    /// True if a NAK made the sender begin the run.
    pub(crate) fn is_run_by_nak(&self) -> bool {
        self.run.is_some_and(|run| run.trigger == Trigger::Nak)
    }

    /// True if a silence made the sender begin the run.
    pub(crate) fn is_run_by_timeout(&self) -> bool {
        self.run.is_some_and(|run| run.trigger == Trigger::Timeout)
    }

    /// How the sender recovers, as its runs show it.
    pub(crate) fn recovery(&self) -> Option<Recovery> {
        let in_any_order = self
            .answers()
            .map_or(0, crate::psn::acks::Answers::taken_out_of_order);
        if in_any_order > MIN_OUT_OF_ORDER && in_any_order > self.go_back_n {
            return Some(Recovery::OutOfOrder);
        }
        // One run that ends early may have lost its rest to the capture.
        match (self.go_back_n, self.selective) {
            (go_back_n, selective) if go_back_n > selective => Some(Recovery::GoBackN),
            (go_back_n, selective) if selective > go_back_n && selective > 1 => Some(Recovery::Selective),
            _ => None,
        }
    }
}
