//! Ultra Ethernet Transport: one frame of each type, and connections whose truth is that of the run that made them.

mod wire;

use std::collections::BTreeMap;

use roce_capture::Container;
use roce_capture::write::ByteOrder;
use roce_model::Time;
use serde_json::{Value, json};

use crate::captures::{Record, root};
use crate::command::{document, run, total};
use crate::variants::pcap;
use wire::{FIRST, Fate, IDS, JOB, PAYLOAD, PORTS, Run};

/// The document of a run, as a tap sees it.
fn analysed(runs: &[(&str, Run)]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, run) in runs {
        let frames = run.frames().into_iter().map(|(time, data)| Record {
            time: Time(1_700_000_000_000_000_000 + time),
            original: u32::try_from(data.len()).unwrap(),
            data,
        });
        let path = folder.path().join(format!("{name}.pcap"));
        let records: Vec<Record> = frames.collect();
        std::fs::write(&path, pcap(&records, Container::PcapNanos, ByteOrder::Little)).unwrap();
        paths.push(path);
    }
    document(folder.path(), paths)
}

fn findings(document: &Value) -> Vec<&str> {
    let rows = document["findings"].as_array().unwrap();
    rows.iter().filter_map(|row| row["id"].as_str()).collect()
}

/// 200 packets with two losses, two trims in the fabric, one at the last hop, and a loss that the receiver names.
fn faulty() -> Run {
    Run {
        packets: 200,
        fates: BTreeMap::from([
            (21, Fate::Lost),
            (41, Fate::Lost),
            (62, Fate::Trimmed(1)),
            (83, Fate::Trimmed(1)),
            (102, Fate::Trimmed(2)),
            (121, Fate::Missed),
        ]),
        marked: Some(PORTS[2]),
        at_receiver: false,
    }
}

#[test]
fn each_type_is_counted_for_what_it_is() {
    let found = document(&root(), ["tests/data/uet/uet_types.pcap"]);
    assert_eq!(
        (
            total(&found, "frames"),
            total(&found, "uet_packets"),
            total(&found, "uet_encrypted")
        ),
        (16, 16, 2)
    );
    assert_eq!((total(&found, "roce_packets"), total(&found, "not_roce")), (0, 0));
    let rows = found["uet_traffic"].as_array().unwrap();
    let sum = |column: &str| rows.iter().map(|row| row[column].as_u64().unwrap()).sum::<u64>();
    // The types in the order of their numbers, each once but for TSS, RUD, ROD, ACK and NACK with their forms for congestion control.
    for (column, packets) in [
        ("encrypted", 2),
        ("unordered", 2),
        ("ordered", 2),
        ("idempotent", 2),
        ("datagrams", 1),
        ("acks", 4),
        ("nacks", 2),
        ("controls", 1),
        ("packets", 16),
        // The ROD request alone has the bit.
        ("retransmitted", 1),
        ("errors", 0),
    ] {
        assert_eq!(sum(column), packets, "{column}");
    }
    // The requests and the answer have the job of the truth, 0xabcdef.
    let job = rows.iter().find(|row| row["job"] == 0xab_cdef).unwrap();
    assert_eq!(
        (&job["packets"], &job["operations"]),
        (&json!(7), &json!("WRITE"))
    );
    // RUD and ROD have 32 bytes of payload, their forms with congestion control 16. Their headers state 512, which the frame has not.
    assert_eq!(job["payload_bytes"], 32 + 32 + 16 + 16);
    let secure: Vec<&Value> = rows
        .iter()
        .filter(|row| row["secure_domain"] == 0x12_3456)
        .collect();
    assert_eq!(secure.len(), 2);
    assert_eq!(
        (&secure[0]["secure_source"], &secure[1]["secure_source"]),
        (&Value::Null, &json!(0xa0b0_c0d0_u32))
    );
    let connections = found["mrc_connections"].as_array().unwrap();
    let data = connections
        .iter()
        .find(|row| row["requestor_pdc"] == 0x3456)
        .unwrap();
    assert_eq!(
        (&data["transport"], &data["job"], &data["responder_pdc"]),
        (&json!("UET"), &json!(0xab_cdef), &json!(0x9abc))
    );
    // SYN: the PSN less the offset, 0x98765432 - 3, was the first one.
    assert_eq!(
        (&data["first_psn"], &data["probes"]),
        (&json!(0x9876_5432_u32), &json!(1))
    );
}

#[test]
fn a_connection_is_judged_as_those_of_mrc() {
    let found = analysed(&[("sender", faulty())]);
    let rows = found["mrc_connections"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    for (column, value) in [
        ("transport", json!("UET")),
        ("udp_port", json!(4793)),
        ("requestor_pdc", json!(IDS[0])),
        ("responder_pdc", json!(IDS[1])),
        ("delivery", json!("any_order")),
        ("job", json!(JOB)),
        ("first_psn", json!(FIRST)),
        ("last_psn", json!(FIRST.wrapping_add(199))),
        ("data_packets", json!(200)),
        ("packets", json!(206)),
        ("payload_bytes", json!(206 * PAYLOAD)),
        ("retransmitted_packets", json!(6)),
        // Two holes, and the one that the receiver concludes.
        ("rtx_hole", json!(3)),
        ("lost", json!(3)),
        ("rtx_trimmed", json!(2)),
        ("trimmed", json!(2)),
        ("rtx_trimmed_lasthop", json!(1)),
        ("trimmed_lasthop", json!(1)),
        ("rtx_timeout", json!(0)),
        ("rtx_unknown", json!(0)),
        ("spurious", json!(0)),
        ("open", json!(0)),
        ("messages", json!(50)),
        ("messages_complete", json!(50)),
        ("at_receiver", json!(false)),
        ("confidence", json!("high")),
        // A packet takes 5 us there, its answer 5 us back.
        ("rtt_min_ns", json!(10_000)),
    ] {
        assert_eq!(row[column], value, "{column}");
    }
    assert!(!row["opened_time"].is_null() && !row["closed_time"].is_null());
    // Places 21, 41 and 121 are those of the second entropy, whose marks are none; the third has them all.
    for path in found["mrc_paths"].as_array().unwrap() {
        let port = u16::try_from(path["ev"].as_u64().unwrap()).unwrap();
        assert_eq!(path["lost"], if port == PORTS[1] { 3 } else { 0 }, "{port:#x}");
        let is_marked = port == PORTS[2];
        assert_eq!(path["marked"].as_u64() > Some(0), is_marked, "{port:#x}");
    }
    let ids = findings(&found);
    for id in ["mrc.loss.silent", "mrc.trim.fabric", "mrc.path.marked"] {
        assert!(ids.contains(&id), "{id}: {ids:?}");
    }
    // One sender is no incast.
    assert!(!ids.contains(&"mrc.trim.lasthop"));
    let traffic = found["uet_traffic"].as_array().unwrap();
    let job = traffic.iter().find(|row| row["job"] == JOB).unwrap();
    assert_eq!((&job["messages"], &job["retransmitted"]), (&json!(50), &json!(6)));
}

#[test]
fn without_a_fault_there_is_no_finding() {
    let healthy = Run {
        packets: 200,
        ..Run::default()
    };
    let found = analysed(&[("sender", healthy)]);
    assert_eq!(findings(&found), Vec::<&str>::new());
    assert_eq!(
        found["run"]["sentence"],
        "Nothing is wrong in 1 connection of UET: nothing was lost."
    );
    let row = &found["mrc_connections"][0];
    assert_eq!(
        (&row["lost"], &row["spurious"], &row["reordered"]),
        (&json!(0), &json!(0), &json!(0))
    );
}

#[test]
fn trimmed_frames_have_not_arrived() {
    let found = analysed(&[(
        "receiver",
        Run {
            at_receiver: true,
            ..faulty()
        },
    )]);
    let row = &found["mrc_connections"][0];
    assert_eq!(
        (&row["trimmed"], &row["trimmed_lasthop"], &row["spurious"]),
        (&json!(2), &json!(1), &json!(0))
    );
    let traffic = found["uet_traffic"].as_array().unwrap();
    let job = traffic.iter().find(|row| row["job"] == JOB).unwrap();
    // 203 frames came whole: of 206 sent three were lost and three trimmed, and those came again.
    assert_eq!(
        (&job["trimmed"], &job["payload_bytes"]),
        (&json!(3), &json!(200 * PAYLOAD))
    );
}

#[test]
fn two_taps_see_one_connection() {
    let both = [
        ("sender", faulty()),
        (
            "receiver",
            Run {
                at_receiver: true,
                ..faulty()
            },
        ),
    ];
    let found = analysed(&both);
    let rows = found["mrc_connections"].as_array().unwrap();
    assert_eq!(
        (rows.len(), &rows[0]["taps"], &rows[0]["packets"]),
        (1, &json!(2), &json!(206))
    );
    assert_eq!((&rows[0]["lost"], &rows[0]["trimmed"]), (&json!(3), &json!(2)));
}

#[test]
fn the_report_names_jobs_and_what_is_encrypted() {
    let told = run(&root(), ["tests/data/uet/uet_types.pcap"]).good().stdout;
    assert!(
        told.contains("16 UET") && told.contains("2 connections of UET"),
        "{told}"
    );
    assert!(
        told.contains("11259375") && told.contains("domain 1193046"),
        "{told}"
    );
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("2 of them encrypted"), "{told}");
}
