//! Runs that the page names: their captures, and the pages of single runs beside it.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use roce_files::{Access, Directory, FilePlace};
use roce_remote::program::{self, Limits};

use crate::command::query::Answer;
use crate::output::messages;
use crate::own_process::own_process;

/// Host and capture of each run.
pub(super) const QUERY: &str =
    "SELECT run_id, min(host) AS host, min(capture) AS capture FROM run GROUP BY run_id ORDER BY run_id";

/// Pages of single runs that are written.
const MAX_PAGES: usize = 24;
/// Time for the page of one run.
const PATIENCE: Duration = Duration::from_mins(10);
/// Largest page of a run.
const MAX_PAGE: u64 = 64 << 20;
/// Bytes of messages that are kept.
const MAX_MESSAGE: u64 = 16 << 10;

/// A run.
#[derive(Debug)]
struct ReportedRun {
    host: String,
    capture: String,
}

/// All runs of the dataset, and which have a page.
#[derive(Debug)]
pub(super) struct Runs {
    known: HashMap<String, ReportedRun>,
    /// The folder of the pages, beside the page.
    folder: PathBuf,
    /// Runs with a page.
    linked: BTreeSet<String>,
}

impl Runs {
    /// Runs from the answer to [`QUERY`], for a page at `output`.
    pub(super) fn new(answer: &Answer, output: &Path) -> Self {
        let known = answer
            .rows
            .iter()
            .filter_map(|row| {
                let text = |place: usize| row.get(place).and_then(|cell| cell.0.as_str()).map(str::to_owned);
                let run = ReportedRun {
                    host: text(1)?,
                    capture: text(2)?,
                };
                Some((text(0)?, run))
            })
            .collect();
        let stem = output.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            known,
            folder: output.with_file_name(format!("{stem}-runs")),
            linked: BTreeSet::new(),
        }
    }

    /// Finds the pages of runs that the page names. With the captures, those that are missing are written.
    pub(super) fn prepare<'a>(&mut self, named: impl Iterator<Item = &'a str>, captures: Option<&Path>) {
        let mut written = 0;
        let mut wanted = BTreeSet::new();
        for id in named.filter(|id| is_name(id)) {
            if !wanted.insert(id.to_owned()) {
                continue;
            }
            if self.folder.join(file(id)).is_file() {
                self.linked.insert(id.to_owned());
                continue;
            }
            let (Some(raw), Some(run)) = (captures, self.known.get(id)) else {
                continue;
            };
            if written >= MAX_PAGES {
                messages::note(
                    &run.capture,
                    &format!("no page of it: the first {MAX_PAGES} runs of the page get one"),
                );
                break;
            }
            written += 1;
            match self.write(id, run, raw) {
                Ok(()) => {
                    self.linked.insert(id.to_owned());
                }
                Err(error) => messages::warn(&run.capture, &format!("no page of it: {error:#}")),
            }
        }
    }

    /// Analyses a run's capture once more and writes its page.
    fn write(&self, id: &str, run: &ReportedRun, raw: &Path) -> anyhow::Result<()> {
        let path = inside(raw, &run.capture)
            .ok_or_else(|| anyhow::anyhow!("its key is no path below {}", raw.display()))?;
        let mut command = own_process();
        command
            .arg("--format=html")
            .args([
                format!("--host-name={}", run.host),
                format!("--run-id={id}"),
                format!("--capture={}", run.capture),
            ])
            .arg("--")
            .arg(path);
        let limits = Limits {
            patience: PATIENCE,
            output: MAX_PAGE,
            errors: MAX_MESSAGE,
        };
        let ended = match program::run(&mut command, limits) {
            Ok(ended) => ended,
            Err(program::Failure::System(error)) => return Err(error.into()),
            Err(program::Failure::NoAnswer) => anyhow::bail!("it took longer than {} s", PATIENCE.as_secs()),
            // Only runs that a signal can stop end so.
            Err(program::Failure::Stopped) => anyhow::bail!("it was stopped"),
        };
        if !ended.status.success() {
            let message = String::from_utf8_lossy(&ended.errors).trim().to_owned();
            anyhow::bail!("{message}");
        }
        if ended.output.len() as u64 >= MAX_PAGE {
            anyhow::bail!("its page is larger than {} MiB", MAX_PAGE >> 20);
        }
        let folder = Directory::named(&self.folder, Access::Umask)?;
        let mut output = FilePlace::below(&folder, &file(id)).begin(false, Access::Umask)?;
        output.write_all(&ended.output)?;
        output.finish()?;
        folder.keep();
        Ok(())
    }

    /// The text of a run, and its page relative to the page.
    pub(super) fn link(&self, id: &str) -> (String, Option<String>) {
        let text = self
            .known
            .get(id)
            .map_or_else(|| id.to_owned(), |run| format!("{}: {}", run.host, run.capture));
        let folder = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let link = self
            .linked
            .contains(id)
            .then(|| format!("{}/{}", encoded(&folder), encoded(&file(id))));
        (text, link)
    }
}

/// The name of a run's page.
fn file(id: &str) -> String {
    format!("{id}.html")
}

/// True if an identifier is fit for the name of a file.
fn is_name(id: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    !id.is_empty() && id.len() <= 128 && !id.starts_with('.') && id.chars().all(allowed)
}

/// The path of a capture below a folder. `None` if the key leads out of it.
fn inside(raw: &Path, key: &str) -> Option<PathBuf> {
    let relative = Path::new(key);
    let is_below = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (is_below && !key.is_empty()).then(|| raw.join(relative))
}

/// A name in a link.
fn encoded(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_identifiers_lead_nowhere_else() {
        let raw = Path::new("/raw");
        assert_eq!(inside(raw, "a/b.pcap"), Some(PathBuf::from("/raw/a/b.pcap")));
        for key in ["", "/etc/passwd", "../x", "a/../../x"] {
            assert_eq!(inside(raw, key), None, "{key}");
        }
        assert!(is_name("0e0dc5750c0cc125") && is_name("run-1.2"));
        for id in ["", "..", ".x", "a/b", "a\"b", "a b"] {
            assert!(!is_name(id), "{id}");
        }
        assert_eq!(encoded("a b\"<%"), "a%20b%22%3C%25");
    }
}
