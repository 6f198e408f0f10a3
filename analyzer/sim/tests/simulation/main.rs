//! The simulation against what is known without it: arithmetic, published models, a published capture.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of packets and bytes of small runs"
)]

mod books;
mod dcqcn;
mod fluid;
mod pause;
mod reliability;
mod scenario;
mod shape;
mod traffic;

use roce_sim::truth::Flow;
use roce_sim::{Scenario, Truth, simulate_in_memory};

/// The truth of a scenario.
fn truth_of(toml: &str) -> Truth {
    simulate_in_memory(&Scenario::parse(toml).unwrap()).unwrap().0
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
