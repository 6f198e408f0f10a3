//! Any stack of layers around any packet decodes to what was put in, whole or cut.

use crate::builder::{self, Network, Packet, V4_ENDS, V6_ENDS, Wrap};
use proptest::collection::vec;
use proptest::prelude::*;
use roce_wire::transport::mrc;
use roce_wire::{
    Address, Carrier, Content, CutLimit, DecodedFrame, ExtendedHeaders, LinkType, MirrorKind, Psn, Qpn, Roce,
    Through, decode, fast, general, icrc,
};

#[derive(Clone, Debug)]
struct Stack {
    packet: Packet,
    network: Network,
    traffic_class: u8,
    port: u16,
    /// Tags in front of the packet's own network header.
    tags: Vec<(u16, u16)>,
    /// From the inside out.
    wraps: Vec<Wrap>,
}

/// Opcodes that IBTA 9.2.1 defines, and CNPs, reserved and vendor ones.
fn opcode() -> impl Strategy<Value = u8> {
    prop_oneof![
        8 => (prop_oneof![Just(0_u8), Just(0xa0)], prop_oneof![0_u8..=0x14, 0x16_u8..=0x17, 0x1c_u8..=0x1d])
            .prop_map(|(service, operation)| service | operation),
        2 => 0x20_u8..=0x2b,
        2 => 0x40_u8..=0x54,
        2 => 0x64_u8..=0x65,
        1 => 0x80_u8..=0x81,
        1 => 0xc0_u8..=0xff,
    ]
}

fn packet() -> impl Strategy<Value = Packet> {
    (
        opcode(),
        0_u32..1 << 24,
        0_u32..1 << 24,
        0_u8..4,
        any::<bool>(),
        any::<[u8; 4]>(),
        any::<u32>(),
        0_u32..1 << 24,
        0_usize..300,
    )
        .prop_map(
            |(opcode, qpn, psn, pad, ack_request, aeth, dma_length, source_qpn, payload)| Packet {
                opcode,
                qpn,
                psn,
                pad,
                ack_request,
                aeth,
                dma_length,
                source_qpn,
                payload,
            },
        )
}

fn network() -> impl Strategy<Value = Network> {
    prop_oneof![
        4 => Just(Network::V4 { options: 0 }),
        1 => (1_u8..=10).prop_map(|options| Network::V4 { options }),
        2 => Just(Network::V6 { extensions: 0 }),
        1 => (1_u8..4).prop_map(|extensions| Network::V6 { extensions }),
        1 => Just(Network::V1),
    ]
}

fn wrap() -> impl Strategy<Value = Wrap> {
    prop_oneof![
        (0_u32..1 << 24).prop_map(Wrap::Vxlan),
        (0_u32..1 << 24, 0_u8..64).prop_map(|(vni, options)| Wrap::Geneve { vni, options }),
        any::<[bool; 3]>().prop_map(|[key, sequence, checksum]| Wrap::GreIp {
            key,
            sequence,
            checksum
        }),
        Just(Wrap::GreEthernet),
        Just(Wrap::ErspanI),
        (0_u16..1024, any::<u32>(), 0_u32..1 << 20).prop_map(|(session, sequence, index)| Wrap::ErspanII {
            session,
            sequence,
            index
        }),
        (0_u16..1024, any::<u32>(), any::<u32>(), any::<bool>()).prop_map(
            |(session, sequence, timestamp, platform)| Wrap::ErspanIII {
                session,
                sequence,
                timestamp,
                platform
            }
        ),
        (1_u8..4).prop_map(|labels| Wrap::Mpls { labels }),
        Just(Wrap::IpInIp),
    ]
}

fn tag() -> impl Strategy<Value = (u16, u16)> {
    (prop_oneof![Just(0x8100_u16), Just(0x88a8)], any::<u16>())
}

fn stack() -> impl Strategy<Value = Stack> {
    let wraps = prop_oneof![3 => Just(Vec::new()), 2 => vec(wrap(), 1), 2 => vec(wrap(), 2..=8)];
    (
        packet(),
        network(),
        any::<u8>(),
        any::<u16>(),
        vec(tag(), 0..4),
        wraps,
    )
        .prop_map(|(packet, network, traffic_class, port, tags, wraps)| {
            // IP in IP and MPLS by its first bits carry IP, not a GRH.
            let network = if wraps.is_empty() {
                network
            } else {
                ip_only(network)
            };
            Stack {
                packet,
                network,
                traffic_class,
                port,
                tags,
                wraps,
            }
        })
}

fn ip_only(network: Network) -> Network {
    if network == Network::V1 {
        Network::V4 { options: 0 }
    } else {
        network
    }
}

/// Tunnels that carry a frame rather than an IP packet.
fn has_frame(wrap: Wrap) -> bool {
    !matches!(wrap, Wrap::GreIp { .. } | Wrap::Mpls { .. } | Wrap::IpInIp)
}

impl Stack {
    fn frame(&self) -> Vec<u8> {
        let mut inside = builder::network(&self.packet, self.network, self.traffic_class, self.port);
        let mut tags = &self.tags[..];
        for &wrap in &self.wraps {
            // MPLS in a tunnel that carries IP only: its EtherType goes into GRE, but not into IP.
            if matches!(wrap, Wrap::IpInIp | Wrap::Mpls { .. }) && inside.0 == 0x8847 {
                continue;
            }
            inside = builder::wrap(wrap, tags, inside);
            if has_frame(wrap) {
                tags = &[];
            }
        }
        builder::ethernet(inside.0, tags, inside.1)
    }

    /// Expected result, but for offsets.
    fn check(&self, found: &Roce, decoded: &DecodedFrame) {
        let p = &self.packet;
        assert_eq!(found.bth.opcode().0, p.opcode);
        assert_eq!(found.bth.destination_qpn(), Qpn::new(p.qpn));
        assert_eq!(found.bth.psn(), Psn::new(p.psn));
        assert_eq!(found.bth.ack_request(), p.ack_request);
        assert_eq!(found.bth.pad_count(), p.pad);
        assert_eq!(found.payload_bytes as usize, p.payload);
        let (aeth, reth, deth) = builder::fields(p.opcode);
        let defined = found.bth.opcode().is_defined() && !found.bth.opcode().is_cnp();
        assert_eq!(found.aeth.0, if aeth && defined { p.aeth } else { [0; 4] });
        assert_eq!(found.dma_length, if reth && defined { p.dma_length } else { 0 });
        assert_eq!(found.source_qpn, if deth && defined { p.source_qpn } else { 0 });
        let bytes = p.bytes().len();
        let of_mrc = mrc::whole_header(&found.bth, bytes, Some(bytes)).is_some();
        let opcode = found.bth.opcode();
        assert_eq!(
            found.seen,
            if of_mrc {
                ExtendedHeaders::MRC
            } else {
                opcode.extended()
            }
        );
        let (ends, carrier) = match self.network {
            Network::V4 { .. } => (V4_ENDS.map(Address::v4), Carrier::RoceV2Ipv4),
            Network::V6 { .. } => (V6_ENDS.map(Address::v6), Carrier::RoceV2Ipv6),
            Network::V1 => (V6_ENDS.map(Address::v6), Carrier::RoceV1),
        };
        assert_eq!([found.source, found.destination], ends);
        assert_eq!(found.carrier, carrier);
        assert_eq!((found.traffic_class, found.hop_limit), (self.traffic_class, 61));
        assert_eq!(
            found.udp_source_port,
            if self.network == Network::V1 { 0 } else { self.port }
        );
        assert_eq!(
            found.ip_id,
            if carrier == Carrier::RoceV2Ipv4 { 0x1234 } else { 0 }
        );
        // The tags are the packet's own only if they are in the same frame as its network header.
        let own = self.wraps.first().is_none_or(|&wrap| has_frame(wrap));
        let vlan = self.tags.last().filter(|_| own).map(|tag| tag.1);
        assert_eq!(found.vlan.map(|tag| tag.0), vlan);
        self.check_sessions(found, decoded);
    }

    fn check_sessions(&self, found: &Roce, decoded: &DecodedFrame) {
        let mirror = decoded.mirror;
        // From the outside in.
        let sessions: Vec<Wrap> = self
            .wraps
            .iter()
            .rev()
            .copied()
            .filter(|&wrap| has_frame(wrap))
            .collect();
        let erspan = |wrap: &Wrap| {
            matches!(
                wrap,
                Wrap::ErspanI | Wrap::ErspanII { .. } | Wrap::ErspanIII { .. }
            )
        };
        let expected = match sessions[..] {
            [first, ..] if erspan(&first) => Some(first),
            [first, _, ..] => Some(first),
            _ => None,
        };
        let found_session = mirror.map(|m| (m.kind, m.session, m.sequence, m.timestamp, m.index));
        let expected = expected.map(|wrap| match wrap {
            Wrap::Vxlan(vni) => (MirrorKind::Vxlan, vni, None, None, 0),
            Wrap::Geneve { vni, .. } => (MirrorKind::Geneve, vni, None, None, 0),
            Wrap::ErspanI => (MirrorKind::ErspanI, 0, None, None, 0),
            Wrap::ErspanII {
                session,
                sequence,
                index,
            } => (
                MirrorKind::ErspanII,
                u32::from(session),
                Some(sequence),
                None,
                index,
            ),
            Wrap::ErspanIII {
                session,
                sequence,
                timestamp,
                ..
            } => (
                MirrorKind::ErspanIII,
                u32::from(session),
                Some(sequence),
                Some(timestamp),
                0,
            ),
            _ => (MirrorKind::Gre, 0, None, None, 0),
        });
        assert_eq!(found_session, expected);
        // The innermost frame-carrying tunnel names the packet's own overlay.
        let vni = match sessions.last() {
            Some(Wrap::Vxlan(vni) | Wrap::Geneve { vni, .. }) => Some(*vni),
            _ => None,
        };
        assert_eq!(found.vni, vni);
        for (bit, there) in [
            (Through::VLAN, !self.tags.is_empty()),
            (
                Through::VXLAN,
                sessions.iter().any(|w| matches!(w, Wrap::Vxlan(_))),
            ),
            (
                Through::ERSPAN_II,
                sessions.iter().any(|w| matches!(w, Wrap::ErspanII { .. })),
            ),
            (
                Through::IPV4_OPTIONS,
                matches!(self.network, Network::V4 { options } if options > 0),
            ),
            (
                Through::IPV6_EXTENSION,
                matches!(self.network, Network::V6 { extensions } if extensions > 0),
            ),
        ] {
            assert_eq!(found.through.has(bit), there, "{bit}");
        }
    }
}

fn original(frame: &[u8]) -> u32 {
    u32::try_from(frame.len()).expect("short")
}

proptest! {
    #[test]
    fn what_is_put_in_comes_out(stack in stack()) {
        let frame = stack.frame();
        let decoded = decode(LinkType::ETHERNET, &frame, original(&frame));
        let Content::Roce(roce) = decoded.content else { panic!("{decoded:?}") };
        prop_assert_eq!(decoded.stop, None);
        stack.check(&roce, &decoded);
        let bth = usize::from(roce.bth_offset);
        prop_assert_eq!(&frame[bth..], &stack.packet.bytes()[..]);
    }

    #[test]
    fn both_paths_give_the_same(stack in stack(), cut in any::<prop::sample::Index>()) {
        let frame = stack.frame();
        let captured = &frame[..cut.index(frame.len() + 1)];
        if let Some(roce) = fast::decode(LinkType::ETHERNET, captured, original(&frame)) {
            let general = general::decode(LinkType::ETHERNET, captured, original(&frame));
            prop_assert_eq!(general, DecodedFrame::new(Content::Roce(roce)));
        }
        if stack.wraps.is_empty() && stack.tags.len() <= 2 {
            let plain = matches!(
                stack.network,
                Network::V4 { options: 0 } | Network::V6 { extensions: 0 } | Network::V1
            );
            let taken = fast::decode(LinkType::ETHERNET, &frame, original(&frame)).is_some();
            prop_assert_eq!(taken, plain, "the fast path takes all of its own");
        }
    }

    #[test]
    fn a_cut_capture_gives_the_same_packet_or_says_where_it_stopped(stack in stack()) {
        let frame = stack.frame();
        let whole = decode(LinkType::ETHERNET, &frame, original(&frame));
        let Content::Roce(roce) = whole.content else { panic!("{whole:?}") };
        let headers = usize::from(roce.bth_offset) + stack.packet.header_bytes();
        for length in 0..frame.len() {
            let cut = decode(LinkType::ETHERNET, &frame[..length], original(&frame));
            match cut.stop {
                None => {
                    prop_assert!(length >= headers);
                    // Opcodes of MRC may be those of a vendor, of whose headers nothing is known: without them it is the same packet.
                    let seen = match cut.content {
                        Content::Roce(part) if mrc::may_be(part.bth.0[0]) => part.seen,
                        _ => roce.seen,
                    };
                    prop_assert_eq!(cut, DecodedFrame { content: Content::Roce(Roce { seen, ..roce }), ..whole });
                }
                Some(stop) => {
                    prop_assert!(length < headers);
                    prop_assert_eq!(stop.cut, CutLimit::Snaplen);
                    prop_assert_eq!((stop.offset + stop.had) as usize, length);
                    prop_assert!(stop.needed > stop.had && (stop.offset + stop.needed) as usize <= headers);
                }
            }
            if let Content::Roce(part) = cut.content {
                // The BTH is there; everything but the extended headers is the same.
                let fields = (part.bth, part.payload_bytes, part.network_offset, part.bth_offset, part.source, part.vlan);
                let expected = (roce.bth, roce.payload_bytes, roce.network_offset, roce.bth_offset, roce.source, roce.vlan);
                prop_assert_eq!(fields, expected);
                prop_assert!(roce.seen.has(part.seen));
            }
        }
    }

    #[test]
    fn raw_links_decode_as_ethernet_does(stack in stack()) {
        let stack = Stack { wraps: Vec::new(), tags: Vec::new(), network: ip_only(stack.network), ..stack };
        let frame = stack.frame();
        let Content::Roce(ethernet) = decode(LinkType::ETHERNET, &frame, original(&frame)).content else {
            panic!("RoCE")
        };
        let (ether_type, ip) = (&frame[12..14], &frame[14..]);
        let family = if ip[0] >> 4 == 4 { 2 } else { 10 };
        let sll = [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], ether_type].concat();
        let sll2 = [ether_type, &[0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]].concat();
        // ERF type 2 with one extension header and two bytes of padding; its wire length is that of the frame.
        let wire = u16::try_from(frame.len()).expect("short").to_be_bytes();
        let erf = [&[0, 0, 0, 0, 0, 0, 0, 0, 0x82, 4, 0, 0, 0, 0], &wire[..], &[5; 8], &[0; 2], &frame[..14]].concat();
        for (link, before) in [
            (LinkType::RAW, vec![]),
            (LinkType::NULL, vec![family, 0, 0, 0]),
            (LinkType::LOOP, vec![0, 0, 0, family]),
            (LinkType::LINUX_SLL, sll),
            (LinkType::LINUX_SLL2, sll2),
            (LinkType::ERF, erf),
        ] {
            let bytes = [&before[..], ip].concat();
            let decoded = decode(link, &bytes, original(&bytes));
            let shift = |at: u16| at - 14 + u16::try_from(before.len()).expect("short");
            let expected = Roce {
                network_offset: shift(ethernet.network_offset),
                bth_offset: shift(ethernet.bth_offset),
                ..ethernet
            };
            prop_assert_eq!(decoded, DecodedFrame::new(Content::Roce(expected)));
            let general = general::decode(link, &bytes, original(&bytes));
            prop_assert_eq!(general, decoded);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(link in prop_oneof![any::<u16>(), prop::sample::select(
        vec![0_u16, 1, 101, 108, 113, 147, 197, 228, 229, 247, 276])],
        bytes in vec(any::<u8>(), 0..400), more in 0_u32..2000) {
        anything(LinkType(link), &bytes, original(&bytes) + more);
    }

    #[test]
    fn good_frames_with_bad_bytes_never_panic(stack in stack(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>()) {
        let mut frame = stack.frame();
        for (at, byte) in changes {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        let whole = original(&frame);
        anything(LinkType::ETHERNET, &frame[..cut.index(frame.len() + 1)], whole);
        anything(LinkType::ETHERNET, &frame, whole);
    }
}

/// Properties of the result for any bytes.
fn anything(link: LinkType, bytes: &[u8], original: u32) {
    let decoded = decode(link, bytes, original);
    let general = general::decode(link, bytes, original);
    assert_eq!(decoded, general, "decode and the general path");
    if let Some(stop) = decoded.stop {
        assert!(!stop.to_string().is_empty());
        assert!(stop.needed > stop.had || stop.cut == CutLimit::Depth, "{stop}");
    }
    if let Content::Roce(roce) = decoded.content {
        assert!(usize::from(roce.bth_offset) + 12 <= bytes.len() && roce.network_offset < roce.bth_offset);
        let _ = icrc::check(bytes, &roce);
        let _ = roce_wire::management::mad::Datagram::parse(bytes, &roce);
        assert!(!roce.bth.to_string().is_empty() && !roce.aeth.to_string().is_empty());
    }
}
