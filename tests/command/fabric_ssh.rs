//! A switch, a hypervisor and a SONiC switch behind a real sshd on this host: each key of the client has a command that answers from a fixture.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::command::{Ran, command, ran};
use crate::fabric::{fixture, sum};

const SSHD: &str = "/usr/sbin/sshd";

/// Answers one command of a CLI from a folder: the command's characters outside of [A-Za-z0-9.-] are `_` in the file's name.
const CLI: &str = r#"#!/bin/sh
name=$(printf '%s' "${SSH_ORIGINAL_COMMAND% | json}" | LC_ALL=C sed 's/[^A-Za-z0-9.-]/_/g')
case $SSH_ORIGINAL_COMMAND in *'| json') set -- json txt ;; *) set -- txt json ;; esac
for ending; do
    [ -f "FOLDER/$name.$ending" ] && exec cat "FOLDER/$name.$ending"
done
echo "% Invalid command at '^' marker."
exit 16
"#;

/// Runs a script as a shell would, with programs of a folder before others.
const SHELL: &str = "#!/bin/sh\nPATH=PROGRAMS:$PATH\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n";

/// A program that answers from a folder, by its name and arguments. The fourth argument of sonic-db-dump is quoted in the command.
const PROGRAM: &str = r#"#!/bin/sh
own=${0##*/}
[ "$own" = sonic-db-dump ] && set -- "$1" "$2" "$3" "'$4'" "$5"
name=$(printf '%s' "$own $*" | LC_ALL=C sed 's/[^A-Za-z0-9.-]/_/g')
for ending in json txt; do
    [ -f "FOLDER/$name.$ending" ] && exec cat "FOLDER/$name.$ending"
done
echo "Error: No such command \"$*\"." >&2
exit 2
"#;

/// An sshd that is ended when this is dropped.
struct Sshd {
    child: Child,
    folder: TempDir,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn key(path: &Path) -> String {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
    let public = fs::read_to_string(path.with_extension("pub")).unwrap();
    let words: Vec<&str> = public.split_whitespace().take(2).collect();
    words.join(" ")
}

/// Starts sshd; `Err`: why this host cannot.
fn sshd() -> Result<Sshd, String> {
    if !Path::new(SSHD).exists() {
        return Err(format!("there is no {SSHD} (openssh-server)"));
    }
    if ran(Command::new("sh").args(["-c", "command -v ssh ssh-keygen"])).code != Some(0) {
        return Err("there is no ssh (openssh-client)".to_owned());
    }
    let is_root = rustix::process::geteuid().is_root();
    if is_root && !Path::new("/run/sshd").is_dir() && fs::create_dir("/run/sshd").is_err() {
        return Err("there is no /run/sshd, which sshd needs as root".to_owned());
    }
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let host = key(&at("host"));
    let programs = |name: &str, files: &str, all: &[&str]| {
        let programs = at(&format!("{name}.programs"));
        fs::create_dir(&programs).unwrap();
        for program in all {
            script(
                &programs.join(program),
                &PROGRAM.replace("FOLDER", fixture(files).to_str().unwrap()),
            );
        }
        SHELL.replace("PROGRAMS", programs.to_str().unwrap())
    };
    let mut keys = String::new();
    let mut config = String::new();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let user = ran(Command::new("id").arg("-un")).stdout;
    let user = user.trim();
    for (name, text) in [
        (
            "leaf1",
            CLI.replace("FOLDER", fixture("nexus-first-generation").to_str().unwrap()),
        ),
        ("esxi1", programs("esxi1", "esxi-pfc", &["esxcli", "vsish"])),
        (
            "leaf2",
            programs("leaf2", "sonic-leaf", &["sonic-db-dump", "show", "pfcwd"]),
        ),
    ] {
        let force = at(&format!("{name}.command"));
        script(&force, &text);
        let public = key(&at(name));
        let _ = writeln!(keys, "command=\"{}\",restrict {public}", force.display());
        let _ = write!(
            config,
            "Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n",
            at(name).display(),
            at("known_hosts").display()
        );
    }
    fs::write(at("authorized_keys"), keys).unwrap();
    fs::write(at("known_hosts"), format!("[127.0.0.1]:{port} {host}\n")).unwrap();
    fs::write(at("config"), config).unwrap();
    let text = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\n",
        at("host").display(),
        at("authorized_keys").display()
    );
    fs::write(at("sshd_config"), text).unwrap();
    // Sockets of shared connections: this folder is the user's own.
    fs::create_dir(at("run")).unwrap();
    fs::set_permissions(at("run"), fs::Permissions::from_mode(0o700)).unwrap();
    let inventory = "[ssh]\nconfig = \"config\"\ncontrol_persist = \"1s\"\ntimeout = \"20s\"\n\
[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\n[[switch]]\nname = \"leaf2\"\nkind = \"sonic\"\n\
[[hypervisor]]\nname = \"esxi1\"\nvmnics = [\"vmnic3\"]\n";
    fs::write(at("fabric.toml"), inventory).unwrap();
    let log = fs::File::create(at("log")).unwrap();
    let child = Command::new(SSHD)
        .args(["-D", "-e", "-f"])
        .arg(at("sshd_config"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut sshd = Sshd { child, folder };
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        if sshd.child.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(10) {
            let log = fs::read_to_string(sshd.folder.path().join("log")).unwrap();
            return Err(format!("sshd does not start: {log}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(sshd)
}

fn fabric(sshd: &Sshd, arguments: &[&str]) -> Ran {
    let run: PathBuf = sshd.folder.path().join("run");
    ran(command(sshd.folder.path())
        .env("XDG_RUNTIME_DIR", run)
        .arg("fabric")
        .args(arguments))
}

fn devices(ran: &Ran) -> Vec<Value> {
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    document["devices"].as_array().unwrap().clone()
}

#[test]
fn devices_answer_over_ssh() {
    let sshd = match sshd() {
        Ok(sshd) => sshd,
        Err(why) => return crate::live::skip(&why),
    };
    let begun = Instant::now();
    let switches = fabric(
        &sshd,
        &["counters", "--kind", "switch", "--format", "json", "--raw", "raw"],
    );
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let [nexus, sonic] = &devices(&switches)[..] else {
        panic!("{switches:?}")
    };
    assert_eq!(
        sum(nexus, "Ethernet1/1/1", "switch_pfc_transmitted_frames", ""),
        Some(22_787_490.0),
        "{switches:?}"
    );
    assert_eq!(
        sum(sonic, "Ethernet0", "switch_queue_ecn_marked_packets", "3"),
        Some(40_812_001.0),
        "{switches:?}"
    );
    // A command that the switch does not know is a problem, and no value.
    let problems = nexus["problems"].as_array().unwrap();
    assert!(
        problems.iter().any(|problem| problem["reason"] == "unsupported"),
        "{nexus}"
    );
    let hypervisors = fabric(&sshd, &["counters", "esxi1", "--format", "json"]);
    let esxi = &devices(&hypervisors)[0];
    assert_eq!(
        sum(esxi, "vmnic3", "hypervisor_pfc_received_frames", ""),
        Some(41_210.0),
        "{hypervisors:?}"
    );
    // The recording answers as the switches did.
    for (name, kind, live) in [("leaf1", "nexus", nexus), ("leaf2", "sonic", sonic)] {
        let raw = format!("raw/{name}");
        let again = fabric(
            &sshd,
            &["counters", "--format", "json", "--kind", kind, "--read", &raw],
        );
        let again = &devices(&again)[0];
        assert_eq!(again["samples"], live["samples"], "{name}");
    }
    // A host key that is not known is not accepted: nothing is read.
    fs::write(sshd.folder.path().join("known_hosts"), "").unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    let refused = fabric(&sshd, &["counters", "leaf1", "--format", "json"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let down = &devices(&refused)[0];
    assert_eq!(sum(down, "", "switch_up", ""), Some(0.0));
    assert_eq!(down["samples"].as_array().unwrap().len(), 1);
    assert_eq!(down["problems"][0]["reason"], "unreachable");
}
