//! Ethernet, IPv4, IPv6 and UDP headers: of RoCE packets, and of the tunnels around them.
//!
//! Leaves reading them, and their layout in words, to `roce-wire`.

use std::net::IpAddr;

use roce_wire::{Address, Carrier, Ecn, MacAddress, VlanTag};

use super::version::Version;

/// An Ethernet header, with at most one 802.1Q tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ethernet {
    /// From whom.
    pub source: MacAddress,
    /// To whom.
    pub destination: MacAddress,
    /// The 802.1Q tag.
    pub vlan: Option<VlanTag>,
}

/// An IPv4 or IPv6 header, or a GRH. It is IPv4 when both addresses are (in RoCEv1 all addresses are GIDs).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// From where.
    pub source: Address,
    /// To where.
    pub destination: Address,
    /// The DSCP, 6 bits.
    pub dscp: u8,
    /// The ECN field.
    pub ecn: Ecn,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// The identification, IPv4 only.
    pub identification: u16,
    /// The "don't fragment" bit, IPv4 only.
    pub dont_fragment: bool,
    /// The flow label, 20 bits: IPv6 and GRH only.
    pub flow_label: u32,
}

/// The length of a UDP header.
pub(super) const UDP_BYTES: u32 = 8;
const ETHERNET_BYTES: u32 = 14;
const TAG_BYTES: u32 = 4;
const IPV4_BYTES: u16 = 20;
const IPV6_BYTES: u16 = 40;

const TAG: u16 = 0x8100;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

impl Ethernet {
    /// A header without a tag.
    pub const fn new(source: MacAddress, destination: MacAddress) -> Self {
        Self {
            source,
            destination,
            vlan: None,
        }
    }

    /// Adds a tag with a priority (3 bits) and a VLAN (12 bits).
    #[must_use]
    pub const fn tagged(self, priority: u8, vlan: u16) -> Self {
        // The priority's upper bits fall out of the 16 bits.
        let tag = (priority as u16) << 13 | vlan & 0x0fff;
        Self {
            vlan: Some(VlanTag(tag)),
            ..self
        }
    }

    pub(super) fn bytes(&self) -> u32 {
        ETHERNET_BYTES + if self.vlan.is_some() { TAG_BYTES } else { 0 }
    }

    pub(super) fn encode(&self, ether_type: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.destination.0);
        out.extend_from_slice(&self.source.0);
        if let Some(VlanTag(tag)) = self.vlan {
            out.extend_from_slice(&TAG.to_be_bytes());
            out.extend_from_slice(&tag.to_be_bytes());
        }
        out.extend_from_slice(&ether_type.to_be_bytes());
    }
}

impl Network {
    /// ECT(0), DSCP 0, hop limit 64, not to be fragmented: what RoCE NICs send unless configured otherwise.
    pub const fn new(source: Address, destination: Address) -> Self {
        Self {
            source,
            destination,
            dscp: 0,
            ecn: Ecn::Ect0,
            hop_limit: 64,
            identification: 0,
            dont_fragment: true,
            flow_label: 0,
        }
    }

    /// TOS or traffic class: the DSCP and the ECN field.
    pub const fn traffic_class(&self) -> u8 {
        self.dscp << 2 | self.ecn as u8
    }

    /// The addresses, if both are of IPv4.
    fn v4(&self) -> Option<[[u8; 4]; 2]> {
        match (self.source.as_ip(), self.destination.as_ip()) {
            (Some(IpAddr::V4(source)), Some(IpAddr::V4(destination))) => {
                Some([source.octets(), destination.octets()])
            }
            _ => None,
        }
    }

    pub(super) fn ether_type(&self) -> u16 {
        if self.v4().is_some() { IPV4 } else { IPV6 }
    }

    pub(super) fn carrier(&self, version: Version) -> Carrier {
        match version {
            Version::V1 => Carrier::RoceV1,
            Version::V2 { .. } if self.v4().is_some() => Carrier::RoceV2Ipv4,
            Version::V2 { .. } => Carrier::RoceV2Ipv6,
        }
    }

    /// The length of the IP header.
    pub(super) fn ip_bytes(&self) -> u32 {
        u32::from(if self.v4().is_some() {
            IPV4_BYTES
        } else {
            IPV6_BYTES
        })
    }

    /// Length of the headers before the BTH: IP and UDP, or the GRH.
    pub(super) fn bytes(&self, version: Version) -> u32 {
        match version {
            Version::V1 => u32::from(IPV6_BYTES),
            Version::V2 { .. } => self.ip_bytes() + UDP_BYTES,
        }
    }

    /// Appends the IP header for `length` bytes of `protocol`.
    pub(super) fn encode_ip(&self, protocol: u8, length: u32, out: &mut Vec<u8>) {
        match self.v4() {
            Some(ends) => self.encode_v4(ends, protocol, length, out),
            None => self.encode_v6(protocol, length, out),
        }
    }

    fn encode_v4(&self, ends: [[u8; 4]; 2], protocol: u8, length: u32, out: &mut Vec<u8>) {
        let mut header = [0; IPV4_BYTES as usize];
        (header[0], header[1]) = (0x45, self.traffic_class());
        header[2..4].copy_from_slice(&half(u32::from(IPV4_BYTES).saturating_add(length)));
        header[4..6].copy_from_slice(&self.identification.to_be_bytes());
        header[6] = if self.dont_fragment { 0x40 } else { 0 };
        (header[8], header[9]) = (self.hop_limit, protocol);
        header[12..16].copy_from_slice(&ends[0]);
        header[16..20].copy_from_slice(&ends[1]);
        let checksum = internet_checksum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        out.extend_from_slice(&header);
    }

    /// Appends an IPv6 header or a GRH, whatever the addresses are.
    pub(super) fn encode_v6(&self, next_header: u8, length: u32, out: &mut Vec<u8>) {
        let first = 6 << 28 | u32::from(self.traffic_class()) << 20 | self.flow_label & 0x000f_ffff;
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&half(length));
        out.extend_from_slice(&[next_header, self.hop_limit]);
        out.extend_from_slice(self.source.octets());
        out.extend_from_slice(self.destination.octets());
    }
}

/// Appends a UDP header without a checksum, for `length` bytes.
pub(super) fn encode_udp(source: u16, destination: u16, length: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&source.to_be_bytes());
    out.extend_from_slice(&destination.to_be_bytes());
    out.extend_from_slice(&half(UDP_BYTES.saturating_add(length)));
    out.extend_from_slice(&[0, 0]);
}

/// A length of 16 bits; longer ones, which no frame here has, stop at the largest.
fn half(length: u32) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}

/// The checksum of a header whose own checksum field is zero (RFC 1071).
fn internet_checksum(header: &[u8; IPV4_BYTES as usize]) -> u16 {
    let sum: u32 = header
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| u32::from(u16::from_be_bytes(*pair)))
        .sum();
    // Ten words: at most 9 carries, and one more of adding them.
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    #[expect(clippy::cast_possible_truncation, reason = "folded twice it has 16 bits")]
    {
        !(folded as u16)
    }
}
