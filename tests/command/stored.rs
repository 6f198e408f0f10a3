//! A dataset read back into a sink gives the rows of the run, and anything else than a dataset of this
//! version is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use roce_analyze::analyse_arguments;
use roce_model::{
    Columns, Data, EndKind, EndRow, EventColumns, FlowId, FlowKey, FlowRow, RunSummary, Sink, SinkError,
    Span, TimelineColumns, Values,
};
use roce_pipeline::stored::replay;
use roce_report::{JsonFlows, JsonReport};
use tempfile::tempdir;

use crate::captures::root;

/// Each column's values as text, in the order in which they came.
type Texts = BTreeMap<&'static str, Vec<String>>;

/// Everything that a sink is given.
#[derive(Default, PartialEq)]
struct SeenRows {
    /// Rows of flows that were not opened are no surprise: their identifiers may be damaged.
    is_damaged: bool,
    bin: Span,
    opened: BTreeSet<FlowId>,
    timeline: Texts,
    events: Texts,
    flows: Vec<FlowRow>,
    /// The summary as text: a value that is not finite is not even equal to itself.
    summary: String,
}

fn add<C: Columns>(texts: &mut Texts, rows: &C) {
    fn values<T: std::fmt::Debug + Default>(values: &Values<T>) -> Vec<String> {
        values.iter().map(|value| format!("{value:?}")).collect()
    }
    rows.for_each(|column, data| {
        texts.entry(column.name).or_default().extend(match data {
            Data::U32(column) => values(column),
            Data::U64(column) | Data::Time(column) | Data::Id(column) => values(column),
            Data::F64(column) => values(column),
            Data::Bool(column) => values(column),
            Data::Text(column) => values(column),
            Data::Address(column) => values(column),
        });
    });
}

impl Sink for SeenRows {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.bin = bin;
        Ok(())
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.opened.extend(keys.iter().map(FlowKey::id));
        Ok(())
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        for id in rows.flow_id.iter().flatten() {
            assert!(
                self.is_damaged || self.opened.contains(&FlowId(*id)),
                "a flow is opened before its rows come"
            );
        }
        add(&mut self.timeline, rows);
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        add(&mut self.events, rows);
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.flows.extend_from_slice(rows);
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        // Bins of hops are in their table alone, as those of flows are. Stretches of recording are for verdicts, which are stored.
        let (hop_timeline, stretches) = (Vec::new(), Vec::new());
        // Connections that were closed are in their table alone, too.
        let failed = |row: &&EndRow| row.outcome != EndKind::Closed;
        let run = RunSummary {
            hop_timeline,
            stretches,
            ends: run.ends.iter().filter(failed).cloned().collect(),
            // The documents of a run have the times of each step alone.
            training_log: None,
            ..run.clone()
        };
        self.summary = format!("{run:?}");
        Ok(())
    }
}

/// Runs over captures with `-o dir`; what the run gave its sinks.
fn written(dir: &Path, arguments: &[&str]) -> SeenRows {
    let mut seen = SeenRows::default();
    let mut arguments: Vec<OsString> = arguments
        .iter()
        .map(|argument| match argument.strip_prefix("captures/") {
            Some(_) => root().join(argument).into(),
            None => argument.into(),
        })
        .collect();
    arguments.extend(["--format", "none", "-o"].map(OsString::from));
    arguments.push(dir.into());
    analyse_arguments(arguments, &mut seen).unwrap();
    seen
}

#[test]
fn what_is_read_back_is_what_the_run_gave() {
    let runs: &[&[&str]] = &[
        &["captures/send_bw_ce_synthetic_cnp.pcap"],
        &["captures/write_bw_loss.pcap", "--bin", "100us", "--hash"],
        &["captures/rping.pcap"],
        &[
            "captures/demos/incast-h2.pcapng",
            "captures/demos/incast-h7.pcapng",
            "--link-rate",
            "100G",
        ],
        &[
            "captures/demos/pause-storm-leaf1-h1.pcapng",
            "--link-rate",
            "100G",
        ],
        &[
            "captures/demos/training-h1.pcapng",
            "--training-log",
            "captures/demos/training.log",
        ],
        &["captures/demos/capture-loss.pcapng", "--max-flows", "1"],
        &["captures/demos/lossy.pcapng", "--only-flow", "dscp 1"],
        &["captures/demos/lossy.pcapng", "--flow", "src 10.0.0.1"],
    ];
    let mut kinds = BTreeSet::new();
    for arguments in runs {
        let folder = tempdir().unwrap();
        let run = written(folder.path(), arguments);
        let mut stored = SeenRows::default();
        replay(folder.path(), &mut stored).unwrap();
        kinds.extend(run.events.get("kind").into_iter().flatten().cloned());
        assert_eq!(
            (run.bin, &run.opened),
            (stored.bin, &stored.opened),
            "{arguments:?}"
        );
        assert!(run.timeline == stored.timeline, "{arguments:?}: timeline");
        assert!(run.events == stored.events, "{arguments:?}: events");
        assert!(run.flows == stored.flows, "{arguments:?}: flows");
        assert!(
            run.summary == stored.summary,
            "{arguments:?}:\n{}\n{}",
            run.summary,
            stored.summary
        );

        let mut document = JsonReport::new(Vec::new(), JsonFlows::DEFAULT);
        replay(folder.path(), &mut document).unwrap();
        let document = String::from_utf8(document.into_inner()).unwrap();
        assert!(
            document == fs::read_to_string(folder.path().join("run.json")).unwrap(),
            "{arguments:?}"
        );
    }
    // Not a comparison of nothing with nothing.
    assert!(kinds.len() > 10, "{kinds:?}");
}

/// Why a folder is not read.
#[track_caller]
fn refused(dir: &Path) -> String {
    let error = replay(dir, &mut SeenRows::default()).unwrap_err();
    anyhow::Chain::new(&*error)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[test]
fn what_is_no_whole_dataset_is_told() {
    let folder = tempdir().unwrap();
    let dir = folder.path();
    assert!(
        refused(dir).contains("holds no results: there is no run.json\nhint: "),
        "{}",
        refused(dir)
    );
    written(dir, &["captures/rping.pcap"]);
    let document = fs::read_to_string(dir.join("run.json")).unwrap();

    fs::remove_file(dir.join("run.json")).unwrap();
    assert!(
        refused(dir).contains("the run that wrote it did not end"),
        "{}",
        refused(dir)
    );
    fs::write(
        dir.join("run.json"),
        document.replace("\"schema_version\": 2", "\"schema_version\": 7"),
    )
    .unwrap();
    assert!(
        refused(dir).contains("run.json: results of schema version 7 cannot be read, only of 2"),
        "{}",
        refused(dir)
    );
    fs::write(dir.join("run.json"), "{}").unwrap();
    assert!(
        refused(dir).contains("run.json: schema_version is missing"),
        "{}",
        refused(dir)
    );
    fs::write(dir.join("run.json"), &document).unwrap();

    // A table of another kind of row, and none at all.
    let part = |table: &str| dir.join(table).join("part-0.parquet");
    let events = fs::read(part("events")).unwrap();
    fs::copy(part("taps"), part("events")).unwrap();
    let said = refused(dir);
    assert!(
        said.contains("events/part-0.parquet: column \"time\" is missing"),
        "{said}"
    );
    fs::remove_file(part("events")).unwrap();
    assert!(
        refused(dir).contains("holds no table \"events\""),
        "{}",
        refused(dir)
    );
    fs::write(part("events"), events).unwrap();
    replay(dir, &mut SeenRows::default()).unwrap();
}

/// A linear congruential generator (Knuth's MMIX constants): the same damage in every run.
fn next(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap()
}

#[test]
fn damaged_files_are_no_reason_to_panic() {
    let folder = tempdir().unwrap();
    let dir = folder.path();
    written(dir, &["captures/send_bw_ce_synthetic_cnp.pcap"]);
    let parts = ["flows", "timeline", "events"].map(|table| PathBuf::from(table).join("part-0.parquet"));
    let (mut state, mut read) = (1, 0);
    for file in parts.iter().map(PathBuf::as_path).chain([Path::new("run.json")]) {
        let path = dir.join(file);
        let whole = fs::read(&path).unwrap();
        for round in 0..60 {
            let mut damaged = whole.clone();
            if round % 6 == 0 {
                damaged.truncate(next(&mut state) % whole.len());
            }
            // The footer of a Parquet file is at its end: most of the damage there.
            for _ in 0..=round % 4 {
                let length = damaged.len();
                let from = if round % 2 == 0 {
                    0
                } else {
                    length.saturating_sub(3_000)
                };
                if let Some(byte) = damaged.get_mut(from + next(&mut state) % (length - from).max(1)) {
                    *byte = next(&mut state).to_le_bytes()[0];
                }
            }
            fs::write(&path, &damaged).unwrap();
            let mut seen = SeenRows {
                is_damaged: true,
                ..SeenRows::default()
            };
            match replay(dir, &mut seen) {
                Ok(()) => read += 1,
                Err(error) => assert!(error.to_string().contains(dir.to_str().unwrap()), "{error}"),
            }
        }
        fs::write(&path, &whole).unwrap();
    }
    assert!(read < 120, "most damage is noticed: {read} of 240 were read");
}
