//! Readings made by hand of a fabric made by hand: hosts h1 and h2 at leaf1, h3 and h4 at leaf2, and a spine (or two) between them.
//! Readings are 1 s apart, and so is everything else: flows last from the first to the tenth second.

use std::sync::Arc;

use roce_model::{Cable, Columns, Counter, Port, SampleColumns, SampleRow, Wiring};

use super::super::super::Settings;
use super::*;

pub(super) const SECOND: u64 = 1_000_000_000;
/// 100 Gbit/s.
pub(super) const RATE: f64 = 12.5e9;

/// The port of a text such as `leaf1:u1`.
pub(super) fn port(text: &str) -> Port {
    let (node, object) = text.split_once(':').unwrap();
    Port::new(node, object)
}

pub(super) fn cable(a: &str, b: &str) -> Cable {
    Cable {
        a: port(a),
        b: port(b),
    }
}

/// Host `n` has the address 10.0.0.n and the port `hn:ens`.
pub(super) fn wiring(switches: &[&str], cables: &[(&str, &str)], hosts: u8) -> Wiring {
    Wiring {
        cables: cables.iter().map(|(a, b)| cable(a, b)).collect(),
        switches: switches.iter().map(|name| (*name).to_owned()).collect(),
        addresses: (1..=hosts)
            .map(|n| (host(n), Port::new(format!("h{n}"), "ens")))
            .collect(),
        groups: Vec::new(),
    }
}

/// Four hosts, two leaves, and `spines` spines.
pub(super) fn leaf_spine(spines: u8) -> Wiring {
    let mut all = wiring(
        &["leaf1", "leaf2"],
        &[
            ("h1:ens", "leaf1:p1"),
            ("leaf1:p2", "h2:ens"),
            ("h3:ens", "leaf2:p1"),
            ("h4:ens", "leaf2:p2"),
        ],
        4,
    );
    for spine in 1..=spines {
        all.switches.insert(format!("spine{spine}"));
        for leaf in 1..=2 {
            all.cables.push(Cable {
                a: Port::new(format!("leaf{leaf}"), format!("u{spine}")),
                b: Port::new(format!("spine{spine}"), format!("d{leaf}")),
            });
        }
    }
    all
}

/// A counter of a port that rises by `rises`, one reading after the other, from the reading at `second` on.
pub(super) fn reads(at: &str, counter: Counter, second: u64, rises: &[f64]) -> Vec<SampleRow> {
    let Port { node, object } = port(at);
    let source = match node.chars().next() {
        Some('h') => "host",
        _ => "switch",
    };
    let by_priority = matches!(
        counter,
        Counter::SwitchPriorityPfcReceivedFrames
            | Counter::SwitchPriorityPfcTransmittedFrames
            | Counter::SwitchPriorityPfcReceivePausedSeconds
            | Counter::PfcReceivedFrames
            | Counter::PfcTransmittedFrames
    );
    let row = |(place, change): (usize, &f64)| SampleRow {
        time: Time((second + place as u64 + 1) * SECOND),
        source,
        node: node.clone().into(),
        object: object.clone().into(),
        counter: counter.name(),
        priority: by_priority.then_some(3),
        detail: (source == "switch").then(|| "port".into()),
        kind: counter.kind().name(),
        value: *change,
        change: Some(*change),
        interval_ns: Some(SECOND),
        unit: counter.unit(),
        ..SampleRow::default()
    };
    rises.iter().enumerate().map(row).collect()
}

/// A gauge.
pub(super) fn shows(at: &str, counter: Counter, value: f64) -> Vec<SampleRow> {
    let mut rows = reads(at, counter, 0, &[0.0]);
    for row in &mut rows {
        (row.value, row.change) = (value, None);
    }
    rows
}

/// Changes rows into those of a queue.
pub(super) fn of_queue(mut rows: Vec<SampleRow>, queue: &'static str) -> Vec<SampleRow> {
    for row in &mut rows {
        row.queue = Some(queue.into());
    }
    rows
}

/// A flow of ten seconds.
pub(super) fn long(source: u8, destination: u8) -> FlowRow {
    FlowRow {
        first_time: Time(0),
        last_time: Time(10 * SECOND),
        ..flow(source, destination)
    }
}

/// The run over these flows, readings and connections.
pub(super) fn run(wiring: &Wiring, flows: &[FlowRow], readings: &[Vec<SampleRow>]) -> RunSummary {
    let mut run = test_run(wiring);
    take(&mut run, readings);
    for row in flows {
        run.closed(row);
    }
    run.conclude()
}

pub(super) fn test_run(wiring: &Wiring) -> TestRun {
    TestRun::with(Settings {
        wiring: Arc::new(wiring.clone()),
        ..Settings::default()
    })
}

pub(super) fn take(run: &mut TestRun, readings: &[Vec<SampleRow>]) {
    for rows in readings {
        let mut columns = SampleColumns::default();
        columns.extend(rows);
        run.verdicts().samples(&columns);
    }
}

/// Words of a fact.
pub(super) fn text<'a>(finding: &'a FindingRow, name: &str) -> &'a str {
    match finding.evidence.0.iter().find(|(known, _)| *known == name) {
        Some((_, Fact::Text(value))) => value,
        other => panic!("{name}: {other:?}"),
    }
}
