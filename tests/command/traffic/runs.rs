//! Runs of traffic between two hosts: their order, their end, and what they leave alone.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::lab::{Foreign, Lab, until};
use crate::command::Ran;
use crate::live::skip;

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The states of the streams of the latest run.
fn states(lab: &Lab) -> Vec<String> {
    states_after(lab, &["run", "--status", "--format", "json"])
}

fn states_after(lab: &Lab, arguments: &[&str]) -> Vec<String> {
    let document = lab.ran(arguments).json();
    let streams = document["streams"].as_array().unwrap().clone();
    streams
        .iter()
        .map(|stream| stream["state"].as_str().unwrap().to_owned())
        .collect()
}

/// The id of a run that was started.
fn id(ran: &Ran) -> String {
    ran.json()["id"].as_str().unwrap().to_owned()
}

#[test]
fn streams_of_perftest_and_one_that_fails() {
    let Some(lab) = Lab::new() else { return };
    lab.inventory("", "local");
    lab.plan(
        "four",
        "duration = \"1s\"\ngrace = \"10s\"",
        &[65_536, 13, 4_096, 21],
    );
    let ran = lab.ran(&["run", "four.toml", "-o", "kept"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .contains("4 streams of ib_write_bw on 2 hosts (h1, h2) for 1 s"),
        "{ran:?}"
    );
    // 92.5 Gb/s each.
    assert_eq!(ran.stdout.matches("92.5 Gbit/s").count(), 2, "{ran:?}");
    // The ports of both hosts say 100 Gb/s: 92.5 % of the link, to a whole number.
    assert_eq!(ran.stdout.matches(" 92 %").count(), 2, "{ran:?}");
    assert!(
        ran.stdout
            .contains("✗ stream 2, h1:mlx5_0 > h2:mlx5_0: Failed to modify QP 292 to RTR"),
        "{ran:?}"
    );
    assert!(
        ran.stdout
            .contains("does not listen on port 18518: Couldn't listen to port 18518"),
        "{ran:?}"
    );
    assert!(
        ran.stdout
            .contains("4 streams: 2 done, 2 failed; together 185 Gbit/s"),
        "{ran:?}"
    );
    // Servers first; clients within a second of each other.
    let (listen, begin) = lab.order();
    let first = begin.iter().copied().fold(f64::MAX, f64::min);
    let last = begin.iter().copied().fold(0.0, f64::max);
    assert_eq!((listen.len(), begin.len()), (3, 3));
    assert!(
        listen.iter().all(|time| *time <= first) && last - first < 1.0,
        "{listen:?} {begin:?}"
    );
    assert_eq!(lab.processes(), [] as [u32; 0]);
    // Nothing is left on the hosts and here, and all is in the folder.
    assert_eq!(
        fs::read_dir(lab.path("run/roce-analyze/traffic"))
            .unwrap()
            .count(),
        0
    );
    assert_eq!(
        lab.ran(&["run", "--status"]).code,
        Some(2),
        "the run is forgotten"
    );
    let kept = fs::read_to_string(lab.path("kept/run.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["streams"][0]["state"], "done");
    assert!(kept["streams"][0]["began"].as_str() < kept["streams"][0]["ended"].as_str());
    // Two streams ended well, and the tool of a third said why it failed.
    assert_eq!(kept["results"]["files"].as_array().unwrap().len(), 3);
    for name in [
        "plan.toml",
        "1.client.h1.log",
        "1.server.h2.log",
        "h1.counters.before.json",
        "h2.counters.after.json",
    ] {
        assert!(lab.path("kept").join(name).is_file(), "{name}");
    }
    let log = fs::read_to_string(lab.path("kept/1.server.h2.log")).unwrap();
    assert!(log.contains("Waiting for client"), "{log}");
    assert_eq!(
        lab.ran(&["run", "four.toml", "-o", "kept"]).code,
        Some(2),
        "the folder is there"
    );
}

#[test]
fn status_has_rates_and_stop_ends_the_runs_own_processes() {
    let Some(lab) = Lab::new() else { return };
    lab.inventory("", "local");
    lab.plan("long", "duration = \"100s\"", &[99, 77]);
    let mut foreign = lab.foreign();
    until("the other program runs", || lab.path("order").is_file());
    let ran = lab.ran(&["run", "--detach", "long.toml", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .contains("other processes of ib_write_bw run there, and may share the link"),
        "{ran:?}"
    );
    let id = id(&ran);
    until("both run", || states(&lab) == ["running", "running"]);
    let document = lab.ran(&["run", "--status", &id, "--format", "json"]).json();
    let rate = &document["hosts"][0]["rates"][0];
    assert_eq!(
        (&rate["device"], &rate["unit"]),
        (&"mlx5_0:1".into(), &"bit/s".into())
    );
    // Two writers of 100 Mb/s overwrite each other's counter: what is read moves by one of them, or more.
    let sent = rate["sent"].as_f64();
    assert!(sent.is_none_or(|sent| sent < 1e9), "{document}");

    // A second run is refused, and one beside it is not.
    lab.plan("second", "duration = \"100s\"\nports = \"19000-19010\"", &[99]);
    let refused = lab.ran(&["run", "--detach", "second.toml"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains(&format!("another run goes on: {id} at h1")),
        "{refused:?}"
    );
    let beside = lab.ran(&[
        "run",
        "--detach",
        "second.toml",
        "--beside-others",
        "--format",
        "json",
    ]);
    assert_eq!(beside.code, Some(0), "{beside:?}");
    let second = self::id(&beside);
    // Its client writes its pid before it runs.
    let status = ["run", "--status", &second, "--format", "json"];
    until("the second runs", || states_after(&lab, &status) == ["running"]);

    // A pid file with the pid of another program: it is not the run's, and lives on.
    let mut sleeping = Foreign(
        Command::new("sleep")
            .arg("100")
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let pid = lab.path(&format!("run/roce-analyze/traffic/{second}/h1/1c.pid"));
    fs::write(&pid, format!("{}\n", sleeping.0.id())).unwrap();
    assert_eq!(states_after(&lab, &status), ["missing"]);
    let stopped = lab.ran(&["run", "--stop", &second]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(sleeping.lives());

    // The first goes on; one of its streams does not end by TERM.
    assert_eq!(
        lab.ran(&["run", "--status", &id, "--format", "json"]).json()["streams"][0]["state"],
        "running"
    );
    let stopped = lab.ran(&["run", "--stop", &id]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.stdout.contains("processes ended"), "{stopped:?}");
    assert_eq!(lab.processes(), [] as [u32; 0]);
    let again = lab.ran(&["run", "--stop", &id]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.stdout.matches("nothing of it runs").count(), 2, "{again:?}");
    let status = lab.ran(&["run", "--status", &id]);
    assert_eq!(status.code, Some(1), "{status:?}");
    assert!(status.stdout.contains("stopped"), "{status:?}");
    assert!(foreign.lives(), "another user's program");
    assert_eq!(lab.ran(&["run", "--stop", "../x"]).code, Some(2));
}

#[test]
fn streams_end_by_themselves_when_the_controller_is_killed() {
    let Some(lab) = Lab::new() else { return };
    lab.inventory("", "local");
    lab.plan("hangs", "duration = \"1s\"\ngrace = \"2s\"", &[99]);
    let mut running = lab.begun(&["run", "hangs.toml"]);
    until("the client runs", || {
        lab.path("order").is_file() && !lab.order().1.is_empty()
    });
    signal(running.id(), Signal::KILL);
    running.wait().unwrap();
    assert!(!lab.processes().is_empty(), "they outlive it");
    // 3 s for the client, 5 s for the server.
    until("all have ended", || lab.processes().is_empty());
    assert_eq!(states(&lab), ["failed"]);
    let status = lab.ran(&["run", "--status"]);
    assert!(status.stdout.contains("did not end in time"), "{status:?}");
}

#[test]
fn a_signal_stops_the_streams() {
    let Some(lab) = Lab::new() else { return };
    lab.inventory("", "local");
    lab.plan("long", "duration = \"100s\"", &[99, 65_536]);
    let running = lab.begun(&["run", "long.toml"]);
    until("the clients run", || {
        lab.path("order").is_file() && lab.order().1.len() == 2
    });
    signal(running.id(), Signal::INT);
    let output = running.wait_with_output().unwrap();
    let (said, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(1), "{said}{errors}");
    assert!(said.contains("2 streams: 2 stopped"), "{said}{errors}");
    assert_eq!(lab.processes(), [] as [u32; 0]);
}

#[test]
fn hosts_that_are_wrong_are_named() {
    let Some(lab) = Lab::new() else { return };
    lab.inventory("", "local");
    lab.plan("wrong", "duration = \"1s\"", &[65_536]);
    let path = lab.path("wrong.toml");
    let text = fs::read_to_string(&path).unwrap();
    let with = |from: &str, to: &str| {
        fs::write(&path, text.replace(from, to)).unwrap();
        lab.ran(&["plan", "wrong.toml", "--preflight"])
    };
    let ran = with("h2:mlx5_0", "h2:mlx5_9");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stdout
            .contains("h2:mlx5_9: there is no such RDMA device and port"),
        "{ran:?}"
    );
    let ran = with("ib_write_bw", "ib_read_lat");
    let has_perftest = Command::new("ib_read_lat").arg("--version").output().is_ok();
    assert!(
        has_perftest || ran.stdout.contains("ib_read_lat is not installed there"),
        "{ran:?}"
    );
    let ran = with("h2:mlx5_0", "h3:mlx5_0");
    assert!(ran.stderr.contains("there is no host 'h3'"), "{ran:?}");
    let ran = with("", "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout
            .contains("-s 65536 -q 1 -D 1 -F --report_gbits 10.79.0.2"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("100 Gbit/s"), "{ran:?}");
    // A port that is taken.
    fs::write(&path, format!("ports = \"19999-20010\"\n{text}")).unwrap();
    let _foreign = lab.foreign();
    until("the other program listens", || lab.path("order").is_file());
    let ran = lab.ran(&["plan", "wrong.toml", "--preflight"]);
    assert!(
        ran.stdout.contains("another program listens on port 19999"),
        "{ran:?}"
    );
    assert!(!lab.path("run/roce-analyze/traffic").exists(), "nothing is made");
}

/// A strict run ends with its first failure, also where the other stream has an hour before it.
#[test]
fn a_strict_run_ends_with_its_first_failure() {
    let Some(lab) = Lab::new() else { return };
    lab.inventory("", "local");
    lab.plan("strict", "duration = \"1h\"", &[99, 13]);
    let ran = lab.ran(&["run", "strict.toml", "--strict", "--format", "json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let document = ran.json();
    let states: Vec<&str> = document["streams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stream| stream["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["stopped", "failed"]);
    assert_eq!(lab.processes(), [] as [u32; 0]);
}

#[test]
fn a_host_that_is_down_is_named_and_nothing_is_left() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(lab) = Lab::new() else { return };
    // The words and the exit code of ssh.
    let ssh = lab.path("ssh");
    fs::write(
        &ssh,
        "#!/bin/sh\necho 'ssh: connect to host node2 port 22: No route to host' >&2\nexit 255\n",
    )
    .unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let head = format!("[ssh]\ncommand = \"{}\"\n", ssh.display());
    lab.inventory(&head, "node2");
    lab.plan("down", "duration = \"1s\"", &[65_536]);
    let ran = lab.ran(&["run", "down.toml"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stdout
            .contains("✗ stream 1, h1:mlx5_0 > h2:mlx5_0: h2: ssh cannot connect: ssh: connect to host node2 port 22: No route to host"),
        "{ran:?}"
    );
    assert_eq!(lab.processes(), [] as [u32; 0]);
    assert!(!lab.path("order").exists(), "no tool was started");
}

#[test]
fn iperf3_between_two_hosts() {
    let Some(lab) = Lab::new() else { return };
    if Command::new("iperf3").arg("--version").output().is_err() {
        return skip("no iperf3");
    }
    lab.inventory("", "local");
    let plan = "name = \"tcp\"\ntool = \"iperf3\"\nduration = \"1s\"\n[[pair]]\nfrom = \"h1:v1\"\nto = \"h2:v2\"\nboth = true\n";
    fs::write(lab.path("tcp.toml"), plan).unwrap();
    let ran = lab.ran(&["run", "tcp.toml", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let document = ran.json();
    let files = document["results"]["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    for (file, name) in files.iter().zip(["1: h1:v1 > h2:v2", "2: h2:v2 > h1:v1"]) {
        assert_eq!(file["file"], name);
        assert_eq!(file["results"][0]["what"], "TCP");
        assert!(
            file["results"][0]["goodput_bps"].as_f64().unwrap() > 1e6,
            "{file}"
        );
    }
}

/// A client of iperf3 whose server ends first has results and exit code 0: clients are stopped before servers.
#[test]
fn streams_of_iperf3_that_are_stopped_are_not_done() {
    let Some(lab) = Lab::new() else { return };
    if Command::new("iperf3").arg("--version").output().is_err() {
        return skip("no iperf3");
    }
    lab.inventory("", "local");
    let plan = "tool = \"iperf3\"\nduration = \"60s\"\n[[pair]]\nfrom = \"h1:v1\"\nto = \"h2:v2\"\nstreams = [{ size = 65536 }, { size = 4096 }]\n";
    fs::write(lab.path("tcp.toml"), plan).unwrap();
    let ran = lab.ran(&["run", "--detach", "tcp.toml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    until("both run", || states(&lab) == ["running", "running"]);
    let stopped = lab.ran(&["run", "--stop"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert_eq!(states(&lab), ["stopped", "stopped"]);
    assert_eq!(lab.processes(), [] as [u32; 0]);
}

#[test]
fn a_host_over_ssh() {
    let Some(lab) = Lab::new() else { return };
    let Some(_sshd) = Sshd::new(&lab) else { return };
    let head = format!(
        "[ssh]\nconfig = \"{}\"\ncontrol_persist = \"1s\"\n",
        lab.path("ssh_config").display()
    );
    lab.inventory(&head, "node2");
    lab.plan("remote", "duration = \"1s\"", &[65_536, 13]);
    let ran = lab.ran(&["run", "remote.toml"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("2 streams: 1 done, 1 failed"), "{ran:?}");
    lab.plan("longer", "duration = \"100s\"", &[99]);
    let ran = lab.ran(&["run", "--detach", "longer.toml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    until("it runs", || states(&lab) == ["running"]);
    let stopped = lab.ran(&["run", "--stop", "-o", "kept"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert_eq!(lab.processes(), [] as [u32; 0]);
    assert!(lab.path("kept/1.server.h2.log").is_file());
}

/// A server of ssh on this machine, with keys of its own.
struct Sshd {
    _process: Foreign,
}

impl Sshd {
    fn new(lab: &Lab) -> Option<Self> {
        let program = "/usr/sbin/sshd";
        // The folder that the server's service makes at each start.
        let has_folder = fs::create_dir_all("/run/sshd").is_ok();
        if !std::path::Path::new(program).is_file() || !has_folder {
            skip("no openssh-server, or no folder /run/sshd");
            return None;
        }
        let path = |name: &str| lab.path(name).display().to_string();
        for key in ["host_key", "user_key"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)])
                .status();
            assert!(made.unwrap().success());
        }
        fs::copy(lab.path("user_key.pub"), lab.path("authorized_keys")).unwrap();
        let port = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().port()
        };
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\n",
            path("host_key"),
            path("authorized_keys")
        );
        fs::write(lab.path("sshd_config"), server).unwrap();
        let known = fs::read_to_string(lab.path("host_key.pub")).unwrap();
        fs::write(lab.path("known_hosts"), format!("[127.0.0.1]:{port} {known}")).unwrap();
        let client = format!(
            "Host node2\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n",
            path("user_key"),
            path("known_hosts")
        );
        fs::write(lab.path("ssh_config"), client).unwrap();
        let log = fs::File::create(lab.path("sshd.log")).unwrap();
        let child = Command::new(program)
            .args(["-D", "-e", "-f", &path("sshd_config")])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        let sshd = Self {
            _process: Foreign(child.unwrap()),
        };
        until("sshd listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(sshd)
    }
}

#[test]
fn plans_are_written_from_patterns() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| crate::command::run(folder.path(), [&["traffic", "plan"], words].concat());
    let ran = run(&["--pattern", "incast=2:1", "--host", "a:mlx5_0,b:mlx5_0,c:mlx5_1"]).good();
    fs::write(folder.path().join("incast.toml"), &ran.stdout).unwrap();
    let shown = run(&["incast.toml", "--host", "a,b,c"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    // DSCP 26 with ECT(0): 26 x 4 + 2.
    assert!(
        shown
            .stdout
            .contains("2 client  ib_write_bw -d mlx5_1 -i 1 -p 18516 -s 65536 -q 1 -D 60 -F --report_gbits --tclass=106 a"),
        "{shown:?}"
    );
    assert!(
        shown
            .stderr
            .contains("a:mlx5_0 receives 2 streams from 2 hosts, which is an incast"),
        "{shown:?}"
    );
    for (words, reason) in [
        (&["--pattern", "ring"][..], "a pattern needs 2 hosts"),
        (
            &["--pattern", "ring", "--host", "a,b"],
            "ib_write_bw needs the RDMA device",
        ),
        (&["--pattern", "ring", "--host", "a:d,a:d"], "is named twice"),
        (&["--pattern", "mesh", "--host", "a:d,b:d"], "is none of pairs"),
        (&["absent.toml"], "absent.toml"),
    ] {
        let ran = run(words);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(reason), "{ran:?}");
    }
    fs::write(
        folder.path().join("wrong.toml"),
        "tool = \"iperf3\"\nduration = \"2h\"\n[[pair]]\nfrom = \"a\"\nto = \"b\"\n",
    )
    .unwrap();
    let ran = run(&["wrong.toml", "--host", "a,b"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("over an hour"), "{ran:?}");
    assert_eq!(run(&["wrong.toml", "--host", "a,b", "--long"]).code, Some(0));
}
