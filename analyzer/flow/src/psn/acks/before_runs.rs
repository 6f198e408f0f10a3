//! Evidence of answers about the cause of a run that begins.

use roce_model::Nanos;

use super::Answers;
use crate::psn::causes::{Circumstances, MAX_WAITS, NamedPsn, Waits, keep_longest};
use crate::psn::request::Request;

/// NAKs that may make a sender fall back. A receiver that keeps what comes out of order sends many while answers are in flight.
const MAX_NOTES: usize = 32;
/// So far behind the PSN of a NAK the run that answers it may seem to begin.
pub(crate) const REACH: u64 = 256;

/// A sequence NAK.
#[derive(Clone, Copy, Debug)]
pub(super) struct NakNote {
    at: u64,
    time: Nanos,
    /// A run began at its PSN.
    is_answered: bool,
}

impl Answers {
    /// An answer to all before `psn` comes at `time`. `oldest_sent`: when the oldest request was sent that is not answered; 0: not known.
    #[inline]
    pub(in crate::psn) fn awaited(&mut self, psn: u64, oldest_sent: Nanos, time: Nanos) {
        let armed = if self.is_waiting {
            self.progress
        } else {
            oldest_sent
        };
        let is_long = time.since(armed).0 >> 10 > u64::from(self.least_wait);
        if psn > self.acked && is_long && armed.0 != 0 {
            self.note_wait(armed, time);
        }
    }

    /// A wait for progress ends at `time`.
    #[cold]
    fn note_wait(&mut self, armed: Nanos, time: Nanos) {
        let wait = time.since(armed.max(self.sent_behind));
        if wait.0 >> 10 <= u64::from(self.least_wait) {
            return;
        }
        keep_longest(&mut self.longest_waits, wait);
        if let [least, ..] = self.longest_waits[..]
            && self.longest_waits.len() == MAX_WAITS
        {
            self.least_wait = u32::try_from(least.0 >> 10).unwrap_or(u32::MAX);
        }
    }

    /// The longest waits for progress since the last call.
    pub(in crate::psn) fn take_longest_waits(&mut self) -> Vec<Nanos> {
        core::mem::take(&mut self.longest_waits)
    }

    /// A NAK for `at` came at `time`.
    pub(super) fn note_nak(&mut self, at: u64, time: Nanos) {
        if self.notes.len() == MAX_NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(NakNote {
            at,
            time,
            is_answered: false,
        });
    }

    /// A run begins at `at`: NAKs for just that are answered.
    pub(super) fn answer_notes(&mut self, at: u64) {
        for note in self.notes.iter_mut().filter(|note| note.at == at) {
            note.is_answered = true;
        }
    }

    /// Circumstances before the sender fell back to `at` with `request`. `next` is one past the highest PSN.
    pub(in crate::psn) fn circumstances(&self, at: u64, next: u64, request: &Request) -> Circumstances {
        let is_known = self.acked != 0;
        Circumstances {
            nak: self.nak_before(at, request),
            rnr: self
                .rnr
                .filter(|rnr| (rnr.at..rnr.at + REACH).contains(&at))
                .map(|rnr| NamedPsn {
                    before: request.time.since(rnr.time),
                    timer: rnr.timer,
                    ahead: ahead(rnr.at, at),
                    is_answered: false,
                }),
            waits: self.waits(request),
            beyond_acked: is_known.then(|| {
                // PSNs are counted from 2^32 on, far below 2^63.
                i64::try_from(at).unwrap_or(i64::MAX) - i64::try_from(self.acked).unwrap_or(i64::MAX)
            }),
            is_blind: self.last_answer.0 == 0,
            has_moved: self.acked > next,
            ..Circumstances::default()
        }
    }

    fn nak_before(&self, at: u64, request: &Request) -> Option<NamedPsn> {
        // NAKs overtake each other, too: one for just this PSN says more than a later one for a PSN before.
        let latest = |is_it: &dyn Fn(&NakNote) -> bool| self.notes.iter().rev().find(|note| is_it(note));
        let exact = latest(&|note| note.at == at && !note.is_answered);
        let near = || latest(&|note| (note.at..note.at + REACH).contains(&at));
        let Some(note) = exact.or_else(near) else {
            // The first NAK may have come before it was known whose it is.
            let (before, ahead) = request.nak_before.filter(|_| self.notes.is_empty())?;
            return Some(NamedPsn {
                before,
                timer: Nanos(0),
                ahead,
                is_answered: false,
            });
        };
        Some(NamedPsn {
            before: request.time.since(note.time),
            timer: Nanos(0),
            ahead: ahead(note.at, at),
            is_answered: note.is_answered,
        })
    }

    /// For how long the sender's timer may have run. It begins with the oldest request that is not acknowledged, anew with each progress, and
    /// perhaps with a NAK or a run (IBTA 9.7.6.1.3).
    fn waits(&self, request: &Request) -> Waits {
        let armed = if self.is_waiting {
            self.progress
        } else {
            request.oldest_sent
        };
        let named = self.notes.iter().rev().find(|note| note.at == self.acked);
        let mut begins = [armed, named.map_or(Nanos(0), |note| note.time), self.run_begin];
        if armed.0 == 0 && self.run_begin.0 == 0 {
            begins[0] = Nanos(request.time.0.saturating_sub(request.silence.0));
        }
        for at in 1..begins.len() {
            if begins[at] <= armed || begins[..at].contains(&begins[at]) {
                begins[at] = Nanos(0);
            }
        }
        begins.map(|begin| match begin {
            Nanos(0) => begin,
            begin => request.time.since(begin),
        })
    }
}

fn ahead(named: u64, at: u64) -> u32 {
    u32::try_from(at - named).unwrap_or(u32::MAX)
}
