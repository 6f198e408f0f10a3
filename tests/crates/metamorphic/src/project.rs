//! The captures of the project: each by itself, and those that were taken at once together.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use roce_model::SinkError;

use crate::input::InputSource;
use crate::tape::Tape;

/// Folders with captures, and whether files whose names begin alike were taken at once.
const FOLDERS: [&str; 4] = ["captures", "captures/demos", "tests/data", "tests/data/real"];

/// Captures of one lesson or run at several taps: the beginnings of their names.
const GROUPS: [&str; 6] = [
    "captures/demos/ecmp-collision-",
    "captures/demos/incast-",
    "captures/demos/pause-origin-",
    "captures/demos/pause-storm-",
    "captures/demos/training-",
    "tests/data/send_bw_ce_gradual",
];

/// The top of the project.
pub fn root() -> PathBuf {
    // Cargo's current value: a program that was built for another checkout in the same target folder knows that one's path.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let folder = PathBuf::from(folder);
    let mut places = folder.ancestors();
    let top = places.find(|place| place.join("captures/README.md").is_file());
    top.map_or_else(|| folder.join("../../.."), Path::to_owned)
}

/// All captures of the project, and all groups of them.
///
/// # Errors
/// When a folder cannot be read.
pub fn project_sources() -> Result<Vec<InputSource>, SinkError> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(root().join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let ending = Path::new(&name).extension();
            if ending.is_some_and(|ending| ending == "pcap" || ending == "pcapng") {
                paths.push(format!("{folder}/{name}"));
            }
        }
    }
    paths.sort();
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in &paths {
        let together = GROUPS.iter().find(|begin| path.starts_with(**begin));
        // Both ends of a run: NAME.sender.pcap and NAME.receiver.pcap.
        let run = || {
            path.strip_suffix(".sender.pcap")
                .or_else(|| path.strip_suffix(".receiver.pcap"))
        };
        if let Some(group) = together.copied().or_else(run) {
            groups.entry(group.to_owned()).or_default().push(path.clone());
        }
    }
    let alone = paths.into_iter().map(|path| vec![path]);
    Ok(alone
        .chain(groups.into_values())
        .map(InputSource::Project)
        .collect())
}

/// Reads captures of the project.
pub(crate) fn tapes(paths: &[String]) -> Result<Vec<Tape>, SinkError> {
    let mut tapes = Vec::new();
    for path in paths {
        let name = path.rsplit('/').next().unwrap_or(path);
        tapes.push(Tape::read(name, Box::new(File::open(root().join(path))?))?);
    }
    Ok(tapes)
}
