//! Several captures in one run: different traffic adds up, and traffic seen twice is no retransmission.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::captures::{self, Capture, root};
use crate::command::{document, flows, run, sum, total};

const TWINS: [&str; 2] = ["send_bw_ce_gradual", "send_bw_ce_gradual_senderside"];

#[test]
fn all_samples_in_one_run_are_the_sums() {
    let paths: Vec<String> = captures::samples()
        .into_iter()
        .map(|capture| capture.path)
        .collect();
    let singles: Vec<Value> = paths.iter().map(|path| document(&root(), [path])).collect();
    for threads in ["1", "2"] {
        let all = document(
            &root(),
            paths.iter().map(String::as_str).chain(["--threads", threads]),
        );
        let totals = all["totals"].as_object().unwrap();
        for (key, value) in totals {
            if let Some(value) = value.as_u64() {
                let expected: u64 = singles.iter().map(|single| total(single, key)).sum();
                // All are of one interface, one after the other, and so of one tap: a queue pair that is used again is one flow, and how
                // long one pair of hosts takes to answer a NAK is known from the sample before. So triggers that one sample leaves
                // open are told; their sum stays.
                match key.as_str() {
                    "flows" => assert!(value <= expected, "{value} of {expected}"),
                    "runs_nak" | "runs_timeout" | "runs_unknown" => {}
                    _ => assert_eq!(value, expected, "{key}"),
                }
            } else {
                assert!(
                    value.is_null() || ["stops", "opcodes"].contains(&key.as_str()),
                    "{key}: {value}"
                );
            }
        }
        let triggers = |of: &Value| -> u64 {
            let keys = ["runs_nak", "runs_timeout", "runs_unknown"];
            keys.iter().map(|key| total(of, key)).sum()
        };
        assert_eq!(triggers(&all), singles.iter().map(triggers).sum::<u64>());
        assert_eq!(opcodes([&all]), opcodes(&singles));
        assert_eq!(all["run"]["inputs"].as_array().unwrap().len(), paths.len());
        let frames: u64 = paths.len() as u64;
        assert!(frames > 1);

        // And they are tshark's.
        let golden = |key: &str| -> u64 {
            captures::samples()
                .iter()
                .map(|capture| capture.golden().of(key))
                .sum()
        };
        for key in [
            "frames",
            "roce_packets",
            "payload_bytes",
            "ce",
            "cnp",
            "acks",
            "naks",
            "rnr_naks",
        ] {
            assert_eq!(total(&all, key), golden(key), "{key}");
        }
        assert_eq!(total(&all, "missing"), golden("skipped"));
        // In blackout_600ms packets overtook each other.
        let others = total(&all, "late")
            + sum(flows(&all), "duplicates_network")
            + sum(flows(&all), "unknown_packets");
        assert_eq!(
            total(&all, "retransmitted_packets") + others,
            golden("resends") + golden("filled")
        );
    }
}

fn opcodes<'a>(documents: impl IntoIterator<Item = &'a Value>) -> BTreeMap<&'a str, u64> {
    let mut sums = BTreeMap::new();
    for document in documents {
        for (opcode, entry) in document["totals"]["opcodes"].as_object().unwrap() {
            *sums.entry(opcode.as_str()).or_default() += entry["packets"].as_u64().unwrap();
        }
    }
    sums
}

/// A flow's columns but for the number of its tap, and whether this tap's row counts.
fn at_any_tap(flow: &Value) -> Value {
    let mut flow = flow.clone();
    flow["tap"].take();
    flow["counted"].take();
    // Only the other tap shows the vantage of this one.
    flow["vantage"].take();
    flow["ack_rtt_kind"].take();
    flow
}

#[test]
fn both_sides_of_the_same_traffic() {
    let [receiver, sender] = TWINS.map(|name| document(&root(), [Capture::named(name).path]));
    for order in [TWINS, [TWINS[1], TWINS[0]]] {
        for threads in ["1", "2"] {
            let paths = order.map(|name| Capture::named(name).path);
            let both = document(
                &root(),
                paths.iter().map(String::as_str).chain(["--threads", threads]),
            );
            for none in [
                "retransmitted_packets",
                "retransmitted_bytes",
                "missing",
                "late",
                "copies",
            ] {
                assert_eq!(total(&both, none), 0, "{none}");
            }
            assert_eq!(sum(flows(&both), "stale"), 0);
            assert_eq!(both["taps"].as_array().unwrap().len(), 2);
            // 370 + 372 frames; 15 marks, which only the receiver's side saw.
            assert_eq!(total(&both, "frames"), 742);
            assert_eq!(total(&both, "data_ce"), 15);
            // Each side says what it says alone.
            let mut expected: Vec<Value> = flows(&receiver)
                .iter()
                .chain(flows(&sender))
                .map(at_any_tap)
                .collect();
            let mut found: Vec<Value> = flows(&both).iter().map(at_any_tap).collect();
            expected.sort_by_key(Value::to_string);
            found.sort_by_key(Value::to_string);
            assert_eq!(found, expected);
            for flow in flows(&both) {
                let tap = &both["taps"][usize::try_from(flow["tap"].as_u64().unwrap()).unwrap()];
                let side = if tap["input"].as_str().unwrap().contains("senderside") {
                    &sender
                } else {
                    &receiver
                };
                let alone = flows(side)
                    .iter()
                    .find(|alone| alone["flow_id"] == flow["flow_id"]);
                assert_eq!(alone.map(at_any_tap), Some(at_any_tap(flow)), "at its own tap");
            }
        }
    }
}

#[test]
fn the_same_file_twice_is_one_observation() {
    // Records of one stamp and the same bytes are the same records: they prove nothing a second time.
    let capture = Capture::named("write_bw_loss");
    let once = document(&root(), [&capture.path]);
    let twice = run(&root(), [&capture.path, &capture.path, "--format", "json"]);
    assert_eq!(
        twice.stderr,
        "warning: captures/write_bw_loss.pcap: it is given more than once: its records count once\n"
    );
    let twice = twice.json();
    for key in [
        "frames",
        "roce_packets",
        "missing",
        "retransmitted_packets",
        "naks",
        "flows",
    ] {
        assert_eq!(total(&twice, key), total(&once, key), "{key}");
    }
    assert_eq!(total(&twice, "copies"), 0);
}

#[test]
fn captures_that_have_nothing_in_common_are_said() {
    // Other hosts, and another year: captures/README.md.
    let paths = ["captures/rnr.pcap", "captures/demos/incast-h2.pcapng"];
    let ran = run(&root(), paths.iter().chain(&["--format", "none"]));
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            Some(0),
            "warning: captures: nothing in common, no address or more than an hour between them: \
             captures/demos/incast-h2.pcapng; captures/rnr.pcap\n\
             hint: analyse them one by one; `roce-analyze compare A B` compares two runs\n"
        )
    );
    let paths = ["captures/rnr.pcap", "captures/rping.pcap", "--format", "none"];
    assert_eq!(run(&root(), paths).stderr, "", "the same hosts, minutes apart");
}
