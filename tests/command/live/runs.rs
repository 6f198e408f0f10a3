//! Results of live runs: frames, counts, files and reports, and how runs end.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::tempdir;

use super::net::{Net, as_nobody, results, skip, text, whole};
use crate::captures::Capture;
use crate::command::{document, lasting, total};

#[test]
fn what_was_sent_is_seen_kept_and_replayed() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let (file, dir) = (folder.path().join("kept.pcapng.zst"), folder.path().join("dir"));
    let mut live = net.live(
        folder.path(),
        &[
            "-i",
            "v1",
            "--format",
            "json",
            "-w",
            text(&file),
            "-o",
            text(&dir),
            "--record",
            "--bin",
            "2ms",
        ],
    );
    live.captures_into(&dir.join("recording.pcapng.zst"));
    let frames = whole("write_bw_loss");
    let sent = frames.len() as u64;
    net.send("v0", frames, Some(5_000));
    live.signal(Signal::INT);
    let seen = live.ended().good().json();
    let golden = Capture::named("write_bw_loss").golden();
    assert_eq!((total(&seen, "frames"), total(&seen, "frames_lost")), (sent, 0));
    assert_eq!(total(&seen, "roce_packets"), golden.of("roce_packets"));
    assert_eq!(seen["run"]["inputs"][0]["input"], "v1");
    assert_eq!(seen["taps"][0]["interface"], "v1");

    // The file says the same, and so does the recording, with the options of the run.
    let kept = document(folder.path(), ["kept.pcapng.zst", "--bin", "2ms"]);
    assert_eq!(results(kept), results(seen.clone()));
    let replayed = document(folder.path(), ["dir"]);
    assert_eq!(lasting(replayed), lasting(seen));
}

/// A recording has the text of the configuration: the file may be gone when it is replayed.
#[test]
fn a_recording_keeps_its_configuration() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let (config, dir) = (folder.path().join("c.toml"), folder.path().join("dir"));
    fs::write(&config, "bin = \"3ms\"\n[thresholds]\nincast_senders = 7\n").unwrap();
    let arguments = ["-i", "v1", "--config", "c.toml", "-o", "dir", "--record"];
    let mut live = net.live(folder.path(), &arguments);
    live.captures_into(&dir.join("recording.pcapng.zst"));
    net.send("v0", whole("rping"), Some(2_000));
    live.signal(Signal::INT);
    live.ended().good();
    fs::remove_file(config).unwrap();
    let replayed = document(folder.path(), ["dir"]);
    assert_eq!(replayed["run"]["bin_ns"], 3_000_000);
    assert_eq!(replayed["run"]["options"]["threshold.incast_senders"], "7");
}

#[test]
fn both_ends_of_a_link_are_one_stream() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let mut live = net.live(
        folder.path(),
        &[
            "-i",
            "v0",
            "-i",
            "v1",
            "--format",
            "json",
            "-o",
            text(&dir),
            "--record",
        ],
    );
    live.captures_into(&dir.join("recording.pcapng.zst"));
    let frames = whole("rping");
    let sent = frames.len() as u64;
    net.send("v0", frames, Some(500));
    live.signal(Signal::TERM);
    let seen = live.ended().good().json();
    // Each passes both ends, and in the order of time no stamp goes back.
    assert_eq!(
        (total(&seen, "frames"), total(&seen, "frames_lost")),
        (2 * sent, 0)
    );
    let taps = seen["taps"].as_array().unwrap();
    let interfaces: Vec<&Value> = taps.iter().map(|tap| &tap["interface"]).collect();
    assert_eq!(interfaces, ["v0", "v1"]);
    for tap in taps {
        assert_eq!((&tap["frames"], &tap["out_of_order"]), (&sent.into(), &0.into()));
    }
    let replayed = document(folder.path(), ["dir"]);
    assert_eq!(lasting(replayed), lasting(seen));
}

#[test]
fn what_is_lost_is_told() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let (file, dir) = (folder.path().join("kept.pcapng"), folder.path().join("dir"));
    let mut live = net.live(
        folder.path(),
        &[
            "-i",
            "v0",
            "--format",
            "json",
            "--buffer",
            "64KiB",
            "-w",
            text(&file),
            "-o",
            text(&dir),
            "--record",
        ],
    );
    live.captures_into(&dir.join("recording.pcapng.zst"));
    let frames = whole("write_bw_loss");
    // Each time around with another IPv4 identification (bytes 18 and 19): none is a copy of one before, of which the analysis knows only the
    // latest, by hashes that differ from run to run.
    let mut sent: Vec<Vec<u8>> = frames.iter().cycle().take(200_000).cloned().collect();
    for (round, frames) in (1_u16..).zip(sent.chunks_mut(frames.len())) {
        for frame in frames {
            frame[18..20].copy_from_slice(&round.to_be_bytes());
        }
    }
    net.send("v0", sent, None);
    live.signal(Signal::INT);
    let seen = live.ended().good().json();
    let (frames, lost) = (total(&seen, "frames"), total(&seen, "frames_lost"));
    assert_eq!(frames + lost, 200_000);
    assert!(lost > 0, "a buffer of 64 KiB held all of it");
    assert_eq!(seen["taps"][0]["frames_lost"], lost);
    let kept = document(folder.path(), ["kept.pcapng"]);
    assert_eq!(results(kept), results(seen.clone()));
    let replayed = document(folder.path(), ["dir"]);
    assert_eq!(lasting(replayed), lasting(seen));
}

#[test]
fn lines_come_at_each_interval_and_the_summary_at_the_end() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let file = folder.path().join("kept.pcapng.gz");
    let mut live = net.live(
        folder.path(),
        &[
            "-i",
            "v1",
            "--interval",
            "200ms",
            "--duration",
            "3s",
            "-w",
            text(&file),
        ],
    );
    live.captures_into(&file);
    net.send("v0", whole("write_bw_loss"), Some(2_000));
    let ran = live.ended().good();
    let (lines, summary) = ran.stdout.split_once(" verdict ").expect("a summary");
    assert!(lines.contains("no RoCE packets (0 frames)"), "{lines}");
    assert!(lines.contains("10.77.0.1 > 10.77.0.2 QP 0x"), "{lines}");
    assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
    // Nothing waits for frames that do not come: all packets were shown by then.
    let shown: u64 = lines
        .lines()
        .filter_map(|line| {
            line.get(10..)?
                .split_once(" RoCE packet")?
                .0
                .replace(',', "")
                .parse::<u64>()
                .ok()
        })
        .sum();
    let golden = Capture::named("write_bw_loss").golden();
    assert_eq!(shown, golden.of("roce_packets"), "{lines}");
    assert!(summary.contains("input      v1 (live, "), "{summary}");
}

#[test]
fn files_follow_each_other() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let mut live = net.live(
        folder.path(),
        &[
            "-i",
            "v1",
            "--format",
            "json",
            "-w",
            "kept.pcapng",
            "--rotate",
            "50kB",
        ],
    );
    live.captures_into(&folder.path().join("kept-00001.pcapng"));
    net.send("v0", whole("write_bw_loss"), Some(5_000));
    live.signal(Signal::INT);
    let seen = live.ended().good().json();
    let mut files: Vec<PathBuf> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 2, "{files:?}");
    let kept = document(folder.path(), files);
    assert_eq!(total(&kept, "frames"), total(&seen, "frames"));
    // They are one tap: each goes on where the one before ends.
    assert_eq!(kept["taps"].as_array().unwrap().len(), 1);
    assert_eq!(kept["flows"], seen["flows"]);
}

#[test]
fn a_second_signal_at_once_is_the_same_wish() {
    let Some(net) = Net::new() else { return };
    for signals in [[Signal::INT, Signal::INT], [Signal::INT, Signal::TERM]] {
        let folder = tempdir().unwrap();
        let file = folder.path().join("kept.pcapng");
        let mut live = net.live(folder.path(), &["-i", "v1", "-w", text(&file)]);
        live.captures_into(&file);
        std::thread::sleep(Duration::from_millis(300));
        for signal in signals {
            live.signal(signal);
        }
        let ran = live.ended();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains(" verdict "), "{ran:?}");
    }
}

#[test]
fn an_ordinary_user_with_the_capability_captures_and_gives_it_up() {
    let Some(net) = Net::new() else { return };
    let arguments = ["live", "-i", "v1", "--format", "json", "--duration", "2s"];
    let Some((live, _folder)) = as_nobody(&net, "cap_net_raw+ep", &arguments) else {
        return;
    };
    std::thread::sleep(Duration::from_secs(1));
    let status = fs::read_to_string(format!("/proc/{}/status", live.0.id())).unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:\t"));
    assert_eq!(effective, Some("0000000000000000"), "{status}");
    let frames = whole("rping");
    let count = frames.len() as u64;
    net.send("v0", frames, Some(500));
    let seen = live.ended().good().json();
    assert_eq!(total(&seen, "frames"), count);
}

#[test]
fn a_run_ends_with_its_standard_input() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    // Standard input is /dev/null, which has ended.
    let live = net.live(
        folder.path(),
        &[
            "-i",
            "v1",
            "--format",
            "none",
            "-w",
            "kept.pcapng",
            "--until-stdin-closes",
        ],
    );
    live.ended().good();
    assert!(folder.path().join("kept.pcapng").exists());
    // A start that is never reached.
    let far = ["-i", "v1", "--format", "none", "--from", "+1h"];
    let refused = net.live(folder.path(), &far).ended();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let day = ["-i", "v1", "--format", "none", "--from", "2100-01-01T00:00:00Z"];
    let refused = net.live(folder.path(), &day).ended();
    assert!(
        refused.stderr.contains("a run waits for at most 24"),
        "{refused:?}"
    );
}

#[test]
fn a_filter_takes_some_frames() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let wrong = net
        .live(folder.path(), &["-i", "v1", "--filter", "udp prot 4791"])
        .ended();
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.stderr.contains("v1: the filter cannot be used"),
        "{wrong:?}"
    );
    let file = folder.path().join("kept.pcapng");
    let mut live = net.live(
        folder.path(),
        &[
            "-i",
            "v1",
            "--format",
            "json",
            "-w",
            text(&file),
            "--filter",
            "udp port 4791",
        ],
    );
    live.captures_into(&file);
    let frames = whole("rping");
    let golden = Capture::named("rping").golden();
    // Ethernet, and a type that IEEE 802 keeps for experiments.
    let mut others = vec![vec![2; 60]; 5];
    for frame in &mut others {
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    }
    net.send("v0", others, None);
    net.send("v0", frames, Some(2_000));
    live.signal(Signal::INT);
    let seen = live.ended().good().json();
    assert_eq!(total(&seen, "roce_packets"), golden.of("roce_packets"));
    assert_eq!(total(&seen, "frames"), golden.of("roce_packets"));
}

#[test]
fn a_terminal_that_goes_ends_it_cleanly() {
    // A run that nohup started goes on without a terminal, and so does all that a test starts under nohup.
    if ignores_hangups() {
        return skip("SIGHUP is ignored: the tests were started by nohup");
    }
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let file = folder.path().join("kept.pcapng");
    let mut live = net.live(folder.path(), &["-i", "v1", "-w", text(&file)]);
    live.captures_into(&file);
    let frames = whole("rping");
    let sent = frames.len() as u64;
    net.send("v0", frames, Some(500));
    // As sshd sends it to what it has started, where the connection drops.
    live.signal(Signal::HUP);
    live.ended().good();
    let kept = document(folder.path(), ["kept.pcapng"]);
    assert_eq!((total(&kept, "frames"), total(&kept, "frames_lost")), (sent, 0));
}

/// True if this process was started without SIGHUP: the lowest bit of the signals that it ignores (proc(5)).
fn ignores_hangups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.unwrap() & 1 != 0
}
