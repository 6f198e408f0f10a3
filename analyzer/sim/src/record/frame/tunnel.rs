//! Headers that mirrors and overlays put around a frame: ERSPAN type II and III in GRE
//! (draft-foschiano-erspan-03; Linux include/net/erspan.h), VXLAN (RFC 7348).

use roce_model::Time;

use super::network::{Ethernet, Network, UDP_BYTES, encode_udp};
use super::packet::{Frame, encode_within};

/// A tunnel and its outer headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnel {
    /// The outer Ethernet header.
    pub ethernet: Ethernet,
    /// The outer IP header.
    pub network: Network,
    /// The encapsulation.
    pub kind: TunnelKind,
    /// Limit of the bytes of each frame that the mirror keeps; `None`: all. ERSPAN's T bit says that it
    /// cut.
    pub truncate: Option<u32>,
}

/// The encapsulation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TunnelKind {
    /// ERSPAN type II: GRE protocol 0x88BE with a sequence number, 8 bytes of header.
    ErspanII {
        /// The session, 10 bits.
        session: u16,
        /// The port index, 20 bits: its meaning is the mirror's own.
        index: u32,
    },
    /// ERSPAN type III: GRE protocol 0x22EB with a sequence number, 12 bytes of header.
    ErspanIII {
        /// The session, 10 bits.
        session: u16,
        /// The hardware id, 6 bits: which engine of the mirror took the frame.
        hardware: u8,
        /// The unit of the timestamp.
        granularity: Granularity,
        /// True if frames are mirrored at egress.
        egress: bool,
    },
    /// VXLAN: UDP port 4789.
    Vxlan {
        /// The network identifier, 24 bits.
        identifier: u32,
        /// The outer UDP source port.
        source_port: u16,
    },
}

/// The unit of an ERSPAN III timestamp, which has 32 bits and wraps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Granularity {
    /// 100 us: it wraps after 4.97 days.
    HundredMicroseconds,
    /// 100 ns: it wraps after 429.5 s.
    #[default]
    HundredNanoseconds,
}

/// The protocol number of GRE (IANA).
const GRE: u8 = 47;
/// The protocol number of UDP (IANA).
const UDP: u8 = 17;
/// GRE with a sequence number (RFC 2890): flags and the number.
const GRE_BYTES: u32 = 8;
const ERSPAN_II_BYTES: u32 = 8;
const ERSPAN_III_BYTES: u32 = 12;
const VXLAN_BYTES: u32 = 8;

impl Granularity {
    /// The low 32 bits of `time` in this unit.
    pub const fn stamp(self, time: Time) -> u32 {
        let unit = match self {
            Self::HundredMicroseconds => 100_000,
            Self::HundredNanoseconds => 100,
        };
        ((time.0 / unit) & 0xffff_ffff) as u32
    }
}

impl Tunnel {
    /// Bytes of `frame` inside the tunnel.
    fn kept_bytes(&self, frame: &Frame) -> u32 {
        let whole = frame.wire_bytes();
        self.truncate.map_or(whole, |most| whole.min(most))
    }

    /// Length of the headers behind the IP header, without the frame inside.
    fn inner_header_bytes(&self) -> u32 {
        match self.kind {
            TunnelKind::ErspanII { .. } => GRE_BYTES + ERSPAN_II_BYTES,
            TunnelKind::ErspanIII { .. } => GRE_BYTES + ERSPAN_III_BYTES,
            TunnelKind::Vxlan { .. } => UDP_BYTES + VXLAN_BYTES,
        }
    }

    /// The length of `frame` in the tunnel, without the FCS.
    pub fn wire_bytes(&self, frame: &Frame) -> u32 {
        let headers = self.ethernet.bytes() + self.network.ip_bytes() + self.inner_header_bytes();
        (headers + self.kept_bytes(frame)).max(Frame::MIN_BYTES)
    }

    /// Appends the first `most` bytes of `frame` in the tunnel. `sequence` numbers the frames of a session and `time` is
    /// the mirror's clock: for encapsulations that have such fields.
    pub fn encode(&self, frame: &Frame, sequence: u32, time: Time, most: usize, out: &mut Vec<u8>) {
        let start = out.len();
        let kept = self.kept_bytes(frame);
        let inner = self.inner_header_bytes() + kept;
        self.ethernet.encode(self.network.ether_type(), out);
        let truncated = kept < frame.wire_bytes();
        match self.kind {
            TunnelKind::ErspanII { session, index } => {
                self.network.encode_ip(GRE, inner, out);
                encode_gre(0x88be, sequence, out);
                encode_erspan(1, frame, truncated, session, out);
                out.extend_from_slice(&(index & 0x000f_ffff).to_be_bytes());
            }
            TunnelKind::ErspanIII {
                session,
                hardware,
                granularity,
                egress,
            } => {
                self.network.encode_ip(GRE, inner, out);
                encode_gre(0x22eb, sequence, out);
                encode_erspan(2, frame, truncated, session, out);
                out.extend_from_slice(&granularity.stamp(time).to_be_bytes());
                // No security group tag. P: an Ethernet frame; frame type 0: Ethernet; O: nothing follows.
                let unit = match granularity {
                    Granularity::HundredMicroseconds => 0,
                    Granularity::HundredNanoseconds => 1 << 1,
                };
                let flags = 0x8000 | u16::from(hardware & 0x3f) << 4 | u16::from(egress) << 3 | unit;
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&flags.to_be_bytes());
            }
            TunnelKind::Vxlan {
                identifier,
                source_port,
            } => {
                self.network.encode_ip(UDP, inner, out);
                encode_udp(
                    source_port,
                    roce_wire::network::udp::VXLAN,
                    VXLAN_BYTES + kept,
                    out,
                );
                // The I bit: the identifier is valid.
                out.extend_from_slice(&[0x08, 0, 0, 0]);
                out.extend_from_slice(&(identifier << 8).to_be_bytes());
            }
        }
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        let room = most.saturating_sub(out.len() - start);
        encode_within(frame, room.min(kept), out);
        let least = usize::try_from(Frame::MIN_BYTES).unwrap_or(0).min(most);
        if out.len() - start < least {
            out.resize(start + least, 0);
        }
        out.truncate(start.saturating_add(most));
    }
}

fn encode_gre(protocol: u16, sequence: u32, out: &mut Vec<u8>) {
    // The S bit: a sequence number follows.
    out.extend_from_slice(&[0x10, 0]);
    out.extend_from_slice(&protocol.to_be_bytes());
    out.extend_from_slice(&sequence.to_be_bytes());
}

/// The first 4 bytes, which both types share. The tag of the frame stays in it (encapsulation 3), and VLAN and COS
/// repeat it, as Linux does.
fn encode_erspan(version: u16, frame: &Frame, truncated: bool, session: u16, out: &mut Vec<u8>) {
    let tag = match frame {
        Frame::Roce(roce) | Frame::Damaged(roce) => roce.ethernet.vlan,
        Frame::Mrc(packet) => packet.ethernet.vlan,
        Frame::Pfc(_) | Frame::Pause(_) => None,
    };
    let (vlan, priority) = tag.map_or((0, 0), |tag| (tag.id(), u16::from(tag.priority())));
    // In type III these bits tell bad and short frames instead: none is.
    let encapsulation = if tag.is_some() && version == 1 { 3 } else { 0 };
    let second = priority << 13 | encapsulation << 11 | u16::from(truncated) << 10 | session & 0x03ff;
    out.extend_from_slice(&(version << 12 | vlan).to_be_bytes());
    out.extend_from_slice(&second.to_be_bytes());
}
