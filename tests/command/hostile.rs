//! Hostile folders and files: links planted where output goes, full disks, files of options that never end, captures that expand.
//! Nothing outside the output folder is written, nothing hangs, and nothing is left behind.

#[cfg(feature = "parquet")]
mod datasets;
mod disks;
mod inputs;
mod links;

#[cfg(feature = "parquet")]
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::{TempDir, tempdir};

use crate::captures::{Capture, root};
use crate::command::{Ran, command};

/// Content of a file that nobody may write to.
const PRECIOUS: &[u8] = b"precious\n";

/// A folder with a file that must not change.
struct Victim(TempDir);

impl Victim {
    fn new() -> Self {
        let victim = Self(tempdir().unwrap());
        fs::write(victim.file(), PRECIOUS).unwrap();
        victim
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self) -> PathBuf {
        self.path().join("victim")
    }

    /// Plants a link to the file.
    fn plant(&self, at: impl AsRef<Path>) -> PathBuf {
        let at = self.path().join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(self.file(), &at).unwrap();
        at
    }

    #[track_caller]
    fn is_whole(&self) {
        assert_eq!(fs::read(self.file()).unwrap(), PRECIOUS);
    }
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

fn capture(name: &str) -> String {
    root().join(Capture::named(name).path).display().to_string()
}

/// A run that has to end by itself: after 30 s it is killed, and has no exit code.
#[track_caller]
pub(crate) fn ends(command: &mut Command) -> Ran {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the command starts");
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], text: &str) {
    let ran = ends(command(folder).args(arguments));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(2), ""),
        "{arguments:?}: {ran:?}"
    );
    assert!(ran.stderr.contains(text), "{arguments:?}: {ran:?}");
}

/// All files under a folder with their content.
#[cfg(feature = "parquet")]
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.insert(path.display().to_string(), Vec::new());
            all.extend(contents(&path));
        } else {
            all.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    all
}
