//! Captures in which each packet is a flow of its own: memory has a bound, time grows with packets, and results say what they leave out.
//!
//! `ROCE_ANALYZE_FLOWS=10000000 cargo test --release -p roce-analyze bounded` is the large form: hours in a debug build, a quarter of an hour in a
//! release build. Captures are piped, so that no file is made.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::{Command, Stdio};

use roce_capture::{Merge, Reader};
use roce_model::{FlowRow, Sink, SinkError};
use serde_json::Value;
use tempfile::tempdir;

use crate::command::{Ran, run_with_input};

/// Which part of a packet is another one each time.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Distinct {
    /// The queue pair, between two hosts.
    QueuePairs,
    /// Queue pair, source and destination.
    Hosts,
}

/// Writes a pcap with `flows` SEND Only packets of RC, 1 us apart: 74 bytes each, a PSN of 100, 16 bytes of payload.
fn distinct_flows(flows: u32, distinct: Distinct, out: impl Write) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    // Nanoseconds, version 2.4, snaplen 65,535, Ethernet.
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        out.write_all(&word.to_le_bytes())?;
    }
    let mut frame = Vec::new();
    frame.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    frame.extend([0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    let addresses = frame.len();
    frame.extend([10, 0, 0, 1, 11, 0, 0, 2]);
    frame.extend([0xc0, 0, 0x12, 0xb7, 0, 40, 0, 0]);
    frame.extend([4, 0x40, 0xff, 0xff, 0]);
    let queue_pair = frame.len();
    frame.extend([0, 0, 2, 0, 0, 0, 100]);
    frame.resize(74, 0);
    for flow in 0..flows {
        let time = u64::from(flow) * 1_000;
        let length = u32::try_from(frame.len()).unwrap();
        let seconds = 1_700_000_000 + u32::try_from(time / 1_000_000_000).unwrap();
        let rest = u32::try_from(time % 1_000_000_000).unwrap();
        for word in [seconds, rest, length, length] {
            out.write_all(&word.to_le_bytes())?;
        }
        frame[queue_pair..queue_pair + 3].copy_from_slice(&((flow + 2) & 0xff_ffff).to_be_bytes()[1..]);
        if distinct == Distinct::Hosts {
            frame[addresses + 1..addresses + 4].copy_from_slice(&flow.to_be_bytes()[1..]);
            let destination = flow.wrapping_mul(7_919);
            frame[addresses + 5..addresses + 8].copy_from_slice(&destination.to_be_bytes()[1..]);
        }
        out.write_all(&frame)?;
    }
    out.flush()
}

fn analysed(flows: u32, arguments: &[&str]) -> Ran {
    let mut capture = Vec::new();
    distinct_flows(flows, Distinct::QueuePairs, &mut capture).unwrap();
    let folder = tempdir().unwrap();
    let arguments = ["-", "--format", "json"].iter().chain(arguments);
    run_with_input(folder.path(), arguments, &capture).good()
}

fn rows(document: &Value) -> usize {
    document["flows"].as_array().unwrap().len()
}

#[test]
fn a_document_counts_the_flows_that_it_leaves_out() {
    // 1,000 is the default.
    for (arguments, there, left_out) in [
        (&[][..], 1_000, 2_000),
        (&["--json-flows", "5"], 5, 2_995),
        (&["--json-flows", "0"], 0, 3_000),
        (&["--json-flows", "3000"], 3_000, 0),
        (&["--json-flows", "all"], 3_000, 0),
    ] {
        let document = analysed(3_000, arguments).json();
        assert_eq!(rows(&document), there, "{arguments:?}");
        assert_eq!(document["flows_left_out"], left_out, "{arguments:?}");
        assert_eq!(document["totals"]["roce_packets"], 3_000);
    }
}

/// The most rows of flows that came at once.
#[derive(Default)]
struct MostAtOnce(usize);

impl Sink for MostAtOnce {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.0 = self.0.max(rows.len());
        Ok(())
    }
}

#[test]
fn rows_of_closed_flows_do_not_wait_for_the_end_of_a_batch() {
    // The first batch has all 60,000 frames; their rows would take 90 MB.
    let folder = tempdir().unwrap();
    let path = folder.path().join("flows.pcap");
    distinct_flows(60_000, Distinct::QueuePairs, File::create(&path).unwrap()).unwrap();
    let options = roce_flow::Options {
        max_flows: 100,
        ..roce_flow::Options::default()
    };
    // Shards share the flows: both hosts are in one of two.
    for (threads, evicted) in [(1, 59_900), (2, 59_950)] {
        let reader = Reader::open(&path, &roce_capture::Options::default()).unwrap();
        let mut most = MostAtOnce::default();
        let sinks: Vec<&mut dyn Sink> = vec![&mut most];
        let totals = roce_pipeline::analyse(Merge::new(vec![reader]), threads, options, sinks).unwrap();
        assert_eq!(totals.evicted, evicted);
        // The first 16,384 packets are analysed together, then 256 at a time.
        assert!(
            (1..17_000).contains(&most.0),
            "{threads} threads: {} rows",
            most.0
        );
    }
}

#[test]
fn flows_of_a_streamed_document_come_before_its_summary() {
    let text = analysed(300, &["--json-flows", "all"]).stdout;
    let place = |key: &str| text.find(&format!("\n  \"{key}\": ")).unwrap();
    assert!(place("schema_version") < place("flows"));
    assert!(place("flows") < place("run") && place("run") < place("findings"));
}

/// A run under a limit of address space: its CPU time in seconds, user and system.
fn limited(flows: u32, distinct: Distinct, kilobytes: u64, arguments: &str) -> f64 {
    let folder = tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_roce-analyze");
    let script = format!("ulimit -v {kilobytes}; {program} - {arguments} > out; echo $?; times");
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    let written = distinct_flows(flows, distinct, stdin);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("0"),
        "{flows} {distinct:?} {arguments}: {errors}"
    );
    written.unwrap();
    // The shell's own time, then that of its children: "0m1.23s 0m0.45s".
    let seconds = |time: &str| -> f64 {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    lines.nth(1).unwrap().split(' ').map(seconds).sum()
}

/// The most flows of a test; a quarter and a half of them come before.
fn most_flows(default: u32) -> u32 {
    std::env::var("ROCE_ANALYZE_FLOWS").map_or(default, |flows| flows.parse().unwrap())
}

/// Time grows with packets, under a limit of address space.
#[track_caller]
fn linear(distinct: Distinct, most: u32, kilobytes: u64, arguments: &str) {
    let times: Vec<f64> = [4, 2, 1]
        .into_iter()
        .map(|part| limited(most / part, distinct, kilobytes, arguments))
        .collect();
    // Four times the packets take four times as long. Neighbours on the machine disturb; quadratic time would be 16.
    assert!(
        times[2] < 8.0 * times[0] + 1.0,
        "{distinct:?} {arguments}: {times:?}"
    );
}

// Two threads, so that address space does not depend on the number of processors: each takes stacks and arenas.

#[test]
fn memory_does_not_grow_with_flows() {
    // 20,000 live flows take 40 MB; all flows would take 300 MB of rows, and as much text. The page keeps series of 16,384 flows, and
    // the allocator more address space than memory.
    for (format, kilobytes) in [("json", 1_000_000), ("text", 1_000_000), ("html", 1_600_000)] {
        let arguments = format!("--threads 2 --max-flows 20000 --format {format}");
        linear(Distinct::Hosts, most_flows(100_000), kilobytes, &arguments);
    }
    linear(
        Distinct::QueuePairs,
        most_flows(40_000),
        1_000_000,
        "--threads 2 --max-flows 20000 --format json --json-flows all",
    );
}

#[test]
#[cfg(feature = "parquet")]
fn memory_of_a_dataset_does_not_grow_with_flows() {
    let most = most_flows(20_000);
    linear(
        Distinct::Hosts,
        most,
        2_000_000,
        "--threads 2 -o dataset --format none",
    );
}

#[test]
#[cfg(feature = "parquet")]
fn a_dataset_has_all_flows_and_its_document_the_first() {
    let mut capture = Vec::new();
    distinct_flows(3_000, Distinct::Hosts, &mut capture).unwrap();
    let folder = tempdir().unwrap();
    let written = ["-", "--format", "none", "-o", "out"];
    run_with_input(folder.path(), written, &capture).good();
    let table = roce_parquet::read_table(&folder.path().join("out"), "flows").unwrap();
    assert_eq!(table.rows, 3_000);
    let text = std::fs::read(folder.path().join("out/run.json")).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(
        (rows(&document), &document["flows_left_out"]),
        (1_000, &Value::from(2_000))
    );
    // The page and comparisons read the flows from the table.
    crate::command::run(folder.path(), ["report", "out"]).good();
    crate::command::run(folder.path(), ["compare", "out", "out"]).good();
}
