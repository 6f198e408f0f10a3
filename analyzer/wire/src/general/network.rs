//! IP, its options and extension headers, fragments, UDP.

use super::walk::{Next, Walk, narrow};
use crate::network::ifa::{self, Ifa, IfaMetadata};
use crate::network::ioam;
use crate::network::ipv4::Ipv4;
use crate::network::ipv6::{Ipv6, Ipv6Fragment};
use crate::network::udp::{self, Udp};
use crate::transport::mrc;
use crate::transport::uet::Prologue;
use crate::{Bth, Carrier, Content, Layer, Other, Stop, Through};
use etherparse::err::ip_auth::HeaderSliceError;
use etherparse::{IpAuthHeaderSlice, Ipv6RawExtHeaderSlice};

/// Protocol numbers (IANA).
const IPV4_IN_IP: u8 = 4;
const UDP: u8 = 17;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const MPLS_IN_IP: u8 = 137;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;

impl Walk<'_> {
    pub(super) fn ip(&mut self) -> Result<Next, Stop> {
        match self.peek(0) {
            None => Err(self.stop(Layer::Ipv4, self.at, Ipv4::BYTES)),
            Some([first]) => Ok(match first >> 4 {
                4 => Next::Ipv4,
                6 => Next::Ipv6,
                _ => Next::Done,
            }),
        }
    }

    pub(super) fn ipv4(&mut self) -> Result<Next, Stop> {
        let start = self.at;
        let ip = Ipv4(self.take(Layer::Ipv4)?);
        let header = usize::from(ip.header_bytes());
        let Some(options) = header.checked_sub(Ipv4::BYTES).filter(|_| ip.version() == 4) else {
            return Ok(Next::Done);
        };
        if options > 0 {
            self.skip(options, Layer::Ipv4, start)?;
            self.roce.through = self.roce.through.and(Through::IPV4_OPTIONS);
        }
        self.limit(Layer::Ipv4, start, usize::from(ip.total_length()));
        self.roce.network_offset = self.offset(Layer::Ipv4, start, header)?;
        self.roce.source = ip.source();
        self.roce.destination = ip.destination();
        self.roce.ip_id = ip.identification();
        self.roce.traffic_class = ip.traffic_class();
        self.roce.hop_limit = ip.ttl();
        self.roce.carrier = Carrier::RoceV2Ipv4;
        if ip.fragment_offset() > 0 {
            return Ok(self.later_fragment(ip.protocol()));
        }
        self.fragmented = ip.more_fragments();
        Ok(Next::Protocol(ip.protocol()))
    }

    pub(super) fn ipv6(&mut self) -> Result<Next, Stop> {
        let start = self.at;
        let ip = Ipv6(self.take(Layer::Ipv6)?);
        if ip.version() != 6 {
            return Ok(Next::Done);
        }
        let payload = usize::from(ip.payload_length());
        self.limit(
            Layer::Ipv6,
            start,
            if payload == 0 { 0 } else { Ipv6::BYTES + payload },
        );
        self.roce.network_offset = self.offset(Layer::Ipv6, start, Ipv6::BYTES)?;
        self.roce.source = ip.source();
        self.roce.destination = ip.destination();
        self.roce.ip_id = 0;
        self.roce.traffic_class = ip.traffic_class();
        self.roce.hop_limit = ip.hop_limit();
        self.roce.carrier = Carrier::RoceV2Ipv6;
        self.fragmented = false;
        self.extensions(ip.next_header())
    }

    /// The extension headers of IPv6, one after the other. etherparse reads each of them by its checked constructor;
    /// its iterator over a whole chain (0.21) reads beyond the end of one that was cut, and is not for captures.
    fn extensions(&mut self, first: u8) -> Result<Next, Stop> {
        let mut protocol = first;
        loop {
            let start = self.at;
            let length = match protocol {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
                    let header = Ipv6RawExtHeaderSlice::from_slice(self.rest())
                        .map_err(|cut| self.stop(Layer::Ipv6Extension, start, cut.required_len))?;
                    if matches!(protocol, HOP_BY_HOP | DESTINATION_OPTIONS) {
                        self.find_ioam(start, header.slice());
                    }
                    protocol = header.next_header().0;
                    header.slice().len()
                }
                AUTHENTICATION => match IpAuthHeaderSlice::from_slice(self.rest()) {
                    Ok(header) => {
                        protocol = header.next_header().0;
                        header.slice().len()
                    }
                    Err(HeaderSliceError::Len(cut)) => {
                        return Err(self.stop(Layer::Ipv6Extension, start, cut.required_len));
                    }
                    // A length of zero, which is none.
                    Err(HeaderSliceError::Content(_)) => return Ok(Next::Done),
                },
                FRAGMENT => {
                    let fragment = Ipv6Fragment(self.take(Layer::Ipv6Extension)?);
                    self.roce.through = self.roce.through.and(Through::IPV6_EXTENSION);
                    protocol = fragment.next_header();
                    if fragment.fragment_offset() > 0 {
                        return Ok(self.later_fragment(protocol));
                    }
                    self.fragmented |= fragment.more_fragments();
                    continue;
                }
                _ => return Ok(Next::Protocol(protocol)),
            };
            self.skip(length, Layer::Ipv6Extension, start)?;
            self.roce.through = self.roce.through.and(Through::IPV6_EXTENSION);
        }
    }

    /// Notes the first trace of IOAM among the options of an extension header.
    fn find_ioam(&mut self, start: usize, header: &[u8]) {
        if self.telemetry.ioam.is_none()
            && let Some((at, length)) = ioam::find(header)
            && let (Ok(at), Ok(length)) = (u16::try_from(start + at), u8::try_from(length))
        {
            self.telemetry.ioam = Some((at, length));
        }
    }

    /// A fragment that is not the first has no UDP header, so its protocol is unknown.
    fn later_fragment(&mut self, protocol: u8) -> Next {
        if protocol == UDP {
            self.content = Content::Fragment;
        }
        Next::Done
    }

    pub(super) fn protocol(&mut self, protocol: u8) -> Result<Next, Stop> {
        match protocol {
            UDP => self.udp(),
            GRE => self.gre(),
            ifa::PROTOCOL => self.ifa(),
            MPLS_IN_IP => self.mpls(),
            IPV4_IN_IP => {
                self.enter(Layer::Ipv4, Ipv4::BYTES, Through::IP_IN_IP)?;
                Ok(Next::Ipv4)
            }
            IPV6_IN_IP => {
                self.enter(Layer::Ipv6, Ipv6::BYTES, Through::IP_IN_IP)?;
                Ok(Next::Ipv6)
            }
            _ => Ok(Next::Done),
        }
    }

    /// Telemetry of switches around a UDP header. Steps over it, to the BTH of the packet itself. A copy that carries telemetry beside its
    /// packet is no packet; and nothing is read behind a layout that is not known.
    fn ifa(&mut self) -> Result<Next, Stop> {
        let start = self.at;
        let header = Ifa(self.take(Layer::Ifa)?);
        let is_known = header.version() == 2 && header.next_header() == UDP && !header.has_unknown_layout();
        if !is_known {
            return Ok(Next::Done);
        }
        let udp = Udp(self.take(Layer::Udp)?);
        if udp.destination_port() != udp::ROCE_V2 {
            return Ok(Next::Done);
        }
        let mut telemetry = 0;
        if !header.has_tail() {
            let place = self.at;
            let stack = IfaMetadata(self.take(Layer::Ifa)?).stack_bytes();
            self.skip(stack, Layer::Ifa, place)?;
            self.telemetry.ifa = u16::try_from(place).ok();
            telemetry = IfaMetadata::BYTES + stack;
        }
        self.roce.udp_source_port = udp.source_port();
        if !header.is_in_band() {
            return self.telemetry_copy();
        }
        // Switches leave the length of UDP as it was. One that adds what it inserts is understood as well.
        let (length, had) = (
            usize::from(udp.length()),
            self.end.saturating_sub(start + Ifa::BYTES),
        );
        let own = [
            length.checked_sub(Udp::BYTES),
            length.checked_sub(Udp::BYTES + telemetry),
        ];
        let whole = match had.checked_sub(Udp::BYTES + telemetry) {
            Some(rest) if header.has_tail() => own[0].filter(|own| *own <= rest),
            Some(rest) => own.into_iter().flatten().find(|own| *own == rest),
            None => None,
        };
        let Some(whole) = whole else {
            return Ok(Next::Done);
        };
        self.limit(Layer::Udp, self.at, whole);
        self.roce.through = self.roce.through.and(Through::IFA);
        self.transport(Some(whole))
    }

    /// A copy of a packet that carries telemetry beside it: the packet's flow is known, and nothing of it counts.
    fn telemetry_copy(&mut self) -> Result<Next, Stop> {
        if self.telemetry.ifa.is_none() {
            return Ok(Next::Done);
        }
        let start = self.at;
        self.roce.bth = Bth(*self.take(Layer::Bth)?);
        self.roce.bth_offset = self.offset(Layer::Bth, start, Bth::BYTES)?;
        self.content = Content::Copy(self.roce);
        Ok(Next::Done)
    }

    /// Ultra Ethernet Transport: `whole` is the length behind the UDP header, `None` when it cannot be believed.
    fn uet(&mut self, whole: Option<usize>) -> Result<Next, Stop> {
        let start = self.at;
        let Some(headers) = self.peek(0).and_then(|bytes| Prologue(*bytes).header_bytes()) else {
            return Ok(Next::Done);
        };
        if whole.is_some_and(|whole| whole < headers) {
            return Ok(Next::Done);
        }
        self.roce.bth_offset = self.offset(Layer::Uet, start, headers)?;
        self.roce.payload_bytes = whole.map_or(0, narrow);
        self.content = Content::Uet(self.roce);
        self.skip(headers, Layer::Uet, start)?;
        Ok(Next::Done)
    }

    fn udp(&mut self) -> Result<Next, Stop> {
        let start = self.at;
        // The ports may be there when the header is cut.
        if self.peek(2).map(|port| u16::from_be_bytes(*port)) == Some(udp::ROCE_V2) {
            self.content = Content::Other(Other::Undecodable);
        }
        let udp = Udp(self.take(Layer::Udp)?);
        let length = usize::from(udp.length());
        let port = match udp.destination_port() {
            port if port == self.assigned.mrc_port => udp::MRC,
            port => port,
        };
        match port {
            udp::MRC if !self.peek(0).is_some_and(|[code]| mrc::is_opcode(*code)) => Ok(Next::Done),
            udp::ROCE_V2 | udp::MRC => {
                self.roce.udp_source_port = udp.source_port();
                let known = self.limit(Layer::Udp, start, length);
                let whole = if length == 0 {
                    self.end.saturating_sub(start)
                } else {
                    length
                };
                let transport = if known {
                    whole.checked_sub(Udp::BYTES)
                } else {
                    None
                };
                self.transport(transport)
            }
            udp::UET => {
                self.roce.udp_source_port = udp.source_port();
                let known = self.limit(Layer::Udp, start, length);
                self.uet(if known {
                    length.checked_sub(Udp::BYTES)
                } else {
                    None
                })
            }
            udp::VXLAN => {
                self.limit(Layer::Udp, start, length);
                self.vxlan()
            }
            udp::GENEVE => {
                self.limit(Layer::Udp, start, length);
                self.geneve()
            }
            _ => Ok(Next::Done),
        }
    }
}
