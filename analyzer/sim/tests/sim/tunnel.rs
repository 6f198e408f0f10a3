//! Mirrored frames: what the decoder finds in them.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use roce_model::Time;
use roce_sim::frame::{Frame, Granularity, Roce, Tunnel, TunnelKind};
use roce_wire::{Content, LinkType, MirrorKind, Through, decode};

use super::round_trip::decoded;
use super::{bytes_of, ethernet, network, roce};

fn kind() -> impl Strategy<Value = TunnelKind> {
    let granularity = prop_oneof![
        Just(Granularity::HundredMicroseconds),
        Just(Granularity::HundredNanoseconds)
    ];
    prop_oneof![
        (0_u16..1024, 0_u32..1 << 20).prop_map(|(session, index)| TunnelKind::ErspanII { session, index }),
        (0_u16..1024, 0_u8..64, granularity, any::<bool>()).prop_map(
            |(session, hardware, granularity, egress)| TunnelKind::ErspanIII {
                session,
                hardware,
                granularity,
                egress
            }
        ),
        (0_u32..1 << 24, any::<u16>()).prop_map(|(identifier, source_port)| TunnelKind::Vxlan {
            identifier,
            source_port
        }),
    ]
}

fn tunnel() -> impl Strategy<Value = Tunnel> {
    (ethernet(), network(), kind()).prop_map(|(ethernet, network, kind)| Tunnel {
        ethernet,
        network,
        kind,
        truncate: None,
    })
}

fn assert_mirror(
    tunnel: &Tunnel,
    found: Option<roce_wire::Mirror>,
    sequence: u32,
    time: Time,
    truncated: bool,
) {
    match tunnel.kind {
        TunnelKind::ErspanII { session, index } => {
            let mirror = found.unwrap();
            assert_eq!(
                (mirror.kind, mirror.session),
                (MirrorKind::ErspanII, u32::from(session))
            );
            assert_eq!((mirror.sequence, mirror.index), (Some(sequence), index));
            assert_eq!((mirror.timestamp, mirror.truncated), (None, truncated));
        }
        TunnelKind::ErspanIII {
            session,
            hardware,
            granularity,
            ..
        } => {
            let mirror = found.unwrap();
            assert_eq!(
                (mirror.kind, mirror.session),
                (MirrorKind::ErspanIII, u32::from(session))
            );
            assert_eq!(
                (mirror.sequence, mirror.index),
                (Some(sequence), u32::from(hardware))
            );
            let unit = if granularity == Granularity::HundredNanoseconds {
                100
            } else {
                100_000
            };
            assert_eq!(mirror.timestamp.map(u64::from), Some(time.0 / unit % (1 << 32)));
            assert_eq!(mirror.truncated, truncated);
        }
        // One overlay alone is taken for the packet's own.
        TunnelKind::Vxlan { .. } => assert_eq!(found, None),
    }
}

fn in_tunnel(tunnel: &Tunnel, frame: &Frame, sequence: u32, time: Time) -> Vec<u8> {
    let mut bytes = Vec::new();
    tunnel.encode(frame, sequence, time, usize::MAX, &mut bytes);
    assert_eq!(bytes.len(), tunnel.wire_bytes(frame) as usize);
    bytes
}

proptest! {
    #[test]
    fn mirrored_packets(
        tunnel in tunnel(),
        from in roce(),
        sequence in any::<u32>(),
        time in any::<u64>(),
        most in 0_usize..400,
    ) {
        let (frame, time) = (Frame::Roce(from), Time(time));
        let bytes = in_tunnel(&tunnel, &frame, sequence, time);
        let inner = bytes_of(&frame);
        prop_assert!(bytes.ends_with(&inner));
        let around = u16::try_from(bytes.len() - inner.len()).unwrap();
        let original = u32::try_from(bytes.len()).unwrap();
        let outer = decode(LinkType::ETHERNET, &bytes, original);
        prop_assert_eq!(outer.stop, None);
        assert_mirror(&tunnel, outer.mirror, sequence, time, false);
        let Content::Roce(found) = outer.content else { panic!("{outer:?}") };
        // The packet is that without the tunnel, further back.
        let mut alone = decoded(&inner);
        alone.network_offset += around;
        alone.bth_offset += around;
        alone.through = found.through;
        alone.vni = match tunnel.kind {
            TunnelKind::Vxlan { identifier, .. } => Some(identifier),
            _ => None,
        };
        prop_assert_eq!(found, alone);
        let through = match tunnel.kind {
            TunnelKind::ErspanII { .. } => Through::GRE.and(Through::ERSPAN_II),
            TunnelKind::ErspanIII { .. } => Through::GRE.and(Through::ERSPAN_III),
            TunnelKind::Vxlan { .. } => Through::VXLAN,
        };
        prop_assert!(found.through.has(through));
        // Cut by a snaplen: the beginning.
        let mut cut = Vec::new();
        tunnel.encode(&frame, sequence, time, most, &mut cut);
        prop_assert_eq!(&cut[..], &bytes[..most.min(bytes.len())]);
    }

    #[test]
    fn truncating_mirrors(tunnel in tunnel(), from in roce(), keep in 80_u32..300) {
        let frame = Frame::Roce(from);
        let tunnel = Tunnel { truncate: Some(keep), ..tunnel };
        let bytes = in_tunnel(&tunnel, &frame, 7, Time(0));
        let inner = bytes_of(&frame);
        let kept = inner.len().min(keep as usize);
        prop_assert!(bytes.ends_with(&inner[..kept]));
        let found = decode(LinkType::ETHERNET, &bytes, u32::try_from(bytes.len()).unwrap());
        assert_mirror(&tunnel, found.mirror, 7, Time(0), kept < inner.len());
    }
}

#[test]
fn erspan_repeats_the_tag_of_the_frame() {
    // Linux net/core: VLAN and COS of the tag, encapsulation 3 = the tag is still in the frame.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let from = roce().new_tree(&mut runner).unwrap().current();
    let tagged = Roce {
        ethernet: from.ethernet.tagged(5, 0x123),
        ..from
    };
    let mut tunnel = tunnel().new_tree(&mut runner).unwrap().current();
    tunnel.kind = TunnelKind::ErspanII {
        session: 0x155,
        index: 9,
    };
    let bytes = in_tunnel(&tunnel, &Frame::Roce(tagged), 1, Time(0));
    let at = bytes.len() - bytes_of(&Frame::Roce(tagged)).len() - 8;
    // Version 1, VLAN 0x123; COS 5, encapsulation 3, session 0x155: 0b101_11_0_01_0101_0101.
    assert_eq!(bytes[at..at + 8], [0x11, 0x23, 0xb9, 0x55, 0, 0, 0, 9]);
}
