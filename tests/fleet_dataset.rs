//! A dataset of many runs (`--layout fleet`): where the files are, what the manifest line says, and which runs a reader sees.

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
        &["--host", "h7", "--run-id", "0cc1", "--capture", "h7/a.pcap"],
    )
    .good();
    let manifest = ran.json();
    // tshark: the first frame is of this day.
    let date = Capture::named("send_bw_ce_gradual").frames()[0].time.0 / 86_400_000_000_000;
    let day = manifest["date"].as_str().unwrap();
    let days: i64 = days_since_epoch(day);
    assert_eq!(days, i64::try_from(date).unwrap());

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
    let first = add(&ds, "send_bw_ce_gradual", &["--host", "h7"]).good();
    let before = files(&ds);
    let second = add(&ds, "send_bw_ce_gradual", &["--host", "h7"]).good();
    assert_eq!(first.stdout, second.stdout);
    assert!(before == files(&ds), "the files differ");
    // Another host, and another option, are other runs.
    add(&ds, "send_bw_ce_gradual", &["--host", "h8"]).good();
    add(&ds, "send_bw_ce_gradual", &["--host", "h7", "--bin", "100us"]).good();
    assert_eq!(table_files(&ds, "run").len(), 3);
}

#[test]
fn hosts_with_colons_are_escaped_as_hive_does_it() {
    let folder = tempdir().unwrap();
    let ds = folder.path().join("ds");
    add(
        &ds,
        "send_bw_ce_gradual",
        &["--host", "fe80::1", "--run-id", "a:b"],
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
        let refused = add(&ds, "send_bw_ce_gradual", &["--host", name]);
        assert_eq!(refused.code, Some(2), "{name}: {refused:?}");
    }
}

#[test]
fn a_capture_that_is_none_is_a_row_with_its_error() {
    let folder = tempdir().unwrap();
    let ds = folder.path().join("ds");
    fs::write(folder.path().join("noise.pcap"), [0x5a; 4096]).unwrap();
    let arguments = ["noise.pcap", "--layout", "fleet", "-o", "ds", "--host", "h7"];
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
        ["cut.pcap", "--layout", "fleet", "-o", "ds", "--host", "h7"],
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
