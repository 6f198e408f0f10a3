//! Causes of retransmission runs in all captures of the repository, as `tests/data/triggers.txt` lists them: a change of any of them shows
//! in that file, to be looked at. With `UPDATE_EXAMPLES=1` the list is written anew, and the test fails once.
//!
//! What the list holds is no truth but what is said; [`crate::losses`] has what tshark and arithmetic tell of some of it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use roce_capture::write::ByteOrder;
use roce_capture::{Container, Merge, Reader};
use roce_flow::Options;
use roce_model::{FlowRow, Nanos, Sink, SinkError};

use crate::captures::{Capture, Record, frames, root};
use crate::variants::pcap;

#[derive(Default)]
struct Flows(Vec<FlowRow>);

impl Sink for Flows {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.0.extend_from_slice(rows);
        Ok(())
    }
}

fn flows(path: &Path) -> Vec<FlowRow> {
    let reader = Reader::open(path, &roce_capture::Options::default()).unwrap();
    let mut flows = Flows::default();
    roce_pipeline::analyse(Merge::new(vec![reader]), 1, Options::default(), vec![&mut flows]).unwrap();
    flows.0
}

/// `10.0.0.1 > 10.0.0.2 QP 0x11: nak 2, timeout 1, stood still 65.2 ms` of a flow with runs.
fn line(row: &FlowRow) -> Option<String> {
    if row.retransmission_runs == 0 {
        return None;
    }
    let counts = [
        ("nak", row.runs_nak),
        ("implied nak", row.runs_implied_nak),
        ("rnr", row.runs_rnr),
        ("timeout", row.runs_timeout),
        ("unknown", row.runs_unknown),
    ];
    let mut line = format!(
        "{} > {} QP {:#x}:",
        row.source, row.destination, row.destination_qpn
    );
    for (word, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        write!(line, " {word} {count},").unwrap();
    }
    let still = [("timeouts", row.timeout_wait_ns), ("RNR timers", row.rnr_wait_ns)];
    for (word, ns) in still.into_iter().filter(|(_, ns)| *ns > 0) {
        write!(line, " stood still for {word} {},", Nanos(ns)).unwrap();
    }
    Some(line.trim_end_matches(',').to_owned())
}

fn captures() -> Vec<PathBuf> {
    let folders = ["captures", "captures/demos", "tests/data", "tests/data/real"];
    let files = folders.into_iter().flat_map(|folder| {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        entries.map(move |entry| Path::new(folder).join(entry.unwrap().file_name()))
    });
    let is_capture = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("pcap" | "pcapng"))
    };
    let mut captures: Vec<PathBuf> = files.filter(is_capture).collect();
    captures.sort();
    captures
}

#[test]
fn every_change_of_a_cause_is_listed() {
    let mut found = String::new();
    for path in captures() {
        let mut lines: Vec<String> = flows(&root().join(&path)).iter().filter_map(line).collect();
        lines.sort();
        for line in lines {
            writeln!(found, "{} {line}", path.to_str().unwrap().replace('\\', "/")).unwrap();
        }
    }
    let list = root().join("tests/data/triggers.txt");
    let expected = fs::read_to_string(&list).unwrap_or_default();
    if expected != found && std::env::var_os("UPDATE_EXAMPLES").is_some() {
        fs::write(&list, &found).unwrap();
    }
    assert_eq!(expected, found, "look at each difference, then UPDATE_EXAMPLES=1");
}

/// `copies` of the frames, one after another: each begins a second after the one before.
fn repeated(records: &[Record], copies: u64) -> Vec<Record> {
    let shifted = |copy: u64| {
        let records = records.iter().cloned();
        records.map(move |record| Record {
            time: Nanos(record.time.0 + copy * Nanos::SECOND),
            ..record
        })
    };
    (0..copies).flat_map(shifted).collect()
}

#[test]
fn equal_packets_have_equal_causes_whatever_was_captured_before() {
    let records = frames(&root().join(Capture::named("write_bw_loss").path));
    let counts = |copies: u64| {
        let records = repeated(&records, copies);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copies.pcap");
        fs::write(&path, pcap(&records, Container::PcapNanos, ByteOrder::Little)).unwrap();
        let rows = flows(&path);
        let sum = |of: fn(&FlowRow) -> u64| rows.iter().map(of).sum::<u64>();
        (
            sum(|row| row.runs_nak),
            sum(|row| row.runs_timeout),
            sum(|row| row.timeout_wait_ns),
        )
    };
    // tshark's times between the packets of 10.77.0.1 before the eight runs: 48.60, 63.99, 65.58, 47.31, 63.79, 53.57, 52.75 and 63.66 ms.
    let (naks, timeouts, waited) = counts(1);
    assert_eq!((naks, timeouts), (26, 8));
    assert!(waited.abs_diff(459_250_000) < 50_000, "{waited}");
    for copies in [2, 3, 5] {
        assert_eq!(
            counts(copies),
            (copies * naks, copies * timeouts, copies * waited)
        );
    }
}
