//! Captures below a folder: which files count, their keys and sizes. Links are not followed, and the walk has bounds.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::options::names::parse_key;

/// Captures that are found at most: beyond them the command is refused.
const MAX_CAPTURES: usize = 1 << 20;
/// Files and folders that are looked at, at most.
const MAX_ENTRIES: usize = 1 << 23;
/// Folders in each other.
const MAX_DEPTH: usize = 32;

/// Endings of captures, before those of compression.
const ENDINGS: [&str; 4] = ["pcap", "pcapng", "cap", "ntar"];
/// Endings of compressed files.
const COMPRESSED: [&str; 2] = ["gz", "zst"];

/// A capture below the folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FoundCapture {
    /// Its path from the folder, with `/` between the parts.
    pub(crate) key: String,
    /// Its path.
    pub(crate) path: PathBuf,
    /// Its size in bytes.
    pub(crate) bytes: u64,
}

/// Captures below a folder, the largest first, and those whose names cannot be keys.
#[derive(Debug, Default)]
pub(crate) struct WalkedFolder {
    pub(crate) captures: Vec<FoundCapture>,
    /// Paths of captures that are passed over, for messages.
    pub(crate) unnamed: Vec<PathBuf>,
}

/// Finds all captures below `folder`: regular files with the ending of a capture, also compressed. Names that begin with a dot and links are passed
/// over.
///
/// # Errors
/// When a folder cannot be read, or there are too many.
pub(crate) fn captures(folder: &Path) -> anyhow::Result<WalkedFolder> {
    let mut walked = WalkedFolder::default();
    let mut folders = vec![(folder.to_path_buf(), String::new(), 0_usize)];
    let mut entries = 0_usize;
    while let Some((path, prefix, depth)) = folders.pop() {
        let listed = fs::read_dir(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
        for entry in listed {
            let entry = entry.with_context(|| format!("{}: cannot be read", path.display()))?;
            entries += 1;
            if entries > MAX_ENTRIES {
                bail!(
                    "{}: more than {MAX_ENTRIES} files and folders\nhint: map the folders below it one by one",
                    folder.display()
                );
            }
            // The kind of the entry itself: a link is a link.
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let text = name.to_str();
            if text.is_some_and(|name| name.starts_with('.')) {
                continue;
            }
            if kind.is_dir() {
                match text {
                    Some(name) if depth < MAX_DEPTH => {
                        folders.push((entry.path(), format!("{prefix}{name}/"), depth + 1));
                    }
                    _ => walked.unnamed.push(entry.path()),
                }
                continue;
            }
            if !kind.is_file() || !is_capture(Path::new(&name)) {
                continue;
            }
            let key = text.and_then(|name| parse_key(&format!("{prefix}{name}")).ok());
            let (Some(key), Ok(metadata)) = (key, entry.metadata()) else {
                walked.unnamed.push(entry.path());
                continue;
            };
            if walked.captures.len() >= MAX_CAPTURES {
                bail!(
                    "{}: more than {MAX_CAPTURES} captures\nhint: map the folders below it one by one",
                    folder.display()
                );
            }
            walked.captures.push(FoundCapture {
                key,
                path: entry.path(),
                bytes: metadata.len(),
            });
        }
    }
    // The largest first: the last ones to end are then small.
    walked
        .captures
        .sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));
    walked.unnamed.sort();
    Ok(walked)
}

/// True if a file's name ends as those of captures do.
fn is_capture(name: &Path) -> bool {
    let is = |name: &Path, endings: &[&str]| {
        name.extension()
            .is_some_and(|ending| endings.iter().any(|known| ending.eq_ignore_ascii_case(known)))
    };
    if is(name, &COMPRESSED) {
        return name.file_stem().is_some_and(|stem| is(Path::new(stem), &ENDINGS));
    }
    is(name, &ENDINGS)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use tempfile::tempdir;

    use super::*;

    #[test]
    fn captures_are_found_the_largest_first() {
        let dir = tempdir().unwrap();
        let raw = dir.path().join("raw");
        fs::create_dir_all(raw.join("h1/day")).unwrap();
        fs::create_dir_all(raw.join(".old")).unwrap();
        for (name, bytes) in [
            ("h1/day/a.pcap", 10),
            ("h1/b.pcapng.zst", 30),
            ("c.PCAP.gz", 20),
            ("h1/notes.txt", 99),
            ("h1/archive.gz", 99),
            (".old/d.pcap", 99),
            ("h1/.e.pcap", 99),
            ("h1/a\nb.pcap", 5),
        ] {
            fs::write(raw.join(name), vec![0; bytes]).unwrap();
        }
        // Links are no captures, wherever they lead; a loop of them ends nothing.
        fs::write(dir.path().join("outside.pcap"), [0; 50]).unwrap();
        symlink(dir.path().join("outside.pcap"), raw.join("link.pcap")).unwrap();
        symlink(&raw, raw.join("h1/loop")).unwrap();
        let bytes = std::ffi::OsStr::from_bytes(b"\xff.pcap");
        fs::write(raw.join(bytes), [0; 5]).unwrap();

        let walked = captures(&raw).unwrap();
        let found: Vec<(&str, u64)> = walked
            .captures
            .iter()
            .map(|found| (found.key.as_str(), found.bytes))
            .collect();
        assert_eq!(
            found,
            [("h1/b.pcapng.zst", 30), ("c.PCAP.gz", 20), ("h1/day/a.pcap", 10)]
        );
        assert_eq!(walked.unnamed.len(), 2, "{:?}", walked.unnamed);
        assert!(captures(&dir.path().join("missing")).is_err());
    }
}
