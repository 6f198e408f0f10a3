//! Packets that a tap shows twice, bare and in an overlay, as `any` does where the host is an end of a tunnel. Those in the overlay are
//! the copies, whichever comes first: so all packets of a connection stay in one flow.

use std::collections::{BTreeMap, HashSet};

use roce_model::{Packet, TapId, Time};

use crate::taps::matching::identity;

/// A packet and its copy are no more than one or two of these apart, in nanoseconds: both are seen within one host.
const APART: u64 = 131_072;
/// Packets of an overlay from which on it is said whether they are copies.
const MIN_PACKETS: u32 = 8;
/// They are, where all but one of this number are: the first and the last ones may have their twins outside.
const ALL_BUT: u32 = 8;
/// Overlays that are kept at most.
const MAX_OVERLAYS: usize = 64;

/// Overlays, by tap and network identifier, whose packets the tap shows bare, too.
#[derive(Clone, Debug, Default)]
pub(super) struct Overlays {
    copied: Vec<(TapId, u32)>,
}

/// Packets of one overlay, and those of them that were seen bare.
#[derive(Clone, Copy, Debug, Default)]
struct OverlayCounts {
    packets: u32,
    bare: u32,
}

impl Overlays {
    #[cold]
    pub(super) fn is_shown_bare(&self, packet: &Packet) -> bool {
        let vni = packet.roce.vni.unwrap_or_default();
        self.copied.contains(&(packet.tap, vni))
    }

    /// Looks at some packets, in the order of time.
    pub(super) fn learn(&mut self, packets: &[Packet]) {
        if packets.iter().all(|packet| packet.roce.vni.is_none()) {
            return;
        }
        let slot = |time: Time, later: u64| time.0 / APART + later;
        let bare: HashSet<(u64, TapId, u64), foldhash::fast::RandomState> = packets
            .iter()
            .filter(|packet| packet.roce.vni.is_none())
            .map(|packet| (identity(&packet.roce), packet.tap, slot(packet.time, 1)))
            .collect();
        let mut overlays: BTreeMap<(TapId, u32), OverlayCounts> = BTreeMap::new();
        for packet in packets.iter().filter(|packet| !packet.roce.bth.opcode().is_cnp()) {
            let Some(vni) = packet.roce.vni else {
                continue;
            };
            let is_bare =
                |later| bare.contains(&(identity(&packet.roce), packet.tap, slot(packet.time, later)));
            let seen = overlays.entry((packet.tap, vni)).or_default();
            seen.packets += 1;
            seen.bare += u32::from((0..=2).any(is_bare));
        }
        for (overlay, seen) in overlays {
            let is_copied = seen.packets >= MIN_PACKETS
                && (seen.packets - seen.bare).saturating_mul(ALL_BUT) <= seen.packets;
            if is_copied && self.copied.len() < MAX_OVERLAYS && !self.copied.contains(&overlay) {
                self.copied.push(overlay);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use roce_wire::Bth;

    use super::*;

    /// A WRITE Middle, at 10 us times its PSN and `us` more.
    fn packet(psn: u8, us: u64, vni: Option<u32>) -> Packet {
        let mut packet = Packet {
            time: Time((1_000_000 + 10 * u64::from(psn) + us) * 1_000),
            ..Packet::default()
        };
        packet.roce.bth = Bth([0x07, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, psn]);
        packet.roce.vni = vni;
        packet
    }

    #[test]
    fn an_overlay_is_a_copy_where_its_packets_are_seen_bare() {
        let copied = |bare: core::ops::Range<u8>, us: i64| {
            let mut packets: Vec<Packet> = (0..40)
                .map(|psn| packet(psn, 100, Some(7)))
                .chain(bare.map(|psn| packet(psn, 100_u64.saturating_add_signed(us), None)))
                .collect();
            packets.sort_by_key(|packet| packet.time);
            let mut overlays = Overlays::default();
            overlays.learn(&packets);
            overlays.is_shown_bare(&packet(99, 0, Some(7)))
        };
        // Before and behind the bare packet, as a host sends and receives.
        assert!(copied(0..40, -1) && copied(0..40, 1));
        assert!(copied(0..36, 1), "36 of 40");
        assert!(!copied(0..20, 1), "half of it is other traffic");
        assert!(!copied(0..0, 1), "nothing is bare");
    }

    #[test]
    fn other_taps_and_networks_are_not_meant() {
        let mut overlays = Overlays::default();
        let mut packets: Vec<Packet> = (0..20).map(|psn| packet(psn, 1, None)).collect();
        packets.extend((0..20).map(|psn| packet(psn, 2, Some(7))));
        overlays.learn(&packets);
        assert!(overlays.is_shown_bare(&packet(99, 0, Some(7))));
        assert!(!overlays.is_shown_bare(&packet(99, 0, Some(8))));
        let mut elsewhere = packet(99, 0, Some(7));
        elsewhere.tap = TapId(1);
        assert!(!overlays.is_shown_bare(&elsewhere));
    }
}
