//! Rights of a run that captures or analyses: the table of `docs/internals/rights.md`, compared with the kernel's
//! status of each of its threads, and with attempts to do more.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid};
use tempfile::{TempDir, tempdir};

use crate::captures::{Capture, root};
use crate::command::{command, ran};
use crate::live::{A_MOMENT, Net, RunningCommand, skip, text};

/// Columns of the table that are lines of /proc/PID/status.
const LINES: [&str; 5] = ["Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp"];

/// The rows of the table: a command line, and the values of [`LINES`].
fn table() -> Vec<(String, Vec<String>)> {
    let document = fs::read_to_string(root().join("docs/internals/rights.md")).unwrap();
    let rows = document
        .lines()
        .skip_while(|line| !line.starts_with("| run | Uid |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| {
        row.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
    });
    let rows = cells.map(|mut cells| {
        let run = cells.next().unwrap().trim_matches('`').to_owned();
        (run, cells.take(LINES.len()).collect())
    });
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() >= 8, "{rows:?}");
    rows
}

/// The kernel's status of a thread.
fn status(path: &Path) -> Option<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).ok()?;
    let lines = text.lines().filter_map(|line| line.split_once(":\t"));
    Some(
        lines
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    )
}

/// True if a value of the status is the table's: a user for all four, a number without leading zeros, or what the tester has itself.
fn is_expected(name: &str, expected: &str, found: &str) -> bool {
    let own = status(Path::new("/proc/self/status")).unwrap();
    let short = |value: &str| match value.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    };
    // Before Linux 6.6 classifiers are filters, which are removed at the end (CAP_NET_ADMIN).
    expected.split(" or ").any(|expected| match expected {
        "own" => own[name] == found,
        _ if name == "Uid" => found.split('\t').all(|uid| uid == expected),
        _ => short(found) == expected,
    })
}

/// Waits until all threads of the process have the expected status, and names those that differ.
#[track_caller]
fn becomes(pid: u32, expected: &[String]) {
    let begun = Instant::now();
    loop {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
        let mut others = Vec::new();
        for task in tasks {
            let Some(status) = status(&task.unwrap().path().join("status")) else {
                continue;
            };
            for (name, expected) in LINES.iter().zip(expected) {
                if !is_expected(name, expected, &status[*name]) {
                    others.push(format!(
                        "{}: {name} {} is not {expected}",
                        status["Name"], status[*name]
                    ));
                }
            }
        }
        if others.is_empty() {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{others:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn each_mode_keeps_what_the_table_says_and_no_more() {
    let Some(net) = Net::new() else { return };
    for (run, expected) in table() {
        let folder = tempdir().unwrap();
        let arguments: Vec<&str> = run.split(' ').skip(1).collect();
        if arguments.first() != Some(&"live") {
            continue;
        }
        let mut live = net.live(
            folder.path(),
            &[&arguments[1..], &["--no-tui", "--format", "none"]].concat(),
        );
        if !live.captures() {
            let ended = live.ended();
            assert!(run.contains("tc") || run.contains("--probe"), "{run}: {ended:?}");
            skip(ended.stderr.lines().next().unwrap_or_default());
            continue;
        }
        becomes(live.0.id(), &expected);
        live.signal(Signal::INT);
        let ended = live.ended();
        assert_eq!(ended.code, Some(0), "{run}: {ended:?}");
    }
}

#[test]
fn an_analysis_can_start_nothing_either() {
    for (run, expected) in table() {
        let arguments: Vec<&str> = run.split(' ').skip(1).collect();
        if matches!(arguments.first(), Some(&("live" | "doctor"))) {
            continue;
        }
        // It waits for the capture at its standard input.
        let mut command = command(&root());
        let arguments = arguments
            .iter()
            .map(|argument| if *argument == "CAPTURE" { "-" } else { argument });
        let child = command.args(arguments).stdin(Stdio::piped()).spawn().unwrap();
        becomes(child.id(), &expected);
        drop(RunningCommand(child));
    }
}

/// A command line of `doctor`, in a folder with a recorded host and an `ssh` that never answers.
#[cfg(feature = "live")]
fn doctor(folder: &Path, run: &str) -> Command {
    crate::doctor::story("good", &folder.join("gpu1"));
    fs::create_dir(folder.join("bin")).unwrap();
    let ssh = folder.join("bin/ssh");
    fs::write(&ssh, "#!/bin/sh\nexec sleep 60\n").unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = run.split(' ').skip(1).map(|argument| match argument {
        "DIR" | "NAME" => "gpu1",
        argument => argument,
    });
    let mut command = command(folder);
    let path = std::env::var("PATH").unwrap();
    command
        .args(arguments)
        .env("PATH", format!("{}:{path}", folder.join("bin").display()));
    command
}

#[test]
#[cfg(feature = "live")]
fn doctor_has_the_rights_of_its_user_until_it_has_read() {
    let mut rows = 0;
    for (run, expected) in table() {
        if !run.contains(" doctor ") {
            continue;
        }
        rows += 1;
        let folder = tempdir().unwrap();
        let mut command = doctor(folder.path(), &run);
        // One that only judges waits where its text finds no reader. A page is the smallest pipe.
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        command.args(["--all", "--format", "json"]).stdout(writer);
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        becomes(child.id(), &expected);
        drop((RunningCommand(child), reader));
    }
    assert_eq!(rows, 3);
}

#[test]
#[cfg(feature = "live")]
fn doctor_judges_without_programs_and_sockets() {
    if !cfg!(debug_assertions) {
        skip("a build without debug assertions makes no attempts");
        return;
    }
    for run in [
        "roce-analyze doctor",
        "roce-analyze doctor --read DIR",
        "roce-analyze doctor --host NAME",
    ] {
        let folder = tempdir().unwrap();
        let mut command = doctor(folder.path(), run);
        // This one answers at once, and what it says is no recording.
        fs::write(folder.path().join("bin/ssh"), "#!/bin/sh\necho hostile\n").unwrap();
        let ran = ran(command.env("ROCE_ANALYZE_ATTEMPTS", "1"));
        let ends = attempts(&ran.stderr);
        for (name, end) in &ends {
            assert!(
                OF_FILES.contains(&name.as_str()) || end == "refused",
                "{run}: {name}: {end}"
            );
        }
        assert_eq!(ends.len(), ATTEMPTS, "{run}: {ran:?}");
    }
}

#[test]
fn files_of_options_are_read_without_capabilities() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let theirs = folder.path().join("theirs");
    fs::write(&theirs, "bin = \"2ms\"\n").unwrap();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&theirs, Some(54_321), Some(54_321)).unwrap();
    // Root reads another user's private file by CAP_DAC_OVERRIDE alone.
    assert!(fs::read(&theirs).is_ok());
    for option in ["--config", "--training-log"] {
        let arguments = [&A_MOMENT[..], &[option, text(&theirs)]].concat();
        let ran = net.live(folder.path(), &arguments).ended();
        assert_eq!(ran.code, Some(2), "{option}: {ran:?}");
        assert!(ran.stderr.contains("Permission denied"), "{option}: {ran:?}");
    }
}

/// Attempts that a build with debug assertions makes (`analyzer/cli/src/sandbox/attempts.rs`).
pub(crate) const ATTEMPTS: usize = 56;

/// Attempts that a process without Landlock makes with the rights of its user.
const OF_FILES: [&str; 13] = [
    "read /etc/shadow",
    "read /etc/passwd",
    "read its own file",
    "read around",
    "read its parent",
    "list /",
    "write /etc",
    "write its own file",
    "write around",
    "write memory",
    "write /tmp",
    "make a folder",
    "move",
];

/// Results of the attempts, by name, in the command's messages.
fn attempts(stderr: &str) -> BTreeMap<String, String> {
    let said = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("warning: attempt: "));
    let said = said.filter_map(|line| line.split_once(": "));
    said.map(|(name, end)| (name.to_owned(), end.to_owned()))
        .collect()
}

/// Runs `live` for a moment with attempts, also on a file of its own user outside of its folder.
fn tried(net: &Net, more: &[&str]) -> BTreeMap<String, String> {
    let [folder, elsewhere] = [tempdir().unwrap(), tempdir().unwrap()];
    for path in [folder.path(), elsewhere.path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    // A file of the user as whom the run goes on.
    let own = elsewhere.path().join("own");
    fs::write(&own, "kept").unwrap();
    std::os::unix::fs::chown(&own, Some(65_534), Some(65_534)).unwrap();
    let mut command = net.inside(folder.path(), Path::new(env!("CARGO_BIN_EXE_roce-analyze")));
    command
        .arg("live")
        .args(A_MOMENT)
        .args(more)
        .env("ROCE_ANALYZE_ATTEMPTS", &own);
    let ran = ran(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read(&own).unwrap(), b"kept");
    attempts(&ran.stderr)
}

#[test]
fn attempts_to_do_more_are_refused() {
    if !cfg!(debug_assertions) {
        skip("a build without debug assertions makes no attempts");
        return;
    }
    let Some(net) = Net::new() else { return };
    for more in [
        &[][..],
        &["-o", "dir", "--record"],
        &["-w", "kept.pcapng", "--rotate", "1GB"],
    ] {
        let ends = tried(&net, more);
        assert_eq!(ends.len(), ATTEMPTS, "{ends:?}");
        assert!(ends.values().all(|end| end == "refused"), "{more:?}: {ends:?}");
    }
    // Without the sandbox root can do most of it: the results to compare with.
    let ends = tried(&net, &["--no-sandbox"]);
    for name in ["read /etc/shadow", "write /etc", "start a program", "udp", "tcp"] {
        assert_eq!(ends[name], "possible", "{ends:?}");
    }
}

#[test]
fn an_analysis_starts_no_program_and_opens_no_socket() {
    if !cfg!(debug_assertions) {
        skip("a build without debug assertions makes no attempts");
        return;
    }
    let path = Capture::named("rping").path;
    let mut command = command(&root());
    command
        .arg(path)
        .args(["--format", "none"])
        .env("ROCE_ANALYZE_ATTEMPTS", "1");
    let ran = ran(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ends = attempts(&ran.stderr);
    for (name, end) in &ends {
        assert!(
            OF_FILES.contains(&name.as_str()) || end == "refused",
            "{name}: {end}"
        );
    }
    assert_eq!(ends.len(), ATTEMPTS, "{ends:?}");
}

/// A run of root's with an output folder, as the environment and options have it: its folder and what it said.
fn writes(
    net: &Net,
    variables: &[(&str, &str)],
    rights: u32,
    more: &[&str],
) -> (TempDir, Option<i32>, String) {
    let folder = tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(rights)).unwrap();
    let mut command: Command = net.inside(folder.path(), Path::new(env!("CARGO_BIN_EXE_roce-analyze")));
    command.arg("live").args(A_MOMENT).args(["-o", "dir", "--record"]);
    let ran = ran(command.args(more).envs(variables.iter().copied()));
    // The files that were written depend on the features of the build.
    let lines = ran
        .stderr
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("wrote: "));
    (folder, ran.code, lines.collect())
}

#[test]
fn output_belongs_to_whom_the_run_goes_on_as() {
    let Some(net) = Net::new() else { return };
    let owner = |folder: &TempDir| {
        let dir = fs::metadata(folder.path().join("dir")).unwrap();
        let file = fs::metadata(folder.path().join("dir/recording.pcapng.zst")).unwrap();
        assert_eq!((dir.uid(), dir.gid()), (file.uid(), file.gid()));
        (dir.uid(), dir.gid())
    };
    let sudo = [("SUDO_UID", "1"), ("SUDO_GID", "2")];
    let (folder, code, said) = writes(&net, &sudo, 0o777, &[]);
    assert_eq!((code, said.as_str(), owner(&folder)), (Some(0), "", (1, 2)));
    // The command line takes precedence; users without a name are numbers.
    let (folder, code, said) = writes(&net, &sudo, 0o777, &["--user", "54321"]);
    assert_eq!(
        (code, said.as_str(), owner(&folder)),
        (Some(0), "", (54_321, 54_321))
    );
    let (folder, code, said) = writes(&net, &[], 0o777, &["--user", "nobody"]);
    assert_eq!((code, said.as_str(), owner(&folder).0), (Some(0), "", 65_534));
    // Nobody else can enter root's folder: it goes on as root, and says so.
    let (folder, code, said) = writes(&net, &[], 0o700, &[]);
    assert_eq!((code, owner(&folder)), (Some(0), (0, 0)));
    assert!(said.contains("continues as root, without capabilities"), "{said}");
    // A user that was named and cannot write is refused before anything is captured, and nothing is left.
    let (folder, code, said) = writes(&net, &[], 0o700, &["--user", "1"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("dir: user 1 cannot write there\nhint: "), "{said}");
    assert!(!folder.path().join("dir").exists());
}

#[test]
fn wrong_users_are_refused() {
    let live = |more: &[&str]| {
        let mut command = command(&root());
        ran(command.args(["live", "-i", "lo"]).args(more))
    };
    if geteuid().is_root() {
        let ran = live(&["--user", "no-such-user"]);
        assert_eq!(ran.code, Some(2));
        assert!(
            ran.stderr
                .contains("--user no-such-user: /etc/passwd has no such user"),
            "{}",
            ran.stderr
        );
    } else {
        let ran = live(&["--user", "0"]);
        assert!(
            ran.stderr.contains("only root can become another user"),
            "{}",
            ran.stderr
        );
    }
    let ran = live(&["--user", "1", "--no-sandbox"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn what_is_given_up_without_a_sandbox_is_said() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let more = ["--no-sandbox", "-o", text(&dir), "--record"];
    let arguments = [&A_MOMENT[..], &more].concat();
    let ran = net.live(folder.path(), &arguments).ended();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .contains("--no-sandbox: it stays root, and may write every file"),
        "{ran:?}"
    );
}

#[test]
#[cfg(feature = "live")]
fn an_endpoint_can_do_no_more_than_answer() {
    use std::io::{BufRead, BufReader};
    if !cfg!(debug_assertions) {
        skip("a build without debug assertions makes no attempts");
        return;
    }
    let mut command = command(&root());
    command
        .args(["metrics", "serve", "--listen", "127.0.0.1:0"])
        .env("ROCE_ANALYZE_ATTEMPTS", "1")
        .stderr(Stdio::piped());
    let mut running = RunningCommand(command.spawn().unwrap());
    let lines = BufReader::new(running.0.stderr.take().unwrap()).lines();
    let said = lines
        .map(Result::unwrap)
        .take_while(|line| !line.contains("serving"));
    let ends = attempts(&said.collect::<Vec<_>>().join("\n"));
    assert_eq!(ends.len(), ATTEMPTS, "{ends:?}");
    assert!(ends.values().all(|end| end == "refused"), "{ends:?}");
}

#[test]
#[cfg(all(feature = "live", feature = "nxapi"))]
fn a_server_of_root_says_as_whom_it_reads_the_inventory() {
    if !geteuid().is_root() {
        skip("only root can become another user");
        return;
    }
    let folder = tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let private = |name: &str, text: &str, mode| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let inventory = "[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\ntransport = \"nxapi\"\nuser = \"monitor\"\n\
                     url = \"https://192.0.2.29/ins\"\npassword_file = \"leaf1.password\"\n";
    private("leaf1.password", "secret\n", 0o600);
    // First the inventory itself is root's alone, then the password that it names.
    for mode in [0o600, 0o644] {
        private("fabric.toml", inventory, mode);
        let arguments = [
            "metrics",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--user",
            "54321",
            "--inventory",
            "fabric.toml",
        ];
        let ran = ran(command(folder.path()).args(arguments));
        assert_eq!(ran.code, Some(2), "{mode:o}: {ran:?}");
        for part in [
            "Permission denied",
            "as the user that it continues as, here number 54321",
            "--user NAME",
        ] {
            assert!(ran.stderr.contains(part), "{mode:o}: no {part} in {}", ran.stderr);
        }
        let named = if mode == 0o600 {
            "fabric.toml"
        } else {
            "leaf1.password"
        };
        assert!(ran.stderr.contains(named), "{mode:o}: {}", ran.stderr);
    }
}
