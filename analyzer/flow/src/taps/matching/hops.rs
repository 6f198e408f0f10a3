//! Hops between two taps: the packets' delays, marks and losses there.

mod bins;
mod signed;
mod table;

use std::collections::HashMap;

use roce_model::cast::float;
use roce_model::{FlowId, Span, TapId, Time, Vantage};
use roce_wire::Psn;

use super::entry::{Number, bit};
use crate::key::FlowSlot;
use bins::{Bins, Room};
use signed::SignedDistribution;

/// A flow between two taps, in the order in which a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ends {
    /// The flow's name at the tap that saw the packet before.
    pub(crate) before: FlowId,
    /// Its name at the tap that sees it now.
    pub(crate) now: FlowId,
}

/// A packet as one tap saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SightedPacket {
    pub(crate) tap: TapId,
    pub(crate) time: Time,
    /// It is one of several transmissions that are alike: the time is that of the most likely one.
    pub(crate) is_ambiguous: bool,
    /// Its sender would have repaired its loss.
    pub(crate) is_repaired: bool,
    /// 1: a request, of which its acknowledgement shows that it was here, unless it is sent again; -1: one that is sent again; 0: others.
    pub(crate) shown: i8,
    pub(crate) hop_limit: u8,
    pub(crate) marked: bool,
}

/// A flow's name at the lower one of two taps, and the taps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Between {
    flow: FlowId,
    low: TapId,
    high: TapId,
}

/// All of them. Bounded: of more flows nothing is kept.
#[derive(Debug)]
pub(crate) struct Hops {
    most: usize,
    list: Vec<Hop>,
    /// Places in the list.
    by_ends: HashMap<Between, u32, foldhash::fast::RandomState>,
    /// The pairs of taps that hops lie between.
    pairs: Vec<Pair>,
    /// Places in that list, by the lower and the higher tap.
    by_taps: HashMap<(TapId, TapId), u32, foldhash::fast::RandomState>,
    /// Taps that lost records, in the order of their numbers.
    incomplete: Vec<TapId>,
    /// Room for bins.
    room: Room,
}

/// Hop of a flow's last packet that another tap had seen: nearly all later ones have it, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LastHop {
    /// The place of its flow at the other tap.
    flow: FlowSlot,
    tap: TapId,
    /// In the list of hops.
    place: u32,
}

impl LastHop {
    /// None yet: no flow has this place.
    pub(crate) const NONE: Self = Self {
        flow: FlowSlot::NONE,
        tap: TapId(u32::MAX),
        place: u32::MAX,
    };

    /// In the list of hops.
    pub(super) fn place(self) -> u32 {
        self.place
    }

    /// The place of its flow at the tap before, and that tap.
    pub(super) fn before(self) -> Option<(FlowSlot, TapId)> {
        (self.flow != FlowSlot::NONE).then_some((self.flow, self.tap))
    }
}

/// Packets that both taps saw from which on it is said which of them saw them first.
const MIN_MATCHED: u64 = 16;
/// A delay that suddenly is longer than this may be two transmissions of one packet, each seen at one of
/// the taps.
const USUAL: Span = Span(1_000_000);

/// Transmissions that one of two taps saw and the other one did not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Unseen {
    /// Retransmitted: lost.
    lost: u64,
    /// Number of the packets that are the first of a run of retransmissions.
    begins: u64,
    /// The earliest one: when it was at the tap that saw it, and its PSN.
    first: Option<(Time, Psn)>,
    /// The earliest one of those that begin a run.
    first_begins: Option<(Time, Psn)>,
    not_captured: u64,
    /// Answers, and packets of unreliable services, which nobody sends again; the earliest one.
    answers: u64,
    unreliable: u64,
    first_silent: Option<(Time, Psn)>,
    /// Neither sent again nor acknowledged.
    open: u64,
    /// First transmissions of their PSN, whatever became of them, and how often the one before was seen at both taps: a tap misses
    /// packets one at a time, or in bursts.
    alone: u64,
    stretches: u64,
    last_alone: Option<Number>,
    /// Runs of retransmissions that began at the tap that sees more.
    runs: u64,
}

impl Unseen {
    /// All of them.
    fn all(&self) -> u64 {
        let parts = [
            self.lost,
            self.not_captured,
            self.answers,
            self.unreliable,
            self.open,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// All flows between two taps. They share queues, so the delay of one flow is a delay that others can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pair {
    /// The time on the way of the latest packet whose transmission is known: of those that the lower tap saw first, and of the others.
    latest: [Span; 2],
    /// The longest time between both taps.
    longest: Span,
    /// Packets of one flow overtook each other there.
    is_shuffled: bool,
    /// Packets in a row that took longer than any transmission before.
    unusual: u32,
    /// Flows with [`MIN_MATCHED`] packets or more.
    flows: u32,
}

/// Tolerance of stamps at two taps, where little is known: half of the least time that clocks are compared to.
const MAX_SLACK: u64 = 10_000;
/// Tolerance where several flows show the delays.
const MIN_SLACK: u64 = 1_000;
/// Flows of a pair of taps from which on its longest delay is close to the longest of the queues between them.
const MIN_FLOWS: u32 = 4;

/// One flow between two taps, as seen going from the lower tap to the higher one.
#[derive(Clone, Debug, Default)]
struct Hop {
    low: TapId,
    high: TapId,
    /// The flow's name at the higher tap: another one where only one of the two sees a tag or an overlay.
    name: FlowId,
    matched: u64,
    /// Those of them whose loss would have been repaired.
    repaired: u64,
    /// Requests among them that nobody sent again.
    acknowledged: i64,
    /// Marked at the higher tap and not at the lower one; the reverse.
    marked: [u64; 2],
    delays: SignedDistribution,
    /// Packets that show by themselves that they passed the lower tap first, less those that show the opposite.
    shown: i64,
    /// Votes of the packets' times.
    timed: i64,
    /// The longest time between both taps, whichever came first.
    longest: Span,
    /// In the list of pairs.
    pair: u32,
    /// First and last time at the lower tap of packets that both taps saw; at the higher one.
    periods: [TapPeriod; 2],
    /// Packets that the lower tap alone saw; that the higher one alone saw.
    unseen: [Unseen; 2],
    /// All of it by time at the first tap.
    bins: Bins,
}

/// From when until when.
#[derive(Clone, Copy, Debug)]
struct TapPeriod {
    first: Time,
    last: Time,
}

impl Default for TapPeriod {
    fn default() -> Self {
        Self {
            first: Time(u64::MAX),
            last: Time(0),
        }
    }
}

impl TapPeriod {
    fn add(&mut self, time: Time) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }
}

impl Hop {
    fn count(&mut self, packet: &SightedPacket) {
        self.matched += 1;
        self.repaired += u64::from(packet.is_repaired);
        self.acknowledged += i64::from(packet.shown);
    }

    fn is_upwards(&self) -> bool {
        if self.shown == 0 {
            self.timed >= 0
        } else {
            self.shown > 0
        }
    }

    /// True if packets show which tap they pass first: by themselves, or by delays that the stamps resolve.
    fn is_ordered(&self, resolution: u64) -> bool {
        let median = self.delays.summary().quantile(50, true).unwrap_or_default();
        self.shown != 0 || median.abs() > float(resolution)
    }
}

impl Hops {
    /// None yet; of `most` flows they are kept. A bin of their timeline has the width `bin`.
    pub(super) fn new(most: usize, bin: Span) -> Self {
        Self {
            room: Room::new(bin),
            most,
            list: Vec::new(),
            by_ends: HashMap::default(),
            pairs: Vec::new(),
            by_taps: HashMap::default(),
            incomplete: Vec::new(),
        }
    }

    /// Notes a packet that one tap saw before and another one sees now. `known`: the place where the flow's last such
    /// packet was noted, and from which flow it came; `names` gives the flow's names at both taps.
    pub(super) fn note(
        &mut self,
        known: &mut LastHop,
        flow: FlowSlot,
        names: impl FnOnce() -> Option<Ends>,
        before: &SightedPacket,
        now: &SightedPacket,
    ) {
        if known.flow != flow || known.tap != before.tap {
            let Some(place) = names().and_then(|ends| self.place(ends, before.tap, now.tap)) else {
                return;
            };
            *known = LastHop {
                flow,
                tap: before.tap,
                place,
            };
        }
        let Some(hop) = self.list.get_mut(known.place as usize) else {
            return;
        };
        hop.count(now);
        let upwards = before.tap < now.tap;
        let (low, high) = if upwards { (before, now) } else { (now, before) };
        let bin = hop.bins.at(before.time, &mut self.room);
        bin.matched(low.marked, high.marked);
        hop.marked[0] += u64::from(high.marked && !low.marked);
        hop.marked[1] += u64::from(low.marked && !high.marked);
        // Marks stay and hop limits fall.
        hop.shown += i64::from(high.marked) - i64::from(low.marked);
        hop.shown += i64::from(low.hop_limit > high.hop_limit) - i64::from(high.hop_limit > low.hop_limit);
        let is_ambiguous = low.is_ambiguous || high.is_ambiguous;
        let is_overtaken = before.time < hop.periods[usize::from(!upwards)].last;
        let (low, high) = (low.time, high.time);
        hop.periods[0].add(low);
        hop.periods[1].add(high);
        if is_ambiguous {
            return;
        }
        bin.delayed(low, high);
        hop.timed += i64::from(high > low) - i64::from(low > high);
        let distance = high.0.abs_diff(low.0);
        let is_short = distance <= USUAL.0.max(hop.longest.0.saturating_mul(2));
        let unusual = self.pairs.get_mut(hop.pair as usize).map(|pair| {
            pair.unusual = if is_short {
                0
            } else {
                pair.unusual.saturating_add(1)
            };
            u64::from(pair.unusual)
        });
        // One such packet may be two; a pause holds back many.
        let is_usual = is_short || unusual.is_some_and(|unusual| unusual >= MIN_MATCHED);
        if is_usual {
            hop.longest = hop.longest.max(Span(distance));
        }
        if let Some(pair) = self.pairs.get_mut(hop.pair as usize) {
            pair.latest[usize::from(!upwards)] = Span(distance);
            pair.longest = pair.longest.max(hop.longest);
            pair.is_shuffled |= is_overtaken;
            pair.flows += u32::from(hop.matched == MIN_MATCHED);
        }
        if high >= low {
            hop.delays.above.add(high.since(low).0);
        } else {
            hop.delays.below.add(low.since(high).0);
        }
    }

    /// The place of a hop in the list; none where there are too many.
    fn place(&mut self, ends: Ends, before: TapId, now: TapId) -> Option<u32> {
        let (between, name) = if before < now {
            (Between::new(ends.before, before, now), ends.now)
        } else {
            (Between::new(ends.now, now, before), ends.before)
        };
        if let Some(place) = self.by_ends.get(&between) {
            return Some(*place);
        }
        let place = u32::try_from(self.list.len()).ok()?;
        if self.list.len() >= self.most {
            return None;
        }
        // There are no more pairs than hops: their places fit, too.
        let next = u32::try_from(self.pairs.len()).ok()?;
        let pair = *self.by_taps.entry((between.low, between.high)).or_insert(next);
        if pair == next {
            self.pairs.push(Pair::default());
        }
        self.by_ends.insert(between, place);
        self.list.push(Hop {
            low: between.low,
            high: between.high,
            name,
            pair,
            ..Hop::default()
        });
        Some(place)
    }

    /// The hop that a flow's packets take next after `tap`, if none of `taps` at its other end saw the packet.
    /// It is the hop that most packets took, of several.
    pub(super) fn next(&self, hops: &[u32], tap: TapId, taps: u32) -> Option<u32> {
        let of_flow = || {
            hops.iter()
                .filter_map(|place| Some((*place, self.list.get(*place as usize)?)))
        };
        let is_alone = of_flow().nth(1).is_none();
        let (place, hop) = of_flow()
            .filter(|(_, hop)| is_alone || (if hop.is_upwards() { hop.low } else { hop.high }) == tap)
            .max_by_key(|(_, hop)| hop.matched)?;
        let other = if hop.low == tap { hop.high } else { hop.low };
        (taps & bit(other) == 0).then_some(place)
    }

    /// Vantage of a tap for a flow on these hops: `sender` before all others, `receiver` behind them. `resolution` is that of a tap's
    /// stamps: shorter delays give no order.
    pub(super) fn stands(
        &self,
        hops: &[u32],
        tap: TapId,
        resolution: impl Fn(TapId) -> u64,
    ) -> Option<Vantage> {
        let (mut begins, mut ends) = (false, false);
        let hops = hops.iter().filter_map(|place| self.list.get(*place as usize));
        let is_ordered =
            |hop: &&Hop| hop.is_ordered(resolution(hop.low).saturating_add(resolution(hop.high)));
        for hop in hops.filter(|hop| hop.matched >= MIN_MATCHED).filter(is_ordered) {
            let is_first = hop.is_upwards() == (hop.low == tap);
            begins |= is_first;
            ends |= !is_first;
        }
        match (begins, ends) {
            (true, false) => Some(Vantage::Sender),
            (false, true) => Some(Vantage::Receiver),
            (true, true) => Some(Vantage::Between),
            (false, false) => None,
        }
    }

    /// The tap at the other end of a hop.
    pub(super) fn other(&self, hop: u32, tap: TapId) -> Option<TapId> {
        let hop = self.list.get(hop as usize)?;
        Some(if hop.low == tap { hop.high } else { hop.low })
    }

    /// Time on the way to `tap` of the latest packet between the taps of a hop whose transmission is known, of any flow.
    #[inline]
    pub(super) fn latest(&self, hop: u32, tap: TapId) -> Option<Span> {
        let hop = self.list.get(hop as usize)?;
        let pair = self.pairs.get(hop.pair as usize)?;
        Some(pair.latest[usize::from(hop.low == tap)])
    }

    /// Time that no packet takes from one end of a hop to the other: the longest of all flows there, and more. Queues keep the order, so
    /// no packet waits for longer than the latest one that left its queue: where several flows have passed, little is added.
    pub(super) fn margin(&self, hop: u32) -> Span {
        let Some(hop) = self.list.get(hop as usize) else {
            return Span(0);
        };
        let pair = self.pairs.get(hop.pair as usize).copied().unwrap_or_default();
        let longest = pair.longest.max(hop.longest).0;
        let more = if hop.matched < MIN_MATCHED {
            longest
        } else if pair.flows < MIN_FLOWS {
            longest / 4
        } else {
            longest / 64
        };
        Span(longest.saturating_add(more).saturating_add(self.slack(hop)))
    }

    /// Tolerance of stamps at the two taps of a hop. The delays of several flows show how far their clocks are apart.
    fn slack(&self, hop: &Hop) -> u64 {
        let flows = self.pairs.get(hop.pair as usize).map_or(0, |pair| pair.flows);
        if flows < MIN_FLOWS { MAX_SLACK } else { MIN_SLACK }
    }

    /// A packet that is at `from` now comes to the other end no earlier than this time before: directions may be unknown, and clocks
    /// are not exact.
    pub(super) fn margin_before(&self, hop: u32, from: TapId) -> Span {
        match self.list.get(hop as usize) {
            Some(of) if of.matched >= MIN_MATCHED && of.is_upwards() == (of.low == from) => {
                Span(self.slack(of))
            }
            _ => self.margin(hop),
        }
    }

    /// True if packets of the flow that were at `from` after `time` were seen at the other end, where none overtakes another: this one will
    /// not come any more.
    pub(super) fn is_passed(&self, hop: u32, from: TapId, time: Time) -> bool {
        self.list.get(hop as usize).is_some_and(|hop| {
            let is_shuffled = self
                .pairs
                .get(hop.pair as usize)
                .is_some_and(|pair| pair.is_shuffled);
            !is_shuffled && time <= hop.periods[usize::from(hop.low != from)].last
        })
    }

    /// True if packets of the flow that were at `from` before `time` were seen at the other end.
    pub(super) fn is_behind_seen(&self, hop: u32, from: TapId, time: Time) -> bool {
        self.list
            .get(hop as usize)
            .is_some_and(|hop| hop.periods[usize::from(hop.low != from)].first <= time)
    }

    /// True if a packet that was at `from` at `time` may be on its way to the other end when the flow ends: no later one was seen there, and
    /// it was not sent longer behind the last one that was than the way takes.
    pub(super) fn may_be_on_its_way(&self, hop: u32, from: TapId, time: Time) -> bool {
        let last = self
            .list
            .get(hop as usize)
            .map(|hop| hop.periods[usize::from(hop.low != from)].last);
        last.is_some_and(|last| time > last && time.since(last) <= self.margin(hop))
    }

    /// The first transmission of a PSN was seen at `from`, and not at the other end.
    pub(super) fn seen_alone(&mut self, hop: u32, from: TapId, number: Number) {
        let Some((hop, side)) = self.side(hop, from) else {
            return;
        };
        if let Some(unseen) = hop.unseen.get_mut(side) {
            unseen.alone += 1;
            let before = unseen.last_alone.replace(number);
            unseen.stretches += u64::from(before != Some(number.before()));
        }
    }

    /// A run of retransmissions of a flow with these hops begins at `tap`.
    pub(super) fn run_begins(&mut self, hops: &[u32], tap: TapId) {
        for hop in hops {
            if let Some((hop, side)) = self.side(*hop, tap)
                && let Some(unseen) = hop.unseen.get_mut(side)
            {
                unseen.runs += 1;
            }
        }
    }

    /// The hop, and the side of a tap: 0 for the lower one.
    fn side(&mut self, hop: u32, from: TapId) -> Option<(&mut Hop, usize)> {
        let hop = self.list.get_mut(hop as usize)?;
        let side = usize::from(hop.low != from);
        Some((hop, side))
    }

    /// A packet that was at `from` at `time` was not seen at the other end, and was retransmitted.
    pub(super) fn lost(&mut self, hop: u32, from: TapId, time: Time, psn: Psn, begins: bool) {
        let mut room = self.room;
        let Some((hop, side)) = self.side(hop, from) else {
            return;
        };
        hop.bins.at(time, &mut room).lost(side, begins);
        let Some(unseen) = hop.unseen.get_mut(side) else {
            return;
        };
        unseen.lost += 1;
        earliest(&mut unseen.first, (time, psn));
        if begins {
            unseen.begins += 1;
            earliest(&mut unseen.first_begins, (time, psn));
        }
        self.room = room;
    }

    /// A packet that was at `from` was not seen at the other end, and nobody sends such packets again.
    pub(super) fn silent(&mut self, hop: u32, from: TapId, first: (Time, Psn), is_answer: bool) {
        let mut room = self.room;
        let Some((hop, side)) = self.side(hop, from) else {
            return;
        };
        hop.bins.at(first.0, &mut room).silent(side);
        if let Some(unseen) = hop.unseen.get_mut(side) {
            *(if is_answer {
                &mut unseen.answers
            } else {
                &mut unseen.unreliable
            }) += 1;
            earliest(&mut unseen.first_silent, first);
        }
        self.room = room;
    }

    /// A packet that was at `from` was not seen at the other end, and nothing shows what became of it.
    pub(super) fn open(&mut self, hop: u32, from: TapId) {
        if let Some((hop, side)) = self.side(hop, from)
            && let Some(unseen) = hop.unseen.get_mut(side)
        {
            unseen.open += 1;
        }
    }

    /// A packet that was at `from` at `time` was not seen at the other end, where it was.
    pub(super) fn not_captured(&mut self, hop: u32, from: TapId, time: Time) {
        let mut room = self.room;
        let Some((hop, side)) = self.side(hop, from) else {
            return;
        };
        hop.bins.at(time, &mut room).not_captured(side);
        if let Some(unseen) = hop.unseen.get_mut(side) {
            unseen.not_captured += 1;
        }
        self.room = room;
    }

    /// Forgets when packets were seen: that tells nothing of the time behind a rest.
    pub(super) fn look_again(&mut self) {
        for hop in &mut self.list {
            hop.periods = <[TapPeriod; 2]>::default();
        }
    }

    /// A tap lost records. Called in the order of taps.
    pub(super) fn is_incomplete(&mut self, tap: TapId) {
        self.incomplete.push(tap);
    }
}

impl Between {
    fn new(flow: FlowId, low: TapId, high: TapId) -> Self {
        Self { flow, low, high }
    }
}

/// Keeps the earlier one of two.
fn earliest(first: &mut Option<(Time, Psn)>, other: (Time, Psn)) {
    if first.is_none_or(|(time, _)| other.0 < time) {
        *first = Some(other);
    }
}
