//! `live --inventory`: samples of switches in a run, by another process that ends with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use super::net::{NOBODY, Net, text};
use crate::command::run;
use crate::fabric::fixture;

/// Frames in the column PFC3 of `Ethernet0` in the recorded `show pfc counters`.
const PAUSED: f64 = 1_200.0;

/// A folder with an inventory: a recorded switch, and one whose folder is missing.
fn with_inventory() -> TempDir {
    let folder = tempdir().unwrap();
    let leaf = folder.path().join("leaf1");
    fs::create_dir(&leaf).unwrap();
    // Few of its answers: a document has 1,000 samples at most.
    for name in ["show_pfc_counters.txt", "show_lldp_table.txt"] {
        fs::copy(fixture("sonic-leaf").join(name), leaf.join(name)).unwrap();
    }
    let switch = |name: &str, files: &str| {
        format!("[[switch]]\nname = \"{name}\"\nkind = \"sonic\"\nread = \"{files}\"\nevery = \"200ms\"\n")
    };
    let inventory = switch("leaf1", "leaf1") + &switch("leaf9", "missing");
    fs::write(folder.path().join("fabric.toml"), inventory).unwrap();
    folder
}

/// Processes that read the inventory in a folder.
fn readers(folder: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let is_reader = |path: &PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains("fabric samples") && line.contains(text(folder))
    };
    processes.map(|entry| entry.path()).filter(is_reader).collect()
}

/// Waits until there is this number of readers.
#[track_caller]
fn wait_for_readers(folder: &Path, count: usize) -> Vec<PathBuf> {
    let begun = Instant::now();
    loop {
        let found = readers(folder);
        if found.len() == count {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn samples_of_switches_are_in_the_run() {
    let Some(net) = Net::new() else { return };
    let folder = with_inventory();
    let (file, dir) = (folder.path().join("fabric.toml"), folder.path().join("dir"));
    let mut live = net.live(
        folder.path(),
        &[
            "-i",
            "v1",
            "--interval",
            "10s",
            "--format",
            "json",
            "--inventory",
            text(&file),
            "-o",
            text(&dir),
            "--record",
        ],
    );
    live.captures_into(&dir.join("recording.pcapng.zst"));
    let reader = wait_for_readers(folder.path(), 1).remove(0);
    // Three readings at least: each takes place a second after the one before, although the inventory says 200 ms.
    std::thread::sleep(Duration::from_millis(2_500));
    let status = fs::read_to_string(reader.join("status")).unwrap();
    let of = |name: &str| {
        let mut lines = status.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!(
        of("Uid:").split_whitespace().next(),
        Some(NOBODY.to_string().as_str())
    );
    assert_eq!((of("CapEff:"), of("CapBnd:")), ("0".repeat(16), "0".repeat(16)));
    live.signal(Signal::INT);
    let ran = live.ended();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The folder that is missing is said once, and the run goes on.
    let warned = ran
        .stderr
        .lines()
        .filter(|line| line.contains("warning: leaf9: "));
    assert_eq!(warned.count(), 1, "{}", ran.stderr);
    let document = ran.json();
    let samples = document["samples"].as_array().expect("samples in the document");
    let of_port: Vec<&Value> = samples
        .iter()
        .filter(|row| {
            row["node"] == "leaf1"
                && row["object"] == "Ethernet0"
                && row["counter"] == "switch_priority_pfc_received_frames"
                && row["priority"] == 3
        })
        .collect();
    assert!(of_port.len() >= 2, "{of_port:?}");
    for row in &of_port {
        assert_eq!(
            (&row["source"], row["value"].as_f64()),
            (&"switch".into(), Some(PAUSED))
        );
    }
    // A recorded folder does not change. The second reading is one second after the first, by this host's clock.
    assert_eq!(of_port[0]["change"], Value::Null);
    assert_eq!(of_port[1]["change"].as_f64(), Some(0.0));
    let interval = of_port[1]["interval_ns"].as_u64().unwrap();
    assert!((900_000_000..2_000_000_000).contains(&interval), "{interval}");
    assert!(
        samples
            .iter()
            .any(|row| row["node"] == "leaf9" && row["counter"] == "switch_up" && row["value"] == 0.0)
    );
    wait_for_readers(folder.path(), 0);

    // The recording has them, too. It cannot choose an inventory.
    let again = run(folder.path(), ["dir", "--format", "json"]);
    assert!(
        again.stderr.contains("the run had --inventory"),
        "{}",
        again.stderr
    );
    assert_eq!(again.json()["samples"], document["samples"]);
}

#[test]
fn the_reading_process_ends_with_a_killed_run() {
    let Some(net) = Net::new() else { return };
    let folder = with_inventory();
    let file = folder.path().join("fabric.toml");
    let mut live = net.live(
        folder.path(),
        &["-i", "v1", "--format", "none", "--inventory", text(&file)],
    );
    assert!(live.captures());
    wait_for_readers(folder.path(), 1);
    live.signal(Signal::KILL);
    assert_eq!(live.ended().code, None);
    wait_for_readers(folder.path(), 0);
}

#[test]
fn a_reading_process_that_is_killed_is_said_and_reaped() {
    let Some(net) = Net::new() else { return };
    let folder = with_inventory();
    let file = folder.path().join("fabric.toml");
    let mut live = net.live(
        folder.path(),
        &["-i", "v1", "--format", "none", "--inventory", text(&file)],
    );
    assert!(live.captures());
    let reader = wait_for_readers(folder.path(), 1).remove(0);
    let number = reader.file_name().unwrap().to_str().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(number).unwrap(), Signal::KILL).unwrap();
    // A process that has ended stays there until somebody has waited for it.
    let begun = Instant::now();
    while reader.exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{} is left",
            reader.display()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    live.signal(Signal::INT);
    let ran = live.ended();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .contains("the process that reads switches has ended: no more of their samples"),
        "{ran:?}"
    );
}

#[test]
fn mistakes_of_the_inventory_are_errors_at_the_start() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let bad = "[[switch]]\nname = \"leaf1\"\nkind = \"junos\"\n";
    fs::write(folder.path().join("fabric.toml"), bad).unwrap();
    let refused = net
        .live(folder.path(), &["-i", "v1", "--inventory", "fabric.toml"])
        .ended();
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("fabric.toml:3: "), "{}", refused.stderr);
}
