//! A frame and its bytes: a RoCE packet, or a pause.

use roce_wire::{Bth, icrc};

use super::mrc::MrcPacket;
use super::network::{self, Ethernet, Network};
use super::pause::{Pause, Pfc};
use super::transport::Transport;
use super::version::Version;

/// A frame on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A RoCE packet.
    Roce(Roce),
    /// A RoCE packet that was damaged inside of a device: the FCS of its frame is good, and one bit of
    /// its ICRC is wrong.
    Damaged(Roce),
    /// An MRC packet.
    Mrc(MrcPacket),
    /// A priority flow control frame.
    Pfc(Pfc),
    /// An 802.3x pause frame.
    Pause(Pause),
}

/// A RoCE packet in its Ethernet frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roce {
    /// The Ethernet header.
    pub ethernet: Ethernet,
    /// The IP header, or the GRH.
    pub network: Network,
    /// Headers after the network header.
    pub version: Version,
    /// The BTH, the extended headers and the payload.
    pub transport: Transport,
}

/// The bytes of an ICRC.
const ICRC_BYTES: u32 = 4;
/// The EtherType of RoCEv1 (IBTA A16).
const ROCE_V1: u16 = 0x8915;
/// The protocol number of UDP (IANA).
const UDP: u8 = 17;
/// The next header value of a GRH: a BTH follows (IBTA 8.3).
const IBA_TRANSPORT: u8 = 0x1b;

impl Frame {
    /// The shortest frame, without its FCS: shorter ones are padded with zeros (IEEE 802.3, 4.2.3.3).
    pub const MIN_BYTES: u32 = 60;
    /// Bytes of a frame on the line besides its own: preamble and start delimiter 8, FCS 4, gap 12 (IEEE
    /// 802.3).
    pub const LINE_OVERHEAD: u32 = 24;

    /// Its length on the wire, without the FCS: what a capture calls the original length.
    pub fn wire_bytes(&self) -> u32 {
        self.bare_bytes().max(Self::MIN_BYTES)
    }

    /// The bytes that it takes of a line, from the preamble to the end of the gap after it.
    pub fn line_bytes(&self) -> u32 {
        self.wire_bytes() + Self::LINE_OVERHEAD
    }

    /// Its length without padding to the shortest frame.
    fn bare_bytes(&self) -> u32 {
        match self {
            Self::Roce(roce) | Self::Damaged(roce) => roce.bytes(),
            Self::Mrc(packet) => packet.bytes(),
            Self::Pfc(_) => Pfc::BYTES,
            Self::Pause(_) => Pause::BYTES,
        }
    }
}

impl Roce {
    /// Its length without padding to the shortest frame.
    fn bytes(&self) -> u32 {
        self.ethernet.bytes() + self.network.bytes(self.version) + self.transport.bytes()
    }
}

impl Frame {
    /// Headers of the network and the UDP source port; none where a frame has no IP header.
    pub(crate) fn network(&self) -> Option<(&Network, u16)> {
        match self {
            Self::Roce(roce) | Self::Damaged(roce) => Some((
                &roce.network,
                match roce.version {
                    Version::V2 { source_port } => source_port,
                    Version::V1 => 0,
                },
            )),
            Self::Mrc(packet) => Some((&packet.network, packet.source_port)),
            Self::Pfc(_) | Self::Pause(_) => None,
        }
    }
}

impl From<Roce> for Frame {
    fn from(roce: Roce) -> Self {
        Self::Roce(roce)
    }
}

/// Appends the bytes of `frame`, without the FCS.
pub fn encode(frame: &Frame, out: &mut Vec<u8>) {
    encode_within(frame, usize::MAX, out);
}

/// Appends the first `most` bytes of `frame`. The ICRC is computed only if it is among them.
pub fn encode_within(frame: &Frame, most: usize, out: &mut Vec<u8>) {
    let start = out.len();
    match frame {
        Frame::Roce(roce) => roce.encode(most, out),
        Frame::Damaged(roce) => {
            roce.encode(most, out);
            let end = start + usize::try_from(roce.bytes()).unwrap_or(usize::MAX - start);
            // The last byte of the ICRC, if it is there.
            if let Some(byte) = out.get_mut(end - 1) {
                *byte ^= 1;
            }
        }
        Frame::Mrc(packet) => packet.encode(out),
        Frame::Pfc(pfc) => pfc.encode(out),
        Frame::Pause(pause) => pause.encode(out),
    }
    let whole = out.len() - start;
    let least = usize::try_from(Frame::MIN_BYTES).unwrap_or(0);
    // A frame that was cut has all that is wanted of it already.
    if whole < least && whole < most {
        out.resize(start + least, 0);
    }
    out.truncate(start.saturating_add(most));
}

impl Roce {
    /// Appends the packet, or at least its first `most` bytes.
    fn encode(&self, most: usize, out: &mut Vec<u8>) {
        let start = out.len();
        let transport_bytes = self.transport.bytes();
        let ether_type = match self.version {
            Version::V1 => ROCE_V1,
            Version::V2 { .. } => self.network.ether_type(),
        };
        self.ethernet.encode(ether_type, out);
        let network_offset = out.len() - start;
        match self.version {
            Version::V1 => self.network.encode_v6(IBA_TRANSPORT, transport_bytes, out),
            Version::V2 { source_port } => {
                self.network
                    .encode_ip(UDP, network::UDP_BYTES + transport_bytes, out);
                network::encode_udp(
                    source_port,
                    roce_wire::network::udp::ROCE_V2,
                    transport_bytes,
                    out,
                );
            }
        }
        let bth_offset = out.len() - start;
        self.transport.encode_headers(out);
        let end = bth_offset + usize::try_from(transport_bytes - ICRC_BYTES).unwrap_or(usize::MAX);
        self.transport
            .encode_payload(most.min(end).saturating_sub(out.len() - start), out);
        // The padding, as far as it is wanted.
        let wanted = start + end.min(most);
        if out.len() < wanted {
            out.resize(wanted, 0);
        }
        if most <= end {
            return;
        }
        let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        let fields = roce_wire::Roce {
            bth: out
                .get(start + bth_offset..)
                .and_then(<[u8]>::first_chunk)
                .map(|bytes| Bth(*bytes))
                .unwrap_or_default(),
            payload_bytes: self.transport.payload_bytes(),
            network_offset: place(network_offset),
            bth_offset: place(bth_offset),
            carrier: self.network.carrier(self.version),
            ..roce_wire::Roce::default()
        };
        let icrc = out
            .get(start..)
            .and_then(|frame| icrc::compute(frame, &fields))
            .unwrap_or(0);
        out.extend_from_slice(&icrc.to_le_bytes());
    }
}
