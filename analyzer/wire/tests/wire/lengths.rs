//! Lengths that lie, fragments, offload, depth, and what is no RoCE: each made from a good frame by hand.

use crate::builder::{self, Network, Packet, Wrap};
use crate::frame;
use roce_wire::icrc::{self, Icrc};
use roce_wire::{Content, CutLimit, DecodedFrame, Layer, LinkType, Other, Roce, Stop, decode, fast};

/// An RC WRITE Only of 100 bytes: Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, data 100, ICRC 4 = 174 bytes.
fn write() -> Vec<u8> {
    let packet = Packet {
        opcode: 0x0a,
        qpn: 0x11,
        psn: 5,
        pad: 0,
        ack_request: true,
        aeth: [0; 4],
        dma_length: 100,
        source_qpn: 0,
        payload: 100,
    };
    let (ether_type, inside) = builder::network(&packet, Network::V4 { options: 0 }, 2, 0xc000);
    builder::ethernet(ether_type, &[], inside)
}

const IP_LENGTH: usize = 16;
const UDP_LENGTH: usize = 38;

fn put(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn decoded(frame: &[u8]) -> DecodedFrame {
    decode(
        LinkType::ETHERNET,
        frame,
        u32::try_from(frame.len()).expect("short"),
    )
}

fn roce(frame: &[u8]) -> (Roce, Option<Stop>) {
    let found = decoded(frame);
    match found.content {
        Content::Roce(roce) => (roce, found.stop),
        _ => panic!("{found:?}"),
    }
}

#[test]
fn a_udp_length_beyond_the_frame() {
    let mut bytes = write();
    assert_eq!((bytes.len(), roce(&bytes).0.payload_bytes), (174, 100));
    put(&mut bytes, UDP_LENGTH, 141);
    let (packet, stop) = roce(&bytes);
    assert_eq!((packet.payload_bytes, packet.dma_length), (0, 100));
    let expected = Stop {
        layer: Layer::Udp,
        offset: 34,
        needed: 141,
        had: 140,
        cut: CutLimit::Length(Layer::Udp),
    };
    assert_eq!(stop, Some(expected));
    assert_eq!(
        expected.to_string(),
        "UDP at byte 34 needs 141 bytes, has 140: cut by the length in UDP"
    );
    assert_eq!(icrc::check(&bytes, &packet), Icrc::NotCheckable);
}

#[test]
fn a_udp_length_too_small_for_the_headers() {
    // 8 + 12 + 10: the RETH has 10 of 16 bytes.
    let mut bytes = write();
    put(&mut bytes, UDP_LENGTH, 30);
    let (packet, stop) = roce(&bytes);
    assert_eq!((packet.payload_bytes, packet.dma_length), (0, 0));
    let expected = Stop {
        layer: Layer::Reth,
        offset: 54,
        needed: 16,
        had: 10,
        cut: CutLimit::Length(Layer::Udp),
    };
    assert_eq!(stop, Some(expected));
    // 8 + 12 + 16 + 2: half an ICRC.
    put(&mut bytes, UDP_LENGTH, 38);
    let (packet, stop) = roce(&bytes);
    assert_eq!((packet.payload_bytes, packet.dma_length), (0, 100));
    let expected = Stop {
        layer: Layer::Icrc,
        offset: 70,
        needed: 4,
        had: 2,
        cut: CutLimit::Length(Layer::Udp),
    };
    assert_eq!(stop, Some(expected));
    // 8 + 11: no BTH.
    put(&mut bytes, UDP_LENGTH, 19);
    let found = decoded(&bytes);
    assert_eq!(found.content, Content::Other(Other::Undecodable));
    let expected = Stop {
        layer: Layer::Bth,
        offset: 42,
        needed: 12,
        had: 11,
        cut: CutLimit::Length(Layer::Udp),
    };
    assert_eq!(found.stop, Some(expected));
    // Less than its own header.
    put(&mut bytes, UDP_LENGTH, 7);
    let (packet, stop) = roce(&bytes);
    let expected = Stop {
        layer: Layer::Udp,
        offset: 34,
        needed: 8,
        had: 7,
        cut: CutLimit::Length(Layer::Udp),
    };
    assert_eq!((packet.payload_bytes, stop), (0, Some(expected)));
}

#[test]
fn lengths_of_zero_come_from_offload() {
    let mut bytes = write();
    put(&mut bytes, IP_LENGTH, 0);
    assert_eq!(roce(&bytes).0.payload_bytes, 100);
    put(&mut bytes, UDP_LENGTH, 0);
    let (packet, stop) = roce(&bytes);
    assert_eq!((packet.payload_bytes, stop), (100, None));
    assert_eq!(icrc::check(&bytes, &packet), Icrc::NotCheckable);
    // Cut by the snaplen the original length still tells.
    let cut = decode(LinkType::ETHERNET, &bytes[..96], 174);
    assert_eq!(cut.content, Content::Roce(packet));
}

#[test]
fn an_ip_length_beyond_the_frame_is_told() {
    let mut bytes = write();
    put(&mut bytes, IP_LENGTH, 161);
    let (packet, stop) = roce(&bytes);
    let expected = Stop {
        layer: Layer::Ipv4,
        offset: 14,
        needed: 161,
        had: 160,
        cut: CutLimit::Length(Layer::Ipv4),
    };
    assert_eq!((packet.payload_bytes, stop), (100, Some(expected)));
}

#[test]
fn padding_of_short_frames_counts_for_nothing() {
    let mut bytes = write();
    bytes.extend([0; 20]);
    let (packet, stop) = roce(&bytes);
    assert_eq!((packet.payload_bytes, stop), (100, None));
    assert!(fast::decode(LinkType::ETHERNET, &bytes, 194).is_some());
}

#[test]
fn fragments() {
    // The first of two: the UDP length is that of the whole datagram, 1000 bytes.
    let mut bytes = write();
    bytes[20] = 0x20;
    put(&mut bytes, UDP_LENGTH, 1000);
    let (packet, stop) = roce(&bytes);
    assert_eq!((packet.payload_bytes, stop), (1000 - 8 - 12 - 16 - 4, None));
    assert_eq!(icrc::check(&bytes, &packet), Icrc::NotCheckable);
    // The second.
    (bytes[20], bytes[21]) = (0, 20);
    assert_eq!(decoded(&bytes).content, Content::Fragment);
    // The packet is TCP, which is not decoded.
    bytes[23] = 6;
    assert_eq!(decoded(&bytes).content, Content::Other(Other::NotRoce));
    // IPv6: fragment header at 54, offset 8 (1 << 3).
    let mut bytes = frame("ipv6_fragment_first");
    put(&mut bytes, 56, 8);
    assert_eq!(decoded(&bytes).content, Content::Fragment);
}

#[test]
fn four_tunnels_are_followed_and_nine_are_not() {
    let packet = Packet {
        opcode: 4,
        qpn: 1,
        psn: 1,
        pad: 0,
        ack_request: false,
        aeth: [0; 4],
        dma_length: 0,
        source_qpn: 0,
        payload: 8,
    };
    let mut inside = builder::network(&packet, Network::V4 { options: 0 }, 0, 1);
    for depth in 1..=9 {
        inside = builder::wrap(Wrap::IpInIp, &[], inside);
        let found = decoded(&builder::ethernet(inside.0, &[], inside.1.clone()));
        if depth <= 8 {
            assert!(matches!(found.content, Content::Roce(_)), "{depth}: {found:?}");
        } else {
            assert_eq!(found.content, Content::Other(Other::NotRoce));
            assert_eq!(
                found.stop.map(|stop| (stop.layer, stop.cut)),
                Some((Layer::Ipv4, CutLimit::Depth))
            );
        }
    }
}

#[test]
fn a_mirror_that_cuts_its_frames_is_no_lie() {
    // The write in ERSPAN, cut to 96 bytes by the mirror, whose own lengths are right.
    let mirrored = write()[14..96].to_vec();
    let session = Wrap::ErspanII {
        session: 1,
        sequence: 1,
        index: 0,
    };
    let (ether_type, inside) = builder::wrap(session, &[], (0x0800, mirrored));
    let (packet, stop) = roce(&builder::ethernet(ether_type, &[], inside));
    assert_eq!((packet.payload_bytes, packet.dma_length, stop), (100, 100, None));
}

#[test]
fn what_is_not_roce() {
    let other = |bytes: &[u8]| {
        let found = decoded(bytes);
        assert_eq!((found.stop, found.mirror), (None, None));
        found.content
    };
    // Port 4791 as the source alone is no RoCE.
    let mut bytes = write();
    put(&mut bytes, 34, 4791);
    put(&mut bytes, 36, 53);
    assert_eq!(other(&bytes), Content::Other(Other::NotRoce));
    let mut bytes = write();
    bytes[23] = 6;
    assert_eq!(other(&bytes), Content::Other(Other::NotRoce));
    put(&mut bytes, 12, 0x0806);
    assert_eq!(other(&bytes), Content::Other(Other::NotRoce));
    let unknown = decode(LinkType(9999), &bytes, 174);
    assert_eq!(unknown.content, Content::Other(Other::UnknownLink));
    // InfiniBand: VL 15, and LNH 0.
    for lrh in [[0xf0, 0x02, 0, 1, 0, 20, 0, 2], [0x00, 0x00, 0, 1, 0, 20, 0, 2]] {
        let mut bytes = lrh.to_vec();
        bytes.resize(82, 0);
        let found = decode(LinkType::INFINIBAND, &bytes, 82);
        assert_eq!(found.content, Content::Other(Other::NotRoce));
    }
    // A UDP header whose ports alone were captured leads to RoCE.
    let found = decode(LinkType::ETHERNET, &write()[..38], 174);
    assert_eq!(found.content, Content::Other(Other::Undecodable));
    assert_eq!(
        found.stop.map(|stop| (stop.layer, stop.cut)),
        Some((Layer::Udp, CutLimit::Snaplen))
    );
}

#[test]
fn infiniband_in_user0_must_look_like_it() {
    // LNH 2, 12 words: 8 + 12 + 24 + 4 = 48 bytes; with a VCRC of two more.
    let mut bytes = vec![0x00, 0x02, 0, 2, 0, 12, 0, 1, 0x04];
    bytes.resize(50, 0);
    for (length, original) in [(48, 48), (50, 50)] {
        let Content::Roce(packet) = decode(LinkType::USER0, &bytes[..length], original).content else {
            panic!("InfiniBand")
        };
        assert_eq!(
            (packet.payload_bytes, packet.source.as_lid(), packet.bth_offset),
            (24, Some(1), 8)
        );
    }
    let found = decode(LinkType::USER0, &bytes[..49], 49);
    assert_eq!(found.content, Content::Other(Other::UnknownLink));
}

#[test]
fn raw_ip_links_hold_their_own_version() {
    let ip = &write()[14..];
    assert!(matches!(
        decode(LinkType::IPV4, ip, 160).content,
        Content::Roce(_)
    ));
    assert_eq!(
        decode(LinkType::IPV6, ip, 160).content,
        Content::Other(Other::NotRoce)
    );
}

#[test]
fn a_first_fragment_may_lie_too() {
    // 8 + 12 + 16 + 1: a byte of an ICRC, although the frame goes on.
    let mut bytes = write();
    bytes[20] = 0x20;
    put(&mut bytes, UDP_LENGTH, 37);
    let expected = Stop {
        layer: Layer::Icrc,
        offset: 70,
        needed: 4,
        had: 1,
        cut: CutLimit::Length(Layer::Udp),
    };
    assert_eq!(
        (roce(&bytes).0.payload_bytes, roce(&bytes).1),
        (0, Some(expected))
    );
}
