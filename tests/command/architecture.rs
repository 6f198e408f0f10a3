//! Permitted imports between crates, and between files of a crate. A new crate gets its line here, in
//! the same commit as in ARCHITECTURE.md.

mod language;
mod modules;
mod names;
mod prints;
mod sizes;

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

use crate::captures::root;
use modules::Modules;

/// Each crate of the workspace, and those of the others that it may import.
pub(crate) const ARROWS: [(&str, &[&str]); 28] = [
    ("roce-files", &[]),
    ("roce-wire", &[]),
    ("roce-model", &["roce-wire"]),
    ("roce-capture", &["roce-files", "roce-wire", "roce-model"]),
    ("roce-spelling", &["roce-model"]),
    ("roce-rules", &["roce-model", "roce-spelling"]),
    ("roce-lateness", &["roce-wire", "roce-model"]),
    (
        "roce-verdict",
        &["roce-model", "roce-rules", "roce-spelling", "roce-lateness"],
    ),
    ("roce-flow", &["roce-wire", "roce-model", "roce-verdict"]),
    ("roce-abi", &[]),
    ("roce-hosts", &["roce-model", "roce-rules"]),
    (
        "roce-switches",
        &["roce-model", "roce-rules", "roce-spelling", "roce-hosts"],
    ),
    (
        "roce-jobs",
        &["roce-model", "roce-spelling", "roce-hosts", "roce-switches"],
    ),
    ("roce-otlp", &["roce-model", "roce-switches"]),
    ("roce-sflow", &["roce-wire", "roce-model"]),
    ("roce-metrics", &["roce-model"]),
    (
        "roce-endpoint",
        &["roce-files", "roce-model", "roce-metrics", "roce-otlp"],
    ),
    (
        "roce-probe",
        &["roce-files", "roce-model", "roce-hosts", "roce-abi"],
    ),
    (
        "roce-remote",
        &[
            "roce-files",
            "roce-model",
            "roce-hosts",
            "roce-switches",
            "roce-jobs",
        ],
    ),
    (
        "roce-sim",
        &["roce-files", "roce-wire", "roce-model", "roce-capture"],
    ),
    ("roce-report", &["roce-model", "roce-spelling"]),
    ("roce-parquet", &["roce-files", "roce-model"]),
    ("roce-store", &["roce-model"]),
    (
        "roce-pipeline",
        &[
            "roce-files",
            "roce-wire",
            "roce-model",
            "roce-capture",
            "roce-verdict",
            "roce-flow",
            "roce-otlp",
            "roce-report",
            "roce-parquet",
        ],
    ),
    (
        "roce-analyze",
        &[
            "roce-files",
            "roce-wire",
            "roce-model",
            "roce-capture",
            "roce-verdict",
            "roce-flow",
            "roce-rules",
            "roce-spelling",
            "roce-hosts",
            "roce-switches",
            "roce-jobs",
            "roce-otlp",
            "roce-sflow",
            "roce-metrics",
            "roce-endpoint",
            "roce-probe",
            "roce-remote",
            "roce-sim",
            "roce-report",
            "roce-parquet",
            "roce-store",
            "roce-pipeline",
        ],
    ),
    (
        "roce-truth",
        &[
            "roce-model",
            "roce-verdict",
            "roce-report",
            "roce-sim",
            "roce-analyze",
        ],
    ),
    (
        "roce-metamorphic",
        &[
            "roce-model",
            "roce-wire",
            "roce-capture",
            "roce-report",
            "roce-sim",
            "roce-analyze",
            "roce-truth",
        ],
    ),
    ("xtask", &[]),
];

/// Crates from outside that only some of ours may know.
const ONLY: [(&str, &[&str]); 13] = [
    ("polars", &["roce-parquet"]),
    ("object_store", &["roce-store"]),
    // The records are readable from bytes by a trait of aya's, which the kernel programs do without.
    ("aya", &["roce-probe", "roce-abi"]),
    (
        "rustix",
        &[
            "roce-files",
            "roce-probe",
            "roce-analyze",
            "roce-capture",
            "roce-endpoint",
        ],
    ),
    ("pcap", &["roce-capture"]),
    ("tokio", &["roce-analyze", "roce-endpoint", "roce-store"]),
    ("hyper", &["roce-endpoint"]),
    ("rustls", &["roce-endpoint", "roce-remote"]),
    ("ureq", &["roce-remote"]),
    ("ratatui-core", &["roce-report", "roce-analyze"]),
    ("ratatui-crossterm", &["roce-analyze"]),
    ("anyhow", &["roce-analyze", "roce-endpoint", "xtask"]),
    ("clap", &["roce-analyze"]),
];

/// A crate, a folder or file of it, and a folder or file of it that the first never imports. Those between folders of `roce-flow` are in
/// ARCHITECTURE.md.
const NEVER: &[(&str, &str, &str)] = &[
    // Options are read by commands, and know none of them.
    ("roce-analyze", "options", "command"),
    ("roce-analyze", "options", "output"),
    ("roce-analyze", "output", "command"),
    // Only the file with all commands knows them all.
    ("roce-analyze", "command", "lib.rs"),
    ("roce-pipeline", "", "lib.rs"),
    // The interface of all transports knows none of them, and not what calls it.
    ("roce-flow", "transport.rs", "table"),
    ("roce-flow", "transport.rs", "analysis"),
    ("roce-flow", "transport.rs", "psn/tracker"),
    // Episodes are found before findings are concluded from them.
    ("roce-verdict", "episodes", "findings"),
    ("roce-verdict", "episodes", "pauses"),
    ("roce-verdict", "pauses", "findings"),
    ("roce-verdict", "", "lib.rs"),
];

fn packages() -> BTreeMap<String, Package> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .unwrap();
    metadata
        .packages
        .into_iter()
        .map(|package| (package.name.to_string(), package))
        .collect()
}

/// Packages that a package is built from; those that only its tests use are left out.
fn imports(package: &Package) -> BTreeSet<&str> {
    let built = package
        .dependencies
        .iter()
        .filter(|needed| needed.kind != DependencyKind::Development);
    built.map(|needed| needed.name.as_str()).collect()
}

#[test]
fn arrows_are_those_of_the_plan() {
    let packages = packages();
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        packages.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        known,
        "the crates of the workspace"
    );
    for (name, allowed) in ARROWS {
        let mut ours = imports(&packages[name]);
        ours.retain(|needed| known.contains(needed));
        let not_allowed: Vec<_> = ours.iter().filter(|needed| !allowed.contains(needed)).collect();
        assert!(not_allowed.is_empty(), "{name} must not import {not_allowed:?}");
    }
}

#[test]
fn arrows_make_no_circle() {
    // A crate may only name crates of lines before its own.
    for (line, (name, allowed)) in ARROWS.iter().enumerate() {
        for needed in *allowed {
            assert!(
                ARROWS[..line].iter().any(|(before, _)| before == needed),
                "{name} -> {needed}"
            );
        }
    }
}

/// The files of each crate of the workspace.
fn all_modules() -> Vec<(String, Modules)> {
    let dir = |package: &Package| package.manifest_path.parent().unwrap().to_owned();
    let read = |(name, package): (String, Package)| (name, Modules::read(dir(&package).as_std_path()));
    packages().into_iter().map(read).collect()
}

#[test]
fn files_make_no_circle() {
    let mut found = Vec::new();
    for (name, modules) in all_modules() {
        found.extend(
            modules
                .circles()
                .iter()
                .map(|circle| format!("{name}: {circle:?}")),
        );
    }
    assert!(found.is_empty(), "files import each other:\n{}", found.join("\n"));
}

/// The folders of `roce-flow`, in the order of their table in ARCHITECTURE.md.
fn folders_of_flow() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with("Folders of flow"));
    let rows = section
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split_once('`').unwrap().0.to_owned())
        .collect()
}

#[test]
fn folders_import_downwards() {
    let folders = folders_of_flow();
    assert!(folders.len() > 5, "{folders:?}");
    let upwards = (0..folders.len()).flat_map(|from| (0..from).map(move |to| (from, to)));
    let of_flow = upwards.map(|(from, to)| ("roce-flow", folders[from].as_str(), folders[to].as_str()));
    let never: Vec<_> = NEVER.iter().copied().chain(of_flow).collect();
    for (name, modules) in all_modules() {
        for (_, from, to) in never.iter().filter(|(of, ..)| *of == name) {
            let up: Vec<_> = modules
                .imports()
                .filter(|import| import.0 != *to && is_in(import.0, from) && is_in(import.1, to))
                .collect();
            assert!(up.is_empty(), "{name}: {from} must not import {to}: {up:?}");
        }
    }
}

/// True if a file is the folder's, or in it; all are in a folder without a name.
fn is_in(file: &str, folder: &str) -> bool {
    folder.is_empty()
        || file == folder
        || file
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with(['/', '.']))
}

#[test]
fn heavy_crates_stay_in_their_place() {
    for (name, package) in packages() {
        // Packages that tests alone need are in no program.
        let needed = package.dependencies.iter();
        for needed in needed.filter(|needed| needed.kind != DependencyKind::Development) {
            for (heavy, users) in ONLY {
                let is_it = needed.name == heavy || needed.name.starts_with(&format!("{heavy}-"));
                assert!(
                    !is_it || users.contains(&name.as_str()),
                    "{name} must not depend on {}",
                    needed.name
                );
            }
        }
    }
}

#[test]
fn the_bottom_is_light() {
    let packages = packages();
    let wire = &packages["roce-wire"];
    assert_eq!(imports(wire), BTreeSet::from(["crc32fast", "etherparse"]));
    let etherparse = wire
        .dependencies
        .iter()
        .find(|needed| needed.name == "etherparse")
        .unwrap();
    assert!(etherparse.optional, "a kernel program does without it");
    assert!(
        wire.dependencies
            .iter()
            .filter(|needed| needed.kind == DependencyKind::Normal)
            .all(|needed| !needed.uses_default_features)
    );
    let abi = &packages["roce-abi"];
    assert!(
        abi.dependencies.iter().all(|needed| needed.optional),
        "kernel programs do without"
    );
    // Rows and packets are plain: each writer has its own serialization.
    for name in ["roce-wire", "roce-model", "roce-verdict", "roce-flow"] {
        let imports = imports(&packages[name]);
        assert!(
            !imports.iter().any(|needed| needed.starts_with("serde")),
            "{name}: {imports:?}"
        );
    }
}

#[test]
fn versions_stand_in_one_place() {
    let packages = packages();
    let versions: BTreeSet<String> = packages
        .values()
        .map(|package| package.version.to_string())
        .collect();
    assert_eq!(versions.len(), 1, "{versions:?}");
    for (name, package) in &packages {
        assert_eq!(package.license.as_deref(), Some("MIT OR Apache-2.0"), "{name}");
        assert!(package.rust_version.is_some(), "{name}");
        assert!(package.description.is_some(), "{name}");
        assert_eq!(package.edition.as_str(), "2024", "{name}");
        let manifest = std::fs::read_to_string(&package.manifest_path).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{name} takes the lints of the workspace"
        );
        for line in manifest.lines() {
            assert!(
                !line.starts_with("version =") && !line.contains("path = \"../../analyzer"),
                "{name}: {line}"
            );
        }
    }
}

/// Calls that make, change, give away or remove files.
const WRITES: [&str; 21] = [
    "File::create",
    "File::options",
    "OpenOptions",
    "fs::write",
    "fs::copy",
    "fs::rename",
    "fs::hard_link",
    "fs::create_dir",
    "fs::remove_file",
    "fs::remove_dir",
    "fs::set_permissions",
    "fs::symlink",
    "chown(",
    "DirBuilder",
    "OFlags::CREATE",
    "mkdirat(",
    "renameat(",
    "renameat_with(",
    "unlinkat(",
    "create_new(",
    "tempfile",
];

/// Files of crates that may call some of these, and why.
const WRITERS: [(&str, &str, &str); 2] = [
    (
        "roce-analyze",
        "command/demo.rs",
        "a demo's capture is in a temporary folder that is private, made by tempfile; the files in it are written by roce-files",
    ),
    (
        "roce-analyze",
        "sandbox/attempts.rs",
        "attempts to write, which tests see refused; only in builds with debug assertions",
    ),
];

/// Sources without what only tests have: files of tests, and what follows `#[cfg(test)]` at a file's end.
fn sources(folder: &std::path::Path, found: &mut Vec<(String, String)>, below: &std::path::Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found, below);
        } else if path.extension().is_some_and(|ending| ending == "rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
            found.push((path.strip_prefix(below).unwrap().display().to_string(), code));
        }
    }
}

/// A rule that is only in the list of rules would be documented, and never fire.
#[test]
fn rules_of_findings_are_used_where_they_are() {
    let below = root().join("analyzer/verdict/src/findings");
    let mut files = Vec::new();
    sources(&below, &mut files, &below);
    let texts = files.iter().map(|(_, text)| text.as_str());
    let mut uses: BTreeMap<&str, u32> = BTreeMap::new();
    for word in texts
        .clone()
        .flat_map(|text| text.split(|letter: char| !letter.is_alphanumeric() && letter != '_'))
    {
        *uses.entry(word).or_default() += 1;
    }
    let lines = texts.flat_map(str::lines);
    let rules: Vec<&str> = lines
        .filter_map(|line| Some(line.split_once("const ")?.1.split_once(": Rule =")?.0))
        .collect();
    for name in &rules {
        assert!(uses[name] > 1, "nothing concludes {name}");
    }
    assert!(rules.len() > 30, "{rules:?}");
}

#[test]
fn files_are_written_in_one_crate() {
    let mut allowed: BTreeSet<(&str, &str)> = WRITERS.iter().map(|(name, file, _)| (*name, *file)).collect();
    let mut found = Vec::new();
    let analyzer = root().join("analyzer").canonicalize().unwrap();
    for (name, package) in packages() {
        let folder = package.manifest_path.parent().unwrap().join("src");
        if name == "roce-files" || !folder.starts_with(&analyzer) {
            continue;
        }
        let mut files = Vec::new();
        sources(folder.as_std_path(), &mut files, folder.as_std_path());
        for (file, code) in files {
            let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
            for line in lines.filter(|line| WRITES.iter().any(|call| line.contains(call))) {
                let listed = WRITERS.iter().find(|(of, at, _)| *of == name && *at == file);
                match listed {
                    Some((name, file, _)) => drop(allowed.remove(&(*name, *file))),
                    None => found.push(format!("{name}: {file}: {line}")),
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "roce-files writes files, and nothing else:\n{}",
        found.join("\n")
    );
    assert!(
        allowed.is_empty(),
        "no such call any more, the line can go: {allowed:?}"
    );
}
