//! Destinations with episodes that go on: what is kept of each, and where its flows are in them.

use std::collections::HashMap;
use std::ops::Range;

use roce_model::{FlowId, TapId, Time};

use super::kinds::{ECN, INCAST, KINDS, RNR};
use super::open::{FlowBin, NOWHERE, Open, Share};
use crate::host_pairs::HostPairs;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A destination with episodes that go on.
#[derive(Clone, Debug)]
pub(super) struct EpisodePlace {
    /// The number of the destination, and its hash.
    number: u32,
    pub(super) hash: u64,
    pub(super) tap: TapId,
    pub(super) open: [Option<Box<Open>>; 4],
    /// Data packets to it in this cell: such as can be marked, and marked ones.
    pub(super) markable: u64,
    pub(super) ce: u64,
    /// Sum of all rows to it in this cell.
    pub(super) sum: Share,
    /// A kind has signs in this cell.
    pub(super) signed: bool,
    /// Where each of its flows is kept in the episodes of each kind.
    slots: Map<FlowId, [u32; 4]>,
}

/// Destinations with episodes that go on.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) list: Vec<EpisodePlace>,
    /// Where they are in it, by their numbers; [`NOWHERE`] for the others.
    by_number: Vec<u32>,
}

impl Places {
    #[inline]
    pub(super) fn get_mut(&mut self, destination: u32) -> Option<&mut EpisodePlace> {
        let place = self.by_number.get(destination as usize)?;
        self.list.get_mut(*place as usize)
    }

    /// True if there are episodes at the destination.
    #[inline]
    pub(super) fn has(&self, destination: u32) -> bool {
        let at = self.by_number.get(destination as usize);
        at.is_some_and(|at| *at != NOWHERE)
    }

    pub(super) fn add(&mut self, place: EpisodePlace) {
        self.list.push(place);
        self.find_from(self.list.len() - 1);
    }

    /// Keeps those of which `keep` says so.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut EpisodePlace) -> bool) {
        let by_number = &mut self.by_number;
        self.list.retain_mut(|place| {
            let keeps = keep(place);
            if !keeps {
                by_number[place.number as usize] = NOWHERE;
            }
            keeps
        });
        self.find_from(0);
    }

    /// Notes where those from the one at `from` on are.
    fn find_from(&mut self, from: usize) {
        for (at, place) in (0..).zip(&self.list).skip(from) {
            let number = place.number as usize;
            if self.by_number.len() <= number {
                self.by_number.resize(number + 1, NOWHERE);
            }
            self.by_number[number] = at;
        }
    }

    /// The numbers of destinations have started again; the new ones by the old ones.
    pub(super) fn renumber(&mut self, pairs: &mut HostPairs) -> Map<u32, u32> {
        self.by_number.clear();
        let renumbered = self.list.iter_mut().map(|place| {
            let new = pairs.destination(place.hash);
            (core::mem::replace(&mut place.number, new), new)
        });
        let numbers = renumbered.collect();
        self.find_from(0);
        numbers
    }
}

impl EpisodePlace {
    pub(super) fn new(number: u32, hash: u64, tap: TapId) -> Self {
        Self {
            number,
            hash,
            tap,
            open: [None, None, None, None],
            markable: 0,
            ce: 0,
            sum: Share::default(),
            signed: false,
            slots: Map::default(),
        }
    }

    pub(super) fn opened(&mut self) -> impl Iterator<Item = &mut Open> {
        self.open.iter_mut().flatten().map(|open| &mut **open)
    }

    /// Where a flow is kept.
    #[inline]
    pub(super) fn slots_of(&self, flow: FlowId) -> [u32; 4] {
        self.slots.get(&flow).copied().unwrap_or([NOWHERE; 4])
    }

    /// Prefetches the state of a flow.
    #[inline]
    pub(super) fn prefetch(&self, slots: &[u32; 4]) {
        for (open, slot) in self.open.iter().zip(slots) {
            if let Some(open) = open {
                open.prefetch(*slot);
            }
        }
    }

    /// A row to it in a bin of `cell`, of a flow that was kept there; how many flows were kept for it that were not. `room`: there may be.
    #[inline]
    pub(super) fn add(&mut self, (row, cell): (&FlowBin, Time), mut slots: [u32; 4], room: bool) -> usize {
        let share = row.share();
        self.markable = self.markable.saturating_add(row.markable.into());
        self.ce = self.ce.saturating_add(row.ce.into());
        self.sum.add(&share);
        let mut kinds = self.open.iter().zip(&slots);
        if kinds.any(|(open, slot)| open.is_some() && *slot == NOWHERE) {
            return self.add_flow((row.flow, cell), &share, 0..KINDS.len(), room);
        }
        for (open, slot) in self.open.iter_mut().zip(&mut slots) {
            if let Some(open) = open {
                open.add_flow((row.flow, cell), slot, &share, room);
            }
        }
        0
    }

    /// A row that carries NAKs from it.
    pub(super) fn add_naks(&mut self, (row, cell): (&FlowBin, Time), room: bool) -> usize {
        let share = row.naks();
        if let Some(open) = &mut self.open[RNR] {
            open.add_cell(&share);
        }
        self.add_flow((row.flow, cell), &share, RNR..RNR + 1, room)
    }

    /// Adds to a flow's share in the episodes of some kinds; how many keep it that did not.
    fn add_flow(&mut self, flow: (FlowId, Time), share: &Share, kinds: Range<usize>, room: bool) -> usize {
        let mut new = [NOWHERE; 4];
        let known = self.slots.get_mut(&flow.0);
        let is_new = known.is_none();
        let slots = known.unwrap_or(&mut new);
        let mut kept = 0;
        for at in kinds {
            if let Some(open) = &mut self.open[at] {
                kept += usize::from(open.add_flow(flow, &mut slots[at], share, room));
            }
        }
        if is_new && kept > 0 {
            self.slots.insert(flow.0, new);
        }
        kept
    }

    /// The episode of a kind has ended.
    pub(super) fn forget(&mut self, kind: usize) {
        self.slots.retain(|_, slots| {
            slots[kind] = NOWHERE;
            *slots != [NOWHERE; 4]
        });
    }

    /// Notes what goes on at the same time: of an ecn episode the cells that lie in an incast, of a loss the rest.
    pub(super) fn note_meanwhile(&mut self, shown: [bool; 4]) {
        let [ecn, incast, loss, rnr] = &mut self.open;
        if let (Some(ecn), Some(_)) = (ecn, &incast)
            && (shown[ECN] || shown[INCAST])
        {
            ecn.covered_if += u64::from(shown[ECN]);
            if shown[INCAST] {
                // Marked cells between the incast's cells lie in it.
                ecn.covered += core::mem::take(&mut ecn.covered_if);
            }
        }
        if let Some(loss) = loss {
            loss.incast_meanwhile |= incast.is_some();
            loss.rnr_meanwhile |= rnr.is_some();
        }
    }
}
