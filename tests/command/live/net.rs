//! Network namespaces with pairs of interfaces, runs of the command inside, and frames that are sent there.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use roce_capture::live::Injector;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::captures::{Capture, Record};
use crate::command::{Ran, command};

/// A user that has no rights.
pub(crate) const NOBODY: u32 = 65_534;
/// Options of a live run that captures for a moment and prints no rows.
pub(crate) const A_MOMENT: [&str; 6] = ["-i", "v1", "--duration", "10ms", "--format", "none"];

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

/// Runs `ip`.
pub(crate) fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("`ip` (iproute2) does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("`ip {}`: {message}", arguments.join(" ")))
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

    /// Words of a command line that run a program inside.
    pub(crate) fn prefix(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.name]
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` inside.
    pub(crate) fn ip(&self, arguments: &[&str]) -> Result<(), String> {
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
    pub(crate) fn live(&self, folder: &Path, arguments: &[&str]) -> RunningCommand {
        self.live_to(folder, arguments, Stdio::piped())
    }

    /// Starts `live` inside, with these variables.
    #[cfg(feature = "live")]
    pub(crate) fn live_with(
        &self,
        folder: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> RunningCommand {
        let mut command = self.command_of_live(folder, arguments);
        RunningCommand(command.envs(variables.iter().copied()).spawn().unwrap())
    }

    /// Starts a live run with another standard output.
    pub(crate) fn live_to(&self, folder: &Path, arguments: &[&str], stdout: Stdio) -> RunningCommand {
        RunningCommand(
            self.command_of_live(folder, arguments)
                .stdout(stdout)
                .spawn()
                .unwrap(),
        )
    }

    /// `live` inside; it may write to the folder.
    fn command_of_live(&self, folder: &Path, arguments: &[&str]) -> Command {
        use std::os::unix::fs::PermissionsExt;
        let program = Path::new(env!("CARGO_BIN_EXE_roce-analyze"));
        if folder.parent().is_some() {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let mut command = self.inside(folder, program);
        command.arg("live").args(arguments);
        command
    }

    #[cfg(feature = "live")]
    /// Does something inside, where the host's own address is up.
    pub(crate) fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.ip(&["link", "set", "lo", "up"]).unwrap();
        let namespace = fs::File::open(format!("/run/netns/{}", self.name)).unwrap();
        let inside = std::thread::spawn(move || {
            let namespace = std::os::fd::AsFd::as_fd(&namespace);
            move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        inside.join().unwrap()
    }

    /// Sends frames out of an interface inside, limited to a number per second.
    pub(crate) fn send(&self, device: &'static str, frames: Vec<Vec<u8>>, rate: Option<u32>) {
        send_in(&self.name, device, frames, rate);
    }
}

/// Sends frames out of an interface of a network namespace, limited to a number per second.
fn send_in(namespace: &str, device: &'static str, frames: Vec<Vec<u8>>, rate: Option<u32>) {
    send_by(&[namespace], device, frames, rate);
}

/// Sends frames out of an interface of network namespaces, limited to a number per second: those of the first frame's source by the first one,
/// others by the last one.
pub(crate) fn send_by(namespaces: &[&str], device: &'static str, frames: Vec<Vec<u8>>, rate: Option<u32>) {
    let open = |name: &&str| fs::File::open(format!("/run/netns/{name}")).unwrap();
    let namespaces: Vec<fs::File> = namespaces.iter().map(open).collect();
    let sender = std::thread::spawn(move || {
        let mut injectors = Vec::new();
        for namespace in &namespaces {
            move_into_link_name_space(
                std::os::fd::AsFd::as_fd(namespace),
                Some(LinkNameSpaceType::Network),
            )
            .unwrap();
            injectors.push(Injector::open(device).unwrap());
        }
        let last = injectors.len() - 1;
        let begun = Instant::now();
        for (number, frame) in (0..).zip(&frames) {
            if let Some(rate) = rate {
                let due = Duration::from_secs(1) * number / rate;
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            }
            // The source is behind the destination in an Ethernet header.
            let by = if frame[6..12] == frames[0][6..12] { 0 } else { last };
            injectors[by].send(frame).unwrap();
        }
    });
    sender.join().unwrap();
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = ip(&["netns", "del", &self.name]);
    }
}

/// A command that is running, and ended when it is dropped.
pub(crate) struct RunningCommand(pub(crate) Child);

impl RunningCommand {
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

impl Drop for RunningCommand {
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

/// Parts of a document about the packets, without the run and the names of inputs.
pub(crate) fn results(mut document: Value) -> Value {
    document["run"].take();
    // Files of packets alone have no samples.
    document.as_object_mut().unwrap().remove("samples");
    for tap in document["taps"].as_array_mut().unwrap() {
        tap["input"].take();
    }
    document
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
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
pub(crate) fn as_nobody(
    net: &Net,
    capabilities: &str,
    arguments: &[&str],
) -> Option<(RunningCommand, TempDir)> {
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
    Some((RunningCommand(command.spawn().unwrap()), folder))
}
