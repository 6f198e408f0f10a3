//! `roce-analyze demo` as people run it: each demo says what happened, fits its screen, and can be repeated.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::captures::root;
use crate::command::{command, document, ran, run, total};

const DEMOS: [&str; 19] = [
    "clean",
    "incast",
    "no-ecn",
    "no-cnp",
    "cnp-ignored",
    "shared-port",
    "wrong-dscp",
    "lossy",
    "rnr",
    "pause-storm",
    "pause-origin",
    "capture-loss",
    "span-doubled",
    "sprayed",
    "ecmp-collision",
    "training",
    "late-rank",
    "slow-link",
    "mrc-bad-path",
];

#[test]
fn all_demos_are_listed() {
    let listed = run(&root(), ["demo"]).good().stdout;
    let mut rest = listed.as_str();
    for name in DEMOS {
        let place = rest
            .find(&format!("\n {name} "))
            .unwrap_or_else(|| panic!("{name}: {listed}"));
        rest = &rest[place + 1..];
    }
}

#[test]
fn every_demo_agrees_with_its_truth() {
    for name in DEMOS {
        let lesson = run(&root(), ["demo", name]).good().stdout;
        assert!(
            lesson.contains("The analysis agrees with the simulation."),
            "{lesson}"
        );
        assert!(
            lesson.contains("✓ agrees") && !lesson.contains("differs\n"),
            "{lesson}"
        );
        assert!(
            lesson.contains("What the packets show") && lesson.contains("What to do"),
            "{lesson}"
        );
    }
}

#[test]
fn every_demo_fits_its_screen() {
    for name in DEMOS {
        for width in ["60", "80", "160"] {
            let columns: usize = width.parse().unwrap();
            let lesson = ran(command(&root()).env("COLUMNS", width).args(["demo", name]))
                .good()
                .stdout;
            for line in lesson.lines() {
                // A display filter's word or a path can be longer than the narrowest screen.
                assert!(line.chars().count() <= columns, "{name} at {width}: {line}");
            }
        }
    }
}

#[test]
fn plain_terminals_get_plain_text() {
    let plain = ran(command(&root()).env("LANG", "C").args(["demo", "incast"]))
        .good()
        .stdout;
    assert!(plain.is_ascii(), "{plain}");
    let colored = ran(command(&root())
        .env("CLICOLOR_FORCE", "1")
        .args(["demo", "incast"]))
    .good()
    .stdout;
    assert!(colored.contains("\u{1b}[1m"));
    let quiet = ran(command(&root())
        .env("CLICOLOR_FORCE", "1")
        .env("NO_COLOR", "1")
        .args(["demo", "incast"]))
    .good()
    .stdout;
    assert!(!quiet.contains('\u{1b}'));
}

#[test]
fn kept_captures_can_be_analysed_again() {
    let folder = tempfile::tempdir().unwrap();
    let lesson = run(folder.path(), ["demo", "lossy", "-o", "kept.pcapng"])
        .good()
        .stdout;
    assert!(
        lesson.contains("$ roce-analyze kept.pcapng --bin 100us\n"),
        "{lesson}"
    );
    let again = document(folder.path(), ["kept.pcapng", "--bin", "100us"]);
    let naks = total(&again, "naks");
    assert!(lesson.contains(&format!("{naks} NAKs")), "{lesson}");

    let refused = run(folder.path(), ["demo", "lossy", "-o", "kept.pcapng"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--overwrite"), "{}", refused.stderr);
    run(
        folder.path(),
        ["demo", "lossy", "-o", "kept.pcapng", "--overwrite"],
    )
    .good();

    run(folder.path(), ["demo", "training", "-o", "folder/"]).good();
    let kept: Vec<String> = names(&folder.path().join("folder"));
    assert_eq!(kept, ["training-h1.pcapng", "training-h3.pcapng", "training.log"]);
}

#[test]
fn no_demo_leaves_anything_behind() {
    let folder = tempfile::tempdir().unwrap();
    ran(command(folder.path())
        .env("TMPDIR", folder.path())
        .args(["demo", "rnr"]))
    .good();
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn unknown_demos_are_errors() {
    let unknown = run(&root(), ["demo", "nothing"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("there is no demo 'nothing'"),
        "{}",
        unknown.stderr
    );
}

/// `cargo xtask captures` writes what lies in the repository, byte by byte.
#[test]
fn stored_captures_are_what_the_simulator_makes() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), ["demo", "--write-captures", "made"]).good();
    let made = contents(&folder.path().join("made"));
    let stored = contents(&root().join("captures/demos"));
    assert_eq!(
        made.keys().collect::<Vec<_>>(),
        stored.keys().collect::<Vec<_>>(),
        "run `cargo xtask captures`"
    );
    for (name, bytes) in made {
        assert!(
            bytes == stored[&name],
            "{name} differs: run `cargo xtask captures`"
        );
        // Counters are text that compresses well.
        let limit = if name.ends_with(".samples.jsonl") {
            700_000
        } else {
            300_000
        };
        assert!(bytes.len() <= limit, "{name} has {} bytes", bytes.len());
    }
    let readme = fs::read_to_string(root().join("captures/README.md")).unwrap();
    for name in DEMOS {
        assert!(
            readme.contains(&format!("| `{name}` |")),
            "captures/README.md says nothing of {name}"
        );
    }
}

fn names(folder: &Path) -> Vec<String> {
    contents(folder).into_keys().collect()
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect()
}
