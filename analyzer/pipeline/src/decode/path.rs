//! The path of a packet through the network, as its IPv6 headers choose it.

use roce_wire::network::ipv6::Ipv6;
use roce_wire::network::srv6;
use roce_wire::{Address, Carrier, Roce, Through};

/// Fields of IPv6 by which switches choose a path.
pub(super) struct ChosenPath {
    /// The low 16 bits of the flow label, which carry entropy; `None`: IPv4.
    pub(super) flow_label: Option<u16>,
    /// Source and destination of the outer header of SRv6.
    pub(super) outer: Option<[Address; 2]>,
}

impl ChosenPath {
    /// The path of the packet in a frame; `None`: the frame ends before the network header.
    pub(super) fn read(frame: &[u8], roce: &Roce) -> Option<Self> {
        let network = usize::from(roce.network_offset);
        let flow_label = match roce.carrier {
            Carrier::RoceV2Ipv6 => frame
                .get(network..)?
                .first_chunk()
                .map(|bytes| low(Ipv6(bytes).flow_label())),
            _ => None,
        };
        let outer = srv6::outer(frame, network).filter(|_| roce.through.has(Through::IP_IN_IP));
        Some(Self {
            flow_label,
            outer: outer.map(|ip| [ip.source(), ip.destination()]),
        })
    }
}

/// A hash of the link header (addresses; of a cooked one interface and direction) and the TTL.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the high bits of the product are the hash"
)]
pub(crate) fn path_hash(frame: &[u8], roce: &Roce) -> u16 {
    let head = frame
        .first_chunk::<16>()
        .map_or(0, |head| u128::from_le_bytes(*head));
    let folded = head as u64 ^ ((head >> 32) as u64).rotate_left(29) ^ u64::from(roce.hop_limit) << 56;
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u16
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
const fn low(label: u32) -> u16 {
    label as u16
}
