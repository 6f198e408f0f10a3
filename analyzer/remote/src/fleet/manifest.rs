//! The manifest of a run, `fleet.json`: which hosts took part, what they captured, what is where, and what failed.
//!
//! It is written at each step, so that a controller that is killed leaves a true one. It names no command, no address and no user: how
//! hosts are reached is the inventory's matter, so a manifest of another person starts nothing.

use std::io::Write as _;
use std::path::Path;

use roce_files::{Access, Directory, FilePlace};
use roce_model::text::escape_json;
use serde::{Deserialize, Serialize};

use super::fields::is_plain_path;
use super::report::{RemoteFile, is_file_name};
use super::script::HostRunNames;
use crate::clock::Offset;

/// Name of the manifest.
pub const FILE: &str = "fleet.json";
/// Version of its form.
pub const SCHEMA_VERSION: u32 = 1;
/// Bytes of a manifest that is read.
const MAX_BYTES: u64 = 16 << 20;
/// Hosts of a manifest that is read.
const MAX_HOSTS: usize = 4_096;
/// Bytes of a name of a file here.
const MAX_NAME_BYTES: usize = 255;

/// A run of `fleet capture`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this form.
    pub schema_version: u32,
    /// Version of the program.
    pub version: String,
    /// The run's identifier: 16 hexadecimal digits.
    pub run: String,
    /// How far the run came.
    pub state: RunState,
    /// Start of the command, in nanoseconds since 1970 by this machine's clock.
    pub begun_ns: i64,
    /// Planned start of the captures, by this machine's clock.
    pub start_ns: Option<i64>,
    /// Length of the captures.
    pub duration_ms: Option<u64>,
    /// Bytes kept of each packet.
    pub snaplen: u32,
    /// Filter of libpcap.
    pub filter: Option<String>,
    /// The command that ran meanwhile, and its exit code.
    pub command: Option<CommandRow>,
    /// The hosts, in the order of the inventory.
    pub hosts: Vec<HostRow>,
}

/// How far a run came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Hosts are being asked.
    Asking,
    /// Captures run.
    Capturing,
    /// Files are being fetched.
    Collecting,
    /// Everything is here, or has failed.
    Done,
    /// Something is left on hosts: `fleet collect` fetches it.
    Incomplete,
}

/// The command of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommandRow {
    /// Its words.
    pub words: Vec<String>,
    /// Its exit code; absent: it has not ended, or by a signal.
    pub exit_code: Option<i32>,
}

/// How far a host came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    /// It was not asked, or did not answer.
    #[default]
    Planned,
    /// It can capture.
    Ready,
    /// It captures, as far as this machine knows.
    Capturing,
    /// Its capture has ended; its files are there.
    Captured,
    /// All its files are here.
    Collected,
    /// Nothing of it is to be had.
    Failed,
}

/// A host of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRow {
    /// Its name in the inventory.
    pub name: String,
    /// How far it came.
    pub state: HostState,
    /// Why it failed.
    pub error: Option<String>,
    /// Notes for readers of its capture.
    pub warnings: Vec<String>,
    /// Name of the check that failed: `capture.blind`.
    pub check: Option<String>,
    /// Means of capturing: `live`, `tcpdump`.
    pub how: Option<String>,
    /// The name that it gives itself.
    pub hostname: Option<String>,
    /// Identifier of its boot.
    pub boot: Option<String>,
    /// Release of its kernel.
    pub release: Option<String>,
    /// Its architecture.
    pub machine: Option<String>,
    /// State of its clock's synchronization.
    pub sync: Option<String>,
    /// Its clock against this machine's.
    pub clock: Option<Offset>,
    /// Interfaces that it captures from.
    pub interfaces: Vec<String>,
    /// Folder for captures there.
    pub base: Option<String>,
    /// Number of its network namespace.
    pub net: Option<String>,
    /// Process number of the capture's script.
    pub pid: Option<u32>,
    /// Planned start, by its own clock.
    pub start_ns: Option<i64>,
    /// Time of the first frame, by its own clock.
    pub first_frame_ns: Option<i64>,
    /// Frames of all files; absent before they are here.
    pub frames: Option<u64>,
    /// Bytes that these frames had on the wire.
    pub wire_bytes: Option<u64>,
    /// Frames that the capture lost, as it counted them.
    pub dropped: Option<u64>,
    /// Rise of the RDMA ports' counters meanwhile.
    pub counters: Option<CountersRow>,
    /// Processor time of the capture, user and system.
    pub cpu: Option<String>,
    /// Why it ended, if not by its duration: `size`, `input`.
    pub stopped: Option<String>,
    /// Exit code of the capture.
    pub exit_code: Option<i32>,
    /// Its files.
    pub files: Vec<FileRow>,
}

/// Rise of counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CountersRow {
    /// Bytes received.
    pub received_bytes: Option<u64>,
    /// Bytes sent.
    pub sent_bytes: Option<u64>,
    /// Packets, by Soft-RoCE's counters.
    pub packets: Option<u64>,
}

/// A file of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileRow {
    /// Its name in the run's folder here.
    pub name: String,
    /// Its name below the run's folder there.
    pub remote: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, by the host.
    pub sha256: Option<String>,
    /// It is here, and whole.
    pub is_here: bool,
}

impl FileRow {
    /// The file as the host has it.
    pub fn remote(&self) -> RemoteFile {
        RemoteFile {
            name: self.remote.clone(),
            bytes: self.bytes,
            sha256: self.sha256.clone(),
        }
    }
}

impl HostRow {
    /// Where its files are; `None`: it has none.
    pub fn place(&self, run: &str) -> Option<HostRunNames> {
        Some(HostRunNames {
            base: self.base.clone()?,
            net: self.net.clone()?,
            id: run.to_owned(),
        })
    }

    /// Something may be left there.
    pub fn is_pending(&self) -> bool {
        matches!(self.state, HostState::Capturing | HostState::Captured)
    }
}

/// Why a manifest cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The file.
    #[error(transparent)]
    File(#[from] roce_files::Error),
    /// Its form.
    #[error("{path}: not the manifest of a fleet run: {reason}")]
    Form {
        /// The file.
        path: String,
        /// The mistake.
        reason: String,
    },
}

impl Manifest {
    /// The manifest in a folder.
    ///
    /// # Errors
    /// If it cannot be read, has another form, or names that could lead elsewhere.
    pub fn read(folder: &Path) -> Result<Self, ManifestError> {
        let path = folder.join(FILE);
        let text = roce_files::read_text(&path, MAX_BYTES)?;
        Self::parse(&text).map_err(|reason| ManifestError::Form {
            path: path.display().to_string(),
            reason,
        })
    }

    /// The manifest in a text.
    ///
    /// # Errors
    /// The mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let manifest: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema_version != SCHEMA_VERSION {
            return Err(format!(
                "schema_version is {}, and this program reads {SCHEMA_VERSION}",
                self.schema_version
            ));
        }
        if self.run.len() != 16 || !self.run.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("run has not 16 hexadecimal digits".to_owned());
        }
        if self.hosts.len() > MAX_HOSTS {
            return Err(format!("{} hosts are more than {MAX_HOSTS}", self.hosts.len()));
        }
        for host in &self.hosts {
            let wrong = |text: &str| Err(format!("host '{}': {text}", host.name));
            if host.base.as_ref().is_some_and(|base| !is_plain_path(base)) {
                return wrong("base is no plain absolute path");
            }
            let is_number = |net: &String| !net.is_empty() && net.bytes().all(|byte| byte.is_ascii_digit());
            if host.net.as_ref().is_some_and(|net| !is_number(net)) {
                return wrong("net is no number");
            }
            if !host
                .files
                .iter()
                .all(|file| is_file_name(&file.remote) && is_own_name(&file.name))
            {
                return wrong("a file's name could lead elsewhere");
            }
        }
        Ok(())
    }

    /// Writes it into a folder, in place of the one before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Directory) -> Result<(), roce_files::Error> {
        let place = FilePlace::below(folder, FILE);
        let failed = || roce_files::Error::io("written", &place.path());
        let text =
            serde_json::to_string_pretty(self).map_err(|error| failed()(std::io::Error::other(error)))?;
        let mut output = place.begin(true, Access::Private)?;
        writeln!(output, "{}", escape_json(&text)).map_err(|error| failed()(error))?;
        output.finish()
    }

    /// Files that are here, with their hosts, in the order of the hosts.
    pub fn files(&self) -> impl Iterator<Item = (&HostRow, &FileRow)> {
        let hosts = self.hosts.iter();
        hosts.flat_map(|host| {
            host.files
                .iter()
                .filter(|file| file.is_here)
                .map(move |file| (host, file))
        })
    }
}

/// True for a name of a file in the run's folder.
fn is_own_name(name: &str) -> bool {
    !name.starts_with('.')
        && !name.contains(['/', '\0', '\n'])
        && (1..=MAX_NAME_BYTES).contains(&name.len())
        && super::report::ending(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let file = |is_here| FileRow {
            name: "gpu1.ens1f0np0.pcapng.zst".to_owned(),
            remote: "capture.pcapng.zst".to_owned(),
            bytes: 131_000_000,
            sha256: Some("ab".repeat(32)),
            is_here,
        };
        Manifest {
            schema_version: SCHEMA_VERSION,
            version: "0.1.0".to_owned(),
            run: "0123456789abcdef".to_owned(),
            state: RunState::Incomplete,
            begun_ns: 1_795_000_000_123_456_789,
            start_ns: Some(1_795_000_003_000_000_001),
            duration_ms: Some(10_000),
            snaplen: 160,
            filter: None,
            command: Some(CommandRow {
                words: vec!["sleep".to_owned(), "5".to_owned()],
                exit_code: Some(0),
            }),
            hosts: vec![
                HostRow {
                    name: "gpu1".to_owned(),
                    state: HostState::Collected,
                    clock: Some(Offset {
                        ahead_ns: -7_200_000_000_000,
                        bound_ns: 400_000,
                    }),
                    base: Some("/var/tmp/roce-fleet-0".to_owned()),
                    net: Some("4026531840".to_owned()),
                    frames: Some(u64::MAX),
                    files: vec![file(true)],
                    ..HostRow::default()
                },
                HostRow {
                    name: "gpu4".to_owned(),
                    state: HostState::Failed,
                    error: Some(
                        "ssh: connect to host gpu4 port 22: Connection timed out\u{1b}[0m".to_owned(),
                    ),
                    files: vec![file(false)],
                    ..HostRow::default()
                },
            ],
        }
    }

    #[test]
    fn a_manifest_comes_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let here = Directory::named(&folder.path().join("run1"), Access::Private).unwrap();
        let written = manifest();
        written.write(&here).unwrap();
        assert_eq!(Manifest::read(here.path()).unwrap(), written);
        let text = std::fs::read_to_string(here.path().join(FILE)).unwrap();
        assert!(!text.contains('\u{1b}'), "escape characters are escaped");
        assert_eq!(written.files().count(), 1, "one of two is here");
        let place = written.hosts[0].place(&written.run).unwrap();
        assert_eq!(
            place.folder(),
            "/var/tmp/roce-fleet-0/0123456789abcdef-4026531840"
        );
    }

    /// A mistake, and its making.
    type Case<'a> = (&'a str, &'a dyn Fn(&mut Manifest));

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let refused = |change: &dyn Fn(&mut Manifest)| {
            let mut manifest = manifest();
            change(&mut manifest);
            Manifest::parse(&serde_json::to_string(&manifest).unwrap()).unwrap_err()
        };
        let cases: [Case<'_>; 6] = [
            ("16 hexadecimal", &|all| all.run = "../../../../etc/".to_owned()),
            ("plain absolute", &|all| {
                all.hosts[0].base = Some("/tmp/$(reboot)".to_owned());
            }),
            ("no number", &|all| all.hosts[0].net = Some("1/..".to_owned())),
            ("elsewhere", &|all| {
                all.hosts[0].files[0].remote = "../../etc/a.pcap".to_owned();
            }),
            ("elsewhere", &|all| {
                all.hosts[0].files[0].name = "../a.pcap".to_owned();
            }),
            ("schema_version", &|all| all.schema_version = 9),
        ];
        for (text, change) in cases {
            let reason = refused(change);
            assert!(reason.contains(text), "{reason}");
        }
        assert!(Manifest::parse("{").is_err());
    }
}
