//! The finding about a capture that shows no RoCE, although the adapter's counters say that RDMA was running: it bypasses the kernel.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Confidence, Counter, Evidence, FindingRow, RunSummary, SampleRow, Severity, Time};

use super::super::numbers::counted;
use super::rule::{Context, FindingOf as _, Needs, Rule};

/// Interfaces whose bytes are added up.
const MAX_INTERFACES: usize = 1 << 10;

pub(super) const BLIND: Rule = Rule {
    id: "capture.blind",
    title: "RDMA was running, and the capture shows none of it",
    meaning: "The adapter counted RDMA bytes at a captured interface, and no RoCE packet was captured there: RDMA of hardware bypasses \
              the kernel, and with it the packet socket of its interface. Nothing else here says anything about that traffic.",
    method: "No RoCE packet in the whole run, and the changes of rdma_received_bytes and rdma_transmitted_bytes of an interface that \
             was captured add up to blind_bytes or more. Samples of other interfaces, and joined ones of other hosts, do not count.",
    source: "Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst (rx_vport_rdma_unicast_bytes: RDMA \
             bytes, which no packet socket gets).",
    thresholds: &["blind_bytes"],
    severity: Severity::Critical,
    confidence: "high: the counter and the capture are of one interface and one time",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// RDMA bytes that an interface counted.
#[derive(Clone, Copy, Debug)]
struct CountedBytes {
    bytes: f64,
    /// When the first of them were counted.
    first: Time,
}

/// RDMA bytes by interface.
#[derive(Clone, Debug, Default)]
pub(super) struct BlindTally {
    interfaces: BTreeMap<String, CountedBytes>,
}

impl BlindTally {
    pub(super) fn sample(&mut self, row: &SampleRow) {
        let is_rdma = [Counter::RdmaReceivedBytes, Counter::RdmaTransmittedBytes]
            .iter()
            .any(|counter| counter.name() == row.counter);
        let Some(change) = row.change.filter(|change| is_rdma && *change > 0.0) else {
            return;
        };
        let name = row.object.as_ref();
        if !self.interfaces.contains_key(name) && self.interfaces.len() >= MAX_INTERFACES {
            return;
        }
        let counted = self.interfaces.entry(name.to_owned()).or_insert(CountedBytes {
            bytes: 0.0,
            first: row.time,
        });
        counted.bytes += change;
        counted.first = counted.first.min(row.time);
    }

    pub(super) fn blind(&self, context: &Context<'_>) -> Option<FindingRow> {
        let run = context.run;
        if run.totals.roce_packets + run.totals.uet_packets > 0 || run.totals.undecodable > 0 {
            return None;
        }
        let captured = captured(run);
        let seen = || {
            self.interfaces
                .iter()
                .filter(|(name, _)| captured.contains(name.as_str()))
        };
        let sum: f64 = seen().map(|(_, counted)| counted.bytes).sum();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a sum of changes is not negative"
        )]
        let bytes = sum as u64;
        if bytes < context.thresholds.blind_bytes {
            return None;
        }
        let names: Vec<&str> = seen().map(|(name, _)| name.as_str()).collect();
        let frames: u64 = run.totals.frames;
        let mut evidence = Evidence::default();
        evidence
            .count("rdma_bytes", bytes)
            .count("frames", frames)
            .text("interfaces", names.join(", "));
        Some(BLIND.finding(
            (Severity::Critical, Confidence::High),
            format!(
                "{} counted {bytes} RDMA bytes, and none of {} was RoCE: the capture is blind to it",
                names.join(", "),
                counted(frames, "captured frame")
            ),
            evidence,
            "Run `roce-analyze devices`: it says how this adapter's RDMA can be captured (its sniffer, the RDMA device itself, a mirror of the switch).",
            seen().map(|(_, counted)| counted.first).min(),
        ))
    }
}

/// Names of the interfaces that were captured.
fn captured(run: &RunSummary) -> BTreeSet<&str> {
    let taps = run.taps.iter().filter_map(|tap| tap.interface.as_deref());
    // A live run's input is the list of its devices.
    let inputs = run.inputs.iter().flat_map(|input| input.input.split(','));
    taps.chain(inputs).collect()
}
