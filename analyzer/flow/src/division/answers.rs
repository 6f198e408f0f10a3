//! A flow's answers and its time: whether they were late, and whether the sender waited for them with as much outstanding as ever.

use roce_model::cast::float;
use roce_model::{Span, Time};

use crate::division::BurstGap;

/// Round trips without which their least and spread are not known.
const KNOWN_AFTER: u32 = 8;

/// A wait for an answer that is no usual one: a packet waits as long in a deep buffer (12.5 MB at 100 Gb/s take 1 ms).
pub(super) const LONG_WAIT: Span = Span(1_000_000);

/// An answer that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutstandingAnswer {
    pub(crate) time: Time,
    /// When the last request came.
    pub(crate) last_request: Time,
    /// PSNs that were outstanding before it; `None`: not known, as nothing was acknowledged yet.
    pub(crate) psns: Option<u64>,
    /// Messages that were.
    pub(crate) messages: usize,
}

/// Requests that are on their way, and the times of their answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutstandingAnswers {
    /// The most PSNs and messages that ever were outstanding.
    most_psns: u64,
    most_messages: usize,
    /// Up to then the sender waited with as much outstanding as ever since its last request: within a message, and between two; 0: it did not.
    blocked_within: Time,
    blocked_between: Time,
    /// Time since the last request in which answers were late, in ns, and up to when it is counted.
    late: u64,
    late_until: Time,
    /// When the last answer came, and how long no answer came since the last request, in waits that were long, in ns.
    last_answer: Time,
    long_waits: u64,
    /// The least round trip in ns, and how many there were.
    least: u64,
    count: u32,
    /// Sums of the times beyond a first guess and of their squares.
    first: u64,
    sum: f64,
    squares: f64,
    /// An answer is late after this time in ns; 0: not known.
    late_after: u64,
}

impl OutstandingAnswers {
    /// An answer acknowledges something new.
    #[inline]
    pub(crate) fn answered(&mut self, answer: &OutstandingAnswer, gap: BurstGap) {
        let psns = answer.psns.unwrap_or(0);
        let is_most_psns = answer.psns.is_none() || psns >= self.most_psns - self.most_psns / 8;
        let is_most_messages = answer.messages > 0 && answer.messages >= self.most_messages;
        self.most_psns = self.most_psns.max(psns);
        self.most_messages = self.most_messages.max(answer.messages);
        if gap.is_passed(answer.time.since(answer.last_request)) {
            if is_most_psns {
                self.blocked_within = answer.time;
            }
            if is_most_psns || is_most_messages {
                self.blocked_between = answer.time;
            }
        }
        let waited = answer.time.since(answer.last_request.max(self.last_answer)).0;
        if waited >= LONG_WAIT.0 {
            self.long_waits = self.long_waits.saturating_add(waited);
        }
        self.last_answer = answer.time;
    }

    /// A round trip from `sent` to `time` was measured, after the last request of `last_request`. One that took much longer than the least
    /// one was late from that on, where nothing was sent meanwhile.
    pub(crate) fn round_trip(&mut self, sent: Time, time: Time, last_request: Time) {
        let took = time.since(sent).0;
        if self.late_after != 0 && took > self.late_after {
            let begin = Time(sent.0 + self.least).max(last_request).max(self.late_until);
            self.late = self.late.saturating_add(time.since(begin).0);
            self.late_until = self.late_until.max(time);
        }
        if self.count == 0 {
            (self.first, self.least) = (took, took);
        }
        self.least = self.least.min(took);
        let beyond = float(took) - float(self.first);
        self.sum += beyond;
        self.squares += beyond * beyond;
        self.count = self.count.saturating_add(1);
        if self.count >= KNOWN_AFTER && (self.count.is_power_of_two() || self.count.is_multiple_of(256)) {
            self.learn();
        }
    }

    /// Learns how late an answer has to be to count as late.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number; what is too large saturates"
    )]
    fn learn(&mut self) {
        let count = f64::from(self.count);
        let mean = self.sum / count;
        let spread = (self.squares / count - mean * mean).max(0.0).sqrt() as u64;
        self.late_after = self.least.saturating_add(spread.max(self.least / 2));
    }

    /// Up to when the sender waited with as much outstanding as ever since its last request; 0: it did not. A message that is under way waits
    /// for no other one: only as many PSNs stop it.
    pub(super) fn blocked_until(&self, in_message: bool) -> Time {
        if in_message {
            self.blocked_within
        } else {
            self.blocked_between
        }
    }

    /// Takes the time in which answers were late since the last request, of the next `most` ns.
    pub(super) fn take_late(&mut self, most: u64) -> u64 {
        core::mem::take(&mut self.late).min(most)
    }

    /// Time from `since` to `until` in which no answer came for long, and none was late, in ns.
    pub(super) fn unexplained(&self, since: Time, until: Time) -> u64 {
        let last = until.since(since.max(self.last_answer)).0;
        let last = if last >= LONG_WAIT.0 { last } else { 0 };
        self.long_waits.saturating_add(last)
    }

    /// A request was sent: what was said of the silence before is over.
    pub(super) fn next_request(&mut self) {
        (self.blocked_within, self.blocked_between) = (Time(0), Time(0));
        (self.late, self.long_waits) = (0, 0);
    }

    /// The capture lost records: what seemed to be outstanding may have been answered.
    pub(super) fn forget_most(&mut self) {
        (self.most_psns, self.most_messages) = (0, 0);
    }
}
