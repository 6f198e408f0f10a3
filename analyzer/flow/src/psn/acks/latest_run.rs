//! The latest run of retransmissions as answers are compared with it.

use core::num::NonZeroU64;
use core::ops::Range;

use roce_model::{Span, Time};

use crate::psn::cause::Trigger;

/// The latest run of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct LatestRun {
    /// Its PSNs so far, and when it began; 0: there was none.
    psns: Range<u64>,
    begin: Time,
    /// A PSN that was retransmitted after a NAK, captured, and then sent once more by a timeout, and how often: lost behind the
    /// tap each time, unless the receiver turns out to have had it.
    lost_again: Option<(NonZeroU64, u32)>,
    /// It answered a NAK, or repeated one that did.
    by_nak: bool,
    /// It came after a timeout.
    by_timeout: bool,
    /// It showed all up to a packet that requests an ACK.
    requests_ack: bool,
}

impl LatestRun {
    /// A run begins at `at` because of `trigger`.
    pub(super) fn begin(&mut self, at: u64, time: Time, trigger: Trigger) {
        self.by_nak = trigger == Trigger::Nak || self.by_nak && self.psns.start == at;
        self.by_timeout = trigger == Trigger::Timeout;
        self.requests_ack = false;
        self.psns = at..at;
        self.begin = time;
    }

    /// It has come to `end`.
    pub(super) fn extend(&mut self, end: u64) {
        self.psns.end = self.psns.end.max(end);
    }

    /// It showed all up to a packet that requests an ACK, or not yet.
    pub(super) fn set_requests_ack(&mut self, requests_ack: bool) {
        self.requests_ack = requests_ack;
    }

    /// Its PSNs so far.
    pub(super) fn psns(&self) -> &Range<u64> {
        &self.psns
    }

    /// When it began; 0: there was none.
    pub(super) fn begun(&self) -> Time {
        self.begin
    }

    /// When the run began that came after a timeout. Nothing was on its way then, so that no answer since is to anything before. 0: it
    /// did not.
    pub(super) fn begun_by_timeout(&self) -> Time {
        if self.by_timeout { self.begin } else { Time(0) }
    }

    /// True if the sender repeated `at` alone, for a NAK, at least so long before `time`.
    pub(super) fn repeated_alone(&self, at: u64, time: Time, least: Span) -> bool {
        let is_alone = self.psns.start == at && self.psns.end <= at + 1;
        self.by_nak && is_alone && time.since(self.begin) >= least
    }

    /// The sender's timer expires, and it falls back to `at`, all before which had arrived: true if it had repeated that for a NAK, so that it
    /// was lost once more.
    pub(super) fn lose_again(&mut self, at: u64) -> bool {
        if !(self.by_nak && self.requests_ack && self.psns.start == at) {
            return false;
        }
        let before = self.lost_again.filter(|(psn, _)| psn.get() == at);
        let times = before.map_or(0, |(_, times)| times) + 1;
        self.lost_again = NonZeroU64::new(at).map(|psn| (psn, times));
        true
    }

    /// The receiver has all before `psn`, and no more than this run brought: the runs before brought it nothing. Gives the PSN that was lost
    /// again, and how often.
    pub(super) fn take_lost_again(&mut self, psn: u64) -> Option<(u64, u32)> {
        let (sent, times) = self.lost_again.take()?;
        (psn > sent.get() && psn <= self.psns.end).then_some((sent.get(), times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_timeout_repeats_once_more_was_lost_as_often() {
        let mut run = LatestRun::default();
        assert!(!run.lose_again(100), "no NAK named it");
        run.begin(100, Time(1_000), Trigger::Nak);
        for time in [2_000, 3_000] {
            run.extend(101);
            run.set_requests_ack(true);
            assert!(run.lose_again(100));
            run.begin(100, Time(time), Trigger::Timeout);
        }
        run.extend(101);
        assert_eq!(run.take_lost_again(101), Some((100, 2)));
        assert_eq!(run.take_lost_again(101), None);
    }

    #[test]
    fn more_than_the_run_brought_came_otherwise() {
        let mut run = LatestRun::default();
        run.begin(100, Time(1_000), Trigger::Nak);
        run.extend(101);
        run.set_requests_ack(true);
        assert!(
            run.repeated_alone(100, Time(5_000), Span(4_000))
                && !run.repeated_alone(101, Time(5_000), Span(4_000))
        );
        assert!(run.lose_again(100));
        assert_eq!(run.take_lost_again(102), None);
    }
}
