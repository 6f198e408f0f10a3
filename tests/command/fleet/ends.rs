//! How captures end: interrupted, killed, full, refused; and what is left.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use super::hosts::{Hosts, INTERFACE, found, frames, sha256, wait, wait_for_ends};
use crate::live::skip;

/// Waits until the manifest has the process of each host.
fn wait_for_pids(hosts: &Hosts, dir: &str) {
    wait("all processes are in the manifest", || {
        let manifest = hosts.manifest(dir);
        manifest["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .all(|host| host["pid"].is_u64())
    });
}

#[test]
fn a_killed_controller_leaves_files_and_no_process() {
    let Some(hosts) = Hosts::new(2) else { return };
    let mut running = hosts.started("run", &["--by", "live"]);
    wait_for_pids(&hosts, "run");
    hosts.send(frames(), 4_000);
    running.signal(Signal::KILL);
    running.0.wait().unwrap();
    let manifest = hosts.manifest("run");
    assert_eq!(manifest["state"], "capturing");
    for host in manifest["hosts"].as_array().unwrap() {
        assert_eq!(host["state"], "capturing");
    }
    wait_for_ends(&manifest);

    // A part of a file is here from an earlier transfer: the rest follows.
    let kept: Vec<PathBuf> = found(&hosts.remote(), &|name| name == "capture.pcapng.zst");
    assert_eq!(kept.len(), 2);
    let net = manifest["hosts"][0]["net"].as_str().unwrap();
    let first = kept
        .iter()
        .find(|path| path.to_str().unwrap().contains(&format!("-{net}/")))
        .unwrap();
    let (bytes, hash) = (fs::read(first).unwrap(), sha256(first));
    let local = hosts.path("run").join(format!("h1.{INTERFACE}.pcapng.zst"));
    let part = local.with_file_name(format!("h1.{INTERFACE}.pcapng.zst.part"));
    fs::write(&part, &bytes[..100]).unwrap();

    let collected = hosts.fleet(&["collect", "run"]);
    assert_eq!(collected.code, Some(0), "{collected:?}");
    assert_eq!(sha256(&local), hash);
    assert!(!part.exists());
    let manifest = hosts.manifest("run");
    assert_eq!(manifest["state"], "done");
    for host in manifest["hosts"].as_array().unwrap() {
        assert_eq!(
            (&host["state"], &host["exit_code"]),
            (&"collected".into(), &0.into())
        );
        assert_eq!(host["frames"], frames().len(), "what was captured is kept");
    }
    assert!(!hosts.remote().exists(), "nothing is left on the hosts");
    // Once more: there is nothing to fetch.
    assert_eq!(hosts.fleet(&["collect", "run"]).code, Some(0));
}

#[test]
fn what_is_not_wanted_is_cleaned() {
    let Some(hosts) = Hosts::new(2) else { return };
    let mut running = hosts.started("run", &["--by", "tcpdump"]);
    wait_for_pids(&hosts, "run");
    let busy = hosts.fleet(&["clean", "run"]);
    assert_eq!(busy.code, Some(2), "captures that run are left alone: {busy:?}");
    running.signal(Signal::KILL);
    running.0.wait().unwrap();
    wait_for_ends(&hosts.manifest("run"));
    fs::write(hosts.remote().join("of another"), "").unwrap();
    let cleaned = hosts.fleet(&["clean", "run"]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    assert!(
        cleaned
            .stderr
            .contains("h1: its captures of this run are removed"),
        "{}",
        cleaned.stderr
    );
    let left: Vec<_> = fs::read_dir(hosts.remote())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["of another"], "only what the run has made is removed");
    let gone = hosts.fleet(&["collect", "run"]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(
        gone.stderr.contains("nothing of this run any more"),
        "{}",
        gone.stderr
    );
}

#[test]
fn an_interrupted_run_is_collected() {
    let Some(hosts) = Hosts::new(2) else { return };
    let running = hosts.started("run", &[]);
    hosts.send(frames(), 4_000);
    running.signal(Signal::INT);
    let ran = running.ended();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .contains("interrupted: captures end, and are collected"),
        "{}",
        ran.stderr
    );
    let manifest = hosts.manifest("run");
    assert_eq!(manifest["state"], "done");
    assert_eq!(manifest["hosts"][1]["frames"], frames().len());
}

#[test]
fn a_second_run_on_a_host_is_refused() {
    let Some(hosts) = Hosts::new(1) else { return };
    let running = hosts.started("first", &[]);
    wait_for_pids(&hosts, "first");
    let mut second = hosts.capture("second", &["--duration", "1s"]);
    let refused = crate::command::ran(second.env("USER", "somebody"));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let pid = &hosts.manifest("first")["hosts"][0]["pid"];
    assert!(
        refused.stderr.contains("another fleet capture runs there: by ")
            && refused.stderr.contains(&format!("(process {pid})")),
        "{}",
        refused.stderr
    );
    running.signal(Signal::INT);
    assert_eq!(running.ended().code, Some(0));
}

/// A file system of 1 MB, which is unmounted in the end.
struct Small(PathBuf);

impl Small {
    fn new(path: PathBuf) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "none"])
            .arg(&path)
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            skip("a tmpfs cannot be mounted");
            return None;
        }
        Some(Self(path))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

/// RoCE packets whose payloads nothing compresses: some 3 MB.
fn noise() -> Vec<Vec<u8>> {
    let mut state = 1_u64;
    let mut frames: Vec<Vec<u8>> = frames().into_iter().cycle().take(8_000).collect();
    for frame in &mut frames {
        frame.resize(400, 0);
        for byte in frame.iter_mut().skip(60) {
            // Constants of Knuth's MMIX generator.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
    }
    frames
}

#[test]
fn a_small_disk_ends_the_capture_and_keeps_the_file() {
    let Some(hosts) = Hosts::new(1) else { return };
    let Some(small) = Small::new(hosts.path("small")) else {
        return;
    };
    let folder = small.0.join("fleet");
    let words = |dir: &'static str| {
        [
            "capture",
            "-o",
            dir,
            "--snaplen",
            "384",
            "--by",
            "live",
            "--remote-folder",
        ]
    };
    for (dir, size) in [("run", None), ("full", Some("100MB"))] {
        for name in ["begun", "sent"] {
            let _ = fs::remove_file(hosts.path(name));
        }
        let mut command = hosts.command(&words(dir));
        command.arg(&folder);
        if let Some(size) = size {
            command.args(["--max-size", size]);
        }
        let script = "touch begun; until [ -e sent ]; do sleep 0.02; done";
        let running = crate::live::RunningCommand(command.args(["--", "sh", "-c", script]).spawn().unwrap());
        wait("it begins", || hosts.path("begun").exists());
        hosts.send(noise(), 3_000);
        fs::write(hosts.path("sent"), "").unwrap();
        let ran = running.ended();
        let manifest = hosts.manifest(dir);
        let host = &manifest["hosts"][0];
        assert_eq!(host["state"], "collected", "{ran:?}");
        let bytes = host["files"][0]["bytes"].as_u64().unwrap();
        let kept = host["frames"].as_u64().unwrap();
        assert!((500..8_000).contains(&kept), "{kept} frames, {bytes} bytes");
        if size.is_none() {
            // Nine tenths of the free space, which is a megabyte less the pages of small files: the capture ends
            // by itself before it has more, and is whole.
            assert_eq!((ran.code, &host["stopped"]), (Some(0), &"size".into()), "{ran:?}");
            assert!((800_000..=(1 << 20) / 10 * 9).contains(&bytes), "{bytes}");
            assert!(ran.stderr.contains("ended at its largest size"), "{}", ran.stderr);
        } else {
            // No room: the capture fails, says why, and what it has is here.
            assert_eq!(ran.code, Some(2), "{ran:?}");
            assert!(host["error"].as_str().unwrap().contains("exit code 2"), "{host}");
            assert!(
                ran.stderr.contains("h1: the capture ended with exit code 2"),
                "{}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_second_interruption_leaves_the_files_for_later() {
    let Some(hosts) = Hosts::new(1) else { return };
    let running = hosts.started("run", &[]);
    wait_for_pids(&hosts, "run");
    hosts.send(frames(), 4_000);
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    // Signals of one kind that are pending together are one.
    let mut running = running;
    wait("the run ends", || {
        if running.0.try_wait().unwrap().is_none() {
            running.signal(Signal::INT);
        }
        running.0.try_wait().unwrap().is_some()
    });
    let ran = running.ended();
    if ran.code == Some(0) {
        // It had collected everything before the second one came.
        return;
    }
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("`roce-analyze fleet collect DIR` goes on"),
        "{}",
        ran.stderr
    );
    assert_eq!(hosts.manifest("run")["state"], "incomplete");
    let collected = hosts.fleet(&["collect", "run"]);
    assert_eq!(collected.code, Some(0), "{collected:?}");
    assert_eq!(hosts.manifest("run")["hosts"][0]["frames"], frames().len());
}
