//! The simulation against what is known without it: arithmetic, published models, a published capture.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of packets and bytes of small runs"
)]

mod any_order;
mod books;
mod collectives;
mod counters;
mod dcqcn;
mod duplicates;
mod ends;
mod fluid;
mod limits;
mod mrc;
mod pause;
mod reliability;
mod repeated;
mod scenario;
mod shape;
mod spray;
mod times;
mod traffic;
mod transmissions;
mod uplinks;
mod waits;
mod ways;

use roce_capture::{Options, Reader};
use roce_sim::truth::Flow;
use roce_sim::{Scenario, Truth, simulate_in_memory};
use roce_wire::{Content, LinkType, decode};

/// The truth of a scenario.
fn truth_of(toml: &str) -> Truth {
    simulate_in_memory(&Scenario::parse(toml).unwrap()).unwrap().0
}

/// The frames of a capture: stamps in ns since the begin of the simulation, and decoded headers.
fn frames(scenario: &Scenario, tap: usize) -> Vec<SeenFrame> {
    let (truth, captures) = simulate_in_memory(scenario).unwrap();
    let file = std::io::Cursor::new(captures[tap].bytes.clone());
    let mut reader = Reader::from_read("tap", Box::new(file), &Options::default()).unwrap();
    let mut frames = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        for frame in batch.frames() {
            let bytes = batch.bytes(frame);
            let Content::Roce(roce) = decode(LinkType::ETHERNET, bytes, frame.original).content else {
                panic!("no RoCE");
            };
            frames.push(SeenFrame {
                time: frame.time.0 - truth.start_ns,
                opcode: roce.bth.opcode().0,
                psn: roce.bth.psn().value(),
                qpn: roce.bth.destination_qpn().value(),
                identification: roce.ip_id,
                bytes: bytes.to_vec(),
            });
        }
    }
    frames
}

/// Fields of a captured frame.
struct SeenFrame {
    time: u64,
    opcode: u8,
    psn: u32,
    qpn: u32,
    identification: u16,
    bytes: Vec<u8>,
}

impl SeenFrame {
    /// RC WRITE packets have the opcodes 6 to 11.
    fn is_write(&self) -> bool {
        (6..=11).contains(&self.opcode)
    }
}

/// Flows that carry data.
fn data_flows(truth: &Truth) -> Vec<&Flow> {
    truth.flows.iter().filter(|flow| flow.data_packets > 0).collect()
}

/// Application data that arrived in some milliseconds.
fn received(flow: &Flow, bins: std::ops::Range<usize>) -> f64 {
    bins.map(|bin| flow.received_bytes_per_ms.get(bin).copied().unwrap_or(0) as f64)
        .sum()
}

/// Jain's index.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    sum * sum / (shares.len() as f64 * squares)
}
