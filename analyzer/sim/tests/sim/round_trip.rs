//! The decoder reads what was written, on either of its paths, with good checksums.

use proptest::prelude::*;
use roce_sim::frame::{Frame, Pause, Payload, Pfc, Roce, Transport, Version, udp_source_port};
use roce_wire::icrc::{self, Icrc};
use roce_wire::network::ipv4::Ipv4;
use roce_wire::network::ipv6::Ipv6;
use roce_wire::{
    AethKind, Carrier, Content, ExtendedHeaders, LinkType, Nak, Opcode, PauseKind, Psn, Qpn, RnrTimer,
    Through, decode, fast, general, transport,
};

use super::{assert_cut, bytes_of, mac, roce};

/// Result of both paths of the decoder; they must agree.
#[track_caller]
pub(crate) fn decoded(bytes: &[u8]) -> roce_wire::Roce {
    let original = u32::try_from(bytes.len()).unwrap();
    let general = general::decode(LinkType::ETHERNET, bytes, original);
    assert_eq!(general.stop, None);
    let Content::Roce(roce) = general.content else {
        panic!("{general:?}")
    };
    assert_eq!(decode(LinkType::ETHERNET, bytes, original), general);
    if roce.carrier != Carrier::RoceV1 {
        assert_eq!(fast::decode(LinkType::ETHERNET, bytes, original), Some(roce));
    }
    assert_eq!(icrc::check(bytes, &roce), Icrc::Good);
    roce
}

fn assert_network(from: &Roce, bytes: &[u8], roce: &roce_wire::Roce) {
    let network = &from.network;
    assert_eq!(
        (roce.source, roce.destination),
        (network.source, network.destination)
    );
    assert_eq!((roce.dscp(), roce.ecn()), (network.dscp, network.ecn));
    assert_eq!(
        (roce.hop_limit, roce.vlan),
        (network.hop_limit, from.ethernet.vlan)
    );
    let is_v4 = network.source.as_ip().is_some_and(|ip| ip.is_ipv4())
        && network.destination.as_ip().is_some_and(|ip| ip.is_ipv4());
    let (carrier, port) = match from.version {
        Version::V1 => (Carrier::RoceV1, 0),
        Version::V2 { source_port } if is_v4 => (Carrier::RoceV2Ipv4, source_port),
        Version::V2 { source_port } => (Carrier::RoceV2Ipv6, source_port),
    };
    assert_eq!((roce.carrier, roce.udp_source_port), (carrier, port));
    let through = if from.ethernet.vlan.is_some() {
        Through::VLAN
    } else {
        Through::NOTHING
    };
    assert_eq!(roce.through, through);
    assert_eq!(
        (&bytes[..6], &bytes[6..12]),
        (&from.ethernet.destination.0[..], &from.ethernet.source.0[..])
    );
    let header = &bytes[usize::from(roce.network_offset)..];
    if carrier == Carrier::RoceV2Ipv4 {
        let header: &[u8; 20] = header.first_chunk().unwrap();
        assert_eq!(roce.ip_id, network.identification);
        assert_eq!(header[6..8], [if network.dont_fragment { 0x40 } else { 0 }, 0]);
        // RFC 1071: a one's complement sum is a sum modulo 65535, and that of a right header is zero.
        let words = header
            .chunks(2)
            .map(|word| u32::from(word[0]) * 256 + u32::from(word[1]));
        assert_eq!(words.sum::<u32>() % 65_535, 0);
        assert_eq!(Ipv4(header).version(), 4);
    } else {
        let header = Ipv6(header.first_chunk().unwrap());
        assert_eq!((header.version(), header.flow_label()), (6, network.flow_label));
    }
    if carrier != Carrier::RoceV1 {
        let bth = usize::from(roce.bth_offset);
        assert_eq!(bytes[bth - 2..bth], [0, 0], "no UDP checksum");
    }
}

fn assert_transport(from: &Transport, bytes: &[u8]) {
    let headers = transport::Transport::parse(bytes).unwrap();
    let bth = headers.bth;
    assert_eq!(bth.opcode(), from.opcode);
    assert_eq!(
        (bth.solicited(), bth.migration_request()),
        (from.solicited, from.migration)
    );
    assert_eq!(
        (bth.fecn(), bth.becn(), bth.ack_request()),
        (from.fecn, from.becn, from.ack_request)
    );
    assert_eq!(bth.partition_key(), from.partition_key);
    assert_eq!(
        (bth.destination_qpn(), bth.psn()),
        (from.destination_qpn, from.psn)
    );
    assert_eq!(bth.transport_version(), 0);
    let x = &from.extended;
    let has = |header| from.opcode.extended().has(header);
    assert_eq!(
        headers.rdeth.map(|h| h.context()),
        has(ExtendedHeaders::RDETH).then_some(x.context)
    );
    assert_eq!(
        headers.deth.map(|h| (h.queue_key(), h.source_qpn())),
        has(ExtendedHeaders::DETH).then_some((x.queue_key, x.source_qpn))
    );
    assert_eq!(
        headers.xrceth.map(|h| h.receive_queue()),
        has(ExtendedHeaders::XRCETH).then_some(x.receive_queue)
    );
    assert_eq!(
        headers.feth.map(|h| h.selectivity() << 4 | h.placement()),
        has(ExtendedHeaders::FETH).then_some(x.flush)
    );
    assert_eq!(
        headers
            .reth
            .map(|h| (h.virtual_address(), h.remote_key(), h.dma_length())),
        has(ExtendedHeaders::RETH).then_some((x.reth.address, x.reth.key, x.reth.length))
    );
    let atomic = (
        x.atomic.address,
        x.atomic.key,
        x.atomic.swap_or_add,
        x.atomic.compare,
    );
    assert_eq!(
        headers
            .atomic_eth
            .map(|h| (h.virtual_address(), h.remote_key(), h.swap_or_add(), h.compare())),
        has(ExtendedHeaders::ATOMIC_ETH).then_some(atomic)
    );
    assert_eq!(headers.aeth, has(ExtendedHeaders::AETH).then_some(x.aeth));
    assert_eq!(
        headers.atomic_ack_eth.map(|h| h.original()),
        has(ExtendedHeaders::ATOMIC_ACK_ETH).then_some(x.original)
    );
    assert_eq!(
        headers.imm_dt.map(|h| h.data()),
        has(ExtendedHeaders::IMM_DT).then_some(x.immediate)
    );
    assert_eq!(
        headers.ieth.map(|h| h.remote_key()),
        has(ExtendedHeaders::IETH).then_some(x.invalidate)
    );
    // The payload, byte by byte, and zeros after it up to a multiple of 4.
    let Payload::Data {
        bytes: length,
        first,
        step,
    } = from.payload
    else {
        panic!("data")
    };
    let data = &bytes[headers.payload_offset..];
    if from.opcode.is_cnp() {
        assert!(headers.cnp.unwrap().is_zero());
        assert_eq!(bth.pad_count(), 0);
        return;
    }
    let length = usize::from(length);
    for (at, byte) in data[..length].iter().enumerate() {
        let expected = (usize::from(first) + at * usize::from(step)) % 256;
        assert_eq!(usize::from(*byte), expected, "byte {at}");
    }
    let pad = (4 - length % 4) % 4;
    assert_eq!(usize::from(bth.pad_count()), pad);
    assert!(data[length..length + pad].iter().all(|byte| *byte == 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn packets(from in roce(), most in 0_usize..400) {
        let frame = Frame::Roce(from);
        let bytes = bytes_of(&frame);
        let roce = decoded(&bytes);
        assert_network(&from, &bytes, &roce);
        assert_transport(&from.transport, &bytes[usize::from(roce.bth_offset)..]);
        prop_assert_eq!(roce.payload_bytes, from.transport.payload_bytes());
        assert_cut(&frame, &bytes, most);
        assert_cut(&frame, &bytes, bytes.len().saturating_sub(most % 10));
    }

    #[test]
    fn pauses(source in mac(), class_enable in any::<u8>(), quanta in any::<[u16; 8]>(), most in 0_usize..70) {
        let pfc = Frame::Pfc(Pfc { source, class_enable, quanta });
        let pause = Frame::Pause(Pause { source, quanta: quanta[0] });
        for (frame, kind, enabled, present) in [(pfc, PauseKind::Priority, class_enable, 8), (pause, PauseKind::Link, 0, 1)] {
            let bytes = bytes_of(&frame);
            // The shortest Ethernet frame has 64 bytes with its FCS.
            prop_assert_eq!(bytes.len(), 60);
            let Content::Pause(found) = decode(LinkType::ETHERNET, &bytes, 60).content else {
                panic!("a pause")
            };
            prop_assert_eq!((found.source, found.destination), (source, roce_wire::MacAddress::PAUSE));
            prop_assert_eq!((found.kind, found.enabled), (kind, enabled));
            prop_assert_eq!(found.quanta[0], quanta[0]);
            if kind == PauseKind::Priority {
                prop_assert_eq!((found.quanta, found.present), (quanta, present));
            }
            assert_cut(&frame, &bytes, most);
        }
    }
}

#[test]
fn answers_say_what_they_are_called() {
    let qpn = Qpn::new(0x11);
    let psn = Psn::new(7);
    let kind = |transport: Transport| {
        assert_eq!(transport.opcode, Opcode::RC_ACKNOWLEDGE);
        assert_eq!((transport.destination_qpn, transport.psn), (qpn, psn));
        assert_eq!(transport.extended.aeth.msn(), 0x12_3456);
        transport.extended.aeth.kind()
    };
    assert_eq!(
        kind(Transport::ack(qpn, psn, 0x12_3456, 31)),
        AethKind::Ack { credits: 31 }
    );
    assert_eq!(
        kind(Transport::nak(qpn, psn, 0x12_3456, Nak::RemoteAccessError)),
        AethKind::Nak(Nak::RemoteAccessError)
    );
    let timer = RnrTimer::new(14);
    assert_eq!(
        kind(Transport::rnr_nak(qpn, psn, 0x12_3456, timer)),
        AethKind::RnrNak { timer }
    );
}

#[test]
fn lengths_by_arithmetic() {
    use roce_sim::frame::{Ethernet, Network, Position};
    use roce_wire::{Address, MacAddress};
    let ethernet = Ethernet::new(MacAddress::default(), MacAddress::default());
    let v4 = Network::new(Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2]));
    let v6 = Network::new(Address::v6([0xfd; 16]), Address::v6([0xfc; 16]));
    let length = |ethernet, network, version, transport| {
        Frame::Roce(Roce {
            ethernet,
            network,
            version,
            transport,
        })
        .wire_bytes()
    };
    let v2 = Version::V2 { source_port: 0xc000 };
    let mut write = Transport::new(Position::First.write(), Qpn::new(1), Psn::new(0));
    write.payload = Payload::data(1024);
    // 14 + 20 + 8 + 12 + 16 + 1024 + 4.
    assert_eq!(length(ethernet, v4, v2, write), 1098);
    // 4 more for a tag, 20 more for IPv6, 12 more than IPv4 and UDP for a GRH.
    assert_eq!(length(ethernet.tagged(3, 5), v4, v2, write), 1102);
    assert_eq!(length(ethernet, v6, v2, write), 1118);
    assert_eq!(length(ethernet, v4, Version::V1, write), 1110);
    // The CNP of 74 bytes, the ACK of 62, the management datagram of 322 that captures show.
    assert_eq!(length(ethernet, v4, v2, Transport::cnp(Qpn::new(1))), 74);
    assert_eq!(
        length(ethernet, v4, v2, Transport::ack(Qpn::new(1), Psn::new(0), 0, 0)),
        62
    );
    // A SEND of nothing has 58 bytes and is padded; with 24 of preamble, FCS and gap: 84, the shortest frame on a line.
    let nothing = Transport::new(Position::Only.send(), Qpn::new(1), Psn::new(0));
    assert_eq!(length(ethernet, v4, v2, nothing), 60);
    let frame = Frame::from(Roce {
        ethernet,
        network: v4,
        version: v2,
        transport: nothing,
    });
    assert_eq!(frame.line_bytes(), 84);
    // More than a path MTU allows is cut to it.
    write.payload = Payload::data(u16::MAX);
    assert_eq!(length(ethernet, v4, v2, write), 1098 - 1024 + 4096);
}

#[test]
fn source_ports_are_those_of_captured_connections() {
    // captures/clean_write_bw, read_bw and atomic, where both ends have the same queue pair number.
    for (qpn, port) in [(0x11, 49_441), (0x15, 49_593), (0x18, 49_728)] {
        assert_eq!(udp_source_port(Qpn::new(qpn), Qpn::new(qpn)), port);
    }
    // 0x1000 * 0x1001 = 0x1001000; ^ (>> 20) = 0x1001010, the label 0x01010, nothing above its 14 bits.
    assert_eq!(udp_source_port(Qpn::new(0x1000), Qpn::new(0x1001)), 0xd010);
    // 0xffffff * 0xffffff = 0xfffffe000001; ^ 0xfffffe0 = 0xfffff1ffffe1; ^ 0xff = 0xfffff1ffff1e, the label 0xfff1e;
    // 0x3f1e ^ 0x3f = 0x3f21.
    assert_eq!(udp_source_port(Qpn::new(0xff_ffff), Qpn::new(0xff_ffff)), 0xff21);
}
