//! Pairing under random traffic: connections between two hosts with random PSNs, message lengths, delays and losses of
//! the capture. A pair that is found is always the right one, and where PSNs tell connections apart it is found.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use roce_flow::{Analysis, Collector, Options};
use roce_model::{FlowKey, FlowRow, Packet, PacketBatch, Sink, SinkError, Span, Time};
use roce_verdict::Settings;
use roce_wire::{Address, Aeth, Bth, Opcode, Psn, Qpn, Roce};

const BEGIN: u64 = 1_000 * Span::SECOND.0;

/// Numbers from a seed (xorshift64*, Vigna 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % most
    }
}

/// First PSNs of the connections.
#[derive(Clone, Copy, Debug)]
enum FirstPsns {
    /// 0, as those of NCCL.
    Zero,
    /// Random ones of all 2^24.
    Random,
    /// Random ones of 8,192 neighbours: of two random ones it is one pair in 1,024 that is as near.
    Near,
}

/// Shape of the traffic.
#[derive(Clone, Debug)]
struct Shape {
    seed: u64,
    connections: u32,
    first_psns: FirstPsns,
    /// All messages are equally long.
    alike: bool,
    /// Messages that may be in flight at once.
    window: u32,
    messages: u32,
    /// The capture begins so late, in ns.
    late: u64,
    /// Number of packets of a thousand that the capture loses.
    lost: u64,
}

fn packet(from_a: bool, time: u64, opcode: Opcode, qpn: u32, psn: Psn) -> Packet {
    let hosts = [Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2])];
    let [source, destination] = if from_a { hosts } else { [hosts[1], hosts[0]] };
    let [_, q @ ..] = qpn.to_be_bytes();
    let [_, p @ ..] = psn.value().to_be_bytes();
    let roce = Roce {
        source,
        destination,
        bth: Bth([opcode.0, 0, 0xff, 0xff, 0, q[0], q[1], q[2], 0, p[0], p[1], p[2]]),
        aeth: Aeth([0x1f, 0, 0, 0]),
        payload_bytes: if opcode.carries_data() { 1024 } else { 0 },
        udp_source_port: 0xc001,
        seen: opcode.extended(),
        ..Roce::default()
    };
    Packet {
        time: Time(BEGIN + time),
        wire_bytes: 1082,
        roce,
        ..Packet::default()
    }
}

/// One connection's packets: windows of messages, each answered some time later.
fn connection(number: u32, shape: &Shape, random: &mut Random, packets: &mut Vec<Packet>) {
    // The queue pairs of the two ends are numbered apart.
    let (to_b, to_a) = (0x100 + number, 0x2000 + 7 * number);
    let first = match shape.first_psns {
        FirstPsns::Zero => 0,
        FirstPsns::Random => u32::try_from(random.below(1 << 24)).unwrap(),
        FirstPsns::Near => 0x0080_0000 + u32::try_from(random.below(1 << 13)).unwrap(),
    };
    let (mut psn, mut time) = (Psn::new(first), random.below(3_000));
    let round_trip = 10_000 + random.below(3_000);
    let mut left = shape.messages;
    while left > 0 {
        let mut answers = Vec::new();
        for _ in 0..shape.window.min(left) {
            left -= 1;
            let length = if shape.alike { 1 } else { 1 + random.below(4) };
            for i in 0..length {
                let opcode = match (i, i + 1 == length) {
                    (0, true) => 0x0a,
                    (0, false) => 0x06,
                    (_, false) => 0x07,
                    (_, true) => 0x08,
                };
                packets.push(packet(true, time, Opcode(opcode), to_b, psn));
                time += 100 + random.below(50);
                psn = psn.plus(1);
            }
            answers.push((time, psn.plus(Psn::COUNT - 1)));
        }
        for (sent, psn) in answers {
            time = sent + round_trip + random.below(500);
            packets.push(packet(false, time, Opcode::RC_ACKNOWLEDGE, to_a, psn));
        }
        time += random.below(2_000);
    }
}

#[derive(Default)]
struct Flows(Vec<FlowRow>);

impl Sink for Flows {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.0.extend_from_slice(rows);
        Ok(())
    }
}

/// Flows that were paired rightly, and wrongly.
fn pairs(shape: &Shape) -> (usize, usize) {
    let mut random = Random(shape.seed | 1);
    let mut packets = Vec::new();
    let mut peers = HashMap::new();
    for number in 0..shape.connections {
        connection(number, shape, &mut random, &mut packets);
        let id = |from_a, qpn| {
            FlowKey::from_packet(&packet(from_a, 0, Opcode::RC_ACKNOWLEDGE, qpn, Psn::default()).roce).id()
        };
        let (one, other) = (id(true, 0x100 + number), id(false, 0x2000 + 7 * number));
        peers.insert(one, other);
        peers.insert(other, one);
    }
    packets.retain(|packet| packet.time.0 >= BEGIN + shape.late && random.below(1_000) >= shape.lost);
    packets.sort_by_key(|packet| packet.time);
    let mut flows = Flows::default();
    let mut collector = Collector::new(1, Settings::default(), vec![&mut flows]);
    let mut analysis = Analysis::new(Options::default());
    analysis.push(&PacketBatch {
        packets: packets.into(),
        ..PacketBatch::default()
    });
    collector.push(0, analysis.finish().0).unwrap();
    collector.finish().unwrap();
    let (mut right, mut wrong) = (0, 0);
    for flow in flows.0 {
        match flow.peer_flow_id {
            Some(peer) if peer == peers[&flow.flow_id] => right += 1,
            Some(_) => wrong += 1,
            None => {}
        }
    }
    (right, wrong)
}

fn shapes() -> impl Strategy<Value = Shape> {
    (
        any::<u64>(),
        1u32..40,
        prop_oneof![
            2 => Just(FirstPsns::Zero),
            1 => Just(FirstPsns::Random),
            1 => Just(FirstPsns::Near),
        ],
        any::<bool>(),
        1u32..6,
        1u32..60,
        prop_oneof![Just(0), 0u64..200_000],
        prop_oneof![Just(0), 0u64..100],
    )
        .prop_map(
            |(seed, connections, first_psns, alike, window, messages, late, lost)| Shape {
                seed,
                connections,
                first_psns,
                alike,
                window,
                messages,
                late,
                lost,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_pair_is_wrong(shape in shapes()) {
        let (_, wrong) = pairs(&shape);
        prop_assert_eq!(wrong, 0);
    }

    /// Random PSNs tell connections apart: all with a few dozen answers are found, even at the begin of a capture.
    #[test]
    fn connections_with_random_psns_are_found(shape in shapes()) {
        let shape = Shape { first_psns: FirstPsns::Random, messages: 120, late: shape.late / 3, lost: 0, ..shape };
        let connections = usize::try_from(shape.connections).unwrap();
        prop_assert_eq!(pairs(&shape), (2 * connections, 0));
    }
}

/// The pairs of flows by their queue pairs, when these queue pairs, with one number at both ends, send 100 writes each from PSN 0 on, 10 us apart and
/// answered after 5 us. The UDP source port follows from the two numbers. `captured` says for each of them if its requests and its answers
/// were captured: uplinks of equal cost carry one direction without the other.
fn pairs_at_an_uplink(captured: &[(u32, bool, bool)]) -> Vec<(u32, u32)> {
    let mut packets = Vec::new();
    for (qpn, requests, answers) in captured.iter().copied() {
        for message in 0..100 {
            let time = u64::from(message) * 10_000 + u64::from(qpn);
            let psn = Psn::new(message);
            let port = roce_wire::network::udp::source_port(Qpn::new(qpn), Qpn::new(qpn));
            let mut both = [
                packet(true, time, Opcode(0x0a), qpn, psn),
                packet(false, time + 5_000, Opcode::RC_ACKNOWLEDGE, qpn, psn),
            ];
            for packet in &mut both {
                packet.roce.udp_source_port = port;
            }
            let both = both.into_iter().zip([requests, answers]);
            packets.extend(
                both.filter(|(_, is_captured)| *is_captured)
                    .map(|(packet, _)| packet),
            );
        }
    }
    packets.sort_by_key(|packet| packet.time);
    let mut flows = Flows::default();
    let mut collector = Collector::new(1, Settings::default(), vec![&mut flows]);
    let mut analysis = Analysis::new(Options::default());
    analysis.push(&PacketBatch {
        packets: packets.into(),
        ..PacketBatch::default()
    });
    collector.push(0, analysis.finish().0).unwrap();
    collector.finish().unwrap();
    let of = |id| flows.0.iter().find(|flow| flow.flow_id == id);
    let mut pairs: Vec<(u32, u32)> = flows
        .0
        .iter()
        .filter(|flow| flow.data_packets > 0)
        .filter_map(|flow| Some((flow.destination_qpn, of(flow.peer_flow_id?)?.destination_qpn)))
        .collect();
    pairs.sort_unstable();
    pairs
}

#[test]
fn flows_whose_other_directions_take_other_links_are_no_pair() {
    // 0x11 goes both ways here. Of 0x12 the requests do, and of 0x13 the answers, 1 us later than those of 0x12 would come.
    let captured = [(0x11, true, true), (0x12, true, false), (0x13, false, true)];
    assert_eq!(pairs_at_an_uplink(&captured), [(0x11, 0x11)]);
}
