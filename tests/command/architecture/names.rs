//! Names of types. A participle alone (`Shown`, `Found`) does not say of what it is, and the same word came to stand for eleven types. A name
//! says it: `FoundFlow`, `ShownPage`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::captures::root;

/// Names in one word that have the form of a participle and are nouns.
const NOUNS: [&str; 10] = [
    "Feed",
    "Need",
    "Reading",
    "Reordering",
    "Ring",
    "Run",
    "Sighting",
    "Speed",
    "Training",
    "Wiring",
];

/// Participles that end neither in `ed` nor in `ing`.
const IRREGULAR: [&str; 34] = [
    "Begun",
    "Bound",
    "Built",
    "Chosen",
    "Cut",
    "Drawn",
    "Found",
    "Given",
    "Gone",
    "Grown",
    "Heard",
    "Held",
    "Kept",
    "Known",
    "Laid",
    "Left",
    "Lost",
    "Made",
    "Met",
    "Put",
    "Read",
    "Run",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Split",
    "Spread",
    "Taken",
    "Thrown",
    "Told",
    "Understood",
    "Won",
    "Written",
];

/// Rust files of a folder and those below it, without what is built.
pub(crate) fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != "node_modules" {
                rust_files(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// All Rust files of the project, with their paths below its root.
pub(crate) fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in ["analyzer", "ebpf", "tests", "xtask"] {
        rust_files(&root().join(folder), &mut files);
    }
    files.sort();
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    files
        .iter()
        .map(|path| (name(path), fs::read_to_string(path).unwrap()))
        .collect()
}

/// The name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let (keyword, rest) = line.split_once(' ')?;
    let is_type = ["struct", "enum", "union", "trait", "type"].contains(&keyword);
    let end = rest
        .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .unwrap_or(rest.len());
    (is_type && rest.starts_with(char::is_uppercase)).then(|| &rest[..end])
}

/// True if a name is one word that has the form of a participle.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|letter| letter.is_ascii_lowercase());
    is_one_word && (name.ends_with("ed") || name.ends_with("ing") || IRREGULAR.contains(&name))
}

#[test]
fn types_are_named_by_nouns() {
    let mut participles = Vec::new();
    let (mut nouns, mut all) = (0, 0);
    for (file, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let Some(name) = defined(line) else { continue };
            all += 1;
            if NOUNS.contains(&name) {
                nouns += 1;
            } else if is_participle(name) {
                participles.push(format!("{file}:{}: {name}", number + 1));
            }
        }
    }
    assert!(all > 1_000, "{all} types were read");
    assert!(
        participles.is_empty(),
        "participles alone:\n{}",
        participles.join("\n")
    );
    assert!(nouns * 100 <= all, "{nouns} of {all} types");
}

#[test]
fn definitions_are_read() {
    assert_eq!(defined("pub(crate) struct Found {"), Some("Found"));
    assert_eq!(defined("    enum Left<'a> {"), Some("Left"));
    assert_eq!(defined("pub type Shown = u32;"), Some("Shown"));
    assert_eq!(defined("let type_of = 1;"), None);
    assert!(is_participle("Found") && is_participle("Ended") && is_participle("Moving"));
    assert!(!is_participle("FoundFlow") && !is_participle("Page"));
}
