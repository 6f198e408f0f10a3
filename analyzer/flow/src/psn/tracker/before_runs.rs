//! Circumstances before a run, from which its cause is found.

use roce_model::{Span, Time};

use crate::psn::causes::{Circumstances, NamedPsn};
use crate::psn::request::Request;
use crate::psn::tracker::Tracker;

impl Tracker {
    /// An answer that is no NAK, to all before `psn`, comes at `time`, before it is applied. `oldest_sent`: when the oldest request was sent that is
    /// not answered; 0: not known.
    #[inline]
    pub(crate) fn awaited(&mut self, psn: u64, oldest_sent: Time, time: Time) {
        if let Some(answers) = &mut self.answers {
            answers.awaited(psn, oldest_sent, time);
        }
    }

    /// The longest waits for an answer, since the last call, that ended without a run.
    pub(crate) fn take_longest_waits(&mut self) -> Vec<Span> {
        let answers = self.answers.as_mut();
        answers.map_or_else(Vec::new, |answers| answers.take_longest_waits())
    }

    /// Circumstances before the sender fell back to `at` with `request`. `next` is one past the highest PSN.
    pub(super) fn circumstances(&self, at: u64, next: u64, request: &Request) -> Circumstances {
        let of_answers = match &self.answers {
            Some(answers) => answers.circumstances(at, next, request),
            None => Circumstances {
                nak: request.pair.nak_before.map(|(before, ahead)| NamedPsn {
                    before,
                    timer: Span(0),
                    ahead,
                    is_answered: false,
                }),
                // Some receiver of the host had no buffer: its timer is not known.
                rnr: request.pair.refused.then_some(NamedPsn {
                    before: request.flow.silence,
                    timer: Span(0),
                    ahead: 0,
                    is_answered: false,
                }),
                waits: [request.flow.silence, Span(0), Span(0)],
                is_blind: true,
                ..Circumstances::default()
            },
        };
        let hole = self.holes.as_ref().and_then(|holes| holes.hole_with(at));
        let (missing, not_captured) = self.holes.as_ref().map_or((0, 0), |holes| holes.opened());
        Circumstances {
            implied: match request.flow.implied_since {
                Time(0) => Span(0),
                since => request.packet.time.since(since),
            },
            silence: request.flow.silence,
            since_gap: hole.map_or(Span(0), |hole| request.packet.time.since(hole.time)),
            psns: next.saturating_sub(self.epoch.first()),
            missing,
            not_captured,
            is_fetch: request.packet.is_fetch,
            is_slowed: request.flow.is_slowed,
            ..of_answers
        }
    }
}
