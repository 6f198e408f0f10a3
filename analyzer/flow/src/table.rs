//! The table of live flows: found by key, bounded in number.
//!
//! Once flows outgrow the caches, finding a flow is most of the analysis' time, all of it waiting for
//! memory. So packets are looked up in batches ([`FlowTable::find_all`]): the index entry of one packet and the
//! flow of an earlier one are prefetched while a still earlier one is compared, and the waits overlap.
//!
//! A crate was looked for and not taken: hashbrown and others look up one key at a time.

mod attributes;
pub(crate) mod lookup;
mod prefetch;
mod prefetch_rows;
pub(crate) mod state;

use roce_model::{FlowKey, Packet, TapId, prefetch};

use crate::hash::Seeds;
use crate::key::{FlowSlot, Key, Slots};
use crate::psn::holes::MAX_OPEN_HOLES;
use crate::table::lookup::FoundFlow;
use crate::table::state::{Cold, Hot};
use crate::taps::duplicates::{Recent, fingerprint};
use prefetch::Ahead;

/// Live flows. A flow's place stays the same while it lives.
#[derive(Debug)]
pub(crate) struct FlowTable {
    /// The seeds of the packets' own hashes: equal seeds give equal results, since these hashes decide which packets stay remembered.
    /// The index uses them too, until somebody makes flows for it.
    seeds: Seeds,
    /// Random seeds of the index, from the moment on when its entries formed a stretch that no chance explains.
    index_seeds: Option<Seeds>,
    /// Open addressing, linear probing, at most a quarter full: then the first entry nearly always
    /// decides. An entry: the high half of the hash, and the place plus
    /// one; 0 is free.
    index: Vec<u64>,
    len: usize,
    pub(crate) hot: Slots<Hot>,
    pub(crate) cold: Slots<Cold>,
    free: Vec<FlowSlot>,
    most: usize,
    hand: usize,
    /// No place before this one is live.
    first_live: usize,
    /// The first epoch of a new flow: past all epochs of evicted ones, so that no key is used twice.
    pub(crate) first_epoch: u32,
    /// Intervals of missing PSNs that one flow may keep, by how many flows there are.
    max_holes: usize,
}

/// Packets that begin their lookup between two stages of another's.
const LOOKUP_LAG: usize = 8;

const LOW: u64 = 0xffff_ffff;

/// The longest distance of an entry from its first slot before the index takes random seeds. In a table
/// that is a quarter full the longest distance grows as ln(n) / (0.25 - 1 - ln 0.25) (Pittel 1987): 27
/// slots for 30 million flows.
const MAX_PROBES: usize = 128;

/// Intervals of missing PSNs of all flows together, as far as flows have more than [`crate::psn::holes::MIN_OPEN_HOLES`]: 64 bytes each.
const MAX_HOLES_OF_ALL: usize = 1 << 22;

/// Number of flows from which there is room for the maximum.
const RESERVE_FROM: usize = 1 << 13;

impl FlowTable {
    pub(crate) fn new(most: usize, seed: u64) -> Self {
        Self {
            seeds: Seeds::from_number(seed),
            index_seeds: None,
            index: vec![0; 64],
            len: 0,
            hot: Slots::new(),
            cold: Slots::new(),
            free: Vec::new(),
            most: most.clamp(1, u32::MAX as usize / 4),
            hand: 0,
            first_live: 0,
            first_epoch: 0,
            max_holes: MAX_OPEN_HOLES,
        }
    }

    /// First slot for a hash: from the half of it that the entry holds, so that the index can grow by
    /// itself.
    #[inline]
    fn slot(&self, entry_or_hash: u64) -> usize {
        // The high bits, as many as the index has.
        (((entry_or_hash >> 32) * self.index.len() as u64) >> 32) as usize
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    fn place(entry: u64) -> FlowSlot {
        FlowSlot::from_bits((entry as u32).wrapping_sub(1))
    }

    /// Looks up the flows of `packets`. Apart from its caller each of the two has more registers.
    ///
    /// Each packet passes three stages, and [`LOOKUP_LAG`] others begin theirs before its next one. So memory is requested at
    /// an even pace: a processor drops prefetches when it waits for too many lines at once.
    #[inline(never)]
    pub(crate) fn find_all(&self, packets: &[Packet], recent: &Recent, found: &mut [FoundFlow]) {
        let mut ahead = Ahead::new();
        let count = packets.len().min(found.len());
        for step in 0..count + 2 * LOOKUP_LAG {
            if let (Some(packet), Some(found)) = (packets.get(step), found.get_mut(step)) {
                self.look_up_entry(packet, recent, found);
            }
            if let Some(at) = step.checked_sub(LOOKUP_LAG)
                && at < count
            {
                let found = &mut found[at];
                found.entry = self.index[self.slot(found.hash)];
                if let Some(hot) = self.hot.get(Self::place(found.entry)) {
                    hot.prefetch_all();
                }
            }
            if let Some(at) = step.checked_sub(2 * LOOKUP_LAG) {
                self.look_up_flow(&packets[at], &mut found[at], &mut ahead);
            }
        }
        ahead.prefetch_flows(&self.hot, &self.cold);
        ahead.prefetch(&self.cold);
    }

    /// Makes a packet's hashes, and prefetches where its search begins.
    #[inline]
    fn look_up_entry(&self, packet: &Packet, recent: &Recent, found: &mut FoundFlow) {
        found.key = Key::from_packet(packet);
        let flow = self.seeds.hash(found.key.words());
        found.hash = self
            .index_seeds
            .as_ref()
            .map_or(flow, |seeds| seeds.hash(found.key.words()));
        found.fingerprint = fingerprint(flow, packet);
        recent.prefetch(found.fingerprint);
        prefetch(&self.index[self.slot(found.hash)]);
    }

    /// Finds a packet's flow, and notes what the packet needs of it.
    #[inline]
    fn look_up_flow(&self, packet: &Packet, found: &mut FoundFlow, ahead: &mut Ahead) {
        // Nearly always the first entry is the one.
        let at = Self::place(found.entry);
        let hit = (found.entry ^ found.hash) >> 32 == 0
            && self.hot.get(at).is_some_and(|hot| hot.packed == found.key);
        found.at = if hit {
            at
        } else {
            self.find(found.hash, &found.key).unwrap_or(FlowSlot::NONE)
        };
        if let Some(hot) = self.hot.get(found.at) {
            ahead.note(hot, found.at, packet);
        }
    }

    /// The hash of a packet's flow that its own hash begins with.
    pub(crate) fn hash_of(&self, packet: &Packet) -> u64 {
        self.seeds.hash(Key::from_packet(packet).words())
    }

    /// The hash by which the index finds a key.
    #[inline]
    fn index_hash(&self, key: &Key) -> u64 {
        self.index_seeds.as_ref().unwrap_or(&self.seeds).hash(key.words())
    }

    /// The place of the flow with this key.
    pub(crate) fn find_now(&self, key: &Key) -> Option<FlowSlot> {
        self.find(self.index_hash(key), key)
    }

    /// The place of the flow with this key and this hash by the index's seeds.
    fn find(&self, hash: u64, key: &Key) -> Option<FlowSlot> {
        let mut slot = self.slot(hash);
        loop {
            let entry = *self.index.get(slot)?;
            if entry == 0 {
                return None;
            }
            let at = Self::place(entry);
            if (entry ^ hash) >> 32 == 0 && self.hot.get(at).is_some_and(|hot| hot.packed == *key) {
                return Some(at);
            }
            slot = self.after(slot);
        }
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.index.len() { 0 } else { slot + 1 }
    }

    /// The flow with this key at this tap.
    pub(crate) fn find_key(&self, tap: TapId, key: &FlowKey) -> Option<FlowSlot> {
        let key = Key::from_flow(tap, key);
        self.find_now(&key)
    }

    /// Intervals of missing PSNs that one flow may keep.
    #[inline]
    pub(crate) fn max_holes(&self) -> usize {
        self.max_holes
    }

    /// Flows that may be live.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// True if another flow would be one too many.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.most
    }

    /// Adds a flow.
    pub(crate) fn insert(&mut self, hot: Hot, cold: Cold) -> FlowSlot {
        let key = hot.packed;
        let at = if let Some(at) = self.free.pop() {
            self.hot[at] = hot;
            self.cold[at] = cold;
            at
        } else {
            if self.hot.len() == self.hot.capacity().min(self.cold.capacity()) {
                self.grow();
            }
            self.hot.push(hot);
            self.cold.push(cold);
            FlowSlot::from_index(self.hot.len() - 1)
        };
        if (self.len + 1) * 4 > self.index.len() {
            let larger = vec![0; self.index.len() * 2];
            let smaller = std::mem::replace(&mut self.index, larger);
            for entry in smaller.into_iter().filter(|entry| *entry != 0) {
                self.enter(entry);
            }
        }
        let probes = self.enter((self.index_hash(&key) & !LOW) | (u64::from(at.bits()) + 1));
        if probes > MAX_PROBES && self.index_seeds.is_none() {
            self.scatter(Seeds::random());
        }
        self.first_live = self.first_live.min(at.index());
        self.len += 1;
        self.max_holes = (MAX_HOLES_OF_ALL / self.len).min(MAX_OPEN_HOLES);
        at
    }

    /// Makes room for more flows. Once there are many, for as many as there may be: what is never used of it takes no memory, and nothing
    /// has to be moved again. A system that does not give so much gets it in steps.
    #[cold]
    fn grow(&mut self) {
        let flows = self.hot.len();
        if flows >= RESERVE_FROM && self.most > flows {
            let more = self.most - flows;
            let _ = self
                .hot
                .try_reserve_exact(more)
                .and_then(|()| self.cold.try_reserve_exact(more));
        }
    }

    /// Enters a flow, and returns the number of slots that were taken before its own.
    fn enter(&mut self, entry: u64) -> usize {
        let mut slot = self.slot(entry);
        let mut probes = 0;
        while self.index[slot] != 0 {
            slot = self.after(slot);
            probes += 1;
        }
        self.index[slot] = entry;
        probes
    }

    /// Enters all flows again, by the hash of these seeds.
    #[cold]
    fn scatter(&mut self, seeds: Seeds) {
        self.index_seeds = Some(seeds);
        let size = self.index.len();
        let entries = std::mem::replace(&mut self.index, vec![0; size]);
        for entry in entries.into_iter().filter(|entry| *entry != 0) {
            let hash = seeds.hash(self.hot[Self::place(entry)].packed.words());
            self.enter((hash & !LOW) | (entry & LOW));
        }
    }

    /// A flow that can go: the next one under the clock hand that was not seen since the hand last passed.
    pub(crate) fn idle(&mut self) -> Option<FlowSlot> {
        for _ in 0..self.hot.len() * 2 {
            self.hand = (self.hand + 1) % self.hot.len();
            let slot = FlowSlot::from_index(self.hand);
            let hot = &mut self.hot[slot];
            if hot.live && !core::mem::take(&mut hot.referenced) {
                return Some(slot);
            }
        }
        None
    }

    /// Takes a flow out of the table; its place can be given away.
    pub(crate) fn remove(&mut self, at: FlowSlot) {
        let hot = &mut self.hot[at];
        hot.live = false;
        let key = hot.packed;
        let hash = self.index_hash(&key);
        let mut hole = self.slot(hash);
        while Self::place(self.index[hole]) != at {
            if self.index[hole] == 0 {
                return;
            }
            hole = self.after(hole);
        }
        // Later entries of the same stretch move up, unless they would come before the slot they belong to.
        let mut slot = self.after(hole);
        while self.index[slot] != 0 {
            let origin = self.slot(self.index[slot]);
            let distance = |from: usize| (slot + self.index.len() - from) % self.index.len();
            if distance(origin) >= distance(hole) {
                self.index[hole] = self.index[slot];
                hole = slot;
            }
            slot = self.after(slot);
        }
        self.index[hole] = 0;
        self.len -= 1;
        self.free.push(at);
        while self
            .hot
            .get(FlowSlot::from_index(self.first_live))
            .is_some_and(|hot| !hot.live)
        {
            self.first_live += 1;
        }
    }

    /// The places of all live flows.
    pub(crate) fn live(&self) -> impl Iterator<Item = FlowSlot> {
        let flows = self.hot.starting_at(self.first_live);
        flows.filter(|(_, hot)| hot.live).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests;
