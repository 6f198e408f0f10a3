//! Trimmed packets, and telemetry of switches in frames, as `tests/data/transports` has them: what is read of each frame, and that no change
//! of a byte and no cut makes a reader fail.

use roce_wire::icrc::{self, Icrc};
use roce_wire::{
    AssignedNumbers, Content, DecodedFrame, Ecn, Hop, LinkType, Other, Roce, TelemetryKind, Through, decode,
    decode_with, fast,
};

const KEPT: &[u8] = include_bytes!("../../../../tests/data/transports/roce_trimmed_lenkept.pcap");
const FIXED: &[u8] = include_bytes!("../../../../tests/data/transports/roce_trimmed_lenfixed.pcap");
const IN_BAND: &[u8] = include_bytes!("../../../../tests/data/transports/roce_ifa_inband.pcap");
const IN_BAND_V6: &[u8] = include_bytes!("../../../../tests/data/transports/roce_ifa_inband_ipv6.pcap");
const CLONES: &[u8] = include_bytes!("../../../../tests/data/transports/roce_ifa_clone.pcap");
const CSIG: &[u8] = include_bytes!("../../../../tests/data/transports/roce_csig.pcap");
const ALL: [&[u8]; 6] = [KEPT, FIXED, IN_BAND, IN_BAND_V6, CLONES, CSIG];

/// Offset of IP behind an Ethernet header.
const IP: usize = 14;

/// Captured bytes of the frames of a little-endian pcap: 24 bytes of header, 16 in front of each.
fn frames(pcap: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut rest = &pcap[24..];
    while rest.len() >= 16 {
        let length = u32::from_le_bytes(rest[8..12].try_into().expect("4 bytes")) as usize;
        found.push(rest[16..16 + length].to_vec());
        rest = &rest[16 + length..];
    }
    found
}

fn decoded(frame: &[u8], original: usize) -> DecodedFrame {
    decode(LinkType::ETHERNET, frame, u32::try_from(original).expect("short"))
}

#[track_caller]
fn roce(frame: &[u8]) -> Roce {
    match decoded(frame, frame.len()).content {
        Content::Roce(roce) => roce,
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_without_their_data_are_short() {
    for pcap in [KEPT, FIXED] {
        let all = frames(pcap);
        let short: Vec<&Vec<u8>> = all
            .iter()
            .filter(|frame| decoded(frame, frame.len()).is_short())
            .collect();
        let known: Vec<(u32, u8, u32)> = short
            .iter()
            .map(|frame| roce(frame))
            .map(|roce| (roce.bth.psn().value(), roce.dscp(), roce.payload_bytes))
            .collect();
        // expected.json: PSN 1808 with DSCP 10, 1816 with DSCP 20.
        assert_eq!(known, [(1808, 10, 0), (1816, 20, 0)]);
        for frame in short {
            assert_eq!(frame.len(), 256, "the size of a trim");
            assert_eq!(icrc::check(frame, &roce(frame)), Icrc::NotCheckable);
            // A snaplen that cuts it as well changes nothing: its length on the wire is that of the trim.
            assert!(decoded(&frame[..96], frame.len()).is_short());
        }
    }
}

#[test]
fn a_frame_that_the_snaplen_cut_is_not_short() {
    for frame in frames(KEPT).iter().filter(|frame| frame.len() > 256) {
        for captured in [64, 96, 128, 256] {
            let found = decoded(&frame[..captured], frame.len());
            assert!(!found.is_short(), "{found:?}");
        }
    }
}

#[test]
fn a_frame_that_a_mirror_cut_is_not_short() {
    // GRE with a sequence number, ERSPAN II with its bit for cut frames set, and without; session 5.
    for truncated in [0x04, 0x00] {
        for frame in frames(KEPT) {
            let inner = &frame[..frame.len().min(256)];
            let mut mirror = vec![0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, truncated, 5, 0, 0, 0, 0];
            mirror.extend_from_slice(inner);
            let length = u16::try_from(20 + mirror.len()).expect("short").to_be_bytes();
            let mut outer = frame[..IP].to_vec();
            outer.extend_from_slice(&[0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 47, 0, 0]);
            outer.extend_from_slice(&[10, 9, 9, 1, 10, 9, 9, 2]);
            outer.extend_from_slice(&mirror);
            let found = decoded(&outer, outer.len());
            assert!(matches!(found.content, Content::Roce(_)) && found.mirror.is_some());
            assert!(!found.is_short(), "{found:?}");
        }
    }
}

#[test]
fn the_packet_behind_telemetry_is_read() {
    for (pcap, first) in [(IN_BAND, 0x300), (IN_BAND_V6, 0x300), (CSIG, 0x500)] {
        for (at, frame) in (0..).zip(frames(pcap)) {
            let found = roce(&frame);
            assert_eq!((found.bth.psn().value(), found.payload_bytes), (first + at, 256));
            assert_eq!((found.dscp(), found.ecn()), (26, Ecn::Ect0));
            // The ICRC is that of the packet before switches inserted anything.
            assert_eq!(icrc::check(&frame, &found), Icrc::Good, "{found:?}");
            let has = if pcap == CSIG { Through::CSIG } else { Through::IFA };
            assert!(found.through.has(has));
            let mut wrong = frame;
            let last = wrong.len() - 1;
            wrong[last] ^= 1;
            assert_eq!(icrc::check(&wrong, &roce(&wrong)), Icrc::Bad);
        }
    }
}

#[test]
fn a_copy_that_carries_telemetry_is_no_packet() {
    let (packets, copies): (Vec<_>, Vec<_>) = frames(CLONES)
        .into_iter()
        .partition(|frame| fast::decode(LinkType::ETHERNET, frame, u32::MAX).is_some());
    assert_eq!((packets.len(), copies.len()), (24, 3));
    for (at, copy) in (0..).step_by(8).zip(copies) {
        let found = decoded(&copy, copy.len());
        let Content::Copy(roce) = found.content else {
            panic!("{found:?}")
        };
        // `make.py`: a copy of every eighth packet from PSN 0x300 on; the second switch has 1,000 bytes more for each packet.
        assert_eq!(roce.bth.psn().value(), 0x300 + at);
        let hops = found.telemetry.hops(&copy);
        let second = hops.all()[1];
        assert_eq!(
            (second.device, second.queued_bytes),
            (Some(0x102), Some(1000 * at))
        );
    }
}

#[test]
fn hops_are_those_of_the_switches() {
    for pcap in [IN_BAND, IN_BAND_V6] {
        for (at, frame) in (0..).zip(frames(pcap)) {
            let found = decoded(&frame, frame.len()).telemetry.hops(&frame);
            let hops: Vec<_> = found.all().iter().rev().collect();
            assert_eq!(hops.len(), 3);
            for (place, hop) in (0..3_u32).zip(hops) {
                // `make.py`: devices 0x101 to 0x103 on the way; 600 ns there, and 8 ns more for each 100 bytes in the queue of the second.
                let queued = if place == 1 { 1000 * at } else { 0 };
                assert_eq!(
                    (hop.number, hop.device),
                    (u8::try_from(place + 1).ok(), Some(0x101 + place))
                );
                assert_eq!(
                    (hop.queued_bytes, hop.residence_ns),
                    (Some(queued), Some(600 + queued * 8 / 100))
                );
                assert_eq!((hop.queue, hop.is_congested), (Some(3), Some(queued > 15_000)));
                let ports = (u16::try_from(33 + place).ok(), u16::try_from(17 + place).ok());
                assert_eq!((hop.ingress, hop.egress), ports);
            }
        }
    }
    for (at, frame) in (0..).zip(frames(CSIG)) {
        let found = decoded(&frame, frame.len()).telemetry.hops(&frame);
        let [hop] = found.all() else { panic!("{found:?}") };
        // `make.py`: type i % 4, value 2 i, locator 0x42.
        assert_eq!(
            (hop.signal, hop.value, hop.locator),
            (Some(at % 4), Some(2 * u32::from(at)), Some(0x42))
        );
        assert_eq!(
            (hop.device, hop.queued_bytes, hop.residence_ns),
            (None, None, None)
        );
    }
    // A stack whose TTLs do not fall is of another layout.
    let mut frame = frames(IN_BAND).remove(2);
    frame[IP + 20 + 4 + 8 + 4 + 3] = 255;
    assert!(
        decoded(&frame, frame.len())
            .telemetry
            .hops(&frame)
            .all()
            .is_empty()
    );
}

#[test]
fn numbers_of_tags_are_those_of_the_network() {
    let frame = frames(CSIG).remove(3);
    let mut other = frame.clone();
    other[12..14].copy_from_slice(&0x9a01_u16.to_be_bytes());
    assert_eq!(
        decoded(&other, other.len()).content,
        Content::Other(Other::NotRoce)
    );
    let length = u32::try_from(other.len()).expect("short");
    let narrow = AssignedNumbers {
        csig: 0x9a01,
        ..AssignedNumbers::default()
    };
    let found = decode_with(LinkType::ETHERNET, &other, length, &narrow);
    assert!(matches!(found.content, Content::Roce(_)));
    assert_eq!(found.telemetry.hops(&other).all()[0].value, Some(6));
    // Four bytes more behind the EtherType: a wide tag.
    let wide = AssignedNumbers {
        wide_csig: Some(0x9a01),
        ..AssignedNumbers::default()
    };
    other.splice(14..14, [1, 2, 3, 4]);
    let found = decode_with(LinkType::ETHERNET, &other, length + 4, &wide);
    assert!(matches!(found.content, Content::Roce(_)), "{found:?}");
    assert_eq!(found.telemetry.hops(&other).all()[0].value, Some(0x0102_0304));
}

#[test]
fn unknown_layouts_of_telemetry_are_left() {
    const FLAGS: usize = IP + 20 + 2;
    const STACK: usize = IP + 20 + 4 + 8 + 3;
    let good = frames(IN_BAND).remove(0);
    // Fragments of metadata (MF), a checksum (C), another version, and a stack whose length fits no other.
    for (at, value) in [
        (FLAGS, 0x14),
        (FLAGS, 0x05),
        (FLAGS - 2, 0x1f),
        (STACK, 25),
        (STACK, 255),
    ] {
        let mut frame = good.clone();
        frame[at] = value;
        assert_eq!(
            decoded(&frame, frame.len()).content,
            Content::Other(Other::NotRoce),
            "{at} {value}"
        );
    }
}

#[test]
fn a_udp_length_with_the_telemetry_is_understood() {
    let mut frame = frames(IN_BAND).remove(1);
    let at = IP + 20 + 4 + 4;
    // 8 + 4 + 3 x 32: the header of the metadata and their stack; 8 bytes of UDP are in both.
    let length = u16::from_be_bytes([frame[at], frame[at + 1]]) + 4 + 96;
    frame[at..at + 2].copy_from_slice(&length.to_be_bytes());
    let found = roce(&frame);
    assert_eq!(found.payload_bytes, 256);
    assert_eq!(icrc::check(&frame, &found), Icrc::Good);
}

/// The first packet of the IPv6 vector without its telemetry, and with a hop-by-hop header of these options.
fn with_options(options: &[u8]) -> Vec<u8> {
    let frame = frames(IN_BAND_V6).remove(0);
    let mut bare = frame[IP + 40 + 4..IP + 40 + 12].to_vec();
    bare.extend_from_slice(&frame[IP + 40 + 12 + 4 + 96..]);
    let udp = u16::from_be_bytes([bare[4], bare[5]]);
    let mut packet = frame[..IP + 40].to_vec();
    packet[IP + 6] = if options.is_empty() { 17 } else { 0 };
    let length = udp + u16::try_from(options.len()).expect("short");
    packet[IP + 4..IP + 6].copy_from_slice(&length.to_be_bytes());
    packet.extend_from_slice(options);
    packet.extend_from_slice(&bare);
    packet
}

#[test]
fn options_that_switches_change_make_no_wrong_icrc() {
    let with = |options: &[u8]| {
        let packet = with_options(options);
        let found = roce(&packet);
        assert_eq!(found.payload_bytes, 256);
        icrc::check(&packet, &found)
    };
    assert_eq!(with(&[]), Icrc::Good);
    // An IOAM option (0x31, RFC 9486) of 4 bytes that its sender did not know.
    assert_eq!(with(&[17, 0, 0x31, 4, 0, 0, 0, 0]), Icrc::NotCheckable);
    // Padding alone does not change: the ICRC of such a packet has to fit.
    assert_eq!(with(&[17, 0, 1, 4, 0, 0, 0, 0]), Icrc::Bad);
}

/// A hop-by-hop header of 64 bytes (RFC 8200, 4.3) with a pre-allocated trace of IOAM (RFC 9486, section 3; RFC 9197, 4.4.1). It has room
/// for three nodes, and two have written theirs.
#[rustfmt::skip]
const TRACE: [u8; 64] = [
    17, 7,                      // UDP follows; 7 units of 8 bytes beyond the first
    1, 0,                       // PadN of two bytes: the option begins at a multiple of four
    0x31, 58, 0, 0,             // option, 58 bytes; reserved; IOAM type 0: pre-allocated trace
    0x00, 0x01, 0x20, 0x04,     // namespace 1; 4 words a node (bits 0 to 4), no flags (5 to 8), 4 words left (9 to 15)
    0xca, 0x00, 0x00, 0x00,     // trace type: bits 0 (node), 1 (interfaces), 4 (transit delay), 6 (queue depth); reserved
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // room for a third node
    0x3e, 0x00, 0x02, 0x02,     // the latest node is first: hop limit 62, node 0x202
    0x00, 0x11, 0x00, 0x22,     // came by interface 0x11, left by 0x22
    0x00, 0x00, 0x05, 0xdc,     // 1,500 ns in the node; the highest bit would say that it was longer
    0x00, 0x00, 0x00, 0x2a,     // 42 buffers in use
    0x3f, 0x00, 0x01, 0x01,     // the first node: hop limit 63, node 0x101
    0x00, 0x07, 0x00, 0x08,
    0x80, 0x00, 0x00, 0x00,     // longer than the field holds
    0x00, 0x00, 0x00, 0x00,
];

#[test]
fn traces_of_ioam_have_their_nodes_in_the_order_of_the_way() {
    let packet = with_options(&TRACE);
    assert_eq!(roce(&packet).payload_bytes, 256, "the trace is stepped over");
    let found = decoded(&packet, packet.len());
    let hops = found.telemetry.hops(&packet);
    let hop = |number, device, ports: [u16; 2], residence_ns, queued_buffers| Hop {
        kind: TelemetryKind::Ioam,
        number: Some(number),
        device: Some(device),
        ingress: Some(ports[0]),
        egress: Some(ports[1]),
        residence_ns,
        queued_buffers: Some(queued_buffers),
        ..Hop::default()
    };
    let latest = hop(2, 0x202, [0x11, 0x22], Some(1_500), 42);
    let first = hop(1, 0x101, [7, 8], None, 0);
    assert_eq!(hops.all(), [latest, first]);
    // The incremental trace (type 1) begins with its latest node, and has no room.
    let mut incremental = TRACE.to_vec();
    incremental.drain(16..32);
    (incremental[1], incremental[5], incremental[7]) = (5, 42, 1);
    let packet = with_options(&incremental);
    let found = decoded(&packet, packet.len());
    assert_eq!(found.telemetry.hops(&packet).all(), [latest, first]);
    for cut in 0..packet.len() {
        let found = decoded(&packet[..cut], packet.len());
        let _ = found.telemetry.hops(&packet[..cut]);
    }
}

#[test]
fn no_changed_byte_and_no_cut_makes_a_reader_fail() {
    let read = |frame: &[u8], original: usize| {
        let found = decoded(frame, original);
        let _ = found.is_short();
        let _ = found.telemetry.hops(frame);
        if let Content::Roce(roce) = found.content {
            let _ = icrc::check(frame, &roce);
        }
    };
    for pcap in ALL {
        let all = frames(pcap);
        // One whole frame, the last one, and each that differs in its length.
        let mut lengths = std::collections::BTreeSet::new();
        for frame in all.iter().filter(|frame| lengths.insert(frame.len())) {
            for cut in 0..=frame.len() {
                read(&frame[..cut], cut);
                read(&frame[..cut], frame.len());
            }
            let mut changed = frame.clone();
            for at in 0..frame.len().min(192) {
                for value in 0..=u8::MAX {
                    changed[at] = value;
                    read(&changed, changed.len());
                    read(&changed[..=at], changed.len());
                }
                changed[at] = frame[at];
            }
        }
    }
}
