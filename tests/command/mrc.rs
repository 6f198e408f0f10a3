//! Multipath Reliable Connection: all that the truth of the vectors in `tests/data/mrc` states, from the real command and from the library.

use std::collections::BTreeMap;

use roce_capture::{Merge, Reader};
use roce_flow::Options;
use roce_model::{Columns, EventColumns, Sink, SinkError};
use roce_wire::network::ipv6::Ipv6;
use roce_wire::network::udp::Udp;
use roce_wire::transport::mrc::{self, Headers};
use roce_wire::{Bth, Content, LinkType};
use serde_json::{Value, json};

use crate::captures::root;
use crate::command::{document, run};

/// The truth of a vector.
fn truth(name: &str) -> Value {
    let text = std::fs::read_to_string(root().join("tests/data/mrc/expected.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[name].clone()
}

fn path(name: &str) -> String {
    format!("tests/data/mrc/{name}.pcap.gz")
}

/// The document of vectors that are analysed together.
fn analysed(names: &[&str]) -> Value {
    document(&root(), names.iter().map(|name| path(name)))
}

/// Kind, PSN, value and words of each event of MRC.
#[derive(Default)]
struct MrcEvents(Vec<(String, u32, Option<u64>, String)>);

impl Sink for MrcEvents {
    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for at in 0..rows.len() {
            let kind = rows.kind.at(at).unwrap().clone().into_owned();
            if kind.starts_with("mrc_") {
                let words = rows.detail.at(at).map(ToString::to_string);
                self.0.push((
                    kind,
                    rows.psn.at(at).copied().unwrap_or_default(),
                    rows.value.at(at).copied(),
                    words.unwrap_or_default(),
                ));
            }
        }
        Ok(())
    }
}

fn events(names: &[&str]) -> MrcEvents {
    let open =
        |name: &&str| Reader::open(&root().join(path(name)), &roce_capture::Options::default()).unwrap();
    let mut events = MrcEvents::default();
    let readers = names.iter().map(open).collect();
    roce_pipeline::analyse(Merge::new(readers), 1, Options::default(), vec![&mut events]).unwrap();
    events
}

impl MrcEvents {
    /// PSNs of a kind with their words, in order.
    fn of(&self, kind: &str) -> BTreeMap<u32, (Option<u64>, &str)> {
        let of_kind = self.0.iter().filter(|(known, ..)| known == kind);
        of_kind
            .map(|(_, psn, value, words)| (*psn, (*value, words.as_str())))
            .collect()
    }
}

/// Findings by id.
fn findings(document: &Value) -> Vec<&str> {
    let rows = document["findings"].as_array().unwrap();
    rows.iter().filter_map(|row| row["id"].as_str()).collect()
}

/// Words of the truth for a cause.
fn cause(of: &Value) -> &'static str {
    match of.as_str().unwrap() {
        "SACK hole" => "hole",
        "ACK timeout" => "timeout",
        other => panic!("{other}"),
    }
}

/// Compares what the sender's taps show of a connection with the truth.
#[track_caller]
fn compare_connection(row: &Value, truth: &Value) {
    let of = &truth["connection"];
    // IPv4 has no label: there is no order to learn.
    let order = if of["ip"] == 6 {
        of["ev_order"].clone()
    } else {
        json!("port")
    };
    let causes = &truth["retransmissions_by_cause"];
    let trimmed = |reason: u64| {
        let trims = truth["trimmed"].as_array().unwrap().iter();
        json!(trims.filter(|trim| trim["reason"] == reason).count())
    };
    let probes = truth["probes"].as_array().unwrap();
    let unanswered = probes.iter().filter(|probe| probe["answered"] == false).count();
    for (column, expected) in [
        ("entropy_order", order),
        ("ids_order", of["pdc_ids"].clone()),
        ("requestor_qpn", of["requestor"]["qpn"].clone()),
        ("responder_qpn", of["responder"]["qpn"].clone()),
        ("udp_port", of["udp_port"].clone()),
        ("has_stamps", of["timestamps"].clone()),
        ("first_psn", truth["first_psn"].clone()),
        ("last_psn", truth["last_psn"].clone()),
        ("data_packets", truth["data_packets"].clone()),
        ("messages", truth["messages"].clone()),
        ("messages_complete", truth["messages_completed"].clone()),
        ("lost", json!(truth["lost"].as_array().unwrap().len())),
        ("trimmed", trimmed(1)),
        ("trimmed_lasthop", trimmed(2)),
        (
            "retransmitted_packets",
            json!(truth["retransmitted"].as_array().unwrap().len()),
        ),
        ("rtx_hole", causes["SACK hole"].clone()),
        ("rtx_timeout", causes["ACK timeout"].clone()),
        ("rtx_trimmed", causes["NACK TRIMMED"].clone()),
        ("rtx_trimmed_lasthop", causes["NACK TRIMMED_LASTHOP"].clone()),
        ("rtx_refused", json!(0)),
        ("rtx_unknown", json!(0)),
        ("spurious", truth["spurious_retransmissions"].clone()),
        ("reordered", truth["holes_that_filled_by_themselves"].clone()),
        ("sacks", truth["sacks"].clone()),
        ("penalty_sacks", truth["responder_penalty"]["sacks"].clone()),
        ("penalty_max", truth["responder_penalty"]["max"].clone()),
        ("out_of_order_max", truth["ooo_count_max"].clone()),
        ("probes", json!(probes.len())),
        ("probes_unanswered", json!(unanswered)),
        ("open", json!(0)),
    ] {
        assert_eq!(row[column], expected, "{column}");
    }
}

/// Compares the paths of a sender's taps with the truth. `is_named`: planes are those of the truth.
#[track_caller]
fn compare_paths(document: &Value, truth: &Value, is_named: bool) {
    let rows = document["mrc_paths"].as_array().unwrap();
    let paths = truth["paths"].as_object().unwrap();
    assert_eq!(rows.len(), paths.len());
    for (number, expected) in paths {
        let text = expected["ev"].as_str().unwrap().trim_start_matches("0x");
        let ev = u32::from_str_radix(text, 16).unwrap();
        let row = rows.iter().find(|row| row["ev"] == ev).unwrap();
        let count = |key: &str| json!(expected[key].as_array().unwrap().len());
        let trimmed = row["trimmed"].as_u64().unwrap() + row["trimmed_lasthop"].as_u64().unwrap();
        assert_eq!(json!(trimmed), count("trimmed_psns"), "path {number}");
        for (column, value) in [
            ("udp_source_port", expected["udp_source_port"].clone()),
            ("flow_label", expected["flow_label"].clone()),
            ("sent", expected["sent"].clone()),
            ("rtx", expected["retransmissions_sent"].clone()),
            ("arrived", expected["arrived"].clone()),
            ("lost", count("lost_psns")),
            ("sacks", expected["sacks"].clone()),
            ("marked", expected["sacks_skip_once"].clone()),
            ("rtt_min_ns", expected["rtt_min_ns"].clone()),
            ("rtt_max_ns", expected["rtt_max_ns"].clone()),
        ] {
            assert_eq!(row[column], value, "{column} of path {number}");
        }
        if is_named {
            assert_eq!(row["plane"], expected["plane"], "path {number}");
        }
        let is_retired = truth["retired_path"].as_u64() == number.parse().ok();
        assert_eq!(
            row["state"],
            if is_retired { "dead" } else { "in_use" },
            "path {number}"
        );
    }
}

/// Compares PSNs: what was lost and on which path, what was trimmed and why, what was sent again and why.
#[track_caller]
fn compare_psns(events: &MrcEvents, document: &Value, truth: &Value) {
    let path_of = |number: &Value| {
        let text = truth["paths"][number.to_string()]["ev"].as_str().unwrap();
        let ev = u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let rows = document["mrc_paths"].as_array().unwrap();
        rows.iter().find(|row| row["ev"] == ev).unwrap()["path"].as_u64()
    };
    let psn = |row: &Value| u32::try_from(row["psn"].as_u64().unwrap()).unwrap();
    let lost = truth["lost"].as_array().unwrap();
    let trims = truth["trimmed"].as_array().unwrap();
    let expected: BTreeMap<u32, (Option<u64>, &str)> = lost
        .iter()
        .map(|row| (psn(row), (path_of(&row["path"]), "")))
        .collect();
    assert_eq!(events.of("mrc_loss"), expected);
    let expected: BTreeMap<u32, (Option<u64>, &str)> = trims
        .iter()
        .map(|row| (psn(row), (row["reason"].as_u64(), "")))
        .collect();
    assert_eq!(events.of("mrc_trim"), expected);
    let mut causes: BTreeMap<u32, &str> = lost
        .iter()
        .map(|row| (psn(row), cause(&row["found_by"])))
        .collect();
    causes.extend(trims.iter().map(|row| {
        let at_last_hop = row["reason"] == 2;
        (psn(row), if at_last_hop { "trimmed_lasthop" } else { "trimmed" })
    }));
    let found = events.of("mrc_retransmit");
    let found: BTreeMap<u32, &str> = found.into_iter().map(|(psn, (_, words))| (psn, words)).collect();
    assert_eq!(found, causes);
    let again: Vec<u32> = serde_json::from_value(truth["retransmitted"].clone()).unwrap();
    let mut again: Vec<u32> = again;
    again.sort_unstable();
    assert_eq!(found.into_keys().collect::<Vec<u32>>(), again);
}

/// A connection at the sender, whatever the port, the addresses, the order of entropy and ids, and where PSNs begin.
#[test]
fn the_senders_tap_shows_all_that_happened() {
    for name in [
        "mrc_conn_4791",
        "mrc_conn_4971",
        "mrc_conn_ipv4_wrap",
        "mrc_conn_srv6",
    ] {
        let (document, truth) = (analysed(&[name]), truth(name));
        let rows = document["mrc_connections"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "{name}");
        compare_connection(&rows[0], &truth);
        compare_paths(&document, &truth, name.ends_with("srv6"));
        compare_psns(&events(&[name]), &document, &truth);
        assert_eq!(
            (&rows[0]["confidence"], &rows[0]["at_receiver"]),
            (&json!("high"), &json!(false))
        );
        // 205 WRITEs of 256 bytes.
        assert_eq!(
            document["totals"]["payload_bytes"], 52_480,
            "headers are no payload"
        );
        assert_eq!(document["totals"]["roce_packets"], truth["frames"]);
        // The port that host B reports as down is bit 2; a first report is no news.
        let ports = &events(&[name]).0;
        // Path 5 loses two packets, its probe is not answered, and nothing more is sent on it.
        let left: Vec<&str> = ports
            .iter()
            .filter(|row| row.0 == "mrc_path")
            .map(|row| row.3.as_str())
            .collect();
        assert_eq!(left, ["dead"], "{name}");
        let port = ports.iter().find(|(kind, ..)| kind == "mrc_port").unwrap();
        assert_eq!(port.2, Some(0b1011));
        assert_eq!(
            findings(&document),
            [
                "mrc.loss.silent",
                "mrc.retransmit.timeout",
                "mrc.path.dead",
                "mrc.trim.fabric",
                "mrc.responder.limit",
                "mrc.path.marked"
            ],
            "{name}"
        );
    }
}

/// Two taps, each of two planes: together they show all. Alone neither calls a packet lost that it could not see.
#[test]
fn a_connection_is_judged_over_all_taps() {
    let both = ["mrc_conn_planes01", "mrc_conn_planes23"];
    let (document, truth) = (analysed(&both), truth("mrc_conn_planes01"));
    let whole = self::truth("mrc_conn_4791");
    compare_connection(&document["mrc_connections"][0], &truth);
    assert_eq!(document["mrc_connections"][0]["taps"], 2);
    compare_paths(&document, &whole, false);
    compare_psns(&events(&both), &document, &whole);
    let lost: Vec<u64> = truth["lost"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["psn"].as_u64())
        .collect();
    for name in both {
        for psn in events(&[name]).of("mrc_loss").into_keys() {
            assert!(lost.contains(&u64::from(psn)), "{name}: {psn} was not lost");
        }
        let document = analysed(&[name]);
        assert_eq!(document["mrc_connections"][0]["confidence"], "low");
        let rows = document["findings"].as_array().unwrap();
        let of_losses = rows.iter().filter(|row| row["id"] == "mrc.loss.silent");
        assert!(
            of_losses.clone().all(|row| row["severity"] == "info"),
            "{of_losses:?}"
        );
    }
}

/// The receiver's tap: what was lost never came there, so that its path is not known. All else is.
#[test]
fn the_receivers_tap_shows_all_but_the_path_of_what_was_lost() {
    for name in ["mrc_conn_srv6_receiver", "mrc_conn_receiver_lenfixed"] {
        let (document, mut truth) = (analysed(&[name]), truth(name));
        // The probe of the dead path did not arrive.
        truth["probes"] = json!([truth["probes"][1]]);
        let row = &document["mrc_connections"][0];
        compare_connection(row, &truth);
        assert_eq!(
            (&row["at_receiver"], &row["confidence"]),
            (&json!(true), &json!("medium"))
        );
        for (number, expected) in truth["paths"].as_object().unwrap() {
            let ev =
                u32::from_str_radix(expected["ev"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
            let rows = document["mrc_paths"].as_array().unwrap();
            let row = rows.iter().find(|row| row["ev"] == ev).unwrap();
            let lost = expected["lost_psns"].as_array().unwrap().len() as u64;
            assert_eq!(
                row["sent"],
                expected["sent"].as_u64().unwrap() - lost,
                "path {number}"
            );
            assert_eq!(row["arrived"], expected["arrived"], "path {number}");
            assert_eq!(row["sacks"], expected["sacks"], "path {number}");
            assert_eq!(row["marked"], expected["sacks_skip_once"], "path {number}");
            assert_eq!((&row["lost"], &row["rtt_min_ns"]), (&json!(0), &Value::Null));
        }
        let found = events(&[name]);
        let lost: Vec<u32> = found.of("mrc_loss").into_keys().collect();
        assert_eq!(lost, [4133, 4157, 4295]);
        let trims: Vec<(u32, Option<u64>)> = found
            .of("mrc_trim")
            .into_iter()
            .map(|(psn, (why, _))| (psn, why))
            .collect();
        assert_eq!(trims, [(4179, Some(1)), (4238, Some(2))]);
        let ids = findings(&document);
        assert!(
            !ids.contains(&"mrc.path.dead") && !ids.contains(&"mrc.switch.suspect"),
            "{ids:?}"
        );
        assert!(!ids.contains(&"icrc.bad"), "trimmed frames cannot be checked");
    }
}

#[test]
fn a_healthy_connection_has_no_finding() {
    let (document, truth) = (analysed(&["mrc_conn_healthy"]), truth("mrc_conn_healthy"));
    compare_connection(&document["mrc_connections"][0], &truth);
    compare_paths(&document, &truth, false);
    compare_psns(&events(&["mrc_conn_healthy"]), &document, &truth);
    assert_eq!(findings(&document), Vec::<&str>::new());
}

#[test]
fn sacks_of_one_cumulative_psn_are_no_copies() {
    let document = analysed(&["mrc_equal_cack"]);
    assert_eq!(
        (
            &document["totals"]["copies"],
            &document["mrc_connections"][0]["sacks"]
        ),
        (&json!(0), &json!(20))
    );
}

/// A listed retransmission says that the packet before was lost, where that is so, and has the bytes of its payload.
#[test]
fn comments_say_what_was_lost() {
    let name = "mrc_conn_4791";
    let truth = truth(name);
    let listed = run(&root(), ["annotate", &path(name), "--format", "jsonl"]).good();
    let frames = listed
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let again: Vec<Value> = frames
        .filter(|frame| {
            frame["comment"]
                .as_str()
                .unwrap()
                .contains("retransmission of frame")
        })
        .collect();
    assert_eq!(again.len(), truth["retransmitted"].as_array().unwrap().len());
    let lost: Vec<u64> = again
        .iter()
        .filter(|frame| frame["comment"].as_str().unwrap().ends_with(", and it was lost"))
        .filter_map(|frame| frame["psn"].as_u64())
        .collect();
    let expected = truth["lost"].as_array().unwrap().iter();
    let mut expected: Vec<u64> = expected.filter_map(|row| row["psn"].as_u64()).collect();
    expected.sort_unstable();
    assert_eq!(lost, expected);
    assert!(
        again.iter().all(|frame| frame["payload_bytes"] == 256),
        "{again:?}"
    );
}

/// The frames of a small pcap with nanoseconds.
fn frames(name: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(root().join(format!("tests/data/mrc/{name}.pcap"))).unwrap();
    let mut rest = &bytes[24..];
    let mut frames = Vec::new();
    while let Some(length) = rest.get(8..12) {
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        frames.push(rest[16..16 + length].to_vec());
        rest = &rest[16 + length..];
    }
    frames
}

/// The fields of a packet under the names of the truth.
fn fields(frame: &[u8]) -> Value {
    let decoded = roce_wire::decode(LinkType::ETHERNET, frame, u32::try_from(frame.len()).unwrap());
    let Content::Roce(roce) = decoded.content else {
        panic!("{decoded:?}")
    };
    let bytes = &frame[usize::from(roce.bth_offset)..];
    let bth: Bth = roce.bth;
    let header = |length: usize| &frame[usize::from(roce.bth_offset) - length..];
    let udp = Udp(header(Udp::BYTES).first_chunk().unwrap());
    let ip = Ipv6(header(Udp::BYTES + Ipv6::BYTES).first_chunk().unwrap());
    let mut fields = json!({
        "opcode": bth.0[0], "dqp": bth.destination_qpn().value(), "psn": bth.psn().value(), "flow_label": ip.flow_label() & 0xffff,
        "udp": {"src": roce.udp_source_port, "dst": udp.destination_port()},
    });
    let more = match mrc::parse(bytes).unwrap() {
        Headers::Write {
            meth,
            time,
            reth,
            immediate,
        } => json!({
            "ack_req": u8::from(bth.ack_request()), "rtx": u8::from(mrc::is_again(&bth)), "ts": u8::from(mrc::has_time(&bth)),
            "pad": bth.pad_count(), "rqmsn": meth.immediate_number(), "msn": meth.message_number(),
            "tx_timestamp": time.map(|time| time.time()), "va": reth.virtual_address(), "rkey": reth.remote_key(),
            "dma_length": reth.dma_length(), "imm": immediate.map(|immediate| immediate.data()),
            "payload": bytes.len() - 12 - mrc::header_bytes(&bth).unwrap() - usize::from(bth.pad_count()) - 4,
        }),
        Headers::Acknowledge(aeth) => json!({"syndrome": aeth.syndrome(), "amsn": aeth.msn()}),
        Headers::Request(erth) => json!({
            "op": erth.operation(), "vendor": erth.vendor(), "mask": erth.ports(), "stamp": erth.time(),
        }),
        Headers::Response(eeth) => json!({"op": eeth.operation(), "stamp": eeth.reflected_time()}),
        Headers::Sack(seth, state) => {
            let state = state.unwrap();
            let named = if seth.answers_probe() {
                i64::from(seth.probe())
            } else {
                i64::from(seth.named_offset())
            };
            json!({
                "m": seth.advice(), "pr": u8::from(seth.answers_probe()), "ack_off": named, "entropy": seth.entropy(),
                "spdcid": seth.ids()[0], "dpdcid": seth.ids()[1], "cack": seth.cumulative().value(),
                "cc_type": seth.congestion_type(), "cc_fl": seth.congestion_flags(), "mpr": seth.window(), "sack_off": seth.bitmap_offset(),
                "bitmap": seth.bitmap(), "stamp": state.reflected_time(), "ooo": state.out_of_order(),
                "restore": u8::from(state.restores_window()), "pen": state.penalty(), "rcvd": state.received(),
            })
        }
        Headers::Nack(neth) => json!({
            "reason": neth.reason(), "vendor": neth.vendor(), "entropy": neth.entropy(), "spdcid": neth.ids()[0],
            "dpdcid": neth.ids()[1], "cc_type": neth.congestion_type(), "cc_fl": neth.congestion_flags(),
            "stamp": neth.reflected_time(),
        }),
        Headers::Probe(peth) => json!({
            "vendor": peth.vendor(), "probe": peth.number(), "spdcid": peth.ids()[0], "dpdcid": peth.ids()[1],
            "stamp": peth.time(), "tsr": u8::from(peth.has_own_resolution()),
        }),
    };
    let more = more.as_object().unwrap().clone();
    fields.as_object_mut().unwrap().extend(more);
    fields
}

/// Every opcode, on both ports: each field is that which two public decoders read.
#[test]
fn every_field_of_every_opcode_is_read() {
    for name in ["mrc_opcodes_4791", "mrc_opcodes_4971"] {
        let truth = truth(name);
        let expected = truth["fields"].as_array().unwrap();
        let frames = frames(name);
        assert_eq!(frames.len(), expected.len());
        let mut codes: BTreeMap<String, u64> = BTreeMap::new();
        for (frame, expected) in frames.iter().zip(expected) {
            let found = fields(frame);
            *codes
                .entry(format!("0x{:02x}", found["opcode"].as_u64().unwrap()))
                .or_default() += 1;
            for (field, value) in expected.as_object().unwrap() {
                assert_eq!(&found[field], value, "{field} of {expected}");
            }
        }
        assert_eq!(json!(codes), truth["counts_by_opcode"]);
    }
}
