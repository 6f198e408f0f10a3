//! Remarks of NCCL's log on a result: errors, warnings, and connections that are slower than they could be.

use super::measured::{Results, Weight};
use crate::errors::{ErrorReport, Program, Symptom};
use crate::nccl::{Edge, log};

/// Reads the log into `found`.
pub(super) fn parse(text: &str, found: &mut Results) {
    let log = log(text);
    let mut remarks: Vec<(Weight, &'static str, usize, String)> = log.errors.iter().map(completion).collect();
    // Ranks of one host that are all connected by its memory need no adapter.
    let is_one_host = !log.edges.is_empty() && !log.edges.keys().any(Edge::is_network);
    if let Some(line) = log.no_device.filter(|_| !is_one_host) {
        let text = "NCCL found no RDMA device".to_owned();
        remarks.push((Weight::Critical, "nccl.no_device", line, text));
    }
    for (line, text) in &log.warnings {
        remarks.push((
            Weight::Warning,
            "nccl.warning",
            *line,
            format!("NCCL says: {text}"),
        ));
    }
    remarks.sort_by_key(|(_, _, line, _)| *line);
    if let Some(line) = log.sockets.filter(|_| !is_one_host) {
        let text = if log.devices.is_empty() {
            "ranks are connected by TCP sockets, not by RDMA".to_owned()
        } else {
            "ranks are connected by TCP sockets although the host has RDMA devices".to_owned()
        };
        remarks.push((Weight::Warning, "nccl.socket", line, text));
    }
    let staged = log
        .edges
        .keys()
        .filter(|edge| edge.is_network() && !edge.is_direct() && edge.transport.starts_with("NET/IB"))
        .count();
    if staged > 0 {
        let text = format!("connections that copy over host memory, without GPUDirect RDMA: {staged}");
        remarks.push((Weight::Info, "nccl.no_gpudirect", 0, text));
    }
    for (weight, rule, line, text) in remarks {
        found.remark(weight, rule, line, text);
    }
    if found.tool.is_empty() || found.measurements.is_empty() {
        found.tool = "nccl";
    }
    found.left_out += log.left_out;
    found.log = Some(log);
}

/// A completion with an error: its status says where to look first.
fn completion(found: &ErrorReport) -> (Weight, &'static str, usize, String) {
    let weight = if found.is_consequence() || found.symptom.is_some_and(Symptom::is_harmless) {
        Weight::Info
    } else if found.symptom.is_some_and(Symptom::is_event) {
        Weight::Warning
    } else {
        Weight::Critical
    };
    let about: Vec<String> = [
        Some(found.program)
            .filter(|program| *program != Program::Nccl)
            .map(|program| format!("by {}", program.name())),
        found.rank.map(|rank| format!("rank {rank}")),
        found.queue_pair.map(|number| format!("queue pair {number:#x}")),
        found.vendor_error.map(|code| format!("vendor_err={code}")),
        found.opcode.as_ref().map(|opcode| format!("opcode={opcode}")),
        found.local.map(|gid| format!("local GID {gid}")),
        found.remote.map(|gid| format!("remote GID {gid}")),
        found.adapter.as_ref().map(|device| format!("device {device}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let about = if about.is_empty() {
        String::new()
    } else {
        format!(" ({})", about.join(", "))
    };
    let said = found.said.as_ref().map(|said| format!("\"{said}\": "));
    let said = said.unwrap_or_default();
    let text = format!("{}: {said}{}{about}", found.status_name(), found.meaning());
    (weight, "nccl.completion_error", found.line, text)
}
