//! Traffic at several taps: aligned clocks, matched packets, marks found between the taps.
//!
//! The twins are one run of `ib_send_bw` captured on both ends of a bottleneck, by one clock: 290 packets of data in one
//! direction at each end... what is shifted here is known to the nanosecond.

use std::fs;
use std::path::Path;

use roce_capture::Container;
use roce_capture::write::{ByteOrder, InterfaceOptions, PcapngWriter};
use roce_model::Time;
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::{Capture, Record, root};
use crate::command::{document, flows, lasting, run, run_with_input, sum, total};
use crate::variants::pcap;

const RECEIVER: &str = "send_bw_ce_gradual";
const SENDER: &str = "send_bw_ce_gradual_senderside";

/// The records as a clock stamps them that is ahead by `ahead_ns` at the first one and runs faster.
fn shifted(records: &[Record], ahead_ns: i64, faster_ppb: u64) -> Vec<Record> {
    let first = records[0].time.0;
    let mut records = records.to_vec();
    for record in &mut records {
        let drift = (record.time.0 - first) * faster_ppb / 1_000_000_000;
        record.time = Time((record.time.0 + drift).checked_add_signed(ahead_ns).unwrap());
    }
    records
}

/// A frame whose data go to the receiver: its BTH's opcode is no ACK's.
fn is_data(record: &Record) -> bool {
    record.data[42] != 0x11
}

fn write(folder: &Path, name: &str, records: &[Record]) {
    fs::write(
        folder.join(name),
        pcap(records, Container::PcapNanos, ByteOrder::Little),
    )
    .unwrap();
}

/// The tap of a file.
#[track_caller]
fn tap<'a>(document: &'a Value, input: &str) -> &'a Value {
    let taps = document["taps"].as_array().unwrap();
    taps.iter().find(|tap| tap["input"] == input).unwrap()
}

/// The hop of the flow whose packets are data.
#[track_caller]
fn data_hop(document: &Value) -> &Value {
    let hops = document["hops"].as_array().unwrap();
    let data = flows(document)
        .iter()
        .find(|flow| flow["payload_bytes"] != 0)
        .unwrap();
    hops.iter().find(|hop| hop["flow_id"] == data["flow_id"]).unwrap()
}

/// Packets that the two captures have in common, by bytes 34 and on (UDP, BTH and what follows), that occur once.
fn common(a: &[Record], b: &[Record]) -> u64 {
    let there = |record: &&Record| b.iter().any(|other| other.data[34..] == record.data[34..]);
    a.iter().filter(there).count() as u64
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn clocks_that_differ_are_brought_together() {
    let folder = tempdir().unwrap();
    let (receiver, sender) = (Capture::named(RECEIVER).frames(), Capture::named(SENDER).frames());
    let matched = common(&receiver, &sender);
    let mut short = sender.clone();
    for record in &mut short {
        record.data.truncate(96);
    }
    write(folder.path(), "receiver.pcap", &receiver);
    let both = document(
        &root(),
        [Capture::named(RECEIVER).path, Capture::named(SENDER).path],
    );
    // Seconds with drift, hours behind, and what a snaplen leaves.
    for (ahead, faster, sender) in [
        (3_500_000_000, 20_000, &sender),
        (3_500_000_000, 20_000, &short),
        (-7_200_000_000_000, 0, &sender),
        (1_000_000, 0, &sender),
    ] {
        let what = format!("{ahead} ns ahead, {faster} ppb faster");
        write(folder.path(), "sender.pcap", &shifted(sender, ahead, faster));
        let found = document(folder.path(), ["receiver.pcap", "sender.pcap"]);
        let clock = tap(&found, "sender.pcap");
        let reference = tap(&found, "receiver.pcap");
        assert_eq!(clock["clock_reference"], reference["tap"], "{what}");
        assert_eq!(reference["clock_reference"], Value::Null, "{what}");
        #[expect(clippy::cast_precision_loss, reason = "hours in ns")]
        let error = (number(&clock["clock_offset_ns"]) - ahead as f64).abs();
        let uncertainty = number(&clock["clock_uncertainty_ns"]);
        assert!(error <= uncertainty, "{what}: {error} of {uncertainty}");
        // Data take at least 0.47 ms there, ACKs 0.03 ms back (their stamps' differences): half of that, and what 200 ppm of
        // drift could hide in the 2 s of the capture.
        assert!(uncertainty < 1_000_000.0, "{what}: {uncertainty}");
        for side in [clock, reference] {
            assert_eq!(side["matched_packets"], matched, "{what}");
        }
        let hop = data_hop(&found);
        assert_eq!(
            (&hop["from_tap"], &hop["to_tap"]),
            (&clock["tap"], &reference["tap"]),
            "{what}"
        );
        assert_eq!(hop["marked"], 15, "{what}: as the captures' README says");
        assert_eq!(
            (&hop["lost"], &hop["not_captured"]),
            (&Value::from(0), &Value::from(0)),
            "{what}"
        );
        // One clock's times are the truth: what the other one adds is no more than it can be wrong.
        let truth = data_hop(&both);
        for column in ["delay_min_ns", "delay_max_ns"] {
            let error = (number(&hop[column]) - number(&truth[column])).abs();
            assert!(error <= uncertainty, "{what}: {column} {hop} {truth}");
        }
        assert_eq!(
            total(&found, "retransmitted_packets") + total(&found, "missing"),
            0,
            "{what}"
        );
        for threads in ["2", "3"] {
            let several = document(
                folder.path(),
                ["receiver.pcap", "sender.pcap", "--threads", threads],
            );
            assert_eq!(several["hops"], found["hops"], "{what}, {threads} threads");
            assert_eq!(several["flows"], found["flows"], "{what}, {threads} threads");
            assert_eq!(several["taps"], found["taps"], "{what}, {threads} threads");
            assert_eq!(several["totals"], found["totals"], "{what}, {threads} threads");
        }
    }
}

#[test]
fn clocks_that_agree_are_left_alone() {
    let [receiver, sender] = [RECEIVER, SENDER].map(|name| Capture::named(name).path);
    let aligned = document(&root(), [&receiver, &sender]);
    let clock = tap(&aligned, &sender);
    assert_eq!(clock["clock_reference"], tap(&aligned, &receiver)["tap"]);
    assert_eq!(
        (
            number(&clock["clock_offset_ns"]),
            number(&clock["clock_drift_ppb"])
        ),
        (0.0, 0.0)
    );
    assert!(number(&clock["clock_uncertainty_ns"]) > 0.0);
    let plain = lasting(document(&root(), [&receiver, &sender, "--no-align"]));
    assert_eq!(tap(&plain, &sender)["clock_reference"], Value::Null);
    assert_eq!(plain["flows"], aligned["flows"]);
    assert_eq!(
        plain["hops"], aligned["hops"],
        "matching needs no comparison of clocks"
    );
    assert!(!plain["hops"].as_array().unwrap().is_empty());
}

#[test]
fn one_of_the_taps_counts() {
    let [receiver, sender] = [RECEIVER, SENDER].map(|name| Capture::named(name).path);
    let both = document(&root(), [&receiver, &sender]);
    let mut seen_again = 0;
    for flow in flows(&both) {
        let twin = flows(&both)
            .iter()
            .find(|twin| twin["flow_id"] == flow["flow_id"] && twin["tap"] != flow["tap"]);
        let key = |flow: &Value| (flow["packets"].as_u64(), flow["ce"].as_u64());
        let twin = twin.unwrap();
        assert_ne!(flow["counted"], twin["counted"]);
        if flow["counted"] == true {
            assert!(key(flow) >= key(twin), "{flow}");
        } else {
            seen_again += flow["packets"].as_u64().unwrap();
        }
    }
    assert_eq!(total(&both, "seen_again"), seen_again);
    assert!(seen_again > 300, "about one of the two files of 370 packets");
}

#[test]
fn different_traffic_is_not_touched() {
    // Other runs of these two hosts, with these queue pair numbers.
    let paths = ["clean_write_bw", "write_bw_loss", "rnr"].map(|name| Capture::named(name).path);
    let all = document(&root(), &paths);
    assert_eq!(all["hops"].as_array().unwrap().len(), 0);
    assert_eq!(total(&all, "seen_again"), 0);
    for row in all["taps"].as_array().unwrap() {
        assert_eq!(row["clock_reference"], Value::Null);
        assert_eq!(row["matched_packets"], 0);
    }
    assert!(flows(&all).iter().all(|flow| flow["counted"] == true));
}

#[test]
fn two_days_are_two_runs() {
    let folder = tempdir().unwrap();
    let records = Capture::named("write_bw_loss").frames();
    write(folder.path(), "monday.pcap", &records);
    // To the bit the same packets two days later: clocks do not differ by so much.
    write(
        folder.path(),
        "wednesday.pcap",
        &shifted(&records, 2 * 86_400_000_000_000, 0),
    );
    // These packets an hour later, at another pace: every packet is up to 4 ms off, and answers stay
    // with their questions.
    let mut later = shifted(&records, 3_600_000_000_000, 0);
    for (number, record) in (0..).zip(&mut later) {
        record.time.0 += number / 8 * 997 % 4_000 * 1_000;
    }
    later.sort_by_key(|record| record.time);
    write(folder.path(), "later.pcap", &later);
    for other in ["wednesday.pcap", "later.pcap"] {
        let ran = run(folder.path(), ["monday.pcap", other, "--format", "json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let found = ran.json();
        assert_eq!(tap(&found, other)["clock_reference"], Value::Null, "{other}");
        assert_eq!(total(&found, "seen_again"), 0, "{other}");
        let alone = run(folder.path(), [other, "--format", "json"]).json();
        for key in ["first_time", "last_time", "roce_packets"] {
            assert_eq!(tap(&found, other)[key], tap(&alone, other)[key], "{other}: {key}");
        }
        let warning = if other == "later.pcap" {
            "no difference of two clocks fits their times"
        } else {
            "nothing in common, no address or more than an hour between them: monday.pcap; wednesday.pcap"
        };
        assert!(ran.stderr.contains(warning), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn one_direction_says_less() {
    let folder = tempdir().unwrap();
    let [receiver, sender] = [RECEIVER, SENDER].map(|name| -> Vec<Record> {
        Capture::named(name)
            .frames()
            .into_iter()
            .filter(is_data)
            .collect()
    });
    write(folder.path(), "receiver.pcap", &receiver);
    // Marks show that the sender's side is first. Its clock may be 5 ms behind: packets may take as long.
    write(folder.path(), "sender.pcap", &shifted(&sender, -5_000_000, 0));
    let found = document(folder.path(), ["receiver.pcap", "sender.pcap"]);
    let clock = tap(&found, "sender.pcap");
    assert_eq!(clock["clock_reference"], tap(&found, "receiver.pcap")["tap"]);
    assert_eq!(
        (number(&clock["clock_offset_ns"]), &clock["clock_uncertainty_ns"]),
        (0.0, &Value::Null)
    );
    assert_eq!(data_hop(&found)["marked"], 15);
    // No packet takes a second: the clock is a second behind, and as much more as the fastest packet took, which is under 1 ms.
    write(folder.path(), "sender.pcap", &shifted(&sender, -1_000_000_000, 0));
    let found = document(folder.path(), ["receiver.pcap", "sender.pcap"]);
    let offset = number(&tap(&found, "sender.pcap")["clock_offset_ns"]);
    assert!((-1_001_000_000.0..-1_000_000_000.0).contains(&offset), "{offset}");
    // A second ahead, packets would arrive before they left: it is as far ahead as the fastest one shows.
    write(folder.path(), "sender.pcap", &shifted(&sender, 1_000_000_000, 0));
    let found = document(folder.path(), ["receiver.pcap", "sender.pcap"]);
    let clock = tap(&found, "sender.pcap");
    let offset = number(&clock["clock_offset_ns"]);
    assert!((999_000_000.0..1_000_000_000.0).contains(&offset), "{offset}");
    assert_eq!(
        (&clock["clock_uncertainty_ns"], &clock["clock_drift_ppb"]),
        (&Value::Null, &Value::Null)
    );
    let hop = data_hop(&found);
    assert_eq!(hop["from_tap"], clock["tap"]);
    assert!(number(&hop["delay_min_ns"]).abs() <= 1.0, "{hop}");
}

#[test]
fn rotated_files_have_one_clock() {
    let folder = tempdir().unwrap();
    let sender = shifted(&Capture::named(SENDER).frames(), 3_500_000_000, 0);
    write(folder.path(), "receiver.pcap", &Capture::named(RECEIVER).frames());
    write(folder.path(), "sender.pcap", &sender);
    let whole = document(folder.path(), ["receiver.pcap", "sender.pcap"]);
    let (a, b) = sender.split_at(150);
    write(folder.path(), "1.pcap", a);
    write(folder.path(), "2.pcap", b);
    let parts = document(folder.path(), ["receiver.pcap", "2.pcap", "1.pcap"]);
    for key in ["hops", "flows", "totals"] {
        assert_eq!(parts[key], whole[key], "{key}");
    }
    assert_eq!(parts["taps"].as_array().unwrap().len(), 2);
    for key in [
        "clock_offset_ns",
        "clock_uncertainty_ns",
        "first_time",
        "last_time",
    ] {
        assert_eq!(
            tap(&parts, "1.pcap")[key],
            tap(&whole, "sender.pcap")[key],
            "{key}"
        );
    }
}

#[test]
fn two_interfaces_of_a_file_are_two_taps_of_one_clock() {
    let folder = tempdir().unwrap();
    let [receiver, sender] = [RECEIVER, SENDER].map(|name| Capture::named(name).frames());
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    let sides = ["va0", "vb0"].map(|name| {
        let options = InterfaceOptions {
            name: Some(name.to_owned()),
            ..InterfaceOptions::default()
        };
        writer.interface(&options).unwrap()
    });
    let mut records: Vec<(u32, &Record)> = sender.iter().map(|record| (sides[0], record)).collect();
    records.extend(receiver.iter().map(|record| (sides[1], record)));
    records.sort_by_key(|(_, record)| record.time);
    for (side, record) in records {
        writer
            .write(side, record.time, record.original, &record.data)
            .unwrap();
    }
    fs::write(folder.path().join("both.pcapng"), writer.finish().unwrap()).unwrap();
    let one = document(folder.path(), ["both.pcapng"]);
    let two = document(
        &root(),
        [Capture::named(SENDER).path, Capture::named(RECEIVER).path],
    );
    assert_eq!(one["hops"], two["hops"]);
    assert_eq!(total(&one, "seen_again"), total(&two, "seen_again"));
    let matched = |document: &Value| sum(document["taps"].as_array().unwrap(), "matched_packets");
    assert_eq!(matched(&one), matched(&two));
    for row in one["taps"].as_array().unwrap() {
        assert_eq!(row["clock_reference"], Value::Null);
    }
}

#[test]
fn a_stream_is_not_aligned_and_says_so() {
    let sender = Capture::named(SENDER);
    let ran = run_with_input(
        &root(),
        ["-", &Capture::named(RECEIVER).path, "--format", "json"],
        &sender.bytes(),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains("a stream can be read only once"),
        "{}",
        ran.stderr
    );
    let found = ran.json();
    assert_eq!(data_hop(&found)["marked"], 15, "matched all the same");
}

/// The PSN of a frame's BTH: Ethernet 14, IPv4 20, UDP 8, and 9 bytes of the BTH before it.
fn psn(record: &Record) -> u32 {
    u32::from_be_bytes([0, record.data[51], record.data[52], record.data[53]])
}

/// The sender's side of a receiver's capture: everything is 20 us earlier or later. A packet that the
/// receiver missed is where it was sent, made from its retransmission or from the packet before it.
/// Returns the number of each.
fn sender_side(receiver: &[Record]) -> (Vec<Record>, [u64; 2]) {
    let mut records = Vec::new();
    let mut made = [0, 0];
    let mut expected: Option<u32> = None;
    for (at, record) in receiver.iter().enumerate() {
        let mut sent = record.clone();
        if !is_data(record) {
            sent.time.0 += 20_000;
            records.push(sent);
            continue;
        }
        sent.time.0 -= 20_000;
        let ahead = expected.map_or(0, |expected| psn(record).wrapping_sub(expected) & 0xff_ffff);
        if ahead < 1 << 23 {
            for number in 0..ahead {
                let missing = (expected.unwrap_or_default() + number) & 0xff_ffff;
                let retransmitted = receiver[at..]
                    .iter()
                    .find(|later| is_data(later) && psn(later) == missing);
                let mut lost = retransmitted.unwrap_or(record).clone();
                lost.time = sent.time;
                lost.data[51..54].copy_from_slice(&missing.to_be_bytes()[1..]);
                made[usize::from(retransmitted.is_none())] += 1;
                records.push(lost);
            }
            expected = Some(psn(record).wrapping_add(1) & 0xff_ffff);
        }
        records.push(sent);
    }
    records.sort_by_key(|record| record.time);
    (records, made)
}

#[test]
fn what_was_lost_between_two_taps() {
    let folder = tempdir().unwrap();
    let receiver = Capture::named("write_bw_loss").frames();
    let (sender, [retransmitted, never]) = sender_side(&receiver);
    assert!(retransmitted > 20, "{retransmitted}");
    write(folder.path(), "receiver.pcap", &receiver);
    write(folder.path(), "sender.pcap", &shifted(&sender, 3_500_000_000, 0));
    let alone = document(folder.path(), ["receiver.pcap"]);
    assert_eq!(total(&alone, "missing"), retransmitted + never);
    let both = document(folder.path(), ["receiver.pcap", "sender.pcap"]);
    let hop = data_hop(&both);
    assert_eq!(hop["from_tap"], tap(&both, "sender.pcap")["tap"]);
    // The receiver's side misses packets itself (those that were never retransmitted). Of each run of
    // retransmissions the first one would count if these were many. Every packet without a retransmission is known: of one
    // of the two a NAK shows at the receiver's side that the network lost it first. The sender's side was made from gaps
    // alone, so none of its retransmissions was lost again.
    let lost_once = total(&alone, "network_lost") - total(&alone, "network_lost_again");
    assert_eq!(
        (hop["lost"].as_u64(), lost_once),
        (Some(retransmitted), retransmitted + 1)
    );
    assert_eq!(hop["not_captured"], never);
    assert!(total(&alone, "network_lost") > 0);
    assert_eq!(hop["marked"], 0);
}
