//! Trimmed packets, and RoCE behind telemetry of switches. Expected values are those of `tests/data/transports/expected.json`, which the
//! program wrote that made the captures, and arithmetic on them.

use std::path::PathBuf;

use serde_json::Value;

use crate::captures::root;
use crate::command::{document, flows, run, sum, total};

fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(root().join("tests/data/transports/expected.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all[format!("{name}.pcap")].clone()
}

fn answer(name: &str) -> Value {
    document(&root(), [format!("tests/data/transports/{name}.pcap")])
}

fn has_finding(document: &Value, id: &str) -> bool {
    let rows = document["findings"].as_array().unwrap();
    rows.iter().any(|row| row["id"] == id)
}

#[test]
fn trimmed_packets_were_lost_before_the_tap() {
    for name in ["roce_trimmed_lenkept", "roce_trimmed_lenfixed"] {
        let (truth, found) = (expected(name), answer(name));
        let of = |key: &str| truth[key].as_u64().unwrap();
        assert_eq!(total(&found, "frames"), of("frames"));
        // 5 packets came twice as whole ones: 17 to 19 of the first run again, and the two trimmed ones for the first time.
        let (delivered, wasted) = (of("delivered_payload_bytes"), 3 * 1024);
        assert_eq!(total(&found, "payload_bytes"), delivered + wasted);
        assert_eq!(total(&found, "data_packets"), of("data_packets") + 3);
        assert_eq!(total(&found, "wasted_bytes"), wasted);
        assert_eq!(total(&found, "retransmitted_packets"), 5);
        assert_eq!(total(&found, "trimmed"), 2);
        assert_eq!(total(&found, "network_lost"), of("lost_in_network"));
        assert_eq!(total(&found, "naks"), of("naks"));
        for none in [
            "lost_downstream",
            "icrc_bad",
            "cut_by_snaplen",
            "capture_lost",
            "ambiguous",
            "unresolved",
            "late",
        ] {
            assert_eq!(total(&found, none), 0, "{none}");
        }
        let rows = flows(&found);
        let data = rows.iter().find(|row| row["destination_qpn"] == 0x123).unwrap();
        assert_eq!((&data["trimmed"], &data["losses_proven"]), (&2.into(), &2.into()));
        assert_eq!(
            (&data["trim_dscp"], &data["trim_dscp_values"]),
            (&10.into(), &2.into())
        );
        assert_eq!((&data["dscp"], &data["dscp_values"]), (&26.into(), &1.into()));
        let findings = found["findings"].as_array().unwrap();
        let trimmed = findings.iter().find(|row| row["id"] == "loss.trimmed").unwrap();
        assert_eq!(trimmed["evidence"]["trim_dscps"], "10: 1, 20: 1");
        assert_eq!(trimmed["evidence"]["repeated_bytes"], 5 * 1024);
        assert_eq!(trimmed["confidence"], "high");
        assert!(trimmed["waited_ns"].as_u64().unwrap() > 0);
        // They are all that loss.network counts.
        let loss = findings.iter().find(|row| row["id"] == "loss.network").unwrap();
        assert_eq!(loss["explained_by"], serde_json::json!(["loss.trimmed"]));
        assert!(!has_finding(&found, "retransmit.waste") && !has_finding(&found, "dscp.mismatch"));
    }
}

/// A copy of a capture whose frames a change was made to: its bytes, and its length on the wire.
fn changed(name: &str, change: impl Fn(&mut Vec<u8>, &mut u32)) -> (tempfile::TempDir, PathBuf) {
    let bytes = std::fs::read(root().join(format!("tests/data/transports/{name}.pcap"))).unwrap();
    let (mut made, mut rest) = (bytes[..24].to_vec(), &bytes[24..]);
    while rest.len() >= 16 {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let length = word(8) as usize;
        let mut frame = rest[16..16 + length].to_vec();
        let mut original = word(12);
        change(&mut frame, &mut original);
        made.extend_from_slice(&rest[..8]);
        made.extend_from_slice(&u32::try_from(frame.len()).unwrap().to_le_bytes());
        made.extend_from_slice(&original.to_le_bytes());
        made.extend_from_slice(&frame);
        rest = &rest[16 + length..];
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.pcap");
    std::fs::write(&path, made).unwrap();
    (folder, path)
}

/// Offset of the DSCP and ECN of an IPv4 header behind Ethernet.
const TRAFFIC_CLASS: usize = 15;

#[test]
fn what_captures_cut_is_not_trimmed() {
    // A snaplen; a writer that cuts all frames and says that they were no longer; one that does so and keeps some whole.
    let class_of_data = 26 << 2 | 2;
    let (_one, snaplen) = changed("roce_trimmed_lenkept", |frame, original| {
        frame.truncate(96);
        // The trimmed frames have the DSCP of the others: what is left is a frame shorter than it says.
        frame[TRAFFIC_CLASS] = class_of_data;
        *original = (*original).max(1_098);
    });
    let (_two, careless) = changed("roce_trimmed_lenkept", |frame, original| {
        frame.truncate(256);
        *original = u32::try_from(frame.len()).unwrap();
    });
    let (_three, unmarked) = changed("roce_trimmed_lenkept", |frame, _| {
        frame[TRAFFIC_CLASS] = class_of_data;
    });
    for path in [snaplen, careless, unmarked] {
        let found = document(&root(), [path]);
        assert_eq!(total(&found, "trimmed"), 0);
        assert!(!has_finding(&found, "loss.trimmed"));
    }
}

#[test]
fn trimmed_packets_of_a_capture_with_a_snaplen_are_known() {
    let (_folder, path) = changed("roce_trimmed_lenkept", |frame, _| frame.truncate(96));
    let found = document(&root(), [path]);
    assert_eq!((total(&found, "trimmed"), total(&found, "network_lost")), (2, 2));
}

#[test]
fn the_terminal_says_where_trimmed_packets_were_lost() {
    let said = run(&root(), ["tests/data/transports/roce_trimmed_lenfixed.pcap"]).stdout;
    assert!(
        said.contains("loss.trimmed: a queue before the tap had no room"),
        "{said}"
    );
    for wrong in ["snaplen", "cut by the length", "behind this tap"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
}

#[test]
fn packets_behind_telemetry_are_counted_once() {
    for name in [
        "roce_ifa_inband",
        "roce_ifa_inband_ipv6",
        "roce_ifa_clone",
        "roce_csig",
    ] {
        let (truth, found) = (expected(name), answer(name));
        let of = |key: &str| truth[key].as_u64().unwrap_or_default();
        assert_eq!(total(&found, "frames"), of("frames"), "{name}");
        assert_eq!(total(&found, "data_packets"), of("data_packets"), "{name}");
        assert_eq!(total(&found, "payload_bytes"), of("payload_bytes"), "{name}");
        assert_eq!(total(&found, "not_roce"), of("copies_that_are_no_data"), "{name}");
        // The ICRC is that of the packet before anything was inserted.
        assert_eq!(total(&found, "icrc_checked"), of("data_packets"), "{name}");
        for none in [
            "icrc_bad",
            "missing",
            "retransmitted_packets",
            "copies",
            "trimmed",
        ] {
            assert_eq!(total(&found, none), of("lost"), "{name}: {none}");
        }
        assert_eq!(sum(flows(&found), "packets"), of("data_packets"), "{name}");
    }
}
