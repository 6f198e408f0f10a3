//! The fast path: RoCEv2 over Ethernet (up to two tags), Linux cooked captures or raw IP, with IPv4 without options or
//! IPv6 without extension headers, and RoCEv1 over Ethernet, at fixed offsets. That is nearly all traffic.
//!
//! It takes a packet only when all its headers were captured and all its lengths agree. Everything else, odd or cut,
//! is left to the general path, which gives the same for the packets that both can read.

use crate::bytes::chunk;
use crate::frame::ethernet::{self, Ethernet};
use crate::frame::sll::{self, LinuxSll};
use crate::frame::sll2::LinuxSll2;
use crate::frame::vlan::Vlan;
use crate::network::grh::Grh;
use crate::network::ipv4::Ipv4;
use crate::network::ipv6::Ipv6;
use crate::network::udp::{self, Udp};
use crate::transport::mrc;
use crate::{Aeth, Bth, Carrier, ExtendedHeaders, LinkType, Roce, Through, VlanTag};

/// The protocol number of UDP (IANA).
const UDP: u8 = 17;

/// Decodes a plain RoCEv2 frame of `link` that had `original` bytes on the wire, without the FCS.
///
/// `None`: it is not for the fast path, or not surely whole; the general path decides.
#[inline]
pub fn decode(link: LinkType, frame: &[u8], original: u32) -> Option<Roce> {
    let mut roce = Roce::default();
    decode_into(link, frame, original, &mut roce).then_some(roce)
}

/// Decodes into an existing value, and returns true if the frame was decoded. A loop over frames saves
/// two copies of each packet.
#[inline]
pub fn decode_into(link: LinkType, frame: &[u8], original: u32, into: &mut Roce) -> bool {
    match link {
        LinkType::ETHERNET => decode_ethernet(frame, original, into).is_some(),
        _ => decode_other(link, frame, original, into).is_some(),
    }
}

fn decode_other(link: LinkType, frame: &[u8], original: u32, into: &mut Roce) -> Option<()> {
    match link {
        LinkType::LINUX_SLL2 => {
            let sll = LinuxSll2(frame.first_chunk()?);
            decode_cooked::<20>(sll.device_type(), sll.protocol(), frame, original, into)
        }
        LinkType::LINUX_SLL => {
            let sll = LinuxSll(frame.first_chunk()?);
            decode_cooked::<16>(sll.device_type(), sll.protocol(), frame, original, into)
        }
        LinkType::RAW => decode_ipv4::<0>(frame, original, None, into)
            .or_else(|| decode_ipv6::<0>(frame, original, None, into)),
        LinkType::IPV4 => decode_ipv4::<0>(frame, original, None, into),
        LinkType::IPV6 => decode_ipv6::<0>(frame, original, None, into),
        _ => None,
    }
}

#[inline]
fn decode_ethernet(frame: &[u8], original: u32, into: &mut Roce) -> Option<()> {
    match Ethernet(frame.first_chunk()?).ether_type() {
        ethernet::IPV4 => decode_ipv4::<14>(frame, original, None, into),
        ethernet::IPV6 => decode_ipv6::<14>(frame, original, None, into),
        ethernet::VLAN | ethernet::SERVICE_VLAN => decode_tagged(frame, original, into),
        ethernet::ROCE_V1 => decode_grh::<14>(frame, original, None, into),
        _ => None,
    }
}

fn decode_tagged(frame: &[u8], original: u32, into: &mut Roce) -> Option<()> {
    let outer = Vlan(chunk(frame, 14)?);
    let tag = Some(outer.tag());
    match outer.ether_type() {
        ethernet::IPV4 => return decode_ipv4::<18>(frame, original, tag, into),
        ethernet::IPV6 => return decode_ipv6::<18>(frame, original, tag, into),
        ethernet::ROCE_V1 => return decode_grh::<18>(frame, original, tag, into),
        ethernet::VLAN | ethernet::SERVICE_VLAN => {}
        _ => return None,
    }
    let inner = Vlan(chunk(frame, 18)?);
    let tag = Some(inner.tag());
    match inner.ether_type() {
        ethernet::IPV4 => decode_ipv4::<22>(frame, original, tag, into),
        ethernet::IPV6 => decode_ipv6::<22>(frame, original, tag, into),
        ethernet::ROCE_V1 => decode_grh::<22>(frame, original, tag, into),
        _ => None,
    }
}

#[inline]
fn decode_cooked<const AT: u16>(
    device_type: u16,
    protocol: u16,
    frame: &[u8],
    original: u32,
    into: &mut Roce,
) -> Option<()> {
    match protocol {
        ethernet::IPV4 if sll::has_ether_type(device_type) => decode_ipv4::<AT>(frame, original, None, into),
        ethernet::IPV6 if sll::has_ether_type(device_type) => decode_ipv6::<AT>(frame, original, None, into),
        _ => None,
    }
}

/// A packet of the transport headers, the tag and the offsets of network header and BTH, with the fields of the network header.
macro_rules! packet {
    ($transport:ident, $bth:ident, $vlan:ident, $network:expr, $place:expr; $($field:ident: $value:expr,)+) => {
        Roce {
            bth: $bth,
            aeth: $transport.aeth,
            dma_length: $transport.dma_length,
            source_qpn: $transport.source_qpn,
            payload_bytes: $transport.payload_bytes,
            vni: None,
            network_offset: $network,
            bth_offset: $place,
            vlan: $vlan,
            through: through($vlan),
            seen: $transport.seen,
            $($field: $value,)+
        }
    };
}

/// IPv4 at offset `AT`: 20 + 8 + 12 bytes of headers and 4 more, the ICRC of the shortest packet.
#[inline]
fn decode_ipv4<const AT: u16>(
    frame: &[u8],
    original: u32,
    vlan: Option<VlanTag>,
    into: &mut Roce,
) -> Option<()> {
    let head: &[u8; 44] = chunk(frame, usize::from(AT))?;
    let ip = Ipv4(chunk(head, 0)?);
    let udp = Udp(chunk(head, 20)?);
    let length = u32::from(udp.length());
    let plain = ip.0[0] == 0x45
        && ip.protocol() == UDP
        && is_port(udp, head[28])
        && !ip.is_fragment()
        && u32::from(ip.total_length()) == length + 20;
    if !plain {
        return None;
    }
    let bth = Bth(*chunk(head, 28)?);
    let mut transport = Transport::parse(frame, bth, AT + 28, length, original)?;
    if bth.0[0] >= mrc::FIRST_OPCODE {
        transport.seen = seen_of_vendor(frame, AT + 28, length);
    }
    *into = packet!(transport, bth, vlan, AT, AT + 28;
        source: ip.source(),
        destination: ip.destination(),
        udp_source_port: udp.source_port(),
        ip_id: ip.identification(),
        traffic_class: ip.traffic_class(),
        hop_limit: ip.ttl(),
        carrier: Carrier::RoceV2Ipv4,
    );
    Some(())
}

/// IPv6 at offset `AT`: 40 + 8 + 12 + 4 bytes.
#[inline]
fn decode_ipv6<const AT: u16>(
    frame: &[u8],
    original: u32,
    vlan: Option<VlanTag>,
    into: &mut Roce,
) -> Option<()> {
    let head: &[u8; 64] = chunk(frame, usize::from(AT))?;
    let ip = Ipv6(chunk(head, 0)?);
    let udp = Udp(chunk(head, 40)?);
    let plain = ip.version() == 6
        && ip.next_header() == UDP
        && is_port(udp, head[48])
        && ip.payload_length() == udp.length();
    if !plain {
        return None;
    }
    let bth = Bth(*chunk(head, 48)?);
    let length = u32::from(udp.length());
    let mut transport = Transport::parse(frame, bth, AT + 48, length, original)?;
    if bth.0[0] >= mrc::FIRST_OPCODE {
        transport.seen = seen_of_vendor(frame, AT + 48, length);
    }
    *into = packet!(transport, bth, vlan, AT, AT + 48;
        source: ip.source(),
        destination: ip.destination(),
        udp_source_port: udp.source_port(),
        ip_id: 0,
        traffic_class: ip.traffic_class(),
        hop_limit: ip.hop_limit(),
        carrier: Carrier::RoceV2Ipv6,
    );
    Some(())
}

/// A GRH at offset `AT`: 40 + 12 + 4 bytes. Its payload length is what a UDP length says but for the 8 bytes of UDP.
fn decode_grh<const AT: u16>(
    frame: &[u8],
    original: u32,
    vlan: Option<VlanTag>,
    into: &mut Roce,
) -> Option<()> {
    let head: &[u8; 56] = chunk(frame, usize::from(AT))?;
    let grh = Grh(chunk(head, 0)?);
    if grh.next_header() != Grh::IBA_TRANSPORT {
        return None;
    }
    let bth = Bth(*chunk(head, 40)?);
    let length = u32::from(grh.payload_length()) + 8;
    let mut transport = Transport::parse(frame, bth, AT + 40, length, original)?;
    if bth.0[0] >= mrc::FIRST_OPCODE {
        transport.seen = seen_of_vendor(frame, AT + 40, length);
    }
    *into = packet!(transport, bth, vlan, AT, AT + 40;
        source: grh.source(),
        destination: grh.destination(),
        udp_source_port: 0,
        ip_id: 0,
        traffic_class: grh.traffic_class(),
        hop_limit: grh.hop_limit(),
        carrier: Carrier::RoceV1,
    );
    Some(())
}

/// True of RoCEv2's port, and of MRC's if the opcode is one of MRC.
#[inline]
fn is_port(udp: Udp<'_>, code: u8) -> bool {
    udp.destination_port() == udp::ROCE_V2 || udp.destination_port() == udp::MRC && mrc::is_opcode(code)
}

#[inline]
fn through(vlan: Option<VlanTag>) -> Through {
    if vlan.is_some() {
        Through::VLAN
    } else {
        Through::NOTHING
    }
}

/// The headers of a packet with a vendor's opcode, whose BTH is at `at` of the frame: those of MRC, if it may be one. They count as
/// payload until more packets of the queue pair show that it is. `length` is the UDP length. It reads the BTH once more, so that
/// the caller's stays in registers.
#[cold]
fn seen_of_vendor(frame: &[u8], at: u16, length: u32) -> ExtendedHeaders {
    let (at, whole) = (usize::from(at), (length as usize).saturating_sub(Udp::BYTES));
    let captured = frame.len().min(at + whole).saturating_sub(at);
    let header = chunk(frame, at).and_then(|bth| mrc::whole_header(&Bth(*bth), captured, Some(whole)));
    match header {
        Some(_) => ExtendedHeaders::MRC,
        None => ExtendedHeaders::NONE,
    }
}

/// Results of the transport headers.
struct Transport {
    aeth: Aeth,
    dma_length: u32,
    source_qpn: u32,
    payload_bytes: u32,
    seen: ExtendedHeaders,
}

impl Transport {
    /// The headers at `at`, if they are whole and `length`, the UDP length, agrees with them.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "as a call it returns through memory, which costs more than its work"
    )]
    fn parse(frame: &[u8], bth: Bth, at: u16, length: u32, original: u32) -> Option<Self> {
        let opcode = bth.opcode();
        let extended_bytes = opcode.extended_bytes();
        let overhead = 8 + 12 + u32::from(extended_bytes) + u32::from(bth.pad_count()) + 4;
        let payload_bytes = length.checked_sub(overhead)?;
        if u32::from(at) - 8 + length > original {
            return None;
        }
        let at = usize::from(at);
        if frame.len() < at + 12 + usize::from(extended_bytes) {
            return None;
        }
        if extended_bytes == 0 {
            // Nearly all data are the middle of a message: nothing follows the BTH.
            return Some(Self {
                aeth: Aeth::default(),
                dma_length: 0,
                source_qpn: 0,
                payload_bytes,
                seen: ExtendedHeaders::NONE,
            });
        }
        let places = opcode.places();
        // Read without a branch on the opcode: a field that is not there reads bytes of the BTH, and is masked away.
        let word = |place: u8| -> Option<u32> {
            let start = at + usize::from(place);
            let bytes: &[u8; 4] = frame.get(start..start + 4)?.first_chunk()?;
            Some(u32::from_be_bytes(*bytes) & u32::from(place != 0).wrapping_neg())
        };
        Some(Self {
            aeth: Aeth(word(places.aeth)?.to_be_bytes()),
            dma_length: word(places.dma_length)?,
            source_qpn: word(places.source_qpn)? & 0x00ff_ffff,
            payload_bytes,
            seen: opcode.extended(),
        })
    }
}
