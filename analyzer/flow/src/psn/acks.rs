//! The other direction's answers to a flow's requests: how far they are acknowledged, which PSN the receiver
//! waits for, why the sender falls back. How long answers take is left to `times`.

mod before_runs;
mod fallback;

use core::num::NonZeroU64;
use std::collections::VecDeque;

use roce_model::Nanos;

use crate::psn::acks::before_runs::NakNote;
pub(crate) use crate::psn::acks::before_runs::REACH;

/// A sender answers a NAK within its timeouts: within a second.
const MAX_NAK_AGE: Nanos = Nanos(Nanos::SECOND);
/// So far behind the PSN of a NAK the run that answers it may seem to begin: its first packets may be lost, too.
pub(crate) const MAX_RUN_OFFSET: u64 = 1024;
/// The assumed longest time from a NAK to its run while there was none.
pub(super) const LONGEST_ANSWER: Nanos = Nanos(1_000_000);
/// A sender that was silent for less answers a NAK, whatever it took before: a round trip through full queues.
pub(super) const SHORT_SILENCE: Nanos = Nanos(200_000);
/// NAKs remembered that no run has answered. A receiver sends one for each gap that it sees. One that keeps what comes out of order
/// sends them while answers to others are in flight.
const MAX_NAKS: usize = 16;

/// A PSN that a NAK names.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct NakRecord {
    /// True if the packet that it names was in flight. The field is in front, because an `Option` marks its absence in this byte.
    overtaken: bool,
    at: u64,
    time: Nanos,
    /// RNR NAK: not before this time is over.
    timer: Nanos,
}

/// A sequence NAK behind which a run came.
#[derive(Clone, Copy, Debug)]
struct AnsweredNak {
    nak: NakRecord,
    /// The run began at the PSN of the NAK.
    began_there: bool,
}

impl NakRecord {
    fn explains(self, at: u64) -> bool {
        (self.at..self.at + MAX_RUN_OFFSET).contains(&at)
    }
}

/// True if an answer that took `took` is too early for a sender whose shortest answer took `shortest`.
fn is_much_shorter(took: Nanos, shortest: Nanos) -> bool {
    took.0.saturating_mul(2) < shortest.0
}

/// True if an answer that came `after` a packet cannot be its answer: well before a round trip.
fn is_before_round_trip(after: Nanos, rtt: Nanos) -> bool {
    after.0.saturating_mul(5) < rtt.0.saturating_mul(4)
}

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

/// The state of a flow's requests as the answers to them show it. The fields that an ACK needs are in front.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Answers {
    /// All before this PSN is acknowledged; 0: nothing was yet.
    acked: u64,
    /// When that last advanced.
    progress: Nanos,
    /// When the last answer came, new or not.
    pub(super) last_answer: Nanos,
    /// The PSN that the receiver waits for, as far as the requests seen here tell it; 0: for the next new one.
    expects: u64,
    /// One past the highest PSN when a packet last came late without a NAK; 0: none has since.
    late_before: u64,
    /// The shortest of `longest_waits`, or what was when they were taken, in units of 1,024 ns.
    least_wait: u32,
    /// Something was outstanding when the acknowledged PSN last advanced.
    is_waiting: bool,
    /// There is `lost_again`.
    pub(super) has_lost_again: bool,
    /// There is `downstream`.
    has_downstream: bool,
    /// The latest RNR NAK that is not acknowledged. Of its cache line an ACK needs the first byte alone.
    rnr: Option<NakRecord>,
    /// A PSN that was retransmitted after a NAK, captured, and then sent once more by a timeout, and how often: lost behind the
    /// tap each time, unless the receiver turns out to have had it.
    pub(super) lost_again: Option<(NonZeroU64, u32)>,
    /// ACKs that acknowledged nothing new.
    pub(super) duplicates: u64,
    /// The latest sequence NAKs that no run has answered yet, in their order; those acknowledged since may still be on
    /// their way to the sender.
    naks: VecDeque<NakRecord>,
    /// The latest of these that a run answered, or a run before its own answer came.
    answered_naks: VecDeque<AnsweredNak>,
    /// The latest sequence NAKs, whatever came of them.
    notes: VecDeque<NakNote>,
    /// The longest waits for progress that ended without a run: the sender's timer takes longer.
    longest_waits: Vec<Nanos>,
    /// When a packet behind the highest one last came: perhaps a retransmission.
    sent_behind: Nanos,
    /// The longest silence of the sender before the first packet behind the latest gaps, and its end; 0: none was long.
    rest: Nanos,
    rest_end: Nanos,
    /// The latest PSNs that came late: a NAK that was sent before does not mean that they were lost.
    late: core::ops::Range<u64>,
    /// The PSN that a NAK last named although it was captured, until it is acknowledged, and when it was retransmitted; 0: it was not.
    downstream: u64,
    downstream_again: Nanos,
    /// The receiver has such a PSN before its retransmission can have come.
    has_overtaken: bool,
    /// The round trip was measured when a NAK last came.
    has_rtt: bool,
    /// The shortest time from a retransmission to the answer that it has arrived, while no answer was measured; 0: there was none.
    taken_after: Nanos,
    /// Such PSNs, and all that NAKs named although they were captured.
    overtaken: u32,
    named_downstream: u32,
    /// The shortest time that an answer took, when a NAK last came; 0: not known. Of flows of which none was measured: a quarter of the
    /// shortest time from the oldest request that was not answered to a NAK.
    rtt: Nanos,
    nak_took: Nanos,
    /// The latest run: its PSNs so far, and its begin.
    pub(super) run: core::ops::Range<u64>,
    run_begin: Nanos,
    /// The shortest time that a timeout took; 0: there was none.
    timer: Nanos,
    /// The timer of the latest RNR NAK; 0: there was none.
    rnr_timer: Nanos,
    /// The longest time from a NAK to the run that answered it, and the number of such runs that were not reported yet.
    longest_answer: Nanos,
    unreported: u32,
    /// The shortest time from a NAK to a run that repeats, from its PSN on, what had been captured; 0: there was none.
    shortest_answer: Nanos,
    /// The longest time after its acknowledgement at which a retransmission came that no NAK explains. The sender's timer was shorter than its
    /// round trip, or the acknowledgement was lost. 0: there was none.
    held: Nanos,
    /// The latest one, and the PSN that the NAK named; 0: there was none.
    latest_answer: Nanos,
    answered: u64,
    /// When the first PSNs were acknowledged.
    begin: Nanos,
    /// How often the receiver acknowledged what it had got before a late packet.
    taken_out_of_order: u32,
    /// The latest run answered a NAK, or repeated one that did.
    run_by_nak: bool,
    /// The latest run showed all up to a packet that requests an ACK.
    pub(super) run_requests_ack: bool,
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
    pub(crate) fn shortest_answer(&self) -> Nanos {
        self.shortest_answer
    }

    /// How often the receiver acknowledged, without a NAK, what it had got before a late packet.
    pub(crate) fn taken_out_of_order(&self) -> u32 {
        self.taken_out_of_order
    }

    /// The time that the sender took to answer a NAK, as far as that is known; 0: not known. With it, the number of its answers since the
    /// last call.
    pub(super) fn take_new_answers(&mut self) -> (Nanos, u32) {
        (self.longest_answer, core::mem::take(&mut self.unreported))
    }

    /// The time from the first acknowledgement to `time`.
    pub(super) fn acknowledges_for(&self, time: Nanos) -> Nanos {
        time.since(self.begin)
    }

    /// True if `waited` is much less than the sender ever took to answer a NAK.
    pub(super) fn is_early(&self, waited: Nanos) -> bool {
        is_much_shorter(waited, self.shortest_answer)
    }

    /// When the last answer came.
    pub(super) fn last(&self) -> Nanos {
        self.last_answer
    }

    /// When the acknowledged PSN last advanced.
    pub(crate) fn progress(&self) -> Nanos {
        self.progress
    }

    /// All before `psn` is acknowledged; says whether that is new.
    pub(super) fn acknowledge(&mut self, psn: u64, next: u64, time: Nanos) -> bool {
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
        if self.has_downstream && psn > self.downstream {
            self.has_downstream = false;
            self.note_taken(time);
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

    /// The receiver has the packet that a NAK named although it was captured. It has the original if its answer comes before it could have the
    /// retransmission: well before the shortest round trip after that.
    #[cold]
    fn note_taken(&mut self, time: Nanos) {
        let again = self.downstream_again;
        let after = time.since(again);
        if again.0 == 0 || is_before_round_trip(after, self.rtt) {
            self.count_overtaken();
        } else if !self.has_rtt && (self.taken_after.0 == 0 || after < self.taken_after) {
            self.taken_after = after;
        }
    }

    fn count_overtaken(&mut self) {
        self.has_overtaken = true;
        self.overtaken = self.overtaken.saturating_add(1);
    }

    /// True if packets usually overtake each other behind the tap: four or more of those that NAKs name, and one in 16, were only late.
    pub(super) fn are_overtaken(&self) -> bool {
        self.overtaken >= 4 && self.overtaken >= self.named_downstream / 16
    }

    /// A sequence NAK for `psn`. `selective`: the receiver keeps what comes out of order. `rtt`: the shortest time that
    /// an answer took, `oldest_sent`: when the oldest request was sent that is not answered, where no answer was
    /// measured; 0: not known.
    pub(super) fn nak(
        &mut self,
        psn: u64,
        next: u64,
        time: Nanos,
        selective: bool,
        (rtt, oldest_sent): (Nanos, Nanos),
    ) -> NakMeaning {
        self.note_nak(psn, time);
        let took = time.since(oldest_sent);
        if oldest_sent.0 != 0 && (self.nak_took.0 == 0 || took < self.nak_took) {
            self.nak_took = took;
        }
        self.rtt = if rtt.0 == 0 {
            Nanos(self.nak_took.0 / 4)
        } else {
            // Only now it is known which answers came too early.
            let taken_after = core::mem::take(&mut self.taken_after);
            if taken_after.0 != 0 && is_before_round_trip(taken_after, rtt) {
                self.count_overtaken();
            }
            rtt
        };
        self.has_rtt = rtt.0 != 0;
        if psn < self.acked {
            return NakMeaning::Stale;
        }
        let again = self.naks.iter().any(|nak| nak.at == psn);
        if self.naks.len() == MAX_NAKS {
            self.naks.pop_front();
        }
        // Sent before the retransmission could reach the receiver: only the sender may make something of it.
        let overtaken = self.run.contains(&psn) && time.since(self.run_begin) < rtt;
        self.naks.push_back(NakRecord {
            at: psn,
            time,
            timer: Nanos(0),
            overtaken,
        });
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
            !self.has_downstream || psn != self.downstream || self.downstream_again.0 != 0
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
        core::mem::take(&mut self.has_overtaken)
    }

    /// The PSNs `first..end` are captured once more, or late, at `time`.
    pub(super) fn come_again(&mut self, first: u64, end: u64, time: Nanos) {
        self.sent_behind = time;
        if self.has_downstream && (first..end).contains(&self.downstream) && self.downstream_again.0 == 0 {
            self.downstream_again = time;
        }
    }

    /// A packet was captured and named by a NAK: it counts once, until it is retransmitted.
    pub(super) fn count_downstream(&mut self, psn: u64) {
        (self.downstream, self.downstream_again) = (psn, Nanos(0));
        self.has_downstream = true;
        self.named_downstream = self.named_downstream.saturating_add(1);
    }

    /// The receiver had no buffer for `psn`, and asks for it after `timer`.
    pub(super) fn rnr(&mut self, psn: u64, next: u64, time: Nanos, timer: Nanos) -> bool {
        if psn < self.acked {
            return false;
        }
        self.acknowledge(psn, next, time);
        self.rnr_timer = timer;
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
    pub(super) fn gap(&mut self, first: u64, silence: Nanos, time: Nanos) {
        if self.expects == 0 {
            self.expects = first;
        }
        if silence >= SHORT_SILENCE {
            (self.rest, self.rest_end) = (silence, time);
        }
    }

    /// True if the receiver waits for a PSN before `psn`, so that it does not take what comes behind.
    pub(super) fn waits_before(&self, psn: u64) -> bool {
        self.expects != 0 && self.expects < psn
    }

    /// The PSN that a NAK named last, when it is not acknowledged and no run answered yet.
    pub(super) fn named(&self) -> Option<u64> {
        let is_open = |nak: &&NakRecord| !nak.overtaken && nak.at >= self.acked;
        self.naks.back().filter(is_open).map(|nak| nak.at)
    }

    /// True if a NAK after `time` may make the sender fall back to `at`.
    pub(super) fn named_since(&self, at: u64, time: Nanos) -> bool {
        self.naks.iter().any(|nak| nak.explains(at) && nak.time > time)
    }

    /// The latest NAK that may make the sender fall back to `at` at `time`.
    fn nak_for(&self, at: u64, time: Nanos) -> Option<NakRecord> {
        let may = |nak: &&NakRecord| {
            // A packet that arrived after all is not requested again, but the sender knows only when the acknowledgement comes.
            let window = if nak.overtaken || nak.at < self.acked {
                LONGEST_ANSWER
            } else {
                MAX_NAK_AGE
            };
            nak.explains(at) && time.since(nak.time) <= window
        };
        self.naks.iter().rev().find(may).copied()
    }

    /// The time from the NAK that may make the sender fall back to `at`, to `time`.
    pub(super) fn waited_since_nak(&self, at: u64, time: Nanos) -> Option<Nanos> {
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
        let mut named = self.naks.iter().map(|nak| nak.at).chain([self.answered]);
        let named = named.any(|at| (first..end).contains(&at));
        if !named && self.named().is_none() && self.rnr.is_none() {
            self.expects = missing.unwrap_or(0);
            if next > end {
                self.late_before = next;
            }
        }
    }

    /// The PSN of the NAK that a run which begins at `at` answers, if it is before that.
    pub(super) fn named_before(&self, at: u64, time: Nanos) -> Option<u64> {
        self.nak_for(at, time)
            .map(|nak| nak.at)
            .filter(|named| *named < at)
    }
}
