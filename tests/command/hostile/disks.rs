//! Disks that are full at any moment of a run: nothing is left behind, and what was there before stays.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::tempdir;

use super::capture;
#[cfg(feature = "parquet")]
use super::contents;
#[cfg(feature = "parquet")]
use crate::captures::Capture;
use crate::command::{Ran, ran};

/// Runs the command in a mount namespace of its own with a file system of so many KiB on `folder/disk`. Returns what it said, with the
/// names and sums of the files that are left on standard output.
fn on_a_disk(folder: &Path, kib: u32, prepare: &str, arguments: &[&str]) -> Option<Ran> {
    let script = format!(
        "mount -t tmpfs -o size={kib}k disk disk && {prepare} && {{ \"$0\" \"$@\" >/dev/null; code=$?; }}; \
         find disk -mindepth 1 | sort; exit $code"
    );
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_roce-analyze")])
        .args(arguments)
        .current_dir(folder);
    fs::create_dir_all(folder.join("disk")).unwrap();
    if !rustix::process::geteuid().is_root() {
        skip("not root: no file system can be mounted");
        return None;
    }
    Some(ran(&mut command))
}

/// Says why a test is not done, past the test harness.
fn skip(why: &str) {
    use std::io::Write;
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    std::io::stdout()
        .write_all(format!("SKIPPED: {name}: {why}\n").as_bytes())
        .unwrap();
}

#[test]
#[cfg(feature = "parquet")]
fn a_full_disk_leaves_nothing_behind_and_is_named() {
    let folder = tempdir().unwrap();
    let path = capture("write_bw_loss");
    for kib in [4, 16, 64, 100, 140] {
        let arguments = [path.as_str(), "--format", "none", "-o", "disk/new/out"];
        let Some(full) = on_a_disk(folder.path(), kib, "true", &arguments) else {
            return;
        };
        assert_eq!(
            (full.code, full.stdout.as_str()),
            (Some(2), ""),
            "{kib} KiB: {full:?}"
        );
        assert!(full.stderr.contains("disk/new/out"), "{kib} KiB: {full:?}");
        assert!(
            full.stderr.contains("No space left on device"),
            "{kib} KiB: {full:?}"
        );
    }
}

/// The disk is full at any moment of a run that replaces a dataset: tables, document and page are the old ones or the new ones.
#[test]
#[cfg(feature = "parquet")]
fn a_full_disk_keeps_the_older_dataset() {
    let folder = tempdir().unwrap();
    let old = folder.path().join("old");
    crate::dataset::written(&old, &[&Capture::named("atomic").path], &[]);
    let bytes: usize = contents(&old)
        .values()
        .map(|content| content.len().div_ceil(4096) * 4096)
        .sum();
    let kib = u32::try_from(bytes / 1024).unwrap() + 48;
    let path = capture("write_bw_loss");
    let prepare = "cp -r old disk/out && find disk -type f -exec sha256sum {} + | sort > before";
    let check = "find disk -type f -exec sha256sum {} + | sort | cmp - before";
    for more in [8, 40, 80, 120, 160, 200, 240] {
        let arguments = [path.as_str(), "--format", "none", "--overwrite", "-o", "disk/out"];
        let script = format!(
            "mount -t tmpfs -o size={}k disk disk && {prepare} && {{ \"$0\" \"$@\" >/dev/null; code=$?; }}; \
             test $code = 0 || {check}",
            kib + more
        );
        if !rustix::process::geteuid().is_root() {
            return skip("not root: no file system can be mounted");
        }
        fs::create_dir_all(folder.path().join("disk")).unwrap();
        let mut command = Command::new("unshare");
        command
            .args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_roce-analyze")])
            .args(arguments)
            .current_dir(folder.path());
        let ran = ran(&mut command);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), ""),
            "{more} KiB: {ran:?}"
        );
    }
}

#[test]
fn a_full_disk_leaves_no_half_file() {
    let folder = tempdir().unwrap();
    let (a, b) = (capture("rping"), capture("atomic"));
    for arguments in [
        &["simulate", "incast", "-o", "disk/x.pcapng"][..],
        &["simulate", "clean", "--truth", "disk/truth.json"],
        &["compare", &a, &b, "--format", "html", "-o", "disk/x.html"],
    ] {
        let Some(full) = on_a_disk(folder.path(), 8, "true", arguments) else {
            return;
        };
        assert_eq!(
            (full.code, full.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}: {full:?}"
        );
        assert!(full.stderr.contains("disk/"), "{arguments:?}: {full:?}");
    }
}
