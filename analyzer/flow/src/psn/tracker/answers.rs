//! Answers to requests: how far they are acknowledged, and what was lost behind the tap.

use roce_model::{Span, Time, prefetch};
use roce_wire::Psn;

use crate::psn::acks::{Answers, NakMeaning};
use crate::psn::request::{LARGEST_GAP, Requests, STALE, psn_of};
use crate::psn::run::Recovery;
use crate::psn::tracker::Tracker;
use crate::transport::AnswerEvidence;

impl Tracker {
    /// The other direction is known from now on.
    pub(crate) fn pair(&mut self) {
        self.paired = true;
        self.await_answers();
    }

    /// Makes room for what the other direction says, once that is known and there was a request.
    pub(super) fn await_answers(&mut self) {
        if self.paired && self.epoch.first() != 0 {
            self.answers.get_or_insert_default();
        }
    }

    /// True if the other direction is known.
    pub(crate) fn is_paired(&self) -> bool {
        self.paired
    }

    /// Prefetches what tells whether requests are answered.
    #[inline]
    pub(crate) fn prefetch_for_silence(&self) {
        prefetch(&self.paired);
        prefetch(&self.answers);
    }

    /// The answers of the other direction; `None` while that is not known, and without requests.
    pub(crate) fn answers(&self) -> Option<&Answers> {
        self.answers.as_deref()
    }

    /// The longest time that the sender took to answer a NAK, and the number of its answers since the last call; 0: not known.
    pub(crate) fn take_new_answers(&mut self) -> (Span, u32) {
        let answers = self.answers.as_mut();
        answers.map_or((Span(0), 0), |answers| answers.take_new_answers())
    }

    /// Where `psn`, as an answer names it, is among the requests; `None` when it fits none of them.
    pub(crate) fn position(requests: &Requests, psn: Psn) -> Option<u64> {
        let ahead = psn.offset_from(requests.expected());
        if requests.next == 0 || ahead <= -STALE || ahead > LARGEST_GAP {
            return None;
        }
        requests.next.checked_add_signed(i64::from(ahead))
    }

    /// True if the request of this PSN was not captured.
    pub(crate) fn misses(&self, requests: &Requests, psn: Psn) -> bool {
        Self::position(requests, psn).is_some_and(|position| self.is_missing(position))
    }

    /// True if an answer showed that the packet at `position` had arrived.
    pub(crate) fn has_acknowledged(&self, position: Option<u64>) -> bool {
        let acked = self.answers().map_or(0, Answers::acked);
        position.is_some_and(|position| position < acked)
    }

    /// An answer shows that everything before `psn` arrived.
    pub(super) fn acknowledge(&mut self, requests: &Requests, psn: u64, time: Time) -> AnswerEvidence {
        let Some(answers) = &mut self.answers else {
            return AnswerEvidence::default();
        };
        answers.note_answer(time);
        let is_new = answers.acknowledge(psn, requests.next, time);
        if self.holes.is_some() {
            let begun = self.begun();
            let holes = self.holes.get_or_insert_default();
            if is_new {
                holes.cover(psn, time);
            }
            holes.decide_covered(time, begun);
        }
        let Some(answers) = &mut self.answers else {
            return AnswerEvidence::default();
        };
        AnswerEvidence {
            is_new,
            lost_downstream: is_new
                .then(|| answers.take_lost_again(psn))
                .flatten()
                .map(|(sent, times)| (psn_of(sent), times)),
            was_overtaken: answers.take_overtaken(),
        }
    }

    /// Takes an ACK. An ACK that says nothing new is counted.
    pub(super) fn acknowledged(&mut self, requests: &Requests, psn: u64, time: Time) -> AnswerEvidence {
        let answered = self.acknowledge(requests, psn, time);
        if let Some(answers) = self.answers.as_mut().filter(|_| !answered.is_new) {
            answers.count_duplicate();
        }
        answered
    }

    /// A sequence NAK for `psn`: all before arrived. `times`: the shortest time that an answer took, and when the oldest request was
    /// sent that is not answered; 0: not known.
    pub(super) fn nak(
        &mut self,
        requests: &Requests,
        psn: u64,
        time: Time,
        times: (Span, Time),
    ) -> AnswerEvidence {
        let missing = self.is_missing(psn);
        let pending = self.undecided.pending();
        let filled = pending.map_or(self.refilled.end(), |pending| pending.next);
        if !missing && psn < requests.next && psn == filled {
            // It has what was missing, and asks for what was captured behind that.
            self.runs.nothing_was_kept();
        }
        let selective = matches!(self.recovery(), Some(Recovery::Selective | Recovery::OutOfOrder));
        // A packet that fills a hole right now may be late, and the NAK older.
        let filling = self.undecided.pending().is_some_and(|pending| {
            pending
                .filled
                .iter()
                .any(|part| (part.first..part.end).contains(&psn))
        });
        // The captured packet may be a copy that the receiver dropped, while the one that it waits for takes a
        // slower path.
        let is_doubtful = self.reordering.is_usual() && !selective;
        let (begin, next) = (self.epoch.first(), requests.next);
        let Some(answers) = &mut self.answers else {
            return AnswerEvidence::default();
        };
        let before = answers.acked();
        let says = answers.nak(psn, next, time, selective, times);
        let was_overtaken = answers.take_overtaken();
        let is_sure = psn >= begin && !self.reads.may_have_taken(psn);
        let is_named = says == NakMeaning::LostDownstream && !missing && !filling && is_sure && !is_doubtful;
        if is_named {
            answers.count_downstream(psn);
        }
        // Where they overtake each other behind the tap, it may be late there.
        let lost_downstream = is_named && (selective || !answers.are_overtaken());
        let is_new = answers.acked() > before;
        if let Some(holes) = self.holes.as_mut().filter(|_| says != NakMeaning::Stale) {
            holes.cover(psn, time);
            holes.name_at(psn, time);
        }
        AnswerEvidence {
            is_new,
            lost_downstream: lost_downstream.then_some((psn_of(psn), 1)),
            was_overtaken,
        }
    }

    /// An RNR NAK for `psn`: all before arrived, and it, too.
    pub(super) fn rnr(&mut self, requests: &Requests, psn: u64, time: Time, timer: Span) -> AnswerEvidence {
        let Some(answers) = &mut self.answers else {
            return AnswerEvidence::default();
        };
        let before = answers.acked();
        let is_new = answers.rnr(psn, requests.next, time, timer);
        if let Some(holes) = self.holes.as_mut().filter(|_| is_new) {
            holes.cover(psn + 1, time);
        }
        AnswerEvidence {
            is_new: self.answers().is_some_and(|answers| answers.acked() > before),
            lost_downstream: None,
            was_overtaken: false,
        }
    }
}
