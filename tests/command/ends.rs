//! How connections ended: the table `ends` and the finding `connection.failed`. Expected values are what tshark shows of the captures
//! (`frame.time_relative`, `infiniband.bth.psn`, `infiniband.aeth.syndrome`), and arithmetic on them.

use serde_json::Value;

use crate::captures::root;
use crate::command::{document, ran};

/// The document of a capture of `tests/data/ends`.
fn answer(name: &str) -> Value {
    document(&root(), [format!("tests/data/ends/{name}.pcap")])
}

/// The failed connection to this queue pair.
#[track_caller]
fn end(document: &Value, qpn: u64) -> &Value {
    let rows = document["ends"].as_array().unwrap();
    let found = rows.iter().find(|row| row["destination_qpn"] == qpn);
    found.unwrap_or_else(|| panic!("no failed connection to {qpn:#x} in {rows:#?}"))
}

#[track_caller]
fn finding<'a>(document: &'a Value, id: &str) -> &'a Value {
    let rows = document["findings"].as_array().unwrap();
    let found = rows.iter().find(|row| row["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {rows:#?}"))
}

#[test]
fn a_request_that_nobody_answers_has_its_price_and_its_timer() {
    let document = answer("never_answered");
    let row = end(&document, 0x142);
    assert_eq!(row["outcome"], "never-answered");
    // Frames 1 to 8: seven repeats; 1.074 s apart is 4.096 us x 2^18, or four times 2^16.
    assert_eq!(row["repeats"], 7);
    assert_eq!(
        (&row["timeout_min"], &row["timeout_max"]),
        (&16.into(), &18.into())
    );
    let waited = row["waited_ns"].as_u64().unwrap();
    assert!((7_500_000_000..7_530_000_000).contains(&waited), "{waited}");
    let finding = finding(&document, "connection.failed");
    assert_eq!(finding["severity"], "critical");
    // No packet to the requester was captured: an answer may have come another way.
    assert_eq!(finding["confidence"], "medium");
}

#[test]
fn frames_to_the_sender_itself_are_said() {
    let document = answer("same_mac");
    let row = end(&document, 0x142);
    assert_eq!(row["outcome"], "never-answered");
    assert_eq!(row["to_itself"], true);
    let finding = finding(&document, "connection.failed");
    let summary = finding["summary"].as_str().unwrap();
    assert!(
        summary.contains("addressed to the MAC address that sends them"),
        "{summary}"
    );
    let next = finding["next_step"].as_str().unwrap();
    assert!(next.contains("ip neigh"), "{next}");
}

#[test]
fn a_refusal_and_a_silence_are_told_apart_without_pairing() {
    let document = answer("refused_and_unanswered");
    let refused = end(&document, 0x2b99);
    assert_eq!(refused["outcome"], "refused");
    assert_eq!(refused["refusal"], "remote access error");
    assert_eq!(refused["request_psn"], 7_589_689);
    let silent = end(&document, 0x2b9a);
    assert_eq!(silent["outcome"], "never-answered");
    assert_eq!(
        (&silent["repeats"], &silent["request_psn"]),
        (&7.into(), &2_455_489.into())
    );
    // Sent at 1.0 ms, and last at 30.4 ms. 4.2 ms is 4.096 us x 2^10, or four times 2^8 and some.
    assert_eq!(silent["waited_ns"], 29_400_000);
    assert_eq!(
        (&silent["timeout_min"], &silent["timeout_max"]),
        (&9.into(), &10.into())
    );
    assert_eq!(silent["peer_answers"], true);
    // The third one works.
    assert_eq!(document["ends"].as_array().unwrap().len(), 2);
}

#[test]
fn path_mtus_of_both_directions_are_compared() {
    let document = answer("mtu_mismatch");
    for (qpn, own, other) in [(0x621, 4096, 1024), (0x612, 1024, 4096)] {
        let row = end(&document, qpn);
        assert_eq!(row["outcome"], "refused");
        assert_eq!(row["refusal"], "invalid request");
        assert_eq!(
            (&row["path_mtu"], &row["peer_path_mtu"]),
            (&own.into(), &other.into())
        );
    }
    let summary = finding(&document, "connection.failed")["summary"]
        .as_str()
        .unwrap();
    assert!(
        summary.contains("1024 bytes") && summary.contains("4096"),
        "{summary}"
    );
}

#[test]
fn an_error_line_blames_the_connection_that_ended_so() {
    let line = "h:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.150.5.46<41000> with status=12 opcode=0 len=0 vendor err 129 (Send) \
                localGid ::ffff:10.150.5.44 remoteGids::ffff:10.150.5.46 hca mlx5_1";
    let ran =
        ran(crate::command::command(&root()).args(["explain", line, "tests/data/ends/beside_healthy.pcap"]))
            .good();
    let mut lines = ran.stdout.lines().map(str::trim_start);
    let first = lines.find(|line| line.starts_with("connection ")).unwrap();
    assert!(first.contains("0x2b9a"), "{}", ran.stdout);
}

#[test]
fn a_request_behind_a_refusal_is_of_a_new_connection() {
    // The READ at PSN 4194310 is refused; a SEND with its PSN is answered 47 ms later: that connection has not ended.
    let document = document(&root(), ["tests/data/reported/fatal_then_other_request.pcap"]);
    assert_eq!(document["ends"], Value::Array(Vec::new()));
    finding(&document, "nak.fatal");
}
