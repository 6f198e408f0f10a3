//! `live` with the probe, over veth pairs. Where the kernel does not take its programs these tests say so, and are skipped.

use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use rustix::process::{Signal, geteuid};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::captures::{Capture, root};
use crate::cli::{refusal, refused};
use crate::command::{Ran, document, flows, lasting, ran, total};
use crate::live::{NOBODY, Net, RunningCommand, as_nobody, for_everybody, results, skip, text, whole};

/// A namespace in which the probe can be opened; `None`, aloud, where it cannot.
fn net() -> Option<Net> {
    let net = Net::new()?;
    let folder = tempdir().unwrap();
    let arguments = [
        "-i",
        "v1",
        "--capture",
        "tc",
        "--duration",
        "50ms",
        "--format",
        "json",
    ];
    let tried = net.live(folder.path(), &arguments).ended();
    if tried.code == Some(0) {
        return Some(net);
    }
    assert!(std::env::var_os("ROCE_PROBE_MUST_RUN").is_none(), "{tried:?}");
    skip(tried.stderr.lines().next().unwrap_or_default());
    None
}

/// A run that captures from `v1` by the classifier, with more arguments: once it does.
fn by_the_classifier(net: &Net, folder: &TempDir, more: &[&str]) -> RunningCommand {
    let dir = folder.path().join("dir");
    let arguments = [
        "-i",
        "v1",
        "--capture",
        "tc",
        "--format",
        "json",
        "-o",
        text(&dir),
        "--record",
    ];
    let mut live = net.live(folder.path(), &[&arguments, more].concat());
    live.captures_into(&dir.join("recording.pcapng.zst"));
    live
}

fn cleanup(net: &Net) -> Ran {
    let folder = tempdir().unwrap();
    net.live(folder.path(), &["--cleanup"]).ended().good()
}

/// The filters of the kernel's traffic control at `v1`.
fn filters(net: &Net) -> String {
    let mut tc = net.inside(Path::new("/"), Path::new("tc"));
    let output = tc
        .args(["filter", "show", "dev", "v1", "ingress"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_classifier_hands_on_what_was_sent() {
    let Some(net) = net() else { return };
    let folder = tempdir().unwrap();
    let file = folder.path().join("kept.pcapng");
    let live = by_the_classifier(&net, &folder, &["-w", text(&file), "--bin", "2ms"]);
    let frames = whole("write_bw_loss");
    net.send("v0", frames, Some(5_000));
    live.signal(Signal::INT);
    let seen = live.ended().good().json();
    // RoCE packets alone, and all of them.
    let golden = Capture::named("write_bw_loss").golden();
    let sent = golden.of("roce_packets");
    assert_eq!((total(&seen, "frames"), total(&seen, "frames_lost")), (sent, 0));
    assert_eq!(total(&seen, "roce_packets"), sent);
    assert_eq!(seen["taps"][0]["interface"], "v1");
    assert_eq!(seen["taps"][0]["out_of_order"], 0);
    // Results of the file: ECN, payloads and answers are within the bytes of a record.
    let of_the_file = document(&root(), [&Capture::named("write_bw_loss").path]);
    let counts = |document: &Value| {
        let count = |flow: &Value| {
            [
                "packets",
                "wire_bytes",
                "payload_bytes",
                "data_packets",
                "ect0",
                "acks",
                "naks",
            ]
            .map(|name| flow[name].as_u64().unwrap())
        };
        flows(document).iter().map(count).collect::<Vec<_>>()
    };
    assert_eq!(counts(&seen), counts(&of_the_file));
    let kept = document(folder.path(), ["kept.pcapng", "--bin", "2ms"]);
    assert_eq!(results(kept), results(seen.clone()));
    assert_eq!(lasting(document(folder.path(), ["dir"])), lasting(seen));
}

/// Totals of a run over frames that are sent into `v1`.
fn totals(net: &Net, capture: &str, frames: &[Vec<u8>]) -> Value {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let arguments = [
        "-i",
        "v1",
        "--capture",
        capture,
        "--format",
        "json",
        "-o",
        text(&dir),
        "--record",
    ];
    let mut live = net.live(folder.path(), &arguments);
    live.captures_into(&dir.join("recording.pcapng.zst"));
    net.send("v0", frames.to_vec(), Some(1_000));
    live.signal(Signal::INT);
    live.ended().good().json()["totals"].clone()
}

#[test]
fn frames_that_lie_about_their_length_count_as_with_libpcap() {
    let Some(net) = net() else { return };
    let mut frames = whole("write_bw_loss");
    frames.truncate(200);
    for frame in frames.iter_mut().step_by(10) {
        // IPv4's total length (RFC 791): more than the frame has.
        frame[16..18].copy_from_slice(&9_000_u16.to_be_bytes());
    }
    let (by_kernel, by_libpcap) = (totals(&net, "tc", &frames), totals(&net, "pcap", &frames));
    assert_eq!(by_kernel["frames"], 200);
    // Results that depend on times differ from run to run.
    for count in [
        "frames",
        "roce_packets",
        "stops",
        "undecodable",
        "flows",
        "data_packets",
        "acks",
        "naks",
        "missing",
        "wire_bytes",
        "payload_bytes",
    ] {
        assert_eq!(by_kernel[count], by_libpcap[count], "{count}");
    }
}

#[test]
fn what_finds_no_room_in_the_ring_buffer_is_told() {
    let Some(net) = net() else { return };
    let folder = tempdir().unwrap();
    let live = by_the_classifier(&net, &folder, &["--buffer", "64KiB"]);
    let frames = whole("write_bw_loss");
    let sent: Vec<Vec<u8>> = frames.iter().cycle().take(50_000).cloned().collect();
    net.send("v0", sent, None);
    live.signal(Signal::INT);
    let seen = live.ended().good().json();
    let (frames, lost) = (total(&seen, "frames"), total(&seen, "frames_lost"));
    assert_eq!(frames + lost, 50_000);
    assert!(lost > 0, "64 KiB held all of it");
    assert_eq!(seen["taps"][0]["frames_lost"], lost);
}

#[test]
fn the_probe_says_what_it_does_not_see_and_leaves_nothing() {
    let Some(net) = net() else { return };
    let folder = tempdir().unwrap();
    let live = by_the_classifier(&net, &folder, &["--probe"]);
    net.send("v0", whole("rping"), Some(1_000));
    live.signal(Signal::TERM);
    let ended = live.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for said in [
        "note: probe: not seen: ",
        "note: probe: the kernel's times are moved by ",
    ] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    assert!(ended.stderr.lines().count() < 10, "{}", ended.stderr);
    let sent = Capture::named("rping").golden().of("roce_packets");
    assert_eq!(total(&ended.json(), "frames"), sent);
    assert_eq!(filters(&net), "");
    assert_eq!(cleanup(&net).stdout, "nothing was left behind\n");
}

#[test]
fn what_a_killed_run_leaves_is_no_harm() {
    let Some(net) = net() else { return };
    let folder = tempdir().unwrap();
    let killed = by_the_classifier(&net, &folder, &[]);
    killed.signal(Signal::KILL);
    assert_eq!(killed.ended().code, None);
    // Before Linux 6.6 its filters are still there; the next run puts its own in their place.
    let folder = tempdir().unwrap();
    let live = by_the_classifier(&net, &folder, &[]);
    net.send("v0", whole("rping"), Some(1_000));
    live.signal(Signal::INT);
    let sent = Capture::named("rping").golden().of("roce_packets");
    assert_eq!(total(&live.ended().good().json(), "frames"), sent);
    assert_eq!(filters(&net), "");
    by_the_classifier(&net, &tempdir().unwrap(), &[]).signal(Signal::KILL);
    cleanup(&net);
    assert_eq!(filters(&net), "");
    assert_eq!(cleanup(&net).stdout, "nothing was left behind\n");
}

#[test]
fn a_user_with_the_capabilities_gives_them_up() {
    let Some(net) = net() else { return };
    let arguments = [
        "live",
        "-i",
        "v1",
        "--capture",
        "tc",
        "--probe",
        "--format",
        "json",
        "--duration",
        "4s",
    ];
    let capabilities = "cap_net_raw,cap_bpf,cap_perfmon,cap_net_admin+ep";
    let Some((mut live, _folder)) = as_nobody(&net, capabilities, &arguments) else {
        return;
    };
    // Bit 12 is CAP_NET_ADMIN: it stays where filters are to be removed.
    let gone = ["CapEff:\t0000000000000000\n", "CapEff:\t0000000000001000\n"];
    assert!(live.captures());
    let status = std::fs::read_to_string(format!("/proc/{}/status", live.0.id())).unwrap();
    assert!(gone.iter().any(|line| status.contains(line)), "{status}");
    net.send("v0", whole("rping"), Some(1_000));
    let ended = live.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let seen = ended.json();
    let sent = Capture::named("rping").golden().of("roce_packets");
    assert_eq!(total(&seen, "frames"), sent);
}

#[test]
fn without_the_capabilities_it_says_how_to_give_them() {
    use std::os::unix::process::CommandExt;
    let (folder, program) = for_everybody();
    let mut command = Command::new(&program);
    command
        .args(["live", "-i", "lo", "--probe"])
        .current_dir(folder.path());
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let message = refused(&ran(&mut command)).replace(text(folder.path()), "DIR");
    assert_snapshot!("probe_without_capabilities", message);
}

#[test]
fn wrong_arguments_of_the_probe() {
    assert_snapshot!("probe_whose", refusal(&["live", "-i", "lo", "--pid", "7"]));
    assert_snapshot!(
        "probe_cgroup",
        refusal(&["live", "-i", "lo", "--probe", "--cgroup", "/no/such"])
    );
    assert_snapshot!("probe_cleanup_alone", refusal(&["live", "-i", "lo", "--cleanup"]));
    if geteuid().is_root() {
        assert_snapshot!("probe_any", refusal(&["live", "-i", "any", "--capture", "tc"]));
        assert_snapshot!(
            "probe_no_device",
            refusal(&["live", "-i", "eth77", "--capture", "tc"])
        );
    } else {
        skip("not root: what cannot be watched is said after which capability is missing");
    }
}
