//! A dataset of many runs (`--layout fleet`): where the files are, what the manifest line says, and which runs a reader sees.

#![expect(clippy::print_stdout, reason = "the sums are said with --nocapture")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use roce_parquet::{ColumnValues, TABLES, TableData, read_file, read_table};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::captures::{Capture, root};
use crate::command::{Ran, command, ran, run};

/// Files below a folder by their paths in it, hidden ones included.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, top: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, top, found);
            } else {
                let name = path.strip_prefix(top).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

/// Runs the command over one capture of the repository as a part of the dataset in `ds`.
fn add(ds: &Path, capture: &str, more: &[&str]) -> Ran {
    let path = Capture::named(capture).path;
    let mut command = command(&root());
    command.env("SOURCE_DATE_EPOCH", "1795478400");
    command
        .arg(path)
        .args(["--layout", "fleet", "-o"])
        .arg(ds)
        .args(more);
    ran(&mut command)
}

#[track_caller]
fn texts(data: &TableData, column: &str) -> Vec<String> {
    match data.column(column) {
        Some(ColumnValues::Text(values)) => values
            .iter()
            .map(|text| text.clone().unwrap_or_default())
            .collect(),
        other => panic!("{column}: {other:?}"),
    }
}

/// Files of a table, hidden ones left out as engines leave them out.
fn table_files(ds: &Path, table: &str) -> Vec<PathBuf> {
    let visible = |path: &String| !path.rsplit('/').next().unwrap().starts_with('.');
    let files = files(&ds.join(table));
    files
        .keys()
        .filter(|path| visible(path))
        .map(|path| ds.join(table).join(path))
        .collect()
}

#[test]
fn a_run_has_one_file_in_each_table_that_has_rows() {
    let folder = tempdir().unwrap();
    let (ds, single) = (folder.path().join("ds"), folder.path().join("single"));
    let ran = add(
        &ds,
        "send_bw_ce_gradual",
        &["--host-name", "h7", "--run-id", "0cc1", "--capture", "h7/a.pcap"],
    )
    .good();
    let manifest = ran.json();
    // tshark: the first frame is of this day.
    let number = Capture::named("send_bw_ce_gradual").frames()[0].time.0 / 86_400_000_000_000;
    let day = manifest["date"].as_str().unwrap();
    let days: i64 = days_since_epoch(day);
    assert_eq!(days, i64::try_from(number).unwrap());

    let mut command = command(&root());
    command
        .arg(Capture::named("send_bw_ce_gradual").path)
        .args(["--format", "json", "--bin", "1ms", "-o"])
        .arg(&single);
    let document = self::ran(&mut command).good().json();
    assert_eq!(manifest["frames"], document["totals"]["frames"]);
    assert_eq!(
        (&manifest["host"], &manifest["capture"], &manifest["error"]),
        (&json!("h7"), &json!("h7/a.pcap"), &Value::Null)
    );

    let found = files(&ds);
    let mut expected = BTreeSet::new();
    for table in TABLES {
        let rows = read_table(&single, table).unwrap().rows;
        if rows == 0 {
            assert_eq!(manifest["rows"].get(table), None, "{table}");
            continue;
        }
        let path = format!("{table}/date={day}/host=h7/0cc1.parquet");
        let data = read_file(&ds.join(&path)).unwrap();
        assert_eq!(data.rows, rows, "{table}");
        assert_eq!(manifest["rows"][table], json!(rows), "{table}");
        for (column, value) in [("run_id", "0cc1"), ("host", "h7"), ("capture", "h7/a.pcap")] {
            assert!(
                texts(&data, column).iter().all(|text| text == value),
                "{table}.{column}"
            );
        }
        expected.insert(path);
    }
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), expected);
    let bytes: usize = found.values().map(Vec::len).sum();
    assert_eq!(manifest["written_bytes"], json!(bytes));
}

/// Days from 1970-01-01 to a date, by counting leap years (Gregorian calendar).
fn days_since_epoch(date: &str) -> i64 {
    let parts: Vec<i64> = date.split('-').map(|part| part.parse().unwrap()).collect();
    let leap = |year: i64| year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    let years: i64 = (1970..parts[0]).map(|year| 365 + i64::from(leap(year))).sum();
    let february = 28 + i64::from(leap(parts[0]));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let months: i64 = months.iter().take(usize::try_from(parts[1]).unwrap() - 1).sum();
    years + months + parts[2] - 1
}

#[test]
fn a_second_run_leaves_the_same_files() {
    let folder = tempdir().unwrap();
    let ds = folder.path().join("ds");
    let first = add(&ds, "send_bw_ce_gradual", &["--host-name", "h7"]).good();
    let before = files(&ds);
    let second = add(&ds, "send_bw_ce_gradual", &["--host-name", "h7"]).good();
    assert_eq!(first.stdout, second.stdout);
    assert!(before == files(&ds), "the files differ");
    // Another host, and another option, are other runs.
    add(&ds, "send_bw_ce_gradual", &["--host-name", "h8"]).good();
    add(
        &ds,
        "send_bw_ce_gradual",
        &["--host-name", "h7", "--bin", "100us"],
    )
    .good();
    assert_eq!(table_files(&ds, "run").len(), 3);
}

#[test]
fn hosts_with_colons_are_escaped_as_hive_does_it() {
    let folder = tempdir().unwrap();
    let ds = folder.path().join("ds");
    add(
        &ds,
        "send_bw_ce_gradual",
        &["--host-name", "fe80::1", "--run-id", "a:b"],
    )
    .good();
    let path = &table_files(&ds, "run")[0];
    assert!(
        path.ends_with("host=fe80%3A%3A1/a%3Ab.parquet"),
        "{}",
        path.display()
    );
    assert_eq!(texts(&read_file(path).unwrap(), "host"), ["fe80::1"]);
    for name in ["../x", "a/b", ".h", ""] {
        let refused = add(&ds, "send_bw_ce_gradual", &["--host-name", name]);
        assert_eq!(refused.code, Some(2), "{name}: {refused:?}");
    }
}

#[test]
fn a_capture_that_is_none_is_a_row_with_its_error() {
    let folder = tempdir().unwrap();
    let ds = folder.path().join("ds");
    fs::write(folder.path().join("noise.pcap"), [0x5a; 4096]).unwrap();
    let arguments = ["noise.pcap", "--layout", "fleet", "-o", "ds", "--host-name", "h7"];
    let failed = run(folder.path(), arguments);
    assert_eq!(failed.code, Some(2), "{failed:?}");
    let manifest = failed.json();
    assert_eq!(
        (&manifest["date"], &manifest["frames"], &manifest["bytes"]),
        (&Value::Null, &json!(0), &json!(4096))
    );
    assert_eq!(manifest["rows"], json!({"run": 1}));
    assert!(
        manifest["error"].as_str().unwrap().contains("noise.pcap"),
        "{manifest}"
    );
    let found = table_files(&ds, "run");
    assert_eq!(files(&ds).len(), 1);
    let errors = texts(&read_file(&found[0]).unwrap(), "error");
    assert_eq!(json!(errors), json!([manifest["error"]]));
    // The second time it is the same row.
    run(folder.path(), arguments);
    assert_eq!(table_files(&ds, "run"), found);

    // A capture that is not there is no row.
    let missing = run(folder.path(), ["missing.pcap", "--layout", "fleet", "-o", "ds"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert_ne!(missing.json()["error"], Value::Null);
    assert_eq!(files(&ds).len(), 1);
}

#[test]
fn a_cut_capture_has_its_rows_and_its_error() {
    let folder = tempdir().unwrap();
    let bytes = Capture::named("send_bw_ce_gradual").bytes();
    fs::write(folder.path().join("cut.pcap"), &bytes[..bytes.len() - 10]).unwrap();
    let cut = run(
        folder.path(),
        ["cut.pcap", "--layout", "fleet", "-o", "ds", "--host-name", "h7"],
    );
    let manifest = cut.json();
    let frames = Capture::named("send_bw_ce_gradual").frames().len();
    assert_eq!(manifest["frames"], json!(frames - 1), "{manifest}");
    assert!(manifest["rows"]["flows"].as_u64() > Some(0), "{manifest}");
}

#[test]
fn options_that_do_not_fit_the_layout_are_refused() {
    let folder = tempdir().unwrap();
    let ds = folder.path().join("ds");
    for more in [&["--format", "json"][..], &["--overwrite"]] {
        let refused = add(&ds, "send_bw_ce_gradual", more);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("--layout fleet"), "{refused:?}");
    }
    assert!(files(&ds).is_empty());
}

/// Rows of a table by the reader's rule: runs that a part of `run` names come from the parts, others from their own files. Each row with its cells
/// as text, sorted.
fn view(ds: &Path, table: &str) -> Vec<String> {
    let (parts, single): (Vec<_>, Vec<_>) =
        table_files(ds, "run").into_iter().partition(|path| is_part(path));
    let ids = |files: &[PathBuf]| -> BTreeSet<String> {
        files
            .iter()
            .flat_map(|path| texts(&read_file(path).unwrap(), "run_id"))
            .collect()
    };
    let compacted = ids(&parts);
    let single: BTreeSet<String> = ids(&single).difference(&compacted).cloned().collect();
    let mut rows = Vec::new();
    for path in table_files(ds, table) {
        let data = read_file(&path).unwrap();
        let wanted = if is_part(&path) { &compacted } else { &single };
        let run_ids = texts(&data, "run_id");
        for (row, id) in run_ids.iter().enumerate() {
            if wanted.contains(id) {
                let cells: Vec<String> = data.columns.iter().map(|(_, values)| cell(values, row)).collect();
                rows.push(cells.join("|"));
            }
        }
    }
    rows.sort();
    rows
}

fn is_part(path: &Path) -> bool {
    path.file_name().unwrap().to_str().unwrap().starts_with("part-")
}

fn cell(values: &ColumnValues, row: usize) -> String {
    match values {
        ColumnValues::I32(values) => format!("{:?}", values[row]),
        ColumnValues::I64(values) | ColumnValues::Time(values) => format!("{:?}", values[row]),
        ColumnValues::F64(values) => format!("{:?}", values[row]),
        ColumnValues::Bool(values) => format!("{:?}", values[row]),
        ColumnValues::Text(values) => format!("{:?}", values[row]),
    }
}

fn views(ds: &Path) -> Vec<Vec<String>> {
    TABLES.iter().map(|table| view(ds, table)).collect()
}

/// A folder of captures of three hosts, one of them no capture.
fn raw(folder: &Path) -> PathBuf {
    let raw = folder.join("raw");
    for (path, capture) in [
        ("h1/a.pcap", "send_bw_ce_gradual"),
        ("h1/later/b.pcap", "clean_write_bw"),
        ("h2.day1.pcap", "write_bw_loss"),
    ] {
        let path = raw.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, Capture::named(capture).bytes()).unwrap();
    }
    raw
}

fn dataset(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = command(folder);
    command
        .env("SOURCE_DATE_EPOCH", "1795478400")
        .arg("dataset")
        .args(arguments);
    ran(&mut command)
}

#[cfg(feature = "live")]
#[test]
fn all_captures_below_a_folder_are_mapped() {
    let folder = tempdir().unwrap();
    let raw = raw(folder.path());
    fs::write(raw.join("h3.noise.pcap"), [0x5a; 1000]).unwrap();
    std::os::unix::fs::symlink(raw.join("h1"), raw.join("h9")).unwrap();
    let inventory = "[[host]]\nname = \"h1b\"\ncaptures = [\"h1/later\"]\n";
    fs::write(folder.path().join("fabric.toml"), inventory).unwrap();
    let arguments = [
        "map",
        "raw",
        "-o",
        "ds",
        "--jobs",
        "2",
        "--inventory",
        "fabric.toml",
    ];
    let mapped = dataset(folder.path(), &arguments);
    assert_eq!(mapped.code, Some(1), "one of four is no capture: {mapped:?}");
    assert!(mapped.stdout.contains("failed      1"), "{mapped:?}");
    let ds = folder.path().join("ds");
    let mut runs = Vec::new();
    for path in table_files(&ds, "run") {
        let data = read_file(&path).unwrap();
        assert_eq!(data.rows, 1, "{}", path.display());
        let [host, capture, error] = ["host", "capture", "error"].map(|column| texts(&data, column).concat());
        runs.push((capture, host, error.is_empty()));
    }
    runs.sort();
    let named = |capture: &str, host: &str, good| (capture.to_owned(), host.to_owned(), good);
    assert_eq!(
        runs,
        [
            named("h1/a.pcap", "h1", true),
            named("h1/later/b.pcap", "h1b", true),
            named("h2.day1.pcap", "h2", true),
            named("h3.noise.pcap", "h3", false),
        ]
    );
    // A second run leaves the same files, byte by byte.
    let before = files(&ds);
    dataset(folder.path(), &arguments);
    assert!(before == files(&ds), "the files differ");
    // Captures that were analysed are passed over, and the one that failed is tried again.
    let resumed = dataset(
        folder.path(),
        &[&arguments[..], &["--resume", "--manifest"]].concat(),
    );
    let lines: Vec<&str> = resumed.stdout.lines().collect();
    assert!(
        lines.len() == 1 && lines[0].contains("h3.noise.pcap"),
        "{resumed:?}"
    );
    // The capture comes after all: its rows take the place of the error.
    fs::write(raw.join("h3.noise.pcap"), Capture::named("rnr").bytes()).unwrap();
    let mended = dataset(folder.path(), &[&arguments[..], &["--resume"]].concat());
    assert_eq!(mended.code, Some(0), "{mended:?}");
}

#[cfg(feature = "live")]
#[test]
fn a_capture_that_takes_too_long_is_a_row_with_its_error() {
    let folder = tempdir().unwrap();
    raw(folder.path());
    let mapped = dataset(
        folder.path(),
        &[
            "map",
            "raw/h1/later",
            "-o",
            "ds",
            "--tries",
            "2",
            "--timeout",
            "1us",
            "--manifest",
        ],
    );
    assert_eq!(mapped.code, Some(2), "{mapped:?}");
    let manifest = mapped.json();
    assert!(
        manifest["error"].as_str().unwrap().contains("took longer"),
        "{manifest}"
    );
    let ds = folder.path().join("ds");
    assert_eq!(files(&ds).len(), 1, "{:?}", files(&ds).keys());
    let run = read_file(&table_files(&ds, "run")[0]).unwrap();
    assert_eq!(json!(texts(&run, "error")), json!([manifest["error"]]));
    // The next mapping has time.
    let mapped = dataset(folder.path(), &["map", "raw/h1/later", "-o", "ds", "--resume"]);
    assert_eq!(mapped.code, Some(0), "{mapped:?}");
    assert_eq!(table_files(&ds, "run").len(), 1);
}

#[cfg(feature = "live")]
#[test]
fn a_capture_whose_process_is_killed_each_time_is_a_row_with_its_error() {
    use std::process::Stdio;
    let folder = tempdir().unwrap();
    raw(folder.path());
    let mut command = command(folder.path());
    let arguments = [
        "dataset",
        "map",
        "raw",
        "-o",
        "ds",
        "--jobs",
        "1",
        "--tries",
        "2",
        "--manifest",
    ];
    let child = command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = child.id();
    let output = std::thread::spawn(move || child.wait_with_output().unwrap());
    let mut killed = 0;
    while !output.is_finished() {
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let mut all: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
        // Children of other threads of the mapping.
        for task in fs::read_dir(format!("/proc/{id}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().map(str::to_owned));
        }
        for child in all {
            let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
            killed += u32::from(rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok());
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    let output = output.join().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let ended: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(ended.len(), 3, "{lines}");
    assert!(
        killed >= 2 && lines.contains("ended by signal 9"),
        "{killed} were killed: {lines}"
    );
    let ds = folder.path().join("ds");
    assert_eq!(table_files(&ds, "run").len(), 3);
    // Nothing is lost: the next mapping does what is missing.
    let mapped = dataset(folder.path(), &["map", "raw", "-o", "ds", "--resume"]);
    assert_eq!(mapped.code, Some(0), "{mapped:?}");
    let errors: Vec<String> = table_files(&ds, "run")
        .iter()
        .flat_map(|path| texts(&read_file(path).unwrap(), "error"))
        .collect();
    assert_eq!(errors, ["", "", ""]);
    let temporary = files(&ds)
        .into_keys()
        .filter(|path| path.contains(".tmp"))
        .count();
    assert_eq!(temporary, 0, "{:?}", files(&ds).keys());
}

#[cfg(feature = "live")]
#[test]
fn compacted_days_have_the_same_rows_in_order() {
    let folder = tempdir().unwrap();
    raw(folder.path());
    let ds = folder.path().join("ds");
    assert_eq!(dataset(folder.path(), &["map", "raw", "-o", "ds"]).code, Some(0));
    let before = views(&ds);
    let compacted = dataset(folder.path(), &["compact", "ds", "--to", "2099-12-31"]).good();
    assert!(compacted.stdout.contains(" runs, "), "{compacted:?}");
    assert!(before == views(&ds), "rows differ");
    for table in TABLES {
        for path in table_files(&ds, table) {
            assert!(is_part(&path), "{}", path.display());
            let data = read_file(&path).unwrap();
            let times = ["time_ns", "first_time_ns", "start_time_ns"]
                .iter()
                .find_map(|name| data.column(name));
            if let Some(ColumnValues::I64(times)) = times {
                assert!(times.is_sorted(), "{}", path.display());
            }
        }
    }
    // Nothing is left to do; a day that has not come is left alone.
    let compacted = files(&ds);
    dataset(folder.path(), &["compact", "ds", "--to", "2099-12-31"]).good();
    assert!(compacted == files(&ds), "the files differ");
    // Runs that are compacted are in the dataset. Analysed again, they are seen once all the same, and the next compaction removes the copies.
    let resumed = dataset(
        folder.path(),
        &["map", "raw", "-o", "ds", "--resume", "--manifest"],
    )
    .good();
    assert_eq!(resumed.stdout, "");
    dataset(folder.path(), &["map", "raw", "-o", "ds"]).good();
    assert!(before == views(&ds), "rows differ");
    dataset(folder.path(), &["compact", "ds", "--to", "2099-12-31"]).good();
    assert!(compacted == files(&ds), "the files differ");
    // A run that comes later gets a part of its own.
    fs::write(
        folder.path().join("raw/h1/c.pcap"),
        Capture::named("read_bw").bytes(),
    )
    .unwrap();
    dataset(folder.path(), &["map", "raw", "-o", "ds", "--resume"]).good();
    let before = views(&ds);
    dataset(folder.path(), &["compact", "ds", "--to", "2099-12-31"]).good();
    assert!(before == views(&ds), "rows differ");
    assert!(table_files(&ds, "run").iter().all(|path| is_part(path)));
}

#[cfg(feature = "live")]
#[test]
fn a_killed_compaction_shows_each_run_once() {
    use std::process::Stdio;
    let folder = tempdir().unwrap();
    raw(folder.path());
    let ds = folder.path().join("ds");
    let compact = ["dataset", "compact", "ds", "--to", "2099-12-31"];
    let started = std::time::Instant::now();
    dataset(folder.path(), &["map", "raw", "-o", "ds"]).good();
    let before = views(&ds);
    let mut whole = started.elapsed() / 4;
    let mut interrupted = 0;
    for round in 0..12_u32 {
        let begun = std::time::Instant::now();
        let mut child = command(folder.path())
            .args(compact)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while begun.elapsed() < whole * round / 12 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        interrupted += u32::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
        assert!(before == views(&ds), "round {round}: rows differ");
        // Once it is done, it starts over.
        if table_files(&ds, "run").iter().all(|path| is_part(path)) && round < 8 {
            whole = begun.elapsed();
            fs::remove_dir_all(&ds).unwrap();
            dataset(folder.path(), &["map", "raw", "-o", "ds"]).good();
        }
    }
    assert!(interrupted > 0, "none was killed in the middle");
    dataset(folder.path(), &compact[1..]).good();
    assert!(before == views(&ds), "rows differ");
    assert!(files(&ds).into_keys().all(|path| !path.contains(".tmp")));
}

/// A fleet whose truth is known: eight hosts, each writes to each, cables that lose packets, a queue that marks, clocks that differ by seconds, and a host
/// whose capture was rotated in the middle.
#[cfg(all(feature = "live", feature = "sim"))]
const FLEET: &str = r#"
title = "a fleet: all to all"
seed = 11
duration = "6ms"

[network]
hosts = 8
rate = "25Gbps"
delay = "2us"

[switch]
kmin = "20KB"
kmax = "400KB"
pmax = 0.1

[nic]
mtu = 1024
ack_every = 8
timeout = "500us"

[[flow]]
from = "h1..h8"
to = "h1..h8"
message = "32KiB"
interval = "400us"
count = 8
jitter = "50us"

[[impairment]]
from = "leaf1"
to = "h3"
loss = 0.004

[[impairment]]
from = "h5"
to = "leaf1"
loss = 0.004

[[tap]]
at = "h1"
name = "h1-first"
until = "3ms"
snaplen = 96

[[tap]]
at = "h1"
name = "h1-second"
from = "3ms"
snaplen = 96
"#;

/// Counts of a hop: matched, marked, lost.
#[cfg(all(feature = "live", feature = "sim"))]
type HopCounts = BTreeMap<(i64, String, String), [i64; 3]>;

#[cfg(all(feature = "live", feature = "sim"))]
fn integers(data: &TableData, column: &str) -> Vec<i64> {
    match data.column(column) {
        Some(ColumnValues::I64(values)) => values.iter().map(|value| value.unwrap_or_default()).collect(),
        Some(ColumnValues::I32(values)) => values
            .iter()
            .map(|value| i64::from(value.unwrap_or_default()))
            .collect(),
        other => panic!("{column}: {other:?}"),
    }
}

/// Host of a capture by its key, `h1/first.pcapng`.
#[cfg(all(feature = "live", feature = "sim"))]
fn host(key: &str) -> String {
    key.split('/').next().unwrap().to_owned()
}

/// The hops of a dataset in the layout of fleets, summed up by flow and hosts, from `hops` and from `hop_timeline`.
#[cfg(all(feature = "live", feature = "sim"))]
fn hop_counts(ds: &Path) -> [HopCounts; 2] {
    let mut taps = BTreeMap::new();
    for path in table_files(ds, "taps") {
        let data = read_file(&path).unwrap();
        let (runs, inputs, numbers) = (
            texts(&data, "run_id"),
            texts(&data, "input"),
            integers(&data, "tap"),
        );
        for row in 0..data.rows {
            taps.insert((runs[row].clone(), numbers[row]), host(&inputs[row]));
        }
    }
    [
        ("hops", ["matched", "marked", "lost"]),
        ("hop_timeline", ["arrived", "marked", "lost"]),
    ]
    .map(|(table, columns)| {
        let mut found = HopCounts::new();
        for path in table_files(ds, table) {
            let data = read_file(&path).unwrap();
            let (runs, flows) = (texts(&data, "run_id"), integers(&data, "flow_id"));
            let (from, to) = (integers(&data, "from_tap"), integers(&data, "to_tap"));
            let counts = columns.map(|column| integers(&data, column));
            for row in 0..data.rows {
                let place = |tap: i64| taps[&(runs[row].clone(), tap)].clone();
                let hop = found
                    .entry((flows[row], place(from[row]), place(to[row])))
                    .or_default();
                for (sum, counts) in hop.iter_mut().zip(&counts) {
                    *sum += counts[row];
                }
            }
        }
        found
    })
}

#[cfg(all(feature = "live", feature = "sim"))]
#[expect(clippy::too_many_lines, reason = "one fleet, simulated once")]
#[test]
fn the_second_pass_finds_what_one_run_over_all_finds() {
    use std::fmt::Write as _;
    let folder = tempdir().unwrap();
    let mut scenario = FLEET.to_owned();
    // Clocks of hosts without PTP or NTP: up to seconds apart.
    // The simulation starts at midnight: none is behind, or its capture would begin on the day before.
    let offsets: [i64; 8] = [
        1_500_000_000,
        3_500_000_000,
        0,
        1_500_040_000,
        2_200_000_000,
        3_000,
        1_500_000_000,
        2_734_567_890,
    ];
    scenario = scenario.replace(
        "at = \"h1\"",
        &format!("at = \"h1\"\nclock_offset_ns = {}", offsets[0]),
    );
    for (place, offset) in offsets.iter().enumerate().skip(1) {
        write!(
            scenario,
            "\n[[tap]]\nat = \"h{}\"\nsnaplen = 96\nclock_offset_ns = {offset}\n",
            place + 1
        )
        .unwrap();
    }
    fs::write(folder.path().join("fleet.toml"), scenario).unwrap();
    run(
        folder.path(),
        [
            "simulate",
            "fleet.toml",
            "-o",
            "all.pcapng",
            "--truth",
            "truth.json",
        ],
    )
    .good();
    let mut keys = Vec::new();
    for (file, key) in [("h1-first", "h1/first"), ("h1-second", "h1/second")]
        .into_iter()
        .map(|(file, key)| (file.to_owned(), key.to_owned()))
        .chain((2..=8).map(|host| (format!("h{host}"), format!("h{host}/only"))))
    {
        let to = folder.path().join(format!("raw/{key}.pcapng"));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(folder.path().join(format!("all-{file}.pcapng")), to).unwrap();
        keys.push(format!("{key}.pcapng"));
    }
    let mapped = dataset(folder.path(), &["map", "raw", "-o", "ds", "--manifest"]);
    assert_eq!(mapped.code, Some(0), "{mapped:?}");
    let day = serde_json::from_str::<Value>(mapped.stdout.lines().next().unwrap()).unwrap()["date"]
        .as_str()
        .unwrap()
        .to_owned();

    // One run over all is what the groups are held to.
    let mut all = command(&folder.path().join("raw"));
    all.args(&keys)
        .args(["--layout", "fleet", "-o", "../one", "--bin", "1ms"]);
    ran(&mut all).good();
    let [one, one_by_bin] = hop_counts(&folder.path().join("one"));
    assert_eq!(one, one_by_bin, "the timeline's sums are the hops");
    // Every pair of hosts has two flows, there and back, and a hop for each.
    assert!(one.len() >= 8 * 7, "{}", one.len());

    // The truth: losses between the two hosts' taps, of packets that are retransmitted.
    let truth: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("truth.json")).unwrap()).unwrap();
    let mut losses: BTreeMap<i64, i64> = BTreeMap::new();
    for loss in truth["losses"].as_array().unwrap() {
        // A loss at the end of the simulation was not repaired any more: the taps show nothing of it.
        let again = truth["retransmissions"].as_array().unwrap().iter();
        let mut again =
            again.filter(|again| again["flow_id"] == loss["flow_id"] && again["psn"] == loss["psn"]);
        if loss["kind"] == "request" && again.any(|again| again["time"].as_u64() > loss["time"].as_u64()) {
            let flow = i64::from_str_radix(loss["flow_id"].as_str().unwrap(), 16).unwrap();
            *losses.entry(flow).or_default() += 1;
        }
    }
    assert!(losses.len() > 5, "{losses:?}");

    let join = |more: &[&str]| {
        let arguments = [&["join", "ds", "raw", "--date", &day][..], more].concat();
        let ran = dataset(folder.path(), &arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    let plan = join(&["--plan"]);
    assert_eq!(plan.lines().count(), 1, "{plan}");
    join(&[]);
    let second = folder.path().join("ds/joined");
    let [grouped, by_bin] = hop_counts(&second);
    assert_eq!(grouped, one, "one group");
    assert_eq!(by_bin, one, "one group, by bin");

    // Cut by destination: the receiver with three senders at most.
    let plan = join(&["--plan", "--group", "4"]);
    assert!(plan.lines().count() >= 8 * 2, "{plan}");
    assert!(plan.lines().all(|line| line.contains(" to 10.0.0.")), "{plan}");
    join(&["--group", "4", "--jobs", "2"]);
    let [cut, by_bin] = hop_counts(&second);
    assert_eq!(cut, by_bin, "the timeline's sums are the hops");
    assert_eq!(
        cut.keys().collect::<Vec<_>>(),
        one.keys().collect::<Vec<_>>(),
        "the same hops"
    );
    let total = |hops: &HopCounts, at: usize| hops.values().map(|counts| counts[at]).sum::<i64>();
    println!(
        "matched, marked, lost: {:?} in one run, {:?} in groups",
        [0, 1, 2].map(|at| total(&one, at)),
        [0, 1, 2].map(|at| total(&cut, at))
    );
    assert_eq!(cut, one, "cut by destination");

    let mut by_flow: BTreeMap<i64, i64> = BTreeMap::new();
    for ((flow, _, _), counts) in &one {
        *by_flow.entry(*flow).or_default() += counts[2];
    }
    // Answers that were lost are no packets that are retransmitted.
    for path in table_files(&second, "hops") {
        let data = read_file(&path).unwrap();
        let answers = integers(&data, "flow_id")
            .into_iter()
            .zip(integers(&data, "answers_lost"));
        for (flow, lost) in answers {
            *by_flow.entry(flow).or_default() -= lost;
        }
    }
    by_flow.retain(|_, lost| *lost > 0);
    assert_eq!(by_flow, losses, "the losses of the simulation");

    // A second time it leaves the same groups.
    let before: Vec<String> = files(&second).into_keys().collect();
    join(&["--group", "4"]);
    assert_eq!(before, files(&second).into_keys().collect::<Vec<_>>());
}
