//! Files of the folder that is served. A question names them by paths below it, and nothing else can be named: no `..`, no absolute path, no
//! link that leads out.

use std::fs::{self, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};
use roce_model::RecordingStart;
use roce_model::text::clean;
use serde_json::{Value, json};

/// Files and folders that are listed.
const MAX_LISTED: usize = 1_000;
/// Folders below each other that are looked into.
const MAX_DEPTH: usize = 4;
/// Entries of folders that are looked at.
const MAX_LOOKED_AT: usize = 20_000;

/// The folder that is served. The process works in it.
#[derive(Debug)]
pub(super) struct ServedFolder {
    /// Its path as it was given: commands go there first.
    pub given: PathBuf,
    /// Its path without links.
    real: PathBuf,
}

/// A file or folder below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Input {
    /// Its path below the folder.
    pub path: String,
    /// Identity of its content: a file that is written again has another one.
    pub content: (u64, u64, i64, i64),
    pub is_folder: bool,
}

impl Input {
    /// The path as a word of the command line, which neither is an option nor the name of a command.
    pub(super) fn word(&self) -> String {
        if self.path.contains('/') {
            self.path.clone()
        } else {
            format!("./{}", self.path)
        }
    }
}

impl ServedFolder {
    /// The folder at a path, in which the process works from now on.
    ///
    /// # Errors
    /// When it is no folder that can be read.
    pub(super) fn enter(given: &Path) -> anyhow::Result<Self> {
        let real = given.canonicalize();
        let real = real.with_context(|| format!("{}", given.display()))?;
        if !real.is_dir() {
            bail!(
                "{}: is no folder\nhint: the folder that has the captures",
                given.display()
            );
        }
        std::env::set_current_dir(&real).with_context(|| format!("{}", given.display()))?;
        Ok(Self {
            given: given.to_owned(),
            real,
        })
    }

    /// A folder that this process does not enter.
    #[cfg(test)]
    pub(super) fn at(path: &Path) -> Self {
        Self {
            given: path.to_owned(),
            real: path.canonicalize().unwrap_or_default(),
        }
    }

    /// The path without links.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// A file or folder by its path below this one.
    ///
    /// # Errors
    /// When it leads out of the folder, does not exist, or is neither a file nor a folder.
    pub(super) fn input(&self, name: &str) -> anyhow::Result<Input> {
        let path = Path::new(name);
        let is_below = path
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if name.is_empty() || name.contains('\0') || !is_below {
            bail!("{}: is no path below the served folder", clean(name));
        }
        let missing = || {
            format!(
                "{}: is not in the served folder\nhint: the resource roce-analyze://inputs lists what is",
                clean(name)
            )
        };
        let real = self.real.join(path).canonicalize().with_context(missing)?;
        if !real.starts_with(&self.real) {
            bail!("{}: leads out of the served folder", clean(name));
        }
        let about = fs::metadata(&real).with_context(missing)?;
        if !about.is_file() && !about.is_dir() {
            bail!("{}: is neither a file nor a folder", clean(name));
        }
        let parts = path.components().filter(|part| *part != Component::CurDir);
        let path: PathBuf = parts.collect();
        let path = path.to_str().filter(|path| !path.is_empty()).unwrap_or(".");
        Ok(Input {
            path: path.to_owned(),
            content: content(&about),
            is_folder: about.is_dir(),
        })
    }

    /// True of a folder with the document of an analysis, and no recording that would be analysed again.
    pub(super) fn has_document(&self, input: &Input) -> bool {
        let has = |name: &str| self.real.join(&input.path).join(name).is_file();
        input.is_folder && has("run.json") && !has(RecordingStart::FILE)
    }

    /// The content of a file by its path below this folder, if it has at most so many bytes.
    ///
    /// # Errors
    /// When it cannot be named or read, or is longer.
    pub(super) fn read(&self, name: &str, most: usize) -> anyhow::Result<Vec<u8>> {
        let input = self.input(name)?;
        let path = self.real.join(&input.path);
        let file = fs::File::open(path).with_context(|| clean(name).into_owned())?;
        let mut text = Vec::new();
        let read = file.take(most as u64 + 1).read_to_end(&mut text);
        read.with_context(|| clean(name).into_owned())?;
        if text.len() > most {
            bail!("{}: has more than {most} bytes", clean(name));
        }
        Ok(text)
    }

    /// Captures, datasets and documents in the folder, in the order of their paths; and true if there are more.
    pub(super) fn list(&self) -> (Vec<Value>, bool) {
        let mut found = Vec::new();
        let mut waiting = vec![(PathBuf::new(), 0)];
        let (mut looked_at, mut is_cut) = (0, false);
        while let Some((folder, depth)) = waiting.pop() {
            let Ok(entries) = fs::read_dir(self.real.join(&folder)) else {
                continue;
            };
            for entry in entries.flatten() {
                looked_at += 1;
                if looked_at > MAX_LOOKED_AT {
                    return (sorted(found), true);
                }
                let path = folder.join(entry.file_name());
                // Links are named by those who know them.
                let Ok(about) = entry.metadata() else { continue };
                let Some(text) = path.to_str() else { continue };
                if about.is_dir() && !is_dataset(&self.real.join(&path)) {
                    if depth < MAX_DEPTH {
                        waiting.push((path, depth + 1));
                    }
                    continue;
                }
                if let Some(kind) = kind(&path, &about) {
                    let modified = about.mtime();
                    found.push(
                        json!({ "path": text, "kind": kind, "bytes": about.len(), "modified": modified }),
                    );
                }
            }
        }
        is_cut |= found.len() > MAX_LISTED;
        let mut found = sorted(found);
        found.truncate(MAX_LISTED);
        (found, is_cut)
    }
}

/// Inputs in the order of their paths.
fn sorted(mut found: Vec<Value>) -> Vec<Value> {
    found.sort_by(|a, b| a["path"].as_str().cmp(&b["path"].as_str()));
    found
}

/// Identity of a file's content: its number, length and time of the last change.
fn content(about: &Metadata) -> (u64, u64, i64, i64) {
    (about.ino(), about.len(), about.mtime(), about.mtime_nsec())
}

/// True of a folder that has results.
fn is_dataset(path: &Path) -> bool {
    path.join("run.json").is_file() || path.join("run").is_dir() && path.join("flows").is_dir()
}

/// Kind of an input, by its name; `None` for what no tool takes.
fn kind(path: &Path, about: &Metadata) -> Option<&'static str> {
    if about.is_dir() {
        return Some("dataset");
    }
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let has = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if !about.is_file() {
        None
    } else if has(&[
        ".pcap",
        ".pcapng",
        ".cap",
        ".pcap.gz",
        ".pcapng.gz",
        ".pcap.zst",
        ".pcapng.zst",
    ]) {
        Some("capture")
    } else if has(&[".log", ".json", ".jsonl", ".txt", ".out"]) {
        Some("document")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_outside_can_be_named() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("in"), dir.path().join("secret.pcap"));
        fs::create_dir(&inside).unwrap();
        fs::write(&outside, "x").unwrap();
        fs::write(inside.join("a.pcap"), "x").unwrap();
        symlink(&outside, inside.join("out.pcap")).unwrap();
        symlink("a.pcap", inside.join("link.pcap")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        let folder = ServedFolder::at(&inside);
        assert_eq!(folder.input("a.pcap").unwrap().word(), "./a.pcap");
        assert_eq!(folder.input("./a.pcap").unwrap().path, "a.pcap");
        assert!(folder.input("link.pcap").is_ok());
        for name in [
            "",
            "../secret.pcap",
            "./../secret.pcap",
            "out.pcap",
            "up/secret.pcap",
            "up",
            "/etc/passwd",
            "missing.pcap",
            "a.pcap\0",
            "a.pcap/..",
            "https://example.com/a.pcap",
        ] {
            assert!(folder.input(name).is_err(), "{name}");
        }
        assert!(folder.input(outside.to_str().unwrap()).is_err());
        let (listed, _) = folder.list();
        let paths: Vec<&str> = listed.iter().filter_map(|input| input["path"].as_str()).collect();
        assert_eq!(paths, ["a.pcap"]);
    }
}
