//! The document parsed back and compared with the rows it was made from.

use roce_model::{
    Cell, CollectiveColumns, Columns, CreditColumns, EndColumns, EpisodeColumns, Fact, FindingColumns,
    FindingRow, FlowColumns, HopColumns, Sink, StepColumns, VantageColumns, WaitColumns,
};
use serde_json::Value;

use super::{JsonFlows, JsonReport, document, read};
use crate::fixture::{FixtureRun, START, incast, nothing, training, trouble};

fn text(made: &FixtureRun) -> String {
    let mut report = JsonReport::new(Vec::new(), JsonFlows::DEFAULT);
    made.feed(&mut report);
    String::from_utf8(report.into_inner()).unwrap()
}

/// Holds that a list of the document has exactly these rows.
fn compare_all<C: Columns>(rows: &[C::Row], list: &Value) {
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), rows.len(), "{}", C::TABLE.name);
    for (row, value) in rows.iter().zip(list) {
        compare::<C>(row, value);
    }
}

fn compare<C: Columns>(row: &C::Row, value: &Value) {
    let object = value.as_object().unwrap();
    assert_eq!(object.len(), C::TABLE.columns.len());
    C::cells(row, |column, cell| {
        let found = &object[column.name];
        match cell {
            Cell::Null => assert!(found.is_null(), "{}: {found}", column.name),
            Cell::U32(expected) => assert_eq!(found.as_u64(), Some(u64::from(expected)), "{}", column.name),
            Cell::U64(expected) => assert_eq!(found.as_u64(), Some(expected), "{}", column.name),
            Cell::F64(expected) => assert_eq!(found.as_f64(), Some(expected), "{}", column.name),
            Cell::Bool(expected) => assert_eq!(found.as_bool(), Some(expected), "{}", column.name),
            Cell::Text(expected) => assert_eq!(found.as_str(), Some(expected), "{}", column.name),
            Cell::Time(expected) => {
                assert_eq!(found.as_str(), Some(&*expected.0.to_string()), "{}", column.name);
            }
            Cell::Id(expected) => assert_eq!(found.as_str(), Some(&*expected.to_string()), "{}", column.name),
            Cell::Address(expected) => {
                assert_eq!(found.as_str(), Some(&*expected.to_string()), "{}", column.name);
            }
            Cell::Names(expected) => {
                let found = found.as_array().unwrap().iter();
                let found: Vec<&str> = found.map(|name| name.as_str().unwrap()).collect();
                assert_eq!(found, expected.0, "{}", column.name);
            }
            Cell::Evidence(expected) => {
                let found = found.as_object().unwrap();
                assert_eq!(found.len(), expected.0.len());
                for (name, fact) in &expected.0 {
                    match fact {
                        Fact::Count(count) => assert_eq!(found[*name].as_u64(), Some(*count)),
                        Fact::Number(number) if number.is_finite() => {
                            assert_eq!(found[*name].as_f64(), Some(*number));
                        }
                        Fact::Number(_) => assert!(found[*name].is_null()),
                        Fact::Text(text) => assert_eq!(found[*name].as_str(), Some(&**text)),
                    }
                }
            }
        }
    });
}

#[test]
fn what_a_run_concludes_is_listed() {
    for made in [incast(), trouble(), training(), nothing()] {
        let parsed: Value = serde_json::from_str(&text(&made)).unwrap();
        let run = &made.run;
        compare_all::<EpisodeColumns>(&run.episodes, &parsed["episodes"]);
        compare_all::<StepColumns>(&run.steps, &parsed["steps"]);
        compare_all::<FindingColumns>(&run.findings, &parsed["findings"]);
        compare_all::<VantageColumns>(&run.vantages, &parsed["vantages"]);
        compare_all::<HopColumns>(&run.hops, &parsed["hops"]);
        compare_all::<EndColumns>(&run.ends, &parsed["ends"]);
        compare_all::<WaitColumns>(&run.waits, &parsed["waits"]);
        compare_all::<CollectiveColumns>(&run.collectives, &parsed["collectives"]);
        compare_all::<CreditColumns>(&run.credits, &parsed["credits"]);
    }
    // The incast: two episodes and three findings; of the ring: 8 steps of 4 pairs.
    let parsed: Value = serde_json::from_str(&text(&incast())).unwrap();
    assert_eq!(parsed["findings"][0]["evidence"]["network_lost"], 2);
    assert_eq!(parsed["episodes"][1]["kind"], "loss");
    let parsed: Value = serde_json::from_str(&text(&training())).unwrap();
    assert_eq!(parsed["steps"].as_array().unwrap().len(), 32);
}

#[test]
fn flows_are_their_rows_in_order_of_id() {
    for made in [incast(), trouble(), nothing()] {
        let parsed: Value = serde_json::from_str(&text(&made)).unwrap();
        let mut rows = made.flows.clone();
        rows.sort_by_key(|row| (row.flow_id, row.tap, row.epoch));
        compare_all::<FlowColumns>(&rows, &parsed["flows"]);
    }
}

#[test]
fn the_head_of_the_document() {
    let made = incast();
    let parsed: Value = serde_json::from_str(&text(&made)).unwrap();
    let keys: Vec<&String> = parsed.as_object().unwrap().keys().collect();
    // serde_json without preserve_order sorts; the order in the text is held by the snapshot.
    assert_eq!(keys.len(), 16);
    assert_eq!(parsed["schema_version"], 2);
    assert_eq!(parsed["run"]["version"], "0.1.0");
    assert_eq!(parsed["run"]["first_time"], START.to_string());
    assert_eq!(parsed["run"]["elapsed_ns"], 12_000_000);
    assert_eq!(parsed["run"]["bin_ns"], 1_000_000);
    assert_eq!(parsed["run"]["options"]["bin"], "1ms");
    assert_eq!(parsed["run"]["inputs"][0]["sha256"], Value::Null);
    assert_eq!(parsed["run"]["inputs"][0]["bytes"], 181_000_000);
}

#[test]
fn totals_hold_every_count() {
    let made = trouble();
    let parsed: Value = serde_json::from_str(&text(&made)).unwrap();
    for (name, count, _) in made.run.totals.counts() {
        assert_eq!(parsed["totals"][name], count, "{name}");
    }
    // Beside the counts: new data, stops and opcodes.
    let counts = made.run.totals.counts().count();
    assert_eq!(parsed["totals"].as_object().unwrap().len(), counts + 3);
    let totals = &made.run.totals;
    let fresh = totals.payload_bytes - totals.retransmitted_bytes;
    assert_eq!(parsed["totals"]["new_payload_bytes"], fresh);
    assert_eq!(parsed["totals"]["capture_lost"], 4);
    assert_eq!(parsed["totals"]["stops"][0]["layer"], "IPv4");
    assert_eq!(parsed["totals"]["stops"][0]["cut_by"], "Ethernet");
    assert_eq!(parsed["totals"]["stops"][1]["cut"], "snaplen");
    assert_eq!(parsed["totals"]["stops"][1]["frames"], 9);
}

#[test]
fn taps_hold_who_received_cnps() {
    let made = incast();
    let parsed: Value = serde_json::from_str(&text(&made)).unwrap();
    let tap = &parsed["taps"][0];
    assert_eq!(tap["interface"], "eth0");
    let receivers = tap["cnp_receivers"].as_array().unwrap();
    assert_eq!(receivers.len(), 5);
    assert_eq!(receivers[0]["destination"], "10.0.0.1");
    assert_eq!(receivers[0]["qpn"], 0x201);
    assert_eq!(receivers[0]["cnp"], 250);
    assert_eq!(receivers[0]["first_time"], (START + 40_000_000).to_string());
    assert_eq!(parsed["totals"]["opcodes"]["0x0a"]["packets"], 10);
}

#[test]
fn the_layout() {
    let mut made = incast();
    made.flows.truncate(2);
    let text = text(&made);
    assert_eq!(
        text.lines()
            .filter(|line| line.trim_start().starts_with("{\"flow_id\""))
            .count(),
        2
    );
    insta::assert_snapshot!(text);
}

/// The document of a run whose flows close one after the other.
fn text_with(made: &FixtureRun, flows: JsonFlows) -> String {
    let mut report = JsonReport::new(Vec::new(), flows);
    for row in &made.flows {
        report.flows_closed(std::slice::from_ref(row)).unwrap();
    }
    report.finish(&made.run).unwrap();
    String::from_utf8(report.into_inner()).unwrap()
}

#[test]
fn flows_that_are_left_out_are_counted() {
    let made = incast();
    let all = made.flows.len();
    for most in [0, 1, all - 1, all, all + 1] {
        let parsed: Value = serde_json::from_str(&text_with(&made, JsonFlows::Most(most))).unwrap();
        let there = parsed["flows"].as_array().unwrap().len();
        assert_eq!(there, most.min(all));
        assert_eq!(parsed["flows_left_out"], all - there);
    }
}

#[test]
fn streamed_flows_are_those_of_a_document_that_keeps_all() {
    for mut made in [incast(), trouble(), training(), nothing()] {
        made.flows.sort_by_key(|row| (row.flow_id, row.tap, row.epoch));
        let kept = text_with(&made, JsonFlows::Most(usize::MAX));
        let streamed = text_with(&made, JsonFlows::All);
        let parsed: Value = serde_json::from_str(&streamed).unwrap();
        assert_eq!(parsed, serde_json::from_str::<Value>(&kept).unwrap());
        // Each line of one is a line of the other, but for the commas of last ones.
        let lines = |text: &str| {
            let mut lines: Vec<String> = text
                .lines()
                .map(|line| line.trim_end_matches(',').to_owned())
                .collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(lines(&streamed), lines(&kept));
        assert!(
            format!("{:?}", read(streamed.as_bytes()).unwrap())
                == format!("{:?}", read(kept.as_bytes()).unwrap())
        );
    }
}

#[test]
fn a_document_alone_is_the_same() {
    let made = nothing();
    let mut out = Vec::new();
    document(&made.run, &[], &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), text(&made));
}

#[test]
fn errors_of_writers_are_returned() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let made = incast();
    let error = JsonReport::new(Full, JsonFlows::DEFAULT)
        .finish(&made.run)
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot write the JSON document");
    let source = error.source().unwrap().downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn what_was_written_is_read_back() {
    for made in [incast(), trouble(), training(), nothing()] {
        let mut run = made.run.clone();
        // Hostile and rare values: control characters, numbers that are not finite, the last digit of a number.
        run.options.push(("lag".to_owned(), "\u{1b}[2J".to_owned()));
        if let Some(tap) = run.taps.first_mut() {
            tap.clock_offset_ns = Some(-0.1 - 0.2);
            tap.clock_drift_ppb = Some(-12.0);
        }
        let text = text(&FixtureRun {
            run: run.clone(),
            ..made
        });
        // As text: what is not finite is like nothing, not even itself.
        let again = read(text.as_bytes()).unwrap();
        assert!(format!("{again:?}") == format!("{run:?}"), "{text}");
    }
    let mut run = nothing().run;
    run.span = None;
    let mut finding = FindingRow {
        id: "mtu",
        ..FindingRow::default()
    };
    finding.evidence.number("none", f64::INFINITY);
    run.findings.push(finding);
    let mut written = Vec::new();
    document(&run, &[], &mut written).unwrap();
    let mut again = Vec::new();
    document(&read(written.as_slice()).unwrap(), &[], &mut again).unwrap();
    assert_eq!(written, again);
}

#[test]
fn documents_of_other_versions_are_refused() {
    let refused = |text: &str| {
        let error = read(text.as_bytes()).unwrap_err();
        (
            error.to_string(),
            std::error::Error::source(&error).map(ToString::to_string),
        )
    };
    assert_eq!(refused("").0, "not the JSON document of a run");
    assert!(refused("{\"schema_version\": 2").1.unwrap().contains("EOF"));
    assert!(refused("{}").0.starts_with("schema_version is missing"));
    assert!(
        refused("{\"schema_version\": 0}")
            .0
            .starts_with("results of schema version 0 cannot be read, only of 2")
    );
    assert!(refused("{\"schema_version\": 2}").0.starts_with("run is missing"));
    let whole = text(&incast());
    for (from, to, key) in [
        ("\"bin_ns\": 1000000", "\"bin_ns\": \"wide\"", "run.bin_ns"),
        ("\"kind\": \"loss\"", "\"kind\": \"gravity\"", "episodes.kind"),
        ("\"0x0a\"", "\"0xbeef\"", "totals.opcodes"),
        ("\"qpn\": 513", "\"qpn\": -1", "taps.cnp_receivers.qpn"),
        ("\"truncated\": false", "\"truncated\": 0", "run.inputs.truncated"),
    ] {
        assert!(whole.contains(from), "{from}");
        let said = refused(&whole.replace(from, to)).0;
        assert!(
            said.starts_with(&format!("{key} is missing, or differs")),
            "{said}"
        );
    }
    let mut twice: Value = serde_json::from_str(&whole).unwrap();
    let taps = twice["taps"].as_array_mut().unwrap();
    taps.push(taps[0].clone());
    let said = refused(&twice.to_string()).0;
    assert!(said.starts_with("taps.tap is missing, or differs"), "{said}");
}
