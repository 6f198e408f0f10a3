//! Packets and counts of the classifier.

use roce_abi::{FlowCounts, FlowKey, PacketHead, read};
use roce_model::{Address, Qpn, Time};

use crate::clock::ClockOffset;

/// Direction of a packet at its interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Into this host.
    Ingress,
    /// Out of it.
    Egress,
}

impl Direction {
    fn from_number(number: u32) -> Self {
        if number == roce_abi::Direction::Egress as u32 {
            Self::Egress
        } else {
            Self::Ingress
        }
    }
}

/// A packet that the classifier sent: the beginning of its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketRecord<'a> {
    /// Time at which the classifier saw it.
    pub time: Time,
    /// The index of its interface.
    pub interface: u32,
    /// Direction at the interface.
    pub direction: Direction,
    /// Bytes that its frame has on the wire, without FCS, with its VLAN tag.
    pub original: u32,
    /// The tag that is not among the bytes: its EtherType and tag control field.
    tag: Option<[u8; 4]>,
    /// The frame's first bytes.
    bytes: &'a [u8],
}

/// Bytes of the two addresses in front of an EtherType or tag (IEEE 802.3, 3.1.1).
const ADDRESSES: usize = 12;

impl<'a> PacketRecord<'a> {
    /// The packet of a record; `None` for what is no record.
    pub(crate) fn parse(bytes: &'a [u8], clock: ClockOffset) -> Option<Self> {
        let head: PacketHead = read(bytes)?;
        let start = size_of::<PacketHead>();
        let frame = bytes.get(start..start + usize::from(head.captured))?;
        let tag = (head.vlan_protocol != 0).then(|| {
            let ([a, b], [c, d]) = (head.vlan_protocol.to_be_bytes(), head.vlan.to_be_bytes());
            [a, b, c, d]
        });
        Some(Self {
            time: clock.realtime(head.time),
            interface: head.interface,
            direction: Direction::from_number(head.direction),
            original: head.original + if tag.is_some() { 4 } else { 0 },
            tag,
            bytes: frame,
        })
    }

    /// Adds the frame's first bytes to `into`, as they are on the wire: a VLAN tag that the NIC took off is put back.
    pub fn frame(&self, into: &mut Vec<u8>) {
        match self.tag {
            Some(tag) if self.bytes.len() >= ADDRESSES => {
                into.extend_from_slice(&self.bytes[..ADDRESSES]);
                into.extend_from_slice(&tag);
                into.extend_from_slice(&self.bytes[ADDRESSES..]);
            }
            _ => into.extend_from_slice(self.bytes),
        }
    }
}

/// Counts of the classifier: packets of one queue pair at one interface, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowCount {
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// The queue pair that they are for.
    pub qpn: Qpn,
    /// The index of the interface.
    pub interface: u32,
    /// Direction at the interface.
    pub direction: Direction,
    /// The counts.
    pub counts: FlowCounts,
}

impl FlowCount {
    /// The sum over all CPUs.
    pub(crate) fn sum<'a>(key: &FlowKey, by_cpu: impl IntoIterator<Item = &'a FlowCounts>) -> Self {
        let mut counts = FlowCounts::default();
        for cpu in by_cpu {
            counts.packets += cpu.packets;
            counts.wire_bytes += cpu.wire_bytes;
            counts.payload_bytes += cpu.payload_bytes;
            counts.rnr_naks += cpu.rnr_naks;
            counts.cnps += cpu.cnps;
            add(&mut counts.ecn, &cpu.ecn);
            add(&mut counts.operations, &cpu.operations);
            add(&mut counts.naks, &cpu.naks);
        }
        Self {
            source: Address::v6(key.source),
            destination: Address::v6(key.destination),
            qpn: Qpn::new(key.qpn),
            interface: key.interface,
            direction: Direction::from_number(key.direction),
            counts,
        }
    }
}

fn add<const N: usize>(sums: &mut [u64; N], more: &[u64; N]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_model::Span;

    fn record(vlan_protocol: u16, bytes: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        // time, interface, direction, original, captured, reason, vlan, its EtherType, nothing: as in `PacketHead`.
        record.extend(7_u64.to_ne_bytes());
        for word in [3_u32, 1, 1_500] {
            record.extend(word.to_ne_bytes());
        }
        for half in [u16::try_from(bytes.len()).unwrap(), 0, 0x6005, vlan_protocol] {
            record.extend(half.to_ne_bytes());
        }
        record.extend([0; 4]);
        record.extend(bytes);
        record.resize(record.len() + 40, 0xee);
        record
    }

    #[test]
    fn a_tag_is_put_back_behind_the_addresses() {
        let clock = ClockOffset {
            nanos: 1_000,
            uncertainty: Span(1),
        };
        let bytes: Vec<u8> = (0..20).collect();
        let plain = record(0, &bytes);
        let packet = PacketRecord::parse(&plain, clock).unwrap();
        let mut frame = Vec::new();
        packet.frame(&mut frame);
        assert_eq!(frame, bytes);
        assert_eq!(
            (packet.time, packet.interface, packet.original),
            (Time(1_007), 3, 1_500)
        );
        assert_eq!(packet.direction, Direction::Egress);

        let tagged = record(0x8100, &bytes);
        let packet = PacketRecord::parse(&tagged, clock).unwrap();
        frame.clear();
        packet.frame(&mut frame);
        // Twelve bytes of addresses, EtherType 0x8100, priority 3 and VLAN 5, the rest.
        assert_eq!(frame[12..16], [0x81, 0x00, 0x60, 0x05]);
        assert_eq!((frame.len(), packet.original), (24, 1_504));
        assert_eq!(frame[16..], bytes[12..]);
    }

    #[test]
    fn a_record_that_claims_more_than_it_has_is_none() {
        let clock = ClockOffset::measure();
        let whole = record(0, &[1; 96]);
        assert!(PacketRecord::parse(&whole, clock).is_some());
        assert!(PacketRecord::parse(&whole[..32 + 95], clock).is_none());
        assert!(PacketRecord::parse(&whole[..31], clock).is_none());
    }
}
