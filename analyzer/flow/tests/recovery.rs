//! Losses of known origin: a go-back-N sender and receiver (IBTA 9.7) with a tap between them that may lose records. What
//! the analysis says of each hole is compared with what was really lost, and where.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use roce_flow::{Analysis, Collector, Options};
use roce_model::{Columns, EventColumns, FlowRow, Packet, PacketBatch, Sink, SinkError, Span, Time};
use roce_verdict::Settings;
use roce_wire::{Address, Aeth, Bth, Opcode, Psn, Roce};

const BEGIN: u64 = 1_000 * Span::SECOND.0;
/// Time goes by in steps of this; a packet is sent in each.
const STEP: u64 = 1_000;
/// Packets that a sender has in flight.
const WINDOW: u32 = 32;
/// Every so many packets, and the last one, ask for an acknowledgement.
const ACK_INTERVAL: u32 = 4;
/// Steps without progress after which the sender falls back.
const TIMEOUT: u64 = 400;

/// Nothing is lost of so many packets: their acknowledgement pairs the two directions.
const KNOWN: u32 = ACK_INTERVAL;

/// Numbers from a seed (xorshift64*, Vigna 2014).
struct Random(u64);

impl Random {
    fn hits(&mut self, of_a_thousand: u64) -> bool {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % 1_000 < of_a_thousand
    }
}

/// How often what is lost, of a thousand; where the tap stands.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    seed: u64,
    packets: u32,
    first_psn: u32,
    /// Requests, between sender and tap.
    before: u64,
    /// Requests, between tap and receiver.
    behind: u64,
    /// Records of requests.
    by_capture: u64,
    /// Steps from the sender to the tap, and from there to the receiver.
    delays: [u64; 2],
}

/// True course of the exchange, PSNs counted from 0.
#[derive(Debug, Default)]
struct Truth {
    lost_before: BTreeSet<u32>,
    lost_by_capture: BTreeSet<u32>,
    /// Transmissions lost before the tap, and behind it.
    before: u64,
    behind: u64,
    received: BTreeSet<u32>,
    captured: BTreeSet<u32>,
    naks: u64,
    timeouts: u64,
    fallbacks: u64,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Ack(u32),
    Nak(u32),
}

fn packet(from_a: bool, time: u64, opcode: Opcode, psn: u32, ip_id: u16) -> Packet {
    let hosts = [Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2])];
    let [source, destination] = if from_a { hosts } else { [hosts[1], hosts[0]] };
    let [_, p @ ..] = Psn::new(psn).value().to_be_bytes();
    let roce = Roce {
        source,
        destination,
        bth: Bth([opcode.0, 0, 0xff, 0xff, 0, 0, 0, 3, 0, p[0], p[1], p[2]]),
        aeth: Aeth([0x1f, 0, 0, 0]),
        payload_bytes: if opcode.carries_data() { 1024 } else { 0 },
        // Queue pairs 3 and 3: the flow label is 9 (rdma_calc_flow_label, Linux include/rdma/ib_verbs.h).
        udp_source_port: 0xc009,
        ip_id,
        seen: opcode.extended(),
        ..Roce::default()
    };
    Packet {
        time: Time(BEGIN + time * STEP),
        wire_bytes: 1082,
        roce,
        ..Packet::default()
    }
}

/// Sender, network, tap and receiver, until all has arrived.
fn exchange(shape: &Shape) -> (Vec<Packet>, Truth) {
    let mut random = Random(shape.seed | 1);
    let mut truth = Truth::default();
    let mut captured = Vec::new();
    let [to_tap, to_end] = shape.delays;
    let mut requests: [VecDeque<(u64, u32, u16)>; 2] = Default::default();
    let mut answers: [VecDeque<(u64, Answer)>; 2] = Default::default();
    let (mut next, mut acked, mut progress, mut ip_id) = (0, 0, 0, 0u16);
    let (mut expected, mut nak_sent) = (0, false);
    for now in 0.. {
        if acked == shape.packets || now > 1_000_000 {
            break;
        }
        while let Some((_, answer)) = answers[1].pop_front_if(|(at, _)| *at <= now) {
            let (psn, falls_back) = match answer {
                Answer::Ack(psn) => (psn + 1, false),
                Answer::Nak(psn) => (psn, true),
            };
            if psn > acked {
                (acked, progress) = (psn, now);
                next = next.max(acked);
            }
            if falls_back && psn == acked {
                (next, progress) = (psn, now);
                truth.fallbacks += 1;
            }
        }
        if now - progress >= TIMEOUT {
            truth.timeouts += 1;
            (next, progress) = (acked, now);
            truth.fallbacks += 1;
        }
        if next < shape.packets && next < acked + WINDOW {
            ip_id = ip_id.wrapping_add(1);
            if random.hits(shape.before) && next >= KNOWN {
                truth.lost_before.insert(next);
                truth.before += 1;
            } else {
                requests[0].push_back((now + to_tap, next, ip_id));
            }
            next += 1;
        }
        while let Some((_, psn, ip_id)) = requests[0].pop_front_if(|(at, ..)| *at <= now) {
            if random.hits(shape.by_capture) && psn >= KNOWN {
                truth.lost_by_capture.insert(psn);
            } else {
                truth.captured.insert(psn);
                let mut packet = packet(true, now, Opcode(0x0a), shape.first_psn.wrapping_add(psn), ip_id);
                if psn % ACK_INTERVAL == ACK_INTERVAL - 1 || psn + 1 == shape.packets {
                    packet.roce.bth.0[8] = 0x80;
                }
                captured.push(packet);
            }
            if !random.hits(shape.behind) || psn < KNOWN {
                requests[1].push_back((now + to_end, psn, ip_id));
            } else {
                truth.behind += 1;
            }
        }
        while let Some((_, psn, _)) = requests[1].pop_front_if(|(at, ..)| *at <= now) {
            let ack_requested = psn % ACK_INTERVAL == ACK_INTERVAL - 1 || psn + 1 == shape.packets;
            if psn == expected {
                (expected, nak_sent) = (psn + 1, false);
                truth.received.insert(psn);
            }
            if psn < expected && ack_requested {
                answers[0].push_back((now + to_end, Answer::Ack(expected - 1)));
            } else if psn > expected && !nak_sent {
                nak_sent = true;
                truth.naks += 1;
                answers[0].push_back((now + to_end, Answer::Nak(expected)));
            }
        }
        while let Some((_, answer)) = answers[0].pop_front_if(|(at, _)| *at <= now) {
            let (psn, syndrome) = match answer {
                Answer::Ack(psn) => (psn, 0x1f),
                Answer::Nak(psn) => (psn, 0x60),
            };
            let opcode = Opcode::RC_ACKNOWLEDGE;
            let mut packet = packet(false, now, opcode, shape.first_psn.wrapping_add(psn), ip_id);
            packet.roce.aeth = Aeth([syndrome, 0, 0, 0]);
            captured.push(packet);
            answers[1].push_back((now + to_tap, answer));
        }
    }
    (captured, truth)
}

/// Results of the analysis.
#[derive(Default)]
struct RecoveryResults {
    flows: Vec<FlowRow>,
    /// First PSN, how many, what became of them.
    holes: Vec<(u32, u64, String)>,
    runs: BTreeMap<String, u64>,
}

impl Sink for RecoveryResults {
    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for at in 0..rows.len() {
            let detail = || rows.detail.at(at).unwrap().clone().into_owned();
            match rows.kind.at(at).unwrap().as_ref() {
                "hole" => {
                    let psn = *rows.psn.at(at).unwrap();
                    self.holes.push((psn, *rows.value.at(at).unwrap(), detail()));
                }
                "retransmission_run" => *self.runs.entry(detail()).or_default() += 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.flows.extend_from_slice(rows);
        Ok(())
    }
}

/// The flow of the requests, all that was said, what is true.
fn analyse(shape: &Shape) -> (FlowRow, RecoveryResults, Truth) {
    let (packets, truth) = exchange(shape);
    let mut said = RecoveryResults::default();
    let mut collector = Collector::new(1, Settings::default(), vec![&mut said]);
    let mut analysis = Analysis::new(Options::default());
    analysis.push(&PacketBatch {
        packets: packets.into(),
        ..PacketBatch::default()
    });
    collector.push(0, analysis.finish().0).unwrap();
    collector.finish().unwrap();
    let requests: Vec<_> = said
        .flows
        .iter()
        .filter(|flow| flow.data_packets > 0)
        .cloned()
        .collect();
    let [flow] = requests.as_slice() else {
        panic!("{} flows with requests", requests.len());
    };
    (flow.clone(), said, truth)
}

fn shape() -> impl Strategy<Value = Shape> {
    let first_psn = prop_oneof![Just(0u32), Just(0x00ff_ff80), 0u32..1 << 24];
    (any::<u64>(), 64u32..2_000, first_psn, (1u64..20, 1u64..20)).prop_map(
        |(seed, packets, first_psn, (to_tap, to_end))| Shape {
            seed,
            packets,
            first_psn,
            delays: [to_tap, to_end],
            ..Shape::default()
        },
    )
}

/// Checks the sums that hold whatever was lost.
fn sums(flow: &FlowRow, said: &RecoveryResults) {
    let fates = [
        flow.reordered,
        flow.network_lost,
        flow.capture_lost,
        flow.ambiguous,
        flow.unresolved,
    ];
    assert_eq!(flow.missing + flow.network_lost_again, fates.iter().sum::<u64>());
    assert_eq!(
        flow.missing,
        said.holes.iter().map(|(_, psns, _)| psns).sum::<u64>()
    );
    let runs = [
        flow.runs_nak,
        flow.runs_implied_nak,
        flow.runs_rnr,
        flow.runs_timeout,
        flow.runs_unknown,
    ];
    assert_eq!(flow.retransmission_runs, runs.iter().sum::<u64>());
    assert_eq!(flow.retransmission_runs, said.runs.values().sum::<u64>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_lost_is_nothing_said(shape in shape()) {
        let (flow, said, _) = analyse(&shape);
        sums(&flow, &said);
        prop_assert_eq!(flow.peer_flow_id.is_some(), true);
        prop_assert_eq!((flow.missing, flow.retransmission_runs, flow.wasted_bytes), (0, 0, Some(0)));
        prop_assert_eq!((flow.lost_downstream, flow.duplicate_acks), (Some(0), Some(0)));
        // From sending to the tap's sight of the answer: once to the end and back, and the step in which it is sent.
        let turnaround = 2 * shape.delays[1] * STEP;
        prop_assert_eq!(flow.ack_rtt_max_ns, (turnaround >= 4_000).then_some(turnaround));
    }

    /// Lost before the tap: never the capture's, never behind it.
    #[test]
    fn network_loss_is_network_loss(shape in shape(), before in 1u64..60) {
        let shape = Shape { before, ..shape };
        let (flow, said, truth) = analyse(&shape);
        sums(&flow, &said);
        prop_assert_eq!((flow.capture_lost, flow.reordered, flow.lost_downstream), (0, 0, Some(0)));
        // Nothing is missing at the end, so that all was filled; the first requests may come before the pairing. A packet that fills
        // the last hole after 400 us of silence may have been late.
        prop_assert!(flow.unresolved <= truth.timeouts, "{} {}", flow.unresolved, truth.timeouts);
        prop_assert!(flow.missing <= truth.lost_before.len() as u64);
        prop_assert!(flow.network_lost <= truth.before);
        prop_assert_eq!(flow.runs_implied_nak + flow.runs_rnr, 0);
        prop_assert!(flow.retransmission_runs <= truth.fallbacks);
        prop_assert_eq!(flow.recovery.unwrap_or("go_back_n"), "go_back_n");
        for (psn, _, fate) in &said.holes {
            let psn = psn.wrapping_sub(shape.first_psn) & 0x00ff_ffff;
            prop_assert!(fate == "ambiguous" || truth.lost_before.contains(&psn), "{} {}", psn, fate);
        }
    }

    /// Lost by the capture alone: every PSN that it never showed, between the first and the last that it did.
    #[test]
    fn capture_loss_is_capture_loss(shape in shape(), by_capture in 1u64..200) {
        let shape = Shape { by_capture, ..shape };
        let (flow, said, truth) = analyse(&shape);
        sums(&flow, &said);
        let (first, last) = (*truth.captured.first().unwrap(), *truth.captured.last().unwrap());
        let missing = truth.lost_by_capture.range(first..=last).count() as u64;
        prop_assert_eq!(flow.missing, missing);
        prop_assert_eq!(flow.capture_lost + flow.unresolved, missing);
        prop_assert_eq!((flow.retransmission_runs, flow.lost_downstream.unwrap_or(0)), (0, 0));
        if flow.peer_flow_id.is_some() && shape.packets > 1_000 {
            prop_assert_eq!(flow.unresolved, 0, "the last packet is acknowledged");
        }
    }

    /// Lost behind the tap: no hole, a loss for each NAK, and never more than were lost.
    #[test]
    fn loss_behind_the_tap_leaves_no_hole(shape in shape(), behind in 1u64..60) {
        let shape = Shape { behind, ..shape };
        let (flow, said, truth) = analyse(&shape);
        sums(&flow, &said);
        prop_assert_eq!(flow.missing, 0);
        let downstream = flow.lost_downstream.unwrap();
        prop_assert!((truth.naks..=truth.behind).contains(&downstream), "{} {} {}", downstream, truth.naks, truth.behind);
        prop_assert_eq!(flow.runs_implied_nak + flow.runs_rnr, 0);
    }

    /// All at once: what is said of a hole has happened.
    #[test]
    fn everything_at_once(shape in shape(), before in 0u64..40, behind in 0u64..40, by_capture in 0u64..40) {
        let shape = Shape { before, behind, by_capture, ..shape };
        let (flow, said, truth) = analyse(&shape);
        sums(&flow, &said);
        prop_assert_eq!(flow.reordered, 0);
        for (psn, psns, fate) in &said.holes {
            let first = psn.wrapping_sub(shape.first_psn) & 0x00ff_ffff;
            let all = first..first + u32::try_from(*psns).unwrap();
            match fate.as_str() {
                "network_lost" => {
                    // Who waits for it did not get it: lost on either side of the tap, and not only in the capture.
                    prop_assert!(truth.lost_before.contains(&first) || truth.lost_by_capture.contains(&first));
                }
                "capture_lost" => {
                    for psn in all {
                        prop_assert!(truth.lost_by_capture.contains(&psn), "{}", psn);
                        prop_assert!(truth.received.contains(&psn));
                    }
                }
                _ => {}
            }
        }
    }
}

/// The answer to a NAK begins with a packet that was captured before, and goes on with one that was not: one run.
#[test]
fn an_answer_that_begins_behind_its_nak_is_one_run() {
    let shape = Shape {
        seed: 13_750_735_701_132_017_636,
        packets: 64,
        before: 48,
        delays: [4, 1],
        ..Shape::default()
    };
    let (flow, said, truth) = analyse(&shape);
    sums(&flow, &said);
    assert_eq!(truth.fallbacks, 6);
    assert_eq!(
        (flow.retransmission_runs, flow.runs_nak, flow.runs_timeout),
        (6, 5, 1)
    );
}

/// Answers are NAKs alone, and one of them waited for a timer: how long that took is no round trip.
#[test]
fn a_timer_is_no_round_trip() {
    let shape = Shape {
        seed: 11_631_343_302_022_623_098,
        packets: 64,
        behind: 49,
        delays: [8, 14],
        ..Shape::default()
    };
    let (flow, _, truth) = analyse(&shape);
    assert_eq!((truth.naks, truth.timeouts), (8, 1));
    // Each NAK names a packet that was captured, and the timeout repeats the first of them once more.
    assert_eq!(flow.lost_downstream, Some(9));
}
