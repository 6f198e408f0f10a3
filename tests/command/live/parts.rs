//! Datasets of live runs, in parts that are whole at every moment.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use super::net::{Net, RunningCommand, text, whole};
use crate::command::{lasting, run, total};

/// A run that has recorded a capture, in parts of 300 ms, into the folder `dir`.
fn in_parts(net: &Net, folder: &TempDir, more: &[&str]) -> RunningCommand {
    let dir = folder.path().join("dir");
    let arguments = [
        "-i",
        "v1",
        "--interval",
        "100ms",
        "--rotate",
        "300ms",
        "-o",
        text(&dir),
        "--record",
    ];
    let mut live = net.live(folder.path(), &[&arguments, more].concat());
    live.captures_into(&dir.join("recording.pcapng.zst"));
    net.send("v0", whole("write_bw_loss"), Some(1_000));
    live
}

#[test]
fn a_killed_run_leaves_whole_parts() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let live = in_parts(&net, &folder, &[]);
    live.signal(Signal::KILL);
    assert_eq!(live.ended().code, None);
    let parts = fs::read_dir(dir.join("timeline"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("part-"))
        .count();
    assert!(parts >= 2, "{parts} parts");
    let table = roce_parquet::read_table(&dir, "timeline").unwrap();
    assert!(table.rows > 100, "{} rows", table.rows);
    assert!(!dir.join("run.json").exists());
    // Frames that were recorded up to then are read, and reported as cut off.
    let replayed = run(folder.path(), ["dir", "--format", "json"]);
    assert_eq!(replayed.code, Some(2), "{replayed:?}");
    assert!(total(&replayed.json(), "frames") > 500);

    // The next run there replaces all of it, also the recording that it does not make.
    let again = net.live(
        folder.path(),
        &["-i", "v1", "--duration", "100ms", "-o", text(&dir), "--overwrite"],
    );
    again.ended().good();
    assert!(dir.join("run.json").exists());
    assert!(!dir.join("recording.pcapng.zst").exists());
    let table = roce_parquet::read_table(&dir, "timeline").unwrap();
    assert_eq!(table.rows, 0);
}

#[test]
fn parts_are_what_a_replay_writes() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let live = in_parts(&net, &folder, &["--format", "json"]);
    live.signal(Signal::INT);
    live.ended().good();
    assert!(dir.join("timeline/part-1.parquet").exists());
    run(folder.path(), ["dir", "-o", "again", "--format", "json"]).good();
    for table in roce_parquet::TABLES {
        if table == "run" {
            continue;
        }
        // A replay is a run of its own: the names of the run are left out.
        let read = |dir: &str| crate::dataset::rows(&folder.path().join(dir), table);
        assert_eq!(read("dir"), read("again"), "{table}");
        // Linux drivers/net/veth.c: the interface counts drops of each queue.
        assert!(table != "samples" || !read("dir").is_empty(), "samples were read");
    }
    let document = |dir: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.path().join(dir).join("run.json")).unwrap()).unwrap()
    };
    assert_eq!(lasting(document("dir")), lasting(document("again")));
}
