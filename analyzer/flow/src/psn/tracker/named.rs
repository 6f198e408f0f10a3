//! Packets that a NAK names, on ways where packets come late: sent again for the NAK, or overtaken before it was sent.
//!
//! A receiver that goes back N names a late packet as it does a lost one. The sender answers each NAK (IBTA 9.7.5.1.1), which
//! takes it at least the way to it and back: what comes much sooner is late, and so is what comes again with the answer. Where neither
//! shows, the packets do not tell the two apart.

use roce_model::Nanos;

use crate::psn::request::{Request, SILENCE};
use crate::psn::run::Recovery;
use crate::psn::tracker::Tracker;
use crate::psn::undecided::{Judged, Pending};

impl Tracker {
    /// Packets that seemed to answer a NAK, and then the sender falls back to `at`: the two answers take about as long if both
    /// are such.
    pub(super) fn judge_by_next_answer(&self, seeming: &Pending, at: u64, request: &Request) -> Judged {
        let answers = self.answers();
        let by_nak = answers.is_some_and(|answers| answers.named_since(at, seeming.begin.time));
        if !by_nak && !self.may_be_reordered() {
            return Judged::Resent;
        }
        let follows = at == seeming.next && request.time.since(seeming.time) < SILENCE;
        if follows && !by_nak {
            // The run goes on.
            return Judged::Resent;
        }
        match self.judge_by_times(seeming, at, request) {
            Judged::Unknown if !self.may_be_reordered() => Judged::Resent,
            judged => judged,
        }
    }

    /// The same by the times alone: the true answer comes at least twice as long after its NAK as a late packet did.
    pub(super) fn judge_by_times(&self, seeming: &Pending, at: u64, request: &Request) -> Judged {
        let took = self
            .answers()
            .and_then(|answers| answers.waited_since_nak(at, request.time));
        match took.zip(seeming.since_nak) {
            Some((took, seemed)) if took.0 >= seemed.0.saturating_mul(2) => Judged::Late,
            _ => Judged::Unknown,
        }
    }

    /// True if packets of this flow, or of others between its hosts, were overtaken.
    pub(super) fn may_be_reordered(&self) -> bool {
        self.reordering.is_seen() || self.others_late
    }

    /// True if packets that seem to answer a NAK came long before the sender answers one, as it was seen to.
    pub(super) fn comes_before_answers(&self, pending: &Pending) -> bool {
        let is_early = |seemed| self.answers().is_some_and(|answers| answers.is_early(seemed));
        self.may_be_reordered() && pending.since_nak.is_some_and(is_early)
    }

    /// Packets that a NAK named, with nothing after them that repeats what had been captured. Where packets are overtaken on their
    /// way they may be late, unless they were missing for much longer than any late packet.
    pub(super) fn judge_named(&self, pending: &Pending) -> Judged {
        if !self.may_be_reordered() || self.recovery() == Some(Recovery::OutOfOrder) {
            return Judged::Resent;
        }
        if self.comes_before_answers(pending) {
            return Judged::Late;
        }
        let missed = pending
            .filled
            .first()
            .map_or(Nanos(0), |hole| pending.begin.time.since(hole.time));
        if self.reordering.is_usual() && missed.0 > self.reordering.bound().0.saturating_mul(2) {
            Judged::Resent
        } else {
            Judged::Unknown
        }
    }

    /// True if the run that is under way skipped `at`, and packets come late: its own packet was overtaken by those that follow.
    pub(super) fn was_overtaken_in_run(&mut self, at: u64) -> bool {
        let may_be = self.may_be_reordered();
        let Some(run) = self.run.as_mut().filter(|run| may_be && run.repeats) else {
            return false;
        };
        let is_skipped = (run.skipped.0..run.skipped.1).contains(&at);
        if is_skipped {
            run.skipped.0 = at + 1;
        }
        is_skipped
    }
}
