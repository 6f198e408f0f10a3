//! A tap that shows a packet more than once: copies are counted, and dropped.

use std::fs;

use roce_capture::Container;
use roce_capture::write::ByteOrder;
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::{self, Capture, Record, root};
use crate::command::{command, document, ran, sum, total};
use crate::variants::pcap;

/// Every frame a second time, 3 us later, as `change` makes it.
fn twice(records: &[Record], change: impl Fn(&mut Record)) -> Vec<Record> {
    let copies = records.iter().cloned().map(|mut record| {
        record.time.0 += 3_000;
        change(&mut record);
        record
    });
    let mut all: Vec<Record> = records.iter().cloned().chain(copies).collect();
    all.sort_by_key(|record| record.time);
    all
}

/// Holds that the copies in `doubled` are counted and dropped.
#[track_caller]
fn only_once(capture: &Capture, what: &str, doubled: &[Record]) {
    let folder = tempdir().unwrap();
    fs::write(
        folder.path().join("twice.pcap"),
        pcap(doubled, Container::PcapNanos, ByteOrder::Little),
    )
    .unwrap();
    let mut once = document(&root(), [&capture.path]);
    let frames = total(&once, "frames");
    for threads in ["1", "2"] {
        let mut twice = document(folder.path(), ["twice.pcap", "--threads", threads]);
        let what = format!("{} {what}", capture.name);
        assert_eq!(total(&twice, "frames"), 2 * frames, "{what}");
        assert_eq!(total(&twice, "copies"), frames, "{what}: copies");
        assert_eq!(
            sum(twice["taps"].as_array().unwrap(), "copies"),
            frames,
            "{what}: copies of the tap"
        );
        for document in [&mut once, &mut twice] {
            document["totals"]["frames"].take();
            document["totals"]["copies"].take();
        }
        assert_eq!(once["totals"], twice["totals"], "{what}");
        assert_eq!(once["flows"], twice["flows"], "{what}");
    }
}

#[test]
fn a_tap_that_shows_every_packet_by_two_ways() {
    for capture in captures::all() {
        // Routed in between: other link addresses, and a TTL one lower.
        let routed = twice(&capture.frames(), |record| {
            record.data[5] ^= 0x40;
            record.data[11] ^= 0x40;
            record.data[22] -= 1;
        });
        only_once(&capture, "routed", &routed);
    }
}

#[test]
fn a_tap_that_shows_every_packet_twice() {
    // CNPs are equal to the byte: where their sender does not count identifications, a copy looks like
    // the next CNP.
    for capture in captures::all()
        .into_iter()
        .filter(|capture| capture.golden().of("cnp") == 0)
    {
        only_once(&capture, "shown twice", &twice(&capture.frames(), |_| {}));
    }
}

#[test]
fn a_record_in_two_files_counts_once() {
    for capture in captures::all() {
        let records = capture.frames();
        if !records.is_sorted_by_key(|record| record.time) {
            continue;
        }
        let folder = tempdir().unwrap();
        let middle = records.len() / 2;
        let more = middle.min(20);
        for (name, part) in [
            ("whole.pcap", &records[..]),
            ("first.pcap", &records[..middle]),
            ("then.pcap", &records[middle - more..]),
        ] {
            let data = pcap(part, Container::PcapNanos, ByteOrder::Little);
            fs::write(folder.path().join(name), data).unwrap();
        }
        let once = document(folder.path(), ["whole.pcap"]);
        for threads in ["1", "2"] {
            // A message says how many records two files share.
            let answer = |files: [&str; 2]| {
                let mut command = command(folder.path());
                command
                    .args(["--format", "json", "--threads", threads])
                    .args(files);
                ran(&mut command).json()
            };
            let parts = answer(["then.pcap", "first.pcap"]);
            assert_eq!(parts["totals"], once["totals"], "{}: parts", capture.name);
            let twice = answer(["whole.pcap", "whole.pcap"]);
            assert_eq!(twice["totals"], once["totals"], "{}: twice", capture.name);
            let warnings = |document: &Value| document["run"]["inputs"].to_string();
            if more > 0 {
                assert!(warnings(&parts).contains("each counts once"), "{}", capture.name);
            }
            assert!(
                warnings(&twice).contains("its records count once"),
                "{}",
                capture.name
            );
        }
    }
}
