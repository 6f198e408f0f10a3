//! A snapshot of a host: texts of files and answers of drivers, by their paths.
//!
//! A path has no leading slash: `sys/class/net/eth0/mtu`, `proc/self/limits`. Answers of drivers and of system calls are JSON
//! texts below `answers`, so that a recorded host is a folder of texts. Counters of a second reading are below `later`.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use serde_json::Value;

/// Maximum number of files in a snapshot. Further ones are left out, and the snapshot says so.
const MAX_FILES: usize = 1 << 17;
/// Maximum number of bytes of all files of a snapshot.
const MAX_BYTES: usize = 64 << 20;

/// Maps paths below `sys` to the paths that they are links to: the shape of the PCI tree.
pub const LINKS: &str = "answers/links.json";
/// Maps paths to the reason for which they could not be read.
pub const UNREADABLE: &str = "answers/unreadable.json";

/// One path of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Entry {
    Bytes(Vec<u8>),
    /// It is there, and could not be read: the reason.
    Unreadable(String),
}

/// A value that was read, or the reason why there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// Where it was looked for.
    pub source: String,
    /// Why it is not known.
    pub why: String,
}

/// A snapshot of a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Host {
    /// The host's name.
    pub name: String,
    /// True if it was recorded: rights and paths are those of another time and process.
    pub is_recorded: bool,
    /// True if it was made of a text with some outputs of tools: what is absent is not known.
    pub is_partial: bool,
    entries: BTreeMap<String, Entry>,
    links: BTreeMap<String, String>,
    bytes: usize,
    left_out: usize,
}

impl Host {
    /// A snapshot without any file.
    pub fn new(name: &str, is_recorded: bool) -> Self {
        Self {
            name: name.to_owned(),
            is_recorded,
            ..Self::default()
        }
    }

    /// Adds a file. Beyond the limits of a snapshot it is left out and counted.
    pub fn insert(&mut self, path: &str, bytes: Vec<u8>) {
        if self.entries.len() >= MAX_FILES || self.bytes + bytes.len() > MAX_BYTES {
            self.left_out += 1;
            return;
        }
        self.bytes += bytes.len();
        if path == LINKS {
            for (from, to) in texts(&bytes) {
                self.links.insert(from, to);
            }
        }
        if path == UNREADABLE {
            for (path, why) in texts(&bytes) {
                self.insert_unreadable(&path, &why);
            }
        }
        self.entries.insert(path.to_owned(), Entry::Bytes(bytes));
    }

    /// Adds a path that is there and could not be read. A text that is known stays.
    pub fn insert_unreadable(&mut self, path: &str, why: &str) {
        if self.entries.len() >= MAX_FILES {
            self.left_out += 1;
            return;
        }
        let why = Entry::Unreadable(why.to_owned());
        self.entries.entry(path.to_owned()).or_insert(why);
    }

    /// Number of files that exceeded the limits.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Every file with its bytes, in order of the paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::Bytes(bytes) => Some((path.as_str(), bytes.as_slice())),
            Entry::Unreadable(_) => None,
        })
    }

    /// Every path that could not be read, with the reason.
    pub fn unreadable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::Bytes(_) => None,
            Entry::Unreadable(why) => Some((path.as_str(), why.as_str())),
        })
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// When it is not there, or could not be read.
    pub fn bytes(&self, path: &str) -> Result<&[u8], Unknown> {
        let unknown = |why: &str| Unknown {
            source: source_of(path),
            why: why.to_owned(),
        };
        match self.entries.get(path) {
            Some(Entry::Bytes(bytes)) => Ok(bytes),
            Some(Entry::Unreadable(why)) => Err(unknown(why)),
            None => Err(unknown("not there")),
        }
    }

    /// The text of a file without blanks around it.
    ///
    /// # Errors
    /// When it is not there, or could not be read.
    pub fn need(&self, path: &str) -> Result<String, Unknown> {
        let bytes = self.bytes(path)?;
        Ok(String::from_utf8_lossy(bytes).trim().to_owned())
    }

    /// The text of a file that is there and is not empty.
    pub fn text(&self, path: &str) -> Option<String> {
        self.need(path).ok().filter(|text| !text.is_empty())
    }

    /// A number in a file.
    ///
    /// # Errors
    /// When there is none.
    pub fn number<N: std::str::FromStr>(&self, path: &str) -> Result<N, Unknown> {
        let text = self.need(path)?;
        text.parse().map_err(|_| Unknown {
            source: source_of(path),
            why: format!("'{}' is no number that fits", short(&text)),
        })
    }

    /// A JSON document.
    ///
    /// # Errors
    /// When there is none, or when it is the error of whom it was requested from: `{"error": "..."}`.
    pub fn json(&self, path: &str) -> Result<Value, Unknown> {
        let unknown = |why: String| Unknown {
            source: source_of(path),
            why,
        };
        let value: Value = serde_json::from_slice(self.bytes(path)?)
            .map_err(|_| unknown("not a JSON document".to_owned()))?;
        // `ethtool --json` answers with a list of one interface.
        let value = match value {
            Value::Array(mut all) if all.len() == 1 && all[0].is_object() => all.remove(0),
            other => other,
        };
        match value.get("error").and_then(Value::as_str) {
            Some(error) => Err(unknown(error.to_owned())),
            None => Ok(value),
        }
    }

    /// The names in a folder, numbers in their order before others in theirs.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let start = format!("{folder}/");
        let below = self.entries.range(start.clone()..).map(|(path, _)| path);
        for path in below.take_while(|path| path.starts_with(&start)) {
            let name = path[start.len()..].split('/').next().unwrap_or_default();
            if names.last().is_none_or(|last| last != name) {
                names.push(name.to_owned());
            }
        }
        names.sort_by_key(|name| (name.parse::<u32>().unwrap_or(u32::MAX), name.clone()));
        names.dedup();
        names
    }

    /// True if there is a file, or a folder with files, of this path.
    pub fn has(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.entries.contains_key(path)
            || self
                .entries
                .range(below.clone()..)
                .next()
                .is_some_and(|(found, _)| found.starts_with(&below))
    }

    /// The target of a link.
    pub fn link(&self, path: &str) -> Option<&str> {
        self.links.get(path).map(String::as_str)
    }

    /// The value of `KEY=VALUE` in a file such as `uevent`.
    pub fn field(&self, path: &str, key: &str) -> Option<String> {
        let text = self.text(path)?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    /// A variable of the environment that was read: of this process, or of that of `--pid`.
    pub fn variable(&self, name: &str) -> Option<String> {
        let all = self.json("answers/env.json").ok()?;
        Some(all.get(name)?.as_str()?.to_owned())
    }
}

/// The text values of a JSON object.
fn texts(bytes: &[u8]) -> Vec<(String, String)> {
    let all: BTreeMap<String, Value> = serde_json::from_slice(bytes).unwrap_or_default();
    let all = all.into_iter();
    all.filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
        .collect()
}

/// The beginning of a text, for messages.
pub(crate) fn short(text: &str) -> String {
    const CHARACTERS: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(CHARACTERS).collect();
    if line.chars().nth(CHARACTERS).is_some() {
        short.push_str("...");
    }
    short
}

/// The place that a path of a snapshot is, for people: a file of the host, or the question that was answered.
pub(crate) fn source_of(path: &str) -> String {
    let own = path.strip_prefix("later/").unwrap_or(path);
    if let Some(name) = own.strip_prefix("commands/ethtool_-S_") {
        return format!("ethtool -S {}", name.trim_end_matches(".txt"));
    }
    let Some(answer) = path.strip_prefix("answers/") else {
        return format!("/{path}");
    };
    let (question, rest) = answer.split_once('.').unwrap_or((answer, ""));
    let object = rest.trim_end_matches("json").trim_end_matches("txt");
    let object = object.trim_end_matches('.');
    let question = match question {
        "mlxlink" => "mlxlink -d",
        "ethtool-pause" => "ETHTOOL_GPAUSEPARAM",
        "ethtool-link" => "ETHTOOL_GLINKSETTINGS",
        "ethtool-fec" => "ETHTOOL_GFECPARAM",
        "dcb-pfc" => "DCB PFC",
        "dcb-peer-pfc" => "DCB PFC of the neighbour",
        "dcb-app" => "DCB application table",
        "dcb-buffer" => "DCB buffers",
        "dcb-maxrate" => "DCB rate limits",
        "dcb-dcbx" => "DCBX",
        "dcb-apptrust" => "DCB trust",
        "nodes" => "open()",
        "env" => "environment",
        "uname" => "uname()",
        "clock" => "adjtimex()",
        "programs" => "running programs",
        "mstconfig" => "mstconfig",
        "ping" => "ping",
        "path-mtu" => "ibv_devinfo",
        other => other,
    };
    if object.is_empty() {
        question.to_owned()
    } else {
        format!("{question} {object}")
    }
}

/// An address of a port's table, as sysfs writes it.
pub(crate) fn gid_address(text: &str) -> Option<Ipv6Addr> {
    let address: Ipv6Addr = text.parse().ok()?;
    (!address.is_unspecified()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        let mut host = Host::new("a", true);
        for (path, text) in [
            ("sys/class/infiniband/mlx5_10/ports/1/state", "4: ACTIVE\n"),
            ("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n"),
            ("sys/class/infiniband/mlx5_1/ports/10/state", "1: DOWN\n"),
            ("sys/class/infiniband/mlx5_1/ports/2/state", "1: DOWN\n"),
            ("sys/class/infiniband_verbs/abi_version", "6\n"),
            (
                "sys/class/net/a/device/uevent",
                "DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:3b:00.0\n",
            ),
            (
                "answers/ethtool-pause.a.json",
                r#"[{"ifname":"a","rx":true,"tx":false}]"#,
            ),
            ("answers/dcb-pfc.a.json", r#"{"error":"Operation not supported"}"#),
            (
                "answers/unreadable.json",
                r#"{"proc/x":"Permission denied","sys/class/net/a/device/uevent":"no"}"#,
            ),
        ] {
            host.insert(path, text.as_bytes().to_vec());
        }
        host
    }

    #[test]
    fn folders_have_their_own_names_alone() {
        let host = host();
        assert_eq!(host.names("sys/class/infiniband"), ["mlx5_1", "mlx5_10"]);
        assert_eq!(host.names("sys/class/infiniband/mlx5_1/ports"), ["1", "2", "10"]);
        assert!(host.has("sys/class/infiniband/mlx5_1") && !host.has("sys/class/infiniband/mlx5"));
        assert!(host.names("nothing").is_empty());
    }

    #[test]
    fn values_come_with_the_reason_for_their_absence() {
        let host = host();
        assert_eq!(host.need("proc/x").unwrap_err().why, "Permission denied");
        assert_eq!(host.need("proc/y").unwrap_err().why, "not there");
        // A text that is known stays.
        assert_eq!(
            host.field("sys/class/net/a/device/uevent", "DRIVER").as_deref(),
            Some("mlx5_core")
        );
        assert_eq!(host.json("answers/ethtool-pause.a.json").unwrap()["rx"], true);
        let error = host.json("answers/dcb-pfc.a.json").unwrap_err();
        assert_eq!(
            (error.source.as_str(), error.why.as_str()),
            ("DCB PFC a", "Operation not supported")
        );
        assert!(
            host.number::<u32>("sys/class/infiniband/mlx5_1/ports/1/state")
                .is_err()
        );
    }

    #[test]
    fn a_snapshot_is_bounded() {
        let mut host = Host::new("a", true);
        host.insert("a", vec![0; MAX_BYTES]);
        host.insert("b", vec![0]);
        assert_eq!((host.left_out(), host.has("b")), (1, false));
    }
}
