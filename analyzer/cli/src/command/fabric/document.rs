//! Readings of devices as one JSON document. Absent is null; values are in base units.

use std::collections::BTreeMap;

use roce_model::{Sample, SampleKind};
use roce_switches::device::Reading;
use roce_switches::findings::DeviceFinding;
use serde_json::{Map, Value, json};

use super::changes::{Changes, Device};

/// Version of the document's form.
const SCHEMA_VERSION: u32 = 1;

/// The document.
pub(super) fn document(devices: &[Device], findings: &[Vec<DeviceFinding>]) -> Value {
    let devices: Vec<Value> = devices
        .iter()
        .zip(findings)
        .map(|(device, findings)| self::device(device, findings))
        .collect();
    json!({"schema_version": SCHEMA_VERSION, "devices": devices})
}

fn device(device: &Device, findings: &[DeviceFinding]) -> Value {
    let reading = &device.last;
    let changes = &device.changes;
    json!({
        "name": reading.node.as_ref(),
        "source": reading.source.name(),
        "kind": device.kind,
        "transport": device.transport,
        "up": changes.is_up(),
        "time_ns": (reading.time.0 > 0).then_some(reading.time.0),
        "readings": changes.readings(),
        "interval_ns": changes.time().0,
        "description": description(reading),
        "samples": reading.samples.iter().map(|sample| self::sample(sample, changes)).collect::<Vec<_>>(),
        "neighbors": reading.neighbors.iter().map(|neighbor| json!({
            "interface": neighbor.interface,
            "neighbor": neighbor.node,
            "neighbor_interface": known(&neighbor.port),
        })).collect::<Vec<_>>(),
        "adapters": reading.adapters.iter().map(|adapter| json!({
            "vmnic": adapter.name,
            "driver": known(&adapter.driver),
            "driver_version": known(&adapter.driver_version),
            "firmware": known(&adapter.firmware),
            "mac": known(&adapter.mac),
        })).collect::<Vec<_>>(),
        "queue_of_dscp": reading.queue_of_dscp.iter().map(|(dscp, queue)| (dscp.to_string(), json!(queue))).collect::<Map<_, _>>(),
        "has_pfc_watchdog": reading.has_watchdog,
        "problems": reading.problems.iter().map(|problem| json!({
            "reason": problem.reason.name(),
            "command": problem.command,
            "text": problem.text,
        })).collect::<Vec<_>>(),
        "findings": findings.iter().map(|finding| json!({
            "id": finding.id,
            "severity": finding.severity.name(),
            "object": known(&finding.object),
            "summary": finding.text,
            "evidence": serde_json::from_str::<Value>(&finding.evidence.to_string()).unwrap_or_default(),
            "confidence": finding.confidence,
            "next_step": finding.next,
        })).collect::<Vec<_>>(),
    })
}

fn description(reading: &Reading) -> Value {
    let about = &reading.description;
    json!({
        "model": known(&about.model),
        "version": known(&about.version),
        "build": known(&about.build),
        "serial": known(&about.serial),
    })
}

/// A text that is not known is null.
fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn sample(sample: &Sample, changes: &Changes) -> Value {
    let names = sample.counter.labels().iter().copied();
    let labels: BTreeMap<&str, &str> = names
        .zip(sample.details.iter().map(std::convert::AsRef::as_ref))
        .collect();
    let is_counter = sample.counter.kind() == SampleKind::Cumulative;
    let value = changes.of(sample).filter(|_| is_counter);
    let change = value.and_then(|value| value.change);
    let seconds = value.map_or(0.0, |value| value.time.seconds());
    json!({
        "object": sample.object.as_ref(),
        "counter": sample.counter.name(),
        "priority": sample.priority,
        "queue": sample.queue.as_deref(),
        "labels": labels,
        "kind": sample.counter.kind().name(),
        "unit": sample.counter.unit(),
        "value": sample.value,
        "change": change,
        "per_second": change.filter(|_| seconds > 0.0).map(|change| change / seconds),
    })
}
