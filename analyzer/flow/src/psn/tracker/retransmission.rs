//! Packets that are retransmitted: where a run of them begins and why, how far it comes, what it says of the holes that it fills.

use roce_model::Time;

use crate::psn::acks::Answers;
use crate::psn::cause::Trigger;
use crate::psn::causes::Circumstances;
use crate::psn::holes::LossClass;
use crate::psn::request::{Request, psn_of};
use crate::psn::run::{Recovery, RetransmittedRun};
use crate::psn::tracker::{MAX_WAITING_PSNS, Tracker};

impl Tracker {
    /// Adds a packet to the run, or begins one.
    pub(super) fn retransmission(&mut self, at: u64, span: u64, next: u64, request: &Request, fills: bool) {
        if self.runs.current().is_none_or(|run| at < run.next) {
            self.end_run();
            self.begin_run_with(at, next, request, fills);
        }
        self.runs.add(at, span, next, request, fills);
        if fills {
            let gap = self.gap_with(at);
            self.refilled.go_on(at, at + span, request.packet.time, gap);
        }
        let class = self.fate_within_a_run();
        if let Some(holes) = &mut self.holes {
            holes.decide_within(at..at + span, class);
            holes.fill(at, at + span);
        }
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
            answers.extend_run(at + span);
            let requests_ack = self.runs.current().is_some_and(|run| run.ack_requested);
            answers.set_run_requests_ack(requests_ack);
        }
    }

    /// A run begins with `request`, at `at`.
    fn begin_run_with(&mut self, at: u64, next: u64, request: &Request, fills: bool) {
        let cause = self.cause(at, request);
        if fills {
            let class = self.fate_at_the_begin(at);
            let holes = self.holes.get_or_insert_default();
            // Losses that trimming proves are counted already.
            let named = holes.hole_with(at).filter(|_| !holes.is_trimmed(at));
            let psns = named.map_or(0, |hole| hole.end - at);
            holes.decide_at(at, class);
            self.prove(cause, psns, request.packet.time);
        } else if self.answers.is_none()
            && at >= self.epoch.first()
            && cause.is_some_and(|cause| cause.trigger == Trigger::Nak && cause.exact)
            && self.early_downstream.len() < MAX_WAITING_PSNS
        {
            self.early_downstream.push(psn_of(at));
        }
        let before = self.circumstances(at, next, request);
        let run = RetransmittedRun::new(at, request.packet.time, cause);
        self.begin_run(at, run, request, !fills, before);
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
        let begun = self.epoch.first()..at;
        let fallen_back_to = self.answers().and_then(|answers| match run.trigger {
            Trigger::Nak => answers.named_before(at, request.packet.time),
            Trigger::Timeout => Some(answers.acked()).filter(|acked| begun.contains(acked)),
            _ => None,
        });
        self.runs.count_skipped(fallen_back_to.unwrap_or(at));
        if let Some(begin) = fallen_back_to {
            run.skipped = (begin, at);
        }
        let is_sure = !self.may_be_reordered();
        if let Some(answers) = &mut self.answers {
            answers.begin_run(at, request, run.trigger, repeats, is_sure);
        }
        self.runs.begin(run, before, request.packet.time);
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

    /// When the gap showed in which `at` is missing; `None` if it is not.
    pub(super) fn gap_with(&self, at: u64) -> Option<Time> {
        let hole = self.holes.as_ref().and_then(|holes| holes.hole_with(at));
        hole.map(|hole| hole.time)
    }

    /// Adds a packet to the run behind those that overtook it.
    pub(super) fn retransmission_overtaken(&mut self, at: u64, span: u64, next: u64, request: &Request) {
        self.runs.add_before(at);
        let gap = self.gap_with(at);
        self.refilled.note(at, at + span, request.packet.time, gap);
        let class = self.fate_at_the_begin(at);
        if let Some(holes) = &mut self.holes {
            holes.decide_at(at, class);
            holes.fill(at, at + span);
        }
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
        }
    }

    /// The run ends, if there is one.
    pub(super) fn end_run(&mut self) {
        if let Some(run) = self.runs.end(self.overtaking()) {
            self.news.ended(run);
        }
    }

    /// The sender goes on with `next`: how far its run came shows what it has to repeat.
    pub(super) fn end_run_before_new(&mut self, next: u64) {
        if let Some(run) = self.runs.end_before_new(next, self.overtaking()) {
            self.news.ended(run);
        }
    }

    /// A run was found only after new packets had followed on it: it was no more than this.
    pub(super) fn end_this_run(&mut self, run: &RetransmittedRun, before: Circumstances) {
        let ended = self.runs.end_whole(run, u64::MAX, before, self.overtaking());
        self.news.ended(ended);
    }

    /// The sender goes on after a run, at `time`: it has no cause any more to answer older NAKs for what the run retransmitted.
    pub(super) fn forget_answered_naks(&mut self, time: Time) {
        let is_answer = self.runs.is_by(Trigger::Nak);
        if let Some(answers) = self.answers.as_mut().filter(|_| is_answer) {
            answers.forget_answered_naks(time);
        }
    }

    /// How the sender recovers, as its runs show it.
    pub(crate) fn recovery(&self) -> Option<Recovery> {
        let in_any_order = self.answers().map_or(0, Answers::taken_out_of_order);
        self.runs.recovery(in_any_order)
    }
}
