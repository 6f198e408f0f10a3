//! The PSNs of a flow's requests: in order, a gap, or behind the highest one (`behind`, and `judge` once more packets have come).
//! `restart` decides when an epoch starts, `answers` takes what the other direction says, `runs` follows retransmissions, `named`
//! judges late packets that a NAK names. [`crate::psn::holes`] decides what became of missing PSNs.

pub(crate) mod answers;
mod before_runs;
mod behind;
mod judge;
mod named;
mod restart;
mod runs;

use core::ops::Range;
use std::collections::VecDeque;

use roce_model::Nanos;
use roce_wire::Psn;

use crate::psn::acks::Answers;
use crate::psn::causes::Circumstances;
use crate::psn::holes::{DecidedHole, Hole, Holes, LossClass, LossCounts};
use crate::psn::reordering::Reordering;
use crate::psn::request::{BASE, LARGEST_GAP, NewConnection, Request, Requests, STALE, Verdict, psn_of};
use crate::psn::run::{EndedRun, RetransmittedRun};
use crate::psn::seldom::Seldom;
use crate::psn::undecided::{Decision, PendingPackets};

/// PSNs lost behind the tap, of one flow, that wait until its other direction is known.
const MAX_WAITING_PSNS: usize = 64;
/// Number of stale packets in a row, in order, that are a new epoch.
const STALE_RUN: u8 = 8;

/// The part of a flow's request state that answers and disturbances touch: what answers need stands in front.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Tracker {
    /// The answers of the other direction, once that is known and there is one.
    answers: Option<Box<Answers>>,
    /// Missing PSNs, once there were some.
    holes: Option<Box<Holes>>,
    /// Decisions not applied yet.
    decisions: Seldom<Decision>,
    /// Runs that ended and were not reported yet.
    ended: Seldom<EndedRun>,
    /// Circumstances before the run that goes on.
    before_run: Option<Box<Circumstances>>,
    /// PSNs that READs of unknown span may have taken: whether there were requests between, nobody knows.
    unsure: Range<u64>,
    /// These READs, until the path MTU shows how many PSNs they take.
    unsure_reads: Vec<UnsureRead>,
    /// READs that came behind those, among PSNs that they may have taken, before the path MTU was known.
    reads_behind: Vec<ReadBehind>,
    /// PSNs of the latest READ of known span; 0: there was none.
    read_span: u32,
    /// Packets behind the highest one that the next packet decides.
    pending: Option<Box<PendingPackets>>,
    /// Packets that seem to answer a NAK, as long as they may turn out to be late: one entry for each NAK, in the order of capture.
    waiting: VecDeque<PendingPackets>,
    run: Option<RetransmittedRun>,
    /// When the latest packet of the latest run came.
    run_time: Nanos,
    /// One past the highest PSN when it came: as far as the sender has to repeat.
    run_reach: u64,
    /// The latest packets of the latest run, where the sender counts IP identifications up: PSN and identification.
    run_ids: VecDeque<(u64, u16)>,
    /// The PSNs that the latest run had to repeat, if it ended after it had repeated captured packets.
    repeated: Range<u64>,
    /// The first PSN of the epoch, and when it came.
    begin: u64,
    begin_time: Nanos,
    /// The latest missing PSNs that were retransmitted: captured once.
    refilled: Range<u64>,
    refilled_at: Nanos,
    /// A new connection was made of the queue pair: its first request begins an epoch.
    connected: Option<NewConnection>,
    reordering: Reordering,
    /// Retransmissions that a run did not show although it began behind the PSN of its NAK: lost before the tap, once a later
    /// run shows them.
    skipped: Range<u64>,
    /// PSNs that a NAK between the flow's hosts named although they had been captured, before the other direction was known.
    early_downstream: Vec<Psn>,
    /// Retransmissions that were lost before the tap, and those that are not reported yet.
    lost_again: u64,
    new_lost_again: (u64, u64),
    /// PSNs that filled holes as retransmissions, the latest ones, and when the gap showed: a packet that was
    /// sent before comes late.
    retransmitted: VecDeque<(u64, u64, Nanos)>,
    /// Losses that the packets prove: see [`Tracker::proven_losses`].
    proven: u64,
    /// The latest ones of these, in [`crate::psn::holes::MAY_STILL_ARRIVE`] from this time on.
    just_proven: u64,
    proven_at: Nanos,
    /// Runs that repeated what the receiver had got, and such that did not.
    go_back_n: u32,
    selective: u32,
    stale_next: Psn,
    stale_run: u8,
    /// After a READ of unknown span: whatever comes next is in order.
    resync: bool,
    /// The capture lost records: a gap would be its own.
    capture_lost: bool,
    /// The other direction is known.
    paired: bool,
    /// Packets of another flow between the same hosts came late.
    others_late: bool,
    /// NAKs named packets that were only late, as their second coming showed.
    named_late: bool,
}

/// READs of unknown span whose distance from the next request is remembered.
const MAX_UNSURE_READS: usize = 16;

/// A READ of which it was not known how many PSNs it takes.
#[derive(Clone, Copy, Debug)]
struct UnsureRead {
    at: u64,
    length: u32,
    /// Where the next request began, and when it came.
    next: u64,
    time: Nanos,
    ip_id: Option<u16>,
}

/// A READ that came behind the highest PSN, where nobody knew whether requests were missing.
#[derive(Clone, Copy, Debug)]
struct ReadBehind {
    at: u64,
    length: u32,
    time: Nanos,
    is_late: bool,
}

impl Tracker {
    /// Judges a packet that [`Requests::advance`] did not take.
    pub(crate) fn observe(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        self.others_late |= request.others_late;
        let verdict = self.judge(requests, request);
        requests.disturbed = self.run.is_some()
            || self.pending.is_some()
            || !self.waiting.is_empty()
            || self.resync
            || self.capture_lost
            || self.connected.is_some()
            || self.stale_run > 0;
        verdict
    }

    /// Judges a packet of UC, which neither acknowledges nor retransmits: holes and the packets that fill them,
    /// no more.
    pub(crate) fn observe_unreliable(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        let verdict = self.judge_unreliable(requests, request);
        requests.disturbed = self.capture_lost || self.connected.is_some() || self.stale_run > 0;
        verdict
    }

    fn judge_unreliable(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        if let Some(connected) = self
            .connected
            .filter(|connected| connected.has_begun(request.psn))
        {
            return Verdict::NewEpoch(connected.reason);
        }
        let ahead = request.psn.offset_from(requests.expected());
        if requests.next == 0 || ahead >= 0 {
            return self.judge(requests, request);
        }
        let at = requests.next - u64::from(ahead.unsigned_abs());
        let filled = self.fill(at, at + 1);
        if filled.is_empty() {
            return if ahead > -LARGEST_GAP && at >= self.begin.max(self.forgotten_to()) {
                Verdict::Duplicate
            } else {
                self.stale(request)
            };
        }
        self.reordering
            .note(requests.next - 1 - at, &filled, request.time);
        for part in &filled {
            self.holes.get_or_insert_default().came_late(part);
        }
        Verdict::Late {
            captured_before: false,
        }
    }

    fn judge(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        let span = u64::from(request.span.unwrap_or(1));
        // A READ that is retransmitted may be the rest of one.
        let is_whole = requests.next == 0 || request.psn.offset_from(requests.expected()) >= 0;
        if request.is_read && (is_whole || self.read_span == 0) {
            self.read_span = request.span.unwrap_or(self.read_span);
        }
        if requests.next == 0 {
            self.begin = BASE + u64::from(request.psn.value());
            self.begin_time = request.time;
            requests.next = self.begin + span;
            self.await_answers();
            self.resync = request.span.is_none();
            return Verdict::InOrder;
        }
        if let Some(connected) = self
            .connected
            .filter(|connected| connected.has_begun(request.psn))
        {
            return Verdict::NewEpoch(connected.reason);
        }
        let ahead = request.psn.offset_from(requests.expected());
        if ahead <= -STALE || ahead < 0 && self.is_long_done(requests.next, ahead) {
            return self.stale(request);
        }
        self.stale_run = 0;
        if ahead < 0 && self.begins_once_more(requests.next, ahead, request) {
            return Verdict::NewEpoch(if request.has_other_port {
                "the UDP source port is another one"
            } else {
                "the first PSN came once more, long acknowledged"
            });
        }
        if ahead < 0 {
            return self.behind(requests.next, request, span);
        }
        // After a READ of unknown span any distance is that READ's: a gigabyte takes more PSNs than the largest gap.
        if ahead > LARGEST_GAP && !self.resync {
            return Verdict::NewEpoch("PSN jumped ahead by more than 65536");
        }
        self.settle_pending(requests.next, request.time);
        self.settle_waiting(request.time);
        self.forget_answered_naks(request.time);
        self.end_run_before_new(requests.next);
        if core::mem::take(&mut self.capture_lost) && ahead > 0 {
            return Verdict::NewEpoch("the capture lost records");
        }
        let resync = core::mem::replace(&mut self.resync, request.span.is_none());
        let gap = requests.next;
        let missing = ahead.unsigned_abs();
        requests.next += u64::from(missing) + span;
        if missing == 0 {
            return Verdict::InOrder;
        }
        if resync {
            let begin = if self.unsure.is_empty() {
                gap
            } else {
                self.unsure.start
            };
            self.unsure = begin..gap + u64::from(missing);
            if self.unsure_reads.len() < MAX_UNSURE_READS {
                self.unsure_reads.push(UnsureRead {
                    at: gap - 1,
                    length: request.read_before,
                    next: requests.next - span,
                    time: request.time,
                    ip_id: request.ids.map(|ids| ids.id),
                });
            }
            return Verdict::InOrder;
        }
        self.open_hole(gap, gap + u64::from(missing), request);
        Verdict::Gap {
            first: psn_of(gap),
            missing,
        }
    }

    /// The READ at `psn`, after which any PSN would have been in order, takes `span` PSNs, as is known now.
    pub(crate) fn read_takes(&mut self, requests: &mut Requests, psn: Psn, span: u32) {
        if self.resync && requests.expected() == psn.plus(1) {
            requests.next += u64::from(span.saturating_sub(1));
            self.resync = false;
        }
    }

    /// The longest of the READs that wait for the path MTU; `None` without any.
    pub(crate) fn longest_unsure_read(&self) -> Option<u32> {
        let reads = self.unsure_reads.iter().map(|read| read.length);
        let behind = self.reads_behind.iter().map(|read| read.length);
        let longest = reads.chain(behind).max();
        longest.filter(|_| !self.unsure_reads.is_empty())
    }

    /// `span_of` gives the PSNs of a READ by its length: the path MTU is known now. Requests are missing between a READ and the next
    /// one where these are further apart. Gives the gaps: first PSN, and how many.
    pub(crate) fn learn_spans(
        &mut self,
        max_holes: usize,
        span_of: impl Fn(u32) -> Option<u32>,
    ) -> Vec<(Psn, u32)> {
        let reads = core::mem::take(&mut self.unsure_reads);
        let behind = core::mem::take(&mut self.reads_behind);
        let is_full = reads.len() == MAX_UNSURE_READS || behind.len() == MAX_UNSURE_READS;
        let mut lengths = reads.iter().map(|read| read.length);
        let mut lengths_behind = behind.iter().map(|read| read.length);
        if is_full || lengths.any(|length| length == 0) || lengths_behind.any(|length| length == 0) {
            return Vec::new();
        }
        self.unsure = 0..0;
        let mut gaps = Vec::new();
        for read in reads {
            let end = read.at + u64::from(span_of(read.length).unwrap_or(u32::MAX));
            if let Ok(missing @ 1..) = u32::try_from(read.next.saturating_sub(end)) {
                let holes = self.holes.get_or_insert_default();
                holes.add(end, read.next, read.time, read.ip_id, max_holes);
                gaps.push((psn_of(end), missing));
            }
        }
        for read in behind {
            let end = read.at + u64::from(span_of(read.length).unwrap_or(1));
            for part in self.fill(read.at, end) {
                if read.is_late {
                    self.reordering.note(end - read.at, &[part], read.time);
                    self.holes.get_or_insert_default().came_late(&part);
                }
            }
        }
        gaps
    }

    fn stale(&mut self, request: &Request) -> Verdict {
        let in_order = self.stale_run > 0 && request.psn == self.stale_next;
        self.stale_run = if in_order { self.stale_run + 1 } else { 1 };
        self.stale_next = request.psn.plus(request.span.unwrap_or(1));
        if self.stale_run >= STALE_RUN {
            return Verdict::NewEpoch("eight packets in order far behind");
        }
        Verdict::Stale
    }

    /// Some PSNs are missing; what is known of them already may decide.
    fn open_hole(&mut self, first: u64, end: u64, request: &Request) {
        let holes = self.holes.get_or_insert_default();
        let ip_id = request.ids.map(|ids| ids.id);
        holes.add(first, end, request.time, ip_id, request.max_holes);
        let Some(answers) = &mut self.answers else { return };
        answers.gap(first, request.silence, request.time);
        // The answers may be stamped before the packets that show the gap.
        holes.cover(answers.acked(), request.time);
        if let Some(named) = answers.named().filter(|named| *named >= first) {
            holes.name_at(named, request.time);
        }
    }

    /// The end of the flow's epoch at `end`, when its tap still captured: nothing more will be known.
    pub(crate) fn close(&mut self, end: Nanos) {
        self.decide_alone();
        self.end_run();
        self.skipped = 0..0;
        let begun = self.begun();
        let end = self.answers().map_or(end, |answers| answers.last().max(end));
        self.doubt_latest(end);
        if let Some(holes) = &mut self.holes {
            holes.close(begun, end);
        }
    }

    /// The capture lost records: a gap before the next packet is not the network's.
    pub(crate) fn capture_lost(&mut self, requests: &mut Requests) {
        self.capture_lost = requests.next != 0;
        requests.disturbed |= self.capture_lost;
    }

    /// True if the latest packets were far behind, and `psn` is that of one of them.
    pub(crate) fn is_stale(&self, psn: Psn) -> bool {
        self.stale_run > 0 && (1..=LARGEST_GAP).contains(&self.stale_next.offset_from(psn))
    }

    /// A run that has ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Option<EndedRun> {
        self.ended.pop()
    }

    /// PSNs that a NAK named before the other direction was known, although they had been captured.
    pub(crate) fn take_early_downstream(&mut self) -> Vec<Psn> {
        core::mem::take(&mut self.early_downstream)
    }

    /// A decision on packets behind the highest one since the last call.
    pub(crate) fn take_decision(&mut self) -> Option<Decision> {
        self.decisions.pop()
    }

    /// The PSNs that a missing packet takes, as far as is known. `only_reads`: the flow has no other requests.
    fn span_of_packet(&self, only_reads: bool) -> u32 {
        if only_reads { self.read_span.max(1) } else { 1 }
    }

    /// Retransmissions that were lost before the tap, since the last call: the first PSN, and one past the last. `only_reads`: the flow
    /// has no other requests, of which each takes one PSN.
    pub(crate) fn take_lost_again(&mut self, only_reads: bool) -> Option<(u64, u64)> {
        let (first, end) = core::mem::take(&mut self.new_lost_again);
        self.lost_again += (end - first).div_ceil(u64::from(self.span_of_packet(only_reads)));
        (first < end).then_some((first, end))
    }

    /// Retransmissions that were lost before the tap.
    pub(crate) fn lost_again(&self) -> u64 {
        self.lost_again
    }

    /// A missing packet, of which `reported` was taken, came late after all.
    pub(crate) fn take_back(&mut self, reported: LossClass) {
        if let Some(holes) = &mut self.holes {
            holes.take_back(reported);
        }
    }

    /// PSNs that came late, since the last call, after something else had been taken of them.
    pub(crate) fn take_revoked(&mut self) -> Vec<Psn> {
        let revoked = self
            .holes
            .as_mut()
            .map_or_else(Vec::new, |holes| holes.take_revoked());
        revoked.into_iter().map(psn_of).collect()
    }

    /// Missing PSNs of which it was decided until `now`, since the last call, what became of them. At the `end` nothing waits.
    /// `only_reads`: the flow has no other requests, of which each takes one PSN.
    pub(crate) fn take_holes(&mut self, end: bool, only_reads: bool, now: Nanos) -> Vec<DecidedHole> {
        let span = self.span_of_packet(only_reads);
        // A packet that is as late as the latest one of the flow was has come by then.
        let still = Nanos(now.0.saturating_sub(self.reordering.latest().0));
        match &mut self.holes {
            Some(holes) if holes.any_decided() => holes.take_decided(self.paired, end, span, still),
            _ => Vec::new(),
        }
    }

    /// Missing packets by what became of them, as far as that was taken.
    pub(crate) fn fates(&self) -> LossCounts {
        self.holes.as_ref().map_or([0; 5], |holes| holes.fates())
    }

    /// True if there is something to take: ended runs, a decision, or holes.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.ended.is_empty() || !self.decisions.is_empty() || self.holes.is_some()
    }

    /// Losses that the packets prove: the receiver named a PSN that it could have had, or that was missing here, and no
    /// reordering explains it, of this flow or of others between its hosts; or counted IP identifications show that the packet was
    /// sent twice. `only_reads`: the flow has no other requests, of which each takes one PSN.
    pub(crate) fn proven_losses(&self, only_reads: bool) -> u64 {
        if self.reordering.is_seen() || self.others_late {
            0
        } else {
            self.proven / u64::from(self.span_of_packet(only_reads))
        }
    }

    /// Until when packets that are overtaken as this flow's are may have come before its first one was captured.
    fn begun(&self) -> Nanos {
        match self.reordering.bound() {
            Nanos(0) => Nanos(0),
            bound => Nanos(self.begin_time.0.saturating_add(bound.0)),
        }
    }

    /// The flow's own reordering.
    pub(crate) fn reordering(&self) -> &Reordering {
        &self.reordering
    }

    /// Missing PSNs that were forgotten for want of room.
    pub(crate) fn forgotten(&self) -> u64 {
        self.holes.as_ref().map_or(0, |holes| holes.forgotten())
    }

    /// PSNs before this one may have been missing in a hole that was forgotten.
    fn forgotten_to(&self) -> u64 {
        self.holes.as_ref().map_or(0, |holes| holes.forgotten_to())
    }

    /// True if `psn` is missing.
    fn is_missing(&self, psn: u64) -> bool {
        self.holes.as_ref().is_some_and(|holes| holes.contains(psn))
    }

    /// The PSNs from `first` up to `end` are there; gives the parts of holes that these were.
    fn fill(&mut self, first: u64, end: u64) -> Vec<Hole> {
        self.holes
            .as_mut()
            .map_or_else(Vec::new, |holes| holes.fill(first, end))
    }

    /// A new epoch: all is forgotten, but that the other direction is known.
    pub(crate) fn restart(&mut self, requests: &mut Requests) {
        *self = Self {
            paired: self.paired,
            ..Self::default()
        };
        *requests = Requests::default();
    }
}

#[cfg(test)]
mod tests;
