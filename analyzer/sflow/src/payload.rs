//! The datagram in a captured frame: UDP over IP, over Ethernet and what `tcpdump -i any` and loopback give.

use std::net::IpAddr;

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use roce_wire::LinkType;
use roce_wire::frame::loopback::Loopback;
use roce_wire::frame::sll::LinuxSll;
use roce_wire::frame::sll2::LinuxSll2;

/// The UDP port of sFlow collectors (IANA: `sflow`).
pub const PORT: u16 = 6343;

/// A datagram as it was captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload<'a> {
    /// Sender by its IP header.
    pub sender: IpAddr,
    /// The bytes there are of it.
    pub bytes: &'a [u8],
    /// It had more bytes: the capture cut it.
    pub is_cut: bool,
}

impl<'a> Payload<'a> {
    /// The payload of a frame, if it is a UDP datagram to `port`. A fragment of a datagram is none.
    pub fn find(link: LinkType, frame: &'a [u8], port: u16) -> Option<Self> {
        let packet = match link {
            LinkType::ETHERNET => LaxSlicedPacket::from_ethernet(frame).ok()?,
            LinkType::LINUX_SLL => {
                let (header, rest) = frame.split_first_chunk()?;
                LaxSlicedPacket::from_ether_type(EtherType(LinuxSll(header).protocol()), rest)
            }
            LinkType::LINUX_SLL2 => {
                let (header, rest) = frame.split_first_chunk()?;
                LaxSlicedPacket::from_ether_type(EtherType(LinuxSll2(header).protocol()), rest)
            }
            LinkType::NULL | LinkType::LOOP => {
                let (header, rest) = frame.split_first_chunk()?;
                if !Loopback(header).is_ip() {
                    return None;
                }
                LaxSlicedPacket::from_ip(rest).ok()?
            }
            LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => LaxSlicedPacket::from_ip(frame).ok()?,
            _ => return None,
        };
        let Some(TransportSlice::Udp(udp)) = &packet.transport else {
            return None;
        };
        if udp.destination_port() != port {
            return None;
        }
        let (sender, is_fragment) = match &packet.net {
            Some(LaxNetSlice::Ipv4(ip)) => (IpAddr::V4(ip.header().source_addr()), ip.payload().fragmented),
            Some(LaxNetSlice::Ipv6(ip)) => (IpAddr::V6(ip.header().source_addr()), ip.payload().fragmented),
            _ => return None,
        };
        let bytes = udp.payload();
        (!is_fragment).then_some(Self {
            sender,
            bytes,
            is_cut: usize::from(udp.length()) > bytes.len() + 8,
        })
    }
}
