//! Outcomes of checks as one JSON document.

use std::io::Write;

use roce_hosts::doctor::{Judgement, RecommendedAddress};
use roce_model::text::escape_json;
use serde_json::{Value, json};

use super::examined::ExaminedHost;

/// Version of this document's form. It rises when a key changes its meaning.
const SCHEMA_VERSION: u32 = 1;

fn checks(judgements: &[Judgement]) -> Vec<Value> {
    let all = judgements.iter().map(|judgement| {
        let outcome = &judgement.outcome;
        let seen: Vec<Value> = outcome
            .seen
            .iter()
            .map(|seen| json!({ "source": seen.source, "value": seen.value }))
            .collect();
        json!({
            "id": judgement.id,
            "group": judgement.group,
            "object": outcome.object,
            "status": outcome.status.name(),
            "summary": outcome.summary,
            "seen": seen,
            "expected": Some(&outcome.expected).filter(|expected| !expected.is_empty()),
            "fix": outcome.fix,
            "advice": outcome.advice,
            "confidence": outcome.confidence,
        })
    });
    all.collect()
}

/// Options for programs: one entry for each device.
fn recommended(all: &[RecommendedAddress]) -> Vec<Value> {
    let one = |port: &RecommendedAddress| {
        let name = format!("{}:{}", port.device, port.port);
        json!({
            "ib_dev": port.device,
            "ib_port": port.port,
            "gid_index": port.gid_index,
            "address": port.ip.map(|ip| ip.to_string()),
            "nccl": { "NCCL_IB_HCA": format!("={name}"), "NCCL_IB_GID_INDEX": port.gid_index },
            "ucx": { "UCX_NET_DEVICES": name },
        })
    };
    all.iter().map(one).collect()
}

fn host(examined: &ExaminedHost) -> Value {
    let host = &examined.host;
    let kernel = host.json("answers/uname.json").ok();
    let kernel = kernel.and_then(|uname| uname.get("release").cloned());
    json!({
        "host": {
            "name": host.name,
            "kernel": kernel,
            "recorded": host.is_recorded,
            "rdma_devices": host.names("sys/class/infiniband"),
        },
        "checks": checks(&examined.judgements),
        "recommended": recommended(&examined.recommended),
    })
}

/// Prints the document: of one host its own keys, of several a list of hosts and what compares them.
pub(super) fn print(examined: &[ExaminedHost], fleet: &[Judgement]) -> anyhow::Result<()> {
    let mut document = match examined {
        [one] => host(one),
        all => json!({
            "hosts": all.iter().map(host).collect::<Vec<_>>(),
            "fleet": checks(fleet),
        }),
    };
    document["schema_version"] = SCHEMA_VERSION.into();
    writeln!(std::io::stdout(), "{}", escape_json(&format!("{document:#}")))?;
    Ok(())
}
