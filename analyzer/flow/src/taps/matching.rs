//! Packets that several taps of a run saw: matched, timed on their way between two taps, and counted once.
//!
//! Nothing is dropped here: each tap's flows are followed as if it were alone. The caller has aligned
//! the taps' clocks. Congestion notifications are not matched, because those for one queue pair are
//! equal.
//!
//! Packets that one tap saw and the next one did not are followed in `sent`.

pub(crate) mod counted;
mod entry;
pub(crate) mod hops;
mod unseen;

use std::collections::HashMap;

use roce_model::{FlowKey, Packet, Span, TapId, Time, Vantage, prefetch};
use roce_wire::{Ecn, Psn, Roce};

use crate::hash::{fold, halves};
use crate::key::{FlowSlot, Key};

use counted::Sides;
use entry::{CLOCKS_DIFFER, Entry, Flags, Number, WINDOW};
use hops::LastHop;
use hops::{Ends, Hops, SightedPacket};
use unseen::SentPackets;

/// Identity of a packet, equal for all its sightings: addresses, queue pairs, BTH, AETH, length, UDP
/// source port and IPv4 identification. It leaves out headers behind the BTH, which a capture may cut
/// off, and everything that changes between two taps: marks, the hop limit, tags and tunnels. It is the
/// same in every run.
pub fn identity(roce: &Roce) -> u64 {
    identities(roce).0
}

/// The identity of a packet, and what it shares with all other transmissions of its PSN.
fn identities(roce: &Roce) -> (u64, u64) {
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
    let hosts = fold(
        fold(a ^ SEED, b.rotate_left(17) ^ !SEED),
        fold(c ^ !SEED, d.rotate_left(31) ^ SEED) ^ SEED,
    );
    let bth = fold(u64::from_be_bytes(front) ^ SEED, numbers.rotate_left(11) ^ !SEED);
    let all = fold(hosts ^ bth.rotate_left(23), rest ^ SEED);
    let qpns = u64::from(roce.bth.destination_qpn().value()) | u64::from(roce.source_qpn) << 24;
    let number = fold(
        hosts ^ qpns ^ !SEED,
        u64::from(Number::from_packet(roce).0) ^ SEED,
    );
    (fold(all ^ u64::from(roce.payload_bytes), SEED), number)
}

/// The packets seen last: 262,144 of them in sets of four, the newest of a set first. At 10 million packets a second that is
/// 26 ms, far more than a network takes. All transmissions of one PSN share a set.
#[derive(Debug)]
struct Recent {
    sets: Box<[Set]>,
}

/// Two cache lines.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Entry; 4]);

/// Takes `new` into a set; gives what it displaces.
fn enter(set: &mut [Entry; 4], new: Entry) -> Option<Entry> {
    // A packet that another tap has seen is not needed as long as one that may still be on its way.
    let last = set
        .iter()
        .rposition(|entry| !entry.is_used || entry.flags.has(Flags::COUNTED));
    let last = last.unwrap_or(set.len() - 1);
    let gone = Some(set[last]).filter(|entry| entry.is_used);
    set[..=last].rotate_right(1);
    set[0] = new;
    gone
}

const SETS: usize = 1 << 16;

/// A packet that another tap saw before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TapCrossing {
    /// The place of its flow at that tap.
    flow: FlowSlot,
    tap: TapId,
    time: Time,
    /// The packet was sent several times, and no header tells which of them this is.
    is_ambiguous: bool,
    hop_limit: u8,
    marked: bool,
    /// That tap's sighting was not counted as matched yet.
    is_first: bool,
}

/// Result of a packet's sighting.
#[derive(Debug, Default)]
struct NotedPacket {
    crossing: Option<TapCrossing>,
    /// The flow's PSN was seen at this tap before.
    is_again: bool,
    /// Entry that was overwritten.
    gone: Option<Entry>,
}

impl Recent {
    fn new() -> Self {
        Self {
            sets: vec![Set::default(); SETS].into_boxed_slice(),
        }
    }

    /// Notes a packet of the flow at `at`, and returns the sighting at another tap that it follows.
    /// `is_same`: true if the flow at a place is this packet's, at that tap. `begins`: true if a
    /// retransmitted packet is the first of its run. `begun`: when the flow's epoch began. `usual`: the time on the way of
    /// the latest packet between these taps that was sent once.
    fn sight(
        &mut self,
        packet: &Packet,
        (at, generation): (FlowSlot, u8),
        begun: Time,
        is_same: impl Fn(FlowSlot, TapId) -> bool,
        begins: bool,
        usual: Option<Span>,
    ) -> NotedPacket {
        let (identity, number) = identities(&packet.roce);
        let tag = tag(identity);
        let Some(Set(set)) = self.sets.get_mut(place(number)) else {
            return NotedPacket::default();
        };
        let new = Entry::new(tag, at, generation, packet);
        let mut noted = NotedPacket::default();
        let (mut known, mut alike) = (None, 0);
        // It is the transmission whose delay is the usual one among several that are alike; the latest if no
        // delay is known.
        let unlike = |apart: u64| usual.map_or(0, |usual| usual.0.abs_diff(apart));
        let mut is_back = false;
        for (place, entry) in set.iter_mut().enumerate() {
            let apart = packet.time.0.abs_diff(entry.time.0);
            let is_of_flow = entry.is_used && entry.number == new.number && apart <= WINDOW.0;
            if !is_of_flow || !is_same(entry.flow, entry.tap) {
                continue;
            }
            let was_here = entry.taps & new.taps != 0;
            // The entry is of an epoch before this one. At another tap the first packets of this epoch are
            // earlier, too, by the time that they took.
            let is_old = entry.time + CLOCKS_DIFFER < begun;
            if is_old && (was_here || known.is_some()) {
                continue;
            }
            noted.is_again |= was_here;
            let is_alike = entry.tag == tag;
            alike += u32::from(is_alike && !was_here);
            if is_alike && !was_here && known.is_none_or(|(_, best)| unlike(apart) < best) {
                known = Some((place, unlike(apart)));
                continue;
            }
            is_back |= is_alike && was_here && entry.tap != packet.tap && apart <= CLOCKS_DIFFER.0;
            entry.flags.set(Flags::SENT_AGAIN);
            entry.flags.set_if(Flags::BEGINS, begins);
        }
        let Some(entry) = known.and_then(|(known, _)| set.get_mut(known)) else {
            // Where the other tap's stamps are early, it may have seen this one first, and that was
            // counted as an earlier one.
            let mut new = new;
            new.flags.set_if(Flags::AGAIN, noted.is_again);
            new.flags.set_if(Flags::SENT_AGAIN, is_back);
            new.flags.set_if(Flags::BEGINS, is_back && begins);
            noted.gone = enter(set, new);
            return noted;
        };
        noted.crossing = Some(TapCrossing {
            flow: entry.flow,
            tap: entry.tap,
            time: entry.time,
            is_ambiguous: alike != 1,
            hop_limit: entry.hop_limit,
            marked: entry.flags.has(Flags::MARKED),
            is_first: !entry.flags.has(Flags::COUNTED),
        });
        let taps = entry.taps | new.taps;
        *entry = Entry { taps, ..new };
        entry.flags.set(Flags::COUNTED);
        noted
    }

    /// The packet noted last was seen at `tap` before.
    #[cold]
    fn was_seen(&mut self, packet: &Packet, tap: TapId) {
        let place = place(identities(&packet.roce).1);
        if let Some(Set([entry, ..])) = self.sets.get_mut(place) {
            entry.taps |= entry::bit(tap);
            entry.flags.set(Flags::COUNTED);
        }
    }

    /// All that is remembered.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.sets.iter().flat_map(|Set(set)| set);
        entries.filter(|entry| entry.is_used)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "masked to the number of sets")]
fn place(number: u64) -> usize {
    number as usize & (SETS - 1)
}

fn tag(identity: u64) -> u32 {
    (identity >> 32) as u32
}

/// Packets that several taps saw.
#[derive(Debug)]
pub(crate) struct TapMatcher {
    recent: Recent,
    pub(crate) hops: Hops,
    pub(crate) sides: Sides,
    sent: SentPackets,
    /// Packets that another tap saw, by tap.
    matched: Vec<u64>,
    /// Entry of each flow's last match, by the flow's place.
    last: Vec<LastHop>,
    /// At the end, what a second tap shows of the live flows at these places.
    behind: HashMap<FlowSlot, Behind, foldhash::fast::RandomState>,
}

/// Facts that a second tap shows about a flow at the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Behind {
    /// Packets that were lost behind the first tap.
    pub(crate) lost: u64,
    /// Bytes that were repeated although they had passed the second tap; `None`: nothing shows how many.
    pub(crate) wasted_bytes: Option<u64>,
}

/// One of two flows that turned out to be the same traffic: its place, and how the packet was seen there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Match {
    /// The place of the flow at the other tap.
    pub(crate) flow: FlowSlot,
    before: SightedPacket,
    now: SightedPacket,
}

impl TapMatcher {
    /// Nothing seen yet; of `most` flows what happened between taps is kept, by bins of the width `bin`.
    pub(crate) fn new(most: usize, bin: Span) -> Self {
        Self {
            recent: Recent::new(),
            hops: Hops::new(most, bin),
            sides: Sides::new(most),
            sent: SentPackets::default(),
            matched: Vec::new(),
            last: Vec::new(),
            behind: HashMap::default(),
        }
    }

    /// Takes a packet of the flow at `at`, whose key is `key`; `keys` gives the keys of live flows and their taps.
    #[inline]
    pub(crate) fn sight<'a>(
        &mut self,
        packet: &Packet,
        at: FlowSlot,
        key: &Key,
        keys: impl Fn(FlowSlot) -> Option<(&'a Key, TapId)>,
    ) -> Option<Match> {
        let number = Number::from_packet(&packet.roce);
        let is_same =
            |flow, tap| keys(flow).is_some_and(|(other, at)| at == tap && key.is_same_traffic(other));
        self.sent.watch(packet);
        let begins = self.sent.begins(at, number);
        let flow = (at, self.sent.generation(at));
        let begun = self.sent.begun(at);
        let usual = self
            .last
            .get(at.index())
            .and_then(|hop| self.hops.latest(hop.place(), packet.tap));
        let noted = self.recent.sight(packet, flow, begun, is_same, begins, usual);
        self.sent.sight(
            at,
            (number, packet.tap, packet.time),
            noted.is_again,
            begins,
            &mut self.hops,
        );
        if let Some(gone) = &noted.gone {
            self.sent.gone(gone, &mut self.hops);
        }
        let Some(crossing) = noted.crossing else {
            return self.late(packet, at, number);
        };
        let is_repaired = number.is_repaired(&packet.roce);
        let shown = number.shown(is_repaired, noted.is_again);
        self.count(packet.tap);
        if crossing.is_first {
            self.count(crossing.tap);
        }
        Some(Match {
            flow: crossing.flow,
            before: SightedPacket {
                tap: crossing.tap,
                time: crossing.time,
                is_ambiguous: crossing.is_ambiguous,
                is_repaired,
                shown: 0,
                hop_limit: crossing.hop_limit,
                marked: crossing.marked,
            },
            now: SightedPacket {
                tap: packet.tap,
                time: packet.time,
                is_ambiguous: false,
                is_repaired,
                shown,
                hop_limit: packet.roce.hop_limit,
                marked: packet.roce.ecn() == Ecn::Ce,
            },
        })
    }

    /// The match of a packet that came so late that it was not remembered any longer.
    fn late(&mut self, packet: &Packet, at: FlowSlot, number: Number) -> Option<Match> {
        let (flow, tap) = self.last.get(at.index())?.before()?;
        let of = (number, packet.tap, packet.time);
        let (transmission, is_alone) = self.sent.late(flow, of, &self.hops)?;
        self.recent.was_seen(packet, tap);
        self.count(packet.tap);
        self.count(tap);
        let is_repaired = number.is_repaired(&packet.roce);
        Some(Match {
            flow,
            before: SightedPacket {
                tap,
                time: transmission.time,
                is_ambiguous: !is_alone,
                is_repaired,
                shown: 0,
                hop_limit: transmission.hop_limit,
                marked: transmission.marked,
            },
            now: SightedPacket {
                tap: packet.tap,
                time: packet.time,
                is_ambiguous: false,
                is_repaired,
                shown: 0,
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

    /// Notes a match of the flow at `at` between the two taps. `names` gives the flow's names there.
    pub(crate) fn note(&mut self, of: &Match, at: FlowSlot, names: impl FnOnce() -> Option<Ends>) {
        let index = at.index();
        if self.last.len() <= index {
            self.last.resize(index + 1, LastHop::NONE);
        }
        let Some(known) = self.last.get_mut(index) else {
            return;
        };
        let before = *known;
        self.hops.note(known, of.flow, names, &of.before, &of.now);
        if *known != before {
            for place in [at, of.flow] {
                self.sent.takes_part(place, known.place());
            }
        }
    }

    /// Vantage of a tap for the flow at `at`, among the taps that saw its packets.
    pub(crate) fn stands(
        &self,
        at: FlowSlot,
        tap: TapId,
        resolution: impl Fn(TapId) -> u64,
    ) -> Option<Vantage> {
        self.hops.stands(self.sent.hops(at), tap, resolution)
    }

    /// A tap lost records before the frame of this time.
    pub(crate) fn lost(&mut self, tap: TapId, time: Time) {
        self.sent.lost(tap, time);
    }

    /// No packet follows, or none for long: what was sent and not seen again is judged. `acked`: whether the receiver of the flow at a place
    /// acknowledged a request's PSN.
    pub(crate) fn conclude(&mut self, acked: impl Fn(FlowSlot, Psn) -> bool) {
        let Self {
            recent, sent, hops, ..
        } = self;
        for entry in recent.entries() {
            sent.gone(entry, hops);
        }
        sent.conclude(hops, acked);
        recent.sets.fill(Set::default());
    }

    /// True if nothing that was seen before can come at `time`: no tap showed anything in between.
    #[inline]
    pub(crate) fn has_rested(&self, time: Time) -> bool {
        self.sent.has_rested(time)
    }

    /// Goes on after a rest, before which all was concluded.
    pub(crate) fn look_again(&mut self) {
        self.sent.look_again();
        self.hops.look_again();
    }

    /// At the end: taps that lost records are known.
    pub(crate) fn complete(&mut self) {
        self.sent.tell_incomplete(&mut self.hops);
    }

    /// At the end: what a second tap shows of the flow at `at`.
    pub(crate) fn note_behind(&mut self, at: FlowSlot, behind: Behind) {
        self.behind.insert(at, behind);
    }

    /// Facts that a second tap shows about the flow at `at`, once all is known.
    pub(crate) fn behind(&self, at: FlowSlot) -> Option<Behind> {
        self.behind.get(&at).copied()
    }

    /// The place `at` is another flow's now.
    pub(crate) fn forget(&mut self, at: FlowSlot) {
        if let Some(known) = self.last.get_mut(at.index()) {
            *known = LastHop::NONE;
        }
        self.sent.forget(at);
    }

    /// A new epoch of the flow at `at` begins at `time`.
    pub(crate) fn renew(&mut self, at: FlowSlot, time: Time) {
        self.sent.renew(at, time);
    }

    /// Prefetches the places of these packets.
    #[inline]
    pub(crate) fn prefetch(&self, packets: &[Packet]) {
        for packet in packets {
            if let Some(Set([first, _, third, _])) = self.recent.sets.get(place(identities(&packet.roce).1)) {
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
