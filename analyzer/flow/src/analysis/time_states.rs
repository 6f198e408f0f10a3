//! The division of a flow's time: what its requests, answers and notifications say is handed to [`crate::division`].

use roce_model::{Packet, Time, TimeByState, TimeState};
use roce_wire::Qpn;
use roce_wire::transport::mrc;

use crate::analysis::Analysis;
use crate::analysis::response::WaitingFlow;
use crate::congestion::progress::Progress;
use crate::division::{
    Division, OpenRequests, OutstandingAnswer, RequestAfterSilence, RequestKind, SendingProgress,
};
use crate::key::FlowSlot;
use crate::psn::acks::Answers;
use crate::psn::cause::Trigger;
use crate::psn::request::Verdict;
use crate::psn::run::EndedRun;
use crate::table::state::{Cold, Hot};
use crate::timing::latency::Times;
use crate::timing::stall::MIN_STALL;

/// The queue pair of management datagrams (IBTA 3.9.2): its flows carry no application's data.
const MANAGEMENT: Qpn = Qpn::new(1);

/// A flow just before a request.
#[derive(Clone, Copy)]
pub(super) struct BeforeRequest {
    /// When its last request came; 0: there was none.
    pub(super) since: Time,
    /// One past its highest PSN.
    pub(super) next: u64,
    /// The message of the request had begun.
    pub(super) in_message: bool,
    /// The capture has lost records since.
    pub(super) has_lost: bool,
}

impl Analysis {
    /// A request of the flow at `at`, which comes after a silence or was judged to be unusual.
    pub(super) fn divide_request(
        &mut self,
        at: FlowSlot,
        before: BeforeRequest,
        verdict: Verdict,
        packet: &Packet,
    ) {
        let paused = self.limits.paused_until(&self.table, at, packet.time);
        let (hot, cold) = (&mut self.table.hot[at], &mut self.table.cold[at]);
        let outstanding = outstanding(hot, cold, before.next);
        let request = RequestAfterSilence {
            since: before.since,
            time: packet.time,
            kind: kind_of(cold, before, verdict, packet),
            outstanding,
            in_message: before.in_message,
            paused,
            in_turns: self.limits.turns.are_taken_since(hot.turns, before.since),
        };
        let first = cold.first_time;
        let division = cold
            .division
            .get_or_insert_with(|| Box::new(Division::new(first, paused)));
        division.request(&request);
        hot.burst_gap = division.burst_gap();
    }

    /// A datagram of the flow at `at`, whose service has no answers. Packets that may be of MRC have some, on all of its taps: a flow does not
    /// know for what their sender waits.
    #[cold]
    pub(super) fn divide_datagram(&mut self, at: FlowSlot, packet: &Packet) {
        let bth = &packet.roce.bth;
        if bth.destination_qpn() == MANAGEMENT || mrc::may_be(bth.0[0]) {
            return;
        }
        let before = BeforeRequest {
            since: self.table.hot[at].last_time,
            next: 0,
            in_message: false,
            has_lost: false,
        };
        self.divide_request(at, before, Verdict::InOrder, packet);
    }

    /// An answer to the flow at `at` acknowledges something new; `before`: the flow before it.
    #[inline]
    pub(super) fn divide_answer(&mut self, at: FlowSlot, before: WaitingFlow, time: Time) {
        let hot = &self.table.hot[at];
        let cold = &mut self.table.cold[at];
        let Some(division) = &mut cold.division else {
            return;
        };
        let answer = OutstandingAnswer {
            time,
            last_request: hot.last_request,
            psns: (before.acked != 0).then(|| hot.requests.next.saturating_sub(before.acked)),
            messages: cold.times.as_deref().map_or(0, Times::outstanding),
        };
        division.answers().answered(&answer, hot.burst_gap);
    }

    /// A round trip of the flow at `at` took from `sent` to `time`.
    #[inline]
    pub(super) fn divide_round_trip(&mut self, at: FlowSlot, sent: Time, time: Time) {
        let last_request = self.table.hot[at].last_request;
        if let Some(division) = &mut self.table.cold[at].division {
            division.answers().round_trip(sent, time, last_request);
        }
    }

    /// A notification, or a mark, says that the flow at `at` is to be slowed.
    pub(super) fn divide_notification(&mut self, at: FlowSlot, time: Time) {
        let now = self.table.progress(at, time);
        if let Some(division) = &mut self.table.cold[at].division {
            division.notified(sending(now));
        }
    }

    /// The flow at `at` has sent some packets; `now`: with the one that comes.
    pub(super) fn divide_sent(&mut self, at: FlowSlot, now: Progress) {
        if self.table.cold[at].division.is_none() {
            return;
        }
        let paused = self.limits.paused_until(&self.table, at, now.time);
        let (hot, cold) = (&mut self.table.hot[at], &mut self.table.cold[at]);
        let Some(division) = &mut cold.division else {
            return;
        };
        let time = last_request(hot).min(now.time);
        division.sent(sending(Progress { time, ..now }), paused);
        hot.burst_gap = division.burst_gap();
    }

    /// A retransmission run had this cause.
    pub(super) fn divide_run(&mut self, at: FlowSlot, run: &EndedRun, trigger: Trigger) {
        let Some(division) = &mut self.table.cold[at].division else {
            return;
        };
        let silence = run.before.silence;
        let state = match trigger {
            Trigger::Timeout if run.before.shows_silence() => TimeState::Timeout,
            Trigger::Rnr if run.before.shows_silence() => TimeState::Rnr,
            Trigger::Nak | Trigger::ImpliedNak => TimeState::Recovering,
            Trigger::Unknown if silence < MIN_STALL => TimeState::Recovering,
            _ => TimeState::Unknown,
        };
        division.run_caused(state, silence.0);
    }

    /// The whole time of the flow at `at`, which closes; `None` if it sent no requests.
    pub(super) fn divide_whole(&mut self, at: FlowSlot) -> Option<TimeByState> {
        let times = self.divide_so_far(at)?;
        self.table.cold[at].division = None;
        if let Some(measures) = &mut self.measures {
            measures.add_times(self.table.hot[at].tap, &times);
        }
        Some(times)
    }

    /// The time of the flow at `at` up to its last packet, which may be judged otherwise later; `None` if it sent no requests.
    pub(super) fn divide_so_far(&self, at: FlowSlot) -> Option<TimeByState> {
        let (hot, cold) = (&self.table.hot[at], &self.table.cold[at]);
        let mut division = cold.division.as_deref()?.clone();
        let paused = self.limits.paused_until(&self.table, at, hot.last_time);
        let outstanding = outstanding(hot, cold, hot.requests.next);
        Some(division.end(last_request(hot), hot.last_time, outstanding, paused))
    }
}

/// When the last request of the flow came.
fn last_request(hot: &Hot) -> Time {
    if hot.last_request.0 == 0 {
        hot.last_time
    } else {
        hot.last_request
    }
}

fn sending(now: Progress) -> SendingProgress {
    SendingProgress {
        time: now.time,
        packets: now.packets,
        bytes: now.wire_bytes,
    }
}

/// The state of the requests before `next`.
fn outstanding(hot: &Hot, cold: &Cold, next: u64) -> OpenRequests {
    if !hot.packed.is_reliable() {
        return OpenRequests::NoAnswers;
    }
    if !cold.tracker.is_paired() {
        return OpenRequests::NotKnown;
    }
    let acked = cold.tracker.answers().map_or(0, Answers::acked);
    if acked >= next {
        let progress = cold.tracker.answers().map_or(Time(0), Answers::progress);
        OpenRequests::Nothing(progress)
    } else {
        OpenRequests::Something
    }
}

/// The kind of a request after a silence, with this verdict.
fn kind_of(cold: &Cold, before: BeforeRequest, verdict: Verdict, packet: &Packet) -> RequestKind {
    let silence = packet.time.since(before.since);
    let is_first = before.since.0 == 0;
    match verdict {
        Verdict::Retransmission { .. } if cold.tracker.has_begun_a_run() => RequestKind::BeginsRun,
        Verdict::Retransmission { .. } => RequestKind::GoesOn,
        Verdict::Undecided { .. } => RequestKind::MayBeginRun,
        _ if before.has_lost && !is_first => RequestKind::AfterLoss,
        // Packets of the silence were not captured.
        Verdict::Gap { .. } if silence >= MIN_STALL => RequestKind::AfterLoss,
        _ => RequestKind::New,
    }
}
