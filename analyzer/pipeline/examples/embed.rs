//! Embeds the analysis: a gate for a test bench, which passes captures without serious findings and names the flows behind the others.
//!
//! ```text
//! cargo run -p roce-pipeline --example embed -- captures/write_bw_loss.pcap
//! ```
//!
//! The exit code is 1 when a finding is a warning or worse. All that a run finds is in its [`RunSummary`]; rows of flows, bins and events
//! come through a [`Sink`] while the run goes on, so memory does not grow with the capture.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use roce_model::{FlowRow, RunSummary, Severity, Sink, SinkError};
use roce_pipeline::RunRequest;

/// Limit of the flows that are named.
const MAX_NAMED: usize = 3;

/// Flows with the most retransmitted bytes, the worst first.
#[derive(Default)]
pub(crate) struct Worst(Vec<FlowRow>);

impl Sink for Worst {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        // Another tap's view of the same traffic is not counted again.
        let slow = rows
            .iter()
            .filter(|row| row.counted && row.retransmitted_bytes > 0);
        self.0.extend(slow.cloned());
        self.0
            .sort_by_key(|row| std::cmp::Reverse((row.retransmitted_bytes, row.flow_id)));
        self.0.truncate(MAX_NAMED);
        Ok(())
    }
}

/// Analyses captures as one run.
///
/// # Errors
/// When none of them can be read.
pub(crate) fn analyse(captures: &[PathBuf]) -> Result<(RunSummary, Worst), SinkError> {
    let mut worst = Worst::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut request = RunRequest::new(captures.to_vec());
    request.plan.threads = u32::try_from(threads).unwrap_or(1);
    let run = request.run(vec![&mut worst])?.summary;
    Ok((run, worst))
}

/// The report of the bench: findings that stop it, then flows behind them. Empty: the capture passes.
pub(crate) fn report(run: &RunSummary, worst: &Worst) -> Vec<String> {
    let serious = run
        .findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Warning);
    let mut lines: Vec<String> = serious
        .map(|finding| format!("{} {}: {}", finding.severity.name(), finding.id, finding.summary))
        .collect();
    if lines.is_empty() {
        return lines;
    }
    lines.extend(worst.0.iter().map(|flow| {
        format!(
            "{} > {} QP {:#x}: {} bytes sent again, {} packets lost by the network",
            flow.source, flow.destination, flow.destination_qpn, flow.retransmitted_bytes, flow.network_lost
        )
    }));
    lines
}

#[cfg_attr(test, expect(dead_code, reason = "the test calls what is above"))]
fn main() -> Result<ExitCode, SinkError> {
    let captures: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if captures.is_empty() {
        return Err("embed CAPTURE...".into());
    }
    let (run, worst) = analyse(&captures)?;
    let lines = report(&run, &worst);
    let mut out = std::io::stdout().lock();
    for line in &lines {
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "{} packets, {} findings",
        run.totals.roce_packets,
        run.findings.len()
    )?;
    Ok(ExitCode::from(u8::from(!lines.is_empty())))
}
