//! An independent builder of frames, for tests: it writes layers from the inside out and knows nothing of the decoder.

/// The transport headers and data of a packet.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) opcode: u8,
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    pub(crate) pad: u8,
    pub(crate) ack_request: bool,
    pub(crate) aeth: [u8; 4],
    pub(crate) dma_length: u32,
    pub(crate) source_qpn: u32,
    pub(crate) payload: usize,
}

/// Network header of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    V4 { options: u8 },
    V6 { extensions: u8 },
    V1,
}

/// A wrapping around the packet, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrap {
    Vxlan(u32),
    Geneve {
        vni: u32,
        options: u8,
    },
    GreIp {
        key: bool,
        sequence: bool,
        checksum: bool,
    },
    GreEthernet,
    ErspanI,
    ErspanII {
        session: u16,
        sequence: u32,
        index: u32,
    },
    ErspanIII {
        session: u16,
        sequence: u32,
        timestamp: u32,
        platform: bool,
    },
    Mpls {
        labels: u8,
    },
    IpInIp,
}

/// Extended header bytes by operation, written down from IBTA 9.2.1 and not from the crate.
fn extended(p: &Packet) -> Vec<u8> {
    let (service, operation) = (p.opcode >> 5, p.opcode & 0x1f);
    let mut bytes = Vec::new();
    // CNPs and vendor opcodes have none that is known.
    if matches!(service, 4 | 6 | 7) {
        return bytes;
    }
    let request = !(0x0d..=0x12).contains(&operation);
    if service == 2 {
        bytes.extend([0xee; 4]);
    }
    if service == 3 || (service == 2 && request) {
        bytes.extend([0x80, 1, 0, 0, 0]);
        bytes.extend(&p.source_qpn.to_be_bytes()[1..]);
    }
    if service == 5 && request {
        bytes.extend([0, 9, 9, 9]);
    }
    let reth = |bytes: &mut Vec<u8>| {
        bytes.extend([7; 12]);
        bytes.extend(p.dma_length.to_be_bytes());
    };
    match operation {
        0x06 | 0x0a | 0x0c | 0x1d => reth(&mut bytes),
        0x0b => {
            reth(&mut bytes);
            bytes.extend([3; 4]);
        }
        0x1c => {
            bytes.extend([0, 0, 0, 1]);
            reth(&mut bytes);
        }
        0x03 | 0x05 | 0x09 | 0x16 | 0x17 => bytes.extend([3; 4]),
        0x0d | 0x0f | 0x10 | 0x11 => bytes.extend(p.aeth),
        0x12 => {
            bytes.extend(p.aeth);
            bytes.extend([5; 8]);
        }
        0x13 | 0x14 => bytes.extend([6; 28]),
        _ => {}
    }
    bytes
}

/// True if the opcode has an AETH, a RETH, a DETH.
pub(crate) fn fields(opcode: u8) -> (bool, bool, bool) {
    let (service, operation) = (opcode >> 5, opcode & 0x1f);
    let aeth = matches!(operation, 0x0d | 0x0f..=0x12);
    let reth = matches!(operation, 0x06 | 0x0a..=0x0c | 0x1c | 0x1d);
    let response = (0x0d..=0x12).contains(&operation);
    (aeth, reth, service == 3 || (service == 2 && !response))
}

impl Packet {
    /// From the BTH to the ICRC, which is not filled in.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.opcode, self.pad << 4, 0xff, 0xff, 0];
        bytes.extend(&self.qpn.to_be_bytes()[1..]);
        bytes.push(if self.ack_request { 0x80 } else { 0 });
        bytes.extend(&self.psn.to_be_bytes()[1..]);
        bytes.extend(extended(self));
        bytes.resize(bytes.len() + self.payload + usize::from(self.pad) + 4, 0xa5);
        bytes
    }

    /// Bytes of headers, from the BTH to the last extended header.
    pub(crate) fn header_bytes(&self) -> usize {
        12 + extended(self).len()
    }
}

fn be16(value: usize) -> [u8; 2] {
    u16::try_from(value).expect("short frames").to_be_bytes()
}

pub(crate) const V4_ENDS: [[u8; 4]; 2] = [[10, 1, 2, 3], [10, 4, 5, 6]];
pub(crate) const V6_ENDS: [[u8; 16]; 2] = [[0xfd; 16], [0xfc; 16]];

fn ipv4(protocol: u8, tos: u8, id: u16, options: u8, inside: Vec<u8>) -> Vec<u8> {
    let header = 20 + usize::from(options) * 4;
    let mut bytes = vec![0x45 + options, tos];
    bytes.extend(be16(header + inside.len()));
    bytes.extend(id.to_be_bytes());
    bytes.extend([0x40, 0, 61, protocol, 0, 0]);
    bytes.extend(V4_ENDS.concat());
    bytes.resize(header, 1);
    bytes.extend(inside);
    bytes
}

fn ipv6(protocol: u8, traffic_class: u8, extensions: u8, inside: Vec<u8>) -> Vec<u8> {
    // Destination options (60), 8 bytes each.
    let length = usize::from(extensions) * 8 + inside.len();
    let mut bytes = vec![0x60 | traffic_class >> 4, traffic_class << 4, 0, 0];
    bytes.extend(be16(length));
    bytes.extend([if extensions > 0 { 60 } else { protocol }, 61]);
    bytes.extend(V6_ENDS.concat());
    for left in (0..extensions).rev() {
        bytes.extend([if left > 0 { 60 } else { protocol }, 0, 1, 4, 0, 0, 0, 0]);
    }
    bytes.extend(inside);
    bytes
}

fn udp(source: u16, destination: u16, inside: Vec<u8>) -> Vec<u8> {
    let mut bytes = source.to_be_bytes().to_vec();
    bytes.extend(destination.to_be_bytes());
    bytes.extend(be16(8 + inside.len()));
    bytes.extend([0, 0]);
    bytes.extend(inside);
    bytes
}

/// The network header and what it carries, with its EtherType.
pub(crate) fn network(packet: &Packet, network: Network, traffic_class: u8, port: u16) -> (u16, Vec<u8>) {
    let inside = packet.bytes();
    match network {
        Network::V4 { options } => (
            0x0800,
            ipv4(17, traffic_class, 0x1234, options, udp(port, 4791, inside)),
        ),
        Network::V6 { extensions } => (
            0x86dd,
            ipv6(17, traffic_class, extensions, udp(port, 4791, inside)),
        ),
        Network::V1 => {
            let mut bytes = ipv6(0x1b, traffic_class, 0, inside);
            bytes[6] = 0x1b;
            (0x8915, bytes)
        }
    }
}

pub(crate) fn ethernet(ether_type: u16, tags: &[(u16, u16)], inside: Vec<u8>) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    for (kind, tag) in tags {
        bytes.extend(kind.to_be_bytes());
        bytes.extend(tag.to_be_bytes());
    }
    bytes.extend(ether_type.to_be_bytes());
    bytes.extend(inside);
    bytes
}

/// Puts `inside` (an EtherType and what it announces, tagged by `tags` where it becomes a frame) into a tunnel.
pub(crate) fn wrap(wrap: Wrap, tags: &[(u16, u16)], inside: (u16, Vec<u8>)) -> (u16, Vec<u8>) {
    let frame = |inside: (u16, Vec<u8>)| ethernet(inside.0, tags, inside.1);
    let outer = |protocol, inside| (0x0800, ipv4(protocol, 0, 1, 0, inside));
    let vni = |vni: u32| [&vni.to_be_bytes()[1..], &[0]].concat();
    match wrap {
        Wrap::Vxlan(id) => {
            let header = [&[8, 0, 0, 0], &vni(id)[..]].concat();
            outer(17, udp(1, 4789, [header, frame(inside)].concat()))
        }
        Wrap::Geneve { vni: id, options } => {
            let header = [&[options, 0, 0x65, 0x58], &vni(id)[..]].concat();
            let options = vec![0x11; usize::from(options) * 4];
            outer(17, udp(1, 6081, [header, options, frame(inside)].concat()))
        }
        Wrap::GreIp {
            key,
            sequence,
            checksum,
        } => {
            let flags = u8::from(checksum) << 7 | u8::from(key) << 5 | u8::from(sequence) << 4;
            let mut header = vec![flags, 0];
            header.extend(inside.0.to_be_bytes());
            header.resize(
                4 + 4 * (usize::from(key) + usize::from(sequence) + usize::from(checksum)),
                0x22,
            );
            outer(47, [header, inside.1].concat())
        }
        Wrap::GreEthernet => outer(47, [vec![0, 0, 0x65, 0x58], frame(inside)].concat()),
        Wrap::ErspanI => outer(47, [vec![0, 0, 0x88, 0xbe], frame(inside)].concat()),
        Wrap::ErspanII {
            session,
            sequence,
            index,
        } => {
            let mut header = vec![0x10, 0, 0x88, 0xbe];
            header.extend(sequence.to_be_bytes());
            header.extend([0x10, 0]);
            header.extend(session.to_be_bytes());
            header.extend(index.to_be_bytes());
            outer(47, [header, frame(inside)].concat())
        }
        Wrap::ErspanIII {
            session,
            sequence,
            timestamp,
            platform,
        } => {
            let mut header = vec![0x10, 0, 0x22, 0xeb];
            header.extend(sequence.to_be_bytes());
            header.extend([0x20, 0]);
            header.extend(session.to_be_bytes());
            header.extend(timestamp.to_be_bytes());
            header.extend([0, 0, 0, u8::from(platform)]);
            header.resize(header.len() + if platform { 8 } else { 0 }, 0x33);
            outer(47, [header, frame(inside)].concat())
        }
        Wrap::Mpls { labels } => {
            let mut header = Vec::new();
            for left in (0..labels).rev() {
                header.extend([0, 1, 0x20 | u8::from(left == 0), 64]);
            }
            (0x8847, [header, inside.1].concat())
        }
        Wrap::IpInIp => outer(if inside.0 == 0x0800 { 4 } else { 41 }, inside.1),
    }
}
