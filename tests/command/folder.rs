//! The folder of `-o DIR`: what is in it stays whole, whatever happens to a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use roce_parquet::{TABLES, read_table};
use tempfile::tempdir;

use crate::captures::{Capture, root};
use crate::command::{command, document, flows, ran, run};
use crate::dataset::{by_key, inputs, nothing_else, rows, written};

#[test]
fn a_dataset_is_not_replaced_unasked() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("out");
    let (first, second) = (Capture::named("atomic"), Capture::named("rping"));
    let first_document = written(&dir, &[&first.path], &[]);

    let path = |capture: &Capture| root().join(&capture.path).display().to_string();
    let refused = run(folder.path(), [&path(&second), "-o", "out"]);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (Some(2), ""),
        "{refused:?}"
    );
    assert_eq!(
        refused.stderr,
        "error: out holds a dataset already (out/run.json); hint: give another folder, or --overwrite\n"
    );
    let flows_before = rows(&dir, "flows");
    assert_eq!(
        by_key(&flows_before),
        by_key(flows(&first_document)),
        "the old one is whole"
    );
    nothing_else(&dir);

    let second_document = written(&dir, &[&second.path], &["--overwrite"]);
    let flows_after = rows(&dir, "flows");
    assert_eq!(by_key(&flows_after), by_key(flows(&second_document)));
    assert_ne!(by_key(&flows_before), by_key(&flows_after));
    nothing_else(&dir);
}

/// All files under a folder with their content.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
#[cfg(unix)]
fn a_run_that_fails_leaves_the_old_dataset() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("out");
    written(&dir, &[&Capture::named("atomic").path], &[]);
    let before = contents(&dir);

    // Files may not grow beyond 1,024 bytes (POSIX: units of 512), and the write says so instead of a signal: as a full disk.
    let limited = |trap: &str| {
        let mut shell = std::process::Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("{trap} ulimit -f 2; exec \"$0\" \"$@\""));
        shell.arg(env!("CARGO_BIN_EXE_roce-analyze"));
        shell
            .args([
                &Capture::named("write_bw_loss").path,
                "--format",
                "none",
                "--overwrite",
                "-o",
            ])
            .arg(&dir);
        ran(shell.current_dir(root()))
    };
    let full = limited("trap '' XFSZ;");
    assert_eq!(full.code, Some(2), "{full:?}");
    assert!(full.stderr.contains("out/"), "the file is named: {full:?}");
    assert_eq!(contents(&dir), before, "nothing is lost, nothing is left behind");

    // The limit's signal is an error as well, not a death.
    let refused = limited("");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for (path, content) in &before {
        assert_eq!(fs::read(path).unwrap(), *content, "{path}");
    }
    let document = written(&dir, &[&Capture::named("rnr").path], &["--overwrite"]);
    assert_eq!(by_key(&rows(&dir, "flows")), by_key(flows(&document)));
    nothing_else(&dir);
}

#[test]
fn an_unusable_folder_is_named() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let capture = root().join(Capture::named("atomic").path).display().to_string();
    let failed = run(folder.path(), [&capture, "-o", "file"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(2), ""), "{failed:?}");
    assert!(
        failed.stderr.starts_with("error: ") && failed.stderr.contains("file"),
        "{failed:?}"
    );
}

#[test]
fn a_reader_that_leaves_early_costs_no_dataset() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("out");
    let capture = Capture::named("rping");
    let mut command = command(&root());
    command
        .args([&capture.path, "-o"])
        .arg(&dir)
        .stdout(crate::cli::closed_pipe());
    let left = ran(&mut command);
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""), "{left:?}");
    assert_eq!(
        by_key(&rows(&dir, "flows")),
        by_key(flows(&document(&root(), [&capture.path])))
    );
}

#[test]
fn a_capture_without_frames_makes_a_dataset_without_rows() {
    let folder = tempdir().unwrap();
    fs::write(
        folder.path().join("empty.pcap"),
        &Capture::named("rping").bytes()[..24],
    )
    .unwrap();
    let ran = run(folder.path(), ["empty.pcap", "-o", "out"]);
    let wrote = "wrote: out/report.html, out/run.json and Parquet tables in out\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), wrote), "{ran:?}");
    let quiet = run(folder.path(), ["empty.pcap", "-o", "quiet", "--quiet"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""), "{quiet:?}");
    for table in TABLES {
        let count = usize::from(table == "run");
        assert_eq!(rows(&folder.path().join("out"), table).len(), count, "{table}");
        assert!(
            !read_table(&folder.path().join("out"), table)
                .unwrap()
                .columns
                .is_empty(),
            "{table}"
        );
    }
}

#[test]
fn one_bad_input_costs_no_dataset() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("good.pcap"), Capture::named("rping").bytes()).unwrap();
    let ran = run(
        folder.path(),
        ["missing.pcap", "good.pcap", "-o", "out", "--format", "json"],
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let dir = folder.path().join("out");
    assert_eq!(by_key(&rows(&dir, "flows")), by_key(flows(&ran.json())));
    inputs("one is missing", &rows(&dir, "run"), &ran.json());
    nothing_else(&dir);
}

/// A folder that was unpacked may have a link in the place of the second pass' results.
#[test]
fn the_second_pass_writes_through_no_link() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["ds/run", "raw", "elsewhere"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    std::os::unix::fs::symlink(at("elsewhere"), at("ds/joined")).unwrap();
    let refused = run(
        folder.path(),
        ["dataset", "join", "ds", "raw", "--date", "2026-01-01"],
    );
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("ds/joined: is a link"), "{refused:?}");
    assert!(fs::read_dir(at("elsewhere")).unwrap().next().is_none());
}
