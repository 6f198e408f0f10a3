//! Link types, Ethernet, tags and MAC control.

use super::walk::{Next, Walk};
use crate::fast;
use crate::frame::csig::{Csig, WideCsig};
use crate::frame::erf::{Erf, ErfKind};
use crate::frame::ethernet::{self, Ethernet};
use crate::frame::loopback::Loopback;
use crate::frame::sll::{self, LinuxSll};
use crate::frame::sll2::LinuxSll2;
use crate::frame::vlan::{self, Vlan};
use crate::network::lrh::{LinkNextHeader, Lrh};
use crate::{Content, Layer, LinkType, Other, Pause, PauseKind, Stop, Through};

impl Walk<'_> {
    /// The first header, by the link type.
    pub(super) fn link(&mut self, link: LinkType) -> Result<Next, Stop> {
        match link {
            LinkType::ETHERNET => Ok(Next::Ethernet),
            LinkType::RAW => Ok(Next::Ip),
            LinkType::IPV4 => Ok(Next::Ipv4),
            LinkType::IPV6 => Ok(Next::Ipv6),
            LinkType::INFINIBAND => Ok(Next::Lrh),
            LinkType::LINUX_SLL => {
                let sll = LinuxSll(self.take(Layer::LinuxSll)?);
                Ok(cooked(sll.device_type(), sll.protocol()))
            }
            LinkType::LINUX_SLL2 => {
                let sll = LinuxSll2(self.take(Layer::LinuxSll2)?);
                Ok(cooked(sll.device_type(), sll.protocol()))
            }
            LinkType::NULL | LinkType::LOOP => {
                let loopback = Loopback(self.take(Layer::Link)?);
                Ok(if loopback.is_ip() { Next::Ip } else { Next::Done })
            }
            LinkType::ERF => self.erf(),
            LinkType::USER0 if self.looks_like_infiniband() => Ok(Next::Lrh),
            _ => {
                self.content = Content::Other(Other::UnknownLink);
                Ok(Next::Done)
            }
        }
    }

    /// USER0 may hold anything: InfiniBand has link version 0, a transport header, and a length that fits the frame.
    fn looks_like_infiniband(&self) -> bool {
        self.peek(0).is_some_and(|bytes| {
            let lrh = Lrh(bytes);
            let transport = matches!(lrh.next_header(), LinkNextHeader::Local | LinkNextHeader::Global);
            let length = usize::from(lrh.packet_bytes());
            // The packet, and perhaps its VCRC.
            let fits = length >= 8 + 12 + 4 && (length == self.original || length + 2 == self.original);
            lrh.link_version() == 0 && transport && fits
        })
    }

    fn erf(&mut self) -> Result<Next, Stop> {
        let erf = Erf(self.take(Layer::Erf)?);
        let mut more = erf.has_extension();
        while more {
            let extension: &[u8; Erf::EXTENSION_BYTES] = self.take(Layer::Erf)?;
            more = extension[0] & 0x80 != 0;
        }
        if erf.kind() == ErfKind::Ethernet {
            self.skip(Erf::ETHERNET_PADDING, Layer::Erf, self.at)?;
        }
        // The capture's own length is that of the record, which the card may have cut.
        self.original = self.original.max(self.at + usize::from(erf.wire_length()));
        self.end = self.original;
        Ok(match erf.kind() {
            ErfKind::Ethernet => Next::Ethernet,
            ErfKind::Infiniband => Next::Lrh,
            ErfKind::Ip => Next::Ip,
            ErfKind::Other => Next::Done,
        })
    }

    pub(super) fn ethernet(&mut self) -> Result<Next, Stop> {
        if self.tunnels > 0 && self.again() {
            return Ok(Next::Done);
        }
        let bytes = self.take(Layer::Ethernet)?;
        self.ethernet = Some(bytes);
        Ok(Next::EtherType(Ethernet(bytes).ether_type()))
    }

    /// Behind a tunnel the fast path may take the rest.
    fn again(&mut self) -> bool {
        let original = u32::try_from(self.end.saturating_sub(self.at)).unwrap_or(u32::MAX);
        let (Some(mut roce), Ok(at)) = (
            fast::decode(LinkType::ETHERNET, self.rest(), original),
            u16::try_from(self.at),
        ) else {
            return false;
        };
        let (Some(network), Some(bth)) = (
            roce.network_offset.checked_add(at),
            roce.bth_offset.checked_add(at),
        ) else {
            return false;
        };
        roce.network_offset = network;
        roce.bth_offset = bth;
        roce.through = roce.through.and(self.roce.through);
        roce.vni = self.roce.vni;
        self.content = Content::Roce(roce);
        true
    }

    pub(super) fn ether_type(&mut self, ether_type: u16) -> Result<Next, Stop> {
        match ether_type {
            ethernet::IPV4 => Ok(Next::Ipv4),
            ethernet::IPV6 => Ok(Next::Ipv6),
            ethernet::ROCE_V1 => self.roce_v1(),
            ethernet::MPLS | ethernet::MPLS_UPSTREAM => self.mpls(),
            ethernet::MAC_CONTROL => self.mac_control(),
            _ if vlan::is_tag(ether_type) => {
                let vlan = Vlan(self.take(Layer::Vlan)?);
                self.roce.vlan = Some(vlan.tag());
                self.roce.through = self.roce.through.and(Through::VLAN);
                Ok(Next::EtherType(vlan.ether_type()))
            }
            _ if Some(ether_type) == self.assigned.wide_csig => {
                let place = self.at;
                let tag = WideCsig(self.take(Layer::Csig)?);
                self.telemetry.csig = u16::try_from(place).ok();
                self.telemetry.is_wide = true;
                self.roce.through = self.roce.through.and(Through::CSIG);
                Ok(Next::EtherType(tag.ether_type()))
            }
            _ if ether_type == self.assigned.csig => {
                self.telemetry.csig = u16::try_from(self.at).ok();
                let tag = Csig(self.take(Layer::Csig)?);
                self.roce.through = self.roce.through.and(Through::CSIG);
                Ok(Next::EtherType(tag.ether_type()))
            }
            _ => Ok(Next::Done),
        }
    }

    fn mac_control(&mut self) -> Result<Next, Stop> {
        let start = self.at;
        let opcode = u16::from_be_bytes(*self.take(Layer::MacControl)?);
        let (kind, expected) = match opcode {
            0x0001 => (PauseKind::Link, 1),
            0x0101 => (PauseKind::Priority, 8),
            _ => return Ok(Next::Done),
        };
        let ethernet = self.ethernet.map(Ethernet);
        let mut pause = Pause {
            source: ethernet.map(|e| e.source()).unwrap_or_default(),
            destination: ethernet.map(|e| e.destination()).unwrap_or_default(),
            kind,
            enabled: 0,
            quanta: [0; 8],
            present: 0,
        };
        if kind == PauseKind::Priority {
            let vector: &[u8; 2] = self.take(Layer::MacControl)?;
            pause.enabled = vector[1];
        }
        let fields = self.at - start + 2 * expected;
        for (quanta, bytes) in pause
            .quanta
            .iter_mut()
            .take(expected)
            .zip(self.rest().as_chunks().0)
        {
            *quanta = u16::from_be_bytes(*bytes);
            pause.present += 1;
        }
        self.content = Content::Pause(pause);
        // Fewer quanta in the frame itself are tolerated; fewer in what was captured of it are not all there is.
        if usize::from(pause.present) < expected && self.frame.len() < self.original {
            return Err(self.stop(Layer::MacControl, start, fields));
        }
        Ok(Next::Done)
    }
}

fn cooked(device_type: u16, protocol: u16) -> Next {
    if sll::has_ether_type(device_type) {
        Next::EtherType(protocol)
    } else {
        Next::Done
    }
}
