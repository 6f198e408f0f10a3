//! Exact copies: a tap that mirrors both directions of a port, or `any` with the interfaces under it, shows a
//! packet twice.

use roce_model::Packet;

use crate::table::fold;

/// The latest packets, by fingerprint: 16,384 of them, so that a copy is found up to about as many packets later.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    /// Fingerprint (high 32 bits), path (8 bits), time in units of 64 ns (low 24 bits).
    seen: Box<[u64]>,
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

const SLOTS: usize = 1 << 14;
const TIME_SHIFT: u32 = 6;
const TIME_MASK: u64 = (1 << 24) - 1;
/// A copy comes within 1 ms.
const WINDOW: u64 = 1_000_000 >> TIME_SHIFT;

impl Default for Recent {
    fn default() -> Self {
        Self { seen: vec![0; SLOTS].into_boxed_slice() }
    }
}

impl Recent {
    /// Brings the places of packets into the cache.
    #[inline]
    pub(crate) fn touch<'a>(&self, packets: impl Iterator<Item = (u64, &'a Packet)>) {
        let places = packets.map(|(flow, packet)| self.seen[place(fingerprint(flow, packet))]);
        core::hint::black_box(places.fold(0, |all, place| all ^ place));
    }

    /// Looks for `packet` of the flow with the hash `flow` among the latest ones, and remembers it.
    #[inline]
    pub(crate) fn look(&mut self, flow: u64, packet: &Packet) -> Sighting {
        let fingerprint = fingerprint(flow, packet);
        let path = u64::from(packet.path & 0xff);
        let time = packet.time.0 >> TIME_SHIFT & TIME_MASK;
        let slot = &mut self.seen[place(fingerprint)];
        let old = *slot;
        let tag = fingerprint >> 32;
        *slot = tag << 32 | path << 24 | time;
        if old >> 32 != tag || old == 0 || (time.wrapping_sub(old) & TIME_MASK) > WINDOW {
            return Sighting::New;
        }
        if old >> 24 & 0xff == path { Sighting::SamePath } else { Sighting::OtherPath }
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "masked to the number of slots")]
fn place(fingerprint: u64) -> usize {
    fingerprint as usize & (SLOTS - 1)
}

/// A hash of all that a copy shares with its original. What links change (TTL, link addresses) is left out; a
/// retransmission differs from its original in the IPv4 identification, where the sender counts it.
#[inline]
fn fingerprint(flow: u64, packet: &Packet) -> u64 {
    let roce = &packet.roce;
    let [opcode, flags, .., q, _, a, b, c] = roce.bth.0;
    let bth = u64::from_le_bytes([opcode, flags, q, a, b, c, roce.traffic_class, 0]);
    let rest = u64::from(roce.ip_id) | u64::from(roce.udp_source_port) << 16 | u64::from(roce.payload_bytes) << 32;
    // The AETH tells an ACK from the NAK that has the same PSN.
    let rest = rest ^ u64::from(u32::from_le_bytes(roce.aeth.0)).rotate_left(24);
    fold(flow ^ bth, rest ^ 0x9e37_79b9_7f4a_7c15)
}

/// Tells, for one flow, copies by the same path from packets sent again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopyEvidence {
    /// The identification of the last packet.
    ip_id: u16,
    packets: u32,
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
            Sighting::OtherPath => true,
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
}

