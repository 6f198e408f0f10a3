//! Packets that one tap saw and the next one did not: lost between them, or not recorded by the second.
//!
//! Each transmission counts. It was lost between two taps when the second one was recording, had time to
//! see it, and did not, and the sender retransmitted the PSN. A packet that was acknowledged and never
//! retransmitted did arrive: the second tap's capture missed it. That holds for the only transmission of its PSN: of several one that
//! is lost needs no repair where another one arrived. Nothing is concluded about others.
//! Where the second tap is known to miss packets, only the first one of a run of retransmissions counts
//! as lost, because the rest is retransmitted in any case (go-back-N).

use std::collections::HashMap;

use roce_model::{Nanos, Packet, TapId};
use roce_wire::Psn;

use super::entry::{CLOCKS_DIFFER, Entry, Flags, Number, WINDOW};
use crate::key::FlowSlot;
use crate::taps::matching::hops::Hops;

/// Limit of the transmissions that wait for a retransmission. Nothing is concluded about more.
const MAX_WAITING: usize = 1 << 16;
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
    begun: Nanos,
}

impl OfFlow {
    const NEW: Self = Self {
        hops: [NONE; MAX_HOPS_OF_FLOW],
        last: NO_NUMBER,
        again: NO_NUMBER,
        generation: 0,
        begun: Nanos(0),
    };

    /// True if what a tap saw at `time` was of an epoch before this one.
    fn is_before(&self, time: Nanos) -> bool {
        time.0.saturating_add(CLOCKS_DIFFER.0) < self.begun.0
    }
}

/// A transmission that was not seen at the next tap and is not retransmitted yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    hop: u32,
    from: TapId,
    time: Nanos,
    generation: u8,
    /// It is the only transmission of its PSN.
    is_only: bool,
}

/// Times at which a tap was recording.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    first: Nanos,
    last: Nanos,
    /// It lost records.
    has_lost: bool,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Sent {
    flows: Vec<OfFlow>,
    waiting: HashMap<(FlowSlot, Number), Waiting, foldhash::fast::RandomState>,
    /// By tap.
    watches: Vec<Watch>,
    /// From when until when taps lost records.
    blind: Vec<(TapId, Nanos, Nanos)>,
}

impl Sent {
    /// A tap shows a packet.
    #[inline]
    pub(super) fn watch(&mut self, packet: &Packet) {
        let tap = packet.tap.0 as usize;
        if self.watches.len() <= tap {
            self.watches.resize(tap + 1, Watch::default());
        }
        if let Some(watch) = self.watches.get_mut(tap) {
            if watch.last == Nanos(0) || packet.time < watch.first {
                watch.first = packet.time;
            }
            watch.last = watch.last.max(packet.time);
        }
    }

    /// A tap lost records before `time`.
    pub(super) fn lost(&mut self, tap: TapId, time: Nanos) {
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
            last.2 = Nanos(u64::MAX);
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
    pub(super) fn renew(&mut self, at: FlowSlot, time: Nanos) {
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
    pub(super) fn begun(&self, at: FlowSlot) -> Nanos {
        self.flows.get(at.index()).map_or(Nanos(0), |flow| flow.begun)
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
        packet: (Number, Nanos),
        is_again: bool,
        begins: bool,
        hops: &mut Hops,
    ) {
        let (number, time) = packet;
        let Some(flow) = self.flows.get_mut(at.index()) else {
            return;
        };
        let is_next = core::mem::replace(&mut flow.last, number) == number.before();
        let mut is_again = is_again;
        if !self.waiting.is_empty()
            // One that follows on the one before it, which was new, is new, too: the PSNs began another lap.
            && (!is_next || flow.again == number.before())
            && let Some(waiting) = self.waiting.remove(&(at, number))
            && waiting.generation == flow.generation
            && !flow.is_before(waiting.time)
            && time.since(waiting.time) <= WINDOW
        {
            is_again = true;
            hops.lost(waiting.hop, waiting.from, waiting.time, number.psn(), begins);
        }
        if is_again {
            flow.again = number;
        }
    }

    /// A packet is not remembered any longer: no tap will be found to have seen it after the latest that did.
    pub(super) fn gone(&mut self, entry: &Entry, hops: &mut Hops) {
        if !entry.number.is_sent_again() {
            return;
        }
        let Some(flow) = self.flows.get(entry.flow.index()) else {
            return;
        };
        if flow.generation != entry.generation {
            return;
        }
        let Some(hop) = hops.next(&flow.hops, entry.tap, entry.taps) else {
            return;
        };
        if !self.could_be_seen(hop, entry, hops) {
            return;
        }
        let begins = entry.flags.has(Flags::BEGINS);
        if entry.flags.has(Flags::SENT_AGAIN) {
            hops.lost(hop, entry.tap, entry.time, entry.number.psn(), begins);
        } else if self.waiting.len() < MAX_WAITING {
            let waiting = Waiting {
                hop,
                from: entry.tap,
                time: entry.time,
                generation: entry.generation,
                is_only: !entry.flags.has(Flags::AGAIN),
            };
            self.waiting.insert((entry.flow, entry.number), waiting);
        }
    }

    /// True if the tap at the other end of a hop was looking when a packet should have come by. It was if it saw packets of the flow that
    /// were at the first tap before and after this one; otherwise its own times tell.
    fn could_be_seen(&self, hop: u32, entry: &Entry, hops: &Hops) -> bool {
        let other = hops.other(hop, entry.tap);
        let Some((tap, watch)) = other.and_then(|tap| Some((tap, self.watches.get(tap.0 as usize)?))) else {
            return false;
        };
        let (before, after) = (hops.margin_before(hop, entry.tap).0, hops.margin(hop).0);
        let time = entry.time.0;
        let (early, late) = (time.saturating_sub(before), time.saturating_add(after));
        let is_blind = |(of, from, to): &(TapId, Nanos, Nanos)| *of == tap && early <= to.0 && from.0 <= late;
        let is_between = hops.is_between_seen(hop, entry.tap, entry.time);
        let is_looking = is_between || watch.first.0 <= early && late <= watch.last.0;
        is_looking && !self.blind.iter().any(is_blind)
    }

    /// At the end, acknowledged packets without a retransmission count as not captured.
    pub(super) fn conclude(&mut self, hops: &mut Hops, acked: impl Fn(FlowSlot, Psn) -> bool) {
        for ((at, number), waiting) in self.waiting.drain() {
            let is_it = self
                .flows
                .get(at.index())
                .is_some_and(|flow| flow.generation == waiting.generation && !flow.is_before(waiting.time));
            if is_it && waiting.is_only && !number.is_response() && acked(at, number.psn()) {
                hops.not_captured(waiting.hop, waiting.from, waiting.time);
            }
        }
        for (tap, watch) in (0..).map(TapId).zip(&self.watches) {
            if watch.has_lost {
                hops.is_incomplete(tap);
            }
        }
    }
}
