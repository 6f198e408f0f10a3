//! Two hosts for runs of traffic: network namespaces of this machine, each with an RDMA device that is files, and a program that prints
//! what perftest prints.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::command::{Ran, command, ran};
use crate::live::skip;

/// The longest that anything of a test is waited for.
const PATIENCE: Duration = Duration::from_secs(40);

/// perftest's part: servers listen, clients connect, both print the texts of perftest 4.5. The size says how it goes: 13 fails at the queue
/// pair, 99 hangs, 77 hangs and ignores TERM, 21 does not listen. DIR has the times at which servers listened and clients began.
const FAKE: &str = r#"
import os, signal, socket, sys, threading, time
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
size, port, seconds = value("-s"), int(value("-p")), int(value("-D"))
place = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0])))
peer = None if words[-1].startswith("-") else words[-1]
assert "--run_infinitely" not in words
def note(what):
    with open(place + "/order", "a") as file:
        file.write(f"{what} {time.time()}\n")
def head():
    print("-" * 87)
    print("                    RDMA_Write BW Test")
    print(" Dual-port       : OFF\t\tDevice         : " + value("-d"))
    print(" Number of qps   : " + value("-q") + "\t\tTransport type : IB")
    print(" Mtu             : 1024[B]")
    print("-" * 87)
    print(" local address: LID 0000 QPN 0x0124 PSN 0x1c7a31 RKey 0x202c00 VAddr 0x007f4ad0f84000", flush=True)
def table():
    print(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
    print(" 65536      10000            0.00               92.50  \t\t     0.176430")
    print("-" * 87, flush=True)
if size == "77":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if peer is None:
    if size == "21":
        print(f"Couldn't listen to port {port}", flush=True)
        sys.exit(1)
    print("\n************************************\n* Waiting for client to connect... *\n************************************", flush=True)
    # As on a loaded host.
    time.sleep(0.3)
    listener = socket.socket(socket.AF_INET6 if os.path.exists("/proc/net/if_inet6") else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen(1)
    note("listens")
    connection, _ = listener.accept()
    listener.close()
    head()
    while connection.recv(100):
        pass
    if size in ("99", "77"):
        time.sleep(600)
    table()
    sys.exit(0)
note("begins")
try:
    connection = socket.create_connection((peer, port))
except OSError:
    print(f"Couldn't connect to {peer}:{port}\nUnable to init the socket connection", flush=True)
    sys.exit(1)
head()
if size == "13":
    print("Failed to modify QP 292 to RTR\n Unable to Connect the HCA's through the link", flush=True)
    sys.exit(1)
if size in ("99", "77"):
    counter = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"
    words = 0
    while True:
        # 312,500 words of 32 bits in a tenth of a second: 100 Mb/s.
        time.sleep(0.1)
        words += 312500
        with open(counter + f".{os.getpid()}", "w") as file:
            file.write(f"{words}\n")
        os.rename(counter + f".{os.getpid()}", counter)
time.sleep(seconds)
table()
"#;

/// Two namespaces with a pair of interfaces between them, and a folder for everything else.
pub(super) struct Lab {
    folder: TempDir,
    names: [String; 2],
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output();
    let output = output.map_err(|error| format!("`ip` (iproute2) does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("`ip {}`: {reason}", words.join(" ")))
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Lab {
    /// Makes one; `None`, aloud, where that is not possible.
    pub(super) fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !geteuid().is_root() {
            skip("not root: network namespaces cannot be made");
            return None;
        }
        let python = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output();
        let Some(python) = python.ok().filter(|output| output.status.success()) else {
            skip("no python3, which plays perftest");
            return None;
        };
        let python = String::from_utf8(python.stdout).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |host: u32| format!("roce-t{}-{number}-h{host}", std::process::id());
        let lab = Self {
            folder: tempfile::tempdir().unwrap(),
            names: [name(1), name(2)],
        };
        if let Err(why) = lab.make() {
            skip(&why);
            return None;
        }
        for folder in ["bin", "run", "state", "h1", "h2"] {
            fs::create_dir(lab.path(folder)).unwrap();
        }
        fs::set_permissions(lab.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
        executable(
            &lab.path("bin/ib_write_bw"),
            &format!("#!{}{FAKE}", python.trim_end().to_owned() + "\n"),
        );
        for host in ["h1", "h2"] {
            lab.device(host);
        }
        Some(lab)
    }

    fn make(&self) -> Result<(), String> {
        let [one, other] = &self.names;
        ip(&["netns", "add", one])?;
        ip(&["netns", "add", other])?;
        ip(&[
            "link", "add", "v1", "netns", one, "type", "veth", "peer", "name", "v2", "netns", other,
        ])?;
        for (name, device, address) in [(one, "v1", "10.79.0.1/24"), (other, "v2", "10.79.0.2/24")] {
            ip(&["-n", name, "addr", "add", address, "dev", device])?;
            ip(&["-n", name, "link", "set", device, "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    /// The device of a host, and the script that shows it there: `ip netns exec` gives a mount namespace of its own.
    fn device(&self, host: &str) {
        let port = self.path(host).join("sys/class/infiniband/mlx5_0/ports/1");
        for folder in ["counters", "gid_attrs/ndevs"] {
            fs::create_dir_all(port.join(folder)).unwrap();
        }
        let interface = if host == "h1" { "v1" } else { "v2" };
        for (name, text) in [
            ("state", "4: ACTIVE"),
            ("rate", "100 Gb/sec (4X EDR)"),
            ("gid_attrs/ndevs/0", interface),
            ("counters/port_xmit_data", "0"),
            ("counters/port_rcv_data", "0"),
        ] {
            fs::write(port.join(name), format!("{text}\n")).unwrap();
        }
        let script = format!(
            "mount --bind {} /sys && export {} PATH={}:$PATH && exec \"$@\"\n",
            self.path(host).join("sys").display(),
            self.mark(),
            self.path("bin").display()
        );
        fs::write(self.path(&format!("{host}.sh")), script).unwrap();
    }

    /// A variable that all processes on the lab's hosts have.
    fn mark(&self) -> String {
        format!("ROCE_LAB={}", self.folder.path().display())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Words before a command of a host.
    pub(super) fn prefix(&self, host: usize) -> String {
        let script = self.path(&format!("h{host}.sh"));
        format!("ip netns exec {} sh {}", self.names[host - 1], script.display())
    }

    /// An inventory of both hosts, with these lines for the second one's address, and in front.
    pub(super) fn inventory(&self, head: &str, second: &str) {
        let host = |number: usize, address: &str| {
            format!(
                "[[host]]\nname = \"h{number}\"\naddress = \"{address}\"\nprefix = \"{}\"\n",
                self.prefix(number)
            )
        };
        let text = format!("{head}{}{}", host(1, "local"), host(2, second));
        fs::write(self.path("fabric.toml"), text).unwrap();
    }

    /// A plan of streams of these sizes from the first host to the second.
    pub(super) fn plan(&self, name: &str, settings: &str, sizes: &[u32]) {
        let sizes: Vec<String> = sizes.iter().map(|size| format!("{{ size = {size} }}")).collect();
        let text = format!(
            "name = \"{name}\"\ntool = \"ib_write_bw\"\n{settings}\n[[pair]]\nfrom = \"h1:mlx5_0\"\nto = \"h2:mlx5_0\"\nstreams = [{}]\n",
            sizes.join(", ")
        );
        fs::write(self.path(&format!("{name}.toml")), text).unwrap();
    }

    /// The command `traffic` in the folder.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = command(self.folder.path());
        command
            .arg("traffic")
            .args(words)
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_STATE_HOME", self.path("state"));
        command
    }

    pub(super) fn ran(&self, words: &[&str]) -> Ran {
        ran(&mut self.command(words))
    }

    /// Starts the command, and leaves it running.
    pub(super) fn begun(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Processes of runs of this lab, by their environment.
    pub(super) fn processes(&self) -> Vec<u32> {
        let mark = self.mark();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok())
            else {
                continue;
            };
            let Ok(environment) = fs::read(entry.path().join("environ")) else {
                continue;
            };
            let has = |start: &str| {
                environment
                    .split(|byte| *byte == 0)
                    .any(|one| one.starts_with(start.as_bytes()))
            };
            if has("ROCE_ANALYZE_RUN=") && has(&mark) {
                found.push(pid);
            }
        }
        found
    }

    /// Starts the fake by itself, as another user of the host may.
    pub(super) fn foreign(&self) -> Foreign {
        let words = "-d mlx5_0 -p 19999 -s 99 -q 1 -D 60 --report_gbits";
        let line = format!("exec {} ib_write_bw {words}", self.prefix(2));
        let mut command = Command::new("sh");
        command
            .args(["-c", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Foreign(command.spawn().unwrap())
    }

    /// Times at which servers listened and clients began.
    pub(super) fn order(&self) -> (Vec<f64>, Vec<f64>) {
        let text = fs::read_to_string(self.path("order")).unwrap();
        let times = |what: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(what));
            lines.map(|time| time.trim().parse().unwrap()).collect()
        };
        (times("listens"), times("begins"))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
        for name in &self.names {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

/// A process that is ended when it is dropped.
pub(super) struct Foreign(pub(super) Child);

impl Foreign {
    pub(super) fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something holds.
#[track_caller]
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
