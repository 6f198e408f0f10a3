//! What the other direction's answers say of a flow's requests: how far they are acknowledged, which PSN the receiver
//! waits for, why the sender falls back. How long answers take is left to `times`.

use core::num::NonZeroU64;
use std::collections::VecDeque;

use roce_model::Nanos;
use roce_wire::Psn;

use super::runs::Recovery;
use super::{LARGEST_GAP, Request, Requests, SILENCE, STALE, Tracker, psn_of};

/// Why a sender fell back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trigger {
    /// A sequence NAK.
    Nak,
    /// READ responses were missing, or came out of their order.
    ImpliedNak,
    /// An RNR NAK, after its timer.
    Rnr,
    /// Nothing came for as long as the sender's timer.
    Timeout,
    /// Nothing that was captured explains it.
    Unknown,
}

impl Trigger {
    /// The word in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nak => "nak",
            Self::ImpliedNak => "implied_nak",
            Self::Rnr => "rnr",
            Self::Timeout => "timeout",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a sender falls back to a PSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cause {
    pub(crate) trigger: Trigger,
    /// A NAK or RNR NAK names this very PSN.
    pub(crate) exact: bool,
    /// No reordering explains a silence of this length.
    pub(crate) certain: bool,
}

impl Cause {
    /// A silence as a cause. `timer`: the shortest timeout of the flow; 0: not known. `reordering`: how long its packets
    /// were overtaken.
    pub(super) fn by_silence(silence: Nanos, timer: Nanos, reordering: Nanos) -> Option<Self> {
        // Timers are randomised: half of the shortest one.
        let least = SILENCE.0.max(timer.0 / 2);
        let fits_timer = timer.0 != 0 && silence.0 >= timer.0 / 4 * 3;
        let is_long = silence >= MIN_TIMEOUT;
        (silence.0 >= least).then_some(Self {
            trigger: Trigger::Timeout,
            exact: false,
            certain: (fits_timer || is_long) && silence.0 >= reordering.0.saturating_mul(4),
        })
    }
}

/// A silence of this length is no reordering: paths of one fabric differ by their queues, and a megabyte of queue on each of
/// several 100 Gbit/s links takes 80 us a link. The local ACK timeout has 4.096 us * 2^n with n from 8 upwards in use.
pub(super) const MIN_TIMEOUT: Nanos = Nanos(700_000);
/// A sender answers a NAK within its timeouts: within a second.
const WINDOW: Nanos = Nanos(Nanos::SECOND);
/// So far behind the PSN of a NAK the run that answers it may seem to begin: its first packets may be lost, too.
pub(crate) const REACH: u64 = 1024;
/// A NAK is not what made the sender fall back when that took so many times longer than after any NAK before.
const MUCH_LONGER: u64 = 5;
/// A sender in software, or on a busy host, takes some times as long to answer a NAK as its receiver does to answer a request.
const SLOW_ANSWER: u64 = 8;
/// What the longest way from a NAK to its run is taken for while there was none.
pub(super) const LONGEST_ANSWER: Nanos = Nanos(1_000_000);
/// A sender that was silent for less answers a NAK, whatever it took before: a round trip through full queues.
pub(super) const SHORT_SILENCE: Nanos = Nanos(200_000);
/// NAKs remembered that no run has answered. A receiver sends one for each gap that it sees; few are under way at once.
const MOST_NAKS: usize = 4;

/// A PSN that the receiver asked for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Asked {
    /// What it asks for was under way. In front: by this byte an `Option` shows that there is none.
    overtaken: bool,
    at: u64,
    time: Nanos,
    /// RNR NAK: not before this time is over.
    timer: Nanos,
}

impl Asked {
    fn explains(self, at: u64) -> bool {
        (self.at..self.at + REACH).contains(&at)
    }
}

/// What a NAK says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NakSays {
    /// Nothing that was not known: it was overtaken, or came twice.
    Nothing,
    /// The receiver waits for a PSN that it could have had from what this tap saw.
    CouldHaveIt,
    /// The receiver waits for a PSN that it could not have had, or not in its place.
    WaitsFor,
}

/// What is known of a flow's requests from the answers to them. What an ACK needs stands in front.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Answers {
    /// All before this PSN is acknowledged; 0: nothing was yet.
    acked: u64,
    /// When that last advanced.
    progress: Nanos,
    /// When the last answer came, new or not.
    last_answer: Nanos,
    /// The PSN that the receiver waits for, as far as the requests seen here tell it; 0: for the next new one.
    expects: u64,
    /// One past the highest PSN when a packet last came late without a NAK; 0: none has since.
    late_before: u64,
    /// A PSN that was sent again after a NAK, captured, and then sent once more by a timeout, and how often: lost behind the
    /// tap each time, unless the receiver turns out to have had it.
    lost_again: Option<(NonZeroU64, u32)>,
    /// The latest RNR NAK that is not acknowledged. Of its cache line an ACK needs the first byte alone.
    rnr: Option<Asked>,
    /// ACKs that acknowledged nothing new.
    duplicates: u64,
    /// The latest sequence NAKs that no run has answered yet, in their order; those acknowledged since may still be on
    /// their way to the sender.
    naks: VecDeque<Asked>,
    /// The latest PSNs that came late: a NAK that was sent before does not mean that they were lost.
    late: core::ops::Range<u64>,
    /// The PSN last counted as lost downstream, until it is sent again.
    downstream: u64,
    /// The latest run: its PSNs so far, and its begin.
    run: core::ops::Range<u64>,
    run_begin: Nanos,
    /// The shortest time that a timeout took; 0: there was none.
    timer: Nanos,
    /// The timer of the latest RNR NAK; 0: there was none.
    rnr_timer: Nanos,
    /// The longest time from a NAK to the run that answered it.
    longest_answer: Nanos,
    /// The shortest time from a NAK to a run that repeats, from its PSN on, what had been captured; 0: there was none.
    shortest_answer: Nanos,
    /// The latest one, and the PSN that the NAK asked for; 0: there was none.
    latest_answer: Nanos,
    answered: u64,
    /// When the first PSNs were acknowledged.
    begin: Nanos,
    /// How often the receiver acknowledged what it had got before a late packet.
    taken_out_of_order: u32,
    /// The latest run answered a NAK, or repeated one that did.
    run_by_nak: bool,
    /// The latest run showed all up to a packet that asks for an ACK.
    pub(super) run_asks: bool,
}

// An ACK that says something new touches the first line alone.
const _: () = assert!(core::mem::offset_of!(Answers, rnr) < 64 && size_of::<Option<Asked>>() == 32);

impl Answers {
    /// All before this PSN is acknowledged; 0: nothing was yet.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    /// ACKs that acknowledged nothing new.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// How often the receiver acknowledged, without a NAK, what it had got before a late packet.
    pub(crate) fn taken_out_of_order(&self) -> u32 {
        self.taken_out_of_order
    }

    /// For how long, at `time`, something has been acknowledged.
    pub(super) fn acknowledges_for(&self, time: Nanos) -> Nanos {
        time.since(self.begin)
    }

    /// Whether `waited` is much less than the sender ever took to answer a NAK.
    pub(super) fn is_early(&self, waited: Nanos) -> bool {
        waited.0.saturating_mul(2) < self.shortest_answer.0
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
    fn acknowledge(&mut self, psn: u64, next: u64, time: Nanos) -> bool {
        if psn <= self.acked {
            return false;
        }
        if self.acked == 0 {
            self.begin = time;
        }
        self.acked = psn;
        self.progress = time;
        if self.late_before != 0 && psn >= self.late_before {
            self.late_before = 0;
            self.taken_out_of_order += 1;
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

    /// A sequence NAK for `psn`. `selective`: the receiver keeps what comes out of order. `rtt`: the shortest time that
    /// an answer took; 0: not known.
    fn nak(&mut self, psn: u64, next: u64, time: Nanos, selective: bool, rtt: Nanos) -> NakSays {
        if psn < self.acked {
            return NakSays::Nothing;
        }
        let again = self.naks.iter().any(|nak| nak.at == psn);
        if self.naks.len() == MOST_NAKS {
            self.naks.pop_front();
        }
        // Sent before the resend could reach the receiver: only the sender may make something of it.
        let overtaken = self.run.contains(&psn) && time.since(self.run_begin) < rtt;
        self.naks.push_back(Asked {
            at: psn,
            time,
            timer: Nanos(0),
            overtaken,
        });
        if overtaken {
            return NakSays::Nothing;
        }
        let expected = if self.expects == 0 {
            next
        } else {
            // What it waited for may have come late, and what followed on that was dropped.
            self.expects.max(psn)
        };
        self.acknowledge(psn, next, time);
        self.wait_for(psn, next);
        if psn >= next || self.late.contains(&psn) {
            return NakSays::WaitsFor;
        }
        let new = if selective {
            psn != self.downstream
        } else {
            psn < expected
        };
        match (new, again) {
            (true, _) => NakSays::CouldHaveIt,
            (false, true) => NakSays::Nothing,
            (false, false) => NakSays::WaitsFor,
        }
    }

    /// A packet was captured and asked for: it counts once, until it is sent again.
    fn count_downstream(&mut self, psn: u64) {
        self.downstream = psn;
    }

    /// The receiver had no buffer for `psn`, and asks for it after `timer`.
    fn rnr(&mut self, psn: u64, next: u64, time: Nanos, timer: Nanos) -> bool {
        if psn < self.acked {
            return false;
        }
        self.acknowledge(psn, next, time);
        self.rnr_timer = timer;
        self.rnr = Some(Asked {
            at: psn,
            time,
            timer,
            overtaken: false,
        });
        self.wait_for(psn, next);
        true
    }

    /// PSNs were jumped over.
    pub(super) fn gap(&mut self, first: u64) {
        if self.expects == 0 {
            self.expects = first;
        }
    }

    /// Whether the receiver waits for a PSN before `psn`, so that it does not take what comes behind.
    pub(super) fn waits_before(&self, psn: u64) -> bool {
        self.expects != 0 && self.expects < psn
    }

    /// The PSN that a NAK asked for last, when it is not acknowledged and no run answered yet.
    pub(super) fn named(&self) -> Option<u64> {
        let asks = |nak: &&Asked| !nak.overtaken && nak.at >= self.acked;
        self.naks.back().filter(asks).map(|nak| nak.at)
    }

    /// Whether a NAK after `time` may make the sender fall back to `at`.
    pub(super) fn named_since(&self, at: u64, time: Nanos) -> bool {
        self.naks.iter().any(|nak| nak.explains(at) && nak.time > time)
    }

    /// The latest NAK that may make the sender fall back to `at` at `time`.
    fn nak_for(&self, at: u64, time: Nanos) -> Option<Asked> {
        let may = |nak: &&Asked| {
            // What arrived after all is not asked for again, but the sender knows only when the acknowledgement comes.
            let window = if nak.overtaken || nak.at < self.acked {
                LONGEST_ANSWER
            } else {
                WINDOW
            };
            nak.explains(at) && time.since(nak.time) <= window
        };
        self.naks.iter().rev().find(may).copied()
    }

    /// For how long, at `time`, the NAK has been there that may make the sender fall back to `at`.
    pub(super) fn waited_since_nak(&self, at: u64, time: Nanos) -> Option<Nanos> {
        self.nak_for(at, time).map(|nak| time.since(nak.time))
    }

    /// Packets that are behind the highest fill the PSNs `first..end`: the receiver takes them when it waits for them.
    pub(super) fn behind(&mut self, first: u64, end: u64, next: u64) {
        if self.expects != 0 && (first..end).contains(&self.expects) {
            self.wait_for(end, next);
        }
        if (first..end).contains(&self.downstream) {
            self.downstream = 0;
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

    /// Why the sender falls back to `at` with `request`. `reordering`: how long the flow's packets were overtaken;
    /// `is_reordered`: they may be, on the way that the flow takes.
    pub(super) fn cause(
        &self,
        at: u64,
        request: &Request,
        reordering: Nanos,
        is_reordered: bool,
    ) -> Option<Cause> {
        let waited = |asked: Asked| request.time.since(asked.time);
        let of = |trigger, exact| {
            Some(Cause {
                trigger,
                exact,
                certain: true,
            })
        };
        if let Some(rnr) = self.rnr.filter(|rnr| rnr.explains(at))
            && waited(rnr).0 >= rnr.timer.0 / 4 * 3
        {
            return of(Trigger::Rnr, rnr.at == at);
        }
        let is_early = |nak: &Asked| is_reordered && self.is_early(waited(*nak));
        if let Some(nak) = self.nak_for(at, request.time).filter(|nak| !is_early(nak)) {
            return of(
                self.nak_or_timeout(waited(nak), request, is_reordered),
                nak.at == at,
            );
        }
        let waited = if request.is_read {
            // As long as responses come, the timer does not expire.
            self.waited(request).min(request.time.since(self.last_answer))
        } else {
            self.waited(request)
        };
        if request.again != Again::Nothing && waited < SHORT_SILENCE {
            // A response behind the missing one has just shown the gap.
            return Some(Cause {
                trigger: Trigger::ImpliedNak,
                exact: request.again == Again::Missing,
                certain: request.again != Again::Whole,
            });
        }
        if waited.0 < request.rtt.0 * 2 {
            return None;
        }
        let fits_timer = self.timer.0 != 0 && waited.0 >= self.timer.0 / 4 * 3;
        let has_responses = matches!(request.again, Again::Captured | Again::Rest | Again::Whole);
        if has_responses && waited >= SILENCE && waited < MIN_TIMEOUT && !fits_timer {
            // Its responses may have come in an order that the requester does not take.
            return of(Trigger::Unknown, false);
        }
        if self.is_rnr_wait(waited) {
            return of(Trigger::Unknown, false);
        }
        let silence = Cause::by_silence(waited, self.timer, reordering);
        // As long as packets of the flow go on coming, the sender's timer does not expire.
        silence.map(|cause| Cause {
            certain: cause.certain && (request.silence.0 >= waited.0 / 4 || waited >= MIN_TIMEOUT),
            ..cause
        })
    }

    /// Whether a silence has the length that the receiver's RNR NAKs make it: one more of them may have been lost on its way or by the
    /// capture.
    fn is_rnr_wait(&self, waited: Nanos) -> bool {
        let timer = self.rnr_timer.0;
        timer != 0 && (timer / 4 * 3..=timer.saturating_mul(2)).contains(&waited.0)
    }

    /// A sender falls back so long after a NAK: because of it, or because the NAK or its retransmission was lost and the timer
    /// expired. A sender that answers a NAK goes on sending until it does; one that waits for its timer is silent.
    fn nak_or_timeout(&self, waited: Nanos, request: &Request, is_reordered: bool) -> Trigger {
        let is_silent = request.silence >= SHORT_SILENCE && request.silence.0 >= waited.0 / 2;
        if !is_silent || waited < SHORT_SILENCE {
            return Trigger::Nak;
        }
        let fits_timer = self.timer.0 != 0 && waited.0 >= self.timer.0 / 4 * 3;
        let usual = self.longest_answer.0.max(request.usual_rtt.0 * 2);
        let is_long = waited.0 >= MIN_TIMEOUT.0.max(request.usual_rtt.0 * SLOW_ANSWER);
        if !fits_timer && request.is_slowed {
            // Congestion control may hold back the answer as long as a timer would.
            return Trigger::Unknown;
        }
        if self.timer.0 != 0 && !fits_timer {
            // Its timer takes much longer: the sender was slow to answer.
            return Trigger::Nak;
        }
        if is_reordered && !fits_timer && !is_long {
            // A resend takes its time on the way like any packet.
            return Trigger::Nak;
        }
        if fits_timer || is_long || usual != 0 && waited.0 >= usual * MUCH_LONGER {
            Trigger::Timeout
        } else if usual == 0 || waited.0 <= usual * 2 {
            Trigger::Nak
        } else {
            Trigger::Unknown
        }
    }

    /// For how long nothing had come when `request` was sent again: since the last progress, since the oldest request
    /// was sent, or since the last run began.
    fn waited(&self, request: &Request) -> Nanos {
        let since = self.progress.max(request.waiting_since).max(self.run_begin);
        if since.0 == 0 {
            request.silence
        } else {
            request.time.since(since)
        }
    }

    /// A run begins at `at` because of `trigger`: what asked for it is answered.
    /// `repeats`: its first packet had been captured before, so that it is no late one.
    /// `is_sure`: no reordering explains the silence of a timeout.
    pub(super) fn begin_run(
        &mut self,
        at: u64,
        request: &Request,
        trigger: Trigger,
        repeats: bool,
        is_sure: bool,
    ) {
        match trigger {
            Trigger::Nak => {
                if let Some(nak) = self.nak_for(at, request.time) {
                    let took = request.time.since(nak.time);
                    let is_shortest = self.shortest_answer.0 == 0 || took < self.shortest_answer;
                    if repeats && nak.at == at && is_shortest {
                        self.shortest_answer = took;
                    }
                    if took < MIN_TIMEOUT {
                        self.longest_answer = self.longest_answer.max(took);
                    }
                    self.latest_answer = took;
                    self.answered = nak.at;
                }
            }
            Trigger::Timeout => {
                if self.run_by_nak && self.run_asks && self.run.start == at && self.acked == at {
                    let before = self.lost_again.filter(|(psn, _)| psn.get() == at);
                    let times = before.map_or(0, |(_, times)| times) + 1;
                    self.lost_again = NonZeroU64::new(at).map(|psn| (psn, times));
                }
                let waited = self.waited(request);
                self.timer = if !is_sure && waited < MIN_TIMEOUT {
                    self.timer
                } else if self.timer.0 == 0 {
                    waited
                } else {
                    self.timer.min(waited)
                };
            }
            _ => {}
        }
        self.run_by_nak = trigger == Trigger::Nak || self.run_by_nak && self.run.start == at;
        // A run that answers a younger NAK is still on its way, by slower paths than this one's first packet.
        let (time, least) = (request.time, self.shortest_answer);
        let is_early = |nak: &Asked| !is_sure && time.since(nak.time).0.saturating_mul(2) < least.0;
        self.naks.retain(|nak| !nak.explains(at) || is_early(nak));
        self.rnr = self.rnr.filter(|rnr| !rnr.explains(at));
        self.run_asks = false;
        self.run = at..at;
        self.run_begin = request.time;
    }

    /// At `time` the sender has gone on after a run that a NAK made it begin. Another NAK for what the run sent again would have
    /// made it fall back by then, if it came after that.
    pub(super) fn forget_answered_naks(&mut self, time: Nanos) {
        let (run, answer) = (&self.run, self.latest_answer);
        self.naks
            .retain(|nak| !run.contains(&nak.at) || time.since(nak.time).0 < answer.0 * 2);
    }

    /// The run has come to `end`.
    pub(super) fn extend_run(&mut self, end: u64) {
        self.run.end = self.run.end.max(end);
    }
}

/// What is known of the responses that a request sent again asks for again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Again {
    /// It is no READ, or none of them was due or captured.
    #[default]
    Nothing,
    /// The first of them is missing.
    Missing,
    /// The first of them was captured.
    Captured,
    /// It begins in the middle of a READ, so that it was sent again; nothing is known of the first of them.
    Rest,
    /// The first of them was captured, and the READ begins where one did before: the network may have delivered it twice.
    Whole,
}

/// What an answer shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Answered {
    /// It acknowledges something new.
    pub(crate) is_new: bool,
    /// A packet that was captured did not reach the receiver: its PSN, and how often.
    pub(crate) lost_downstream: Option<(Psn, u32)>,
}

impl Tracker {
    /// The other direction is known from now on.
    pub(crate) fn pair(&mut self) {
        self.paired = true;
        self.await_answers();
    }

    /// Makes room for what the other direction says, once that is known and there was a request.
    pub(super) fn await_answers(&mut self) {
        if self.paired && self.begin != 0 {
            self.answers.get_or_insert_default();
        }
    }

    /// Whether the other direction is known.
    pub(crate) fn is_paired(&self) -> bool {
        self.paired
    }

    /// What the other direction says of the requests; `None` while it is not known, and without requests.
    pub(crate) fn answers(&self) -> Option<&Answers> {
        self.answers.as_deref()
    }

    /// Where `psn`, as an answer names it, is among the requests; `None` when it fits none of them.
    pub(crate) fn position(requests: &Requests, psn: Psn) -> Option<u64> {
        let ahead = psn.offset_from(requests.expected());
        if requests.next == 0 || ahead <= -STALE || ahead > LARGEST_GAP {
            return None;
        }
        requests.next.checked_add_signed(i64::from(ahead))
    }

    /// An answer shows that everything before `psn` arrived.
    pub(crate) fn acknowledge(&mut self, requests: &Requests, psn: u64, time: Nanos) -> Answered {
        let Some(answers) = &mut self.answers else {
            return Answered::default();
        };
        answers.last_answer = time;
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
            return Answered::default();
        };
        // The receiver has no more than the latest run brought: the run before brought it nothing.
        let lost_again = Some(answers).filter(|_| is_new).and_then(|answers| {
            let (sent, times) = answers.lost_again.take()?;
            (psn > sent.get() && psn <= answers.run.end).then_some((psn_of(sent.get()), times))
        });
        Answered {
            is_new,
            lost_downstream: lost_again,
        }
    }

    /// The same for an ACK, which is for nothing else: one that says nothing new is counted.
    pub(crate) fn acknowledged(&mut self, requests: &Requests, psn: u64, time: Nanos) -> Answered {
        let answered = self.acknowledge(requests, psn, time);
        if let Some(answers) = self.answers.as_mut().filter(|_| !answered.is_new) {
            answers.duplicates += 1;
        }
        answered
    }

    /// A sequence NAK for `psn`: all before arrived. `rtt`: the shortest time that an answer took; 0: not known.
    pub(crate) fn nak(&mut self, requests: &Requests, psn: u64, time: Nanos, rtt: Nanos) -> Answered {
        let missing = self.is_missing(psn);
        let filled = self
            .pending
            .as_ref()
            .map_or(self.refilled.end, |pending| pending.next);
        if !missing && psn < requests.next && psn == filled {
            // It has what was missing, and asks for what was captured behind that: it had not kept it. That says more than
            // runs do, whose ends may be lost.
            self.go_back_n += 4;
        }
        let selective = matches!(self.recovery(), Some(Recovery::Selective | Recovery::OutOfOrder));
        // What is filling a hole right now may be late, and the NAK older.
        let filling = self.pending.as_ref().is_some_and(|pending| {
            pending
                .filled
                .iter()
                .any(|part| (part.first..part.end).contains(&psn))
        });
        let (begin, next) = (self.begin, requests.next);
        let Some(answers) = &mut self.answers else {
            return Answered::default();
        };
        answers.last_answer = time;
        let before = answers.acked();
        let says = answers.nak(psn, next, time, selective, rtt);
        let is_sure = psn >= begin && !self.unsure.contains(&psn);
        let lost_downstream = says == NakSays::CouldHaveIt && !missing && !filling && is_sure;
        if lost_downstream {
            answers.count_downstream(psn);
        }
        let is_new = answers.acked() > before;
        if let Some(holes) = self.holes.as_mut().filter(|_| says != NakSays::Nothing) {
            holes.cover(psn, time);
            holes.name_at(psn, time);
        }
        Answered {
            is_new,
            lost_downstream: lost_downstream.then_some((psn_of(psn), 1)),
        }
    }

    /// An RNR NAK for `psn`: all before arrived, and it, too.
    pub(crate) fn rnr(&mut self, requests: &Requests, psn: u64, time: Nanos, timer: Nanos) -> Answered {
        let Some(answers) = &mut self.answers else {
            return Answered::default();
        };
        let before = answers.acked();
        let is_new = answers.rnr(psn, requests.next, time, timer);
        if let Some(holes) = self.holes.as_mut().filter(|_| is_new) {
            holes.cover(psn + 1, time);
        }
        Answered {
            is_new: self.answers().is_some_and(|answers| answers.acked() > before),
            lost_downstream: None,
        }
    }
}
