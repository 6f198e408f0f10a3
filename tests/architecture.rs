//! Who may import whom. A new crate gets its line here, in the same commit as in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

use crate::captures::root;

/// Each crate of the workspace, and those of the others that it may import.
const ARROWS: [(&str, &[&str]); 13] = [
    ("roce-wire", &[]),
    ("roce-model", &["roce-wire"]),
    ("roce-capture", &["roce-wire", "roce-model"]),
    ("roce-flow", &["roce-wire", "roce-model"]),
    ("roce-abi", &[]),
    ("roce-probe", &["roce-model", "roce-abi"]),
    ("roce-sim", &["roce-wire", "roce-model", "roce-capture"]),
    ("roce-report", &["roce-model"]),
    ("roce-parquet", &["roce-model"]),
    (
        "roce-pipeline",
        &[
            "roce-wire",
            "roce-model",
            "roce-capture",
            "roce-flow",
            "roce-report",
            "roce-parquet",
        ],
    ),
    (
        "roce-analyze",
        &[
            "roce-wire",
            "roce-model",
            "roce-capture",
            "roce-flow",
            "roce-probe",
            "roce-sim",
            "roce-report",
            "roce-parquet",
            "roce-pipeline",
        ],
    ),
    (
        "roce-truth",
        &["roce-model", "roce-flow", "roce-sim", "roce-analyze"],
    ),
    ("xtask", &[]),
];

/// Crates from outside that only some of ours may know.
const ONLY: [(&str, &[&str]); 9] = [
    ("polars", &["roce-parquet"]),
    // The records are readable from bytes by a trait of aya's, which the kernel programs do without.
    ("aya", &["roce-probe", "roce-abi"]),
    ("rustix", &["roce-probe", "roce-analyze", "roce-capture"]),
    ("pcap", &["roce-capture"]),
    ("tokio", &["roce-analyze"]),
    ("ratatui-core", &["roce-report", "roce-analyze"]),
    ("ratatui-crossterm", &["roce-analyze"]),
    ("anyhow", &["roce-analyze", "xtask"]),
    ("clap", &["roce-analyze"]),
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

/// What a package is built from; what only its tests use is not asked for.
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

#[test]
fn heavy_crates_stay_in_their_place() {
    for (name, package) in packages() {
        for needed in &package.dependencies {
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
    // Rows and packets are plain: what writes them brings its own serialization.
    for name in ["roce-wire", "roce-model", "roce-flow"] {
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
