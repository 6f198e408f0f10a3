//! `live` over veth pairs in network namespaces of their own. Only root can make those: elsewhere these tests say why they are
//! skipped, past the test harness, so that `cargo xtask test` counts them.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use roce_capture::live::Injector;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::captures::{Capture, Record};
use crate::cli::{refusal, refused};
#[cfg(feature = "parquet")]
use crate::command::run;
use crate::command::{Ran, command, document, lasting, ran, total};

/// A user that has no rights.
pub(crate) const NOBODY: u32 = 65_534;

/// Says why a test is not done. The harness keeps what is printed by macros to itself.
pub(crate) fn skip(why: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let line = format!("SKIPPED: {name}: {why}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

/// A network namespace with a pair of interfaces, `v0` and `v1`.
pub(crate) struct Net {
    name: String,
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("`ip` (iproute2) does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("`ip {}`: {told}", arguments.join(" ")))
}

impl Net {
    /// Makes one; `None`, aloud, where that is not possible.
    pub(crate) fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !geteuid().is_root() {
            skip("not root: network namespaces cannot be made");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("roce-{}-{number}", std::process::id());
        if let Err(why) = ip(&["netns", "add", &name]) {
            skip(&why);
            return None;
        }
        let net = Self { name };
        let made = net
            .ip(&[
                "link", "add", "v0", "mtu", "9000", "type", "veth", "peer", "name", "v1", "mtu", "9000",
            ])
            // Without addresses of their own, which they would announce.
            .and_then(|()| net.ip(&["link", "set", "v0", "addrgenmode", "none"]))
            .and_then(|()| net.ip(&["link", "set", "v1", "addrgenmode", "none"]))
            .and_then(|()| net.ip(&["link", "set", "v0", "up"]))
            .and_then(|()| net.ip(&["link", "set", "v1", "up"]));
        if let Err(why) = made {
            skip(&why);
            return None;
        }
        Some(net)
    }

    /// What runs a program inside.
    pub(crate) fn prefix(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.name]
    }

    fn ip(&self, arguments: &[&str]) -> Result<(), String> {
        ip(&[&["-n", &self.name], arguments].concat())
    }

    /// Runs `program` inside.
    pub(crate) fn inside(&self, folder: &Path, program: &Path) -> Command {
        let outside = command(folder);
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.name]).arg(program);
        for (name, value) in outside.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        inside
    }

    /// Starts `live` inside. It goes on as nobody, who may write to the folder.
    pub(crate) fn live(&self, folder: &Path, arguments: &[&str]) -> Running {
        self.live_to(folder, arguments, Stdio::piped())
    }

    /// The same, with another standard output.
    pub(crate) fn live_to(&self, folder: &Path, arguments: &[&str], stdout: Stdio) -> Running {
        use std::os::unix::fs::PermissionsExt;
        let program = Path::new(env!("CARGO_BIN_EXE_roce-analyze"));
        if folder.parent().is_some() {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let mut command = self.inside(folder, program);
        Running(
            command
                .arg("live")
                .args(arguments)
                .stdout(stdout)
                .spawn()
                .unwrap(),
        )
    }

    /// Sends frames out of an interface inside, so many a second at most.
    pub(crate) fn send(&self, device: &'static str, frames: Vec<Vec<u8>>, rate: Option<u32>) {
        let namespace = fs::File::open(format!("/run/netns/{}", self.name)).unwrap();
        let sender = std::thread::spawn(move || {
            move_into_link_name_space(
                std::os::fd::AsFd::as_fd(&namespace),
                Some(LinkNameSpaceType::Network),
            )
            .unwrap();
            let mut injector = Injector::open(device).unwrap();
            let begun = Instant::now();
            for (number, frame) in (0..).zip(&frames) {
                if let Some(rate) = rate {
                    let due = Duration::from_secs(1) * number / rate;
                    std::thread::sleep(due.saturating_sub(begun.elapsed()));
                }
                injector.send(frame).unwrap();
            }
        });
        sender.join().unwrap();
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = ip(&["netns", "del", &self.name]);
    }
}

/// A command that is running, and ended when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until all threads of a live run are there, which is after its rights are given up; false if it ended before.
    pub(crate) fn captures(&mut self) -> bool {
        let begun = Instant::now();
        loop {
            // The main thread, those of the device and the host, and the analysis.
            let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).map_or(0, Iterator::count);
            if tasks >= 4 {
                return true;
            }
            if self.0.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{tasks} threads");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it captures: packets are kept from the moment that its file is there.
    pub(crate) fn captures_into(&mut self, path: &Path) {
        let begun = Instant::now();
        while !path.exists() {
            assert!(begun.elapsed() < Duration::from_secs(30), "no {}", path.display());
            if let Some(status) = self.0.try_wait().unwrap() {
                panic!("ended early: {status}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn ended(mut self) -> Ran {
        use std::io::Read;
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let out = self.0.stdout.take();
        let mut err = self.0.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            err.read_to_string(&mut stderr).unwrap();
            stderr
        });
        if let Some(mut out) = out {
            out.read_to_string(&mut stdout).unwrap();
        }
        Ran {
            code: self.0.wait().unwrap().code(),
            stdout,
            stderr: reader.join().unwrap(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The frames of a capture as they were on the wire; what was cut of their payload is zero.
pub(crate) fn whole(name: &str) -> Vec<Vec<u8>> {
    let records = Capture::named(name).frames();
    let fill = |mut record: Record| {
        record.data.resize(record.original as usize, 0);
        record.data
    };
    records.into_iter().map(fill).collect()
}

/// What a document says of the packets, without the run and the names of inputs.
pub(crate) fn results(mut document: Value) -> Value {
    document["run"].take();
    for tap in document["taps"].as_array_mut().unwrap() {
        tap["input"].take();
    }
    document
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

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
fn a_second_signal_ends_it_at_once() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let file = folder.path().join("kept.pcapng");
    let mut live = net.live(folder.path(), &["-i", "v1", "-w", text(&file)]);
    live.captures_into(&file);
    std::thread::sleep(Duration::from_millis(300));
    live.signal(Signal::INT);
    live.signal(Signal::TERM);
    let ran = live.ended();
    // Of whichever is taken second: 128 and its number.
    assert!(matches!(ran.code, Some(130 | 143)), "{ran:?}");
}

/// A run that has recorded a capture, in parts of 300 ms, into the folder `dir`.
#[cfg(feature = "parquet")]
fn in_parts(net: &Net, folder: &TempDir, more: &[&str]) -> Running {
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
#[cfg(feature = "parquet")]
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
    // What was recorded up to then is read, and told to be cut off.
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
#[cfg(feature = "parquet")]
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
    }
    let document = |dir: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.path().join(dir).join("run.json")).unwrap()).unwrap()
    };
    assert_eq!(lasting(document("dir")), lasting(document("again")));
}

/// The command in a folder that everybody may look into.
pub(crate) fn for_everybody() -> (TempDir, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("roce-analyze");
    fs::copy(env!("CARGO_BIN_EXE_roce-analyze"), &program).unwrap();
    (folder, program)
}

/// The command, run by an ordinary user with capabilities of its file, and the folder that it stands in; `None`, aloud, where files
/// cannot be given any.
pub(crate) fn as_nobody(net: &Net, capabilities: &str, arguments: &[&str]) -> Option<(Running, TempDir)> {
    let (folder, program) = for_everybody();
    let set = Command::new("setcap").arg(capabilities).arg(&program).output();
    if !set.is_ok_and(|output| output.status.success()) {
        skip("`setcap` (libcap2-bin) cannot give a file capabilities here");
        return None;
    }
    let mut command = net.inside(folder.path(), Path::new("setpriv"));
    let user = NOBODY.to_string();
    command
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .arg(&program)
        .args(arguments);
    Some((Running(command.spawn().unwrap()), folder))
}

#[test]
fn without_the_capability_it_says_how_to_give_it() {
    let (folder, program) = for_everybody();
    let mut command = Command::new(&program);
    command.args(["live", "-i", "lo"]).current_dir(folder.path());
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let told = refused(&ran(&mut command)).replace(text(folder.path()), "DIR");
    assert_snapshot!("without_capability", told);
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
fn wrong_arguments_of_live() {
    assert_snapshot!("live_without_device", refusal(&["live"]));
    assert_snapshot!(
        "live_rotate_what",
        refusal(&["live", "-i", "lo", "--rotate", "often"])
    );
    assert_snapshot!(
        "live_buffer_too_small",
        refusal(&["live", "-i", "lo", "--buffer", "1kB"])
    );
    assert_snapshot!("live_record_where", refusal(&["live", "-i", "lo", "--record"]));
    if geteuid().is_root() {
        assert_snapshot!("live_no_device", refusal(&["live", "-i", "eth77"]));
    } else {
        skip("not root: which device is missing is said after which capability is");
    }
}

#[test]
#[cfg(feature = "probe")]
fn help_of_live() {
    let mut command = command(&crate::captures::root());
    command.args(["live", "--help"]).env("COLUMNS", "80");
    assert_snapshot!("live_help", ran(&mut command).good().stdout);
}
