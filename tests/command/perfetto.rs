//! `--format perfetto` and `--format chrome`: the traces' numbers are those of the JSON document of the same captures.

mod decoder;
mod merged;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;

use crate::captures::root;
use crate::command::{command, document, flows};
use decoder::Trace;

/// Captures with marks and CNPs, losses, RNR NAKs, READs, stalls, datagrams, and connections of the manager; demos with an incast between two
/// taps, pauses, and steps of a training job.
const RUNS: [&[&str]; 10] = [
    &["captures/send_bw_ce_synthetic_cnp.pcap"],
    &["captures/write_bw_loss.pcap"],
    &["captures/rnr.pcap"],
    &["captures/read_bw.pcap"],
    &["captures/blackout_600ms.pcap"],
    &["captures/ud_send_bw.pcap"],
    &["captures/rping.pcap"],
    &[
        "captures/demos/incast-h2.pcapng",
        "captures/demos/incast-h7.pcapng",
    ],
    &["captures/demos/pause-storm-leaf1-h1.pcapng"],
    &["captures/demos/training-h1.pcapng"],
];

/// The JSON document of a run with all flows.
fn whole_document(captures: &[&str]) -> Value {
    document(&root(), captures.iter().chain(&["--json-flows", "all"]))
}

/// Output of the command in a format, byte by byte.
fn written(format: &str, captures: &[&str]) -> Vec<u8> {
    let output = command(&root())
        .args(captures)
        .args(["--format", format])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), said.as_ref()),
        (Some(0), ""),
        "{captures:?}"
    );
    output.stdout
}

/// The rows of flows that count.
fn counted(document: &Value) -> Vec<&Value> {
    flows(document)
        .iter()
        .filter(|flow| flow["counted"] == true)
        .collect()
}

/// The sum of a column; absent values are not known.
fn sum(rows: &[&Value], column: &str) -> u64 {
    rows.iter().filter_map(|row| row[column].as_u64()).sum()
}

/// A number of things in the document.
fn length(document: &Value, table: &str) -> usize {
    document[table].as_array().map_or(0, Vec::len)
}

#[test]
fn perfetto_numbers_are_those_of_the_document() {
    let mut arrows = 0;
    for capture in RUNS {
        let trace = Trace::read(&written("perfetto", capture));
        trace.check();
        let document = whole_document(capture);
        let rows = counted(&document);
        let ids: BTreeSet<&str> = rows.iter().filter_map(|row| row["flow_id"].as_str()).collect();
        let connections = trace
            .tracks
            .values()
            .filter(|track| track.name.contains(" QP 0x"));
        assert_eq!(connections.count(), ids.len(), "{capture:?}");
        let slices = |track: &str| trace.on(track).len();
        assert_eq!(
            slices("retransmission runs") as u64,
            sum(&rows, "retransmission_runs"),
            "{capture:?}"
        );
        let kinds: BTreeSet<&str> = trace
            .tracks
            .values()
            .map(|track| track.name.as_str())
            .filter(|name| name.starts_with("episodes: "))
            .collect();
        let episodes: usize = kinds.into_iter().map(slices).sum();
        assert_eq!(episodes, length(&document, "episodes"), "{capture:?}");
        assert_eq!(slices("findings"), length(&document, "findings"), "{capture:?}");

        // Bits a second over time are the payload; notifications in each bin over time are the notifications of a bin's length.
        let over_time = |name: &str| -> f64 {
            let tracks = trace.counters(name).into_iter();
            tracks.map(|track| trace.integral(track)).sum()
        };
        #[expect(clippy::cast_precision_loss, reason = "captures of megabytes")]
        let payload = sum(&rows, "payload_bytes") as f64;
        assert!(
            (over_time("rate") / 8.0 - payload).abs() < 1.0,
            "{capture:?}: {payload}"
        );
        assert!(
            (over_time("received") - over_time("sent")).abs() < 1.0,
            "{capture:?}"
        );
        let bin = document["run"]["bin_ns"].as_f64().unwrap() / 1e9;
        let own = trace.counters("CNPs").into_iter().filter(|track| {
            let parent = trace.tracks[track].parent.unwrap();
            trace.tracks[&parent].pid.is_none()
        });
        let cnps: f64 = own.map(|track| trace.integral(track) / bin).sum();
        #[expect(clippy::cast_precision_loss, reason = "captures of megabytes")]
        let expected = sum(&rows, "cnp") as f64;
        assert!(
            (cnps - expected).abs() < 0.01,
            "{capture:?}: {cnps} and {expected}"
        );
        // A run that answers a NAK begins at its PSN. Both are in the capture.
        let runs = trace.on("retransmission runs");
        assert!(
            runs.iter().all(|run| trace.end_of(run) >= run.time),
            "{capture:?}"
        );
        let answers = runs.iter().filter(|run| !run.into.is_empty()).count() as u64;
        assert_eq!(
            answers,
            sum(&rows, "runs_nak") + sum(&rows, "runs_rnr"),
            "{capture:?}"
        );
        arrows += answers;
    }
    assert!(arrows > 20, "{arrows} arrows");
}

#[test]
fn chrome_has_the_slices_and_values_of_perfetto() {
    for capture in RUNS {
        let trace = Trace::read(&written("perfetto", capture));
        let events: Vec<Value> = serde_json::from_slice(&written("chrome", capture)).unwrap();
        let of = |phase: &'static str| events.iter().filter(move |event| event["ph"] == phase);
        let kind = |kind: u64| trace.events.iter().filter(move |event| event.kind == kind);
        let marks = kind(decoder::BEGIN).count() + kind(decoder::INSTANT).count();
        assert_eq!(of("X").chain(of("i")).count(), marks, "{capture:?}");
        assert_eq!(of("C").count(), kind(decoder::COUNTER).count(), "{capture:?}");
        let arrows: usize = trace.events.iter().map(|event| event.out.len()).sum();
        assert_eq!(
            (of("s").count(), of("f").count()),
            (arrows, arrows),
            "{capture:?}"
        );
        // Microseconds with three decimals, as text: serde_json would round them.
        let text = String::from_utf8(written("chrome", capture)).unwrap();
        let first = trace.on("about this trace")[0].time;
        let time = format!("\"ts\":{}.{:03},", first / 1_000, first % 1_000);
        assert!(text.contains(&time), "{capture:?}: {time}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn perfetto_of_a_dataset_is_that_of_the_capture() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("out");
    let capture = ["captures/write_bw_loss.pcap"];
    let analysed = command(&root())
        .args(capture)
        .args(["--quiet", "--output"])
        .arg(&dir)
        .output()
        .unwrap();
    assert_eq!(analysed.status.code(), Some(0), "{analysed:?}");
    for (form, file) in [("perfetto", "trace.pftrace"), ("chrome", "trace.json")] {
        let written = command(&root())
            .arg("report")
            .arg(&dir)
            .args(["--format", form])
            .output()
            .unwrap();
        assert_eq!(written.status.code(), Some(0), "{written:?}");
        assert!(dir.join(file).is_file(), "{written:?}");
    }
    let stored = Trace::read(&fs::read(dir.join("trace.pftrace")).unwrap());
    stored.check();
    let direct = Trace::read(&written("perfetto", &capture));
    let of = |trace: &Trace| {
        let names = trace.tracks.values().map(|track| track.name.clone());
        let slices = trace
            .events
            .iter()
            .map(|event| (event.kind, event.time, event.name.clone()));
        (names.collect::<Vec<_>>(), slices.collect::<Vec<_>>())
    };
    assert_eq!(of(&stored), of(&direct));
    let json: Vec<Value> = serde_json::from_slice(&fs::read(dir.join("trace.json")).unwrap()).unwrap();
    assert!(json.len() > direct.tracks.len(), "{} events", json.len());
}

#[test]
fn perfetto_schema_reads_the_trace() {
    let import = [
        "-c",
        "from perfetto.protos.perfetto.trace import perfetto_trace_pb2",
    ];
    let python = std::env::var_os("PERFETTO_PYTHON").unwrap_or_else(|| "python3".into());
    let is_there = Command::new(&python).args(import).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        let line = b"SKIPPED: perfetto::perfetto_schema_reads_the_trace: python3 has no packages perfetto and protobuf\n";
        std::io::stdout().write_all(line).unwrap();
        return;
    }
    let folder = tempdir().unwrap();
    let (trace, about) = (folder.path().join("a.pftrace"), folder.path().join("a.json"));
    for capture in RUNS {
        fs::write(&trace, written("perfetto", capture)).unwrap();
        let document = whole_document(capture);
        fs::write(&about, document.to_string()).unwrap();
        let checked = Command::new(&python)
            .arg(root().join("tests/independent/check_perfetto.py"))
            .args([&trace, &about])
            .output()
            .unwrap();
        let (said, error) = (
            String::from_utf8_lossy(&checked.stdout),
            String::from_utf8_lossy(&checked.stderr),
        );
        assert!(checked.status.success(), "{capture:?}: {said}{error}");
    }
}
