//! The table of live flows: found by key, bounded in number.
//!
//! Finding a flow is most of the analysis' time once flows outgrow the caches, all of it waiting for memory. So
//! packets are looked up many at a time ([`FlowTable::find_all`]): every index entry is asked for, then every
//! flow, and the waits overlap. A library's hash table takes one key at a time.

mod ahead;

use std::hash::{BuildHasher, Hasher, RandomState};

use roce_model::{FlowKey, Packet, TapId};
use roce_wire::{Address, Qpn, Roce, VlanTag};

use crate::copies::{Recent, fingerprint};
use crate::prefetch::prefetch;
use crate::state::{Cold, Hot};
use ahead::Ahead;

/// A flow's key and its tap in six words: as much as a comparison or a hash wants to look at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Key([u64; 6]);

impl PartialEq for Key {
    /// Without a branch for each word, and without the call that arrays are compared with.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .fold(0, |differences, (a, b)| differences | (a ^ b))
            == 0
    }
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the two halves are what is wanted"
)]
pub(crate) fn halves(address: &Address) -> [u64; 2] {
    let both = u128::from_le_bytes(*address.octets());
    [both as u64, (both >> 64) as u64]
}

/// A 24-bit VNI, or a bit that says there is none.
const NO_VNI: u32 = 1 << 24;
/// A 12-bit VLAN identifier, or a bit that says there is none.
const NO_VLAN: u16 = 1 << 12;

impl Key {
    /// Every field has bits of its own: 24 + 24 + 3 of QPNs and service, 25 + 13 of networks, 32 of the tap.
    #[inline]
    fn new(
        tap: TapId,
        source: &Address,
        destination: &Address,
        qpns: [Qpn; 2],
        service: u8,
        nets: (u32, u16),
    ) -> Self {
        let [a, b] = halves(source);
        let [c, d] = halves(destination);
        let tap = u64::from(tap.0);
        let ends = u64::from(qpns[0].value()) | u64::from(qpns[1].value()) << 24 | u64::from(service) << 48;
        let nets = u64::from(nets.0) | u64::from(nets.1) << 25;
        Self([a, b, c, d, ends | tap << 56, nets | tap >> 8 << 40])
    }

    #[inline]
    pub(crate) fn of_packet(packet: &Packet) -> Self {
        let roce: &Roce = &packet.roce;
        Self::new(
            packet.tap,
            &roce.source,
            &roce.destination,
            [roce.bth.destination_qpn(), Qpn::new(roce.source_qpn)],
            roce.service() as u8,
            (roce.vni.unwrap_or(NO_VNI), roce.vlan.map_or(NO_VLAN, VlanTag::id)),
        )
    }

    /// Whether it is the same flow, at whatever tap; a tag or an overlay that one of the taps does not see makes no
    /// difference.
    pub(crate) fn is_same_traffic(&self, other: &Self) -> bool {
        const TAP: u64 = 0xff << 56;
        let (nets, others) = (Nets::of(self.0[5]), Nets::of(other.0[5]));
        self.0[..4] == other.0[..4]
            && (self.0[4] ^ other.0[4]) & !TAP == 0
            && (nets.vni == others.vni || nets.vni == NO_VNI || others.vni == NO_VNI)
            && (nets.vlan == others.vlan || nets.vlan == NO_VLAN || others.vlan == NO_VLAN)
    }

    fn of_flow(tap: TapId, key: &FlowKey) -> Self {
        Self::new(
            tap,
            &key.source,
            &key.destination,
            [key.destination_qpn, key.source_qpn],
            key.service as u8,
            (key.vni.unwrap_or(NO_VNI), key.vlan.unwrap_or(NO_VLAN)),
        )
    }
}

/// The networks in a key's last word.
struct Nets {
    vni: u32,
    vlan: u16,
}

impl Nets {
    #[expect(clippy::cast_possible_truncation, reason = "masked to the bits of each")]
    fn of(word: u64) -> Self {
        Self {
            vni: word as u32 & ((NO_VNI << 1) - 1),
            vlan: (word >> 25) as u16 & ((NO_VLAN << 1) - 1),
        }
    }
}

/// The numbers that make one hash of keys differ from another.
#[derive(Clone, Copy, Debug)]
struct Seeds([u64; 6]);

impl Seeds {
    /// Those that come of one number (SplitMix64, Steele, Lea and Flood 2014).
    fn of(mut number: u64) -> Self {
        Self(core::array::from_fn(|_| {
            number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = number;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }))
    }

    fn random() -> Self {
        Self(core::array::from_fn(|i| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_usize(i);
            hasher.finish()
        }))
    }

    #[inline]
    fn hash(&self, Key(key): &Key) -> u64 {
        let Self(seeds) = self;
        let source = fold(key[0] ^ seeds[0], key[1] ^ seeds[1]);
        let destination = fold(key[2] ^ seeds[2], key[3] ^ seeds[3]);
        fold(
            source ^ key[4] ^ seeds[4],
            destination.rotate_left(32) ^ key[5] ^ seeds[5],
        )
    }
}

/// The two halves of a product, folded into one.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the two halves are what is wanted"
)]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Packets looked up together.
pub(crate) const TOGETHER: usize = 64;

/// A looked-up packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub(crate) key: Key,
    pub(crate) hash: u64,
    /// The index entry where its search begins.
    entry: u64,
    /// The packet's own hash, for finding copies.
    pub(crate) fingerprint: u64,
    /// The flow's place; [`Found::NONE`] when there is none yet.
    pub(crate) at: u32,
}

impl Found {
    pub(crate) const NONE: u32 = u32::MAX;
}

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
    pub(crate) hot: Vec<Hot>,
    pub(crate) cold: Vec<Cold>,
    free: Vec<u32>,
    most: usize,
    hand: usize,
    /// No place before this one is live.
    first_live: usize,
}

const LOW: u64 = 0xffff_ffff;

/// The longest way from an entry's first slot to its own before the index takes random seeds. In a table that is a quarter full the
/// longest way grows as ln(n) / (0.25 - 1 - ln 0.25) (Pittel 1987): 27 slots for 30 million flows.
const MAX_PROBES: usize = 128;

/// From so many flows on there is room for all that there may be.
const MANY: usize = 1 << 13;

impl FlowTable {
    pub(crate) fn new(most: usize, seed: u64) -> Self {
        Self {
            seeds: Seeds::of(seed),
            index_seeds: None,
            index: vec![0; 64],
            len: 0,
            hot: Vec::new(),
            cold: Vec::new(),
            free: Vec::new(),
            most: most.clamp(1, u32::MAX as usize / 4),
            hand: 0,
            first_live: 0,
        }
    }

    /// Where the search for a hash begins: by the half of it that the entry holds, so that the index can grow by itself.
    #[inline]
    fn slot(&self, entry_or_hash: u64) -> usize {
        // The high bits, as many as the index has.
        (((entry_or_hash >> 32) * self.index.len() as u64) >> 32) as usize
    }

    #[inline]
    fn place(entry: u64) -> usize {
        ((entry & LOW) as usize).wrapping_sub(1)
    }

    /// Looks up the flows of `packets`. Apart from its caller each of the two has more registers.
    #[inline(never)]
    pub(crate) fn find_all(&self, packets: &[Packet], recent: &Recent, found: &mut [Found]) {
        for (packet, found) in packets.iter().zip(found.iter_mut()) {
            found.key = Key::of_packet(packet);
            let flow = self.seeds.hash(&found.key);
            found.hash = self
                .index_seeds
                .as_ref()
                .map_or(flow, |seeds| seeds.hash(&found.key));
            found.fingerprint = fingerprint(flow, packet);
            recent.prefetch(found.fingerprint);
            prefetch(&self.index[self.slot(found.hash)]);
        }
        for found in found.iter_mut().take(packets.len()) {
            found.entry = self.index[self.slot(found.hash)];
            if let Some(hot) = self.hot.get(Self::place(found.entry)) {
                hot.prefetch_all();
            }
        }
        let mut ahead = Ahead::new();
        for (packet, found) in packets.iter().zip(found.iter_mut()) {
            // Nearly always the first entry is the one.
            let at = Self::place(found.entry);
            let hit = (found.entry ^ found.hash) >> 32 == 0
                && self.hot.get(at).is_some_and(|hot| hot.packed == found.key);
            #[expect(clippy::cast_possible_truncation, reason = "places have 32 bits")]
            let place = at as u32;
            found.at = if hit {
                place
            } else {
                self.find(found.hash, &found.key).unwrap_or(Found::NONE)
            };
            if let Some(hot) = self.hot.get(found.at as usize) {
                ahead.note(hot, found.at, packet);
            }
        }
        ahead.prefetch_flows(self);
        ahead.prefetch(&self.cold);
    }

    /// The hash of a packet's flow that its own hash begins with.
    pub(crate) fn hash_of(&self, packet: &Packet) -> u64 {
        self.seeds.hash(&Key::of_packet(packet))
    }

    /// The hash by which the index finds a key.
    #[inline]
    fn index_hash(&self, key: &Key) -> u64 {
        self.index_seeds.as_ref().unwrap_or(&self.seeds).hash(key)
    }

    /// The place of the flow with this key.
    pub(crate) fn find_now(&self, key: &Key) -> Option<u32> {
        self.find(self.index_hash(key), key)
    }

    /// The place of the flow with this key and this hash by the index's seeds.
    fn find(&self, hash: u64, key: &Key) -> Option<u32> {
        let mut slot = self.slot(hash);
        loop {
            let entry = *self.index.get(slot)?;
            if entry == 0 {
                return None;
            }
            let at = Self::place(entry);
            if (entry ^ hash) >> 32 == 0 && self.hot.get(at).is_some_and(|hot| hot.packed == *key) {
                return u32::try_from(at).ok();
            }
            slot = self.after(slot);
        }
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.index.len() { 0 } else { slot + 1 }
    }

    /// The flow with this key at this tap.
    pub(crate) fn find_key(&self, tap: TapId, key: &FlowKey) -> Option<u32> {
        let key = Key::of_flow(tap, key);
        self.find_now(&key)
    }

    /// Live flows.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether another flow would be one too many.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.most
    }

    /// Adds a flow.
    pub(crate) fn insert(&mut self, hot: Hot, cold: Cold) -> u32 {
        let key = hot.packed;
        let at = if let Some(at) = self.free.pop() {
            self.hot[at as usize] = hot;
            self.cold[at as usize] = cold;
            at
        } else {
            if self.hot.len() == self.hot.capacity().min(self.cold.capacity()) {
                self.grow();
            }
            self.hot.push(hot);
            self.cold.push(cold);
            u32::try_from(self.hot.len() - 1).unwrap_or(Found::NONE)
        };
        if (self.len + 1) * 4 > self.index.len() {
            let larger = vec![0; self.index.len() * 2];
            let smaller = std::mem::replace(&mut self.index, larger);
            for entry in smaller.into_iter().filter(|entry| *entry != 0) {
                self.enter(entry);
            }
        }
        let probes = self.enter((self.index_hash(&key) & !LOW) | (u64::from(at) + 1));
        if probes > MAX_PROBES && self.index_seeds.is_none() {
            self.scatter(Seeds::random());
        }
        self.first_live = self.first_live.min(at as usize);
        self.len += 1;
        at
    }

    /// Makes room for more flows. Once there are many, for as many as there may be: what is never used of it takes no memory, and nothing
    /// has to be moved again. A system that does not give so much gets it in steps.
    #[cold]
    fn grow(&mut self) {
        let flows = self.hot.len();
        if flows >= MANY && self.most > flows {
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
            let hash = seeds.hash(&self.hot[Self::place(entry)].packed);
            self.enter((hash & !LOW) | (entry & LOW));
        }
    }

    /// A flow that can go: the next one under the clock hand that was not seen since the hand last passed.
    pub(crate) fn idle(&mut self) -> Option<u32> {
        for _ in 0..self.hot.len() * 2 {
            self.hand = (self.hand + 1) % self.hot.len();
            let hot = &mut self.hot[self.hand];
            if hot.live && !core::mem::take(&mut hot.referenced) {
                return u32::try_from(self.hand).ok();
            }
        }
        None
    }

    /// Takes a flow out of the table; its place can be given away.
    pub(crate) fn remove(&mut self, at: u32) {
        let hot = &mut self.hot[at as usize];
        hot.live = false;
        let key = hot.packed;
        let hash = self.index_hash(&key);
        let mut hole = self.slot(hash);
        while Self::place(self.index[hole]) != at as usize {
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
        while self.hot.get(self.first_live).is_some_and(|hot| !hot.live) {
            self.first_live += 1;
        }
    }

    /// The places of all live flows.
    pub(crate) fn live(&self) -> impl Iterator<Item = u32> {
        (0..)
            .zip(&self.hot)
            .skip(self.first_live)
            .filter(|(_, hot)| hot.live)
            .map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests;
