//! Every number that tshark counted in a capture is the number that the command says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::captures::{self, ByFlow, Golden, root};
use crate::command::{document, flows, sum, total};

#[test]
fn every_capture_has_its_golden_file_and_every_golden_file_its_capture() {
    let captures: BTreeSet<String> = captures::all().into_iter().map(|capture| capture.name).collect();
    let golden: BTreeSet<String> = fs::read_dir(root().join("tests/data/golden"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(captures, golden);
    assert!(captures::samples().len() >= 6);
}

#[test]
fn every_count_is_that_of_tshark() {
    for capture in captures::all() {
        let golden = capture.golden();
        let found = document(&root(), [&capture.path]);
        let name = &capture.name;
        frames(name, &golden, &found);
        packets(name, &golden, &found);
        requests(name, &golden, &found);
        assert_eq!(by_flow(&found), expected_by_flow(&golden), "{name}: flows");
        assert_eq!(
            cnp_receivers(&found),
            golden.those("cnp."),
            "{name}: CNPs by receiver"
        );
        golden.all_read();
    }
}

/// Records, bytes and times.
fn frames(name: &str, golden: &Golden, found: &Value) {
    let taps = found["taps"].as_array().unwrap();
    let input = &found["run"]["inputs"][0];
    assert_eq!(total(found, "frames"), golden.of("frames"), "{name}: frames");
    assert_eq!(
        sum(taps, "frames"),
        golden.of("frames"),
        "{name}: frames of the taps"
    );
    assert_eq!(
        input["frames"],
        golden.of("frames"),
        "{name}: frames of the input"
    );
    assert_eq!(
        sum(taps, "cut_frames"),
        golden.of("frames_cut"),
        "{name}: frames cut short"
    );
    assert_eq!(
        sum(taps, "out_of_order"),
        golden.of("out_of_order"),
        "{name}: out of order"
    );
    // Classic pcap: a header of 24 bytes, and one of 16 before each record.
    let stored = 24 + 16 * golden.of("frames") + golden.of("captured_bytes");
    assert_eq!(input["bytes"], stored, "{name}: bytes of the file");
    for (key, golden_key) in [("first_time", "first_time_ns"), ("last_time", "last_time_ns")] {
        let expected = golden.of(golden_key).to_string();
        assert_eq!(found["run"][key], expected, "{name}: {key} of the run");
        assert_eq!(input[key], expected, "{name}: {key} of the input");
        assert_eq!(taps[0][key], expected, "{name}: {key} of the tap");
    }
    // Everything in these captures is RoCEv2 and readable.
    for none in [
        "frames_lost",
        "copies",
        "roce_v1",
        "infiniband",
        "undecodable",
        "cut_by_snaplen",
        "fragments",
    ] {
        assert_eq!(total(found, none), 0, "{name}: {none}");
    }
    assert_eq!(
        found["totals"]["stops"],
        Value::Array(Vec::new()),
        "{name}: stops"
    );
}

/// Results of single packets.
fn packets(name: &str, golden: &Golden, found: &Value) {
    for key in [
        "roce_packets",
        "wire_bytes",
        "payload_bytes",
        "not_ect",
        "ect1",
        "ect0",
        "ce",
        "data_packets",
        "data_ce",
        "acks",
        "cnp",
        "naks",
        "rnr_naks",
        "icrc_checked",
        "icrc_bad",
    ] {
        assert_eq!(total(found, key), golden.of(key), "{name}: {key}");
    }
    assert_eq!(
        total(found, "roce_v2"),
        golden.of("roce_packets"),
        "{name}: all is RoCEv2"
    );
    if golden.of("frames_cut") == 0 {
        assert_eq!(
            total(found, "icrc_checked"),
            golden.of("roce_packets"),
            "{name}: every ICRC is checkable"
        );
    }
    assert_eq!(total(found, "icrc_bad"), 0, "{name}: every ICRC is good");
    assert_eq!(
        sum(flows(found), "icrc_checked") + total(found, "cnp"),
        golden.of("icrc_checked"),
        "{name}: by flow"
    );

    let opcodes: BTreeMap<String, u64> = found["totals"]["opcodes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(opcode, entry)| (opcode.clone(), entry["packets"].as_u64().unwrap()))
        .collect();
    assert_eq!(opcodes, golden.those("opcode."), "{name}: opcodes");

    // The columns of `flows`, by their syndromes (IBTA, 9.7.5.2.2).
    let columns = [
        ("0x60", "nak_sequence"),
        ("0x61", "nak_invalid_request"),
        ("0x62", "nak_remote_access"),
        ("0x63", "nak_remote_operational"),
    ];
    let naks: BTreeMap<String, u64> = columns
        .iter()
        .map(|(syndrome, column)| ((*syndrome).to_owned(), sum(flows(found), column)))
        .filter(|(_, naks)| *naks > 0)
        .collect();
    assert_eq!(naks, golden.those("nak."), "{name}: NAKs by code");

    let management: Vec<Value> = flows(found)
        .iter()
        .filter(|flow| flow["destination_qpn"] == 1)
        .cloned()
        .collect();
    assert_eq!(
        sum(&management, "payload_bytes"),
        golden.of("payload_bytes_qp1"),
        "{name}: payload for QP 1"
    );
}

/// Results of the requests' PSNs.
fn requests(name: &str, golden: &Golden, found: &Value) {
    let (resends, filled) = (golden.of("resends"), golden.of("filled"));
    assert_eq!(total(found, "missing"), golden.of("skipped"), "{name}: missing");
    // Each packet behind the highest PSN is a retransmission, late, a duplicate of the network, or
    // unresolved.
    let others =
        total(found, "late") + sum(flows(found), "duplicates_network") + sum(flows(found), "unknown_packets");
    assert_eq!(
        total(found, "retransmitted_packets") + others,
        resends + filled,
        "{name}: behind the highest"
    );
    // Packets of one capture alone overtook each other: 47, by their IP identifications (`statistics.rs`).
    if name != "blackout_600ms" {
        assert_eq!(others, 0, "{name}: no retransmission");
    }
    // tshark's count is of packets that were captured before; those that fill holes have up to one path MTU each.
    let most = golden.of("resent_payload_bytes") + filled * 1024;
    let least = golden.of("resent_payload_bytes").saturating_sub(others * 1024);
    let bytes = total(found, "retransmitted_bytes");
    assert!(
        (least..=most).contains(&bytes),
        "{name}: {bytes} bytes retransmitted, expected {least} to {most}"
    );
    assert_eq!(
        golden.of("below_first"),
        0,
        "{name}: nothing lies before the first PSN"
    );
    assert_eq!(
        total(found, "response_missing"),
        0,
        "{name}: no READ response is missing"
    );
}

/// `10.0.0.1>10.0.0.2>0x000011`.
fn name_of(source: &Value, destination: &Value, qpn: &Value) -> String {
    let (source, destination) = (source.as_str().unwrap(), destination.as_str().unwrap());
    format!("{source}>{destination}>{:#08x}", qpn.as_u64().unwrap())
}

/// The document's flows in the words of the golden file. A golden flow has no epochs and no source QPN.
fn by_flow(found: &Value) -> ByFlow {
    let mut all = ByFlow::new();
    for flow in flows(found) {
        let name = name_of(&flow["source"], &flow["destination"], &flow["destination_qpn"]);
        let counts = all.entry(name).or_default();
        for (key, column) in [
            ("packets", "packets"),
            ("wire_bytes", "wire_bytes"),
            ("payload_bytes", "payload_bytes"),
            ("data_packets", "data_packets"),
            ("data_ce", "ce"),
            ("acks", "acks"),
            ("naks", "naks"),
            ("rnr_naks", "rnr_naks"),
            ("skipped", "missing"),
            // Those of one capture are not all retransmissions: see `requests`.
            ("behind the highest", "retransmitted_packets"),
            ("behind the highest", "late"),
            ("behind the highest", "duplicates_network"),
            ("behind the highest", "unknown_packets"),
        ] {
            let value = flow[column].as_u64().unwrap();
            if value > 0 {
                *counts.entry(key.to_owned()).or_default() += value;
            }
        }
    }
    all
}

fn expected_by_flow(golden: &Golden) -> ByFlow {
    let mut all = golden.flows();
    assert_eq!(all.len() as u64, golden.of("flows"));
    for counts in all.values_mut() {
        counts.remove("below_first");
        let again = counts.remove("resends").unwrap_or(0) + counts.remove("filled").unwrap_or(0);
        if again > 0 {
            counts.insert("behind the highest".to_owned(), again);
        }
    }
    all
}

fn cnp_receivers(found: &Value) -> BTreeMap<String, u64> {
    let taps = found["taps"].as_array().unwrap();
    taps.iter()
        .flat_map(|tap| tap["cnp_receivers"].as_array().unwrap())
        .map(|to| {
            (
                name_of(&to["source"], &to["destination"], &to["qpn"]),
                to["cnp"].as_u64().unwrap(),
            )
        })
        .collect()
}
