//! Hosts that send without end, or nothing: what is collected of them, and that one signal ends it. Each answers by a script that the
//! inventory's `prefix` names; no namespace is needed.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::hosts::wait;
use crate::command::{command, ran};
use crate::live::RunningCommand;

/// A folder with a run whose only host has named one file of 10 bytes, and answers by `script`.
fn captured_by(script: &str) -> TempDir {
    let folder = tempdir().unwrap();
    let host = json!({
        "name": "h1", "state": "captured", "base": "/nonexistent", "net": "1", "interfaces": ["eth0"],
        "files": [{ "name": "h1.eth0.pcap", "remote": "tcpdump.0.pcap", "bytes": 10, "sha256": null, "is_here": false }],
    });
    let manifest = json!({
        "schema_version": 1, "version": "0", "run": "0123456789abcdef", "state": "incomplete", "begun_ns": 0, "start_ns": 0,
        "duration_ms": 1, "snaplen": 160, "filter": null, "command": null, "hosts": [host],
    });
    fs::create_dir(folder.path().join("run")).unwrap();
    fs::write(folder.path().join("run/fleet.json"), manifest.to_string()).unwrap();
    fs::write(folder.path().join("answer"), script).unwrap();
    let inventory = "[[host]]\nname = \"h1\"\naddress = \"local\"\nprefix = \"sh answer\"\n";
    fs::write(folder.path().join("fabric.toml"), inventory).unwrap();
    folder
}

/// A command that is started, and not waited for.
fn running(folder: &Path, arguments: &[&str]) -> RunningCommand {
    let mut command = command(folder);
    let piped = command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    RunningCommand(piped.spawn().unwrap())
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("run/fleet.json")).unwrap()).unwrap()
}

#[test]
fn a_host_that_sends_without_end_fills_no_disk() {
    // The second one sends more than it named, and ends: it is not asked again.
    for script in ["exec cat /dev/zero", "echo >> asked; head -c 30000000 /dev/zero"] {
        let folder = captured_by(script);
        let ran = ran(command(folder.path()).args(["fleet", "collect", "run"]));
        assert_eq!(ran.code, Some(2), "{script}: {ran:?}");
        let entries = fs::read_dir(folder.path().join("run")).unwrap();
        let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["fleet.json"], "{script}");
        let host = &manifest(folder.path())["hosts"][0];
        assert_eq!(host["state"], "captured", "its files stay there");
        let error = host["error"].as_str().unwrap();
        assert!(
            error.contains("more than the 10 bytes that it may send"),
            "{error}"
        );
        if let Ok(asked) = fs::read(folder.path().join("asked")) {
            assert_eq!(asked, b"\n", "one connection");
        }
    }
}

#[test]
fn one_signal_ends_a_collection_that_waits() {
    let folder = captured_by("touch asked; exec sleep 60");
    let running = running(folder.path(), &["fleet", "collect", "run"]);
    wait("the host is asked", || folder.path().join("asked").exists());
    let begun = Instant::now();
    running.signal(Signal::INT);
    let ran = running.ended();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("nothing more is collected"), "{}", ran.stderr);
    assert_eq!(manifest(folder.path())["state"], "incomplete");
}

#[test]
fn a_command_that_floods_is_given_up() {
    let folder = captured_by("exec yes");
    let begun = Instant::now();
    let ran = ran(command(folder.path()).args(["fleet", "run", "--max-output", "1MB", "--", "true"]));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("h1: it sends more than the 1000000 bytes"),
        "{}",
        ran.stderr
    );
    // Each line of two bytes has the host's name in front.
    assert!(
        (1_000_000..=1_000_000 / 2 * 6).contains(&ran.stdout.len()),
        "{}",
        ran.stdout.len()
    );
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

/// Whoever interrupts may have seen that the command is wrong: no further host is asked.
#[test]
fn nothing_is_begun_behind_a_signal() {
    let folder = captured_by("echo >> asked; exec sleep 60");
    let inventory: Vec<String> = (0..200)
        .map(|host| format!("[[host]]\nname = \"h{host}\"\naddress = \"local\"\nprefix = \"sh answer\"\n"))
        .collect();
    fs::write(folder.path().join("fabric.toml"), inventory.concat()).unwrap();
    let running = running(folder.path(), &["fleet", "run", "--", "true"]);
    // 64 hosts run at once.
    let asked = || fs::read(folder.path().join("asked")).map_or(0, |lines| lines.len());
    wait("the first hosts are asked", || asked() == 64);
    running.signal(Signal::INT);
    let ran = running.ended();
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("h199: "), "{}", ran.stderr);
    assert_eq!(asked(), 64);
}
