//! The PSNs that a flow has not shown, as intervals, and what became of them. `requests` judges what decides that
//! (retransmissions, ACKs, NAKs).

use std::collections::VecDeque;

use roce_model::{Span, Time};

use crate::taps::duplicates::IdsBetween;

/// The fate of a missing PSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LossClass {
    /// It came late.
    Reordered,
    /// The network lost it.
    NetworkLost,
    /// It was acknowledged, so the capture lost it.
    CaptureLost,
    /// It was retransmitted in a run that began before it: the receiver would not have taken it, so nothing tells who lost
    /// it.
    Ambiguous,
    /// Nothing more is known.
    Unresolved,
}

impl LossClass {
    /// The word in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reordered => "reordered",
            Self::NetworkLost => "network_lost",
            Self::CaptureLost => "capture_lost",
            Self::Ambiguous => "ambiguous",
            Self::Unresolved => "unresolved",
        }
    }
}

/// Missing packets by what became of them, indexed by [`LossClass`].
pub(crate) type LossCounts = [u64; 5];

/// The knowledge about a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Nothing yet.
    Open,
    /// Acknowledged at a time: lost by the capture, or stamped out of order and about to show up.
    Covered(Time),
    /// The receiver's NAK named it at a time: lost by the network, unless the packet itself still arrives late.
    Named(Time),
    /// Counted. Its place is kept, so that a packet that fills it is not taken for captured before.
    Decided,
    /// Counted as lost by the network: a switch has trimmed the packet. Whatever fills it was sent again.
    Trimmed,
}

impl Stage {
    /// Its fate if nothing more comes.
    const fn class(self) -> Option<LossClass> {
        match self {
            Self::Open => Some(LossClass::Unresolved),
            Self::Covered(_) => Some(LossClass::CaptureLost),
            Self::Named(_) => Some(LossClass::NetworkLost),
            Self::Decided | Self::Trimmed => None,
        }
    }
}

/// From `first` up to, not including, `end`; PSNs are counted on past their 24 bits, so that a hole of the last lap is
/// not mistaken for one of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// When the gap showed.
    pub(crate) time: Time,
    /// The IP identifications up to that of the packet that showed the gap, where the sender counts them up: packets of the hole that were
    /// sent before it have one of these, retransmissions a higher one.
    pub(crate) ids: Option<IdsBetween>,
    pub(crate) stage: Stage,
}

impl Hole {
    /// True if `other` is a part of the same hole.
    pub(crate) fn joins(&self, other: &Self) -> bool {
        (self.time, self.stage, self.ids) == (other.time, other.stage, other.ids)
    }
}

/// A hole, or a part of one, of which it is known what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DecidedHole {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) time: Time,
    pub(crate) class: LossClass,
}

impl DecidedHole {
    const fn unresolved(self) -> Self {
        Self {
            class: LossClass::Unresolved,
            ..self
        }
    }
}

/// A missing packet may appear up to 1 ms after an ACK covers its hole. Capturing hosts that merge two
/// directions, or several receive queues, stamp packets out of order by about one scheduling delay.
const TURNED_AROUND: Span = Span(1_000_000);

/// A packet that a NAK named so shortly before the end of the capture may have come late after it.
pub(crate) const MAY_STILL_ARRIVE: Span = Span(100_000);

/// Missing PSNs behind the highest one, as intervals in order. Bounded by the number of intervals, which the owner
/// gives with each new one: past it the oldest interval is forgotten, and the losses of the flow are unclear.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    kept: VecDeque<Hole>,
    fates: LossCounts,
    /// Decided and not reported yet: at most [`MAX_WAITING`] wait for the flow to be paired.
    decided: Vec<DecidedHole>,
    /// Losses that may still turn out to be late packets: see [`Holes::take_decided`].
    waiting: VecDeque<DecidedHole>,
    /// Missing packets that a switch has trimmed.
    trimmed: u64,
    /// PSNs that came late after something else had been reported of them.
    revoked: Vec<u64>,
    /// Holes before this PSN are acknowledged.
    covered_to: u64,
    /// Holes before this PSN were acknowledged so long ago that they are decided.
    settled_to: u64,
    /// PSNs before this one may have been missing in a hole that was forgotten.
    forgotten_to: u64,
    /// PSNs in holes that were forgotten before anything was known of them.
    forgotten: u64,
    /// All PSNs that were ever missing.
    opened: u64,
    /// The number of intervals kept: see [`Holes::add`].
    max_kept: usize,
}

/// Decisions that wait until the other direction of the flow is known.
const MAX_WAITING: usize = 256;
/// Intervals that are always kept of one flow, however many flows there are.
pub(crate) const MIN_OPEN_HOLES: usize = 256;
/// Intervals of one flow at the most. A sprayed flow has an interval for each packet that was overtaken: a skew of 200 us
/// at 400 Gbit/s with 1 KiB packets is 10,000 packets, at most half of them intervals. 16,384 intervals take 1 MiB.
pub(crate) const MAX_OPEN_HOLES: usize = 16_384;

impl Holes {
    /// Adds the PSNs from `first` up to `end`, which are in no other hole. Keeps at most `max_kept` intervals.
    pub(crate) fn add(&mut self, first: u64, end: u64, time: Time, ids: Option<IdsBetween>, max_kept: usize) {
        let hole = Hole {
            first,
            end,
            time,
            ids,
            stage: Stage::Open,
        };
        self.kept.insert(self.place(first), hole);
        self.opened += end - first;
        self.covered_to = self.covered_to.min(first);
        self.settled_to = self.settled_to.min(first);
        self.max_kept = max_kept;
        self.bound();
    }

    fn bound(&mut self) {
        while self.kept.len() > self.max_kept.max(MIN_OPEN_HOLES) {
            let Some(oldest) = self.kept.pop_front() else {
                return;
            };
            self.forgotten_to = oldest.end;
            if oldest.stage == Stage::Open {
                self.forgotten += oldest.end - oldest.first;
            }
            self.conclude(&oldest);
        }
    }

    /// PSNs before this one may have been missing in a hole that was forgotten; 0: none was.
    pub(crate) fn forgotten_to(&self) -> u64 {
        self.forgotten_to
    }

    /// PSNs in holes that were forgotten before anything was known of them.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Counts a hole of which nothing more will be known.
    fn conclude(&mut self, hole: &Hole) {
        if let Some(class) = hole.stage.class() {
            self.decide(hole, class);
        }
    }

    /// Takes a hole, or a part that was taken out of one, for `class`; nothing when that was done before.
    fn decide(&mut self, hole: &Hole, class: LossClass) {
        if matches!(hole.stage, Stage::Decided | Stage::Trimmed) {
            return;
        }
        match self.decided.last_mut() {
            Some(last) if last.end == hole.first && (last.time, last.class) == (hole.time, class) => {
                last.end = hole.end;
            }
            _ => self.decided.push(DecidedHole {
                first: hole.first,
                end: hole.end,
                time: hole.time,
                class,
            }),
        }
    }

    /// A part of a hole came late, perhaps so late that the receiver had sent a NAK for it.
    pub(crate) fn came_late(&mut self, part: &Hole) {
        if part.stage == Stage::Decided {
            for psn in (part.first..part.end).take(MAX_WAITING) {
                self.came_after_all(psn);
            }
        } else {
            self.decide(part, LossClass::Reordered);
        }
    }

    /// A missing packet, of which `reported` was reported, came late after all.
    pub(crate) fn take_back(&mut self, reported: LossClass) {
        self.fates[reported as usize] = self.fates[reported as usize].saturating_sub(1);
        self.fates[LossClass::Reordered as usize] += 1;
    }

    /// A packet at `psn`, of which something else was decided, was late: what was not reported yet is changed.
    pub(crate) fn came_after_all(&mut self, psn: u64) {
        let lost = |hole: &&mut DecidedHole| {
            hole.first <= psn && psn < hole.end && hole.class != LossClass::Reordered
        };
        let mut undone = self.decided.iter_mut().rev().chain(self.waiting.iter_mut().rev());
        let Some(hole) = undone.find(lost) else {
            return self.revoked.push(psn);
        };
        let whole = core::mem::replace(
            hole,
            DecidedHole {
                first: psn,
                end: psn + 1,
                class: LossClass::Reordered,
                ..*hole
            },
        );
        let before = DecidedHole { end: psn, ..whole };
        let after = DecidedHole {
            first: psn + 1,
            ..whole
        };
        self.decided
            .extend([before, after].into_iter().filter(|hole| hole.first < hole.end));
    }

    /// A part of a hole was retransmitted: so it is `class`, unless it had been acknowledged before.
    pub(crate) fn was_sent_again(&mut self, part: &Hole, class: LossClass) {
        match part.stage {
            Stage::Open => self.decide(part, class),
            // Acknowledged, it had arrived: a sender that repeats it does not know yet.
            Stage::Covered(_) | Stage::Named(_) => self.conclude(part),
            Stage::Decided | Stage::Trimmed => {}
        }
    }

    /// A part of a hole was filled, and nothing tells whether the packet was late or retransmitted.
    pub(crate) fn stays_unresolved(&mut self, part: &Hole) {
        self.decide(part, LossClass::Unresolved);
    }

    /// Missing packets by what became of them, as far as that was reported.
    pub(crate) fn fates(&self) -> LossCounts {
        self.fates
    }

    /// True if, of what was missing so far, the capture's share is a tenth at the most, as a count with a small prior says it.
    pub(crate) fn are_losses(&self) -> bool {
        let [_, lost, missed, _, unresolved] = self.fates;
        10 * (5 * (missed + unresolved) + 1) <= 5 * (missed + unresolved + lost) + 4
    }

    /// All PSNs that were ever missing, and those that neither came late nor again, as far as is known.
    pub(crate) fn opened(&self) -> (u64, u64) {
        let [late, lost, _, again, _] = self.fates;
        (self.opened, self.opened.saturating_sub(late + lost + again))
    }

    /// PSNs that came late, since the last call, after something else had been reported of them.
    pub(crate) fn take_revoked(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.revoked)
    }

    /// True if [`Holes::take_decided`] has something to give.
    pub(crate) fn any_decided(&self) -> bool {
        !self.decided.is_empty() || !self.waiting.is_empty()
    }

    /// Counts and gives the decisions since the last call. The other direction shows who lost what: until that
    /// is known (`paired`), decisions but for what came late wait, the latest ones; at the `end` they are void. A missing packet takes
    /// `span` PSNs. What has been missing since `still` or later may yet come late: its loss waits as well.
    pub(crate) fn take_decided(
        &mut self,
        paired: bool,
        end: bool,
        span: u32,
        still: Time,
    ) -> Vec<DecidedHole> {
        let mut taken = core::mem::take(&mut self.decided);
        self.let_wait(&mut taken, end, still);
        if !paired && !end {
            let (late, mut waiting): (Vec<_>, Vec<_>) = taken
                .into_iter()
                .partition(|hole| hole.class == LossClass::Reordered);
            taken = late;
            let overdue = waiting.len().saturating_sub(MAX_WAITING);
            taken.extend(waiting.drain(..overdue).map(DecidedHole::unresolved));
            self.decided = waiting;
        } else if !paired {
            for hole in taken.iter_mut().filter(|hole| hole.class != LossClass::Reordered) {
                *hole = hole.unresolved();
            }
        }
        for hole in &taken {
            self.fates[hole.class as usize] += (hole.end - hole.first).div_ceil(u64::from(span.max(1)));
        }
        taken
    }

    /// Takes losses out of `taken` that may still turn out to be late, and adds those that have waited for long enough. At the `end` nothing
    /// decides about them.
    fn let_wait(&mut self, taken: &mut Vec<DecidedHole>, end: bool, still: Time) {
        let may_come = |hole: &DecidedHole| hole.class == LossClass::NetworkLost && hole.time > still;
        if end {
            taken.extend(self.waiting.drain(..));
            for hole in taken.iter_mut().filter(|hole| may_come(hole)) {
                *hole = hole.unresolved();
            }
            return;
        }
        if taken.iter().any(may_come) {
            let (waiting, ready): (Vec<_>, Vec<_>) = core::mem::take(taken)
                .into_iter()
                .partition(|hole| may_come(hole));
            *taken = ready;
            self.waiting.extend(waiting);
        }
        while let Some(first) = self.waiting.front()
            && (!may_come(first) || self.waiting.len() > MAX_WAITING)
        {
            taken.extend(self.waiting.pop_front());
        }
    }

    /// Where the first hole that ends behind `psn` is.
    fn place(&self, psn: u64) -> usize {
        self.kept.partition_point(|hole| hole.end <= psn)
    }

    /// True if `psn` is missing.
    pub(crate) fn contains(&self, psn: u64) -> bool {
        self.kept
            .get(self.place(psn))
            .is_some_and(|hole| hole.first <= psn)
    }

    /// The hole that holds `psn`.
    pub(crate) fn hole_with(&self, psn: u64) -> Option<&Hole> {
        self.kept.get(self.place(psn)).filter(|hole| hole.first <= psn)
    }

    /// The first missing PSN that is not acknowledged and not decided.
    pub(crate) fn first_open(&self) -> Option<u64> {
        let mut unacknowledged = self.kept.range(self.place(self.covered_to)..);
        let open = unacknowledged.find(|hole| matches!(hole.stage, Stage::Open | Stage::Named(_)));
        open.map(|hole| hole.first)
    }

    /// Takes out the PSNs from `first` up to `end`; gives the parts of holes that these were.
    pub(crate) fn fill(&mut self, first: u64, end: u64) -> Vec<Hole> {
        let from = self.place(first);
        let mut filled = Vec::new();
        while let Some(hole) = self.kept.get_mut(from).filter(|hole| hole.first < end) {
            let whole = *hole;
            filled.push(Hole {
                first: whole.first.max(first),
                end: whole.end.min(end),
                ..whole
            });
            let before = (whole.first < first).then_some(Hole { end: first, ..whole });
            let after = (whole.end > end).then_some(Hole { first: end, ..whole });
            match (before, after) {
                (None, None) => {
                    self.kept.remove(from);
                    continue;
                }
                (Some(before), None) => {
                    *hole = before;
                    // The next hole stands behind this one.
                    filled.extend(self.fill(whole.end, end));
                }
                (None, Some(after)) => *hole = after,
                (Some(before), Some(after)) => {
                    *hole = before;
                    self.kept.insert(from + 1, after);
                    self.bound();
                }
            }
            break;
        }
        filled
    }

    /// Divides the hole that holds both `psn` and the one before.
    fn split(&mut self, psn: u64) {
        let at = self.place(psn);
        if let Some(hole) = self.kept.get_mut(at)
            && hole.first < psn
        {
            let after = Hole { first: psn, ..*hole };
            hole.end = psn;
            self.kept.insert(at + 1, after);
        }
    }

    /// Everything before `psn` is acknowledged at `now`.
    pub(crate) fn cover(&mut self, psn: u64, now: Time) {
        if psn <= self.covered_to {
            return;
        }
        let covered_to = core::mem::replace(&mut self.covered_to, psn);
        if self.kept.back().is_none_or(|hole| hole.end <= covered_to) {
            return;
        }
        self.split(psn);
        let from = self.place(covered_to);
        for hole in self.kept.range_mut(from..).take_while(|hole| hole.end <= psn) {
            if hole.stage == Stage::Open {
                hole.stage = Stage::Covered(now);
            }
        }
        self.bound();
    }

    /// Decides the holes that were covered long enough before `now`. What was missing before `begun` may have arrived before the
    /// capture began.
    pub(crate) fn decide_covered(&mut self, now: Time, begun: Time) {
        if self.settled_to >= self.covered_to {
            return;
        }
        for at in self.place(self.settled_to)..self.kept.len() {
            let hole = self.kept[at];
            if hole.end > self.covered_to {
                break;
            }
            if let Stage::Covered(since) = hole.stage {
                if now.since(since) < TURNED_AROUND {
                    return;
                }
                let class = if hole.time < begun {
                    LossClass::Unresolved
                } else {
                    LossClass::CaptureLost
                };
                self.decide(&hole, class);
                self.kept[at].stage = Stage::Decided;
            }
            self.settled_to = hole.end;
        }
        self.settled_to = self.covered_to;
    }

    /// A switch has trimmed the packet of `psn`, if that is missing. Returns true if nothing else was known of it: it was lost.
    pub(crate) fn was_trimmed(&mut self, psn: u64) -> bool {
        let is_lost = self
            .hole_with(psn)
            .is_some_and(|hole| matches!(hole.stage, Stage::Open | Stage::Named(_)));
        if !is_lost {
            return false;
        }
        for part in self.fill(psn, psn + 1) {
            let stage = Stage::Trimmed;
            self.kept.insert(self.place(psn), Hole { stage, ..part });
        }
        self.bound();
        self.trimmed += 1;
        self.fates[LossClass::NetworkLost as usize] += 1;
        true
    }

    /// True if a switch has trimmed the packet of `psn`, which is missing since.
    pub(crate) fn is_trimmed(&self, psn: u64) -> bool {
        self.hole_with(psn)
            .is_some_and(|hole| hole.stage == Stage::Trimmed)
    }

    /// Missing packets that a switch has trimmed.
    pub(crate) fn trimmed(&self) -> u64 {
        self.trimmed
    }

    /// The receiver's NAK names `psn`: when that is missing, all of its hole from there on is lost, unless it comes late.
    pub(crate) fn name_at(&mut self, psn: u64, time: Time) {
        if !self.contains(psn) {
            return;
        }
        self.split(psn);
        let at = self.place(psn);
        if self.kept[at].stage == Stage::Open {
            self.kept[at].stage = Stage::Named(time);
        }
        self.bound();
    }

    /// The sender goes back to `psn`: when that is missing, all of its hole from there on is `class`.
    pub(crate) fn decide_at(&mut self, psn: u64, class: LossClass) {
        if !self.contains(psn) {
            return;
        }
        self.split(psn);
        let at = self.place(psn);
        if let Some(hole) = self.kept.get(at).copied() {
            self.was_sent_again(&hole, class);
            self.kept[at].stage = Stage::Decided;
        }
        self.bound();
    }

    /// Decides every hole that begins in `psns`.
    pub(crate) fn decide_within(&mut self, psns: core::ops::Range<u64>, class: LossClass) {
        let mut psn = psns.start;
        while let Some(hole) = self.kept.get(self.place(psn)).copied() {
            psn = hole.first.max(psn);
            if psn >= psns.end {
                return;
            }
            self.decide_at(psn, class);
            psn = hole.end;
        }
    }

    /// The end, at `end`: nothing more will be known. What was missing before `begun` may have arrived before the capture began.
    pub(crate) fn close(&mut self, begun: Time, end: Time) {
        let is_reordered = begun > Time(0);
        for mut hole in core::mem::take(&mut self.kept) {
            let is_unclear = match hole.stage {
                Stage::Covered(_) => hole.time < begun,
                Stage::Named(time) => is_reordered || end.since(time) < MAY_STILL_ARRIVE,
                _ => false,
            };
            if is_unclear {
                hole.stage = Stage::Open;
            }
            self.conclude(&hole);
        }
    }
}

#[cfg(test)]
mod tests;
