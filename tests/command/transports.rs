//! Trimmed packets, and RoCE behind telemetry of switches. Expected values are those of `tests/data/transports/expected.json`, which the
//! program wrote that made the captures, and arithmetic on them.

use std::path::PathBuf;

use roce_capture::{Merge, Reader};
use roce_flow::Options;
use roce_model::{Columns, Sink, SinkError, Span, TimelineColumns};
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

/// Rows of the timeline with telemetry: queue and delay.
#[derive(Default)]
struct HopBins(Vec<(Option<u64>, Option<u64>)>);

impl Sink for HopBins {
    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        let of = |at: usize| {
            (
                rows.hop_queue_max.at(at).copied(),
                rows.hop_delay_max_ns.at(at).copied(),
            )
        };
        self.0.extend((0..rows.len()).map(of));
        Ok(())
    }
}

fn hop_bins(name: &str) -> Vec<(Option<u64>, Option<u64>)> {
    let path = root().join(format!("tests/data/transports/{name}.pcap"));
    let reader = Reader::open(&path, &roce_capture::Options::default()).unwrap();
    let mut bins = HopBins::default();
    let options = Options {
        bin: Span(10_000),
        ..Options::default()
    };
    roce_pipeline::analyse(Merge::new(vec![reader]), 1, options, vec![&mut bins]).unwrap();
    bins.0
}

#[test]
fn the_depth_of_queues_stands_beside_the_packets_that_they_delay() {
    for (name, copies) in [
        ("roce_ifa_inband", 0),
        ("roce_ifa_inband_ipv6", 0),
        ("roce_ifa_clone", 3),
    ] {
        let (truth, found) = (expected(name), answer(name));
        let hops = found["hops_inband"].as_array().unwrap();
        // Three switches on the way of the one flow.
        assert_eq!(hops.len(), 3, "{name}");
        let rows = flows(&found);
        let data = rows
            .iter()
            .find(|row| row["data_packets"].as_u64() > Some(0))
            .unwrap();
        let stated = truth["telemetry"].as_array().unwrap();
        for (place, hop) in (1..).zip(hops) {
            assert_eq!((&hop["flow_id"], &hop["kind"]), (&data["flow_id"], &"IFA".into()));
            assert_eq!((&hop["hop"], &hop["queue"]), (&place.into(), &3.into()), "{name}");
            assert_eq!(
                (&hop["packets"], &hop["copies"]),
                (&stated.len().into(), &copies.into())
            );
            let of = |key: &str| {
                let values = stated
                    .iter()
                    .map(|row| row["hops"][place - 1][key].as_u64().unwrap());
                values.max().unwrap()
            };
            assert_eq!(hop["device"], of("device"), "{name}");
            assert_eq!(hop["queued_bytes_max"], of("queued_bytes"), "{name}");
            assert_eq!(hop["residence_max_ns"], of("residence_ns"), "{name}");
        }
        let worst = hops
            .iter()
            .find(|row| row["device"] == truth["worst"]["device"])
            .unwrap();
        assert_eq!(worst["queued_bytes_max"], truth["worst"]["queued_bytes"]);
        assert_eq!(worst["worst_psn"], stated.last().unwrap()["psn"]);
        // Packet i has 1,000 i bytes before it at the second switch and comes at 2 us x i: five of each bin of 10 us.
        let bins = hop_bins(name);
        for (at, bin) in (0..).zip(&bins) {
            let last = (5 * at + 4).min(23);
            // Copies are of every eighth packet.
            let told = if copies > 0 {
                (5 * at..=last).rev().find(|place| place % 8 == 0)
            } else {
                Some(last)
            };
            let queue = told.map(|place| 1000 * place);
            assert_eq!(
                *bin,
                (queue, queue.map(|queue| 600 + queue * 8 / 100)),
                "{name}: {at}"
            );
        }
        assert_eq!(bins.len(), 5);
    }
}

#[test]
fn signals_of_tags_are_kept_as_they_are() {
    let found = answer("roce_csig");
    let rows = found["hops_inband"].as_array().unwrap();
    let tags = expected("roce_csig")["tags"].as_array().unwrap().clone();
    // Four kinds of signals, in turn.
    assert_eq!(rows.len(), 4);
    for row in rows {
        let kind = row["signal"].as_u64().unwrap();
        let of_kind = (0_u64..).zip(&tags).filter(|(at, _)| at % 4 == kind);
        let values: Vec<u64> = of_kind.map(|(_, tag)| tag["value"].as_u64().unwrap()).collect();
        assert_eq!(
            (&row["value_min"], &row["value_max"]),
            (&values[0].into(), &values[3].into())
        );
        assert_eq!((&row["locator"], &row["packets"]), (&0x42.into(), &4.into()));
        // Tags say nothing of queues in bytes, nor of devices.
        for none in [
            "device",
            "hop",
            "queued_bytes_max",
            "residence_max_ns",
            "worst_psn",
            "congested",
        ] {
            assert_eq!(row[none], Value::Null, "{none}");
        }
    }
    assert!(hop_bins("roce_csig").iter().all(|bin| *bin == (None, None)));
}

#[test]
fn networks_may_have_numbers_of_their_own() {
    // Another EtherType of tags.
    let (_folder, path) = changed("roce_csig", |frame, _| {
        frame[12..14].copy_from_slice(&[0x9a, 0x01]);
    });
    let bare = document(&root(), [&path]);
    assert_eq!((total(&bare, "data_packets"), total(&bare, "not_roce")), (0, 16));
    let told = document(
        &root(),
        [path.as_os_str(), "--csig-type".as_ref(), "0x9a01".as_ref()],
    );
    assert_eq!(
        (
            total(&told, "data_packets"),
            told["hops_inband"].as_array().unwrap().len()
        ),
        (16, 4)
    );
    // Another port of MRC.
    let bytes = std::fs::read(root().join("tests/data/mrc/mrc_opcodes_4971.pcap")).unwrap();
    let port = 4971_u16.to_be_bytes();
    let mut other = bytes.clone();
    for at in 0..bytes.len() - 1 {
        if bytes[at..at + 2] == port {
            other[at..at + 2].copy_from_slice(&5999_u16.to_be_bytes());
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port.pcap");
    std::fs::write(&path, other).unwrap();
    let bare = document(&root(), [&path]);
    assert_eq!(total(&bare, "roce_packets"), 0);
    let found = document(
        &root(),
        [path.as_os_str(), "--mrc-port".as_ref(), "5999".as_ref()],
    );
    let of = document(&root(), ["tests/data/mrc/mrc_opcodes_4971.pcap"]);
    assert_eq!(total(&found, "roce_packets"), total(&of, "roce_packets"));
    let rows = found["mrc_connections"].as_array().unwrap();
    assert!(
        rows.iter().all(|row| row["udp_port"] == 5999)
            && rows.len() == of["mrc_connections"].as_array().unwrap().len()
    );
}
