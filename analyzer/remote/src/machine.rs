//! A machine on which commands are run: this one, or another one by ssh.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use roce_files::{Access, Directory};
use roce_switches::inventory::{HostTarget, HypervisorTarget, SshSettings, SwitchTarget};

use crate::link::Link;
pub use crate::outcome::{CommandOutput, RemoteError};
use crate::program::{self, EndedProgram, Failure, Limits};

/// Address of this machine in an inventory.
const LOCAL: &str = "local";
/// Bytes of standard error that are kept.
const MAX_ERROR_BYTES: u64 = 64 << 10;
/// Exit code of ssh itself, where it could not connect.
const SSH_FAILED: i32 = 255;
/// Exit code of a shell that does not find a command.
const NOT_FOUND: i32 = 127;

/// A machine on which commands are run.
#[derive(Clone, Debug)]
pub struct Machine {
    name: String,
    /// Where ssh connects to; `None`: this machine.
    destination: Option<String>,
    ssh: Arc<SshSettings>,
    prefix: Option<String>,
    control: Option<PathBuf>,
    has_own_group: bool,
    /// Its scripts go over this link, and not over ssh.
    link: Option<Arc<dyn Link>>,
}

impl Machine {
    /// A host of an inventory. Settings of ssh are shared by all of them.
    pub fn host(host: &HostTarget, ssh: &Arc<SshSettings>) -> Self {
        let mut machine = Self::new(&host.name, host.address(), host.user.as_deref(), ssh);
        machine.prefix.clone_from(&host.prefix);
        machine
    }

    /// A switch of an inventory.
    pub fn switch(switch: &SwitchTarget, ssh: &Arc<SshSettings>) -> Self {
        Self::new(&switch.name, switch.address(), switch.user.as_deref(), ssh)
    }

    /// A hypervisor of an inventory.
    pub fn hypervisor(hypervisor: &HypervisorTarget, ssh: &Arc<SshSettings>) -> Self {
        Self::new(
            &hypervisor.name,
            hypervisor.address(),
            hypervisor.user.as_deref(),
            ssh,
        )
    }

    /// A machine by its address; `local` is this one.
    pub fn new(name: &str, address: &str, user: Option<&str>, ssh: &Arc<SshSettings>) -> Self {
        let destination = (address != LOCAL)
            .then(|| user.map_or_else(|| address.to_owned(), |user| format!("{user}@{address}")));
        Self {
            name: name.to_owned(),
            control: destination.as_ref().and_then(|_| control_folder()),
            destination,
            ssh: Arc::clone(ssh),
            prefix: None,
            has_own_group: false,
            link: None,
        }
    }

    /// A machine whose scripts go over another link than ssh: a simulated one.
    pub fn over(name: &str, link: Arc<dyn Link>) -> Self {
        Self {
            link: Some(link),
            ..Self::new(name, LOCAL, None, &Arc::default())
        }
    }

    /// This moment, by a clock that nobody sets.
    pub fn now(&self) -> Instant {
        self.link().map_or_else(Instant::now, Link::now)
    }

    /// Nanoseconds since 1970, by this machine's clock.
    pub fn now_ns(&self) -> i64 {
        self.link().map_or_else(crate::link::now_ns, Link::now_ns)
    }

    /// Lets time pass.
    pub fn sleep(&self, time: Duration) {
        match self.link() {
            Some(link) => link.sleep(time),
            None => std::thread::sleep(time),
        }
    }

    /// The link of its scripts, where it is not that of the system.
    pub(crate) fn link(&self) -> Option<&dyn Link> {
        self.link.as_deref()
    }

    /// The machine, whose commands are in process groups of their own: a signal of the terminal does not reach them.
    #[must_use]
    pub fn with_own_groups(mut self) -> Self {
        self.has_own_group = true;
        self
    }

    /// Its name in results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Longest time of one command, as the inventory has it.
    pub fn patience(&self) -> Duration {
        self.ssh.timeout
    }

    /// True if it is this machine.
    pub fn is_local(&self) -> bool {
        self.destination.is_none()
    }

    /// A command that runs a POSIX shell script there, as the words of the inventory's `prefix` have it. Its standard input, output and
    /// error are those of the script. The end of this process' pipe to it ends ssh, and with it the script's standard input.
    ///
    /// # Errors
    /// If the script has a NUL character.
    pub fn shell(&self, script: &str) -> Result<Command, RemoteError> {
        let line = match &self.prefix {
            Some(prefix) => format!("{prefix} sh -c {}", quoted([script])?),
            None if self.is_local() => script.to_owned(),
            // The user's shell there may be another one.
            None => format!("sh -c {}", quoted([script])?),
        };
        Ok(self.line(&line))
    }

    /// A command that gives a line to the machine's own command interpreter: the CLI of a switch, or the login shell.
    pub fn line(&self, line: &str) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = self.plain_line(line);
        if self.has_own_group {
            command.process_group(0);
        }
        command
    }

    fn plain_line(&self, line: &str) -> Command {
        let Some(destination) = &self.destination else {
            let mut command = Command::new("sh");
            command.args(["-c", line]);
            return command;
        };
        let ssh = &self.ssh;
        let mut command = Command::new(ssh.command.as_deref().unwrap_or("ssh"));
        if let Some(config) = &ssh.config {
            command.args(["-F", config]);
        }
        let connect = ssh.connect_timeout.as_secs().max(1);
        command.args(["-o", "BatchMode=yes"]);
        command.args(["-o", &format!("ConnectTimeout={connect}")]);
        command.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"]);
        if let Some(folder) = &self.control {
            let persist = ssh.control_persist.as_secs();
            command.args(["-o", "ControlMaster=auto"]);
            command.args(["-o", &format!("ControlPersist={persist}")]);
            command.arg("-o");
            let mut path = std::ffi::OsString::from("ControlPath=");
            // ssh's %C has the address, port and user. Two names of one address may have keys of their own.
            path.push(folder.join(format!("{:08x}%C", short_hash(destination))));
            command.arg(path);
        }
        command.args(["-T", "--", destination, line]);
        command
    }

    /// Runs a shell script there to its end, within the inventory's `timeout`. Returns its standard output.
    ///
    /// # Errors
    /// If it cannot be run, fails, or takes too long.
    pub fn run(&self, script: &str, max_bytes: u64) -> Result<Vec<u8>, RemoteError> {
        self.run_within(script, self.ssh.timeout, max_bytes)
    }

    /// As [`run`](Self::run), with another limit of time.
    ///
    /// # Errors
    /// As those of [`run`](Self::run).
    pub fn run_within(
        &self,
        script: &str,
        patience: Duration,
        max_bytes: u64,
    ) -> Result<Vec<u8>, RemoteError> {
        self.run_while(script, patience, max_bytes, &|| true)
    }

    /// As [`run_within`](Self::run_within), for as long as `goes_on` says so.
    ///
    /// # Errors
    /// As those of [`run`](Self::run), and [`RemoteError::Interrupted`].
    pub fn run_while(
        &self,
        script: &str,
        patience: Duration,
        max_bytes: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, RemoteError> {
        let said = self.heard_by(script, patience, max_bytes, goes_on)?;
        said.failure.map_or(Ok(said.output), Err)
    }

    /// Gives a line to the machine's own command interpreter, within the inventory's `timeout`. Returns its standard output.
    ///
    /// # Errors
    /// As those of [`run`](Self::run).
    pub fn answer(&self, line: &str, max_bytes: u64) -> Result<Vec<u8>, RemoteError> {
        self.ended(self.line(line), self.ssh.timeout, max_bytes)
    }

    /// Gives a line to the machine's own command interpreter, within the inventory's `timeout`. A command that failed has an output,
    /// too: CLIs print their errors there.
    ///
    /// # Errors
    /// If the machine cannot be reached, or takes too long.
    pub fn said(&self, line: &str, max_bytes: u64) -> Result<CommandOutput, RemoteError> {
        self.heard(self.line(line), self.ssh.timeout, max_bytes, &|| true)
    }

    /// Runs a shell script there, within the inventory's `timeout`. One that failed has an output, too: that of its first commands.
    ///
    /// # Errors
    /// As those of [`said`](Self::said).
    pub fn said_by(&self, script: &str, max_bytes: u64) -> Result<CommandOutput, RemoteError> {
        self.heard_by(script, self.ssh.timeout, max_bytes, &|| true)
    }

    fn heard_by(
        &self,
        script: &str,
        patience: Duration,
        max_bytes: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<CommandOutput, RemoteError> {
        match self.link() {
            Some(link) => link.run(script, patience, max_bytes, goes_on),
            None => self.heard(self.shell(script)?, patience, max_bytes, goes_on),
        }
    }

    fn ended(&self, command: Command, patience: Duration, max_bytes: u64) -> Result<Vec<u8>, RemoteError> {
        let said = self.heard(command, patience, max_bytes, &|| true)?;
        said.failure.map_or(Ok(said.output), Err)
    }

    fn heard(
        &self,
        mut command: Command,
        patience: Duration,
        max_bytes: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<CommandOutput, RemoteError> {
        let limits = Limits {
            patience,
            output: max_bytes,
            errors: MAX_ERROR_BYTES,
        };
        let program = command.get_program().to_string_lossy().into_owned();
        match program::run_unless(&mut command, limits, || !goes_on()) {
            Ok(ended) => self.judged(ended),
            Err(Failure::System(source)) => Err(RemoteError::Start { program, source }),
            Err(Failure::NoAnswer) => Err(RemoteError::NoAnswer(patience)),
            Err(Failure::Stopped) => Err(RemoteError::Interrupted),
        }
    }

    /// The output of a command, and why it failed.
    pub(crate) fn judged(&self, ended: EndedProgram) -> Result<CommandOutput, RemoteError> {
        use std::os::unix::process::ExitStatusExt as _;
        let text = || last_line(&ended.errors);
        let signal = ended.status.signal().map_or(-1, |signal| 128 + signal);
        let failure = match ended.status.code().unwrap_or(signal) {
            0 => None,
            SSH_FAILED if !self.is_local() => return Err(RemoteError::Unreachable(text())),
            NOT_FOUND => Some(RemoteError::NotFound(text())),
            code => Some(RemoteError::Failed { code, text: text() }),
        };
        Ok(CommandOutput {
            output: ended.output,
            failure,
        })
    }
}

/// The last line of an error text that has one.
pub(crate) fn last_line(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or("it printed no reason").trim().to_owned()
}

/// Words as one line of a POSIX shell.
///
/// # Errors
/// If a word has a NUL character, which no argument can have.
pub fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<String, RemoteError> {
    let words: Vec<&str> = words.into_iter().collect();
    shlex::try_join(words.iter().copied()).map_err(|_| RemoteError::Argument(words.join(" ")))
}

/// The folder of the sockets that connections share: this user's own, mode 700. `None`: each command connects by itself.
fn control_folder() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| folder.is_absolute());
    let own = Path::new("/proc/self").metadata().ok()?.uid();
    let folder = match runtime {
        Some(folder) => folder.join("roce-analyze"),
        None => std::env::temp_dir().join(format!("roce-analyze-{own}")),
    };
    // It stays open for as long as ssh may use it.
    Directory::named(&folder, Access::Private).ok()?.keep();
    is_private(&folder, own).then_some(folder)
}

/// A short hash of a text (FNV-1a, 32 bits), the same in all processes: they share connections by it.
fn short_hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// True if a folder is this user's own, and nobody else's to enter.
fn is_private(folder: &Path, own: u32) -> bool {
    folder.symlink_metadata().is_ok_and(|about| {
        about.is_dir() && about.uid() == own && about.permissions().mode() & 0o777 == 0o700
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn local(prefix: Option<&str>) -> Machine {
        let mut host = HostTarget::named("here");
        host.address = Some(LOCAL.to_owned());
        host.prefix = prefix.map(str::to_owned);
        Machine::host(&host, &Arc::new(SshSettings::default()))
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // draft-eastlake-fnv, appendix C: "" and "a".
        assert_eq!((short_hash(""), short_hash("a")), (0x811c_9dc5, 0xe40c_292c));
    }

    #[test]
    fn commands_run_here_without_ssh() {
        assert_eq!(local(None).run("echo $((1 + 2))", 64).unwrap(), b"3\n");
        assert_eq!(
            local(Some("env A=5")).run("echo \"$A\"", 64).unwrap(),
            b"5\n",
            "words before the command"
        );
    }

    #[test]
    fn failures_say_what_failed() {
        let here = local(None);
        let failed = here.run("echo one >&2; echo two >&2; exit 3", 64).unwrap_err();
        assert_eq!(
            failed.to_string(),
            "the command failed there with exit code 3: two"
        );
        let missing = here.run("surely-no-such-command", 64).unwrap_err();
        assert!(matches!(missing, RemoteError::NotFound(_)), "{missing}");
        let slow = here
            .run_within("sleep 60", Duration::from_millis(50), 64)
            .unwrap_err();
        assert!(matches!(slow, RemoteError::NoAnswer(_)), "{slow}");
        // 255 is a script's own code where there is no ssh.
        let failed = here.run("exit 255", 64).unwrap_err();
        assert!(
            matches!(failed, RemoteError::Failed { code: 255, .. }),
            "{failed}"
        );
    }

    #[test]
    fn ssh_gets_options_destination_and_line() {
        let ssh = Arc::new(SshSettings {
            config: Some("my config".to_owned()),
            ..SshSettings::default()
        });
        let machine = Machine::new("leaf1", "192.0.2.29", Some("monitor"), &ssh);
        let command = machine.line("show version");
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        assert_eq!(command.get_program(), "ssh");
        assert_eq!(words[..2], ["-F", "my config"]);
        assert!(words.iter().any(|word| word == "BatchMode=yes"));
        assert!(!words.iter().any(|word| word.contains("StrictHostKeyChecking")));
        let end = words.len() - 4;
        assert_eq!(words[end..], ["-T", "--", "monitor@192.0.2.29", "show version"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// POSIX 2.2: quoted words come back from `sh` as they were.
        #[test]
        fn words_survive_a_shell(words in proptest::collection::vec("[^\0]{0,12}", 1..4)) {
            let line = quoted(words.iter().map(String::as_str)).unwrap();
            let output = local(Some("env")).run(&format!("printf '%s\\n.\\n' {line}"), 4096).unwrap();
            let expected = words.join("\n.\n") + "\n.\n";
            prop_assert_eq!(String::from_utf8(output).unwrap(), expected);
        }
    }
}
