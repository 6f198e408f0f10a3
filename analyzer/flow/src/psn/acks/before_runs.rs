//! Evidence of answers about the cause of a run that begins.

use roce_model::{Span, Time};

use super::Answers;
use crate::psn::acks::nak_history::{REACH, ahead};
use crate::psn::causes::{Circumstances, MAX_WAITS, NamedPsn, Waits, keep_longest};
use crate::psn::request::Request;

impl Answers {
    /// An answer to all before `psn` comes at `time`. `oldest_sent`: when the oldest request was sent that is not answered; 0: not known.
    #[inline]
    pub(in crate::psn) fn awaited(&mut self, psn: u64, oldest_sent: Time, time: Time) {
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
    fn note_wait(&mut self, armed: Time, time: Time) {
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
    pub(in crate::psn) fn take_longest_waits(&mut self) -> Vec<Span> {
        core::mem::take(&mut self.longest_waits)
    }

    /// Circumstances before the sender fell back to `at` with `request`. `next` is one past the highest PSN.
    pub(in crate::psn) fn circumstances(&self, at: u64, next: u64, request: &Request) -> Circumstances {
        let is_known = self.acked != 0;
        Circumstances {
            nak: self.naks.before(at, request),
            rnr: self
                .rnr
                .filter(|rnr| (rnr.at..rnr.at + REACH).contains(&at))
                .map(|rnr| NamedPsn {
                    before: request.packet.time.since(rnr.time),
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

    /// For how long the sender's timer may have run. It begins with the oldest request that is not acknowledged, again with each progress, and
    /// perhaps with a NAK or a run (IBTA 9.7.6.1.3).
    fn waits(&self, request: &Request) -> Waits {
        let armed = if self.is_waiting {
            self.progress
        } else {
            request.flow.oldest_sent
        };
        let mut begins = [armed, self.naks.time_of(self.acked), self.run.begun()];
        if armed.0 == 0 && self.run.begun().0 == 0 {
            begins[0] = request.packet.time - request.flow.silence;
        }
        for at in 1..begins.len() {
            if begins[at] <= armed || begins[..at].contains(&begins[at]) {
                begins[at] = Time(0);
            }
        }
        begins.map(|begin| match begin {
            Time(0) => Span(0),
            begin => request.packet.time.since(begin),
        })
    }
}
