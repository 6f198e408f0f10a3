//! The epoch of a flow: where its PSNs begin, and what begins them again. A new connection does, one that messages of the connection
//! manager show or one that the PSNs show; records that the capture lost make another begin out of a gap.

use roce_model::{Span, Time, WriteTarget};
use roce_wire::Psn;

use crate::psn::acks::{Answers, MAX_RUN_OFFSET};
use crate::psn::request::{BASE, LARGEST_GAP, NewConnection, Request, SILENCE, Verdict, psn_of};
use crate::taps::duplicates::Ids;

/// Number of acknowledged PSNs from which on the sender does not fall back to the first one, if that was
/// acknowledged for [`KNOWN`].
const DONE: u64 = 8;
/// Time after which a sender knows that its first PSN is acknowledged.
const KNOWN: Span = Span(2_000_000);
/// A rest of both directions after which nothing is on its way any longer, and timers of adapters (4.096 us times 2^n, n of 14 to 18 as
/// libraries set it) are over. The sender knows then what is acknowledged, unless every answer to it was lost.
const LONG_REST: Span = Span::SECOND;
/// Time after which a sender knows that its first PSN is acknowledged, if that is 0, with which many libraries
/// begin every connection. The silence before is enough.
const KNOWN_FROM_ZERO: Span = Span(0);
/// Number of stale packets in a row, in order, that are a new epoch.
const STALE_RUN: u8 = 8;

/// The begin of a flow's PSNs.
#[derive(Clone, Debug, Default)]
pub(super) struct Epoch {
    /// The first PSN, and when it came.
    first: u64,
    time: Time,
    /// Where the first request wrote to.
    target: Option<WriteTarget>,
    /// A new connection was made of the queue pair: its first request begins an epoch.
    connected: Option<NewConnection>,
    /// The latest packets that were far behind: the PSN after them, and their number.
    stale_next: Psn,
    stale_run: u8,
    /// The capture lost records: a gap would be its own.
    capture_lost: bool,
}

impl Epoch {
    /// The first request comes; gives its position.
    pub(super) fn begin(&mut self, request: &Request) -> u64 {
        self.first = BASE + u64::from(request.packet.psn.value());
        self.time = request.packet.time;
        self.target = request.target;
        self.first
    }

    /// The first PSN; 0 before the first request.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// True if the first PSN is 0, as with many libraries in every connection.
    fn is_from_zero(&self) -> bool {
        psn_of(self.first) == Psn::new(0)
    }

    /// Until when packets that are overtaken by so much may have come before the first one was captured; 0: none are overtaken.
    pub(super) fn begun(&self, overtaken: Span) -> Time {
        match overtaken {
            Span(0) => Time(0),
            bound => self.time + bound,
        }
    }

    /// True if the next packet may begin another epoch.
    pub(super) fn may_end(&self) -> bool {
        self.capture_lost || self.connected.is_some() || self.stale_run > 0
    }

    /// The queue pair got a new connection; `None`: it had sent nothing before.
    pub(super) fn connect(&mut self, connected: Option<NewConnection>) {
        self.connected = connected;
    }

    /// True if the next request is that of a new connection.
    pub(super) fn is_connected(&self) -> bool {
        self.connected.is_some()
    }

    /// How it is known that `psn` is one of a new connection, if it is.
    pub(super) fn connection_with(&self, psn: Psn) -> Option<&'static str> {
        let connected = self.connected.filter(|connected| connected.has_begun(psn));
        connected.map(|connected| connected.reason)
    }

    /// The capture lost records, perhaps some of the flow.
    pub(super) fn capture_lost(&mut self, may_be_ours: bool) {
        self.capture_lost = may_be_ours;
    }

    /// True, once, if the capture lost records since the last packet.
    pub(super) fn take_capture_lost(&mut self) -> bool {
        core::mem::take(&mut self.capture_lost)
    }

    /// A packet so far behind that no sender sends it again. Nothing of its connection can be on its way after a long rest.
    pub(super) fn stale(&mut self, request: &Request, answers: Option<&Answers>) -> Verdict {
        let packet = &request.packet;
        if self.stale_run == 0 && rest(request, answers) >= LONG_REST {
            return Verdict::NewEpoch("far behind after a long rest");
        }
        let in_order = self.stale_run > 0 && packet.psn == self.stale_next;
        self.stale_run = if in_order { self.stale_run + 1 } else { 1 };
        self.stale_next = packet.psn.plus(packet.span.unwrap_or(1));
        if self.stale_run >= STALE_RUN {
            return Verdict::NewEpoch("eight packets in order far behind");
        }
        Verdict::Stale
    }

    /// A packet came that is not far behind.
    pub(super) fn end_stale_run(&mut self) {
        self.stale_run = 0;
    }

    /// True if the latest packets were far behind, and `psn` is that of one of them.
    pub(super) fn is_stale(&self, psn: Psn) -> bool {
        self.stale_run > 0 && (1..=LARGEST_GAP).contains(&self.stale_next.offset_from(psn))
    }

    /// True if a packet at `at` is so far before all that is captured, or has been acknowledged, all before `acked`, so long ago, that no
    /// sender sends it again.
    pub(super) fn is_long_done(&self, at: u64, acked: u64) -> bool {
        // Before the first one captured, a little is enough as soon as anything was acknowledged.
        let reach = if at < self.first && acked > self.first {
            MAX_RUN_OFFSET
        } else {
            u64::from(LARGEST_GAP.unsigned_abs())
        };
        at + reach < acked.max(self.first)
    }

    /// True if a packet at `at`, behind the highest PSN, begins another connection; `next`: one past the highest. It does with the first PSN,
    /// once that has been acknowledged for long enough that the sender knows it, or after a long rest with an older IP identification; without the other direction, where that is likelier than a
    /// sender that falls back this far. By another UDP source port it does with the first PSN, or where nothing is outstanding: a queue pair
    /// keeps its port. `is_whole`: nothing was ever missing.
    pub(super) fn begins_once_more(
        &self,
        (at, next): (u64, u64),
        request: &Request,
        answers: Option<&Answers>,
        is_whole: bool,
    ) -> bool {
        let has_other_port = request.packet.has_other_port;
        let is_settled = answers.is_some_and(|answers| answers.acked() >= next);
        let silence = rest(request, answers);
        if at != self.first {
            // The capture began in the middle of a connection. Many libraries begin every connection with PSN 0. With something outstanding, a
            // sender falls back to it as to any other PSN.
            let is_zero = at < self.first && request.packet.psn == Psn::new(0) && silence >= SILENCE;
            return is_settled && (has_other_port || is_zero);
        }
        if has_other_port {
            return true;
        }
        let is_older = request.packet.ids.and_then(Ids::behind).unwrap_or(0) > 0;
        let is_known = answers.is_some_and(|answers| at + DONE <= answers.acked());
        // A new connection writes to memory of its own, by a key of its own. What was acknowledged is sent again if all answers were lost behind the
        // tap: then the sender's timer runs since its first packet, and most of that time is the rest.
        let is_same = self.target.is_some() && self.target == request.target;
        let sending = Span(request.packet.time.since(self.time).0.saturating_sub(silence.0));
        let may_be_unanswered = sending <= silence && silence < LONG_REST;
        if is_same && (!is_known || may_be_unanswered) {
            return false;
        }
        if silence >= LONG_REST && (is_older || is_known) {
            return true;
        }
        let Some(answers) = answers else {
            // Many libraries begin every connection with PSN 0; another first PSN is hardly given twice. Where nothing was
            // missing, and the last message had ended, nothing is retransmitted either.
            // Where others are answered, nobody answered these requests: they are outstanding.
            let is_begin = self.is_from_zero() && self.first + DONE <= next;
            let may_be_done = !request.pair.others_are_answered && !request.flow.in_message;
            return is_begin && may_be_done && is_whole && request.flow.silence >= SILENCE;
        };
        if answers.named().is_some() {
            // The receiver waits for a packet. Its answers may be stuck in queues for milliseconds, and the sender falls back this far.
            return false;
        }
        if self.is_from_zero() && is_settled && silence >= SILENCE {
            // Nothing is outstanding. Many libraries begin every connection with PSN 0.
            return true;
        }
        let known = if self.is_from_zero() {
            KNOWN_FROM_ZERO
        } else {
            KNOWN
        };
        let rests = answers.acknowledges_for(request.packet.time) >= known && silence >= SILENCE;
        let enough = if rests { DONE } else { MAX_RUN_OFFSET };
        self.first + enough <= answers.acked()
    }
}

/// Time for which both directions rested before a request. As long as answers come, the connection is the one before: a READ that was
/// retransmitted after an answer that came late.
fn rest(request: &Request, answers: Option<&Answers>) -> Span {
    let last_answer = answers.map_or(Time(0), Answers::last);
    request.flow.silence.min(request.packet.time.since(last_answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(psn: u32) -> Request {
        let mut request = Request::default();
        request.packet.psn = Psn::new(psn);
        request.packet.span = Some(1);
        request
    }

    #[test]
    fn eight_stale_packets_in_order_begin_anew() {
        let mut epoch = Epoch::default();
        epoch.begin(&request(1_000_000));
        for psn in 0..7 {
            assert_eq!(epoch.stale(&request(psn), None), Verdict::Stale);
        }
        assert!(epoch.may_end() && epoch.is_stale(Psn::new(6)) && !epoch.is_stale(Psn::new(7)));
        assert_eq!(
            epoch.stale(&request(9), None),
            Verdict::Stale,
            "out of order, it counts as the first"
        );
        for psn in 10..16 {
            assert_eq!(epoch.stale(&request(psn), None), Verdict::Stale);
        }
        assert!(matches!(epoch.stale(&request(16), None), Verdict::NewEpoch(_)));
    }

    #[test]
    fn what_may_have_come_before_the_capture_depends_on_the_overtaking() {
        let mut epoch = Epoch::default();
        let mut first = request(7);
        first.packet.time = Time(1_000);
        assert_eq!(epoch.begin(&first), BASE + 7);
        assert_eq!(epoch.begun(Span(0)), Time(0));
        assert_eq!(epoch.begun(Span(500)), Time(1_500));
    }

    #[test]
    fn lost_records_count_once() {
        let mut epoch = Epoch::default();
        epoch.capture_lost(true);
        assert!(epoch.may_end() && epoch.take_capture_lost());
        assert!(!epoch.take_capture_lost() && !epoch.may_end());
    }
}
