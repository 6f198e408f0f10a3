//! Packets that one tap saw and the next one did not: lost between them, or not recorded by the second.
//!
//! Each transmission counts. It was lost between two taps when the second one was recording, had time to
//! see it, and did not, and the sender retransmitted the PSN. A packet that was acknowledged and never
//! retransmitted did arrive: the second tap's capture missed it. That holds for the only transmission of its PSN: of several one that
//! is lost needs no repair where another one arrived. Of others it stays open.
//! Where the second tap is known to miss packets, only the first one of a run of retransmissions counts
//! as lost, because the rest is retransmitted in any case (go-back-N).
//! Answers and packets of unreliable services are not repeated: `hops` tells them by what else the second tap missed.
//!
//! A queue or a pause delays packets for longer than before. So what was not seen stays here for as long as it may still come.

use std::collections::{HashMap, VecDeque};

use roce_model::{Packet, TapId, Time};
use roce_wire::Psn;

use super::entry::{CLOCKS_DIFFER, Entry, Flags, Number, Repair, WINDOW};
use crate::key::FlowSlot;
use crate::taps::matching::hops::Hops;

/// Limit of the PSNs with transmissions that were not seen and may still come, or be sent again. Beyond it the oldest that can be
/// judged are judged at once, and nothing is concluded about more.
const MAX_WAITING: usize = 1 << 16;
/// Transmissions of one PSN that may still come. Of more the oldest is judged at once.
const MAX_TRANSMISSIONS: usize = 4;
/// Stretches in which taps lost records that are kept; what comes after is taken for one stretch to the end.
const MAX_BLIND: usize = 1 << 12;
/// Pairs of taps that one flow is followed between: three other taps and more are no usual capture.
const MAX_HOPS_OF_FLOW: usize = 4;

/// No hop.
const NONE: u32 = u32::MAX;
/// No PSN.
const NO_NUMBER: Number = Number(u32::MAX);

/// State of the flow at a place.
#[derive(Clone, Copy, Debug)]
struct OfFlow {
    /// The pairs of taps between which it was seen: places in the list of hops.
    hops: [u32; MAX_HOPS_OF_FLOW],
    /// The latest packet, and the latest retransmission.
    last: Number,
    again: Number,
    /// Counts up whenever the place is given away.
    generation: u8,
    /// When the flow's epoch began: a PSN that was seen before is another packet's.
    begun: Time,
}

impl OfFlow {
    const NEW: Self = Self {
        hops: [NONE; MAX_HOPS_OF_FLOW],
        last: NO_NUMBER,
        again: NO_NUMBER,
        generation: 0,
        begun: Time(0),
    };

    /// True if what a tap saw at `time` was of an epoch before this one.
    fn is_before(&self, time: Time) -> bool {
        time + CLOCKS_DIFFER < self.begun
    }
}

/// A transmission that was not seen at the next tap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transmission {
    pub(super) time: Time,
    pub(super) hop_limit: u8,
    pub(super) marked: bool,
    /// The PSN was sent again behind it, as the first one of a run.
    begins: bool,
}

/// The transmissions of one PSN that were not seen at the next tap and may still come.
#[derive(Clone, Copy, Debug)]
struct WaitingTransmissions {
    hop: u32,
    from: TapId,
    generation: u8,
    repair: Repair,
    /// It is the only transmission of its PSN.
    is_only: bool,
    /// The last of them was followed by another one.
    is_again: bool,
    count: u8,
    sent: [Transmission; MAX_TRANSMISSIONS],
}

impl WaitingTransmissions {
    fn sent(&self) -> &[Transmission] {
        self.sent.get(..usize::from(self.count)).unwrap_or_default()
    }

    fn last(&mut self) -> Option<&mut Transmission> {
        let last = usize::from(self.count).checked_sub(1)?;
        self.sent.get_mut(last)
    }

    /// Takes the oldest transmission out.
    fn pop(&mut self) -> Option<Transmission> {
        let oldest = self.sent().first().copied();
        self.sent.rotate_left(1);
        self.count = self.count.saturating_sub(1);
        oldest
    }

    /// Adds a transmission in the order of time; with whether another one followed.
    fn add(&mut self, transmission: Transmission, is_again: bool) {
        let place = self.sent().partition_point(|sent| sent.time <= transmission.time);
        let count = usize::from(self.count);
        if place == count {
            self.is_again = is_again;
        }
        if let Some(rest) = self.sent.get_mut(place..=count) {
            rest.rotate_right(1);
            rest[0] = transmission;
            self.count += 1;
        }
    }

    /// True if nothing that may follow changes what is said of it, but that it comes late.
    fn can_be_judged(&self) -> bool {
        self.is_again || self.repair != Repair::SentAgain
    }
}

/// Flow and PSN whose transmissions wait.
type Waits = (FlowSlot, Number);

/// Times at which a tap was recording.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    first: Time,
    last: Time,
    /// It lost records.
    has_lost: bool,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    flows: Vec<OfFlow>,
    waiting: HashMap<Waits, WaitingTransmissions, foldhash::fast::RandomState>,
    /// Those that can be judged, with the time of the first transmission, nearly in its order.
    due: VecDeque<(Time, Waits)>,
    /// Transmissions that found no room since the last look at all of those.
    refused: usize,
    /// By tap.
    watches: Vec<Watch>,
    /// When any tap showed the latest packet.
    latest: Time,
    /// From when until when taps lost records.
    blind: Vec<(TapId, Time, Time)>,
}

impl SentPackets {
    /// A tap shows a packet.
    #[inline]
    pub(super) fn watch(&mut self, packet: &Packet) {
        let tap = packet.tap.0 as usize;
        if self.watches.len() <= tap {
            self.watches.resize(tap + 1, Watch::default());
        }
        if let Some(watch) = self.watches.get_mut(tap) {
            if watch.last == Time(0) || packet.time < watch.first {
                watch.first = packet.time;
            }
            watch.last = watch.last.max(packet.time);
        }
        self.latest = self.latest.max(packet.time);
    }

    /// True if no tap showed a packet for so long before `time` that nothing seen before can be on its way.
    #[inline]
    pub(super) fn has_rested(&self, time: Time) -> bool {
        self.latest != Time(0) && time.since(self.latest) > WINDOW
    }

    /// Taps begin to look again, each with its next packet: what they record around a rest is as uncertain as at the ends of a capture.
    pub(super) fn look_again(&mut self) {
        for watch in &mut self.watches {
            (watch.first, watch.last) = (Time(0), Time(0));
        }
    }

    /// A tap lost records before `time`.
    pub(super) fn lost(&mut self, tap: TapId, time: Time) {
        let at = tap.0 as usize;
        if self.watches.len() <= at {
            self.watches.resize(at + 1, Watch::default());
        }
        let Some(watch) = self.watches.get_mut(at) else {
            return;
        };
        watch.has_lost = true;
        let since = watch.last;
        if self.blind.len() < MAX_BLIND {
            self.blind.push((tap, since, time));
        } else if let Some(last) = self.blind.iter_mut().rfind(|(of, ..)| *of == tap) {
            last.2 = Time(u64::MAX);
        }
    }

    /// Number among the flows that had the place `at`; 256 of them are distinguished.
    #[inline]
    pub(super) fn generation(&mut self, at: FlowSlot) -> u8 {
        let at = at.index();
        if self.flows.len() <= at {
            self.flows.resize(at + 1, OfFlow::NEW);
        }
        self.flows.get(at).map_or(0, |flow| flow.generation)
    }

    /// The place `at` is another flow's now.
    pub(super) fn forget(&mut self, at: FlowSlot) {
        if let Some(flow) = self.flows.get_mut(at.index()) {
            *flow = OfFlow {
                generation: flow.generation.wrapping_add(1),
                ..OfFlow::NEW
            };
        }
    }

    /// A new epoch of the flow at `at` begins at `time`: its PSNs begin again.
    pub(super) fn renew(&mut self, at: FlowSlot, time: Time) {
        if let Some(flow) = self.flows.get_mut(at.index()) {
            *flow = OfFlow {
                begun: time,
                last: NO_NUMBER,
                again: NO_NUMBER,
                ..*flow
            };
        }
    }

    /// When the epoch of the flow at `at` began.
    #[inline]
    pub(super) fn begun(&self, at: FlowSlot) -> Time {
        self.flows.get(at.index()).map_or(Time(0), |flow| flow.begun)
    }

    /// The flow at this place was seen between two taps: that is the hop `hop`.
    pub(super) fn takes_part(&mut self, at: FlowSlot, hop: u32) {
        self.generation(at);
        if let Some(flow) = self.flows.get_mut(at.index())
            && !flow.hops.contains(&hop)
            && let Some(free) = flow.hops.iter_mut().find(|hop| **hop == NONE)
        {
            *free = hop;
        }
    }

    /// The hops of the flow at this place.
    pub(super) fn hops(&self, at: FlowSlot) -> &[u32] {
        self.flows.get(at.index()).map_or(&[], |flow| &flow.hops)
    }

    /// True if a packet of the flow at `at`, when it is a retransmission, is the first of its run: the
    /// one before it was none.
    #[inline]
    pub(super) fn begins(&self, at: FlowSlot, number: Number) -> bool {
        self.flows
            .get(at.index())
            .is_none_or(|flow| flow.again != number.before())
    }

    /// A packet of the flow at `at`, captured at `time`; `is_again`: its PSN was seen here before.
    #[inline]
    pub(super) fn sight(
        &mut self,
        at: FlowSlot,
        packet: (Number, TapId, Time),
        is_again: bool,
        begins: bool,
        hops: &mut Hops,
    ) {
        let (number, tap, time) = packet;
        let Some(flow) = self.flows.get_mut(at.index()) else {
            return;
        };
        let is_next = core::mem::replace(&mut flow.last, number) == number.before();
        let mut is_again = is_again;
        if !self.waiting.is_empty()
            // One that follows on the one before it, which was new, is new, too: the PSNs began another lap.
            && (!is_next || flow.again == number.before())
            && let Some(waiting) = self.waiting.get_mut(&(at, number))
            && waiting.generation == flow.generation
            && waiting.repair == Repair::SentAgain
            && let Some(last) = waiting.last()
            && !flow.is_before(last.time)
            && time.since(last.time) <= WINDOW
        {
            is_again = true;
            last.begins |= begins;
            if !waiting.is_again {
                waiting.is_again = true;
                self.due.push_back((time, (at, number)));
            }
        }
        if is_again {
            flow.again = number;
            if begins {
                hops.run_begins(&flow.hops, tap);
            }
        }
        self.judge_until(time - WINDOW, hops);
    }

    /// A tap sees a packet that is not among those remembered: the earliest transmission of its PSN that was not seen there, if it can be
    /// that one. It is late, not lost. `from`: the place of its flow at the tap before.
    #[inline]
    pub(super) fn late(
        &mut self,
        from: FlowSlot,
        packet: (Number, TapId, Time),
        hops: &Hops,
    ) -> Option<(Transmission, bool)> {
        let (number, tap, time) = packet;
        if self.waiting.is_empty() {
            return None;
        }
        let waiting = self.waiting.get_mut(&(from, number))?;
        let generation = self.flows.get(from.index()).map(|flow| flow.generation);
        let first = waiting.sent().first()?;
        let is_it = generation == Some(waiting.generation)
            && hops.other(waiting.hop, waiting.from) == Some(tap)
            && first.time <= time
            && time.since(first.time) <= WINDOW;
        if !is_it {
            return None;
        }
        let is_alone = waiting.count == 1 && waiting.is_only && !waiting.is_again;
        let transmission = waiting.pop();
        if waiting.count == 0 {
            self.waiting.remove(&(from, number));
        }
        Some((transmission?, is_alone))
    }

    /// A packet is not remembered any longer.
    pub(super) fn gone(&mut self, entry: &Entry, hops: &mut Hops) {
        let Some(flow) = self.flows.get(entry.flow.index()) else {
            return;
        };
        if flow.generation != entry.generation {
            return;
        }
        let (Some(repair), Some(hop)) = (entry.repair(), hops.next(&flow.hops, entry.tap, entry.taps)) else {
            return;
        };
        if !self.had_begun(hop, (entry.tap, entry.time), hops) {
            return;
        }
        let key = (entry.flow, entry.number);
        let is_again = entry.flags.has(Flags::SENT_AGAIN) && repair == Repair::SentAgain;
        let transmission = Transmission {
            time: entry.time,
            hop_limit: entry.hop_limit,
            marked: entry.flags.has(Flags::MARKED),
            begins: entry.flags.has(Flags::BEGINS),
        };
        if self.waiting.len() >= MAX_WAITING
            && !self.waiting.contains_key(&key)
            && !self.make_room(entry.time, hops)
        {
            return;
        }
        let new = WaitingTransmissions {
            hop,
            from: entry.tap,
            generation: entry.generation,
            repair,
            is_only: !entry.flags.has(Flags::AGAIN),
            is_again,
            count: 0,
            sent: [Transmission::default(); MAX_TRANSMISSIONS],
        };
        let waiting = self.waiting.entry(key).or_insert(new);
        if (waiting.hop, waiting.from, waiting.generation) != (hop, entry.tap, entry.generation) {
            *waiting = new;
        } else if waiting.count > 0 {
            waiting.is_only = false;
        }
        if usize::from(waiting.count) == MAX_TRANSMISSIONS
            && let Some(oldest) = waiting.pop()
        {
            let of = *waiting;
            self.judge_one(&of, (&oldest, true), key.1, hops);
        }
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.add(transmission, is_again);
            if waiting.can_be_judged() {
                self.due.push_back((entry.time, key));
            }
        }
    }

    /// Judges the oldest, or forgets what no tap can have seen any more; true if there is room then.
    #[cold]
    fn make_room(&mut self, now: Time, hops: &mut Hops) -> bool {
        self.judge_oldest(hops);
        if self.waiting.len() < MAX_WAITING {
            return true;
        }
        self.refused += 1;
        if self.refused < MAX_WAITING / 4 {
            return false;
        }
        self.refused = 0;
        let mut waiting = core::mem::take(&mut self.waiting);
        waiting.retain(|_, waiting| {
            waiting.sent().iter().any(|sent| {
                now.since(sent.time) <= WINDOW
                    || self.could_be_seen(waiting.hop, (waiting.from, sent.time), hops)
            })
        });
        self.waiting = waiting;
        self.waiting.len() < MAX_WAITING
    }

    /// Judges what can have come no later than this time.
    #[inline]
    fn judge_until(&mut self, time: Time, hops: &mut Hops) {
        while self.due.front().is_some_and(|(due, _)| *due < time) {
            self.judge_oldest(hops);
        }
    }

    /// Judges the oldest that can be judged.
    #[cold]
    fn judge_oldest(&mut self, hops: &mut Hops) {
        while let Some((_, key)) = self.due.pop_front() {
            if self
                .waiting
                .get(&key)
                .is_some_and(WaitingTransmissions::can_be_judged)
                && let Some(waiting) = self.waiting.remove(&key)
            {
                self.judge(&waiting, key.1, hops);
                return;
            }
        }
    }

    /// True if the tap at the other end of a hop was looking when a packet should have come by. It was if it saw packets of the flow that
    /// were at the first tap before and after this one; otherwise its own times tell. Where packets overtake each other, those after this one
    /// say nothing: it may still be on its way.
    fn could_be_seen(&self, hop: u32, (at, time): (TapId, Time), hops: &Hops) -> bool {
        let Some((tap, watch)) = self.watch_of_other(hop, at, hops) else {
            return false;
        };
        let (before, after) = (hops.margin_before(hop, at).0, hops.margin(hop).0);
        let (early, late) = (time.0.saturating_sub(before), time.0.saturating_add(after));
        let is_blind = |(of, from, to): &(TapId, Time, Time)| *of == tap && early <= to.0 && from.0 <= late;
        let had_begun = watch.first.0 <= early || hops.is_behind_seen(hop, at, time);
        let has_gone_on = late <= watch.last.0 || hops.is_passed(hop, at, time);
        had_begun && has_gone_on && !self.blind.iter().any(is_blind)
    }

    /// True if that tap had begun to look when a packet should have come by.
    fn had_begun(&self, hop: u32, (at, time): (TapId, Time), hops: &Hops) -> bool {
        let watch = self.watch_of_other(hop, at, hops);
        watch.is_some_and(|(_, watch)| {
            watch.first.0.saturating_add(hops.margin_before(hop, at).0) <= time.0
                || hops.is_behind_seen(hop, at, time)
        })
    }

    fn watch_of_other(&self, hop: u32, at: TapId, hops: &Hops) -> Option<(TapId, &Watch)> {
        let tap = hops.other(hop, at)?;
        Some((tap, self.watches.get(tap.0 as usize)?))
    }

    /// At the end, or before a rest, acknowledged packets without a retransmission count as not captured.
    pub(super) fn conclude(&mut self, hops: &mut Hops, acked: impl Fn(FlowSlot, Psn) -> bool) {
        let mut all: Vec<(Waits, WaitingTransmissions)> =
            core::mem::take(&mut self.waiting).into_iter().collect();
        all.sort_unstable_by_key(|((at, number), _)| (*at, number.0));
        for ((at, number), mut waiting) in all {
            if waiting.can_be_judged() {
                self.judge(&waiting, number, hops);
                continue;
            }
            let Some(last) = waiting.last().copied() else {
                continue;
            };
            waiting.count -= 1;
            waiting.is_again = true;
            self.judge(&waiting, number, hops);
            if !self.could_be_seen(waiting.hop, (waiting.from, last.time), hops) {
                continue;
            }
            if waiting.is_only {
                hops.seen_alone(waiting.hop, waiting.from, number);
            }
            let is_it = self
                .flows
                .get(at.index())
                .is_some_and(|flow| flow.generation == waiting.generation && !flow.is_before(last.time));
            if is_it && waiting.is_only && !number.is_response() && acked(at, number.psn()) {
                hops.not_captured(waiting.hop, waiting.from, last.time);
            } else {
                hops.open(waiting.hop, waiting.from);
            }
        }
        self.due.clear();
    }

    /// Tells which taps lost records.
    pub(super) fn tell_incomplete(&self, hops: &mut Hops) {
        for (tap, watch) in (0..).map(TapId).zip(&self.watches) {
            if watch.has_lost {
                hops.is_incomplete(tap);
            }
        }
    }

    /// Judges transmissions that did not come.
    fn judge(&self, waiting: &WaitingTransmissions, number: Number, hops: &mut Hops) {
        let last = waiting.sent().len().saturating_sub(1);
        for (place, transmission) in waiting.sent().iter().enumerate() {
            let is_again = place < last || waiting.is_again;
            self.judge_one(waiting, (transmission, is_again), number, hops);
        }
    }

    /// Judges one of them; with whether its PSN was sent again. What nobody sends again may be on its way when nothing follows it.
    fn judge_one(
        &self,
        waiting: &WaitingTransmissions,
        of: (&Transmission, bool),
        number: Number,
        hops: &mut Hops,
    ) {
        let (transmission, is_again) = of;
        let (hop, from, time, psn) = (waiting.hop, waiting.from, transmission.time, number.psn());
        if !self.could_be_seen(hop, (from, time), hops) {
            return;
        }
        if waiting.is_only {
            hops.seen_alone(hop, from, number);
        }
        match waiting.repair {
            Repair::SentAgain if is_again => hops.lost(hop, from, time, psn, transmission.begins),
            Repair::SentAgain => hops.open(hop, from),
            _ if hops.may_be_on_its_way(hop, from, time) => hops.open(hop, from),
            Repair::Answer => hops.silent(hop, from, (time, psn), true),
            Repair::Unreliable => hops.silent(hop, from, (time, psn), false),
        }
    }
}
