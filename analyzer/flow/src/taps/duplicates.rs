//! Exact copies: a tap that mirrors both directions of a port, or `any` with the interfaces under it, shows a
//! packet twice. Which taps do so is learned in `mirrors`.

mod mirrors;
mod overlays;

use roce_model::{Packet, prefetch};

use crate::hash::fold;
use mirrors::{Mirrors, TIME_SHIFT};
use overlays::Overlays;

/// The latest packets, by fingerprint: 16,384 of them in sets of four, the newest of a set first, so that a copy is
/// found even thousands of packets later; eight times as many where a tap shows packets twice.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    sets: Box<[Set]>,
    /// Bits of the tag that a place has above those of the fingerprint.
    more: usize,
    /// Times of entries are renewed when a packet is [`EPOCH`] later than this time, in nanoseconds, or earlier.
    renewed: u64,
    mirrors: Mirrors,
    overlays: Overlays,
    /// Packets that were looked at before they were judged.
    learned: usize,
}

/// Packets whose fingerprints have the same place, the newest first. The two parts of an entry lie apart, because one vector
/// comparison then looks at all tags.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
struct Set {
    /// High 32 bits of fingerprints.
    tags: [u32; 4],
    /// True if the copy was seen (1 bit), path (7 bits), time in units of 64 ns (low 24 bits). An entry that is 0 in both
    /// parts is free.
    seen: [u32; 4],
}

impl Set {
    /// Adds a packet as the newest one, in place of the oldest.
    #[inline]
    fn push(&mut self, tag: u32, seen: u32) {
        let (tags, old) = (self.tags, self.seen);
        self.tags = [tag, tags[0], tags[1], tags[2]];
        self.seen = [seen, old[0], old[1], old[2]];
    }

    /// True if a packet has this tag, or the tag is 0: without branches, since nearly always nothing is equal.
    #[inline]
    fn has(&self, tag: u32) -> bool {
        self.tags.iter().map(|old| u8::from(*old == tag)).sum::<u8>() > 0
    }

    /// Packets with this tag, the newest first.
    fn seen(&mut self, tag: u32) -> impl Iterator<Item = &mut u32> {
        let both = self.tags.iter().zip(&mut self.seen);
        both.filter(move |(old, seen)| **old == tag && (tag != 0 || **seen != 0))
            .map(|(_, seen)| seen)
    }
}

/// Comparison of a packet with earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PacketSighting {
    /// Nothing like it was seen in the last millisecond.
    New,
    /// Equal to one on another path (interface, link addresses, direction or TTL): a copy.
    OtherPath,
    /// Equal to one on the same path, at a tap that shows everything twice: a copy.
    Doubled,
    /// Equal to one on the same path: a copy, a duplicate of the network, or a retransmission.
    SamePath,
    /// Equal to one longer ago than mirrors take (131 us), or on any path longer than a millisecond ago,
    /// as far as that is remembered: a duplicate of the network, or a retransmission.
    LongAgo,
}

impl PacketSighting {
    /// The packet was seen before, or one that differs from it in nothing.
    pub(crate) fn is_repeated(self) -> bool {
        self != Self::New
    }
}

const PLACE_BITS: u32 = 12;
const SETS: usize = 1 << PLACE_BITS;
/// Multiple of the sets where a tap shows packets twice: 1 MiB.
const MORE_ROOM: usize = 8;
const TIME_MASK: u32 = (1 << 24) - 1;
const PATH_SHIFT: u32 = 24;
const PATH_MASK: u32 = (1 << 7) - 1;
/// It was seen twice: the next one is no copy of it.
const TWICE: u32 = 1 << 31;
/// A copy comes within 1 ms.
const WINDOW: u32 = 1_000_000 >> TIME_SHIFT;
/// Statements about earlier packets are about those of the last 10 ms.
const REMEMBERED: u32 = 10_000_000 >> TIME_SHIFT;
/// The time of an entry counts on past 24 bits after 2^30 ns, which is a timer of 4.096 us * 2^18 (IBTA 9.7.6.1.3). So entries that are
/// older than this get a younger age, which is still longer than all that is asked for.
const EPOCH: u64 = 1 << 28;
const EPOCH_UNITS: u32 = 1 << (28 - TIME_SHIFT);
/// Packets out of their order are this much too early at most; earlier ones are of another time.
const DISORDER: u64 = 1 << 24;
const DISORDER_UNITS: u32 = 1 << (24 - TIME_SHIFT);

impl Default for Recent {
    fn default() -> Self {
        Self {
            sets: vec![Set::default(); SETS].into_boxed_slice(),
            more: 0,
            renewed: 0,
            mirrors: Mirrors::default(),
            overlays: Overlays::default(),
            learned: 0,
        }
    }
}

impl Recent {
    /// Prefetches the place of a fingerprint.
    #[inline]
    pub(crate) fn prefetch(&self, fingerprint: u64) {
        prefetch(&self.sets[self.place(fingerprint)]);
    }

    /// Place of the packets with this fingerprint.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "masked to the number of sets")]
    fn place(&self, fingerprint: u64) -> usize {
        fingerprint as usize & (SETS - 1) | ((fingerprint >> 32) as usize & self.more) << PLACE_BITS
    }

    /// Looks for the packet with this fingerprint among the latest ones, and remembers it.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "some instructions for nearly every packet: the call would cost as much"
    )]
    pub(crate) fn look(&mut self, fingerprint: u64, packet: &Packet) -> PacketSighting {
        if packet.time.0.wrapping_sub(self.renewed) >= EPOCH {
            self.renew(packet.time.0);
        }
        let tag = tag(fingerprint);
        let seen = (u32::from(packet.path) & PATH_MASK) << PATH_SHIFT | units(packet);
        let place = self.place(fingerprint);
        let set = &mut self.sets[place];
        if set.has(tag) {
            return self.look_alike(place, tag, seen, packet);
        }
        set.push(tag, seen);
        self.mirrors.first(tag, packet);
        PacketSighting::New
    }

    /// Compares a packet with the set where something has its tag.
    #[inline(never)]
    fn look_alike(&mut self, place: usize, tag: u32, seen: u32, packet: &Packet) -> PacketSighting {
        let set = &mut self.sets[place];
        let age = |old: u32| seen.wrapping_sub(old) & TIME_MASK;
        let Some(old) = set.seen(tag).find(|old| age(**old) <= WINDOW) else {
            let is_known = set.seen(tag).next().is_some();
            set.push(tag, seen);
            self.mirrors.first(tag, packet);
            return if is_known {
                PacketSighting::LongAgo
            } else {
                PacketSighting::New
            };
        };
        if (*old ^ seen) >> PATH_SHIFT & PATH_MASK != 0 {
            // The first path stays remembered: a packet on it is no copy of the copy.
            return PacketSighting::OtherPath;
        }
        let distance = u64::from(age(*old));
        if distance > mirrors::MAX_DISTANCE {
            // It may have a copy of its own.
            *old = seen;
            self.mirrors.first(tag, packet);
            return PacketSighting::LongAgo;
        }
        if *old & TWICE != 0 {
            // A retransmission, or the next of equal packets: it may have a copy of its own.
            self.mirrors.third(tag, packet);
            *old = seen;
            return PacketSighting::SamePath;
        }
        *old = seen | TWICE;
        if !self.mirrors.second(tag, packet, distance) {
            return PacketSighting::SamePath;
        }
        self.make_room();
        PacketSighting::Doubled
    }

    /// Makes the ages of all entries exact for another [`EPOCH`] behind `now`, in nanoseconds: those that are longer get shorter, so
    /// that none wraps. A pass takes some microseconds.
    #[cold]
    fn renew(&mut self, now: u64) {
        // A pass left ages of one epoch at most, and the field holds four of them.
        let all_are_old = now.wrapping_sub(self.renewed) >= 2 * EPOCH;
        self.renewed = now.saturating_sub(DISORDER);
        let now = units_of(now);
        let old = now.wrapping_sub(EPOCH_UNITS / 2) & TIME_MASK;
        // Each packet of a capture with long silences passes here. A free place gets an age, too, which is as good as none.
        if all_are_old {
            for set in &mut self.sets {
                set.seen = set.seen.map(|seen| seen & !TIME_MASK | old);
            }
            return;
        }
        for set in &mut self.sets {
            for (tag, seen) in set.tags.iter().zip(&mut set.seen) {
                let age = now.wrapping_sub(*seen) & TIME_MASK;
                let is_near = !(EPOCH_UNITS..=TIME_MASK - DISORDER_UNITS).contains(&age);
                let is_free = *tag | *seen == 0;
                if !is_free && !is_near {
                    *seen = *seen & !TIME_MASK | old;
                }
            }
        }
    }

    /// Where a tap shows packets twice, originals must be found for as long as their copies may take:
    /// 131 us at 800 Gbit/s are 12,500 packets of 1 KiB, in each direction.
    #[inline]
    fn make_room(&mut self) {
        if self.more == 0 {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.more = MORE_ROOM - 1;
        let mut sets = vec![Set::default(); SETS * MORE_ROOM].into_boxed_slice();
        for (place, set) in self.sets.iter().enumerate() {
            // The oldest first, so that the newest one of a set becomes the first.
            let entries = set.tags.into_iter().zip(set.seen).rev();
            for (tag, seen) in entries.filter(|entry| *entry != (0, 0)) {
                sets[place | (tag as usize & self.more) << PLACE_BITS].push(tag, seen);
            }
        }
        self.sets = sets;
    }

    /// True if a packet with this fingerprint would still be known if it had been seen in the last 10 ms: none of that age
    /// had to make room. No network delays its copies for longer.
    pub(crate) fn remembers(&self, fingerprint: u64, packet: &Packet) -> bool {
        let set = &self.sets[self.place(fingerprint)];
        let (oldest, seen) = (set.tags[3], set.seen[3]);
        (oldest, seen) == (0, 0) || (units(packet).wrapping_sub(seen) & TIME_MASK) > REMEMBERED
    }

    /// True if the packet is one of an overlay whose packets the tap shows without it, too.
    #[inline]
    pub(crate) fn is_shown_bare(&self, packet: &Packet) -> bool {
        packet.roce.vni.is_some() && self.overlays.is_shown_bare(packet)
    }

    /// Number of packets that [`Recent::learn`] looked at.
    pub(crate) fn learned(&self) -> usize {
        self.learned
    }

    /// Looks at the first packets of a capture, before they are judged, for taps that show everything twice. `fingerprint` is that
    /// of a packet.
    pub(crate) fn learn(&mut self, packets: &[Packet], fingerprint: impl Fn(&Packet) -> u64) {
        self.learned += packets.len();
        self.overlays.learn(packets);
        let mut ahead = Self::default();
        core::mem::swap(&mut ahead.mirrors, &mut self.mirrors);
        ahead.mirrors.sample_all();
        ahead.grow();
        for packet in packets {
            ahead.look(fingerprint(packet), packet);
        }
        ahead
            .mirrors
            .conclude(packets.last().map(|last| last.time).unwrap_or_default());
        self.mirrors = ahead.mirrors;
        if self.mirrors.has_any() {
            self.make_room();
        }
    }
}

/// The tag of an entry.
#[inline]
fn tag(fingerprint: u64) -> u32 {
    (fingerprint >> 32) as u32
}

/// Time of a packet in units of 64 ns.
#[inline]
fn units(packet: &Packet) -> u32 {
    units_of(packet.time.0)
}

/// A time in units of 64 ns.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "masked")]
fn units_of(nanoseconds: u64) -> u32 {
    (nanoseconds >> TIME_SHIFT) as u32 & TIME_MASK
}

/// A hash of all that a copy shares with its original: length, and what the extended headers say, too. What links change (TTL, link
/// addresses) is left out; a retransmission differs from its original in the IPv4 identification, where the sender counts it.
#[inline]
pub(crate) fn fingerprint(flow: u64, packet: &Packet) -> u64 {
    let roce = &packet.roce;
    let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let (front, back) = (word(roce.bth.0.first_chunk()), word(roce.bth.0.last_chunk()));
    // The AETH tells an ACK from the NAK that has the same PSN. Its MSN counts up as the PSN does: on the same side of the
    // product, bit by bit above each other, the two would cancel out.
    let aeth = u64::from(u32::from_le_bytes(roce.aeth.0)) << 32;
    let content = u64::from(packet.extended) ^ u64::from(roce.payload_bytes) << 16;
    let rest = u64::from(roce.ip_id) << 32 | u64::from(roce.traffic_class) << 48;
    fold(
        flow ^ front ^ aeth ^ content ^ SPREAD,
        back.rotate_left(32) ^ rest ^ SPREAD,
    )
}

/// The fractional part of the golden ratio: bits that are neither regular nor zero.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Age of a packet by its IPv4 identification, compared with all packets of its flow that were captured
/// before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdAge {
    /// After all of them.
    Newer,
    /// Before the newest of them, or it is that one once more: a late packet or a duplicate made by the network.
    Older,
}

/// The identification of a packet whose sender counts them up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ids {
    pub(crate) id: u16,
    /// The newest one of the flow, this packet included.
    pub(crate) newest: u16,
    /// The newest one of the flow before this packet.
    pub(crate) before: u16,
    pub(crate) age: IdAge,
}

/// Identifications between those of two packets of a flow, the second one the newest when it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IdsBetween {
    after: u16,
    before: u16,
}

/// When a packet was sent, as its identification shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SentWhen {
    /// Between two others.
    Between,
    /// After both.
    After,
}

impl IdsBetween {
    /// When the packet with this identification was sent. Identifications have 16 bits (RFC 791): a sender that counts for its whole host may
    /// have come around since. `None`: the identification seems to be that of a packet before both, which it cannot be, if the packet was
    /// missing between them.
    pub(crate) fn place(self, id: u16) -> Option<SentWhen> {
        let behind = self.before.wrapping_sub(id);
        if behind > 1 << 15 {
            return Some(SentWhen::After);
        }
        (behind < self.before.wrapping_sub(self.after)).then_some(SentWhen::Between)
    }
}

impl Ids {
    /// Number of identifications behind the newest one; `None`: it is newer than all before.
    pub(crate) fn behind(self) -> Option<u16> {
        (self.age == IdAge::Older).then(|| self.newest.wrapping_sub(self.id))
    }

    /// The identifications between the newest packet before this one and this one; `None`: this one is older.
    pub(crate) fn between(self) -> Option<IdsBetween> {
        (self.age == IdAge::Newer).then_some(IdsBetween {
            after: self.before,
            before: self.id,
        })
    }

    /// True if the packet was sent after the packet with the identification `other`.
    pub(crate) fn is_after(self, other: u16) -> bool {
        let ahead = self.id.wrapping_sub(other);
        ahead != 0 && ahead < 1 << 15
    }
}

/// Steps of this size or less are near: a sender that counts for its whole host sends for others in between.
const NEAR: u16 = 2_048;
/// A packet further behind the newest one than this can as well be ahead of it (serial numbers, RFC 1982).
const MAX_DISTANCE: u16 = 1 << 14;
/// Near steps that show that a sender counts its packets, if hardly any step is far.
const ENOUGH_STEPS: u16 = 16;
/// Near steps for each far one that is allowed.
const STEPS_PER_FAR: u16 = 128;
/// Near steps for each zero step that is allowed: the network makes duplicates.
const STEPS_PER_ZERO: u16 = 8;
/// A sender whose steps are this wide at most counts for the flow alone, or nearly so: losses and reordering make no wider ones.
const OWN_COUNTER_STEP: u16 = 64;

/// The sender sends for others in between.
const SHARES_COUNTER: u8 = 1;
/// A packet came before the copy of the one before: copies do not follow their originals at once, or there are none.
const LAGGED: u8 = 2;

/// Separates, for one flow, copies on the same path from retransmissions, and finds old packets by the
/// IPv4 identification.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopyEvidence {
    /// No copies.
    packets: u16,
    /// Seen before by the same path, copies or not.
    repeats: u16,
    /// The identification of the packet that was sent last.
    newest_id: u16,
    /// Steps from the newest identification that were small, large, and none.
    near: u16,
    far: u8,
    zero: u8,
    /// [`SHARES_COUNTER`] and [`LAGGED`].
    flags: u8,
    /// The age of the latest packet.
    age: Option<IdAge>,
}

impl CopyEvidence {
    /// True if a packet with this sighting is a copy. Called once for each packet of the flow. A packet that comes twice at a tap
    /// that does not show everything twice is a copy only if at least half of its flow's packets do.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a few instructions for nearly every packet: the call would cost more"
    )]
    pub(crate) fn is_copy(&mut self, sighting: PacketSighting, ip_id: u16) -> bool {
        if matches!(sighting, PacketSighting::New | PacketSighting::LongAgo) {
            self.flags |= u8::from(self.packets > self.repeats) * LAGGED;
        } else if self.is_copy_of_another(sighting, ip_id) {
            return true;
        }
        self.note_id(ip_id);
        self.packets += 1;
        if self.packets == u16::MAX {
            (self.packets, self.repeats) = (self.packets / 2, self.repeats / 2);
        }
        false
    }

    /// True if a packet that was seen before is a copy of another one.
    #[inline(never)]
    fn is_copy_of_another(&mut self, sighting: PacketSighting, ip_id: u16) -> bool {
        if sighting != PacketSighting::SamePath {
            // It says nothing of copies of this flow alone.
            return true;
        }
        self.repeats = self.repeats.saturating_add(1);
        // From the first packet on each came twice in a row; or at least half of them did, and their
        // sender numbers them, so they are no retransmissions.
        let from_first = self.flags & LAGGED == 0 && self.repeats == self.packets;
        from_first || self.ids_vary(ip_id) && self.repeats >= self.packets.div_ceil(2)
    }

    /// Age by the identification of the packet that [`CopyEvidence::is_copy`] took last, if it was no
    /// copy. `None` where the identifications do not count up (constant, random, absent), and where too
    /// few were seen to know. `before`: the newest one before the packet.
    #[inline]
    pub(crate) fn ids(&self, ip_id: u16, before: u16) -> Option<Ids> {
        self.age.map(|age| Ids {
            id: ip_id,
            newest: self.newest_id,
            before,
            age,
        })
    }

    /// The identification of the packet that was sent last, as far as is known.
    #[inline]
    pub(crate) fn newest_id(&self) -> u16 {
        self.newest_id
    }

    /// A new connection begins with the packet that was taken last: its identifications are compared with this one.
    pub(crate) fn restart(&mut self, ip_id: u16) {
        (self.newest_id, self.age) = (ip_id, None);
    }

    /// Two packets had different identifications: the sender counts them, so a retransmission has a new
    /// one.
    #[inline]
    pub(crate) fn ids_vary(&self, ip_id: u16) -> bool {
        self.near > 0 || self.far > 0 || (self.packets > 0 && ip_id != self.newest_id)
    }

    /// Notes the identification of a packet that is no copy.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a few instructions for nearly every packet: the call would cost more"
    )]
    fn note_id(&mut self, ip_id: u16) {
        if self.packets == 0 {
            self.newest_id = ip_id;
            return;
        }
        let ahead = ip_id.wrapping_sub(self.newest_id);
        if ahead > OWN_COUNTER_STEP {
            return self.note_far_id(ip_id, ahead);
        }
        // Nearly always: the next one of a sender that counts, or the same constant. Without a branch between the two.
        let is_ahead = ahead > 0;
        let age = if is_ahead { IdAge::Newer } else { IdAge::Older };
        self.age = self.counts_up().then_some(age);
        self.newest_id = ip_id;
        self.near += u16::from(is_ahead);
        self.zero += u8::from(!is_ahead);
        if self.near == u16::MAX || self.zero == u8::MAX {
            self.halve_steps();
        }
    }

    /// Notes an identification that is further ahead of the newest one than a sender gets that counts
    /// for the flow alone.
    #[inline(never)]
    fn note_far_id(&mut self, ip_id: u16, ahead: u16) {
        let behind = ahead.wrapping_neg();
        let size = ahead.min(behind);
        let (is_ahead, is_near) = (ahead <= behind, size <= NEAR);
        self.age = None;
        if self.counts_up() {
            self.age = match size {
                0..=NEAR if is_ahead => Some(IdAge::Newer),
                0..=NEAR => Some(IdAge::Older),
                // The counter of one flow does not run far ahead between two of its packets.
                _ if size <= MAX_DISTANCE && !is_ahead && self.flags & SHARES_COUNTER == 0 => {
                    Some(IdAge::Older)
                }
                _ => None,
            };
        }
        // Many flows can share a counter, whose steps are near and far by chance: no branch is taken for that.
        self.near += u16::from(is_near);
        self.far += u8::from(!is_near);
        let is_wide = is_near & is_ahead;
        self.flags |= u8::from(is_wide) * SHARES_COUNTER;
        // A far one is where the sender is now, as far as anyone can tell.
        if is_wide | (!is_near & self.age.is_none()) {
            self.newest_id = ip_id;
        }
        if self.near == u16::MAX || self.far == u8::MAX {
            self.halve_steps();
        }
    }

    /// The shares of steps stay as they are, and there is room to count on.
    #[cold]
    fn halve_steps(&mut self) {
        (self.near, self.far, self.zero) = (self.near / 2, self.far / 2, self.zero / 2);
    }

    #[inline]
    fn counts_up(&self) -> bool {
        self.near >= ENOUGH_STEPS
            && u16::from(self.far) <= self.near / STEPS_PER_FAR
            && u16::from(self.zero) <= self.near / STEPS_PER_ZERO
    }

    /// True if one of packets that are equal by nature is a copy, such as the notifications for one
    /// queue pair: on the same path only the identification separates a copy from the next one.
    #[inline]
    pub(crate) fn is_copy_among_alike(&mut self, sighting: PacketSighting, ip_id: u16) -> bool {
        match sighting {
            PacketSighting::SamePath if self.ids_vary(ip_id) => true,
            PacketSighting::SamePath => self.is_copy(PacketSighting::New, ip_id),
            _ => self.is_copy(sighting, ip_id),
        }
    }
}

#[cfg(test)]
mod tests;
