//! Programs that do not answer over a working connection, and how connections are made. Expected values are what tshark shows
//! (`frame.time_relative`, `infiniband.bth.destqp`), and arithmetic on them.

use serde_json::Value;

use crate::captures::root;
use crate::command::document;

fn found(name: &str, id: &str) -> Option<Value> {
    let document = document(&root(), [format!("tests/data/programs/{name}.pcap")]);
    let rows = document["findings"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == id).cloned()
}

#[test]
fn a_request_that_is_acknowledged_and_never_answered() {
    let row = found("no_answer", "program.no-answer").unwrap();
    assert_eq!(
        (&row["severity"], &row["confidence"]),
        (&"warning".into(), &"high".into())
    );
    // Frames 39 and 42 to QP 0x945 and 0x946, their ACKs 4 us later, DREQs at 5.002 s; others are answered after 91 or 110 us.
    assert_eq!(row["evidence"]["requests"], 2);
    assert_eq!(row["evidence"]["acknowledged_ns"], 4_000);
    assert_eq!(row["evidence"]["protocols"], "NVMe-oF");
    let waited = row["evidence"]["waited_ns"].as_u64().unwrap();
    assert!((9_998_000_000..10_000_000_000).contains(&waited), "{waited}");
    let typical = row["evidence"]["answer_p50_ns"].as_u64().unwrap();
    assert!((85_000..115_000).contains(&typical), "{typical}");
    let summary = row["summary"].as_str().unwrap();
    assert!(
        summary.contains("QP 0x945") && summary.contains("QP 0x946"),
        "{summary}"
    );
}

#[test]
fn requests_for_a_connection_that_are_repeated() {
    let late = found("request_repeated", "connection.setup").unwrap();
    let summary = late["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("1 connection made late") && summary.contains("2 repeats 4.30 s apart"),
        "{summary}"
    );
    assert_eq!(late["evidence"]["late"], 1);
    let waited = late["evidence"]["waited_ns"].as_u64().unwrap();
    assert!((8_700_000_000..8_800_000_000).contains(&waited), "{waited}");
    // Nothing of the host that is asked was captured: its answers may go another way.
    let unanswered = found("request_unanswered", "connection.setup").unwrap();
    assert_eq!(unanswered["evidence"]["unanswered"], 1);
    assert_eq!(unanswered["confidence"], "medium");
}
