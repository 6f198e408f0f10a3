//! Spellings of version 0.2.0: each does what its new spelling does, and names it. `every_old_spelling_is_understood` in
//! `analyzer/cli/src/lib.rs` walks the whole table.

use crate::captures::root;
use crate::cli::folder;
use crate::command::{Ran, run};

/// Runs both spellings, and holds that only the old one says something more, which names the new one.
#[track_caller]
fn same(old: &[&str], new: &[&str], named: &[&str]) -> Ran {
    let (old, new) = (run(&root(), old), run(&root(), new));
    assert_eq!((old.code, &old.stdout), (new.code, &new.stdout), "{}", old.stderr);
    let lines: Vec<&str> = old.stderr.lines().collect();
    for (line, named) in lines.iter().zip(named) {
        assert!(line.ends_with(&format!("; the new one is {named}")), "{line}");
    }
    assert_eq!(
        lines[named.len()..].join("\n"),
        new.stderr.trim_end(),
        "{}",
        old.stderr
    );
    new
}

#[test]
fn old_spellings_do_what_new_ones_do() {
    let found = same(&["--explain", "rnr"], &["explain", "rnr"], &["explain"]);
    assert!(found.stdout.starts_with("rnr: "), "{}", found.stdout);
    let capture = "captures/rnr.pcap";
    same(
        &[capture, "--host", "h7", "--bin", "1ms"],
        &[capture, "--host-name", "h7", "--bin", "1ms"],
        &["--host-name"],
    );
    same(
        &["compare", capture, capture, "--fail-on-regression=5"],
        &["compare", capture, capture, "--fail-on", "regression>=5"],
        &["--fail-on 'regression>=5'"],
    );
    // A mistake in the old spelling is one in the new one.
    let ran = run(&root(), ["query", "captures", "SELECT 1", "--since", "yesterday"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("the new one is --from"),
        "{}",
        ran.stderr
    );
}

#[cfg(feature = "live")]
#[test]
fn old_commands_do_what_new_ones_do() {
    let read = "tests/data/fabric/nexus-cloud-scale";
    same(
        &["fabric", "switch", "--kind", "nexus", "--read", read],
        &["fabric", "counters", "--kind", "nexus", "--read", read],
        &["fabric counters --kind switch"],
    );
    same(
        &["metrics", "dashboards", "host"],
        &["metrics", "files", "dashboards", "--dashboard", "host"],
        &["metrics files dashboards"],
    );
    same(
        &[
            "fabric",
            "configure",
            "host",
            "--dev",
            "eth1",
            "--hosts",
            "none.toml",
        ],
        &[
            "fabric",
            "configure",
            "host",
            "--interface",
            "eth1",
            "--inventory",
            "none.toml",
        ],
        &["--interface", "--inventory"],
    );
    same(
        &["doctor", "--explain", "list"],
        &["explain", "checks"],
        &["explain"],
    );
}

#[test]
fn words_behind_two_hyphens_are_not_ours() {
    let folder = folder(b"");
    // A capture may be called like an old option.
    let ran = run(folder.path(), ["--", "--explain"]);
    assert!(
        ran.code == Some(2) && !ran.stderr.contains("the new one is"),
        "{}",
        ran.stderr
    );
}
