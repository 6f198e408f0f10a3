//! Runs over a real sshd in each namespace, with keys of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::hosts::{Hosts, INTERFACE, address, frames, wait, wait_for_ends};
use crate::live::{RunningCommand, skip};

const SSHD: &str = "/usr/sbin/sshd";

fn key(path: &Path) -> bool {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .output();
    made.is_ok_and(|output| output.status.success())
}

/// Starts sshd in each namespace, and writes the inventory of these hosts.
fn reached(count: usize) -> Option<Hosts> {
    let mut hosts = Hosts::new(count)?;
    if !Path::new(SSHD).exists() || !key(&hosts.path("client")) {
        skip("openssh-server and ssh-keygen are not installed");
        return None;
    }
    // Debian's sshd wants its empty folder, which its service makes.
    let _ = fs::create_dir("/run/sshd");
    let mut inventory = format!(
        "[ssh]\nconfig = \"{}\"\ncontrol_persist = \"1s\"\nconnect_timeout = \"2s\"\n",
        hosts.path("client.conf").display()
    );
    let mut known = String::new();
    for host in 1..=count {
        let host_key = hosts.path(&format!("key{host}"));
        assert!(key(&host_key));
        let public = fs::read_to_string(host_key.with_extension("pub")).unwrap();
        let _ = write!(known, "{} {public}", address(host));
        let pid_file = hosts.path(&format!("sshd{host}.pid"));
        let config = hosts.path(&format!("sshd{host}.conf"));
        let text = format!(
            "ListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile {}\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n\
             PermitRootLogin prohibit-password\n",
            address(host),
            host_key.display(),
            hosts.path("client.pub").display(),
            pid_file.display(),
        );
        fs::write(&config, text).unwrap();
        let mut daemon = Command::new("ip")
            .args(["netns", "exec", &hosts.namespace(host), SSHD, "-D", "-f"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ended = false;
        wait("sshd listens", || {
            ended = daemon.try_wait().unwrap().is_some();
            ended || pid_file.exists()
        });
        if ended {
            skip("sshd does not start here: its user sshd may be missing");
            return None;
        }
        hosts.daemons.push(daemon);
        let _ = write!(
            inventory,
            "[[host]]\nname = \"h{host}\"\naddress = \"{}\"\nuser = \"root\"\ninterfaces = [\"{INTERFACE}\"]\n",
            address(host)
        );
    }
    fs::write(hosts.path("known_hosts"), known).unwrap();
    let client = format!(
        "Host *\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n",
        hosts.path("client").display(),
        hosts.path("known_hosts").display()
    );
    fs::write(hosts.path("client.conf"), client).unwrap();
    hosts.write_inventory(&inventory);
    Some(hosts)
}

#[test]
fn hosts_are_reached_and_one_that_is_down_is_said() {
    let Some(hosts) = reached(3) else { return };
    hosts.link(3, "down");
    let ran = hosts.captured("run", &["--by", "tcpdump"], frames());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let manifest = hosts.manifest("run");
    for host in 0..2 {
        assert_eq!(manifest["hosts"][host]["state"], "collected", "{ran:?}");
        assert_eq!(manifest["hosts"][host]["frames"], frames().len());
    }
    let error = manifest["hosts"][2]["error"].as_str().unwrap();
    assert!(error.starts_with("ssh cannot connect: "), "{error}");
    assert!(!hosts.remote().exists(), "nothing is left on the hosts");
}

#[test]
fn a_host_whose_key_is_not_known_is_not_accepted() {
    let Some(hosts) = reached(1) else { return };
    fs::write(hosts.path("known_hosts"), "").unwrap();
    let ran = hosts.fleet(&["run", "--", "true"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("Host key verification failed"),
        "{}",
        ran.stderr
    );
}

#[test]
fn this_program_is_pushed_where_it_runs() {
    let Some(hosts) = reached(1) else { return };
    let ran = hosts.captured("run", &["--push", "--by", "live"], frames());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let manifest = hosts.manifest("run");
    assert_eq!(manifest["hosts"][0]["how"], "live");
    assert_eq!(manifest["hosts"][0]["frames"], frames().len());
    let cleaned = hosts.fleet(&["clean", "run"]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    assert!(!hosts.remote().exists(), "the program is removed, too");
}

#[test]
fn a_cut_link_ends_the_capture_there_and_its_file_is_fetched_later() {
    let Some(hosts) = reached(2) else { return };
    let script = "touch begun; until [ -e sent ]; do sleep 0.05; done";
    let words = ["--by", "tcpdump", "--", "sh", "-c", script];
    let running = RunningCommand(hosts.capture("run", &words).spawn().unwrap());
    wait("it begins", || hosts.path("begun").exists());
    hosts.send(frames(), 4_000);
    let mut manifest = hosts.manifest("run");
    hosts.link(1, "down");
    // The second host goes on.
    let second = manifest["hosts"].as_array_mut().unwrap().pop().unwrap();
    wait_for_ends(&manifest);
    let pid = second["pid"].as_u64().unwrap();
    assert!(
        Path::new(&format!("/proc/{pid}")).exists(),
        "the other capture goes on"
    );
    hosts.link(1, "up");
    fs::write(hosts.path("sent"), "").unwrap();
    let ran = running.ended();
    let collected = if ran.code == Some(0) {
        ran
    } else {
        hosts.fleet(&["collect", "run"])
    };
    assert_eq!(collected.code, Some(0), "{collected:?}");
    let manifest = hosts.manifest("run");
    for host in manifest["hosts"].as_array().unwrap() {
        assert_eq!(host["frames"], frames().len(), "{host}");
    }
    assert_eq!(manifest["hosts"][0]["stopped"], "input");
    assert!(
        collected.stderr.contains("h1: the capture ended early"),
        "{}",
        collected.stderr
    );
}
