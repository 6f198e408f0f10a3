//! The other direction's answers to a flow's requests: how far they are acknowledged, which PSN the receiver
//! waits for, why the sender falls back. How long answers take is left to `times`.

mod before_runs;
mod downstream;
mod fallback;
mod fallback_times;
mod latest_run;
mod nak_history;

use core::ops::Range;

use roce_model::{Span, Time};

use crate::psn::acks::downstream::DownstreamPackets;
use crate::psn::acks::fallback_times::FallbackTimes;
pub(in crate::psn) use crate::psn::acks::fallback_times::SHORT_SILENCE;
use crate::psn::acks::latest_run::LatestRun;
pub(in crate::psn) use crate::psn::acks::nak_history::LONGEST_ANSWER;
pub(crate) use crate::psn::acks::nak_history::{MAX_RUN_OFFSET, REACH};
use crate::psn::acks::nak_history::{NakHistory, NakRecord};

/// The meaning of a NAK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NakMeaning {
    /// Nothing that was not known: it was overtaken, or came twice.
    Stale,
    /// The receiver waits for a PSN that it could have had from what this tap saw.
    LostDownstream,
    /// The receiver waits for a PSN that it could not have had, or not in its place.
    Missing,
}

/// The longest silence of the sender before the first packet behind the latest gaps, and its end; 0: none was long.
#[derive(Clone, Copy, Debug, Default)]
struct SenderRest {
    length: Span,
    end: Time,
}

/// The state of a flow's requests as the answers to them show it. The fields that an ACK needs are in front.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Answers {
    /// All before this PSN is acknowledged; 0: nothing was yet.
    acked: u64,
    /// When that last advanced.
    progress: Time,
    /// When the last answer came, new or not.
    last_answer: Time,
    /// The PSN that the receiver waits for, as far as the requests seen here tell it; 0: for the next new one.
    expects: u64,
    /// One past the highest PSN when a packet last came late without a NAK; 0: none has since.
    late_before: u64,
    /// The shortest of `longest_waits`, or what was when they were taken, in units of 1,024 ns.
    least_wait: u32,
    /// Something was outstanding when the acknowledged PSN last advanced.
    is_waiting: bool,
    /// The latest run repeats for a timeout what one for a NAK had brought.
    has_lost_again: bool,
    /// A packet that a NAK named although it was captured is not acknowledged yet.
    has_downstream: bool,
    /// The latest RNR NAK that is not acknowledged. Of its cache line an ACK needs the first byte alone.
    rnr: Option<NakRecord>,
    /// ACKs that acknowledged nothing new.
    duplicates: u64,
    naks: NakHistory,
    downstream: DownstreamPackets,
    times: FallbackTimes,
    run: LatestRun,
    /// The longest waits for progress that ended without a run: the sender's timer takes longer.
    longest_waits: Vec<Span>,
    /// When a packet behind the highest one last came: perhaps a retransmission.
    sent_behind: Time,
    rest: SenderRest,
    /// The latest PSNs that came late: a NAK that was sent before does not mean that they were lost.
    late: Range<u64>,
    /// When the first PSNs were acknowledged.
    begin: Time,
    /// How often the receiver acknowledged what it had got before a late packet.
    taken_out_of_order: u32,
}

// An ACK that says something new touches the first line alone.
const _: () = assert!(core::mem::offset_of!(Answers, rnr) < 64 && size_of::<Option<NakRecord>>() == 32);

impl Answers {
    /// All before this PSN is acknowledged; 0: nothing was yet.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    /// ACKs that acknowledged nothing new.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// The shortest time from a NAK to the packet that it names; 0: not known.
    pub(crate) fn shortest_answer(&self) -> Span {
        self.times.shortest_answer()
    }

    /// How often the receiver acknowledged, without a NAK, what it had got before a late packet.
    pub(crate) fn taken_out_of_order(&self) -> u32 {
        self.taken_out_of_order
    }

    /// The time that the sender took to answer a NAK, as far as that is known; 0: not known. With it, the number of its answers since the
    /// last call.
    pub(super) fn take_new_answers(&mut self) -> (Span, u32) {
        self.times.take_new_answers()
    }

    /// The time from the first acknowledgement to `time`.
    pub(super) fn acknowledges_for(&self, time: Time) -> Span {
        time.since(self.begin)
    }

    /// True if `waited` is much less than the sender ever took to answer a NAK.
    pub(super) fn is_early(&self, waited: Span) -> bool {
        self.times.is_early(waited)
    }

    /// An ACK came that says nothing new.
    pub(super) fn count_duplicate(&mut self) {
        self.duplicates += 1;
    }

    /// An answer came at `time`.
    pub(super) fn note_answer(&mut self, time: Time) {
        self.last_answer = time;
    }

    /// All before `psn` is acknowledged as of now. Where the receiver has no more than the latest run brought, the run before brought it
    /// nothing: gives the PSN that was lost behind the tap, and how often.
    pub(super) fn take_lost_again(&mut self, psn: u64) -> Option<(u64, u32)> {
        core::mem::take(&mut self.has_lost_again)
            .then(|| self.run.take_lost_again(psn))
            .flatten()
    }

    /// The latest run showed all up to a packet that requests an ACK, or not yet.
    pub(super) fn set_run_requests_ack(&mut self, requests_ack: bool) {
        self.run.set_requests_ack(requests_ack);
    }

    /// When the last answer came.
    pub(super) fn last(&self) -> Time {
        self.last_answer
    }

    /// When the acknowledged PSN last advanced.
    pub(crate) fn progress(&self) -> Time {
        self.progress
    }

    /// All before `psn` is acknowledged; says whether that is new.
    pub(super) fn acknowledge(&mut self, psn: u64, next: u64, time: Time) -> bool {
        if psn <= self.acked {
            return false;
        }
        if self.acked == 0 {
            self.begin = time;
        }
        self.acked = psn;
        self.progress = time;
        self.is_waiting = psn < next;
        if self.late_before != 0 && psn >= self.late_before {
            self.late_before = 0;
            self.taken_out_of_order += 1;
        }
        if self.has_downstream && psn > self.downstream.psn() {
            self.has_downstream = false;
            self.downstream.taken(time);
        }
        match self.expects {
            0 => {}
            // It has that, perhaps because it was only late: what came after, it may have dropped.
            expects if psn == expects || psn == expects + 1 => self.wait_for(psn, next),
            // More than that: it keeps what comes out of order, or a retransmission was not captured.
            expects if psn > expects => self.wait_for(psn, next),
            _ => {}
        }
        if self.rnr.is_some_and(|rnr| rnr.at < psn) {
            self.rnr = None;
        }
        true
    }

    fn wait_for(&mut self, psn: u64, next: u64) {
        self.expects = if psn < next { psn } else { 0 };
    }

    /// True if packets usually overtake each other behind the tap: four or more of those that NAKs name, and one in 16, were only late.
    pub(super) fn are_overtaken(&self) -> bool {
        self.downstream.are_overtaken()
    }

    /// A sequence NAK for `psn`. `selective`: the receiver keeps what comes out of order. `rtt`: the shortest time that
    /// an answer took, `oldest_sent`: when the oldest request was sent that is not answered, where no answer was
    /// measured; 0: not known.
    pub(super) fn nak(
        &mut self,
        psn: u64,
        next: u64,
        time: Time,
        selective: bool,
        (rtt, oldest_sent): (Span, Time),
    ) -> NakMeaning {
        self.last_answer = time;
        self.naks.note(psn, time);
        let is_known = oldest_sent.0 != 0;
        let asked_since = if is_known {
            oldest_sent.max(self.run.begun_by_timeout())
        } else {
            oldest_sent
        };
        self.downstream.measure(time, rtt, asked_since);
        if psn < self.acked {
            return NakMeaning::Stale;
        }
        // Sent before the retransmission could reach the receiver: only the sender may make something of it.
        let overtaken = self.run.psns().contains(&psn) && time.since(self.run.begun()) < rtt;
        let again = self.naks.open(psn, time, overtaken);
        if overtaken {
            return NakMeaning::Stale;
        }
        let expected = if self.expects == 0 {
            next
        } else {
            // The packet that it waited for may have come late, and what followed on that was dropped.
            self.expects.max(psn)
        };
        self.acknowledge(psn, next, time);
        self.wait_for(psn, next);
        if psn >= next || self.late.contains(&psn) {
            return NakMeaning::Missing;
        }
        let new = if selective {
            !self.has_downstream || psn != self.downstream.psn() || self.downstream.came_again()
        } else {
            psn < expected
        };
        match (new, again) {
            (true, _) => NakMeaning::LostDownstream,
            (false, true) => NakMeaning::Stale,
            (false, false) => NakMeaning::Missing,
        }
    }

    /// True, once, if the receiver has a PSN that it had named in a NAK, that was captured before, and whose retransmission it cannot have: other
    /// packets had overtaken it behind the tap.
    pub(super) fn take_overtaken(&mut self) -> bool {
        self.downstream.take_overtaken()
    }

    /// The PSNs `first..end` are captured once more, or late, at `time`.
    pub(super) fn come_again(&mut self, first: u64, end: u64, time: Time) {
        self.sent_behind = time;
        if self.has_downstream && (first..end).contains(&self.downstream.psn()) {
            self.downstream.repeat(time);
        }
    }

    /// A packet was captured and named by a NAK: it counts once, until it is retransmitted.
    pub(super) fn count_downstream(&mut self, psn: u64) {
        self.downstream.named(psn);
        self.has_downstream = true;
    }

    /// The receiver had no buffer for `psn`, and asks for it after `timer`.
    pub(super) fn rnr(&mut self, psn: u64, next: u64, time: Time, timer: Span) -> bool {
        if psn < self.acked {
            return false;
        }
        self.acknowledge(psn, next, time);
        self.times.note_rnr(timer);
        self.rnr = Some(NakRecord {
            at: psn,
            time,
            timer,
            overtaken: false,
        });
        self.wait_for(psn, next);
        true
    }

    /// PSNs were jumped over by a packet at `time` that came after `silence`.
    pub(super) fn gap(&mut self, first: u64, silence: Span, time: Time) {
        if self.expects == 0 {
            self.expects = first;
        }
        if silence >= SHORT_SILENCE {
            self.rest = SenderRest {
                length: silence,
                end: time,
            };
        }
    }

    /// True if the receiver waits for a PSN before `psn`, so that it does not take what comes behind.
    pub(super) fn waits_before(&self, psn: u64) -> bool {
        self.expects != 0 && self.expects < psn
    }

    /// The PSN that a NAK named last, when it is not acknowledged and no run answered yet.
    pub(super) fn named(&self) -> Option<u64> {
        self.naks.named(self.acked)
    }

    /// True if a NAK after `time` may make the sender fall back to `at`.
    pub(super) fn named_since(&self, at: u64, time: Time) -> bool {
        self.naks.named_since(at, time)
    }

    /// The latest NAK that may make the sender fall back to `at` at `time`.
    fn nak_for(&self, at: u64, time: Time) -> Option<NakRecord> {
        self.naks.latest_for(at, time, self.acked)
    }

    /// The time from the NAK that may make the sender fall back to `at`, to `time`.
    pub(super) fn waited_since_nak(&self, at: u64, time: Time) -> Option<Span> {
        self.nak_for(at, time).map(|nak| time.since(nak.time))
    }

    /// Packets that are behind the highest fill the PSNs `first..end`: the receiver takes them when it waits for them.
    pub(super) fn behind(&mut self, first: u64, end: u64, next: u64) {
        if self.expects != 0 && (first..end).contains(&self.expects) {
            self.wait_for(end, next);
        }
    }

    /// The PSNs `first..end` came late. `missing`: the first PSN that is still missing. `next`: one past the highest.
    pub(super) fn late(&mut self, first: u64, end: u64, missing: Option<u64>, next: u64) {
        self.late = first..end;
        // No NAK named them, or what came before: the receiver keeps what comes out of order.
        let named = self.naks.name_any_of(&(first..end)) || (first..end).contains(&self.times.answered());
        if !named && self.named().is_none() && self.rnr.is_none() {
            self.expects = missing.unwrap_or(0);
            if next > end {
                self.late_before = next;
            }
        }
    }

    /// The PSN of the NAK that a run which begins at `at` answers, if it is before that.
    pub(super) fn named_before(&self, at: u64, time: Time) -> Option<u64> {
        self.nak_for(at, time)
            .map(|nak| nak.at)
            .filter(|named| *named < at)
    }
}
