//! Packets that several taps of a run saw: matched, timed on their way between two taps, and counted once.
//!
//! Nothing is dropped here: each tap's flows are followed as if it were alone. That the taps' clocks agree is left to
//! whoever merged them. Congestion notifications are not matched: those for one queue pair are alike.

mod gaps;
mod hops;
mod sides;

use roce_model::{FlowKey, Nanos, Packet, TapId};
use roce_wire::{Ecn, Roce};

use crate::prefetch::prefetch;
use crate::table::{Key, fold, halves};

pub(crate) use gaps::Gaps;
use hops::LastHop;
pub(crate) use hops::{Ends, Hops, Sighted};
pub(crate) use sides::{Seen, Sides};

/// What all sightings of one packet share, and hardly any two packets: addresses, queue pairs, BTH, AETH, lengths, UDP
/// source port and IPv4 identification. What is between two taps changes none of it: neither marks, nor the hop
/// limit, nor tags and tunnels are in it. The same in every run.
pub fn identity(roce: &Roce) -> u64 {
    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
    /// FECN, BECN and reserved bits: the ICRC leaves them out, too.
    const CHANGES: usize = 4;
    let [a, b] = halves(&roce.source);
    let [c, d] = halves(&roce.destination);
    let mut front = [0; 8];
    front.copy_from_slice(&roce.bth.0[..8]);
    front[CHANGES] = 0;
    let mut back = [0; 4];
    back.copy_from_slice(&roce.bth.0[8..]);
    let numbers = u64::from(u32::from_be_bytes(back)) | u64::from(roce.source_qpn) << 32;
    let port = u64::from(roce.ip_id) | u64::from(roce.udp_source_port) << 16;
    let rest = port | u64::from(u32::from_be_bytes(roce.aeth.0)) << 32;
    let lengths = u64::from(roce.payload_bytes) | u64::from(roce.dma_length) << 32;
    let hosts = fold(
        fold(a ^ SEED, b.rotate_left(17) ^ !SEED),
        fold(c ^ !SEED, d.rotate_left(31) ^ SEED) ^ SEED,
    );
    let bth = fold(u64::from_be_bytes(front) ^ SEED, numbers.rotate_left(11) ^ !SEED);
    let all = fold(hosts ^ bth.rotate_left(23), rest ^ SEED);
    fold(all ^ lengths, SEED)
}

/// The packets seen last, by identity: 262,144 of them in sets of four, the newest of a set first. At 10 million packets
/// a second that is 26 ms, far more than a network takes.
#[derive(Debug)]
struct Recent {
    sets: Box<[Set]>,
}

/// Two cache lines.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Entry; 4]);

const SETS: usize = 1 << 16;

/// What is longer on its way is another one with the same identity.
const WINDOW: Nanos = Nanos(4 * Nanos::SECOND);

/// A packet, as the tap saw it that saw it last.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    time: Nanos,
    /// The taps that saw it, a bit for each; taps 64 apart share one.
    taps: u64,
    tag: u32,
    /// The place of its flow.
    flow: u32,
    tap: TapId,
    /// Sightings at this tap that no other one followed; 0 in an empty entry.
    pending: u8,
    hop_limit: u8,
    marked: bool,
    /// It was counted as matched at this tap.
    counted: bool,
}

impl Entry {
    fn new(tag: u32, at: u32, packet: &Packet) -> Self {
        Self {
            time: packet.time,
            taps: bit(packet.tap),
            tag,
            flow: at,
            tap: packet.tap,
            pending: 1,
            hop_limit: packet.roce.hop_limit,
            marked: packet.roce.ecn() == Ecn::Ce,
            counted: false,
        }
    }
}

fn bit(tap: TapId) -> u64 {
    1 << (tap.0 % 64)
}

/// A packet that another tap saw before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Crossing {
    /// The place of its flow at that tap.
    flow: u32,
    tap: TapId,
    /// When it was there; `None` when it was sent again and could be either.
    time: Option<Nanos>,
    hop_limit: u8,
    marked: bool,
    /// That tap's sighting was not counted as matched yet.
    is_first: bool,
}

impl Recent {
    fn new() -> Self {
        Self {
            sets: vec![Set::default(); SETS].into_boxed_slice(),
        }
    }

    /// Notes a packet of the flow at `at`; the sighting at another tap that it follows. `is_same`: whether the flow at a
    /// place is this packet's, at that tap.
    fn sight(&mut self, packet: &Packet, at: u32, is_same: impl Fn(u32, TapId) -> bool) -> Option<Crossing> {
        let identity = identity(&packet.roce);
        let tag = tag(identity);
        let Set(set) = self.sets.get_mut(place(identity))?;
        let known = set.iter_mut().find(|entry| {
            entry.pending > 0
                && entry.tag == tag
                && Nanos(packet.time.0.abs_diff(entry.time.0)) <= WINDOW
                && is_same(entry.flow, entry.tap)
        });
        let new = Entry::new(tag, at, packet);
        let Some(entry) = known else {
            *set = [new, set[0], set[1], set[2]];
            return None;
        };
        if entry.tap == packet.tap {
            // Sent again before it was seen elsewhere, or never seen there.
            entry.pending = entry.pending.saturating_add(1);
            (entry.time, entry.flow) = (packet.time, at);
            return None;
        }
        if entry.taps & new.taps != 0 {
            // It is back where it had been: sent again.
            *entry = new;
            return None;
        }
        let crossing = Crossing {
            flow: entry.flow,
            tap: entry.tap,
            time: (entry.pending == 1).then_some(entry.time),
            hop_limit: entry.hop_limit,
            marked: entry.marked,
            is_first: !entry.counted,
        };
        if entry.pending > 1 {
            entry.pending -= 1;
        } else {
            *entry = Entry {
                taps: entry.taps | new.taps,
                counted: true,
                ..new
            };
        }
        Some(crossing)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "masked to the number of sets")]
fn place(identity: u64) -> usize {
    identity as usize & (SETS - 1)
}

fn tag(identity: u64) -> u32 {
    (identity >> 32) as u32
}

/// What is known of packets that several taps saw.
#[derive(Debug)]
pub(crate) struct Crossings {
    recent: Recent,
    pub(crate) hops: Hops,
    pub(crate) gaps: Gaps,
    pub(crate) sides: Sides,
    /// Packets that another tap saw, by tap.
    matched: Vec<u64>,
    /// Where each flow's last match was noted, by the flow's place.
    last: Vec<LastHop>,
}

/// One of two flows that turned out to be the same traffic: its place, and how the packet was seen there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Match {
    /// The place of the flow at the other tap.
    pub(crate) flow: u32,
    before: Sighted,
    now: Sighted,
}

impl Crossings {
    /// Nothing seen yet; of `most` flows what happened between taps is kept.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            recent: Recent::new(),
            hops: Hops::new(most),
            gaps: Gaps::default(),
            sides: Sides::new(most),
            matched: Vec::new(),
            last: Vec::new(),
        }
    }

    /// Takes a packet of the flow at `at`, whose key is `key`; `keys` gives the keys of live flows and their taps.
    #[inline]
    pub(crate) fn sight<'a>(
        &mut self,
        packet: &Packet,
        at: u32,
        key: &Key,
        keys: impl Fn(u32) -> Option<(&'a Key, TapId)>,
    ) -> Option<Match> {
        let crossing = self.recent.sight(packet, at, |flow, tap| {
            keys(flow).is_some_and(|(other, at)| at == tap && key.is_same_traffic(other))
        })?;
        self.count(packet.tap);
        if crossing.is_first {
            self.count(crossing.tap);
        }
        Some(Match {
            flow: crossing.flow,
            before: Sighted {
                tap: crossing.tap,
                time: crossing.time,
                hop_limit: crossing.hop_limit,
                marked: crossing.marked,
            },
            now: Sighted {
                tap: packet.tap,
                time: Some(packet.time),
                hop_limit: packet.roce.hop_limit,
                marked: packet.roce.ecn() == Ecn::Ce,
            },
        })
    }

    fn count(&mut self, tap: TapId) {
        let tap = tap.0 as usize;
        if self.matched.len() <= tap {
            self.matched.resize(tap + 1, 0);
        }
        if let Some(matched) = self.matched.get_mut(tap) {
            *matched += 1;
        }
    }

    /// Notes what a match of the flow at `at` says of the way between the two taps. `names` gives the flow's names there.
    pub(crate) fn note(&mut self, of: &Match, at: u32, names: impl FnOnce() -> Option<Ends>) {
        let at = at as usize;
        if self.last.len() <= at {
            self.last.resize(at + 1, LastHop::NONE);
        }
        if let Some(known) = self.last.get_mut(at) {
            self.hops.note(known, of.flow, names, &of.before, &of.now);
        }
    }

    /// The place `at` is another flow's now.
    pub(crate) fn forget(&mut self, at: u32) {
        if let Some(known) = self.last.get_mut(at as usize) {
            *known = LastHop::NONE;
        }
    }

    /// Asks for the places of these packets.
    #[inline]
    pub(crate) fn prefetch(&self, packets: &[Packet]) {
        for packet in packets {
            if let Some(Set([first, _, third, _])) = self.recent.sets.get(place(identity(&packet.roce))) {
                prefetch(first);
                prefetch(third);
            }
        }
    }

    /// Packets that another tap saw, by tap.
    pub(crate) fn matched(&self) -> &[u64] {
        &self.matched
    }
}

/// A flow's name without what two taps can see differently.
pub(crate) fn traffic(key: &FlowKey) -> u64 {
    FlowKey {
        vlan: None,
        vni: None,
        ..*key
    }
    .id()
    .0
}

#[cfg(test)]
mod tests;
