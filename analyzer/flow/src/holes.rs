//! The PSNs that a flow has not shown, as intervals, and what became of them. What tells it (resends, ACKs, NAKs) is
//! judged in `requests`.

use roce_model::Nanos;

/// What became of a missing PSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It came late.
    Reordered,
    /// The network lost it.
    NetworkLost,
    /// It was acknowledged, so the capture lost it.
    CaptureLost,
    /// It was sent again in a run that began before it: the receiver would not have taken it, so nothing tells who lost
    /// it.
    Ambiguous,
    /// Nothing more is known.
    Unresolved,
}

impl Fate {
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

/// Missing PSNs by what became of them, indexed by [`Fate`].
pub(crate) type Fates = [u64; 5];

/// What is known of a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Nothing yet.
    Open,
    /// Acknowledged at a time: lost by the capture, or stamped out of order and about to show up.
    Covered(Nanos),
    /// Counted. Its place is kept, so that what fills it is not taken for captured before.
    Decided,
}

impl Stage {
    /// What became of it when nothing more comes.
    const fn fate(self) -> Option<Fate> {
        match self {
            Self::Open => Some(Fate::Unresolved),
            Self::Covered(_) => Some(Fate::CaptureLost),
            Self::Decided => None,
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
    pub(crate) time: Nanos,
    pub(crate) stage: Stage,
}

impl Hole {
    /// Whether `other` is a part of the same hole.
    pub(crate) fn joins(&self, other: &Self) -> bool {
        (self.time, self.stage) == (other.time, other.stage)
    }
}

/// A hole, or a part of one, of which it is known what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DecidedHole {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) time: Nanos,
    pub(crate) fate: Fate,
}

impl DecidedHole {
    const fn unresolved(self) -> Self {
        Self {
            fate: Fate::Unresolved,
            ..self
        }
    }
}

/// So long after an ACK covers a hole, what was missing may still show up: taps that merge two directions, or several
/// receive queues, stamp packets out of order by some scheduling of the capturing host.
const TURNED_AROUND: Nanos = Nanos(1_000_000);

/// Missing PSNs behind the highest one, as intervals in order. Bounded: past [`Holes::MOST`] the oldest interval is
/// forgotten, and a packet that fills it later counts as sent again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    kept: Vec<Hole>,
    fates: Fates,
    /// Decided and not reported yet: at most [`Holes::MOST`] wait for the flow to be paired.
    decided: Vec<DecidedHole>,
    /// PSNs that came late after something else had been reported of them.
    revoked: Vec<u64>,
    /// Some hole is covered and not decided.
    any_covered: bool,
}

impl Holes {
    /// Intervals kept of one flow.
    pub(crate) const MOST: usize = 256;

    /// Adds the PSNs from `first` up to `end`, which lie after all others.
    pub(crate) fn add(&mut self, first: u64, end: u64, time: Nanos) {
        self.kept.push(Hole {
            first,
            end,
            time,
            stage: Stage::Open,
        });
        self.bound();
    }

    fn bound(&mut self) {
        while self.kept.len() > Self::MOST {
            let oldest = self.kept.remove(0);
            self.conclude(&oldest);
        }
    }

    /// Counts a hole of which nothing more will be known.
    fn conclude(&mut self, hole: &Hole) {
        if let Some(fate) = hole.stage.fate() {
            self.decide(hole, fate);
        }
    }

    /// Takes a hole, or a part that was taken out of one, for `fate`; nothing when that was done before.
    fn decide(&mut self, hole: &Hole, fate: Fate) {
        if hole.stage == Stage::Decided {
            return;
        }
        match self.decided.last_mut() {
            Some(last) if last.end == hole.first && (last.time, last.fate) == (hole.time, fate) => {
                last.end = hole.end;
            }
            _ => self.decided.push(DecidedHole {
                first: hole.first,
                end: hole.end,
                time: hole.time,
                fate,
            }),
        }
    }

    /// A part of a hole came late, perhaps so late that the receiver had asked for it.
    pub(crate) fn came_late(&mut self, part: &Hole) {
        if part.stage == Stage::Decided {
            for psn in (part.first..part.end).take(Self::MOST) {
                self.came_after_all(psn);
            }
        } else {
            self.decide(part, Fate::Reordered);
        }
    }

    /// A missing packet, of which `told` was reported, came late after all.
    pub(crate) fn take_back(&mut self, told: Fate) {
        self.fates[told as usize] = self.fates[told as usize].saturating_sub(1);
        self.fates[Fate::Reordered as usize] += 1;
    }

    /// A packet at `psn`, of which something else was decided, was late: what was not reported yet is changed.
    pub(crate) fn came_after_all(&mut self, psn: u64) {
        let lost =
            |hole: &&mut DecidedHole| hole.first <= psn && psn < hole.end && hole.fate != Fate::Reordered;
        let Some(hole) = self.decided.iter_mut().rev().find(lost) else {
            return self.revoked.push(psn);
        };
        let whole = core::mem::replace(
            hole,
            DecidedHole {
                first: psn,
                end: psn + 1,
                fate: Fate::Reordered,
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

    /// A part of a hole was sent again: so it is `fate`, unless it had been acknowledged before.
    pub(crate) fn was_sent_again(&mut self, part: &Hole, fate: Fate) {
        match part.stage {
            Stage::Open => self.decide(part, fate),
            // Acknowledged, it had arrived: who asks for it, or sends it, does not know yet.
            Stage::Covered(_) => self.conclude(part),
            Stage::Decided => {}
        }
    }

    /// Missing PSNs by what became of them, as far as that was reported.
    pub(crate) fn fates(&self) -> Fates {
        self.fates
    }

    /// PSNs that came late, since the last call, after something else had been reported of them.
    pub(crate) fn take_revoked(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.revoked)
    }

    /// Whether [`Holes::take_decided`] has something to give.
    pub(crate) fn any_decided(&self) -> bool {
        !self.decided.is_empty()
    }

    /// Counts and gives the decisions since the last call. Who lost what is told by the other direction: until that
    /// is known (`paired`), decisions but for what came late wait, the latest ones; at the `end` they are void.
    pub(crate) fn take_decided(&mut self, paired: bool, end: bool) -> Vec<DecidedHole> {
        let mut taken = core::mem::take(&mut self.decided);
        if !paired && !end {
            let (late, mut waiting): (Vec<_>, Vec<_>) =
                taken.into_iter().partition(|hole| hole.fate == Fate::Reordered);
            taken = late;
            let overdue = waiting.len().saturating_sub(Self::MOST);
            taken.extend(waiting.drain(..overdue).map(DecidedHole::unresolved));
            self.decided = waiting;
        } else if !paired {
            for hole in taken.iter_mut().filter(|hole| hole.fate != Fate::Reordered) {
                *hole = hole.unresolved();
            }
        }
        for hole in &taken {
            self.fates[hole.fate as usize] += hole.end - hole.first;
        }
        taken
    }

    /// Where the first hole that ends behind `psn` is.
    fn place(&self, psn: u64) -> usize {
        self.kept.partition_point(|hole| hole.end <= psn)
    }

    /// Whether `psn` is missing.
    pub(crate) fn contains(&self, psn: u64) -> bool {
        self.kept
            .get(self.place(psn))
            .is_some_and(|hole| hole.first <= psn)
    }

    /// The first missing PSN of which nothing is known.
    pub(crate) fn first_open(&self) -> Option<u64> {
        let open = self.kept.iter().find(|hole| hole.stage == Stage::Open);
        open.map(|hole| hole.first)
    }

    /// Takes out the PSNs from `first` up to `end`; gives the parts of holes that these were.
    pub(crate) fn fill(&mut self, first: u64, end: u64) -> Vec<Hole> {
        let from = self.place(first);
        let to = from + self.kept[from..].partition_point(|hole| hole.first < end);
        let touched = &self.kept[from..to];
        let (Some(lowest), Some(highest)) = (touched.first().copied(), touched.last().copied()) else {
            return Vec::new();
        };
        let before = Hole { end: first, ..lowest };
        let after = Hole {
            first: end,
            ..highest
        };
        let left = [before, after].into_iter().filter(|hole| hole.first < hole.end);
        let mut filled: Vec<Hole> = self.kept.splice(from..to, left).collect();
        for part in &mut filled {
            part.first = part.first.max(first);
            part.end = part.end.min(end);
        }
        self.bound();
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
    pub(crate) fn cover(&mut self, psn: u64, now: Nanos) {
        if self.kept.first().is_none_or(|hole| hole.first >= psn) {
            return;
        }
        self.split(psn);
        for hole in self.kept.iter_mut().take_while(|hole| hole.end <= psn) {
            if hole.stage == Stage::Open {
                hole.stage = Stage::Covered(now);
                self.any_covered = true;
            }
        }
        self.bound();
    }

    /// Decides the holes that were covered long enough before `now`.
    pub(crate) fn decide_covered(&mut self, now: Nanos) {
        if !self.any_covered {
            return;
        }
        self.any_covered = false;
        let mut kept = core::mem::take(&mut self.kept);
        for hole in &mut kept {
            if let Stage::Covered(since) = hole.stage {
                if now.since(since) >= TURNED_AROUND {
                    self.decide(hole, Fate::CaptureLost);
                    hole.stage = Stage::Decided;
                } else {
                    self.any_covered = true;
                }
            }
        }
        self.kept = kept;
    }

    /// The sender goes back to `psn`, or the receiver asks for it: when that is missing, all of its hole from there on is `fate`.
    pub(crate) fn decide_at(&mut self, psn: u64, fate: Fate) {
        if !self.contains(psn) {
            return;
        }
        self.split(psn);
        let at = self.place(psn);
        if let Some(hole) = self.kept.get(at).copied() {
            self.was_sent_again(&hole, fate);
            self.kept[at].stage = Stage::Decided;
        }
        self.bound();
    }

    /// The same for every hole that begins in `psns`.
    pub(crate) fn decide_within(&mut self, psns: core::ops::Range<u64>, fate: Fate) {
        let mut psn = psns.start;
        while let Some(hole) = self.kept.get(self.place(psn)).copied() {
            psn = hole.first.max(psn);
            if psn >= psns.end {
                return;
            }
            self.decide_at(psn, fate);
            psn = hole.end;
        }
    }

    /// The end: nothing more will be known.
    pub(crate) fn close(&mut self) {
        for hole in core::mem::take(&mut self.kept) {
            self.conclude(&hole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn left(holes: &Holes) -> Vec<u64> {
        holes.kept.iter().flat_map(|hole| hole.first..hole.end).collect()
    }

    fn add(holes: &mut Holes, first: u64, end: u64) {
        holes.add(first, end, Nanos(first));
    }

    fn filled(holes: &mut Holes, first: u64, end: u64) -> Vec<u64> {
        holes
            .fill(first, end)
            .iter()
            .flat_map(|part| part.first..part.end)
            .collect()
    }

    /// What was decided: first, end, fate.
    fn decided(holes: &mut Holes) -> Vec<(u64, u64, Fate)> {
        let taken = holes.take_decided(true, false);
        taken
            .iter()
            .map(|hole| (hole.first, hole.end, hole.fate))
            .collect()
    }

    #[test]
    fn filling_splits_and_joins_nothing() {
        let mut holes = Holes::default();
        add(&mut holes, 10, 15);
        assert_eq!(filled(&mut holes, 12, 13), [12]);
        assert_eq!(left(&holes), [10, 11, 13, 14]);
        assert!(!holes.contains(12), "filled once");
        assert!(holes.contains(11));
        assert_eq!(filled(&mut holes, 9, 12), [10, 11]);
        assert_eq!(filled(&mut holes, 13, 113), [13, 14]);
        assert!(left(&holes).is_empty());
    }

    #[test]
    fn the_oldest_is_forgotten_and_counted() {
        let mut holes = Holes::default();
        for i in 0..=Holes::MOST as u64 {
            add(&mut holes, i * 4, i * 4 + 3);
        }
        assert_eq!(holes.kept.len(), Holes::MOST);
        assert!(!holes.contains(0));
        assert_eq!(decided(&mut holes), [(0, 3, Fate::Unresolved)]);
        assert_eq!(filled(&mut holes, 5, 6), [5], "the split makes one too many");
        assert_eq!(holes.kept.len(), Holes::MOST);
        assert_eq!(decided(&mut holes), [(4, 5, Fate::Unresolved)]);
        assert!(holes.contains(6));
    }

    #[test]
    fn an_ack_covers_the_part_before_it() {
        let mut holes = Holes::default();
        add(&mut holes, 10, 15);
        holes.cover(12, Nanos(1_000));
        assert!(decided(&mut holes).is_empty(), "it may show up yet");
        holes.decide_covered(Nanos(1_000_999));
        assert!(decided(&mut holes).is_empty());
        holes.decide_covered(Nanos(1_001_000));
        assert_eq!(decided(&mut holes), [(10, 12, Fate::CaptureLost)]);
        assert_eq!(left(&holes), [10, 11, 12, 13, 14], "their places are kept");
        holes.close();
        assert_eq!(decided(&mut holes), [(12, 15, Fate::Unresolved)], "once each");
        assert_eq!(holes.fates(), [0, 0, 2, 0, 3]);
    }

    #[test]
    fn a_nak_names_the_rest_of_a_hole() {
        let mut holes = Holes::default();
        add(&mut holes, 10, 15);
        add(&mut holes, 20, 22);
        holes.cover(12, Nanos(1));
        holes.decide_at(12, Fate::NetworkLost);
        assert_eq!(decided(&mut holes), [(12, 15, Fate::NetworkLost)]);
        holes.decide_at(13, Fate::Ambiguous);
        assert_eq!(decided(&mut holes), [], "counted before");
        holes.decide_at(16, Fate::NetworkLost);
        holes.cover(30, Nanos(2));
        holes.close();
        assert_eq!(
            decided(&mut holes),
            [(10, 12, Fate::CaptureLost), (20, 22, Fate::CaptureLost)]
        );
    }

    #[test]
    fn what_a_nak_names_may_come_late() {
        let mut holes = Holes::default();
        add(&mut holes, 10, 14);
        holes.decide_at(10, Fate::NetworkLost);
        for part in &holes.fill(11, 12) {
            holes.came_late(part);
        }
        assert_eq!(
            decided(&mut holes),
            [
                (11, 12, Fate::Reordered),
                (10, 11, Fate::NetworkLost),
                (12, 14, Fate::NetworkLost)
            ],
            "nothing was reported yet"
        );
        assert!(holes.take_revoked().is_empty());
        for part in &holes.fill(12, 14) {
            holes.came_late(part);
        }
        assert_eq!(decided(&mut holes), [], "reported");
        assert_eq!(holes.take_revoked(), [12, 13]);
        holes.take_back(Fate::NetworkLost);
        assert_eq!(holes.fates(), [2, 2, 0, 0, 0]);
    }

    #[test]
    fn without_the_other_direction_only_what_came_late_is_known() {
        let mut holes = Holes::default();
        add(&mut holes, 10, 12);
        add(&mut holes, 20, 22);
        add(&mut holes, 30, 32);
        holes.decide_at(10, Fate::NetworkLost);
        let late = holes.fill(20, 22);
        holes.came_late(&late[0]);
        let fates = |taken: Vec<DecidedHole>| -> Vec<_> {
            taken.iter().map(|hole| (hole.first, hole.fate)).collect()
        };
        assert_eq!(
            fates(holes.clone().take_decided(false, false)),
            [(20, Fate::Reordered)]
        );
        let mut paired = holes.clone();
        paired.take_decided(false, false);
        assert_eq!(fates(paired.take_decided(true, false)), [(10, Fate::NetworkLost)]);
        holes.close();
        assert_eq!(
            fates(holes.take_decided(false, true)),
            [
                (10, Fate::Unresolved),
                (20, Fate::Reordered),
                (30, Fate::Unresolved)
            ]
        );
        assert_eq!(holes.fates(), [2, 0, 0, 0, 4]);
        let mut many = Holes::default();
        for i in 0..=Holes::MOST as u64 {
            add(&mut many, i * 4, i * 4 + 1);
            many.decide_at(i * 4, Fate::NetworkLost);
        }
        assert_eq!(
            fates(many.take_decided(false, false)),
            [(0, Fate::Unresolved)],
            "bounded"
        );
    }

    #[test]
    fn a_request_of_many_psns_decides_every_hole_that_it_takes() {
        let mut holes = Holes::default();
        add(&mut holes, 10, 12);
        add(&mut holes, 20, 22);
        add(&mut holes, 30, 32);
        holes.decide_within(11..25, Fate::Ambiguous);
        assert_eq!(
            decided(&mut holes),
            [(11, 12, Fate::Ambiguous), (20, 22, Fate::Ambiguous)]
        );
    }

    proptest! {
        /// The intervals equal a plain set of numbers, and every number has one fate in the end.
        #[test]
        fn as_a_set(gaps in prop::collection::vec((1u64..20, 1u64..5), 1..20),
                    acts in prop::collection::vec((0u64..400, 1u64..30, 0u8..5), 1..40)) {
            let mut holes = Holes::default();
            let mut set = BTreeSet::new();
            let mut next = 0;
            for (psns, seen) in gaps {
                add(&mut holes, next, next + psns);
                set.extend(next..next + psns);
                next += psns + seen;
            }
            let missing = set.len() as u64;
            for (now, (first, psns, act)) in (0..).zip(acts) {
                match act {
                    0 => holes.cover(first, Nanos(now * 400_000)),
                    1 => holes.decide_covered(Nanos(now * 400_000)),
                    2 => holes.decide_at(first, Fate::NetworkLost),
                    3 => holes.decide_at(first, Fate::Ambiguous),
                    _ => {
                        let taken: Vec<u64> = set.range(first..first + psns).copied().collect();
                        set.retain(|psn| !(first..first + psns).contains(psn));
                        let parts = holes.fill(first, first + psns);
                        let psns: Vec<u64> = parts.iter().flat_map(|part| part.first..part.end).collect();
                        prop_assert_eq!(psns, taken);
                        for part in &parts {
                            holes.came_late(part);
                        }
                    }
                }
                prop_assert_eq!(left(&holes), set.iter().copied().collect::<Vec<_>>());
            }
            holes.close();
            let events = decided(&mut holes);
            prop_assert_eq!(holes.fates().iter().sum::<u64>(), missing);
            prop_assert_eq!(events.iter().map(|(first, end, _)| end - first).sum::<u64>(), missing);
        }
    }
}
