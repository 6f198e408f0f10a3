//! Identities of packets: taps and flows.

use std::fmt;

use roce_wire::{Address, Qpn, Roce, Service, VlanTag};

/// A tap of this run, by its place in the list of taps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TapId(pub u32);

/// One direction of one queue pair's traffic, as seen in the packets themselves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowKey {
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// The queue pair that they are for.
    pub destination_qpn: Qpn,
    /// UD: the queue pair that they come from (DETH). 0 otherwise.
    pub source_qpn: Qpn,
    /// VLAN identifier of the tag before the packet's own network header.
    pub vlan: Option<u16>,
    /// Identifier of the innermost overlay network.
    pub vni: Option<u32>,
    /// Transport service.
    pub service: Service,
}

impl FlowKey {
    /// The flow of a packet.
    #[inline]
    pub fn from_packet(packet: &Roce) -> Self {
        Self {
            source: packet.source,
            destination: packet.destination,
            destination_qpn: packet.bth.destination_qpn(),
            source_qpn: Qpn::new(packet.source_qpn),
            vlan: packet.vlan.map(VlanTag::id),
            vni: packet.vni,
            service: packet.service(),
        }
    }

    /// FNV-1a over the fields in order, without the highest bit: equal in every run and at both ends of a link, and
    /// positive in engines that have signed integers alone.
    pub fn id(&self) -> FlowId {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let mut hash = OFFSET;
        let mut add = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
            }
        };
        add(self.source.octets());
        add(self.destination.octets());
        add(&self.destination_qpn.value().to_be_bytes());
        add(&self.source_qpn.value().to_be_bytes());
        add(&self.vlan.unwrap_or(u16::MAX).to_be_bytes());
        add(&self.vni.unwrap_or(u32::MAX).to_be_bytes());
        add(&[self.service as u8]);
        FlowId(hash & FlowId::MAX.0)
    }
}

/// A flow's name: a stable hash of its [`FlowKey`] of 63 bits, written as 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowId(pub u64);

impl FlowId {
    /// The largest one: 63 bits.
    pub const MAX: Self = Self(u64::MAX >> 1);
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> FlowKey {
        FlowKey {
            source: Address::v4([10, 77, 0, 1]),
            destination: Address::v4([10, 77, 0, 2]),
            destination_qpn: Qpn::new(0x11),
            source_qpn: Qpn::new(0),
            vlan: None,
            vni: None,
            service: Service::Rc,
        }
    }

    #[test]
    fn the_id_is_fnv_1a_of_the_fields() {
        // Computed apart, in Python:
        // b = bytes(10)+b'\xff\xff'+bytes([10,77,0,1]) + bytes(10)+b'\xff\xff'+bytes([10,77,0,2])
        //     + (0x11).to_bytes(4,'big') + bytes(4) + b'\xff'*2 + b'\xff'*4 + b'\x00'
        // h = 0xcbf29ce484222325
        // for x in b: h = ((h ^ x) * 0x100000001b3) % 2**64
        // 0x8cc16b3648ffa64b, and h % 2**63:
        assert_eq!(key().id().to_string(), "0cc16b3648ffa64b");
    }

    #[test]
    fn every_field_counts() {
        let base = key();
        let others = [
            FlowKey {
                source: base.destination,
                ..base
            },
            FlowKey {
                destination: base.source,
                ..base
            },
            FlowKey {
                destination_qpn: Qpn::new(0x12),
                ..base
            },
            FlowKey {
                source_qpn: Qpn::new(1),
                ..base
            },
            FlowKey {
                vlan: Some(0),
                ..base
            },
            FlowKey { vni: Some(7), ..base },
            FlowKey {
                service: Service::Uc,
                ..base
            },
        ];
        for other in others {
            assert_ne!(base.id(), other.id(), "{other:?}");
        }
    }
}
