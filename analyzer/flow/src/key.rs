//! The key of a flow at a tap, as the table of flows compares it, and the slot of a live flow in that table.

use roce_model::{FlowKey, Packet, TapId};
use roce_wire::{Address, Qpn, Roce, Service, VlanTag};

use crate::hash::halves;

/// The slot of a live flow in the table. It stays the same while the flow lives, and is given to another flow afterwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub(crate) struct FlowSlot(u32);

impl FlowSlot {
    /// No flow.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// The slot with this index; [`FlowSlot::NONE`] for an index that no table has.
    #[inline]
    pub(crate) fn from_index(index: usize) -> Self {
        u32::try_from(index).map_or(Self::NONE, Self)
    }

    /// Its bits, for XORs of several slots.
    #[inline]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// The slot with these bits.
    #[inline]
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Its index in the table.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A slot for tests.
#[cfg(test)]
pub(crate) const fn slot(bits: u32) -> FlowSlot {
    FlowSlot::from_bits(bits)
}

/// Values by the slot of their flow.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T>(Vec<T>);

impl<T> Slots<T> {
    /// No values, without memory.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value of a flow; `None` for [`FlowSlot::NONE`] and slots that were never used.
    #[inline]
    pub(crate) fn get(&self, slot: FlowSlot) -> Option<&T> {
        self.0.get(slot.index())
    }
}

impl<T> Slots<T> {
    /// The value of a flow, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: FlowSlot) -> Option<&mut T> {
        self.0.get_mut(slot.index())
    }

    /// All values with their slots, from an index on.
    pub(crate) fn starting_at(&self, first: usize) -> impl Iterator<Item = (FlowSlot, &T)> {
        let all = self.0.iter().enumerate().skip(first);
        all.map(|(index, value)| (FlowSlot::from_index(index), value))
    }
}

impl<T> core::ops::Deref for Slots<T> {
    type Target = Vec<T>;

    #[inline]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> core::ops::DerefMut for Slots<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> core::ops::Index<FlowSlot> for Slots<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: FlowSlot) -> &T {
        &self.0[slot.index()]
    }
}

impl<T> core::ops::IndexMut<FlowSlot> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, slot: FlowSlot) -> &mut T {
        &mut self.0[slot.index()]
    }
}

/// A flow's key and its tap in six words: all that a comparison or a hash reads.
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

/// A 24-bit VNI, or a bit that says there is none.
const NO_VNI: u32 = 1 << 24;
/// A 12-bit VLAN identifier, or a bit that says there is none.
const NO_VLAN: u16 = 1 << 12;

impl Key {
    /// The six words.
    #[inline]
    pub(crate) fn words(&self) -> &[u64; 6] {
        &self.0
    }

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

    /// The key of the flow of a packet, at its tap.
    #[inline]
    pub(crate) fn from_packet(packet: &Packet) -> Self {
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

    /// True of a service whose packets are acknowledged, see [`Service::is_reliable`].
    #[inline]
    pub(crate) fn is_reliable(&self) -> bool {
        let service = self.0[4] >> 48 & 0xff;
        service == Service::Rc as u64 || service == Service::Xrc as u64
    }

    /// True if it is the same flow, at whatever tap; a tag or an overlay that one of the taps does not see makes no
    /// difference.
    pub(crate) fn is_same_traffic(&self, other: &Self) -> bool {
        const TAP: u64 = 0xff << 56;
        let (nets, others) = (Nets::from_word(self.0[5]), Nets::from_word(other.0[5]));
        self.0[..4] == other.0[..4]
            && (self.0[4] ^ other.0[4]) & !TAP == 0
            && (nets.vni == others.vni || nets.vni == NO_VNI || others.vni == NO_VNI)
            && (nets.vlan == others.vlan || nets.vlan == NO_VLAN || others.vlan == NO_VLAN)
    }

    /// The key of a flow at a tap.
    pub(crate) fn from_flow(tap: TapId, key: &FlowKey) -> Self {
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
    fn from_word(word: u64) -> Self {
        Self {
            vni: word as u32 & ((NO_VNI << 1) - 1),
            vlan: (word >> 25) as u16 & ((NO_VLAN << 1) - 1),
        }
    }
}
