//! Frames of `frames.txt`: captured ones and ones that scapy built, with the values that tshark 4.0.17 shows.

use crate::{frame, frames};
use roce_wire::icrc::{self, Icrc};
use roce_wire::management::cm::Message;
use roce_wire::management::mad::Datagram;
use roce_wire::transport::Transport;
use roce_wire::{
    Address, AethKind, Carrier, Content, DecodedFrame, Ecn, ExtendedHeaders, LinkType, Mirror, MirrorKind,
    PauseKind, Psn, Qpn, RnrTimer, Roce, Service, Through, VlanTag, decode, fast, general,
};

fn whole(frame: &[u8]) -> DecodedFrame {
    decode(
        LinkType::ETHERNET,
        frame,
        u32::try_from(frame.len()).expect("short"),
    )
}

fn roce(frame: &[u8]) -> Roce {
    match whole(frame) {
        DecodedFrame {
            content: Content::Roce(roce),
            stop: None,
            ..
        } => roce,
        other => panic!("{other:?}"),
    }
}

fn v4(last: u8) -> Address {
    Address::v4([10, 77, 0, last])
}

// tshark -r k61_atomic.pcap -c 2 -T fields -e ip.src -e ip.dst -e ip.id -e ip.dsfield.dscp -e ip.dsfield.ecn -e ip.ttl
//   -e udp.srcport -e udp.length -e infiniband.bth.opcode -e infiniband.bth.destqp -e infiniband.bth.psn
//   -e infiniband.aeth.msn -e infiniband.aeth.syndrome -e infiniband.atomiceth.swapdt
//   -e infiniband.atomicacketh.origremdt
// 10.77.0.1 10.77.0.2 0x0db6 26 2 64 49728 52 20 0x000018 12269452 - -  1
// 10.77.0.2 10.77.0.1 0xe408 26 2 64 49728 36 18 0x000018 12269452 1 31 - 5716269894835572704
#[test]
fn fetch_add_and_its_answer() {
    let bytes = frame("fetch_add");
    let request = roce(&bytes);
    assert_eq!((request.source, request.destination), (v4(1), v4(2)));
    assert_eq!(
        (request.ip_id, request.dscp(), request.ecn(), request.hop_limit),
        (0x0db6, 26, Ecn::Ect0, 64)
    );
    assert_eq!((request.udp_source_port, request.payload_bytes), (49728, 0));
    assert_eq!(
        (request.bth.destination_qpn(), request.bth.psn()),
        (Qpn::new(0x18), Psn::new(12_269_452))
    );
    assert_eq!(request.seen, ExtendedHeaders::ATOMIC_ETH);
    let headers = Transport::parse(&bytes[usize::from(request.bth_offset)..]).expect("a BTH");
    assert_eq!(headers.atomic_eth.map(|atomic| atomic.swap_or_add()), Some(1));
    assert_eq!(icrc::check(&bytes, &request), Icrc::Good);

    let bytes = frame("atomic_acknowledge");
    let answer = roce(&bytes);
    assert_eq!(
        (answer.ip_id, answer.bth.opcode().0, answer.payload_bytes),
        (0xe408, 18, 0)
    );
    assert_eq!(
        (answer.aeth.msn(), answer.aeth.kind()),
        (1, AethKind::Ack { credits: 31 })
    );
    let headers = Transport::parse(&bytes[usize::from(answer.bth_offset)..]).expect("a BTH");
    assert_eq!(
        headers.atomic_ack_eth.map(|atomic| atomic.original()),
        Some(5_716_269_894_835_572_704)
    );
    assert_eq!(icrc::check(&bytes, &answer), Icrc::Good);
}

// tshark -r k61_rnr.pcap -Y 'infiniband.aeth.syndrome.opcode==1' -T fields -e ip.src -e ip.id -e udp.length
//   -e infiniband.bth.destqp -e infiniband.bth.psn -e infiniband.aeth.msn -e infiniband.aeth.syndrome.timer
// 10.77.0.2 0xf2a3 28 0x000018 4480530 4 12
#[test]
fn rnr_nak() {
    let bytes = frame("rnr_nak");
    let nak = roce(&bytes);
    assert_eq!((nak.source, nak.ip_id), (v4(2), 0xf2a3));
    assert_eq!(
        (nak.bth.destination_qpn(), nak.bth.psn()),
        (Qpn::new(0x18), Psn::new(4_480_530))
    );
    assert_eq!(
        (nak.aeth.msn(), nak.aeth.kind()),
        (
            4,
            AethKind::RnrNak {
                timer: RnrTimer::new(12)
            }
        )
    );
    assert_eq!(nak.aeth.to_string(), "RNR NAK 0.64 ms MSN 4");
    assert_eq!(icrc::check(&bytes, &nak), Icrc::Good);
}

fn message<'a>(frame: &'a [u8], roce: &Roce) -> Message<'a> {
    let datagram = Datagram::parse(frame, roce).expect("a MAD");
    assert_eq!((datagram.mad.class(), datagram.mad.method()), (7, 3));
    assert_eq!(
        (datagram.mad.transaction(), datagram.mad.status()),
        (0x0000_0002_0122_1801, 0)
    );
    assert_eq!(datagram.data.len(), 232);
    Message::parse(&datagram).expect("of the connection manager")
}

// tshark -r k61_rping.pcap -c 1 -T fields -e infiniband.cm.req.serviceid -e infiniband.cm.req.serviceid.dport
//   -e infiniband.cm.req.ip_cm.sport -e infiniband.cm.req.localqkey -e infiniband.cm.req.prim_tfcclass
//   -e infiniband.cm.req.prim_hoplim -e infiniband.cm.req.prim_locallid -e infiniband.cm.req.pkey -e udp.length
// 0x0000000001061c06 0x1c06 0xab52 0x00000000 0x00 0x40 65535 0xffff 288
// tshark -r k61_rping.pcap -c 1 -V: local communication id 0x01182201, local QPN 0x000019, responder resources 1,
//   initiator depth 1, remote and local CM response timeout 0x14, starting PSN 0x987d6b, retry count 7,
//   path MTU 3, RNR retry count 7, max CM retries 0xf, GIDs 10.77.0.1 and 10.77.0.2, ACK timeout 0x13,
//   IP CM version 4, source 10.77.0.1, destination 10.77.0.2
#[test]
fn connection_request() {
    let bytes = frame("rping_req");
    let packet = roce(&bytes);
    assert_eq!(
        (packet.source_qpn, packet.seen, packet.payload_bytes),
        (1, ExtendedHeaders::DETH, 256)
    );
    let Message::Req(req) = message(&bytes, &packet) else {
        panic!("a REQ")
    };
    assert_eq!((req.local_id().0, req.local_qpn()), (0x0118_2201, Qpn::new(0x19)));
    assert_eq!(
        (req.service_id().0, req.service_id().port()),
        (0x0106_1c06, Some(0x1c06))
    );
    assert_eq!(
        (
            req.responder_resources(),
            req.queue_key(),
            req.private_data().len()
        ),
        (1, 0, 92)
    );
    let detail = req.detail().expect("whole");
    assert_eq!(
        (detail.starting_psn(), detail.initiator_depth()),
        (Psn::new(0x98_7d6b), 1)
    );
    assert_eq!(
        (detail.remote_response_timeout(), detail.local_response_timeout()),
        (0x14, 0x14)
    );
    assert_eq!(
        (
            detail.retry_count(),
            detail.rnr_retry_count(),
            detail.max_cm_retries()
        ),
        (7, 7, 15)
    );
    assert_eq!((detail.path_mtu_code(), detail.path_mtu()), (3, Some(1024)));
    assert_eq!(
        (detail.transport(), detail.has_flow_control()),
        (Some(Service::Rc), false)
    );
    assert_eq!(
        (detail.primary_local_gid(), detail.primary_remote_gid()),
        (v4(1), v4(2))
    );
    assert_eq!(
        (detail.primary_local_lid(), detail.partition_key()),
        (65535, 0xffff)
    );
    assert_eq!(
        (detail.primary_traffic_class(), detail.primary_hop_limit()),
        (0, 0x40)
    );
    assert_eq!(detail.primary_ack_timeout(), 0x13);
    let ip = req.ip_addressing().expect("RDMA CM");
    assert_eq!(
        (ip.ip_version(), ip.source_port(), ip.source(), ip.destination()),
        (4, 0xab52, v4(1), v4(2))
    );
    assert_eq!(icrc::check(&bytes, &packet), Icrc::Good);

    // Cut at 128 bytes: the queue pair is still there, and the length is that of the whole packet.
    let Content::Roce(cut) = decode(LinkType::ETHERNET, &bytes[..128], 322).content else {
        panic!("RoCE")
    };
    assert_eq!(cut, packet);
    let datagram = Datagram::parse(&bytes[..128], &cut).expect("its header");
    let Some(Message::Req(req)) = Message::parse(&datagram) else {
        panic!("a REQ")
    };
    assert_eq!((req.local_qpn(), req.detail()), (Qpn::new(0x19), None));
}

// tshark -r k61_rping.pcap -Y infiniband.mad -V: REP from 0x02182201 to 0x01182201, local QPN 0x000019, starting PSN
//   0x108f3d, responder resources 1, initiator depth 1, target ACK delay 0x0f, RNR retry count 7, SRQ 0; RTU from
//   0x01182201 to 0x02182201; DREQ the same ids, remote QPN 0x000019; DREP from 0x02182201 to 0x01182201
#[test]
fn connection_reply_and_the_rest_of_its_life() {
    let (active, passive) = (0x0118_2201, 0x0218_2201);
    let ids = |message: &Message<'_>| {
        (
            message.local_id().map(|id| id.0),
            message.remote_id().map(|id| id.0),
        )
    };
    let bytes = frame("rping_rep");
    let rep_message = message(&bytes, &roce(&bytes));
    assert_eq!(ids(&rep_message), (Some(passive), Some(active)));
    let Message::Rep(rep) = rep_message else {
        panic!("a REP")
    };
    assert_eq!(
        (rep.local_qpn(), rep.starting_psn()),
        (Qpn::new(0x19), Psn::new(0x10_8f3d))
    );
    assert_eq!((rep.responder_resources(), rep.initiator_depth()), (1, 1));
    assert_eq!(
        (
            rep.target_ack_delay(),
            rep.rnr_retry_count(),
            rep.has_shared_receive_queue()
        ),
        (15, 7, false)
    );
    let bytes = frame("rping_rtu");
    let rtu = message(&bytes, &roce(&bytes));
    assert_eq!((rtu.name(), ids(&rtu)), ("RTU", (Some(active), Some(passive))));
    let bytes = frame("rping_dreq");
    let dreq_message = message(&bytes, &roce(&bytes));
    assert_eq!(ids(&dreq_message), (Some(active), Some(passive)));
    let Message::Dreq(dreq) = dreq_message else {
        panic!("a DREQ")
    };
    assert_eq!(dreq.remote_qpn(), Qpn::new(0x19));
    let bytes = frame("rping_drep");
    let reply = message(&bytes, &roce(&bytes));
    assert_eq!(
        (reply.name(), ids(&reply)),
        ("DREP", (Some(passive), Some(active)))
    );
}

/// The ACK that scapy put into every stack, and what it was put into.
fn scapy(name: &str) -> (Roce, Option<Mirror>) {
    let bytes = frame(name);
    let DecodedFrame {
        content: Content::Roce(roce),
        mirror,
        stop: None,
        ..
    } = whole(&bytes)
    else {
        panic!("{name}: {:?}", whole(&bytes))
    };
    assert_eq!(
        (
            roce.bth.opcode().0,
            roce.bth.destination_qpn(),
            roce.bth.psn().value()
        ),
        (17, Qpn::new(0x11), 0x12_3456),
        "{name}"
    );
    assert_eq!(
        (roce.aeth.syndrome(), roce.aeth.msn(), roce.payload_bytes),
        (0x1f, 7, 0),
        "{name}"
    );
    assert_eq!(
        (roce.udp_source_port, roce.seen),
        (49152, ExtendedHeaders::AETH),
        "{name}"
    );
    if roce.carrier == Carrier::RoceV2Ipv4 {
        assert_eq!(
            (roce.source, roce.destination),
            (Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2])),
            "{name}"
        );
        assert_eq!(
            (roce.ip_id, roce.traffic_class, roce.hop_limit),
            (0x4242, 106, 61),
            "{name}"
        );
        assert_eq!(
            icrc::check(&bytes, &roce),
            Icrc::Good,
            "{name}: scapy computed it"
        );
    } else {
        assert_eq!(
            (roce.source.to_string(), roce.destination.to_string()),
            ("fd00::1".into(), "fd00::2".into()),
            "{name}"
        );
        assert_eq!(
            (roce.ip_id, roce.traffic_class, roce.hop_limit),
            (0, 107, 60),
            "{name}"
        );
    }
    (roce, mirror)
}

// tshark -r scapy.pcap -T fields -e vlan.id -e vxlan.vni -e geneve.vni -e gre.sequence_number -e erspan.spanid
//   -e erspan.index -e erspan.truncated -e erspan.timestamp -e erspan.hw
// agrees with the numbers below, which are those that scapy was given.
#[test]
fn stacks_built_by_scapy() {
    let (qinq, _) = scapy("qinq");
    let tag = qinq.vlan.expect("a tag");
    assert_eq!(
        (tag.id(), tag.priority(), tag.drop_eligible(), qinq.through),
        (100, 5, true, Through::VLAN)
    );
    assert_eq!((qinq.network_offset, qinq.bth_offset), (22, 50));

    let (ipv6, _) = scapy("ipv6");
    assert_eq!((ipv6.carrier, ipv6.bth_offset), (Carrier::RoceV2Ipv6, 62));
    let (extended, _) = scapy("ipv6_hop_by_hop");
    assert_eq!(
        (extended.through, extended.bth_offset),
        (Through::IPV6_EXTENSION, 62 + 8 + 16)
    );
    let (fragment, _) = scapy("ipv6_fragment_first");
    assert_eq!(
        (fragment.through, fragment.bth_offset),
        (Through::IPV6_EXTENSION, 62 + 8)
    );
    let (options, _) = scapy("ipv4_options");
    assert_eq!(
        (options.through, options.bth_offset),
        (Through::IPV4_OPTIONS, 14 + 20 + 12 + 8)
    );

    let (vxlan, mirror) = scapy("vxlan");
    assert_eq!(
        (vxlan.vni, vxlan.through, mirror),
        (Some(5001), Through::VXLAN, None)
    );
    let (geneve, mirror) = scapy("geneve");
    assert_eq!(
        (geneve.vni, geneve.through, mirror),
        (Some(6001), Through::GENEVE.and(Through::VLAN), None)
    );
    assert_eq!(geneve.vlan.map(VlanTag::id), Some(7));
    let (gre, mirror) = scapy("gre_ip");
    assert_eq!((gre.through, mirror), (Through::GRE, None));
    let (mpls, _) = scapy("mpls");
    assert_eq!((mpls.through, mpls.network_offset), (Through::MPLS, 14 + 8));
    let (inner, _) = scapy("ip_in_ip");
    assert_eq!(
        (inner.through, inner.carrier),
        (Through::IP_IN_IP, Carrier::RoceV2Ipv6)
    );
}

#[test]
fn mirror_sessions_built_by_scapy() {
    let plain = Mirror {
        kind: MirrorKind::ErspanI,
        session: 0,
        sequence: None,
        truncated: false,
        timestamp: None,
        index: 0,
    };
    let (first, mirror) = scapy("erspan_1");
    assert_eq!(
        (first.through, mirror),
        (Through::GRE.and(Through::ERSPAN_I), Some(plain))
    );
    let (second, mirror) = scapy("erspan_2");
    assert_eq!(second.through, Through::GRE.and(Through::ERSPAN_II));
    let session = Mirror {
        kind: MirrorKind::ErspanII,
        session: 345,
        sequence: Some(123_456),
        truncated: true,
        index: 0x5_4321,
        ..plain
    };
    assert_eq!(mirror, Some(session));
    let (third, mirror) = scapy("erspan_3");
    assert_eq!(third.through, Through::GRE.and(Through::ERSPAN_III));
    let session = Mirror {
        kind: MirrorKind::ErspanIII,
        session: 17,
        sequence: Some(99),
        timestamp: Some(0xdead_beef),
        index: 0x15,
        ..plain
    };
    assert_eq!(mirror, Some(session));
    let (overlay, mirror) = scapy("erspan_in_vxlan_overlay");
    assert_eq!(overlay.vni, Some(31));
    assert_eq!(
        mirror.map(|m| (m.kind, m.session, m.sequence)),
        Some((MirrorKind::ErspanII, 3, Some(8)))
    );
}

// tshark -r scapy.pcap -Y 'eth.type==0x8808' -V: class enable vector 0x0009, C0 0, C3 65535; pause_time 1234.
#[test]
fn pause_frames_built_by_scapy() {
    let Content::Pause(pfc) = whole(&frame("pfc")).content else {
        panic!("a PFC frame")
    };
    assert_eq!((pfc.kind, pfc.enabled, pfc.present), (PauseKind::Priority, 9, 8));
    assert_eq!(
        (pfc.quanta_of(0), pfc.quanta_of(3), pfc.quanta_of(1)),
        (Some(0), Some(65535), None)
    );
    assert_eq!(
        (pfc.source.0, pfc.destination.0),
        ([2, 0, 0, 0, 0, 0x0a], [1, 0x80, 0xc2, 0, 0, 1])
    );
    let Content::Pause(pause) = whole(&frame("pause")).content else {
        panic!("a pause frame")
    };
    assert_eq!(
        (pause.kind, pause.present, pause.quanta_of(5)),
        (PauseKind::Link, 1, Some(1234))
    );
    // A generator that sends three quanta and no padding.
    let short = &frame("pfc")[..18 + 6];
    let Content::Pause(pfc) = whole(short).content else {
        panic!("a PFC frame")
    };
    assert_eq!((pfc.present, whole(short).stop), (3, None));
    // A longer frame with these bytes: the rest was cut off.
    let cut = decode(LinkType::ETHERNET, short, 60);
    assert!(matches!(cut.content, Content::Pause(_)) && cut.stop.is_some());
}

#[test]
fn both_paths_give_the_same() {
    let mut read = 0;
    for (name, bytes) in frames() {
        let original = u32::try_from(bytes.len()).expect("short");
        for length in 0..=bytes.len() {
            if let Some(roce) = fast::decode(LinkType::ETHERNET, &bytes[..length], original) {
                let general = general::decode(LinkType::ETHERNET, &bytes[..length], original);
                assert_eq!(general, DecodedFrame::new(Content::Roce(roce)), "{name}");
                read += 1;
            }
        }
    }
    assert!(read > 100, "{read}");
}
