//! Records that are not in the order of their stamps: the results are those of the same file sorted.

use std::fs;

use roce_capture::Container;
use roce_capture::write::ByteOrder;
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::{self, Record};
use crate::command::{document, lasting, total};
use crate::variants::pcap;

/// The records of a host whose receive queues are emptied up to 900 us late: later ones precede earlier
/// ones. Those with one stamp keep their order.
fn disordered(records: &[Record]) -> Vec<Record> {
    let mut records = records.to_vec();
    // A multiplicative hash of the stamp is the delay (Knuth, 2^64 over the golden ratio).
    let delay = |time: u64| time.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 900_000;
    records.sort_by_key(|record| record.time.0 + delay(record.time.0));
    records
}

/// Results that do not depend on the order of the records.
fn results(document: &Value) -> Value {
    let mut document = lasting(document.clone());
    document["run"].take();
    document["findings"]
        .as_array_mut()
        .unwrap()
        .retain(|finding| finding["id"] != "capture.quality");
    for tap in document["taps"].as_array_mut().unwrap() {
        for column in [
            "out_of_order",
            "out_of_order_max_ns",
            "sorted_frames",
            "sorted_first_time",
            "sorted_max_ns",
        ] {
            tap[column].take();
        }
    }
    document
}

#[test]
fn disorder_within_a_millisecond_changes_nothing() {
    let mut disorders = 0;
    for capture in captures::all() {
        let mut sorted = capture.frames();
        sorted.sort_by_key(|record| record.time);
        let shuffled = disordered(&sorted);
        let stamps = |records: &[Record]| records.iter().map(|record| record.time).collect::<Vec<_>>();
        let is_disordered = stamps(&sorted) != stamps(&shuffled);
        disorders += u32::from(is_disordered);
        let written = |records: &[Record], threads: &str| {
            let folder = tempdir().unwrap();
            let data = pcap(records, Container::PcapNanos, ByteOrder::Little);
            fs::write(folder.path().join("one.pcap"), data).unwrap();
            document(folder.path(), ["one.pcap", "--threads", threads])
        };
        let expected = written(&sorted, "1");
        for threads in ["1", "2"] {
            let found = written(&shuffled, threads);
            assert_eq!(results(&found), results(&expected), "{}", capture.name);
            let tap = &found["taps"][0];
            assert_eq!(tap["sorted_frames"] != 0, is_disordered, "{}", capture.name);
            assert_eq!(tap["sorted_too_late"], 0, "{}", capture.name);
            assert_eq!(total(&found, "frames"), sorted.len() as u64);
        }
    }
    assert!(disorders >= 5, "{disorders} captures are dense enough");
}
