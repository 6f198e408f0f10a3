//! Hosts that are network namespaces at one bridge, and runs of the command between them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::command::{Ran, command, ran};
use crate::live::{RunningCommand, ip, send_by, skip, whole};

/// The interface of every host.
pub(crate) const INTERFACE: &str = "rdma0";
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(1);

/// A bridge and hosts `h1`, `h2`, ... at it; a folder for everything that a run writes.
pub(crate) struct Hosts {
    prefix: String,
    count: usize,
    pub(crate) folder: TempDir,
    pub(crate) daemons: Vec<Child>,
}

impl Hosts {
    /// Makes them; `None`, aloud, where that is not possible.
    pub(crate) fn new(count: usize) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !geteuid().is_root() {
            skip("not root: network namespaces cannot be made");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let hosts = Self {
            prefix: format!("fleet-{}-{number}", std::process::id()),
            count,
            folder: tempdir().unwrap(),
            daemons: Vec::new(),
        };
        if let Err(why) = hosts.make() {
            skip(&why);
            return None;
        }
        let mut inventory = String::new();
        for host in 1..=count {
            inventory += &hosts.local(host, "");
        }
        hosts.write_inventory(&inventory);
        Some(hosts)
    }

    fn make(&self) -> Result<(), String> {
        let switch = self.namespace(0);
        ip(&["netns", "add", &switch])?;
        let inside = |arguments: &[&str]| ip(&[&["-n", &switch], arguments].concat());
        inside(&["link", "add", "br0", "mtu", "9000", "type", "bridge"])?;
        inside(&["link", "set", "br0", "addrgenmode", "none"])?;
        inside(&["addr", "add", "10.99.0.254/24", "dev", "br0"])?;
        inside(&["link", "set", "br0", "up"])?;
        for host in 1..=self.count {
            let (name, port) = (self.namespace(host), format!("port{host}"));
            ip(&["netns", "add", &name])?;
            inside(&[
                "link", "add", &port, "mtu", "9000", "type", "veth", "peer", "name", INTERFACE, "mtu",
                "9000", "netns", &name,
            ])?;
            for (namespace, device) in [(&switch, port.as_str()), (&name, INTERFACE)] {
                ip(&["-n", namespace, "link", "set", device, "addrgenmode", "none"])?;
            }
            inside(&["link", "set", &port, "master", "br0", "up"])?;
            // One host sends packets of several: a bridge that learned their addresses would keep them from the others.
            inside(&["link", "set", &port, "type", "bridge_slave", "learning", "off"])?;
            let address = format!("{}/24", address(host));
            ip(&["-n", &name, "addr", "add", &address, "dev", INTERFACE])?;
            ip(&["-n", &name, "link", "set", INTERFACE, "up"])?;
        }
        Ok(())
    }

    /// The namespace of a host; that of the bridge is number 0.
    pub(crate) fn namespace(&self, host: usize) -> String {
        format!("{}-{host}", self.prefix)
    }

    /// Cuts the link of a host, or mends it.
    pub(crate) fn link(&self, host: usize, state: &str) {
        ip(&[
            "-n",
            &self.namespace(0),
            "link",
            "set",
            &format!("port{host}"),
            state,
        ])
        .unwrap();
    }

    /// A host of the inventory that is reached without ssh; `words` follow the namespace's.
    pub(crate) fn local(&self, host: usize, words: &str) -> String {
        format!(
            "[[host]]\nname = \"h{host}\"\naddress = \"local\"\nprefix = \"ip netns exec {} {words}\"\ninterfaces = [\"{INTERFACE}\"]\n",
            self.namespace(host)
        )
    }

    pub(crate) fn write_inventory(&self, text: &str) {
        fs::write(self.path("fabric.toml"), text).unwrap();
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder for captures on the hosts, which are all on this machine.
    pub(crate) fn remote(&self) -> PathBuf {
        self.path("remote")
    }

    /// `roce-analyze fleet WORDS`, in the namespace of the bridge.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let outside = command(self.folder.path());
        let mut inside = Command::new("ip");
        inside.args([
            "netns",
            "exec",
            &self.namespace(0),
            env!("CARGO_BIN_EXE_roce-analyze"),
            "fleet",
        ]);
        for (name, value) in outside.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
            .args(words)
            .current_dir(self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        inside
    }

    /// `fleet capture -o DIR WORDS` with the hosts' folder below this one.
    pub(crate) fn capture(&self, dir: &str, words: &[&str]) -> Command {
        let remote = self.remote();
        let mut command = self.command(&["capture", "-o", dir, "--remote-folder"]);
        command.arg(remote).args(words);
        command
    }

    /// Starts `fleet capture`, which goes on until it is interrupted, and waits until all hosts capture.
    pub(crate) fn started(&self, dir: &str, words: &[&str]) -> RunningCommand {
        let words = [&["--until-interrupted"], words].concat();
        let mut running = RunningCommand(self.capture(dir, &words).spawn().unwrap());
        let files = || {
            found(&self.remote(), &|name| {
                name.starts_with("capture.") || name.starts_with("tcpdump.")
            })
        };
        wait("all hosts capture", || {
            assert!(running.0.try_wait().unwrap().is_none(), "it ended early");
            files().len() >= self.count
        });
        running
    }

    /// `fleet WORDS` to its end.
    pub(crate) fn fleet(&self, words: &[&str]) -> Ran {
        ran(&mut self.command(words))
    }

    /// `fleet capture` to its end, while the frames of a capture of the repository are sent.
    pub(crate) fn captured(&self, dir: &str, words: &[&str], frames: Vec<Vec<u8>>) -> Ran {
        // The command of the run waits until the frames are sent.
        let script = "touch begun; until [ -e sent ]; do sleep 0.02; done";
        let words = [words, &["--", "sh", "-c", script]].concat();
        let running = RunningCommand(self.capture(dir, &words).spawn().unwrap());
        let begun = Instant::now();
        let mut running = Some(running);
        loop {
            if self.path("begun").exists() {
                self.send(frames, 4_000);
                break;
            }
            let ended = running.as_mut().unwrap().0.try_wait().unwrap().is_some();
            if ended {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "no start");
            std::thread::sleep(Duration::from_millis(10));
        }
        fs::write(self.path("sent"), "").unwrap();
        running.take().unwrap().ended()
    }

    /// Sends frames, at most `rate` a second: those of one side by the first host, those of the other side by the second one.
    pub(crate) fn send(&self, frames: Vec<Vec<u8>>, rate: u32) {
        let all = [1, self.count.min(2)].map(|host| self.namespace(host));
        send_by(&[&all[0], &all[1]], INTERFACE, frames, Some(rate));
    }

    /// The manifest of a run.
    pub(crate) fn manifest(&self, dir: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(dir).join("fleet.json")).unwrap()).unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for host in 0..=self.count {
            let _ = ip(&["netns", "del", &self.namespace(host)]);
        }
    }
}

/// The address of a host.
pub(crate) fn address(host: usize) -> String {
    format!("10.99.0.{host}")
}

/// Frames that are all RoCE, whose number other programs count (tests/data/golden).
pub(crate) fn frames() -> Vec<Vec<u8>> {
    whole("write_bw_loss")
}

/// Files below a folder whose names are of a kind.
pub(crate) fn found(folder: &Path, is_it: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return all;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(found(&path, is_it));
        } else if is_it(path.file_name().unwrap().to_str().unwrap()) {
            all.push(path);
        }
    }
    all
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until none of the processes that a manifest names runs any more.
#[track_caller]
pub(crate) fn wait_for_ends(manifest: &Value) {
    let pids: Vec<u64> = manifest["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["pid"].as_u64().unwrap())
        .collect();
    assert!(!pids.is_empty());
    wait("captures end by themselves", || {
        pids.iter()
            .all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    });
}

/// SHA-256 of a file, by another program.
pub(crate) fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}
