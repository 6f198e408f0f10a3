//! Several taps whose files overlap, follow each other, or are one: what each of them shows counts once, and nothing gets lost by adding
//! a file.

use std::fs;
use std::path::PathBuf;

use roce_capture::Container;
use roce_capture::write::ByteOrder;
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::{frames, root};
use crate::command::{command, document, flows, ran, sum};
use crate::variants::pcap;

fn folder() -> PathBuf {
    root().join("tests/data/taps")
}

/// The finding of this id.
#[track_caller]
fn finding<'a>(document: &'a Value, id: &str) -> &'a Value {
    let findings = document["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {findings:#?}"))
}

#[test]
fn a_second_tap_of_another_time_does_not_erase_a_fatal_nak() {
    // tshark: frame 13 of b is a NAK (syndrome 97, invalid request), 4.5 us behind the last frame of a by a's clock. It is the only one.
    for files in [
        &["overlap_fatal-b.pcap"][..],
        &["overlap_fatal-a.pcap", "overlap_fatal-b.pcap"],
        &["overlap_fatal-b.pcap", "overlap_fatal-a.pcap"],
    ] {
        let found = document(&folder(), files);
        let fatal = finding(&found, "nak.fatal");
        assert_eq!(fatal["severity"], "critical", "{files:?}");
        assert_eq!(fatal["evidence"]["naks"], 1, "{files:?}");
    }
}

#[test]
fn rotated_files_are_one_tap_in_any_order() {
    // The last stamp of each file is the first one of the next.
    let files = [0, 1, 2].map(|part| format!("ties_reversed-p{part}.pcap"));
    let answers = |order: [usize; 3]| {
        let found = document(&folder(), order.map(|part| files[part].clone()));
        assert_eq!(found["taps"].as_array().unwrap().len(), 1, "{order:?}");
        assert_eq!(found["taps"][0]["frames"], 22, "2 and 17 and 3");
        (
            found["totals"].clone(),
            found["flows"].clone(),
            found["findings"].clone(),
        )
    };
    let whole = answers([0, 1, 2]);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(answers(order), whole, "{order:?}");
    }
}

#[test]
fn the_same_file_twice_is_one_tap() {
    let once = document(&folder(), ["same_file_twice.pcap"]);
    // A message says that it is given twice.
    let mut again = command(&folder());
    again.args(["--format", "json"]).args(["same_file_twice.pcap"; 2]);
    let twice = ran(&mut again).json();
    for found in [&once, &twice] {
        let marks = finding(found, "ecn.marks-without-cnp");
        assert_eq!(
            (&marks["severity"], &marks["confidence"]),
            (&"info".into(), &"low".into())
        );
    }
    // 23 packets, each with the same stamp and the same bytes in both: they are the same records, not those of a second tap.
    assert_eq!(twice["totals"], once["totals"]);
    let taps = twice["taps"].as_array().unwrap();
    assert_eq!((taps.len(), &taps[0]["vantage"]), (1, &Value::Null));
}

#[test]
fn the_users_word_about_the_tap_decides() {
    let stated = |place: &str| {
        let mut command = command(&folder());
        command.args(["--format", "json", "--tap-at", place, "same_file_twice.pcap"]);
        ran(&mut command).json()
    };
    // 16 packets came marked, and no CNP went back. Beside the receiver a CNP could not have passed elsewhere.
    let marks = |found: &Value| {
        let finding = finding(found, "ecn.marks-without-cnp");
        (finding["severity"].clone(), finding["confidence"].clone())
    };
    assert_eq!(marks(&stated("receiver")), ("warning".into(), "high".into()));
    assert_eq!(marks(&stated("10.0.0.4")), ("warning".into(), "high".into()));
    assert_eq!(stated("10.0.0.4")["taps"][0]["vantage"], "receiver");
    // Marked before the tap: it was not beside the sender, whatever the user says.
    assert_eq!(stated("sender")["taps"][0]["vantage"], "between");
    let mut both = command(&folder());
    both.args(["--tap-at", "sender"])
        .args(["same_file_twice.pcap"; 2]);
    let refused = ran(&mut both);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("the only capture"), "{}", refused.stderr);
}

#[test]
fn what_two_taps_count_is_not_added() {
    for (file, id, numbers) in [
        ("rnr.pcap", "rnr", &["rnr_naks", "timers_ns"][..]),
        ("write_bw_nak_invalid_request.pcap", "nak.fatal", &["naks"]),
        (
            "demos/pause-storm-leaf1-h1.pcapng",
            "pause.storm",
            &["pause_frames"],
        ),
    ] {
        let folder = tempdir().unwrap();
        let first = frames(&root().join("captures").join(file));
        // The second tap is 2 us behind the first one.
        let mut second = first.clone();
        for record in &mut second {
            record.time.0 += 2_000;
        }
        for (name, records) in [("first.pcap", &first), ("second.pcap", &second)] {
            let bytes = pcap(records, Container::PcapNanos, ByteOrder::Little);
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let once = document(folder.path(), ["first.pcap"]);
        let twice = document(folder.path(), ["first.pcap", "second.pcap"]);
        assert_eq!(twice["taps"].as_array().unwrap().len(), 2, "{file}");
        for number in numbers {
            let evidence = |of: &Value| finding(of, id)["evidence"][number].clone();
            assert!(evidence(&once).as_u64() > Some(0), "{file} {number}");
            assert_eq!(evidence(&twice), evidence(&once), "{file} {number}");
        }
    }
}

#[test]
fn waste_is_what_had_arrived() {
    // 20 of the 27 retransmitted packets of 1,024 bytes repair a loss (ways.tsv): 7 had arrived.
    let folder = root().join("tests/data/real");
    let wasted = |ends: &[&str]| {
        let files = ends.iter().map(|end| format!("write_loss_bursts.{end}.pcap"));
        let found = document(&folder, files);
        let flows: Vec<Value> = flows(&found).to_vec();
        let counted: Vec<Value> = flows
            .into_iter()
            .filter(|flow| flow["counted"] == true && flow["retransmitted_packets"] != 0)
            .collect();
        assert_eq!(sum(&counted, "retransmitted_packets"), 27, "{ends:?}");
        counted[0]["wasted_bytes"].clone()
    };
    assert_eq!(wasted(&["receiver"]), 7 * 1_024);
    assert_eq!(wasted(&["sender", "receiver"]), 7 * 1_024);
    assert_eq!(wasted(&["sender"]), Value::Null, "it captured all of it before");
}
