//! Packets that a NAK names, on ways where packets come late: retransmitted for the NAK, or overtaken before it was sent.
//!
//! A receiver that goes back N names a late packet as it does a lost one. The sender answers each NAK (IBTA 9.7.5.1.1), which
//! takes it at least the way to it and back: what comes much sooner is late, and so is what comes again with the answer. Where neither
//! shows, the packets do not tell the two apart.

use roce_model::Span;

use crate::psn::acks::{MAX_RUN_OFFSET, SHORT_SILENCE};
use crate::psn::cause::Trigger;
use crate::psn::request::{Request, SILENCE};
use crate::psn::run::Recovery;
use crate::psn::tracker::Tracker;
use crate::psn::undecided::{BehindVerdict, PendingPackets};

impl Tracker {
    /// Packets that seemed to answer a NAK, and then the sender falls back to `at`: the two answers take about as long if both
    /// are such.
    pub(super) fn judge_by_next_answer(
        &self,
        seeming: &PendingPackets,
        at: u64,
        request: &Request,
    ) -> BehindVerdict {
        let answers = self.answers();
        let by_nak = answers.is_some_and(|answers| answers.named_since(at, seeming.begin.packet.time));
        if !by_nak && !self.may_be_reordered() {
            return BehindVerdict::Retransmitted;
        }
        let follows = at == seeming.next && request.packet.time.since(seeming.time) < SILENCE;
        if follows && !by_nak {
            // The run goes on.
            return BehindVerdict::Retransmitted;
        }
        match self.judge_by_times(seeming, at, request) {
            BehindVerdict::Unknown if !self.may_be_reordered() => BehindVerdict::Retransmitted,
            judged => judged,
        }
    }

    /// Judges by times alone: the true answer comes at least twice as long after its NAK as a late packet did.
    pub(super) fn judge_by_times(
        &self,
        seeming: &PendingPackets,
        at: u64,
        request: &Request,
    ) -> BehindVerdict {
        let took = self
            .answers()
            .and_then(|answers| answers.waited_since_nak(at, request.packet.time));
        match took.zip(seeming.since_nak) {
            Some((took, seemed)) if took.0 >= seemed.0.saturating_mul(2) => BehindVerdict::Late,
            _ => BehindVerdict::Unknown,
        }
    }

    /// True if packets of this flow, or of others between its hosts, were overtaken.
    pub(crate) fn may_be_reordered(&self) -> bool {
        self.reordering.is_seen() || self.others_late
    }

    /// True if packets that seem to answer a NAK came long before the sender answers one, as it was seen to.
    pub(super) fn comes_before_answers(&self, pending: &PendingPackets) -> bool {
        let is_early = |seemed| self.answers().is_some_and(|answers| answers.is_early(seemed));
        self.may_be_reordered() && pending.since_nak.is_some_and(is_early)
    }

    /// Packets that a NAK named, with nothing after them that repeats what had been captured. Where packets are overtaken on their
    /// way they may be late, unless they were missing for much longer than any late packet.
    pub(super) fn judge_named(&self, pending: &PendingPackets) -> BehindVerdict {
        // A receiver that takes any order and names what it waits for too long does not name late packets.
        let names_losses = self.recovery() == Some(Recovery::OutOfOrder) && !self.undecided.are_late_named();
        if !self.may_be_reordered() || names_losses {
            return BehindVerdict::Retransmitted;
        }
        if self.comes_before_answers(pending) {
            return BehindVerdict::Late;
        }
        let missed = pending
            .filled
            .first()
            .map_or(Span(0), |hole| pending.begin.packet.time.since(hole.time));
        if self.reordering.is_usual() && missed > self.reordering.bound() * 2 {
            BehindVerdict::Retransmitted
        } else {
            BehindVerdict::Unknown
        }
    }

    /// True if `at`, captured before, belongs to a run of which other packets overtook it: the run that goes on or one before, the
    /// latest of whose packets has just come, and no NAK waits that names `at`. A copy that the network makes meanwhile looks
    /// like it.
    pub(super) fn was_overtaken_in_run(&mut self, at: u64, request: &Request) -> bool {
        let (time, latest) = (request.packet.time, self.reordering.bound().max(SILENCE));
        !self.undecided.waits_with(at)
            && self.runs.is_recent(time, latest)
            && self.may_be_reordered()
            && !self.has_nak_for(at, request)
            && self.runs.take_overtaken(at, time)
    }

    /// A packet of the latest run, captured before, of which other packets overtook it.
    pub(super) fn note_overtaken_in_run(&mut self, at: u64, span: u64, request: &Request) {
        self.runs.add_among(at, span, request.packet.ids);
        if let Some(answers) = &mut self.answers {
            answers.extend_run(at + span);
        }
    }

    /// True if a NAK, an RNR NAK or missing responses would make the sender send `at` again now.
    pub(super) fn has_nak_for(&self, at: u64, request: &Request) -> bool {
        self.cause(at, request)
            .is_some_and(|cause| matches!(cause.trigger, Trigger::Nak | Trigger::Rnr | Trigger::ImpliedNak))
    }

    /// True if the current run answers a NAK for `at`, which is missing, and began with packets behind that.
    pub(super) fn is_named_by_run(&self, at: u64) -> bool {
        self.may_be_reordered()
            && self.runs.current().is_some_and(|run| {
                run.repeats && run.trigger == Trigger::Nak && run.skipped.0 == at && at < run.skipped.1
            })
    }

    /// True if the sender fell back, for a NAK or after a silence, to packets that had been captured, and goes on with `at`, which is
    /// missing. Behind a silence its timer ran out, and it had not got what the receiver said since.
    pub(super) fn goes_on_from_pending(&self, at: u64) -> bool {
        self.undecided.pending().is_some_and(|pending| {
            let has_fallen_back = pending.cause.is_some_and(|cause| match cause.trigger {
                Trigger::Nak => true,
                Trigger::Timeout => cause.certain,
                _ => false,
            });
            pending.repeats
                && pending.next == at
                && (has_fallen_back || pending.begin.flow.silence >= SHORT_SILENCE)
                && !self.may_be_reordered()
        })
    }

    /// True if the sender repeats `at` after `pending`, which a NAK named or which came once more when its timer ran out, and packets
    /// between were lost again: nothing comes late.
    pub(super) fn skips_to(&self, pending: &PendingPackets, at: u64) -> bool {
        let is_answer = pending.cause.is_some_and(|cause| match cause.trigger {
            Trigger::Nak => cause.exact && !pending.repeats,
            Trigger::Timeout => cause.certain && pending.repeats,
            _ => false,
        });
        let is_beyond = at > pending.next && at < pending.next + MAX_RUN_OFFSET;
        is_answer && is_beyond && !self.may_be_reordered()
    }

    /// True if `at`, captured before, is one of the packets of `pending` out of their order: an answer to a NAK whose packets take several
    /// paths. Copies that the network makes come one at a time.
    pub(super) fn is_shuffled_among(&self, pending: &PendingPackets, at: u64) -> bool {
        let is_answer = pending.cause.is_some_and(|cause| cause.trigger == Trigger::Nak);
        pending.repeats && is_answer && self.may_be_reordered() && at != pending.next
    }
}
