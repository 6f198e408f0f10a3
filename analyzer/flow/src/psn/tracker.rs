//! The PSNs of a flow's requests: in order, a gap, or behind the highest one (`behind`, and `judge` once more packets have come).
//! `answers` takes what the other direction says, `retransmission` follows what is sent again, `named` judges late packets that a NAK
//! names. The state is in parts that only their own files change: [`Answers`] and [`Holes`], [`Runs`] of retransmissions,
//! [`ReadSpans`], [`UndecidedPackets`], the [`Epoch`], [`RefilledHoles`], [`ProvenLosses`], [`Reordering`] and [`News`].

mod answers;
mod before_runs;
mod behind;
mod judge;
mod named;
mod retransmission;
pub(crate) mod trimmed;

use roce_model::Time;
use roce_wire::Psn;

use crate::psn::acks::Answers;
use crate::psn::answer::{AnswerMeaning, RequestAnswer};
use crate::psn::cause::Trigger;
use crate::psn::epoch::Epoch;
use crate::psn::holes::{DecidedHole, Hole, Holes, LossClass, LossCounts};
use crate::psn::news::News;
use crate::psn::proven_losses::ProvenLosses;
use crate::psn::read_spans::{FilledByRead, ReadSpans};
use crate::psn::refilled::RefilledHoles;
use crate::psn::reordering::Reordering;
use crate::psn::request::{LARGEST_GAP, NewConnection, Request, Requests, STALE, Verdict, psn_of};
use crate::psn::run::EndedRun;
use crate::psn::runs::{PacketOrder, Runs};
use crate::psn::undecided::{Decision, UndecidedPackets};
use crate::taps::duplicates::Ids;
use crate::transport::{AnswerEvidence, Transport};

/// PSNs lost behind the tap, of one flow, that wait until its other direction is known.
const MAX_WAITING_PSNS: usize = 64;

/// The part of a flow's request state that answers and disturbances touch: what answers need stands in front.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Tracker {
    /// The answers of the other direction, once that is known and there is one.
    answers: Option<Box<Answers>>,
    /// Missing PSNs, once there were some.
    holes: Option<Box<Holes>>,
    news: News,
    undecided: UndecidedPackets,
    runs: Runs,
    reads: ReadSpans,
    epoch: Epoch,
    refilled: RefilledHoles,
    reordering: Reordering,
    proven: ProvenLosses,
    /// PSNs that a NAK between the flow's hosts named although they had been captured, before the other direction was known.
    early_downstream: Vec<Psn>,
    /// The other direction is known.
    paired: bool,
    /// Packets of another flow between the same hosts came late.
    others_late: bool,
}

/// RC and XRC.
impl Transport for Tracker {
    type Request = Request;
    type Answer = RequestAnswer;

    /// Judges a packet that [`Requests::advance`] did not take.
    fn observe(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        self.others_late |= request.pair.others_late;
        let verdict = self.judge(requests, request);
        self.set_disturbed(requests);
        verdict
    }

    fn answer(&mut self, requests: &Requests, answer: &RequestAnswer) -> AnswerEvidence {
        let RequestAnswer {
            covered,
            time,
            meaning,
        } = *answer;
        match meaning {
            AnswerMeaning::Ack => self.acknowledged(requests, covered, time),
            AnswerMeaning::Arrived => self.acknowledge(requests, covered, time),
            AnswerMeaning::SequenceNak { rtt, oldest_sent } => {
                self.nak(requests, covered, time, (rtt, oldest_sent))
            }
            AnswerMeaning::RnrNak { timer } => self.rnr(requests, covered, time, timer),
        }
    }

    fn take_missing(&mut self, end: bool, only_reads: bool, now: Time) -> Vec<DecidedHole> {
        let span = self.reads.of_packet(only_reads);
        // A packet that is as late as the latest one of the flow was has come by then.
        let still = now - self.reordering.latest();
        match &mut self.holes {
            Some(holes) if holes.any_decided() => holes.take_decided(self.paired, end, span, still),
            _ => Vec::new(),
        }
    }

    fn take_decision(&mut self) -> Option<Decision> {
        self.news.take_decision()
    }

    fn take_run(&mut self) -> Option<EndedRun> {
        self.news.take_run()
    }

    fn close(&mut self, end: Time) {
        self.decide_alone();
        self.end_run();
        self.runs.forget_skipped();
        let begun = self.begun();
        let end = self.answers().map_or(end, |answers| answers.last().max(end));
        self.proven.doubt_latest(end);
        if let Some(holes) = &mut self.holes {
            holes.close(begun, end);
        }
    }
}

impl Tracker {
    /// Judges a packet of UC, which neither acknowledges nor retransmits: holes and what fills them, no more.
    pub(crate) fn observe_unreliable(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        let verdict = self.judge_unreliable(requests, request);
        requests.disturbed = self.epoch.may_end();
        verdict
    }

    fn judge_unreliable(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        if let Some(reason) = self.epoch.connection_with(request.packet.psn) {
            return Verdict::NewEpoch(reason);
        }
        let ahead = request.packet.psn.offset_from(requests.expected());
        if requests.next == 0 || ahead >= 0 {
            return self.judge(requests, request);
        }
        let at = requests.next - u64::from(ahead.unsigned_abs());
        let filled = self.fill(at, at + 1);
        if filled.is_empty() {
            return if ahead > -LARGEST_GAP && at >= self.first_known() {
                Verdict::Duplicate
            } else {
                self.epoch.stale(request, None)
            };
        }
        self.reordering
            .note(requests.next - 1 - at, &filled, request.packet.time);
        for part in &filled {
            self.holes.get_or_insert_default().came_late(part);
        }
        Verdict::Late {
            captured_before: false,
        }
    }

    fn judge(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        let psn = request.packet.psn;
        let span = u64::from(request.packet.span.unwrap_or(1));
        // A READ that is retransmitted may be the rest of one.
        let is_whole = requests.next == 0 || psn.offset_from(requests.expected()) >= 0;
        self.reads.note(request, is_whole);
        if requests.next == 0 {
            requests.next = self.epoch.begin(request) + span;
            self.await_answers();
            self.reads.go_on(request.packet.span);
            return Verdict::InOrder;
        }
        if let Some(reason) = self.epoch.connection_with(psn) {
            return Verdict::NewEpoch(reason);
        }
        let ahead = psn.offset_from(requests.expected());
        if ahead >= 0 {
            return self.ahead(requests, request, ahead);
        }
        let next = requests.next;
        let at = next - u64::from(ahead.unsigned_abs());
        let answers = self.answers.as_deref();
        if ahead <= -STALE || self.epoch.is_long_done(at, answers.map_or(0, Answers::acked)) {
            return self.epoch.stale(request, answers);
        }
        self.epoch.end_stale_run();
        let is_whole = self.holes.is_none();
        if self
            .epoch
            .begins_once_more((at, next), request, answers, is_whole)
        {
            return Verdict::NewEpoch(if request.packet.has_other_port {
                "the UDP source port is another one"
            } else {
                "the first PSN came once more, long acknowledged"
            });
        }
        self.behind(next, request, span)
    }

    /// Notes if anything but "in order" may come of the next packet.
    fn set_disturbed(&self, requests: &mut Requests) {
        requests.disturbed = self.runs.current().is_some()
            || !self.undecided.is_empty()
            || self.reads.is_open()
            || self.epoch.may_end();
    }

    /// Settles what waits for a packet beyond the highest PSN, `next` being one past that.
    fn settle_before_new(&mut self, next: u64, time: Time) {
        self.settle_pending(next, time);
        self.settle_waiting(time);
        self.forget_answered_naks(time);
        self.end_run_before_new(next);
    }

    /// A packet in order, or so many PSNs `ahead`.
    fn ahead(&mut self, requests: &mut Requests, request: &Request, ahead: i32) -> Verdict {
        self.epoch.end_stale_run();
        // After a READ of unknown span any distance is that READ's: a gigabyte takes more PSNs than the largest gap.
        if ahead > LARGEST_GAP && !self.reads.is_open() {
            return Verdict::NewEpoch("PSN jumped ahead by more than 65536");
        }
        self.settle_before_new(requests.next, request.packet.time);
        if self.epoch.take_capture_lost() && ahead > 0 {
            return Verdict::NewEpoch("the capture lost records");
        }
        let is_behind_read = self.reads.go_on(request.packet.span);
        let gap = requests.next;
        let missing = ahead.unsigned_abs();
        let at = gap + u64::from(missing);
        requests.next = at + u64::from(request.packet.span.unwrap_or(1));
        if missing == 0 {
            return Verdict::InOrder;
        }
        if is_behind_read {
            self.reads.jump(gap, at, request);
            return Verdict::InOrder;
        }
        self.open_hole(gap, at, request);
        Verdict::Gap {
            first: psn_of(gap),
            missing,
        }
    }

    /// The READ at `psn`, after which any PSN would have been in order, takes `span` PSNs, as is known now.
    pub(crate) fn read_takes(&mut self, requests: &mut Requests, psn: Psn, span: u32) {
        if self.reads.is_open() && requests.expected() == psn.plus(1) {
            requests.next += u64::from(span.saturating_sub(1));
            self.reads.close();
        }
    }

    /// The longest of the READs that wait for the path MTU; `None` without any.
    pub(crate) fn longest_unsure_read(&self) -> Option<u32> {
        self.reads.longest()
    }

    /// `span_of` gives the PSNs of a READ by its length: the path MTU is known now. Requests are missing between a READ and the next
    /// one where these are further apart. Gives the gaps: first PSN, and how many.
    pub(crate) fn learn_spans(
        &mut self,
        max_holes: usize,
        span_of: impl Fn(u32) -> Option<u32>,
    ) -> Vec<(Psn, u32)> {
        let (found, filled) = self.reads.learn(span_of);
        let mut gaps = Vec::new();
        for gap in found {
            if let Ok(missing) = u32::try_from(gap.end - gap.first) {
                let holes = self.holes.get_or_insert_default();
                holes.add(gap.first, gap.end, gap.time, gap.ids, max_holes);
                gaps.push((psn_of(gap.first), missing));
            }
        }
        for FilledByRead {
            first,
            end,
            time,
            is_late,
        } in filled
        {
            for part in self.fill(first, end) {
                if is_late {
                    self.reordering.note(end - first, &[part], time);
                    self.holes.get_or_insert_default().came_late(&part);
                }
            }
        }
        gaps
    }

    /// Some PSNs are missing; what is known of them already may decide.
    fn open_hole(&mut self, first: u64, end: u64, request: &Request) {
        let holes = self.holes.get_or_insert_default();
        let ids = request.packet.ids.and_then(Ids::between);
        holes.add(first, end, request.packet.time, ids, request.flow.max_holes);
        let Some(answers) = &mut self.answers else { return };
        answers.gap(first, request.flow.silence, request.packet.time);
        // The answers may be stamped before the packets that show the gap.
        holes.cover(answers.acked(), request.packet.time);
        if let Some(named) = answers.named().filter(|named| *named >= first) {
            holes.name_at(named, request.packet.time);
        }
    }

    /// The capture lost records: a gap before the next packet is not the network's.
    pub(crate) fn capture_lost(&mut self, requests: &mut Requests) {
        let may_be_ours = requests.next != 0;
        self.epoch.capture_lost(may_be_ours);
        requests.disturbed |= may_be_ours;
    }

    /// The queue pair got a new connection.
    pub(crate) fn connect(&mut self, requests: &mut Requests, connected: NewConnection) {
        self.epoch.connect((requests.next != 0).then_some(connected));
        requests.disturbed |= self.epoch.is_connected();
    }

    /// True if the next request is that of a new connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.epoch.is_connected()
    }

    /// True if the latest packets were far behind, and `psn` is that of one of them.
    pub(crate) fn is_stale(&self, psn: Psn) -> bool {
        self.epoch.is_stale(psn)
    }

    /// PSNs that a NAK named before the other direction was known, although they had been captured.
    pub(crate) fn take_early_downstream(&mut self) -> Vec<Psn> {
        core::mem::take(&mut self.early_downstream)
    }

    /// Retransmissions that were lost before the tap, since the last call: the first PSN, and one past the last. `only_reads`: the flow
    /// has no other requests, of which each takes one PSN.
    pub(crate) fn take_lost_again(&mut self, only_reads: bool) -> Option<(u64, u64)> {
        self.runs.take_lost_again(self.reads.of_packet(only_reads))
    }

    /// Retransmissions that were lost before the tap.
    pub(crate) fn lost_again(&self) -> u64 {
        self.runs.lost_again()
    }

    /// True if the last packet began a run.
    pub(crate) fn has_begun_a_run(&self) -> bool {
        self.runs.current().is_some_and(|run| run.packets == 1)
    }

    /// True if a NAK made the sender begin the run.
    pub(crate) fn is_run_by_nak(&self) -> bool {
        self.runs.is_by(Trigger::Nak)
    }

    /// True if a silence made the sender begin the run.
    pub(crate) fn is_run_by_timeout(&self) -> bool {
        self.runs.is_by(Trigger::Timeout)
    }

    /// How packets come out of their order.
    fn overtaking(&self) -> PacketOrder {
        PacketOrder {
            is_seen: self.reordering.is_seen(),
            may_be: self.may_be_reordered(),
        }
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

    /// Missing packets by what became of them, as far as that was taken.
    pub(crate) fn fates(&self) -> LossCounts {
        self.holes.as_ref().map_or([0; 5], |holes| holes.fates())
    }

    /// True if there is something to take: ended runs, a decision, or holes.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty() || self.holes.is_some()
    }

    /// Losses that the packets prove: what a switch has trimmed; and where the receiver named a PSN that it could have had, or that was missing here, and no
    /// reordering explains it, of this flow or of others between its hosts; or counted IP identifications show that the packet was
    /// sent twice. `only_reads`: the flow has no other requests, of which each takes one PSN.
    pub(crate) fn proven_losses(&self, only_reads: bool) -> u64 {
        let named = if self.reordering.is_seen() || self.others_late {
            0
        } else {
            self.proven.psns() / u64::from(self.reads.of_packet(only_reads))
        };
        named + self.holes.as_ref().map_or(0, |holes| holes.trimmed())
    }

    /// Until when packets that are overtaken as this flow's are may have come before its first one was captured.
    fn begun(&self) -> Time {
        self.epoch.begun(self.reordering.bound())
    }

    /// The flow's own reordering.
    pub(crate) fn reordering(&self) -> &Reordering {
        &self.reordering
    }

    /// Missing PSNs that were forgotten for want of room.
    pub(crate) fn forgotten(&self) -> u64 {
        self.holes.as_ref().map_or(0, |holes| holes.forgotten())
    }

    /// The first PSN of which it is known whether it was captured: those before may have been missing in a hole that was forgotten.
    fn first_known(&self) -> u64 {
        let forgotten_to = self.holes.as_ref().map_or(0, |holes| holes.forgotten_to());
        self.epoch.first().max(forgotten_to)
    }

    /// True if `psn` is not before the first PSN captured: it was captured, is missing, or is still to come.
    pub(crate) fn reaches_back_to(&self, requests: &Requests, psn: Psn) -> bool {
        let ahead = psn.offset_from(requests.expected());
        requests.next != 0 && requests.next.saturating_add_signed(i64::from(ahead)) >= self.epoch.first()
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
