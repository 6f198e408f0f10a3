//! Records of runs on this machine: where their processes are, for `status` and `stop` of a later command.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use roce_files::{Access, Directory};
use roce_switches::inventory::{HostTarget, SshSettings};
use serde::{Deserialize, Serialize};

use super::parallel::{Machines, machines};

/// Version of the record's form.
const SCHEMA_VERSION: u32 = 1;
/// Bytes of a record.
const MAX_RECORD_BYTES: u64 = 8 << 20;
/// Records that are looked at.
const MAX_RECORDS: usize = 10_000;
/// Ending of a record's name.
const ENDING: &str = ".json";

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Version of the form.
    pub schema_version: u32,
    /// The run's id.
    pub id: String,
    /// The plan's name.
    pub name: String,
    /// The tool.
    pub tool: String,
    /// Length of the streams in seconds.
    pub duration_s: u64,
    /// Time beyond it after which a host ends a stream, in seconds.
    pub grace_s: u64,
    /// When the run was started: nanoseconds since 1970.
    pub started_ns: u64,
    /// The hosts.
    pub hosts: Vec<HostRecord>,
    /// The streams.
    pub streams: Vec<StreamRecord>,
    /// How ssh is called.
    pub ssh: SshRecord,
}

/// A host of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRecord {
    /// Its name.
    pub name: String,
    /// Its address for ssh.
    pub address: String,
    /// The user for ssh.
    pub user: Option<String>,
    /// Words before each command.
    pub prefix: Option<String>,
    /// The run's folder there.
    pub folder: String,
    /// RDMA devices and ports, `mlx5_0:1`, or interfaces that carry streams.
    pub devices: Vec<String>,
    /// The host's clock minus this machine's, in nanoseconds.
    pub offset_ns: i64,
}

/// A stream of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamRecord {
    /// Its number, from 1 on.
    pub number: usize,
    /// The client, as `host:device`.
    pub client: String,
    /// The client's host.
    pub client_host: String,
    /// The server, as `host:device`.
    pub server: String,
    /// The server's host.
    pub server_host: String,
    /// The server's port.
    pub port: u16,
    /// Bytes of a message.
    pub size: u64,
    /// Queue pairs or connections.
    pub qps: u32,
    /// Why it was not started.
    pub failure: Option<String>,
}

/// How ssh is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SshRecord {
    connect_timeout_ms: u64,
    control_persist_ms: u64,
    timeout_ms: u64,
    config: Option<String>,
    command: Option<String>,
}

impl From<&SshSettings> for SshRecord {
    fn from(settings: &SshSettings) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        // The record may be read from another folder.
        let absolute = |path: &String| {
            let whole = std::path::absolute(path).ok();
            whole
                .and_then(|path| path.to_str().map(str::to_owned))
                .unwrap_or_else(|| path.clone())
        };
        Self {
            connect_timeout_ms: ms(settings.connect_timeout),
            control_persist_ms: ms(settings.control_persist),
            timeout_ms: ms(settings.timeout),
            config: settings.config.as_ref().map(absolute),
            command: settings.command.clone(),
        }
    }
}

impl SshRecord {
    fn settings(&self) -> SshSettings {
        SshSettings {
            connect_timeout: Duration::from_millis(self.connect_timeout_ms),
            control_persist: Duration::from_millis(self.control_persist_ms),
            timeout: Duration::from_millis(self.timeout_ms),
            config: self.config.clone(),
            command: self.command.clone(),
        }
    }
}

impl RunRecord {
    /// The version of the form that is written.
    pub const VERSION: u32 = SCHEMA_VERSION;

    /// The machines of its hosts.
    pub fn machines(&self) -> Machines {
        let hosts: Vec<HostTarget> = self
            .hosts
            .iter()
            .map(|host| HostTarget {
                address: Some(host.address.clone()),
                user: host.user.clone(),
                prefix: host.prefix.clone(),
                ..HostTarget::named(&host.name)
            })
            .collect();
        machines(&hosts, &self.ssh.settings())
    }

    /// The host of a name.
    pub fn host(&self, name: &str) -> Option<&HostRecord> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

/// True of what can be the id of a run: it becomes the name of files and folders.
pub fn is_run_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=40).contains(&text.len()) && text.bytes().all(is_plain) && !text.starts_with('-')
}

/// The folder of records, `$XDG_STATE_HOME/roce-analyze/traffic`.
#[derive(Debug)]
pub struct RunRecords {
    folder: Directory,
}

impl RunRecords {
    /// Opens the folder, and makes it if it is missing. `None`: neither XDG_STATE_HOME nor HOME is set to a path.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open() -> Option<Result<Self, roce_files::Error>> {
        let absolute = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
        let path = state.join("roce-analyze").join("traffic");
        Some(Directory::named(&path, Access::Private).map(|folder| Self { folder }))
    }

    /// Writes a record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, record: &RunRecord) -> Result<(), roce_files::Error> {
        let place = roce_files::FilePlace::below(&self.folder, &format!("{}{ENDING}", record.id));
        let mut output = place.begin(true, Access::Private)?;
        let written = serde_json::to_writer_pretty(&mut output, record).map_err(std::io::Error::from);
        let written = written.and_then(|()| output.flush());
        written.map_err(roce_files::Error::io("written", &place.path()))?;
        output.finish()
    }

    /// The record of a run, or why it cannot be read.
    ///
    /// # Errors
    /// One line that says why.
    pub fn read(&self, id: &str) -> Result<RunRecord, String> {
        if !is_run_id(id) {
            return Err(format!("'{id}' is no id of a run"));
        }
        let name = format!("{id}{ENDING}");
        if !self.folder.has(&name) {
            return Err(format!(
                "there is no run {id}\nhint: {} has the runs that this machine started",
                self.folder.path().display()
            ));
        }
        let path = self.folder.path_of(&name);
        let text = roce_files::read_text(&path, MAX_RECORD_BYTES).map_err(|error| error.to_string())?;
        let record: RunRecord =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if record.schema_version != SCHEMA_VERSION || record.id != id {
            return Err(format!("{}: a record of another form", path.display()));
        }
        Ok(record)
    }

    /// Ids of the runs, the latest last.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn ids(&self) -> Result<Vec<String>, roce_files::Error> {
        let names = self.folder.names()?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(ENDING));
        let mut ids: Vec<String> = ids.filter(|id| is_run_id(id)).map(str::to_owned).collect();
        ids.sort();
        let extra = ids.len().saturating_sub(MAX_RECORDS);
        ids.drain(..extra);
        Ok(ids)
    }

    /// Removes a record.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, id: &str) -> Result<(), roce_files::Error> {
        if is_run_id(id) {
            self.folder.remove(&format!("{id}{ENDING}"))
        } else {
            Ok(())
        }
    }
}
