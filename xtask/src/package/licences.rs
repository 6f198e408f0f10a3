//! Licences of the crates that the program contains, with their texts: most of them demand that copies have the text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::facts::{cargo_home, choose};
use crate::workspace::{Workspace, output};

/// Beginnings of names of files with licences, in capitals.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// A list of all crates with their licences, then each text once, with the crates that have it.
pub(super) fn texts(workspace: &Workspace, features: Option<&str>) -> Result<String> {
    let mut tree = workspace.cargo(["tree", "--locked", "-p", "roce-analyze", "-e", "normal"]);
    tree.args(["--prefix", "none", "--format", "{p}|{l}"]);
    choose(&mut tree, features);
    let crates = parse(&output(&mut tree)?);
    let sources = sources()?;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, version, _) in &crates {
        let unpacked = format!("{name}-{version}");
        let folder = sources
            .iter()
            .map(|source| source.join(&unpacked))
            .find(|folder| folder.is_dir());
        let folder = folder.with_context(|| format!("the sources of {unpacked} are not unpacked"))?;
        for (file, text) in files(&folder)? {
            found
                .entry(text)
                .or_default()
                .push(format!("{name} {version}: {file}"));
        }
    }
    let mut all = String::from(
        "roce-analyze contains these crates. Their licences are as their authors declare them; the texts follow.\n\n",
    );
    for (name, version, licence) in &crates {
        // Writing to a String cannot fail.
        let _ = writeln!(all, "{name} {version}: {licence}");
    }
    for (text, of) in found {
        let _ = write!(all, "\n{}\n{}\n\n{text}\n", "=".repeat(72), of.join("\n"));
    }
    Ok(all)
}

/// Name, version and licence of each crate from outside: lines are `zstd v0.13.3|MIT`, and `roce-wire v0.2.0 (/folder)|MIT` for our own.
fn parse(tree: &str) -> BTreeSet<(String, String, String)> {
    let crates = tree.lines().filter_map(|line| {
        let (package, licence) = line.split_once('|')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        let is_own = words.any(|word| word.starts_with("(/"));
        // A star is cargo's mark of a crate that it has listed already.
        let licence = licence.trim_end_matches(" (*)");
        (!is_own).then(|| (name.to_owned(), version.to_owned(), licence.to_owned()))
    });
    crates.collect()
}

/// Folders of cargo with unpacked sources, one for each registry.
fn sources() -> Result<Vec<PathBuf>> {
    let folder = cargo_home()?.join("registry/src");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

/// Files with licences of a crate, in order of name.
fn files(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry
            .with_context(|| format!("cannot list {}", folder.display()))?
            .path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let capitals = name.to_ascii_uppercase();
        if path.is_file() && NAMES.iter().any(|known| capitals.starts_with(known)) {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            files.insert(name, text.trim().to_owned());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_from_outside_are_listed_once() {
        let tree = "roce-analyze v0.2.0 (/src/cli)|MIT OR Apache-2.0\nzstd v0.13.3|MIT\nserde_derive v1.0.228 (proc-macro)|MIT OR Apache-2.0\n\
                    zstd v0.13.3|MIT (*)\n\n";
        let all: Vec<_> = parse(tree).into_iter().collect();
        let expected = [
            ("serde_derive", "1.0.228", "MIT OR Apache-2.0"),
            ("zstd", "0.13.3", "MIT"),
        ];
        assert_eq!(
            all,
            expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()))
        );
    }
}
