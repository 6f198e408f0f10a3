//! The live screen in a terminal, tmux's: what keys do to it, and what is left of the terminal however a run ends.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::{TempDir, tempdir};

use crate::captures::{Capture, root};
use crate::command::{command, document, flows, run, total};
use crate::live::{Net, skip, whole};

/// Everything that is waited for comes within this time, on slow machines, too.
const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal in which the command runs. Before and after it the terminal's settings are noted.
struct Tmux {
    socket: String,
    folder: TempDir,
}

impl Tmux {
    /// Starts the command in a terminal of this size; `None`, aloud, where that is not possible.
    fn start(size: (u16, u16), variables: &[(&str, &str)], arguments: &[&str]) -> Option<Self> {
        Self::start_by(size, &[], variables, arguments)
    }

    /// Starts another program that becomes the command.
    fn start_by(
        size: (u16, u16),
        prefix: &[&str],
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let tmux = Self {
            socket: format!("roce-{}-{number}", std::process::id()),
            folder: tempdir().unwrap(),
        };
        let outside = command(tmux.folder.path());
        let mut inside = Command::new("tmux");
        for (name, value) in outside.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        inside
            .current_dir(tmux.folder.path())
            .env_remove("TMUX")
            .env("RUST_BACKTRACE", "0")
            .envs(variables.iter().copied())
            .args(["-L", &tmux.socket, "-f", "/dev/null", "-u", "new-session", "-d"])
            .args(["-x", &columns, "-y", &rows])
            .args(["sh", "-c"])
            .arg("stty -a >before; \"$@\" 2>errors; echo $? >code; stty -a >after; cat errors; echo AGAIN THE SHELL; read line")
            .arg("sh")
            .args(prefix)
            .arg(env!("CARGO_BIN_EXE_roce-analyze"))
            .args(arguments);
        match inside.output() {
            Ok(output) if output.status.success() => Some(tmux),
            Ok(output) => {
                skip(&format!(
                    "tmux: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                ));
                None
            }
            Err(error) => {
                skip(&format!("`tmux` does not start: {error}"));
                None
            }
        }
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-L", &self.socket, "-u"])
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The screen, once the condition is true for it.
    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} does not come:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn shows(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// The command's process, while it runs.
    fn running(&self) -> Option<Pid> {
        let shell = self.tmux(&["list-panes", "-F", "#{pane_pid}"]);
        let shell = shell.trim();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).ok()?;
        let child = children.split_whitespace().next()?.parse().ok()?;
        Pid::from_raw(child).filter(|child| is_ours(*child))
    }

    fn process(&self) -> Pid {
        self.running().expect("the command runs")
    }

    /// The command has ended: its exit code. The terminal is what it was, and shows what there was, and the command's last words.
    fn ended(&self) -> (i32, String) {
        let screen = self.shows("AGAIN THE SHELL");
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap();
        assert_eq!(read("after"), read("before"), "the terminal's settings");
        let state = self.tmux(&[
            "display-message",
            "-p",
            "alternate #{alternate_on}, cursor #{cursor_flag}",
        ]);
        assert_eq!(state.trim(), "alternate 0, cursor 1", "{screen}");
        (read("code").trim().parse().unwrap(), screen)
    }
}

/// True if this process is the command, and runs.
fn is_ours(process: Pid) -> bool {
    let program = fs::read_link(format!("/proc/{process}/exe"));
    program.is_ok_and(|program| program == Path::new(env!("CARGO_BIN_EXE_roce-analyze")))
}

/// True if it ends within this time.
fn ends(process: Pid, within: Duration) -> bool {
    let begun = Instant::now();
    while is_ours(process) {
        if begun.elapsed() > within {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let running = self.running();
        self.tmux(&["kill-server"]);
        // Nothing is left behind, also when a test fails.
        if let Some(process) = running.filter(|process| !ends(*process, Duration::from_secs(2))) {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// A capture with marks and CNPs.
fn marked() -> Capture {
    Capture::named("send_bw_ce_synthetic_cnp")
}

fn path(capture: &Capture) -> String {
    fs::canonicalize(root().join(&capture.path))
        .unwrap()
        .display()
        .to_string()
}

#[test]
fn a_replay_is_looked_at() {
    let capture = marked();
    let Some(tmux) = Tmux::start((120, 40), &[], &["replay", &path(&capture), "--speed", "max"]) else {
        return;
    };
    let ended = tmux.shows("ended");
    let whole = document(tmux.folder.path(), [&path(&capture)]);
    // Every flow of the capture is there.
    for flow in flows(&whole) {
        let text = |name: &str| flow[name].as_str().unwrap().to_owned();
        let qpn = flow["destination_qpn"].as_u64().unwrap();
        let name = format!("{} > {} {qpn:#x}", text("source"), text("destination"));
        assert!(ended.contains(&name), "{name} is not in\n{ended}");
    }
    // The findings are those of the run.
    for finding in whole["findings"].as_array().unwrap().iter().take(1) {
        assert!(ended.contains(finding["id"].as_str().unwrap()), "{ended}");
    }
    tmux.keys(&["r", "r"]);
    tmux.shows("by rate, reversed");
    tmux.keys(&["/"]);
    tmux.keys(&["-l", "src 192.0.2.1"]);
    tmux.shows("filter: src 192.0.2.1_");
    tmux.keys(&["Enter"]);
    tmux.shows("no flow for which this holds: src 192.0.2.1");
    tmux.keys(&["Escape"]);
    tmux.until("all flows", |screen| !screen.contains("192.0.2.1"));
    tmux.keys(&["Down", "Enter"]);
    let detail = tmux.shows("events, the latest first");
    assert!(detail.contains("in flight") && detail.contains(" > "), "{detail}");
    tmux.keys(&["Escape", "?"]);
    tmux.shows("replay twice as fast");
    tmux.tmux(&["resize-window", "-x", "40", "-y", "12"]);
    tmux.shows("40 x 12 is too small");
    tmux.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    tmux.shows("replay twice as fast");
    tmux.keys(&["q"]);
    let (code, screen) = tmux.ended();
    assert_eq!(code, 0, "{screen}");
    // The summary is that of files.
    let text = run(tmux.folder.path(), [path(&capture)]).stdout;
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap();
    let printed = tmux.tmux(&["capture-pane", "-p", "-S", "-1000"]);
    assert!(printed.contains(first.trim_end()), "{first} is not in\n{printed}");
}

/// A replay that stands still until a key moves it.
fn standing_still(variables: &[(&str, &str)]) -> Option<Tmux> {
    let capture = path(&marked());
    Tmux::start((80, 24), variables, &["replay", &capture, "--speed", "0.000001x"])
}

#[test]
fn a_replay_goes_on_by_steps() {
    let Some(tmux) = standing_still(&[]) else { return };
    tmux.shows("0.000001x");
    tmux.keys(&["+"]);
    tmux.shows("0.000002x");
    tmux.until("the first interval", |screen| {
        tmux.keys(&["]"]);
        screen.contains(" > ")
    });
    tmux.keys(&["Space"]);
    let paused = tmux.shows("PAUSED");
    let title = paused.lines().next().unwrap().to_owned();
    tmux.keys(&["Right"]);
    let next = tmux.until("the next interval", |screen| {
        screen.lines().next() != Some(&title)
    });
    assert!(next.contains("PAUSED"));
    tmux.keys(&["Left"]);
    tmux.shows("1 interval back");
    tmux.keys(&["q"]);
    let (code, screen) = tmux.ended();
    assert_eq!(code, 0);
    assert!(screen.contains("it was ended"), "{screen}");
}

#[test]
fn a_replay_begins_paused_when_wanted_and_slow_when_short() {
    let capture = path(&marked());
    let Some(tmux) = Tmux::start((80, 24), &[], &["replay", &capture, "--step"]) else {
        return;
    };
    let paused = tmux.shows("PAUSED");
    assert!(!paused.contains(" > "), "{paused}");
    tmux.until("the first interval", |screen| {
        tmux.keys(&["Right"]);
        screen.contains(" > ")
    });
    // 1.92 s take 38 s at a twentieth of their pace.
    tmux.keys(&["Space"]);
    tmux.shows("0.05x");
    tmux.keys(&["q"]);
    assert_eq!(tmux.ended().0, 0);
    // It needs the screen.
    let refused = run(tmux.folder.path(), ["replay", &capture, "--step"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .starts_with("error: --step needs the screen\nhint: "),
        "{refused:?}"
    );
}

#[test]
fn signals_leave_the_terminal_sane() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let Some(tmux) = standing_still(&[]) else { return };
        tmux.shows("0.000001x");
        kill_process(tmux.process(), signal).unwrap();
        let (code, screen) = tmux.ended();
        assert_eq!(code, 0, "{signal:?}\n{screen}");
    }
    let Some(tmux) = standing_still(&[]) else { return };
    tmux.shows("0.000001x");
    tmux.keys(&["C-c"]);
    assert_eq!(tmux.ended().0, 0);
}

#[test]
fn a_run_that_is_stopped_gives_the_terminal_to_the_shell() {
    // A shell that knows of jobs, and has this one go on when it has stopped.
    let shell = [
        "bash",
        "--norc",
        "-ic",
        "\"$@\"; echo IT HAS STOPPED; fg; exit",
        "bash",
    ];
    let capture = path(&marked());
    let arguments = ["replay", &capture, "--speed", "0.000001x"];
    let Some(tmux) = Tmux::start_by((80, 24), &shell, &[], &arguments) else {
        return;
    };
    tmux.shows("0.000001x");
    tmux.keys(&["C-z"]);
    // Keys that were typed meanwhile may be lost with the change of the terminal's settings.
    tmux.until("the help", |screen| {
        if !screen.contains("replay twice as fast") {
            tmux.keys(&["?"]);
            std::thread::sleep(Duration::from_millis(500));
        }
        screen.contains("replay twice as fast")
    });
    tmux.keys(&["q"]);
    let (code, screen) = tmux.ended();
    assert_eq!(code, 0, "{screen}");
    let printed = tmux.tmux(&["capture-pane", "-p", "-S", "-1000"]);
    assert!(printed.contains("IT HAS STOPPED"), "{printed}");
}

#[test]
fn a_terminal_that_is_gone_ends_the_run() {
    let capture = path(&marked());
    // A replay that stands still, and one that has ended.
    for (speed, shown) in [("0.000001x", "0.000001x"), ("max", "ended")] {
        let Some(tmux) = Tmux::start((80, 24), &[], &["replay", &capture, "--speed", speed]) else {
            return;
        };
        tmux.shows(shown);
        let process = tmux.process();
        tmux.tmux(&["kill-server"]);
        let ended = ends(process, Duration::from_secs(2));
        if !ended {
            kill_process(process, Signal::KILL).unwrap();
        }
        assert!(ended, "{speed}: it goes on without a terminal");
    }
}

/// A live run on the screen, which keeps its packets in `file`, once all of them were sent to it; and how many.
fn watched_live(net: &Net, file: &Path) -> Option<(Tmux, u64)> {
    let arguments = ["live", "-i", "v1", "-w", file.to_str().unwrap()];
    let tmux = Tmux::start_by((100, 24), &net.prefix(), &[], &arguments)?;
    tmux.shows("no RoCE packet yet");
    let frames = whole("send_bw_ce_synthetic_cnp");
    let sent = frames.len() as u64;
    net.send("v0", frames, Some(500));
    tmux.until("the flow", |screen| {
        screen.contains(" > ") && screen.contains("0x11")
    });
    Some((tmux, sent))
}

#[test]
fn a_live_run_is_looked_at() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let Some((tmux, sent)) = watched_live(&net, &folder.path().join("kept.pcapng")) else {
        return;
    };
    let screen = tmux.shows("capture: no loss known");
    assert!(
        screen.contains("live on v1") && screen.contains("running"),
        "{screen}"
    );
    tmux.keys(&["Left"]);
    tmux.shows("PAUSED");
    tmux.keys(&["Space"]);
    tmux.shows("running");
    tmux.keys(&["q"]);
    let (code, screen) = tmux.ended();
    assert_eq!(code, 0, "{screen}");
    // The summary of all that was sent, as without a screen.
    let printed = tmux.tmux(&["capture-pane", "-p", "-S", "-1000"]);
    assert!(
        printed.replace(',', "").contains(&format!("{sent} read")),
        "{printed}"
    );
}

#[test]
fn a_live_run_whose_terminal_is_gone_keeps_its_files_whole() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let file = folder.path().join("kept.pcapng");
    let Some((tmux, sent)) = watched_live(&net, &file) else {
        return;
    };
    let process = tmux.process();
    tmux.tmux(&["kill-server"]);
    let ended = ends(process, Duration::from_secs(5));
    if !ended {
        kill_process(process, Signal::KILL).unwrap();
    }
    assert!(ended, "it goes on without a terminal");
    let kept = document(folder.path(), [&file]);
    assert_eq!(total(&kept, "frames"), sent);
}

#[test]
fn a_panic_leaves_the_terminal_sane() {
    if !cfg!(debug_assertions) {
        return skip("a build without debug assertions panics by no command");
    }
    for (place, code) in [("screen", 0), ("analysis", 2)] {
        let Some(tmux) = standing_still(&[("ROCE_ANALYZE_PANIC", place)]) else {
            return;
        };
        let (ended, screen) = tmux.ended();
        assert!(
            screen.contains(&format!("a panic is requested: {place}")),
            "{screen}"
        );
        assert_eq!(ended, code, "{screen}");
    }
}

#[test]
fn without_a_terminal_there_are_lines() {
    let capture = path(&marked());
    for more in [&["--no-tui"][..], &[]] {
        let arguments = [&["replay", capture.as_str(), "--speed", "max"], more].concat();
        let ran = run(Path::new("."), arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        // The result of the whole run is there as for files.
        let files = run(Path::new("."), [capture.as_str()]).stdout;
        let last = files.trim_end().lines().last().unwrap();
        assert!(ran.stdout.contains(last), "{}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'));
    }
}
