//! The PSNs of a flow's requests: in order, a gap, sent again, late, stale, or begun anew (what tells that is in `anew`). What
//! answers to them say is in `answers`, what became of gaps in `holes`.

mod anew;
mod answers;
mod runs;
mod undecided;

use core::ops::Range;

use roce_model::Nanos;
use roce_wire::Psn;

use crate::holes::{DecidedHole, Fate, Fates, Hole, Holes};
pub(crate) use anew::Connected;
use answers::LONGEST_ANSWER;
pub(crate) use answers::{Again, Answers, Trigger};
pub(crate) use runs::{Recovery, Run};
pub(crate) use undecided::{Decision, Undecided};

/// A jump further ahead than this begins a new epoch instead of a gap.
pub(crate) const LARGEST_GAP: i32 = 1 << 16;
/// A packet this far behind is stale: no sender falls back so far.
pub(crate) const STALE: i32 = 1 << 22;
/// So many stale packets in a row, in order, are a new epoch.
const STALE_RUN: u8 = 8;
/// A silence from which on a fallback to a hole is taken for a timeout's resend rather than for reordering. Adaptive
/// timers start at tens of microseconds; reordering in a network moves packets by less.
const SILENCE: Nanos = Nanos(50_000);

/// The part of a flow's request state that every packet touches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// The PSN expected next, counted on past 24 bits; 0 before the first request.
    pub(crate) next: u64,
    /// Whether anything but "in order" may come of the next packet: then [`Tracker::observe`] decides.
    pub(crate) disturbed: bool,
}

impl Requests {
    /// Takes a packet that is in order and nothing special; says whether it was one.
    #[inline]
    pub(crate) fn advance(&mut self, psn: Psn, span: u32) -> bool {
        if self.disturbed || self.next == 0 || psn != self.expected() {
            return false;
        }
        self.next += u64::from(span);
        true
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low 24 bits are wanted")]
    pub(crate) fn expected(&self) -> Psn {
        Psn::new(self.next as u32)
    }
}

/// What a request packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The PSN expected, or the first of the flow.
    InOrder,
    /// Beyond: so many PSNs were jumped over.
    Gap { first: Psn, missing: u32 },
    /// Sent again.
    Retransmission { captured_before: bool },
    /// It fills a hole of a service that never sends again, or comes after it was sent again.
    Late { captured_before: bool },
    /// It fills a hole; whether it is late or sent again, the next packets tell.
    Undecided,
    /// So far behind that no sender sends it again.
    Stale,
    /// The PSNs began anew: the flow is to start a new epoch and to observe the packet again.
    NewEpoch(&'static str),
}

/// A request packet, as the tracker needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) psn: Psn,
    /// PSNs that it takes; `None`: a READ whose responses cannot be counted yet.
    pub(crate) span: Option<u32>,
    pub(crate) time: Nanos,
    /// How long the flow had sent no request.
    pub(crate) silence: Nanos,
    pub(crate) bin: u64,
    pub(crate) payload_bytes: u32,
    /// While the other direction is not known: some receiver between the same hosts asked a moment ago for this PSN,
    /// or one shortly before, ...
    pub(crate) asked_for: bool,
    /// ... or for this very PSN.
    pub(crate) asked_exactly: bool,
    /// A READ: what is known of its responses.
    pub(crate) again: Again,
    /// When the oldest request was sent that is not acknowledged; 0: not known.
    pub(crate) waiting_since: Nanos,
    /// The shortest time that an answer took; 0: not known.
    pub(crate) rtt: Nanos,
}

/// The part of a flow's request state that answers and disturbances touch: what answers need stands in front.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Tracker {
    /// What the other direction says of the requests, once that is known and there is one.
    answers: Option<Box<Answers>>,
    /// Missing PSNs, once there were some.
    holes: Option<Box<Holes>>,
    /// Decisions not applied yet, at most one.
    decision: Option<Box<Decision>>,
    /// Runs that ended and were not reported yet.
    ended: Vec<Run>,
    undecided: Option<Box<Undecided>>,
    run: Option<Run>,
    /// The first PSN of the epoch.
    begin: u64,
    /// The latest missing PSNs that were sent again: captured once.
    refilled: Range<u64>,
    refilled_at: Nanos,
    /// A new connection was made of the queue pair: its first request begins an epoch.
    connected: Option<Connected>,
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
}

/// Where an extended PSN count begins, high enough that a fallback from the first packet does not go below zero.
const BASE: u64 = 1 << 32;

#[expect(clippy::cast_possible_truncation, reason = "the low 24 bits are wanted")]
pub(crate) fn psn_of(position: u64) -> Psn {
    Psn::new(position as u32)
}

impl Tracker {
    /// Judges a packet that [`Requests::advance`] did not take.
    pub(crate) fn observe(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        let verdict = self.judge(requests, request);
        requests.disturbed = self.run.is_some()
            || self.undecided.is_some()
            || self.resync
            || self.capture_lost
            || self.connected.is_some()
            || self.stale_run > 0;
        verdict
    }

    /// The same for UC, which neither acknowledges nor sends again: holes and what fills them, no more.
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
        for part in &filled {
            self.holes.get_or_insert_default().came_late(part);
        }
        if filled.is_empty() {
            self.stale(request)
        } else {
            Verdict::Late {
                captured_before: false,
            }
        }
    }

    fn judge(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        let span = u64::from(request.span.unwrap_or(1));
        if requests.next == 0 {
            self.begin = BASE + u64::from(request.psn.value());
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
            return Verdict::NewEpoch("the first PSN came once more, long acknowledged");
        }
        if ahead < 0 {
            return self.behind(requests.next, request, span);
        }
        // After a READ of unknown span any distance is that READ's: a gigabyte takes more PSNs than the largest gap.
        if ahead > LARGEST_GAP && !self.resync {
            return Verdict::NewEpoch("PSN jumped ahead by more than 65536");
        }
        self.pass_undecided(request.time);
        self.forget_answered_naks(request.time);
        self.end_run_before_new(requests.next);
        if core::mem::take(&mut self.capture_lost) && ahead > 0 {
            return Verdict::NewEpoch("the capture lost records");
        }
        let resync = core::mem::replace(&mut self.resync, request.span.is_none());
        let gap = requests.next;
        let missing = ahead.unsigned_abs();
        requests.next += u64::from(missing) + span;
        if missing == 0 || resync {
            return Verdict::InOrder;
        }
        self.open_hole(gap, gap + u64::from(missing), request.time);
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
    fn open_hole(&mut self, first: u64, end: u64, time: Nanos) {
        let holes = self.holes.get_or_insert_default();
        holes.add(first, end, time);
        let Some(answers) = &mut self.answers else { return };
        answers.gap(first);
        // The answers may be stamped before the packets that show the gap.
        holes.cover(answers.acked(), time);
        if let Some(asked) = answers.asked_for().filter(|asked| *asked >= first) {
            holes.decide_at(asked, Fate::NetworkLost);
        }
    }

    /// A packet behind the highest, `next` being one past that.
    fn behind(&mut self, next: u64, request: &Request, span: u64) -> Verdict {
        let back = request.psn.offset_from(psn_of(next));
        let at = next - u64::from(back.unsigned_abs());
        let fills = self.is_missing(at);
        let continues = self.run.is_some_and(|run| at >= run.next);
        if !fills && !continues && self.comes_after_its_resend(at, request) {
            self.refilled = 0..0;
            if let Some(holes) = &mut self.holes {
                holes.came_after_all(at);
            }
            return Verdict::Late {
                captured_before: true,
            };
        }
        // With the other direction, what is asked for may be late as well: the next packets tell.
        let asked_for = self.answers.is_none() && request.asked_for;
        if !fills || continues || asked_for {
            // A sender that sends again what was captured has fallen back: what filled holes before was sent again, too,
            // unless it had no cause then, and has one now; or it was asked for once, and comes twice.
            let is_late = self.undecided.as_deref().is_some_and(|undecided| {
                let comes_once_more = undecided.passed || at < undecided.next;
                comes_once_more && self.is_the_answer_instead(at, undecided, request)
                    || self.answers.is_some()
                        && undecided.trigger == Trigger::Unknown
                        && self.trigger(at, request) != Trigger::Unknown
            });
            self.decide(!is_late);
            self.resend(at, span, next, request, fills);
            return Verdict::Retransmission {
                captured_before: !fills,
            };
        }
        let trigger = self.trigger(at, request);
        let silent = match &self.answers {
            Some(_) => trigger != Trigger::Unknown,
            None => request.silence >= SILENCE,
        };
        if self.undecided.as_ref().is_some_and(|undecided| undecided.passed) {
            self.decide_alone();
        }
        let falls_back = |undecided: &Undecided| at < undecided.next && (undecided.silent || silent);
        if self.undecided.as_deref().is_some_and(falls_back) {
            // Fallen back further, and after a silence: the sender sends again.
            self.decide(true);
            self.resend(at, span, next, request, true);
            return Verdict::Retransmission {
                captured_before: false,
            };
        }
        let fate = self.fate_at_the_begin(at);
        let since_asked = self
            .answers()
            .and_then(|answers| answers.waited_since_asked(at, request.time));
        let filled = self.fill(at, at + span);
        if let Some(answers) = &mut self.answers {
            answers.behind(at, at + span, next);
        }
        // Reordering turns packets around, too.
        let undecided = self.undecided.get_or_insert_with(|| {
            Box::new(Undecided {
                first: at,
                next: at,
                begin: *request,
                trigger,
                since_asked,
                silent,
                fate,
                passed: false,
                filled: Vec::new(),
                parts: Vec::new(),
            })
        });
        undecided.add(at + span, request, filled);
        Verdict::Undecided
    }

    /// Whether a packet that was missing, asked for and sent again turns out to be late: the sender has no cause to send it
    /// once more.
    fn comes_after_its_resend(&self, at: u64, request: &Request) -> bool {
        self.answers.is_some()
            && self.refilled.contains(&at)
            && request.time.since(self.refilled_at) < SILENCE
            && self.trigger(at, request) == Trigger::Unknown
    }

    /// Why the sender falls back to `at`.
    fn trigger(&self, at: u64, request: &Request) -> Trigger {
        match &self.answers {
            Some(answers) => answers.trigger(at, request),
            None if request.asked_exactly => Trigger::Nak,
            None => Trigger::Unknown,
        }
    }

    /// Settles what undecided packets were. When they were sent again, they began a run.
    fn decide(&mut self, resent: bool) {
        let Some(undecided) = self.undecided.take() else {
            return;
        };
        let packets = undecided
            .parts
            .iter()
            .map(|(_, packets, _)| u64::from(*packets))
            .sum();
        if resent {
            let at_the_begin = undecided.fate;
            self.end_run();
            self.begin_run(undecided.first, &undecided.begin, undecided.trigger);
            if let Some(run) = &mut self.run {
                run.packets = packets;
                run.next = undecided.next;
                run.fills = true;
            }
            if let Some(answers) = &mut self.answers {
                answers.extend_run(undecided.next);
            }
            self.refilled = undecided.first..undecided.next;
            self.refilled_at = undecided.begin.time;
            for part in &undecided.filled {
                let fate = if part.first <= undecided.first && undecided.first < part.end {
                    at_the_begin
                } else {
                    self.fate_within_a_run()
                };
                let holes = self.holes.get_or_insert_default();
                holes.was_sent_again(part, fate);
                // The rest of the same hole.
                holes.decide_at(part.end, fate);
            }
            if undecided.passed {
                // New packets have followed: this was all of it.
                self.end_run_before_new(u64::MAX);
            }
        } else {
            self.came_late(&undecided.filled);
        }
        self.decision = Some(Box::new(Decision {
            resent,
            psn: psn_of(undecided.first),
            time: undecided.begin.time,
            parts: undecided.parts,
        }));
    }

    /// Whether packets are neither late nor sent again yet.
    pub(crate) fn is_undecided(&self) -> bool {
        self.undecided.is_some()
    }

    /// Settles undecided packets after which nothing was sent again: after a silence they were a timeout's.
    pub(crate) fn decide_alone(&mut self) {
        let silent = self.undecided.as_ref().is_some_and(|undecided| undecided.silent);
        self.decide(silent);
    }

    /// Whether a sender that falls back to `at` answers the NAK that undecided packets seemed to answer, and no later one; or
    /// takes so much longer for a later one that they cannot have been an answer.
    fn is_the_answer_instead(&self, at: u64, undecided: &Undecided, request: &Request) -> bool {
        let Some(answers) = self.answers() else {
            return false;
        };
        let begin = undecided.begin.time;
        if !answers.asked_since(at, begin) {
            // After a silence it may be a timeout's answer as well, and the first was lost behind the tap.
            return request.time.since(begin) < LONGEST_ANSWER && request.silence < SILENCE;
        }
        let took = answers.waited_since_asked(at, request.time);
        let seemed = undecided.since_asked;
        undecided.passed
            && took
                .zip(seemed)
                .is_some_and(|(took, seemed)| took.0 >= seemed.0 * 2)
    }

    /// New packets follow, at `time`, on undecided ones. If these were what a NAK asked for, the sender has gone on; if they were
    /// late, what it sends because of the NAK comes yet, soon.
    fn pass_undecided(&mut self, time: Nanos) {
        match self.undecided.as_deref_mut() {
            Some(undecided)
                if undecided.trigger == Trigger::Nak && time.since(undecided.begin.time) < LONGEST_ANSWER =>
            {
                undecided.passed = true;
            }
            _ => self.decide_alone(),
        }
    }

    /// The end of the flow's epoch: nothing more is coming of anything.
    pub(crate) fn close(&mut self) {
        self.decide_alone();
        self.end_run();
        if let Some(holes) = &mut self.holes {
            holes.close();
        }
    }

    /// The capture lost records: a gap before the next packet is not the network's.
    pub(crate) fn capture_lost(&mut self, requests: &mut Requests) {
        self.capture_lost = requests.next != 0;
        requests.disturbed |= self.capture_lost;
    }

    /// Whether the latest packets were far behind, and `psn` is that of one of them.
    pub(crate) fn is_stale(&self, psn: Psn) -> bool {
        self.stale_run > 0 && (1..=LARGEST_GAP).contains(&self.stale_next.offset_from(psn))
    }

    /// A run that has ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Option<Run> {
        self.ended.pop()
    }

    /// A decision on undecided packets since the last call.
    pub(crate) fn take_decision(&mut self) -> Option<Decision> {
        self.decision.take().map(|decision| *decision)
    }

    /// A missing packet, of which `told` was taken, came late after all.
    pub(crate) fn take_back(&mut self, told: Fate) {
        if let Some(holes) = &mut self.holes {
            holes.take_back(told);
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

    /// Missing PSNs of which it was decided since the last call what became of them. At the `end` nothing waits.
    pub(crate) fn take_holes(&mut self, end: bool) -> Vec<DecidedHole> {
        match &mut self.holes {
            Some(holes) if holes.any_decided() => holes.take_decided(self.paired, end),
            _ => Vec::new(),
        }
    }

    /// Missing PSNs by what became of them, as far as that was taken.
    pub(crate) fn fates(&self) -> Fates {
        self.holes.as_ref().map_or([0; 5], |holes| holes.fates())
    }

    /// Whether there is something to take: ended runs, a decision, or holes.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.ended.is_empty() || self.decision.is_some() || self.holes.is_some()
    }

    /// Whether `psn` is missing.
    fn is_missing(&self, psn: u64) -> bool {
        self.holes.as_ref().is_some_and(|holes| holes.contains(psn))
    }

    /// The PSNs from `first` up to `end` are there; gives the parts of holes that these were.
    fn fill(&mut self, first: u64, end: u64) -> Vec<Hole> {
        self.holes
            .as_mut()
            .map_or_else(Vec::new, |holes| holes.fill(first, end))
    }

    /// Parts of holes came late.
    fn came_late(&mut self, parts: &[Hole]) {
        for part in parts {
            let holes = self.holes.get_or_insert_default();
            holes.came_late(part);
            if let Some(answers) = &mut self.answers {
                answers.late(part.first, part.end, holes.first_open());
            }
        }
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
