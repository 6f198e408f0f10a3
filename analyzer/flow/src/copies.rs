//! Exact copies: a tap that mirrors both directions of a port, or `any` with the interfaces under it, shows a
//! packet twice.

use roce_model::Packet;

use crate::prefetch::prefetch;
use crate::table::fold;

/// The latest packets, by fingerprint: 16,384 of them in sets of four, the newest of a set first, so that a copy is
/// found even thousands of packets later.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    /// Fingerprint (high 32 bits), path (8 bits), time in units of 64 ns (low 24 bits).
    sets: Box<[[u64; 4]]>,
}

/// What is known of a packet that looks like one seen before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sighting {
    /// Nothing like it was seen in the last millisecond.
    New,
    /// The same packet, by another way (interface, link addresses, direction or TTL): a copy.
    OtherPath,
    /// The same packet by the same way: a copy, or sent again.
    SamePath,
}

const SETS: usize = 1 << 12;
const TIME_SHIFT: u32 = 6;
const TIME_MASK: u64 = (1 << 24) - 1;
/// A copy comes within 1 ms.
const WINDOW: u64 = 1_000_000 >> TIME_SHIFT;

impl Default for Recent {
    fn default() -> Self {
        Self {
            sets: vec![[0; 4]; SETS].into_boxed_slice(),
        }
    }
}

impl Recent {
    /// Asks for the place of a fingerprint.
    #[inline]
    pub(crate) fn prefetch(&self, fingerprint: u64) {
        prefetch(&self.sets[place(fingerprint)]);
    }

    /// Looks for the packet with this fingerprint among the latest ones, and remembers it.
    #[inline]
    pub(crate) fn look(&mut self, fingerprint: u64, packet: &Packet) -> Sighting {
        let path = u64::from(packet.path & 0xff);
        let time = packet.time.0 >> TIME_SHIFT & TIME_MASK;
        let tag = fingerprint >> 32;
        let set = &mut self.sets[place(fingerprint)];
        let entry = tag << 32 | path << 24 | time;
        // Nearly always there is nothing like it: that is told without a branch for each.
        let like_it = set.iter().map(|old| u8::from(old >> 32 == tag)).sum::<u8>() > 0;
        let is_old =
            |old: &u64| old >> 32 == tag && (time.wrapping_sub(*old) & TIME_MASK) <= WINDOW && *old != 0;
        let old = like_it.then(|| set.iter_mut().find(|old| is_old(old))).flatten();
        let Some(old) = old else {
            *set = [entry, set[0], set[1], set[2]];
            return Sighting::New;
        };
        if *old >> 24 & 0xff != path {
            // The first way stays remembered: what comes by it again is no copy of the copy.
            return Sighting::OtherPath;
        }
        *old = entry;
        Sighting::SamePath
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "masked to the number of sets")]
fn place(fingerprint: u64) -> usize {
    fingerprint as usize & (SETS - 1)
}

/// A hash of all that a copy shares with its original. What links change (TTL, link addresses) is left out; a
/// retransmission differs from its original in the IPv4 identification, where the sender counts it.
#[inline]
pub(crate) fn fingerprint(flow: u64, packet: &Packet) -> u64 {
    let roce = &packet.roce;
    let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let (front, back) = (word(roce.bth.0.first_chunk()), word(roce.bth.0.last_chunk()));
    // The AETH tells an ACK from the NAK that has the same PSN. Its MSN counts up as the PSN does: on the same side of the
    // product, bit by bit above each other, the two would cancel out.
    let aeth = u64::from(u32::from_le_bytes(roce.aeth.0)) << 32;
    let rest = u64::from(roce.ip_id) << 32 | u64::from(roce.traffic_class) << 48;
    fold(flow ^ front ^ aeth ^ SPREAD, back.rotate_left(32) ^ rest ^ SPREAD)
}

/// The fractional part of the golden ratio: bits that are neither regular nor zero.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Tells, for one flow, copies by the same path from packets sent again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopyEvidence {
    /// The identification of the last packet.
    ip_id: u16,
    packets: u32,
    /// By the same path.
    copies: u32,
    /// Two packets in a row had different ones: the sender counts them, so a resend has a new one.
    ids_vary: bool,
}

impl CopyEvidence {
    /// Whether a packet with this sighting is a copy. Called once for each packet of the flow.
    #[inline]
    pub(crate) fn is_copy(&mut self, sighting: Sighting, ip_id: u16) -> bool {
        self.ids_vary |= self.packets > 0 && ip_id != self.ip_id;
        self.ip_id = ip_id;
        let copy = match sighting {
            Sighting::New => false,
            // It says nothing of copies by the same path.
            Sighting::OtherPath => return true,
            // Without identifications to tell by: a tap that shows every packet twice has done so from the first.
            Sighting::SamePath => self.ids_vary || self.copies + 1 == self.packets,
        };
        if copy {
            self.copies = self.copies.saturating_add(1);
        } else {
            self.packets = self.packets.saturating_add(1);
        }
        copy
    }

    /// The same for packets that are alike by nature, as the notifications for one queue pair are: by the same path
    /// nothing but the identification tells a copy from the next one.
    #[inline]
    pub(crate) fn is_copy_among_alike(&mut self, sighting: Sighting, ip_id: u16) -> bool {
        let ids_vary = self.ids_vary || (self.packets > 0 && ip_id != self.ip_id);
        let alike = sighting == Sighting::SamePath && !ids_vary;
        self.is_copy(if alike { Sighting::New } else { sighting }, ip_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_model::{Nanos, TapId};
    use roce_wire::{Bth, Roce};

    fn packet(ns: u64, psn: u8, path: u16) -> Packet {
        let roce = Roce {
            bth: Bth([0x07, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, psn]),
            ip_id: 9,
            ..Roce::default()
        };
        Packet {
            time: Nanos(ns),
            tap: TapId(0),
            wire_bytes: 100,
            path,
            cut: false,
            icrc: None,
            roce,
        }
    }

    #[test]
    fn sightings_within_a_millisecond() {
        let mut recent = Recent::default();
        let mut look = |flow, packet: Packet| recent.look(fingerprint(flow, &packet), &packet);
        assert_eq!(look(1, packet(1_000_000, 5, 1)), Sighting::New);
        assert_eq!(look(1, packet(1_000_100, 5, 1)), Sighting::SamePath);
        assert_eq!(look(1, packet(1_000_200, 5, 2)), Sighting::OtherPath);
        assert_eq!(
            look(1, packet(1_000_300, 5, 1)),
            Sighting::SamePath,
            "the first path stays remembered"
        );
        assert_eq!(look(1, packet(1_000_400, 6, 1)), Sighting::New, "another PSN");
        assert_eq!(look(2, packet(1_000_500, 5, 1)), Sighting::New, "another flow");
        assert_eq!(look(1, packet(2_000_400, 5, 2)), Sighting::New, "1.0001 ms later");
    }

    #[test]
    fn numbers_that_count_up_together_do_not_cancel_out() {
        // Answers to one READ each: PSN and MSN both count up, nothing else changes.
        let answer = |number: u8| {
            let mut answer = packet(u64::from(number), number, 1);
            answer.roce.ip_id = 0;
            answer.roce.aeth.0 = [0x1f, 0, 0, number];
            fingerprint(7, &answer)
        };
        let different: std::collections::HashSet<u64> = (0..=255).map(answer).collect();
        assert_eq!(different.len(), 256);
    }

    #[test]
    fn what_a_link_changes_is_left_out_and_what_a_switch_marks_is_not() {
        let plain = packet(0, 5, 1);
        let mut other = plain;
        other.roce.hop_limit = 3;
        assert_eq!(fingerprint(1, &plain), fingerprint(1, &other));
        other.roce.traffic_class = 3;
        assert_ne!(fingerprint(1, &plain), fingerprint(1, &other));
    }

    #[test]
    fn the_same_path_needs_evidence() {
        let mut counted = CopyEvidence::default();
        assert!(!counted.is_copy(Sighting::New, 1));
        assert!(!counted.is_copy(Sighting::New, 2));
        assert!(
            counted.is_copy(Sighting::SamePath, 2),
            "the sender counts, a resend would have another number"
        );

        let mut doubled = CopyEvidence::default();
        for _ in 0..3 {
            assert!(!doubled.is_copy(Sighting::New, 0));
            assert!(
                doubled.is_copy(Sighting::SamePath, 0),
                "doubled from the first packet on"
            );
        }

        let mut constant = CopyEvidence::default();
        assert!(!constant.is_copy(Sighting::New, 0));
        assert!(!constant.is_copy(Sighting::New, 0));
        assert!(
            constant.is_copy(Sighting::OtherPath, 0),
            "another path is evidence enough"
        );
        assert!(!constant.is_copy(Sighting::SamePath, 0), "a fast resend");
    }

    #[test]
    fn packets_alike_by_nature_need_identifications() {
        let mut cnps = CopyEvidence::default();
        assert!(!cnps.is_copy_among_alike(Sighting::New, 0));
        assert!(
            !cnps.is_copy_among_alike(Sighting::SamePath, 0),
            "the next notification"
        );
        assert!(cnps.is_copy_among_alike(Sighting::OtherPath, 0));
        assert!(!cnps.is_copy_among_alike(Sighting::New, 1));
        assert!(
            cnps.is_copy_among_alike(Sighting::SamePath, 1),
            "the sender counts"
        );
    }
}
