//! Interfaces that vanish while a run captures: the other end of the link is in a network namespace that is removed.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::tempdir;

use super::net::{Net, RunningCommand, skip, text, whole};
use crate::command::{document, lasting, total};

/// A network namespace, and one behind it that is removed when it is dropped: `w1` is in the first, `w0` in the second.
fn linked() -> Option<(Net, Net)> {
    let (net, other) = (Net::new()?, Net::new()?);
    let add = [
        "link",
        "add",
        "w1",
        "type",
        "veth",
        "peer",
        "name",
        "w0",
        "netns",
        other.name(),
    ];
    let up = |net: &Net, name: &str| {
        net.ip(&["link", "set", name, "addrgenmode", "none"])?;
        net.ip(&["link", "set", name, "up"])
    };
    let made = net
        .ip(&add)
        .and_then(|()| up(&net, "w1"))
        .and_then(|()| up(&other, "w0"));
    if let Err(why) = made {
        skip(&why);
        return None;
    }
    Some((net, other))
}

/// A run that captures from `w1` and records into `dir`. It has begun to capture.
fn captures_w1(net: &Net, folder: &Path, dir: &Path) -> RunningCommand {
    let arguments = ["-i", "w1", "--format", "json", "-o", text(dir), "--record"];
    let mut live = net.live(folder, &arguments);
    live.captures_into(&dir.join("recording.pcapng.zst"));
    live
}

/// The kernel removes the links of a namespace some moments behind its last user.
fn vanish(net: &Net, other: Net) {
    drop(other);
    let begun = Instant::now();
    while net.ip(&["link", "show", "w1"]).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(30), "w1 is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_whose_only_interface_vanishes_ends_with_what_it_has() {
    let Some((net, other)) = linked() else { return };
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let live = captures_w1(&net, folder.path(), &dir);
    let frames = whole("rping");
    let sent = frames.len() as u64;
    other.send("w0", frames, Some(2_000));
    vanish(&net, other);
    // No signal: it ends by itself.
    let ran = live.ended();
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("error: w1: "), "{ran:?}");
    let seen = ran.json();
    assert_eq!((total(&seen, "frames"), total(&seen, "frames_lost")), (sent, 0));
    assert!(seen["run"]["inputs"][0]["error"].is_string(), "{}", seen["run"]);
    assert!(dir.join("run.json").exists());
    let replayed = document(folder.path(), ["dir"]);
    assert_eq!(lasting(replayed)["totals"], lasting(seen)["totals"]);
}

#[test]
fn the_other_interfaces_go_on_when_one_vanishes() {
    let Some((net, other)) = linked() else { return };
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let arguments = [
        "-i",
        "v1",
        "-i",
        "w1",
        "--format",
        "json",
        "-o",
        text(&dir),
        "--record",
    ];
    let mut live = net.live(folder.path(), &arguments);
    live.captures_into(&dir.join("recording.pcapng.zst"));
    let frames = whole("rping");
    let sent = frames.len() as u64;
    other.send("w0", frames.clone(), Some(2_000));
    vanish(&net, other);
    net.send("v0", frames, Some(2_000));
    live.signal(Signal::INT);
    let ran = live.ended();
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("w1"), "{ran:?}");
    let seen = ran.json();
    assert_eq!(
        (total(&seen, "frames"), total(&seen, "frames_lost")),
        (2 * sent, 0)
    );
    let at = |name: &str| {
        let taps = seen["taps"].as_array().unwrap();
        taps.iter()
            .find(|tap| tap["interface"] == name)
            .map(|tap| tap["frames"].clone())
    };
    assert_eq!((at("v1"), at("w1")), (Some(sent.into()), Some(sent.into())));
    assert!(fs::exists(dir.join("run.json")).unwrap());
}

/// An interface that is down has no frames, and may come up again.
#[test]
fn an_interface_that_is_set_down_is_waited_for() {
    let Some((net, other)) = linked() else { return };
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let live = captures_w1(&net, folder.path(), &dir);
    let link = |state| net.ip(&["link", "set", "w1", state]).unwrap();
    // Long enough for every look of the reader at the interface.
    let pause = || std::thread::sleep(Duration::from_millis(300));
    let frames = whole("rping");
    let sent = frames.len() as u64;
    other.send("w0", frames.clone(), Some(2_000));
    pause();
    link("down");
    pause();
    link("up");
    other.send("w0", frames, Some(2_000));
    pause();
    link("down");
    pause();
    let begun = Instant::now();
    live.signal(Signal::INT);
    let ran = live.ended();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(total(&ran.json(), "frames"), 2 * sent);
}
