//! Messages of the connection manager, as the decoder reads them.

use proptest::prelude::*;
use roce_sim::frame::cm::{ConnectedService, Datagram, Message, PathMtu, Rep, Req};
use roce_sim::frame::{Frame, Roce, Transport, Version};
use roce_wire::management::cm::{CommId, Message as Read};
use roce_wire::management::mad;
use roce_wire::{Psn, Qpn, Service};

use super::round_trip::decoded;
use super::{assert_cut, bytes_of, ends, ethernet, network};

fn req() -> impl Strategy<Value = Req> {
    let first = (
        ends(),
        any::<[u16; 2]>(),
        any::<u64>(),
        0_u32..1 << 24,
        0_u32..1 << 24,
        0_u8..3,
        any::<bool>(),
    );
    let counts = (
        any::<[u8; 2]>(),
        1_u8..=5,
        0_u8..32,
        0_u8..8,
        0_u8..8,
        0_u8..32,
        0_u8..16,
    );
    let path = (any::<[u8; 2]>(), 0_u32..1 << 20, 0_u8..64, 0_u8..16);
    (first, counts, path).prop_map(|(first, counts, path)| Req {
        source: first.0[0],
        destination: first.0[1],
        port: first.1[0],
        source_port: first.1[1],
        guid: first.2,
        local_qpn: Qpn::new(first.3),
        starting_psn: Psn::new(first.4),
        transport: [ConnectedService::Rc, ConnectedService::Uc, ConnectedService::Xrc][usize::from(first.5)],
        flow_control: first.6,
        responder_resources: counts.0[0],
        initiator_depth: counts.0[1],
        path_mtu: PathMtu::within(128 << counts.1),
        ack_timeout: counts.2,
        retry_count: counts.3,
        rnr_retry_count: counts.4,
        response_timeout: counts.5,
        cm_retries: counts.6,
        traffic_class: path.0[0],
        hop_limit: path.0[1],
        flow_label: path.1,
        rate: path.2,
        service_level: path.3,
    })
}

fn rep() -> impl Strategy<Value = Rep> {
    let numbers = (
        any::<u64>(),
        0_u32..1 << 24,
        0_u32..1 << 24,
        any::<[u8; 2]>(),
        any::<bool>(),
        0_u8..32,
        0_u8..8,
    );
    numbers.prop_map(
        |(guid, qpn, psn, depths, flow_control, target_ack_delay, rnr_retry_count)| Rep {
            guid,
            local_qpn: Qpn::new(qpn),
            starting_psn: Psn::new(psn),
            responder_resources: depths[0],
            initiator_depth: depths[1],
            flow_control,
            target_ack_delay,
            rnr_retry_count,
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        4 => req().prop_map(Message::Req),
        2 => rep().prop_map(Message::Rep),
        1 => Just(Message::Rtu),
        1 => (0_u32..1 << 24).prop_map(|qpn| Message::Dreq { remote_qpn: Qpn::new(qpn) }),
        1 => Just(Message::Drep),
    ]
}

fn assert_req(from: &Req, req: &roce_wire::management::cm_req::Req<'_>) {
    assert_eq!(
        (req.local_qpn(), req.responder_resources()),
        (from.local_qpn, from.responder_resources)
    );
    // 0x0000000001 is RDMA CM's prefix, 06 TCP.
    assert_eq!(req.service_id().0, 0x0106_0000 + u64::from(from.port));
    assert_eq!(req.service_id().port(), Some(from.port));
    let detail = req.detail().unwrap();
    assert_eq!(
        (detail.starting_psn(), detail.initiator_depth()),
        (from.starting_psn, from.initiator_depth)
    );
    let service = match from.transport {
        ConnectedService::Rc => Service::Rc,
        ConnectedService::Uc => Service::Uc,
        ConnectedService::Xrc => Service::Xrc,
    };
    assert_eq!(
        (detail.transport(), detail.has_flow_control()),
        (Some(service), from.flow_control)
    );
    assert_eq!(
        (detail.retry_count(), detail.rnr_retry_count()),
        (from.retry_count, from.rnr_retry_count)
    );
    assert_eq!(detail.max_cm_retries(), from.cm_retries);
    let timeouts = (detail.local_response_timeout(), detail.remote_response_timeout());
    assert_eq!(timeouts, (from.response_timeout, from.response_timeout));
    assert_eq!(
        (detail.path_mtu(), detail.partition_key()),
        (Some(from.path_mtu.bytes()), 0xffff)
    );
    assert_eq!(
        (detail.primary_local_gid(), detail.primary_remote_gid()),
        (from.source, from.destination)
    );
    assert_eq!(
        (detail.primary_local_lid(), detail.primary_remote_lid()),
        (0xffff, 0xffff)
    );
    assert_eq!(detail.primary_traffic_class(), from.traffic_class);
    assert_eq!(
        (detail.primary_hop_limit(), detail.primary_ack_timeout()),
        (from.hop_limit, from.ack_timeout)
    );
    let addressing = req.ip_addressing().unwrap();
    assert_eq!(
        (addressing.source(), addressing.destination()),
        (from.source, from.destination)
    );
    assert_eq!(addressing.source_port(), from.source_port);
}

proptest! {
    #[test]
    fn messages(
        (ethernet, network, port) in (ethernet(), network(), any::<u16>()),
        (transaction, local, remote, psn) in (any::<u64>(), any::<u32>(), any::<u32>(), 0_u32..1 << 24),
        message in message(),
        most in 0_usize..330,
    ) {
        let (local_id, remote_id) = (CommId(local), CommId(remote));
        let datagram = Datagram { transaction, local_id, remote_id, message };
        let transport = Transport::management(Psn::new(psn), datagram);
        let frame = Frame::Roce(Roce { ethernet, network, version: Version::V2 { source_port: port }, transport });
        let bytes = bytes_of(&frame);
        let roce = decoded(&bytes);
        prop_assert_eq!((roce.source_qpn, roce.payload_bytes), (1, 256));
        let read = mad::Datagram::parse(&bytes, &roce).unwrap();
        prop_assert_eq!((read.mad.base_version(), read.mad.class_version(), read.mad.method()), (1, 2, 3));
        prop_assert_eq!((read.mad.status(), read.mad.modifier(), read.data.len()), (0, 0, 232));
        prop_assert_eq!(read.mad.transaction(), transaction);
        let read = Read::parse(&read).unwrap();
        prop_assert_eq!(read.local_id(), Some(local_id));
        let is_req = matches!(message, Message::Req(_));
        prop_assert_eq!(read.remote_id(), (!is_req).then_some(remote_id));
        match (&message, &read) {
            (Message::Req(from), Read::Req(req)) => assert_req(from, req),
            (Message::Rep(from), Read::Rep(rep)) => {
                prop_assert_eq!((rep.local_qpn(), rep.starting_psn()), (from.local_qpn, from.starting_psn));
                prop_assert_eq!(rep.responder_resources(), from.responder_resources);
                prop_assert_eq!(rep.initiator_depth(), from.initiator_depth);
                prop_assert_eq!(rep.target_ack_delay(), from.target_ack_delay);
                prop_assert_eq!(rep.rnr_retry_count(), from.rnr_retry_count);
                prop_assert!(!rep.has_shared_receive_queue());
            }
            (Message::Dreq { remote_qpn }, Read::Dreq(dreq)) => prop_assert_eq!(dreq.remote_qpn(), *remote_qpn),
            (Message::Rtu, Read::Rtu(_)) | (Message::Drep, Read::Drep(_)) => {}
            other => panic!("{other:?}"),
        }
        assert_cut(&frame, &bytes, most);
    }
}

#[test]
fn path_mtus() {
    // IBTA 12.6.5: the codes 1 to 5 are 256 to 4096 bytes.
    for (code, bytes) in [(1, 256), (2, 512), (3, 1024), (4, 2048), (5, 4096)] {
        let mtu = PathMtu::within(bytes);
        assert_eq!((mtu as u8, mtu.bytes()), (code, bytes));
        assert_eq!(PathMtu::within(bytes + 1), mtu);
    }
    assert_eq!(PathMtu::within(0), PathMtu::Bytes256);
}
