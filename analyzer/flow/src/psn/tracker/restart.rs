//! True if a flow's PSNs start again: a new connection that messages of the connection manager show, or one that its PSNs show.

use roce_model::Nanos;
use roce_wire::Psn;

use crate::psn::acks::{Answers, MAX_RUN_OFFSET};
use crate::psn::request::{LARGEST_GAP, NewConnection, Request, Requests, SILENCE, psn_of};
use crate::psn::tracker::Tracker;

/// Number of acknowledged PSNs from which on the sender does not fall back to the first one, if that was
/// acknowledged for [`KNOWN`].
const DONE: u64 = 8;
/// Time after which a sender knows that its first PSN is acknowledged.
const KNOWN: Nanos = Nanos(2_000_000);

/// Time after which a sender knows that its first PSN is acknowledged, if that is 0, with which many libraries
/// begin every connection. The silence before is enough.
const KNOWN_FROM_ZERO: Nanos = Nanos(0);

impl Tracker {
    /// True if a packet so far `ahead` of `next`, that is behind it, is so far before all that is captured, or has been
    /// acknowledged so long ago, that no sender sends it again.
    pub(super) fn is_long_done(&self, next: u64, ahead: i32) -> bool {
        let acked = self.answers().map_or(0, Answers::acked);
        let at = next - u64::from(ahead.unsigned_abs());
        // Before the first one captured, a little is enough as soon as anything was acknowledged.
        let reach = if at < self.begin && acked > self.begin {
            MAX_RUN_OFFSET
        } else {
            u64::from(LARGEST_GAP.unsigned_abs())
        };
        at + reach < acked.max(self.begin)
    }

    /// True if a packet behind the highest PSN begins another connection. It does with the first PSN, once that has been acknowledged
    /// for long enough that the sender knows it; without the other direction, where that is likelier than a sender that falls back
    /// this far. By another UDP source port it does with the first PSN, or where nothing is outstanding: a queue pair keeps its port.
    pub(super) fn begins_once_more(&self, next: u64, ahead: i32, request: &Request) -> bool {
        let is_settled = self.answers().is_some_and(|answers| answers.acked() >= next);
        let at = next - u64::from(ahead.unsigned_abs());
        // As long as answers come, the connection is the one before: a READ that was retransmitted after an answer that came late.
        let last_answer = self.answers().map_or(Nanos(0), Answers::last);
        let silence = request.silence.min(request.time.since(last_answer));
        if at != self.begin {
            // The capture began in the middle of a connection. Many libraries begin every connection with PSN 0. With something outstanding, a
            // sender falls back to it as to any other PSN.
            let is_zero = at < self.begin && request.psn == Psn::new(0) && silence >= SILENCE;
            return is_settled && (request.has_other_port || is_zero);
        }
        if request.has_other_port {
            return true;
        }
        let Some(answers) = self.answers() else {
            // Many libraries begin every connection with PSN 0; another first PSN is hardly given twice. Where nothing was
            // missing, and the last message had ended, nothing is retransmitted either.
            // Where others are answered, nobody answered these requests: they are outstanding.
            let is_begin = psn_of(self.begin) == Psn::new(0) && self.begin + DONE <= next;
            let may_be_done = !request.others_are_answered && !request.in_message;
            return is_begin && may_be_done && self.holes.is_none() && request.silence >= SILENCE;
        };
        if answers.named().is_some() {
            // The receiver waits for a packet. Its answers may be stuck in queues for milliseconds, and the sender falls back this far.
            return false;
        }
        if psn_of(self.begin) == Psn::new(0) && answers.acked() >= next && silence >= SILENCE {
            // Nothing is outstanding. Many libraries begin every connection with PSN 0.
            return true;
        }
        let known = if psn_of(self.begin) == Psn::new(0) {
            KNOWN_FROM_ZERO
        } else {
            KNOWN
        };
        let rests = answers.acknowledges_for(request.time) >= known && silence >= SILENCE;
        let enough = if rests { DONE } else { MAX_RUN_OFFSET };
        self.begin + enough <= answers.acked()
    }

    /// The queue pair got a new connection.
    pub(crate) fn connect(&mut self, requests: &mut Requests, connected: NewConnection) {
        self.connected = (requests.next != 0).then_some(connected);
        requests.disturbed |= self.connected.is_some();
    }

    /// True if the next request is that of a new connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected.is_some()
    }
}
