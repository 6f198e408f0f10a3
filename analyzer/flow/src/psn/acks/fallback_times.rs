//! How long a sender takes to fall back: after a NAK, and by its timer, as its runs of retransmissions have shown.

use roce_model::Span;

use crate::psn::acks::nak_history::MAX_RUN_OFFSET;
use crate::psn::cause::MIN_TIMEOUT;

/// A sender that was silent for less answers a NAK, whatever it took before: a round trip through full queues.
pub(in crate::psn) const SHORT_SILENCE: Span = Span(200_000);

/// True if an answer that took `took` is too early for a sender whose shortest answer took `shortest`.
pub(super) fn is_much_shorter(took: Span, shortest: Span) -> bool {
    took.0.saturating_mul(2) < shortest.0
}

/// Times of one sender; 0: not known.
#[derive(Clone, Debug, Default)]
pub(super) struct FallbackTimes {
    /// The shortest time that a timeout took.
    timer: Span,
    /// The timer of the latest RNR NAK.
    rnr_timer: Span,
    /// The longest time from a NAK to the run that answered it, and the number of such runs that were not reported yet.
    longest_answer: Span,
    unreported: u32,
    /// The shortest time from a NAK to a run that repeats, from its PSN on, what had been captured.
    shortest_answer: Span,
    /// The latest one, and the PSN that the NAK named.
    latest_answer: Span,
    answered: u64,
    /// The longest time after its acknowledgement at which a retransmission came that no NAK explains. The sender's timer was shorter than its
    /// round trip, or the acknowledgement was lost.
    held: Span,
}

impl FallbackTimes {
    /// The sender's timer.
    pub(super) fn timer(&self) -> Span {
        self.timer
    }

    /// The longest time from a NAK to its answer.
    pub(super) fn longest_answer(&self) -> Span {
        self.longest_answer
    }

    /// The shortest one, to a run that repeats what had been captured.
    pub(super) fn shortest_answer(&self) -> Span {
        self.shortest_answer
    }

    /// The latest one.
    pub(super) fn latest_answer(&self) -> Span {
        self.latest_answer
    }

    /// The PSN of the NAK that was answered last; 0: none was.
    pub(super) fn answered(&self) -> u64 {
        self.answered
    }

    /// The longest time to an answer, and the number of answers since the last call.
    pub(super) fn take_new_answers(&mut self) -> (Span, u32) {
        (self.longest_answer, core::mem::take(&mut self.unreported))
    }

    /// True if `waited` is much less than the sender ever took to answer a NAK.
    pub(super) fn is_early(&self, waited: Span) -> bool {
        is_much_shorter(waited, self.shortest_answer)
    }

    /// True if the sender's timer, as far as it is known, may have expired in that time.
    pub(super) fn fits_timer(&self, waited: Span) -> bool {
        self.timer.0 != 0 && waited.0 >= self.timer.0 / 4 * 3
    }

    /// True if a silence has the length that the receiver's RNR NAKs make it: one more of them may have been lost on its way or
    /// by the capture.
    pub(super) fn is_rnr_wait(&self, waited: Span) -> bool {
        let timer = self.rnr_timer.0;
        timer != 0 && (timer / 4 * 3..=timer.saturating_mul(2)).contains(&waited.0)
    }

    /// True if the sender's timer expired while packets that had arrived were on their way, or their acknowledgement was, and no answer to a NAK
    /// between the hosts was much faster. `others`: the longest answer of others.
    pub(super) fn is_held_back(&self, others: Span) -> bool {
        let answer = self.longest_answer.max(others);
        self.held.0 != 0 && (answer.0 == 0 || answer.0 >= self.held.0 / 2)
    }

    /// True if `at` may be a part of the answer to the NAK that a run answered last: behind its begin, or that itself where `may_be_begin`.
    pub(super) fn is_behind_answered(&self, at: u64, may_be_begin: bool) -> bool {
        let begin = self.answered + u64::from(!may_be_begin);
        self.answered != 0 && (begin..self.answered + MAX_RUN_OFFSET).contains(&at)
    }

    /// The receiver has no buffer, and asks for a packet after `timer`.
    pub(super) fn note_rnr(&mut self, timer: Span) {
        self.rnr_timer = timer;
    }

    /// A retransmission came so long after its acknowledgement that no NAK explains.
    pub(super) fn note_held(&mut self, held: Span) {
        self.held = self.held.max(held);
    }

    /// A packet that seems to answer a NAK came `took` after it, and no packet comes late: the sender takes no less for the next one.
    pub(super) fn seems_answered(&mut self, took: Span) {
        if took < SHORT_SILENCE {
            self.longest_answer = self.longest_answer.max(took);
        }
    }

    /// A run that begins at `at` answers a NAK for `named` after `took`. `repeats`: its first packet had been captured before.
    pub(super) fn note_answer(&mut self, at: u64, named: u64, took: Span, repeats: bool) {
        let is_shortest = self.shortest_answer.0 == 0 || took < self.shortest_answer;
        if repeats && named == at && is_shortest {
            self.shortest_answer = took;
        }
        // One that takes much longer than any before may have been lost on its way, and answered by the next. A run that
        // begins behind the PSN of the NAK may be the rest of one whose first packets were lost.
        let is_known = took < SHORT_SILENCE || self.longest_answer.0 != 0;
        if is_known && took < MIN_TIMEOUT && named == at {
            self.longest_answer = self.longest_answer.max(took);
            self.unreported = self.unreported.saturating_add(1);
        }
        (self.latest_answer, self.answered) = (took, named);
    }

    /// The sender's timer expired after `waited`; `is_sure`: no reordering explains the silence.
    pub(super) fn note_timeout(&mut self, waited: Span, is_sure: bool) {
        self.timer = if !is_sure && waited < MIN_TIMEOUT {
            self.timer
        } else if self.timer.0 == 0 {
            waited
        } else {
            self.timer.min(waited)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_the_shortest_timeout_that_is_sure() {
        let mut times = FallbackTimes::default();
        times.note_timeout(Span(300_000), false);
        assert_eq!(times.timer(), Span(0), "packets may be late for as long");
        times.note_timeout(Span(4_000_000), false);
        times.note_timeout(Span(2_000_000), true);
        times.note_timeout(Span(3_000_000), true);
        assert_eq!(times.timer(), Span(2_000_000));
        assert!(times.fits_timer(Span(1_500_000)) && !times.fits_timer(Span(1_499_999)));
    }

    #[test]
    fn an_answer_behind_the_named_psn_measures_nothing() {
        let mut times = FallbackTimes::default();
        times.note_answer(102, 100, Span(20_000), true);
        assert_eq!(
            (times.longest_answer(), times.shortest_answer()),
            (Span(0), Span(0))
        );
        assert!(times.is_behind_answered(101, false) && !times.is_behind_answered(100, false));
        times.note_answer(200, 200, Span(30_000), true);
        times.note_answer(300, 300, Span(10_000), false);
        assert_eq!(times.take_new_answers(), (Span(30_000), 2));
        assert_eq!((times.shortest_answer(), times.answered()), (Span(30_000), 300));
        assert!(times.is_early(Span(14_999)) && !times.is_early(Span(15_000)));
    }
}
