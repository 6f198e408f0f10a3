//! Live runs under pressure: nobody reads what they print, or the system gives them little memory. Then packets are lost, each of them is
//! counted, and nothing else happens.
//!
//! `ROCE_PRESSURE_SECONDS=60` makes them as long as that.

use std::fs;
use std::io::{Read, pipe};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::pipe::fcntl_setpipe_size;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::tempdir;

use crate::command::{document, total};
use crate::live::{Net, RunningCommand, skip, text, whole};

/// Packets a second.
const RATE: u32 = 20_000;
/// A run has its queue (64 MiB) and its buffers; beyond that it takes no more, however long nobody reads.
const MAX_MEMORY: u64 = 512 << 20;

/// Little: a run that could have more takes some 45 MB, and with Parquet 100 MB more.
const LITTLE_MEMORY: u64 = if cfg!(feature = "parquet") {
    160 << 20
} else {
    40 << 20
};

/// Duration of the pressure.
fn length() -> Duration {
    let seconds = std::env::var("ROCE_PRESSURE_SECONDS").ok();
    Duration::from_secs(seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(3))
}

/// Sends packets for this time, and returns their number.
fn flood(net: &Net, length: Duration) -> u64 {
    let frames: Vec<Vec<u8>> = whole("write_bw_loss")
        .into_iter()
        .cycle()
        .take(RATE as usize)
        .collect();
    let (begun, mut sent) = (Instant::now(), 0);
    while begun.elapsed() < length {
        net.send("v0", frames.clone(), Some(RATE));
        sent += u64::from(RATE);
    }
    sent
}

/// A number of bytes of /proc/PID/status.
fn memory(running: &RunningCommand, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", running.0.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kilobytes: u64 = line
        .trim_matches([':', '\t', ' '])
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .unwrap();
    kilobytes << 10
}

#[test]
fn what_a_blocked_reader_costs_is_counted() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let file = folder.path().join("kept.pcapng");
    // Lines into a pipe of one page, which nobody reads.
    let (mut ours, theirs) = pipe().unwrap();
    fcntl_setpipe_size(&theirs, 4096).unwrap();
    let arguments = [
        "-i",
        "v1",
        "--interval",
        "10ms",
        "--buffer",
        "256KiB",
        "-w",
        text(&file),
    ];
    let mut live = net.live_to(folder.path(), &arguments, theirs.into());
    live.captures_into(&file);
    let sent = flood(&net, length());
    let peak = memory(&live, "VmHWM");
    assert!(live.0.try_wait().unwrap().is_none(), "it ended while nobody read");
    // Somebody reads: it goes on, and ends as any other.
    let reader = std::thread::spawn(move || {
        let mut printed = String::new();
        ours.read_to_string(&mut printed).unwrap();
        printed
    });
    live.signal(Signal::INT);
    let ended = live.ended().good();
    assert!(ended.stdout.is_empty());
    let printed = reader.join().unwrap();
    assert!(printed.contains(" verdict "), "{printed}");
    let kept = document(folder.path(), ["kept.pcapng"]);
    let (frames, lost) = (total(&kept, "frames"), total(&kept, "frames_lost"));
    said("a blocked reader", sent, &kept, peak);
    assert_eq!(frames + lost, sent);
    assert!(lost > 0, "all of it waited somewhere: {peak} bytes");
    assert!(peak < MAX_MEMORY, "{peak} bytes");
}

/// A group of processes with little memory, by either version of the kernel's control groups; removed when it is dropped.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("roce-{}", std::process::id());
        for (root, limit) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let folder = Path::new(root).join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self(folder);
            if fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        skip("the kernel gives no control group for memory");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn with_little_memory_packets_are_lost_and_counted() {
    let Some(net) = Net::new() else { return };
    let Some(group) = Group::new(LITTLE_MEMORY) else {
        return;
    };
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let arguments = [
        "-i",
        "v1",
        "--format",
        "json",
        "--buffer",
        "4MiB",
        "-o",
        text(&dir),
        "--record",
        "-w",
        "kept.pcapng",
    ];
    // A shell enters the group, and becomes the command. In the network namespace the groups are not to be seen.
    let inside = net.inside(folder.path(), Path::new(env!("CARGO_BIN_EXE_roce-analyze")));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let entered = text(&group.0.join("cgroup.procs")).to_owned();
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo $$ >\"$0\" && exec \"$@\"", &entered])
        .arg(inside.get_program())
        .args(inside.get_args())
        .arg("live")
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut live = RunningCommand(command.spawn().unwrap());
    live.captures_into(&dir.join("recording.pcapng.zst"));
    let sent = flood(&net, length());
    let peak = memory(&live, "VmHWM");
    live.signal(Signal::INT);
    let seen = live.ended().good().json();
    said("little memory", sent, &seen, peak);
    assert_eq!(total(&seen, "frames") + total(&seen, "frames_lost"), sent);
    let kept = document(folder.path(), ["kept.pcapng"]);
    assert_eq!(total(&kept, "frames"), total(&seen, "frames"));
    drop(group);
}

/// Results of a long run, for people.
fn said(what: &str, sent: u64, document: &Value, peak: u64) {
    if std::env::var_os("ROCE_PRESSURE_SECONDS").is_some() {
        use std::io::Write;
        let (frames, lost) = (total(document, "frames"), total(document, "frames_lost"));
        let line = format!(
            "{what}: sent {sent}, seen {frames}, lost {lost}, at most {} MB\n",
            peak >> 20
        );
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
}
