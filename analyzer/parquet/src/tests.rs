//! Datasets written and read back, and the rules of which files appear and disappear.

mod damage;

use std::fs;
use std::path::{Path, PathBuf};

use roce_model::{
    Address, Cell, CollectiveColumns, CollectiveRow, Columns, Confidence, CreditColumns, CreditRow,
    EndColumns, EndKind, EndRow, EpisodeColumns, EpisodeKind, EpisodeRow, EventColumns, EventKind, EventRow,
    EventSource, Evidence, FindingColumns, FindingRow, FlowColumns, FlowId, FlowRow, HopColumns, HopRow,
    HostVantage, InputSummary, NameList, RootKind, RunColumns, RunKey, RunSummary, Severity, Sink, Span,
    StepColumns, StepRow, TapColumns, TapId, TapRow, Time, TimelineColumns, TimelineRow, Totals,
    VantageColumns, VantageRow, WaitColumns, WaitRow,
};

use crate::{ColumnValues, Dataset, Error, Options, Rows, TABLES, TableData, read_table};

const START: u64 = 1_763_700_000_000_000_000;

/// Rows of which some values are absent at first, in between, at the end, and always.
fn timeline(rows: u64) -> Vec<TimelineRow> {
    let row = |number: u64| TimelineRow {
        time: Time(START + number / 10 * 1_000_000),
        flow_id: FlowId(FlowId::MAX.0 - number % 10),
        tap: TapId(1),
        packets: u32::try_from(number % 300).unwrap(),
        wire_bytes: number * 1_082,
        cnp: (number >= 5 && !number.is_multiple_of(3)).then_some(7),
        ack_rtt_p50_ns: (number < 20).then_some(number * 1_000),
        inflight_bytes_max: (number == 17).then_some(i64::MAX.unsigned_abs()),
        ..TimelineRow::default()
    };
    (0..rows).map(row).collect()
}

fn events() -> Vec<EventRow> {
    vec![
        EventRow {
            time: Time(START),
            kind: EventKind::Gap,
            psn: Some(5),
            value: Some(2),
            ..EventRow::default()
        },
        EventRow {
            time: Time(START + 1),
            kind: EventKind::Connection,
            flow_id: Some(FlowId(1)),
            source: EventSource::Ebpf,
            detail: Some("REQ, QPN 0x11 \u{fc}ber \u{1f980} and more than a dozen bytes".into()),
            ..EventRow::default()
        },
        EventRow {
            time: Time(u64::MAX),
            detail: Some("".into()),
            ..EventRow::default()
        },
    ]
}

fn flows() -> Vec<FlowRow> {
    let flow = |number: u8| FlowRow {
        flow_id: FlowId(u64::from(number) << 56),
        source: Address::v4([10, 0, 0, number]),
        destination: if number.is_multiple_of(2) {
            Address::v6([0xfe; 16])
        } else {
            Address::lid(u16::from(number))
        },
        service: "RC",
        carrier: "RoCEv2/IPv4",
        encapsulation: "802.1Q".into(),
        vlan: (number > 3).then_some(100),
        message_bytes_stddev: number.is_multiple_of(2).then_some(f64::from(number) / 3.0),
        multipath: number == 2,
        payload_bytes: i64::MAX.unsigned_abs(),
        ..FlowRow::default()
    };
    (0..9).map(flow).collect()
}

fn ends() -> Vec<EndRow> {
    let refused = EndRow {
        flow_id: FlowId(7),
        outcome: EndKind::Refused,
        refusal: Some("invalid request"),
        request_psn: Some(3),
        ..EndRow::default()
    };
    vec![refused, EndRow::default()]
}

fn run() -> RunSummary {
    RunSummary {
        version: "0.1.0".to_owned(),
        started: Time(START),
        elapsed: Span(1_000),
        options: vec![
            ("bin".to_owned(), "1ms".to_owned()),
            ("top".to_owned(), "10".to_owned()),
        ],
        inputs: vec![
            InputSummary {
                input: "a.pcap".to_owned(),
                bytes: Some(24),
                first_time: Some(Time(START)),
                ..InputSummary::default()
            },
            InputSummary {
                input: "-".to_owned(),
                error: Some("cut".to_owned()),
                truncated: true,
                ..InputSummary::default()
            },
        ],
        totals: Totals {
            frames: 12,
            roce_packets: 11,
            ..Totals::default()
        },
        taps: vec![TapRow {
            link: "Ethernet".into(),
            interface: Some("eth0".into()),
            clock_offset_ns: Some(-12.5),
            ..TapRow::default()
        }],
        ..concluded()
    }
}

/// Connections with credits.
fn credits() -> Vec<CreditRow> {
    vec![
        CreditRow {
            sender_rank: Some(3),
            layout: Some("2.24 to 2.28".into()),
            data_flow_id: Some(FlowId::MAX),
            messages: u64::MAX,
            cts_delay_p99_ns: Some(1_000),
            last_time: Some(Time(START)),
            ..CreditRow::default()
        },
        CreditRow::default(),
    ]
}

/// Conclusions of a run: present, absent, empty and hostile values.
fn concluded() -> RunSummary {
    let mut evidence = Evidence::default();
    evidence
        .count("ce", 12)
        .number("share", 0.25)
        .number("none", f64::NAN)
        .text("host", "10.0.0.7 \"b\" \u{1f980}");
    RunSummary {
        vantages: vec![
            VantageRow {
                address: Address::v4([10, 0, 0, 1]),
                vantage: Some(HostVantage::Near),
                flows_sent: 3,
                evidence: "CNPs leave it".into(),
                ..VantageRow::default()
            },
            VantageRow::default(),
        ],
        hops: vec![HopRow {
            flow_id: FlowId::MAX,
            to_tap: TapId(1),
            matched: 1_000,
            delay_min_ns: Some(-3.25),
            ..HopRow::default()
        }],
        ends: ends(),
        waits: vec![
            WaitRow {
                victim_flow: Some(FlowId::MAX),
                node: Some("leaf1".into()),
                port: Some("Ethernet1/1/2".into()),
                priority: Some(3),
                paused_ns: Some(u64::MAX),
                is_root: true,
                root_kind: Some(RootKind::Contention),
                share: Some(0.5),
                ..WaitRow::default()
            },
            WaitRow::default(),
        ],
        credits: credits(),
        collectives: vec![
            CollectiveRow {
                communicator: Some("0x1f".into()),
                channel: Some(3),
                rail: Some(1),
                members: 4,
                ranks: Some("0 > 1 > 2 > 3".into()),
                both_directions: Some(true),
                payload_bytes: Some(1 << 40),
                spread: Some(1.25),
                start_time: Some(Time(START)),
                ..CollectiveRow::default()
            },
            CollectiveRow::default(),
        ],
        episodes: vec![
            EpisodeRow {
                kind: EpisodeKind::Incast,
                start_time: Time(START),
                end_time: Time(START + 5_000_000),
                destination: Some(Address::v6([0xfe; 16])),
                flow_ids: "0000000000000001 0000000000000002".into(),
                ce_share_peak: Some(0.1),
                jain: Some(0.99),
                confidence: Confidence::High,
                ..EpisodeRow::default()
            },
            EpisodeRow {
                episode: 1,
                kind: EpisodeKind::Pause,
                priority: Some(3),
                pause_ns: Some(u64::MAX),
                ..EpisodeRow::default()
            },
        ],
        // More than are turned into columns at a time.
        steps: (0..5_000)
            .map(|step| StepRow {
                step,
                host_b: Address::v4([10, 0, 0, 2]),
                outlier: step == 41,
                episode: (step == 41).then_some(0),
                ..StepRow::default()
            })
            .collect(),
        findings: vec![
            FindingRow {
                id: "loss.network",
                severity: Severity::Critical,
                summary: "the network lost 12 packets".into(),
                evidence,
                first_time: Some(Time(START)),
                explains: NameList(vec!["retransmit.timeout".into(), "stall".into()]),
                ..FindingRow::default()
            },
            FindingRow::default(),
        ],
        ..RunSummary::default()
    }
}

/// Names of the run.
fn key() -> RunKey {
    RunKey {
        run_id: "0cc16b3648ffa64b".to_owned(),
        host: "h1".to_owned(),
        capture: "a.pcap +1".to_owned(),
    }
}

fn columns<C: Columns>(rows: &[C::Row]) -> C {
    let mut columns = C::default();
    for row in rows {
        columns.push(row);
    }
    columns
}

fn write(dir: &Path, options: &Options, rows: &[TimelineRow]) -> Result<(), Error> {
    let mut dataset = Dataset::create(dir, &key(), options)?;
    for batch in rows.chunks(7) {
        dataset.timeline(&columns(batch)).unwrap();
    }
    dataset.events(&columns(&events())).unwrap();
    dataset.flows_closed(&flows()).unwrap();
    dataset.finish(&run()).unwrap();
    Ok(())
}

/// Holds that a table as read has exactly these rows.
fn compare<C: Columns>(table: &TableData, rows: &[C::Row]) {
    assert_eq!(table.rows, rows.len());
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut expected: Vec<String> = vec!["run_id".to_owned(), "host".to_owned(), "capture".to_owned()];
    for column in C::TABLE.columns {
        expected.push(column.name.to_owned());
        expected.extend(column.nanoseconds());
    }
    assert_eq!(names, expected);
    for (name, value) in ["run_id", "host", "capture"].into_iter().zip(key().values()) {
        let expected = ColumnValues::Text(vec![Some(value.to_owned()); rows.len()]);
        assert_eq!(table.column(name), Some(&expected), "{name}");
    }
    for (number, row) in rows.iter().enumerate() {
        C::cells(row, |column, cell| {
            let values = table.column(column.name).unwrap();
            assert_eq!(values.len(), rows.len());
            if let Some(nanoseconds) = column.nanoseconds() {
                let Some(ColumnValues::I64(nanoseconds)) = table.column(&nanoseconds) else {
                    panic!("{nanoseconds}");
                };
                // The latest time that the type has: 2262-04-11.
                let expected = match cell {
                    Cell::Time(time) => Some(i64::try_from(time.0).unwrap_or(i64::MAX)),
                    _ => None,
                };
                assert_eq!(nanoseconds[number], expected, "{} of row {number}", column.name);
                let microseconds = ColumnValues::Time(
                    nanoseconds
                        .iter()
                        .map(|time| time.map(|time| time / 1_000))
                        .collect(),
                );
                assert_eq!(*values, microseconds, "{} of row {number}", column.name);
                return;
            }
            let count = |value: i64| Cell::U64(value.unsigned_abs());
            let found = match values {
                ColumnValues::I32(values) => values[number].map(|value| Cell::U32(value.unsigned_abs())),
                ColumnValues::I64(values) => values[number].map(count),
                ColumnValues::F64(values) => values[number].map(Cell::F64),
                ColumnValues::Bool(values) => values[number].map(Cell::Bool),
                ColumnValues::Text(values) => values[number].as_deref().map(Cell::Text),
                ColumnValues::Time(_) => panic!("{} is no time", column.name),
            };
            let text;
            let expected = match cell {
                Cell::Null => None,
                Cell::Id(id) => Some(Cell::U64(id.0)),
                Cell::Address(address) => {
                    text = address.to_string();
                    Some(Cell::Text(&text))
                }
                Cell::Names(names) => {
                    text = names.to_string();
                    Some(Cell::Text(&text))
                }
                // A JSON object as text.
                Cell::Evidence(evidence) => {
                    text = evidence.to_string();
                    Some(Cell::Text(&text))
                }
                Cell::U64(value) => Some(Cell::U64(value.min(i64::MAX.unsigned_abs()))),
                cell => Some(cell),
            };
            assert_eq!(found, expected, "{} of row {number}", column.name);
        });
    }
}

fn names(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = TABLES
        .iter()
        .filter_map(|table| fs::read_dir(dir.join(table)).ok())
        .flatten()
        .map(|entry| entry.unwrap().path().strip_prefix(dir).unwrap().to_path_buf())
        .collect();
    found.sort();
    found
}

fn parts() -> Vec<PathBuf> {
    let mut parts: Vec<PathBuf> = TABLES
        .iter()
        .map(|table| Path::new(table).join("part-0.parquet"))
        .collect();
    parts.sort();
    parts
}

#[test]
fn what_is_read_is_what_was_written() {
    let rows = timeline(1_000);
    for (row_group, parallel) in [
        (1_000_000, false),
        (1_000, false),
        (16, false),
        (1, true),
        (0, true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            &Options {
                parallel,
                row_group,
                ..Options::default()
            },
            &rows,
        )
        .unwrap();
        compare::<TimelineColumns>(&read_table(dir.path(), "timeline").unwrap(), &rows);
        compare::<EventColumns>(&read_table(dir.path(), "events").unwrap(), &events());
        compare::<FlowColumns>(&read_table(dir.path(), "flows").unwrap(), &flows());
        let read = |table| read_table(dir.path(), table).unwrap();
        compare::<EpisodeColumns>(&read("episodes"), &run().episodes);
        compare::<FindingColumns>(&read("findings"), &run().findings);
        compare::<StepColumns>(&read("steps"), &run().steps);
        compare::<TapColumns>(&read("taps"), &run().taps);
        compare::<VantageColumns>(&read("vantages"), &run().vantages);
        compare::<HopColumns>(&read("hops"), &run().hops);
        compare::<EndColumns>(&read("ends"), &run().ends);
        compare::<WaitColumns>(&read("waits"), &run().waits);
        compare::<CollectiveColumns>(&read("collectives"), &run().collectives);
        compare::<CreditColumns>(&read("credits"), &run().credits);
        let runs: Vec<_> = crate::dataset::run_rows(&run()).collect();
        compare::<RunColumns>(&read_table(dir.path(), "run").unwrap(), &runs);
        assert_eq!(runs.len(), 2);
        assert_eq!((&*runs[0].options, runs[1].frames), ("bin=1ms top=10", 12));
        assert_eq!(names(dir.path()), parts());
    }
}

#[test]
fn evidence_is_a_json_object_as_text() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &Options::default(), &[]).unwrap();
    let findings = read_table(dir.path(), "findings").unwrap();
    let Some(ColumnValues::Text(evidence)) = findings.column("evidence") else {
        panic!("{findings:?}");
    };
    // As RFC 8259 has it: quotes escaped, no number that is not finite.
    let expected = concat!(
        r#"{"ce":12,"share":0.25,"none":null,"host":"10.0.0.7 \"b\" "#,
        "\u{1f980}\"}"
    );
    assert_eq!(evidence, &[Some(expected.to_owned()), Some("{}".to_owned())]);
}

#[test]
fn a_dataset_without_rows_has_all_tables() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("new/folder");
    let mut dataset = Dataset::create(&deep, &key(), &Options::default()).unwrap();
    dataset.finish(&RunSummary::default()).unwrap();
    for table in TABLES {
        let read = read_table(&deep, table).unwrap();
        assert_eq!(read.rows, 0, "{table}");
    }
    compare::<TimelineColumns>(&read_table(&deep, "timeline").unwrap(), &[]);
    assert!(
        dataset
            .finish(&RunSummary::default())
            .unwrap_err()
            .to_string()
            .contains("finished already")
    );
}

#[test]
fn a_dataset_is_replaced_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &Options::default(), &timeline(3)).unwrap();
    let error = write(dir.path(), &Options::default(), &timeline(5)).unwrap_err();
    assert!(matches!(&error, Error::Exists { .. }), "{error}");
    assert!(error.to_string().contains("part-0.parquet"), "{error}");
    assert_eq!(read_table(dir.path(), "timeline").unwrap().rows, 3);

    // More parts, as a recorded live run leaves them.
    fs::copy(
        dir.path().join("timeline/part-0.parquet"),
        dir.path().join("timeline/part-10.parquet"),
    )
    .unwrap();
    fs::copy(
        dir.path().join("timeline/part-0.parquet"),
        dir.path().join("timeline/part-2.parquet"),
    )
    .unwrap();
    assert_eq!(read_table(dir.path(), "timeline").unwrap().rows, 9);
    let options = Options {
        overwrite: true,
        ..Options::default()
    };
    let dataset = Dataset::create(dir.path(), &key(), &options).unwrap();
    drop(dataset);
    assert_eq!(
        read_table(dir.path(), "timeline").unwrap().rows,
        9,
        "an unfinished run replaces nothing"
    );
    write(dir.path(), &options, &timeline(5)).unwrap();
    assert_eq!(read_table(dir.path(), "timeline").unwrap().rows, 5);
    assert_eq!(names(dir.path()), parts());
}

#[test]
fn a_killed_run_leaves_nothing_under_a_final_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut dataset = Dataset::create(
        dir.path(),
        &key(),
        &Options {
            row_group: 10,
            ..Options::default()
        },
    )
    .unwrap();
    dataset.timeline(&columns(&timeline(100))).unwrap();
    dataset.flows_closed(&flows()).unwrap();
    // As killed: nothing is cleaned up.
    std::mem::forget(dataset);
    assert!(
        names(dir.path())
            .iter()
            .all(|path| path.to_string_lossy().ends_with(".tmp"))
    );
    assert_eq!(names(dir.path()).len(), TABLES.len());
    assert!(matches!(
        read_table(dir.path(), "timeline"),
        Err(Error::NoTable { .. })
    ));

    // The next run is not refused, and clears up.
    fs::write(dir.path().join("events/.part-7.parquet.tmp"), "half").unwrap();
    write(dir.path(), &Options::default(), &timeline(4)).unwrap();
    assert_eq!(names(dir.path()), parts());
}

#[test]
fn a_dropped_run_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut dataset = Dataset::create(dir.path(), &key(), &Options::default()).unwrap();
    dataset.timeline(&columns(&timeline(10))).unwrap();
    drop(dataset);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn errors_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "no folder").unwrap();
    let error = Dataset::create(&file, &key(), &Options::default()).err().unwrap();
    assert!(error.to_string().contains("file"), "{error}");

    fs::create_dir(dir.path().join("flows")).unwrap();
    fs::write(dir.path().join("flows/part-0.parquet"), "not Parquet").unwrap();
    let error = read_table(dir.path(), "flows").unwrap_err();
    assert!(error.to_string().contains("part-0.parquet"), "{error}");

    let error = Dataset::create(
        dir.path(),
        &key(),
        &Options {
            compression_level: 99,
            overwrite: true,
            ..Options::default()
        },
    );
    assert!(error.err().unwrap().to_string().contains(".part-0.parquet.tmp"));
}

#[test]
fn another_schema_is_refused() {
    use polars::prelude::{DataFrame, KeyValueMetadata, ParquetWriter};
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("flows")).unwrap();
    for (version, hint) in [
        ("1", "analyse the capture again"),
        ("3", "only of 2"),
        ("", "only of 2"),
    ] {
        let file = fs::File::create(dir.path().join("flows/part-0.parquet")).unwrap();
        let pair = ("roce-analyze.schema_version".to_owned(), version.to_owned());
        ParquetWriter::new(file)
            .with_key_value_metadata(Some(KeyValueMetadata::from_static(vec![pair])))
            .finish(&mut DataFrame::empty())
            .unwrap();
        let error = read_table(dir.path(), "flows").unwrap_err();
        assert!(
            matches!(&error, Error::OtherSchema { found, .. } if found == version),
            "{error}"
        );
        assert!(error.to_string().contains(hint), "{error}");
        let error = Rows::<FlowColumns>::open(dir.path())
            .unwrap()
            .find_map(Result::err)
            .unwrap();
        assert!(matches!(&error, Error::OtherSchema { .. }), "{error}");
    }
}

#[test]
fn the_file_says_its_schema() {
    use polars::prelude::{DataType, ParquetReader, SerReader, TimeUnit, TimeZone};
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &Options::default(), &timeline(3)).unwrap();
    let mut reader = ParquetReader::new(fs::File::open(dir.path().join("timeline/part-0.parquet")).unwrap());
    let pairs = reader
        .get_metadata()
        .unwrap()
        .key_value_metadata()
        .clone()
        .unwrap();
    let value = |key: &str| {
        pairs
            .iter()
            .find(|pair| pair.key == key)
            .and_then(|pair| pair.value.clone())
    };
    assert_eq!(value("roce-analyze.schema_version").as_deref(), Some("2"));
    assert_eq!(
        value("roce-analyze.version").as_deref(),
        Some(env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(value("roce-analyze.table").as_deref(), Some("timeline"));
    // The types are Parquet's: an Arrow schema of polars' has `string_view`, which pyarrow cannot filter.
    assert_eq!(value("ARROW:schema"), None);
    let frame = reader.finish().unwrap();
    let kind = |name: &str| frame.column(name).unwrap().dtype().clone();
    assert_eq!(
        kind("time"),
        DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC))
    );
    assert_eq!(kind("time_ns"), DataType::Int64);
    assert_eq!(kind("flow_id"), DataType::Int64);
    assert_eq!(kind("cnp"), DataType::Int32);
    assert_eq!(kind("run_id"), DataType::String);
}

/// The names in a table's folder.
fn names_of(dir: &Path, table: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir.join(table))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn parts_of_a_live_run_are_whole_once_they_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        live: true,
        ..Options::default()
    };
    let mut columns = TimelineColumns::default();
    for row in timeline(10) {
        columns.push(&row);
    }
    let mut dataset = Dataset::create(dir.path(), &key(), &options).unwrap();
    // Nothing came: nothing is closed.
    dataset.next_parts().unwrap();
    assert_eq!(names_of(dir.path(), "timeline"), [".part-0.parquet.tmp"]);
    for part in 1..=2 {
        dataset.timeline(&columns).unwrap();
        dataset.next_parts().unwrap();
        assert_eq!(read_table(dir.path(), "timeline").unwrap().rows, part * 10);
    }
    dataset.timeline(&columns).unwrap();
    // A run that is killed leaves the closed parts; so does one that fails.
    drop(dataset);
    assert_eq!(
        names_of(dir.path(), "timeline"),
        ["part-0.parquet", "part-1.parquet"]
    );
    assert!(
        !dir.path().join("events").exists(),
        "a folder that was made and stays empty goes"
    );

    // The next run replaces all of them, and finishes.
    let overwrite = Options {
        overwrite: true,
        ..options
    };
    let mut dataset = Dataset::create(dir.path(), &key(), &overwrite).unwrap();
    assert_eq!(names_of(dir.path(), "timeline"), [".part-0.parquet.tmp"]);
    dataset.timeline(&columns).unwrap();
    dataset.next_parts().unwrap();
    dataset.finish(&run()).unwrap();
    // No part without rows behind others; one of a table that has none at all.
    assert_eq!(names_of(dir.path(), "timeline"), ["part-0.parquet"]);
    assert_eq!(names_of(dir.path(), "events"), ["part-0.parquet"]);
    assert_eq!(read_table(dir.path(), "timeline").unwrap().rows, 10);
}

#[test]
fn rows_come_back_over_row_groups_and_parts() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        live: true,
        row_group: 1_000,
        ..Options::default()
    };
    let mut dataset = Dataset::create(dir.path(), &key(), &options).unwrap();
    let written = timeline(12_345);
    for (number, batch) in written.chunks(2_500).enumerate() {
        dataset.timeline(&columns(batch)).unwrap();
        if number % 2 == 1 {
            dataset.next_parts().unwrap();
        }
    }
    dataset.flows_closed(&flows()).unwrap();
    dataset.events(&columns(&events())).unwrap();
    dataset.finish(&run()).unwrap();
    assert_eq!(names_of(dir.path(), "timeline").len(), 3);
    let read = |rows: Rows<TimelineColumns>| rows.flat_map(Result::unwrap).collect::<Vec<_>>();
    assert!(read(Rows::open(dir.path()).unwrap()) == written);
    let read = |rows: Rows<FlowColumns>| rows.flat_map(Result::unwrap).collect::<Vec<_>>();
    assert!(read(Rows::open(dir.path()).unwrap()) == flows());
    let mut expected = events();
    // The latest time that Parquet has: 2262-04-11.
    expected[2].time = Time(i64::MAX.unsigned_abs());
    let read: Result<Vec<_>, _> = Rows::<EventColumns>::open(dir.path()).unwrap().collect();
    assert_eq!(read.unwrap().concat(), expected);

    // A table in another's place: its columns are not there; nothing comes after the error.
    fs::copy(
        dir.path().join("events/part-0.parquet"),
        dir.path().join("timeline/part-1.parquet"),
    )
    .unwrap();
    let mut rows = Rows::<TimelineColumns>::open(dir.path()).unwrap();
    let error = rows.find_map(Result::err).unwrap();
    assert!(
        matches!(
            &error,
            Error::Column {
                column: "flow_id",
                ..
            }
        ),
        "{error}"
    );
    assert!(rows.next().is_none());
    fs::remove_dir_all(dir.path().join("timeline")).unwrap();
    let error = Rows::<TimelineColumns>::open(dir.path()).unwrap_err();
    assert!(matches!(&error, Error::NoTable { .. }), "{error}");
}

/// Polars unwraps the result of mapping a file (polars-io, `mmap.rs`).
#[test]
fn a_panic_of_polars_is_an_error_with_its_cause() {
    let said = |text: &'static str| {
        let read: Result<(), Error> = crate::read::undamaged(Path::new("a"), || panic!("{text}"));
        read.unwrap_err().to_string()
    };
    let mapped = said("called `Result::unwrap()` on an `Err` value: IO { error: Os { code: 5 } }");
    assert!(mapped.contains("the system fails: called"), "{mapped}");
    assert!(said("capacity overflow").ends_with("it is damaged"));
}
