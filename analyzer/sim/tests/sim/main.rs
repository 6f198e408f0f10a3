//! Frames and taps as their users see them: against real frames, against the decoder, and read back from files.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

mod cm;
mod real;
mod round_trip;
mod tap;
mod tap_order;
mod tunnel;

use proptest::prelude::*;
use roce_sim::frame::{
    Atomic, Ethernet, ExtendedFields, Frame, Network, Payload, RemoteMemory, Roce, Transport, Version,
    encode, encode_within,
};
use roce_wire::{Address, Aeth, Ecn, MacAddress, Opcode, Psn, Qpn};

/// The bytes of a frame, which must be as many as it says.
fn bytes_of(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes);
    assert_eq!(bytes.len(), frame.wire_bytes() as usize, "{frame:?}");
    bytes
}

/// A cut frame is the first part of the whole one, and earlier bytes of the buffer stay.
fn assert_cut(frame: &Frame, whole: &[u8], most: usize) {
    let mut bytes = vec![0x5a; 3];
    encode_within(frame, most, &mut bytes);
    assert_eq!(&bytes[..3], [0x5a; 3]);
    assert_eq!(
        &bytes[3..],
        &whole[..most.min(whole.len())],
        "{most} of {frame:?}"
    );
}

fn mac() -> impl Strategy<Value = MacAddress> {
    any::<[u8; 6]>().prop_map(MacAddress)
}

fn ethernet() -> impl Strategy<Value = Ethernet> {
    let tag = proptest::option::of((0_u8..8, 0_u16..4096));
    (mac(), mac(), tag).prop_map(|(source, destination, tag)| {
        let plain = Ethernet::new(source, destination);
        match tag {
            Some((priority, vlan)) => plain.tagged(priority, vlan),
            None => plain,
        }
    })
}

/// Two addresses of one kind.
fn ends() -> impl Strategy<Value = [Address; 2]> {
    prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|ends| ends.map(Address::v4)),
        any::<[[u8; 16]; 2]>().prop_map(|ends| ends.map(Address::v6)),
    ]
}

fn network() -> impl Strategy<Value = Network> {
    let fields = (
        ends(),
        0_u8..64,
        0_u8..4,
        any::<u8>(),
        any::<u16>(),
        any::<bool>(),
        0_u32..1 << 20,
    );
    fields.prop_map(
        |([source, destination], dscp, ecn, hop_limit, identification, dont_fragment, flow_label)| Network {
            source,
            destination,
            dscp,
            ecn: Ecn::from_traffic_class(ecn),
            hop_limit,
            identification,
            dont_fragment,
            flow_label,
        },
    )
}

fn extended() -> impl Strategy<Value = ExtendedFields> {
    let first = (
        0_u32..1 << 24,
        any::<u32>(),
        0_u32..1 << 24,
        0_u32..1 << 24,
        0_u8..64,
        any::<[u8; 4]>(),
    );
    let reth = (any::<u64>(), any::<u32>(), any::<u32>());
    let atomic = (any::<u64>(), any::<u32>(), any::<u64>(), any::<u64>());
    let last = (any::<u64>(), any::<u32>(), any::<u32>());
    (first, reth, atomic, last).prop_map(|(first, reth, atomic, last)| ExtendedFields {
        context: first.0,
        queue_key: first.1,
        source_qpn: Qpn::new(first.2),
        receive_queue: first.3,
        flush: first.4,
        reth: RemoteMemory {
            address: reth.0,
            key: reth.1,
            length: reth.2,
        },
        atomic: Atomic {
            address: atomic.0,
            key: atomic.1,
            swap_or_add: atomic.2,
            compare: atomic.3,
        },
        aeth: Aeth(first.5),
        original: last.0,
        immediate: last.1,
        invalidate: last.2,
    })
}

fn transport() -> impl Strategy<Value = Transport> {
    // Every opcode, the reserved ones and vendors' among them.
    let numbers = (any::<u8>(), any::<u16>(), 0_u32..1 << 24, 0_u32..1 << 24);
    let payload = (0_u16..=4096, any::<u8>(), any::<u8>());
    (numbers, any::<[bool; 5]>(), extended(), payload).prop_map(
        |((opcode, partition_key, qpn, psn), flags, extended, (bytes, first, step))| Transport {
            opcode: Opcode(opcode),
            solicited: flags[0],
            migration: flags[1],
            partition_key,
            fecn: flags[2],
            becn: flags[3],
            destination_qpn: Qpn::new(qpn),
            ack_request: flags[4],
            psn: Psn::new(psn),
            extended,
            payload: Payload::Data { bytes, first, step },
        },
    )
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![
        1 => Just(Version::V1),
        4 => any::<u16>().prop_map(|source_port| Version::V2 { source_port }),
    ]
}

fn roce() -> impl Strategy<Value = Roce> {
    (ethernet(), network(), version(), transport()).prop_map(|(ethernet, network, version, transport)| Roce {
        ethernet,
        network,
        version,
        transport,
    })
}
