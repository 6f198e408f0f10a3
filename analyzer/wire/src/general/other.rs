//! A cheap answer for the other traffic of a mixed capture.

use crate::bytes::chunk;
use crate::frame::ethernet::{self, Ethernet};
use crate::frame::sll2::LinuxSll2;
use crate::frame::vlan::Vlan;
use crate::network::ipv4::Ipv4;
use crate::network::ipv6::Ipv6;
use crate::network::udp::{self, Udp};
use crate::{AssignedNumbers, LinkType};

/// Protocol numbers (IANA).
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
/// EtherTypes of common frames that are no RoCE.
const ARP: u16 = 0x0806;
const LLDP: u16 = 0x88cc;

/// True if a frame is surely nothing that the decoder follows: TCP, ICMP, UDP to other ports, ARP, LLDP.
/// `false` says nothing.
#[inline]
pub(crate) fn is_other(link: LinkType, frame: &[u8], assigned: AssignedNumbers) -> bool {
    let (ether_type, at) = match link {
        LinkType::ETHERNET => match frame.first_chunk() {
            Some(bytes) => match (Ethernet(bytes).ether_type(), chunk(frame, 14)) {
                (ethernet::VLAN, Some(tag)) => (Vlan(tag).ether_type(), 18),
                (ether_type, _) => (ether_type, 14),
            },
            None => return false,
        },
        LinkType::LINUX_SLL2 => match frame.first_chunk() {
            Some(bytes) => (LinuxSll2(bytes).protocol(), LinuxSll2::BYTES),
            None => return false,
        },
        _ => return false,
    };
    // Start of the UDP header, if IP's length has room for it.
    let (protocol, udp) = match ether_type {
        ARP | LLDP => return true,
        ethernet::IPV4 => match chunk(frame, at).map(Ipv4) {
            Some(ip) if ip.0[0] == 0x45 && !ip.is_fragment() => {
                (ip.protocol(), (ip.total_length() >= 28).then_some(at + 20))
            }
            _ => return false,
        },
        ethernet::IPV6 => match chunk(frame, at).map(Ipv6) {
            Some(ip) if ip.version() == 6 => {
                (ip.next_header(), (ip.payload_length() >= 8).then_some(at + 40))
            }
            _ => return false,
        },
        _ => return false,
    };
    match protocol {
        TCP | ICMP | ICMPV6 => true,
        UDP => udp.and_then(|at| chunk(frame, at)).is_some_and(|bytes| {
            let port = Udp(bytes).destination_port();
            !matches!(
                port,
                udp::ROCE_V2 | udp::MRC | udp::UET | udp::VXLAN | udp::GENEVE
            ) && port != assigned.mrc_port
        }),
        _ => false,
    }
}
