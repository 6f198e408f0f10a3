//! Why senders of the project's captures began to retransmit, and equal packets have equal causes, whatever was captured before.

use std::fmt::Write as _;
use std::fs;

use roce_capture::Container;
use roce_capture::write::ByteOrder;
use roce_flow::Options;
use roce_model::{FlowRow, Span, Time};

use crate::captures::{Capture, Record, captures_below, flows, frames, root};
use crate::variants::pcap;

/// `copies` of the frames, one after another: each begins a second after the one before.
fn repeated(records: &[Record], copies: u64) -> Vec<Record> {
    let shifted = |copy: u64| {
        let records = records.iter().cloned();
        records.map(move |record| Record {
            time: Time(record.time.0 + copy * Span::SECOND.0),
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
        let rows = flows(&path, Options::default());
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

/// The list is looked at in review: a changed rule shows here what it changes. `UPDATE_EXAMPLES=1` writes it again.
#[test]
fn runs_of_all_captures_are_those_of_the_list() {
    let mut paths = Vec::new();
    for folder in ["captures", "tests/data"] {
        captures_below(&root().join(folder), &mut paths);
    }
    let mut found = String::from(
        "# Runs of retransmissions by cause, and the time waited for timers in us; captures without any are left out.\n\
         capture\tnak\timplied_nak\trnr\ttimeout\tunknown\twaited\n",
    );
    for path in &paths {
        let rows = flows(path, Options::default());
        let sum = |of: fn(&FlowRow) -> u64| rows.iter().map(of).sum::<u64>();
        let runs = [
            sum(|row| row.runs_nak),
            sum(|row| row.runs_implied_nak),
            sum(|row| row.runs_rnr),
            sum(|row| row.runs_timeout),
            sum(|row| row.runs_unknown),
        ];
        if runs != [0; 5] {
            let name = path.strip_prefix(root()).unwrap().display();
            let [nak, implied, rnr, timeout, unknown] = runs;
            let waited = sum(|row| row.timeout_wait_ns) / 1_000;
            writeln!(
                found,
                "{name}\t{nak}\t{implied}\t{rnr}\t{timeout}\t{unknown}\t{waited}"
            )
            .unwrap();
        }
    }
    let list = root().join("tests/data/triggers.tsv");
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        fs::write(&list, &found).unwrap();
    }
    assert_eq!(fs::read_to_string(&list).unwrap(), found);
}
