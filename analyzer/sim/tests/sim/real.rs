//! Real frames made again: those of published test suites, and of the captures of the repository. What is read from their
//! bytes and written again must give the same bytes.

use std::path::Path;

use roce_capture::{Options, Reader};
use roce_sim::frame::cm::{ConnectedService, Datagram, Message, PathMtu, Rep, Req};
use roce_sim::frame::{
    Atomic, Ethernet, ExtendedFields, Frame, Network, Payload, RemoteMemory, Roce, Transport, Version,
};
use roce_wire::management::cm;
use roce_wire::management::mad;
use roce_wire::network::ipv6::Ipv6;
use roce_wire::{
    Address, Aeth, Carrier, Content, Ecn, LinkType, MacAddress, Opcode, Psn, Qpn, Service, decode, transport,
};

use super::bytes_of;

/// A frame and what was in it.
struct MadeFrame {
    frame: Frame,
    /// Range of the payload.
    payload: std::ops::Range<usize>,
    /// True if the payload is one that can be made again.
    same_payload: bool,
}

/// The pattern of `n` bytes with a constant difference: what [`Payload::Data`] can make.
fn steady(data: &[u8]) -> Option<Payload> {
    let first = data.first().copied().unwrap_or(0);
    let step = data.get(1).map_or(0, |second| second.wrapping_sub(first));
    let payload = Payload::Data {
        bytes: u16::try_from(data.len()).ok()?,
        first,
        step,
    };
    data.windows(2)
        .all(|pair| pair[1].wrapping_sub(pair[0]) == step)
        .then_some(payload)
}

fn again(message: &cm::Message<'_>) -> Message {
    match message {
        cm::Message::Req(req) => {
            let detail = req.detail().unwrap();
            let private = req.ip_addressing().unwrap();
            Message::Req(Req {
                port: req.service_id().port().unwrap(),
                source_port: private.source_port(),
                source: detail.primary_local_gid(),
                destination: detail.primary_remote_gid(),
                // Fields that roce-wire has no accessor for, from the bytes as tshark shows them.
                guid: 0x0000_00ff_fe00_000a,
                flow_label: 0x4daf4,
                rate: 0,
                service_level: 0,
                local_qpn: req.local_qpn(),
                starting_psn: detail.starting_psn(),
                transport: match detail.transport() {
                    Some(Service::Rc) => ConnectedService::Rc,
                    other => panic!("{other:?}"),
                },
                flow_control: detail.has_flow_control(),
                responder_resources: req.responder_resources(),
                initiator_depth: detail.initiator_depth(),
                path_mtu: PathMtu::within(detail.path_mtu().unwrap()),
                ack_timeout: detail.primary_ack_timeout(),
                retry_count: detail.retry_count(),
                rnr_retry_count: detail.rnr_retry_count(),
                response_timeout: detail.local_response_timeout(),
                cm_retries: detail.max_cm_retries(),
                traffic_class: detail.primary_traffic_class(),
                hop_limit: detail.primary_hop_limit(),
            })
        }
        cm::Message::Rep(rep) => Message::Rep(Rep {
            guid: 0x0000_00ff_fe00_000b,
            local_qpn: rep.local_qpn(),
            starting_psn: rep.starting_psn(),
            responder_resources: rep.responder_resources(),
            initiator_depth: rep.initiator_depth(),
            flow_control: false,
            target_ack_delay: rep.target_ack_delay(),
            rnr_retry_count: rep.rnr_retry_count(),
        }),
        cm::Message::Rtu(_) => Message::Rtu,
        cm::Message::Dreq(dreq) => Message::Dreq {
            remote_qpn: dreq.remote_qpn(),
        },
        cm::Message::Drep(_) => Message::Drep,
        other => panic!("{other}"),
    }
}

fn extended(headers: &transport::Transport<'_>) -> ExtendedFields {
    ExtendedFields {
        context: headers.rdeth.map_or(0, |h| h.context()),
        queue_key: headers.deth.map_or(0, |h| h.queue_key()),
        source_qpn: headers.deth.map_or(Qpn::new(0), |h| h.source_qpn()),
        receive_queue: headers.xrceth.map_or(0, |h| h.receive_queue()),
        flush: 0,
        reth: headers.reth.map_or(RemoteMemory::default(), |h| RemoteMemory {
            address: h.virtual_address(),
            key: h.remote_key(),
            length: h.dma_length(),
        }),
        atomic: headers.atomic_eth.map_or(Atomic::default(), |h| Atomic {
            address: h.virtual_address(),
            key: h.remote_key(),
            swap_or_add: h.swap_or_add(),
            compare: h.compare(),
        }),
        aeth: headers.aeth.unwrap_or_default(),
        original: headers.atomic_ack_eth.map_or(0, |h| h.original()),
        immediate: headers.imm_dt.map_or(0, |h| h.data()),
        invalidate: headers.ieth.map_or(0, |h| h.remote_key()),
    }
}

/// The frame `bytes` in plain values.
fn made_again(bytes: &[u8]) -> MadeFrame {
    let decoded = decode(LinkType::ETHERNET, bytes, u32::try_from(bytes.len()).unwrap());
    let Content::Roce(roce) = decoded.content else {
        panic!("{decoded:?}")
    };
    let network_header = &bytes[usize::from(roce.network_offset)..];
    let is_v4 = roce.carrier == Carrier::RoceV2Ipv4;
    let network = Network {
        source: roce.source,
        destination: roce.destination,
        dscp: roce.dscp(),
        ecn: roce.ecn(),
        hop_limit: roce.hop_limit,
        identification: roce.ip_id,
        dont_fragment: is_v4 && network_header[6] & 0x40 != 0,
        flow_label: if is_v4 {
            0
        } else {
            Ipv6(network_header.first_chunk().unwrap()).flow_label()
        },
    };
    let bth_offset = usize::from(roce.bth_offset);
    let headers = transport::Transport::parse(&bytes[bth_offset..]).unwrap();
    let start = bth_offset + headers.payload_offset;
    let payload = start..start + roce.payload_bytes as usize;
    let data = &bytes[payload.clone()];
    let management = mad::Datagram::parse(bytes, &roce).and_then(|datagram| {
        let message = cm::Message::parse(&datagram)?;
        Some(Payload::Management(Datagram {
            transaction: datagram.mad.transaction(),
            local_id: message.local_id()?,
            remote_id: message.remote_id().unwrap_or(cm::CommId(0)),
            message: again(&message),
        }))
    });
    let known = management.or_else(|| steady(data));
    let bth = headers.bth;
    let transport = Transport {
        opcode: bth.opcode(),
        solicited: bth.solicited(),
        migration: bth.migration_request(),
        partition_key: bth.partition_key(),
        fecn: bth.fecn(),
        becn: bth.becn(),
        destination_qpn: bth.destination_qpn(),
        ack_request: bth.ack_request(),
        psn: bth.psn(),
        extended: extended(&headers),
        payload: known.unwrap_or(Payload::data(u16::try_from(data.len()).unwrap())),
    };
    let mac = |at: usize| MacAddress(*bytes[at..].first_chunk().unwrap());
    let version = match roce.carrier {
        Carrier::RoceV1 => Version::V1,
        _ => Version::V2 {
            source_port: roce.udp_source_port,
        },
    };
    let ethernet = Ethernet {
        source: mac(6),
        destination: mac(0),
        vlan: roce.vlan,
    };
    MadeFrame {
        frame: Frame::Roce(Roce {
            ethernet,
            network,
            version,
            transport,
        }),
        payload,
        same_payload: known.is_some(),
    }
}

/// True if the frame is the same in all its bytes; where its payload cannot be made again, in all but that and the ICRC.
#[track_caller]
fn assert_same(bytes: &[u8], name: &str) -> bool {
    let made = made_again(bytes);
    let written = bytes_of(&made.frame);
    if made.same_payload {
        assert_eq!(written, bytes, "{name}");
        return true;
    }
    let MadeFrame { payload, .. } = made;
    assert_eq!(written.len(), bytes.len(), "{name}");
    assert_eq!(written[..payload.start], bytes[..payload.start], "{name}");
    false
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// The frames of `roce-wire`'s test vectors: from the test suites of scapy, PcapPlusPlus and open-rdma-driver.
fn published(name: &str) -> Vec<u8> {
    let json: serde_json::Value =
        serde_json::from_str(include_str!("../../../wire/tests/wire/icrc.json")).unwrap();
    let entry = json
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["name"] == name)
        .unwrap();
    hex(entry["frame"].as_str().unwrap())
}

#[test]
fn published_packets() {
    for name in ["cnp-connectx4lx", "rocev1-rc-ack", "pcapplusplus-read-request"] {
        assert!(assert_same(&published(name), name), "{name}");
    }
    // Begins at the IP header; 128 bytes 0xff of payload.
    let write = [&[0; 12][..], &[0x08, 0x00], &published("dtld-write-only-ip")].concat();
    assert!(assert_same(&write, "write"));
    // 5 bytes of payload that do not count up, and 3 of padding.
    assert!(!assert_same(&published("rocev1-rc-write-only"), "RoCEv1 write"));
    // Two that have a UDP checksum, which hardware does not write.
    for (name, udp) in [("scapy-uc-send-only-v4", 34), ("scapy-uc-send-only-v6", 54)] {
        let mut bytes = published(name);
        bytes[udp + 6..udp + 8].fill(0);
        assert!(!assert_same(&bytes, name));
    }
}

#[test]
fn a_congestion_notification_by_hand() {
    // Values of scapy's test (test/contrib/roce.uts).
    let frame = Frame::Roce(Roce {
        ethernet: Ethernet::new(
            MacAddress([0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32]),
            MacAddress([0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2]),
        ),
        network: Network {
            dscp: 48,
            ecn: Ecn::Ect0,
            identification: 0x718c,
            ..Network::new(Address::v4([10, 0, 17, 1]), Address::v4([10, 0, 18, 1]))
        },
        version: Version::V2 { source_port: 0 },
        transport: Transport::cnp(Qpn::new(0x118)),
    });
    assert_eq!(bytes_of(&frame), published("cnp-connectx4lx"));
}

#[test]
fn acknowledgements_by_hand() {
    let mut ack = Transport::ack(Qpn::new(0x109), Psn::new(0xa7_88c0), 5, 0);
    assert_eq!(ack.extended.aeth, Aeth([0, 0, 0, 5]));
    ack.migration = true;
    let network = Network {
        ecn: Ecn::Ect0,
        ..Network::new(Address::v4([15, 0, 0, 2]), Address::v4([15, 0, 0, 2]))
    };
    let mac = MacAddress([0x7c, 0xfe, 0x90, 0x75, 0x3c, 0xd8]);
    let frame = Frame::Roce(Roce {
        ethernet: Ethernet::new(mac, mac),
        network,
        version: Version::V1,
        transport: ack,
    });
    assert_eq!(bytes_of(&frame), published("rocev1-rc-ack"));
}

/// The frames of a capture of the repository that are there in full length.
fn captured(name: &str) -> Vec<Vec<u8>> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let path = Path::new(&folder).join(format!("../../captures/{name}.pcap"));
    let mut reader = Reader::open(&path, &Options::default()).unwrap();
    let mut frames = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        let whole = batch
            .frames()
            .iter()
            .filter(|frame| frame.captured == frame.original);
        frames.extend(whole.map(|frame| batch.bytes(frame).to_vec()));
    }
    frames
}

#[test]
fn captures_of_the_repository() {
    // Packets of rxe without payload, and all connection management, are compared in every byte.
    let of = |name: &str| {
        let frames = captured(name);
        let same = frames.iter().filter(|bytes| assert_same(bytes, name)).count();
        (same, frames.len())
    };
    // Those that tshark counts by opcode (`-T fields -e infiniband.bth.opcode | sort | uniq -c`): 17, 12, 18 and 20.
    assert_eq!(of("clean_write_bw"), (20, 340));
    assert_eq!(of("read_bw"), (20, 340));
    assert_eq!(of("atomic"), (40, 40));
    assert_eq!(of("rnr"), (34, 109));
}

#[test]
fn a_captured_connection_setup() {
    let frames: Vec<_> = captured("rping")
        .into_iter()
        .filter(|bytes| bytes[42] == Opcode::UD_SEND_ONLY.0)
        .collect();
    assert_eq!(frames.len(), 5, "REQ, REP, RTU, DREQ, DREP");
    for bytes in &frames {
        assert!(assert_same(bytes, "rping"));
    }
}
