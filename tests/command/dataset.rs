//! `-o DIR`: the Parquet dataset, read back, says what the JSON document says, and its tables agree with each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use roce_capture::Container;
use roce_capture::write::{ByteOrder, InterfaceOptions, PcapngWriter};
use roce_model::Time;
use roce_parquet::{ColumnValues, TABLES, read_table};
use serde_json::{Map, Value, json};
use tempfile::tempdir;

use crate::captures::{self, Capture, root};
use crate::command::{command, flows, lasting, ran, sum, total};

/// The columns that name the run.
const KEY: [&str; 3] = ["run_id", "host", "capture"];

/// The rows of a table in the words of the JSON document: absent is null, times and flow identifiers are texts, the names of
/// the run are left out. The two columns of a time agree.
pub(crate) fn rows(dir: &Path, table: &str) -> Vec<Value> {
    let data = read_table(dir, table).unwrap_or_else(|error| panic!("{error}"));
    let mut rows = vec![Map::new(); data.rows];
    let found: Vec<&str> = data
        .columns
        .iter()
        .take(3)
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(found, KEY, "{table}");
    let is_time = |name: &str| matches!(data.column(name), Some(ColumnValues::Time(_)));
    for (name, values) in data.columns.iter().skip(3) {
        if name.strip_suffix("_ns").is_some_and(is_time) {
            continue;
        }
        let cells: Vec<Value> = match values {
            ColumnValues::I32(values) => values.iter().map(|value| json!(value)).collect(),
            ColumnValues::I64(values) if name.ends_with("flow_id") => values
                .iter()
                .map(|value| json!(value.map(|id| format!("{id:016x}"))))
                .collect(),
            ColumnValues::I64(values) => values.iter().map(|value| json!(value)).collect(),
            ColumnValues::F64(values) => values.iter().map(|value| json!(value)).collect(),
            ColumnValues::Bool(values) => values.iter().map(|value| json!(value)).collect(),
            ColumnValues::Text(values) => values.iter().map(|value| json!(value)).collect(),
            ColumnValues::Time(values) => {
                let Some(ColumnValues::I64(exact)) = data.column(&format!("{name}_ns")) else {
                    panic!("{table}: {name} has no nanoseconds");
                };
                let microseconds = exact.iter().map(|ns| ns.map(|ns| ns / 1_000));
                assert_eq!(&microseconds.collect::<Vec<_>>(), values, "{table}: {name}");
                exact
                    .iter()
                    .map(|ns| json!(ns.map(|ns| ns.to_string())))
                    .collect()
            }
        };
        assert_eq!(cells.len(), data.rows, "{table}: {name}");
        for (row, cell) in rows.iter_mut().zip(cells) {
            row.insert(name.clone(), cell);
        }
    }
    // Through a text and back, as the document came: a number read from a text can differ in its last digit.
    let text = serde_json::to_string(&rows).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Runs the command with `-o DIR`, and gives its document.
pub(crate) fn written(dir: &Path, captures: &[&str], more: &[&str]) -> Value {
    let mut command = command(&root());
    command
        .args(captures)
        .args(more)
        .args(["--format", "json", "-o"])
        .arg(dir);
    ran(&mut command).good().json()
}

/// Identity of a row of `flows`.
pub(crate) type Key = (String, u64, u64);

fn key(row: &Value) -> Key {
    (
        row["flow_id"].as_str().unwrap().to_owned(),
        row["tap"].as_u64().unwrap(),
        row["epoch"].as_u64().unwrap(),
    )
}

pub(crate) fn by_key(rows: &[Value]) -> BTreeMap<Key, &Value> {
    let all: BTreeMap<Key, &Value> = rows.iter().map(|row| (key(row), row)).collect();
    assert_eq!(all.len(), rows.len(), "(flow_id, tap, epoch) is a key");
    all
}

/// All captures one by one, the twins together, and every sample in one run.
fn runs() -> Vec<(String, Vec<String>)> {
    let mut runs: Vec<(String, Vec<String>)> = captures::all()
        .into_iter()
        .map(|capture| (capture.name, vec![capture.path]))
        .collect();
    let twins = ["send_bw_ce_gradual", "send_bw_ce_gradual_senderside"];
    runs.push((
        "twins".to_owned(),
        twins.map(|name| Capture::named(name).path).to_vec(),
    ));
    runs.push((
        "samples".to_owned(),
        captures::samples()
            .into_iter()
            .map(|capture| capture.path)
            .collect(),
    ));
    runs
}

#[test]
fn tables_say_what_the_document_says() {
    for (name, paths) in runs() {
        let folder = tempdir().unwrap();
        let dir = folder.path().join("new/out");
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let document = written(&dir, &paths, &[]);

        let flows_table = rows(&dir, "flows");
        let said = flows(&document);
        assert_eq!(by_key(&flows_table), by_key(said), "{name}: flows");
        assert_eq!(
            total(&document, "flows"),
            said.len() as u64,
            "{name}: number of flows"
        );
        for row in said {
            let columns: BTreeSet<&String> = row.as_object().unwrap().keys().collect();
            assert_eq!(
                columns,
                flows_table[0].as_object().unwrap().keys().collect(),
                "{name}: columns of flows"
            );
        }

        let mut taps = document["taps"].clone();
        for tap in taps.as_array_mut().unwrap() {
            tap.as_object_mut().unwrap().remove("cnp_receivers").unwrap();
        }
        assert_eq!(Value::Array(rows(&dir, "taps")), taps, "{name}: taps");
        for table in [
            "episodes",
            "steps",
            "vantages",
            "hops",
            "waits",
            "collectives",
            "credits",
            "collective_waits",
            "mrc_connections",
            "mrc_paths",
            "uet_traffic",
            "hops_inband",
        ] {
            // The document has no table of MRC without such packets.
            let stored = document.get(table).cloned().unwrap_or_else(|| json!([]));
            assert_eq!(Value::Array(rows(&dir, table)), stored, "{name}: {table}");
        }
        findings(&name, &rows(&dir, "findings"), &document);
        inputs(&name, &rows(&dir, "run"), &document);

        // A run gives one document; another run differs in its times alone.
        let stored = fs::read_to_string(dir.join("run.json")).unwrap();
        let stored: Value = serde_json::from_str(&stored).unwrap();
        assert_eq!(stored, document, "{name}: run.json");
        let again = crate::command::document(&root(), &paths);
        assert_eq!(
            lasting(stored),
            lasting(again),
            "{name}: the document of another run"
        );
        nothing_else(&dir);
    }
}

/// The distinct values of the columns that name the run, over all tables of a dataset.
fn keys(dir: &Path) -> BTreeSet<Vec<String>> {
    let mut keys = BTreeSet::new();
    for table in TABLES {
        let data = read_table(dir, table).unwrap();
        let columns = KEY.map(|name| match data.column(name) {
            Some(ColumnValues::Text(values)) => values,
            other => panic!("{table}: {name} is {other:?}"),
        });
        for row in 0..data.rows {
            keys.insert(columns.map(|values| values[row].clone().unwrap()).to_vec());
        }
    }
    keys
}

/// The names of a run in its document.
fn key_of(document: &Value) -> Vec<String> {
    KEY.map(|name| document["run"][name].as_str().unwrap().to_owned())
        .to_vec()
}

#[test]
fn every_row_names_its_run() {
    let folder = tempdir().unwrap();
    let dir = |name: &str| folder.path().join(name);
    let rping = Capture::named("rping").path;
    let first = written(&dir("first"), &[&rping], &[]);
    assert_eq!(keys(&dir("first")), BTreeSet::from([key_of(&first)]));
    assert_eq!(first["run"]["capture"], rping.as_str());
    // Sixteen hex digits of 63 bits.
    let id = first["run"]["run_id"].as_str().unwrap();
    assert!(id.len() == 16 && i64::from_str_radix(id, 16).is_ok(), "{id}");

    // A capture that is analysed again is one run, also by its absolute path from elsewhere, if it is given the
    // same key.
    let again = written(&dir("again"), &[&rping], &["--threads", "2", "--top", "3"]);
    assert_eq!(key_of(&again), key_of(&first));
    let absolute = root().join(&rping);
    let absolute = absolute.to_str().unwrap();
    let elsewhere = written(&dir("elsewhere"), &[absolute], &["--capture", &rping]);
    assert_eq!(key_of(&elsewhere), key_of(&first));
    assert_eq!(elsewhere["taps"][0]["input"], rping.as_str());

    // Without a key an absolute path leaves its name alone.
    let named = written(&dir("named"), &[absolute], &[]);
    assert_eq!(named["run"]["capture"], "rping.pcap");
    assert_eq!(named["run"]["inputs"][0]["input"], "rping.pcap");
    assert_eq!(named["taps"][0]["input"], "rping.pcap");
    assert_ne!(named["run"]["run_id"], first["run"]["run_id"]);

    // Options that shape results make another run.
    let other = written(&dir("other"), &[&rping], &["--bin", "2ms"]);
    assert_ne!(other["run"]["run_id"], first["run"]["run_id"]);
    let given = [
        "--host-name",
        "h7",
        "--run-id",
        "job-12",
        "--capture",
        "2026/rack7",
    ];
    let given = written(&dir("given"), &[&rping], &given);
    assert_eq!(key_of(&given), ["job-12", "h7", "2026/rack7"]);
    assert_eq!(keys(&dir("given")), BTreeSet::from([key_of(&given)]));
    // Two hosts can have captures of one name and size.
    let hosts = ["h7", "h8"].map(|host| written(&dir(host), &[&rping], &["--host-name", host]));
    assert_ne!(hosts[0]["run"]["run_id"], hosts[1]["run"]["run_id"]);
}

#[test]
fn no_absolute_path_is_in_the_results() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("out");
    fs::create_dir(folder.path().join("a")).unwrap();
    let captures = [("a/one.pcap", "rping"), ("two.pcap", "rnr")].map(|(name, capture)| {
        let path = folder.path().join(name);
        fs::write(&path, Capture::named(capture).bytes()).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let config = folder.path().join("settings.toml");
    fs::write(&config, "top = 5\n").unwrap();
    let log = folder.path().join("train.log");
    fs::write(&log, "Iteration 1 | AllReduce: 45.2ms | Total: 156.3ms\n").unwrap();
    let more = [
        "--config",
        config.to_str().unwrap(),
        "--training-log",
        log.to_str().unwrap(),
    ];
    let document = written(&dir, &captures.each_ref().map(String::as_str), &more);
    assert_eq!(document["run"]["options"]["config"], "settings.toml");
    assert_eq!(document["run"]["capture"], "a/one.pcap +1");
    let text = document.to_string();
    let folder = folder.path().to_str().unwrap();
    assert!(!text.contains(folder), "{text}");
    for table in TABLES {
        for row in rows(&dir, table) {
            assert!(!row.to_string().contains(folder), "{table}: {row}");
        }
    }
}

#[test]
fn version_1_is_refused() {
    let folder = tempdir().unwrap();
    written(folder.path(), &[&Capture::named("rping").path], &[]);
    let path = folder.path().join("run.json");
    let document = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        document.replace("\"schema_version\": 2", "\"schema_version\": 1"),
    )
    .unwrap();
    let refused = ran(command(&root()).arg("report").arg(folder.path()));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let sentence = "results of schema version 1 cannot be read, only of 2";
    assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("hint: analyse the capture again"),
        "{}",
        refused.stderr
    );
}

/// The table `findings` against the document: there evidence is a JSON object as text, here an object.
fn findings(name: &str, rows: &[Value], document: &Value) {
    /// Numbers as numbers: a whole one may be written with a decimal point or without.
    fn plain(mut row: Value) -> Value {
        for fact in row["evidence"].as_object_mut().unwrap().values_mut() {
            if let Some(number) = fact.as_f64() {
                *fact = json!(number);
            }
        }
        row
    }
    let stored = rows.iter().map(|row| {
        let mut row = row.clone();
        row["evidence"] = serde_json::from_str(row["evidence"].as_str().unwrap()).unwrap();
        // Names are a list in the document, and separated by spaces in the table.
        for column in ["explains", "explained_by", "victims", "aggressors"] {
            row[column] = row[column].as_str().unwrap().split_whitespace().collect();
        }
        plain(row)
    });
    let said = document["findings"].as_array().unwrap();
    assert_eq!(
        stored.collect::<Vec<_>>(),
        said.iter().cloned().map(plain).collect::<Vec<_>>(),
        "{name}: findings"
    );
}

/// The table `run` against the document.
pub(crate) fn inputs(name: &str, rows: &[Value], document: &Value) {
    let run = &document["run"];
    let inputs = run["inputs"].as_array().unwrap();
    assert_eq!(rows.len(), inputs.len(), "{name}: a row for each input");
    for (row, input) in rows.iter().zip(inputs) {
        for column in [
            "input",
            "format",
            "bytes",
            "sha256",
            "first_time",
            "last_time",
            "truncated",
            "error",
        ] {
            assert_eq!(row[column], input[column], "{name}: {column}");
        }
        assert_eq!(row["input_frames"], input["frames"], "{name}");
        for column in ["version", "started", "elapsed_ns"] {
            assert_eq!(row[column], run[column], "{name}: {column}");
        }
        for column in [
            "frames",
            "frames_lost",
            "copies",
            "roce_packets",
            "undecodable",
            "evicted",
        ] {
            assert_eq!(row[column], document["totals"][column], "{name}: {column}");
        }
        let options = format!("bin_ns={} max_flows=500000", run["bin_ns"]);
        assert_eq!(row["options"], options, "{name}");
    }
}

/// A finished dataset has no file under a temporary name.
pub(crate) fn nothing_else(dir: &Path) {
    let mut found: Vec<String> = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            for part in fs::read_dir(entry.path()).unwrap() {
                found.push(format!(
                    "{name}/{}",
                    part.unwrap().file_name().into_string().unwrap()
                ));
            }
        } else {
            found.push(name);
        }
    }
    found.sort();
    let mut expected: Vec<String> = TABLES
        .iter()
        .map(|table| format!("{table}/part-0.parquet"))
        .collect();
    expected.extend(["report.html", "run.json"].map(str::to_owned));
    expected.sort();
    assert_eq!(found, expected);
}

/// The columns of `timeline` whose sum over a flow's rows is the flow's own.
const ADDITIVE: [&str; 16] = [
    "packets",
    "wire_bytes",
    "payload_bytes",
    "data_packets",
    "not_ect",
    "ect0",
    "ect1",
    "ce",
    "retransmitted_packets",
    "retransmitted_bytes",
    "missing",
    "late",
    "naks",
    "rnr_naks",
    "acks",
    "messages",
];

#[test]
fn a_flow_is_the_sum_of_its_timeline_whatever_the_bin() {
    for (name, paths) in runs() {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        for (bin, width) in [("100us", 100_000), ("1ms", 1_000_000), ("1s", 1_000_000_000)] {
            let folder = tempdir().unwrap();
            let document = written(folder.path(), &paths, &["--bin", bin]);
            let timeline = rows(folder.path(), "timeline");
            let what = format!("{name} in bins of {bin}");
            assert_eq!(document["run"]["bin_ns"], width, "{what}");
            add_up(&what, &timeline, flows(&document));
            places(&what, &timeline, flows(&document), width);
            senders(&what, &timeline, flows(&document));
            let packets = sum(&timeline, "packets");
            assert_eq!(
                packets,
                total(&document, "roce_packets") - total(&document, "cnp"),
                "{what}"
            );
            assert_eq!(sum(&timeline, "ce"), total(&document, "data_ce"), "{what}");
        }
    }
}

/// A packet that comes after its bin was emitted makes a row of its own: the sums are right all the
/// same.
#[test]
fn a_flow_is_the_sum_of_its_timeline_also_out_of_order() {
    for capture in captures::all() {
        let folder = tempdir().unwrap();
        let (records, _) = crate::variants::mixed(&capture);
        let path = folder.path().join("mixed.pcap");
        let file = crate::variants::pcap(&records, Container::Pcap, ByteOrder::Little);
        fs::write(&path, file).unwrap();
        for bin in ["10us", "1ms"] {
            let dir = folder.path().join(bin);
            let document = written(&dir, &[path.to_str().unwrap()], &["--bin", bin]);
            add_up(
                &format!("{} in bins of {bin}", capture.name),
                &rows(&dir, "timeline"),
                flows(&document),
            );
        }
    }
}

fn add_up(what: &str, timeline: &[Value], flows: &[Value]) {
    let mut sums: BTreeMap<Key, [u64; ADDITIVE.len()]> = BTreeMap::new();
    for row in timeline {
        let sums = sums.entry(key(row)).or_default();
        for (sum, column) in sums.iter_mut().zip(ADDITIVE) {
            *sum += row[column].as_u64().unwrap();
        }
    }
    let expected: BTreeMap<Key, [u64; ADDITIVE.len()]> = flows
        .iter()
        .map(|flow| (key(flow), ADDITIVE.map(|column| flow[column].as_u64().unwrap())))
        .collect();
    assert_eq!(sums, expected, "{what}: {ADDITIVE:?}");
}

/// Each flow has one row in a bin, at the bin's begin, in the order of time, inside of the flow's life.
fn places(what: &str, timeline: &[Value], flows: &[Value], width: u64) {
    let flows = by_key(flows);
    let time = |row: &Value, column: &str| row[column].as_str().unwrap().parse::<u64>().unwrap();
    let mut seen = BTreeSet::new();
    let mut last = 0;
    for row in timeline {
        let at = time(row, "time");
        assert_eq!(at % width, 0, "{what}: {row}");
        assert!(at >= last, "{what}: {row} comes after {last}");
        last = at;
        assert!(seen.insert((at, key(row))), "{what}: two rows for {row}");
        assert!(is_active(row), "{what}: a row without activity: {row}");
        let flow = flows[&key(row)];
        // An answer can come after a flow's last packet.
        let end = if row["packets"] == 0 {
            u64::MAX
        } else {
            time(flow, "last_time")
        };
        let life = time(flow, "first_time") / width * width..=end;
        assert!(life.contains(&at), "{what}: {row} lies outside of {flow}");
    }
}

/// True if a row has anything but its keys: packets, or an event in a bin of the flow's silence (an
/// answer, a notification, a pause). A 0 says that nothing is outstanding any more.
fn is_active(row: &Value) -> bool {
    let whose = ["time", "flow_id", "tap", "epoch", "senders_to_destination"];
    row.as_object()
        .unwrap()
        .iter()
        .filter(|(name, value)| !whose.contains(&name.as_str()) && !value.is_null())
        .any(|(name, value)| *value != 0 || name == "inflight_bytes_max")
}

/// The incast degree is bounded by the distinct sources of payload by bin, tap and destination.
fn senders(what: &str, timeline: &[Value], flows: &[Value]) {
    let ends: HashMap<&str, (&Value, &Value)> = flows
        .iter()
        .map(|flow| {
            (
                flow["flow_id"].as_str().unwrap(),
                (&flow["source"], &flow["destination"]),
            )
        })
        .collect();
    let place = |row: &Value, destination: &Value| format!("{} {} {destination}", row["time"], row["tap"]);
    let mut sources: HashMap<String, BTreeSet<String>> = HashMap::new();
    for row in timeline.iter().filter(|row| row["payload_bytes"] != 0) {
        let (source, destination) = ends[row["flow_id"].as_str().unwrap()];
        sources
            .entry(place(row, destination))
            .or_default()
            .insert(source.to_string());
    }
    for row in timeline {
        let (_, destination) = ends[row["flow_id"].as_str().unwrap()];
        let all = sources.get(&place(row, destination)).map_or(0, BTreeSet::len) as u64;
        let at_once = row["senders_to_destination"].as_u64().unwrap();
        // A sender counts as one; of senders one after the other not all are active at once.
        assert!((at_once > 0) == (all > 0), "{what}: {all} in {row}");
    }
}

#[test]
fn events_agree_with_the_counts() {
    for (name, paths) in runs() {
        let folder = tempdir().unwrap();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let document = written(folder.path(), &paths, &[]);
        let events = rows(folder.path(), "events");
        let of =
            |kind: &str| -> Vec<Value> { events.iter().filter(|e| e["kind"] == kind).cloned().collect() };
        let count = |kind: &str| of(kind).len() as u64;
        let values = |kind: &str| sum(&of(kind), "value");

        assert_eq!(values("gap"), total(&document, "missing"), "{name}: gaps");
        assert_eq!(
            values("retransmission_run"),
            total(&document, "retransmitted_packets"),
            "{name}: packets in runs"
        );
        assert_eq!(
            count("retransmission_run"),
            sum(flows(&document), "retransmission_runs"),
            "{name}: runs"
        );
        assert_eq!(values("late"), total(&document, "late"), "{name}: late");
        assert_eq!(count("nak"), total(&document, "naks"), "{name}: NAKs");
        assert_eq!(count("rnr_nak"), total(&document, "rnr_naks"), "{name}: RNR NAKs");
        assert_eq!(values("cnp"), total(&document, "cnp"), "{name}: CNPs");
        assert_eq!(
            values("response_gap"),
            total(&document, "response_missing"),
            "{name}: READ responses"
        );
        assert_eq!(count("evicted"), 0, "{name}");
        let syndromes: u64 = of("nak").iter().filter(|event| event["value"] == 0x60).count() as u64;
        assert_eq!(
            syndromes,
            sum(flows(&document), "nak_sequence"),
            "{name}: sequence NAKs"
        );

        let known: BTreeSet<&str> = flows(&document)
            .iter()
            .map(|flow| flow["flow_id"].as_str().unwrap())
            .collect();
        let first: u64 = document["run"]["first_time"].as_str().unwrap().parse().unwrap();
        let last: u64 = document["run"]["last_time"].as_str().unwrap().parse().unwrap();
        for event in &events {
            assert_eq!(event["source"], "capture", "{name}: {event}");
            if let Some(id) = event["flow_id"].as_str() {
                assert!(known.contains(id), "{name}: {event}");
            }
            let time: u64 = event["time"].as_str().unwrap().parse().unwrap();
            // A bin's event has the bin's start as its time.
            assert!(
                (first / 1_000_000 * 1_000_000..=last).contains(&time),
                "{name}: {event}"
            );
        }
    }
}

#[test]
fn the_connection_manager_leaves_its_five_messages() {
    let folder = tempdir().unwrap();
    written(folder.path(), &[&Capture::named("rping").path], &[]);
    let events = rows(folder.path(), "events");
    let messages: Vec<&Value> = events
        .iter()
        .filter(|event| event["kind"] == "connection")
        .map(|event| &event["detail"])
        .collect();
    // By tshark: infiniband.mad.attributeid 0x10, 0x13, 0x14, 0x15, 0x16.
    assert_eq!(messages, ["REQ", "REP", "RTU", "DREQ", "DREP"]);
}

#[test]
fn threads_do_not_change_the_dataset() {
    let folder = tempdir().unwrap();
    let capture = crate::variants::many_hosts(folder.path());
    let tables = |threads: &str| -> (Value, BTreeMap<&str, Vec<String>>) {
        let dir = folder.path().join(threads);
        let document = written(&dir, &[&capture], &["--threads", threads]);
        let table = |name| -> Vec<String> {
            let mut rows: Vec<String> = rows(&dir, name).iter().map(Value::to_string).collect();
            rows.sort();
            rows
        };
        (
            lasting(document),
            TABLES
                .into_iter()
                .filter(|name| *name != "run")
                .map(|name| (name, table(name)))
                .collect(),
        )
    };
    let one = tables("1");
    assert!(one.1["timeline"].len() > 1000);
    for threads in ["2", "4", "7"] {
        let several = tables(threads);
        assert_eq!(one.0, several.0, "{threads} threads");
        for (name, rows) in &one.1 {
            assert!(*rows == several.1[name], "{threads} threads: {name}");
        }
    }
}

#[test]
fn times_at_the_ends_of_the_clock() {
    let folder = tempdir().unwrap();
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    let interface = writer.interface(&InterfaceOptions::default()).unwrap();
    let records = Capture::named("clean_write_bw").frames();
    // Before anything, one bin later, and the last moment that a table can hold (2262).
    let times = [0, 999_999, 1_000_000, u64::MAX / 2 - 1, u64::MAX / 2];
    for (record, time) in records.iter().zip(times) {
        writer
            .write(interface, Time(time), record.original, &record.data)
            .unwrap();
    }
    fs::write(folder.path().join("ends.pcapng"), writer.finish().unwrap()).unwrap();
    for bin in ["1us", "1ms", "60s"] {
        let dir = folder.path().join(bin);
        let mut command = command(folder.path());
        command
            .args(["ends.pcapng", "--bin", bin, "--format", "json", "-o"])
            .arg(&dir);
        let document = ran(&mut command).good().json();
        assert_eq!(total(&document, "frames"), 5);
        assert_eq!(document["run"]["last_time"], times[4].to_string());
        add_up(bin, &rows(&dir, "timeline"), flows(&document));
        assert_eq!(by_key(&rows(&dir, "flows")), by_key(flows(&document)), "{bin}");
        let mut command = crate::command::command(folder.path());
        assert!(ran(command.arg("ends.pcapng")).good().stdout.contains("5 read"));
    }
}

#[test]
#[cfg(feature = "parquet")]
fn files_of_somebody_else_are_not_replaced_and_not_read() {
    for (name, is_refused_always) in [
        ("run.json", false),
        ("report.html", false),
        ("flows/part-7.parquet", false),
        ("flows/mine.parquet", true),
    ] {
        let folder = tempdir().unwrap();
        let out = folder.path().join("out");
        let path = out.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        let analysed = |more: &[&str]| {
            let mut command = command(&root());
            command
                .args(["captures/rping.pcap", "--format", "none", "-o"])
                .arg(&out);
            ran(command.args(more))
        };
        let refused = analysed(&[]);
        assert_eq!(refused.code, Some(2), "{name}: {refused:?}");
        assert!(refused.stderr.contains(name), "{name}: {}", refused.stderr);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine", "{name}");
        let code = analysed(&["--overwrite"]).code;
        assert_eq!(code, Some(if is_refused_always { 2 } else { 0 }), "{name}");
        if is_refused_always {
            assert_eq!(fs::read_to_string(&path).unwrap(), "mine", "{name}");
        }
    }
}
