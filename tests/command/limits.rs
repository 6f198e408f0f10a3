//! Limits of the system: of a file's size, of memory, of processes. Each is an error with its cause, and no result is cut without a word.

use std::fs;
use std::process::Command;

use tempfile::tempdir;

use crate::captures::root;
use crate::command::{Ran, command, ran};

/// Runs `roce-analyze ARGUMENTS` in a shell behind `limits`.
fn limited(limits: &str, arguments: &str) -> Ran {
    let plain = command(&root());
    let mut shell = Command::new("sh");
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let program = env!("CARGO_BIN_EXE_roce-analyze");
    shell
        .args(["-c", &format!("{limits}; exec {program} {arguments}")])
        .current_dir(root());
    ran(&mut shell)
}

#[test]
fn a_file_that_reaches_its_largest_size_is_an_error() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("out.json");
    let arguments = format!("captures/write_bw_loss.pcap --format json > {}", file.display());
    let ended = limited("ulimit -f 2", &arguments);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("File too large"), "{}", ended.stderr);
    // Blocks of 512 bytes (POSIX, ulimit), or of 1,024 (bash).
    assert!([1024, 2048].contains(&fs::metadata(&file).unwrap().len()));
}

/// Parts of a document about the traffic: without the times that the run itself took.
fn results(document: &str) -> [serde_json::Value; 3] {
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    ["totals", "flows", "findings"].map(|key| document[key].clone())
}

#[test]
fn memory_that_is_not_to_be_had_is_an_error() {
    let usual = limited(":", "captures/write_bw_loss.pcap --format json --threads 1");
    assert_eq!(usual.code, Some(0));
    let mut failed = 0;
    // KiB of addresses, from too little to start the program up to enough for an analysis.
    for kilobytes in (20_000..400_000).step_by(2_000) {
        let limits = format!("ulimit -v {kilobytes}");
        if limited(&limits, "--version").code != Some(0) {
            continue;
        }
        let ended = limited(&limits, "captures/write_bw_loss.pcap --format json --threads 1");
        if ended.code == Some(0) {
            assert_eq!(results(&ended.stdout), results(&usual.stdout), "{kilobytes}");
            break;
        }
        failed += 1;
        assert_eq!(ended.code, Some(2), "{kilobytes}: {ended:?}");
        assert!(!ended.stderr.trim().is_empty(), "{kilobytes}: it says why");
    }
    assert!(failed > 0, "no limit was too low");
}

#[test]
fn threads_that_are_not_to_be_had_are_an_error() {
    if !rustix::process::geteuid().is_root() {
        crate::live::skip("not root: the limit of another user's processes cannot be set");
        return;
    }
    // Root has no limit: a user with no other process does.
    let user = "prlimit --nproc=1:1 setpriv --reuid 54323 --regid 54323 --clear-groups";
    let program = env!("CARGO_BIN_EXE_roce-analyze");
    let shell = |arguments: &str| {
        let script = format!("exec {user} {program} {arguments}");
        ran(Command::new("sh").args(["-c", &script]).current_dir(root()))
    };
    let started = shell("--version");
    if started.code != Some(0) {
        crate::live::skip("another user cannot start the program here");
        return;
    }
    let ended = shell("captures/write_bw_loss.pcap --threads 4");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("no thread for the analysis") || ended.stderr.contains("no thread to read it"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert_eq!(shell("captures/write_bw_loss.pcap --threads 1").code, Some(0));
}

#[test]
fn descriptors_that_are_not_to_be_had_are_an_error() {
    let mut failed = 0;
    // From too few to begin up to enough for a run.
    for descriptors in 4..40 {
        let limits = format!("ulimit -n {descriptors}");
        if limited(&limits, "--version").code != Some(0) {
            continue;
        }
        let ended = limited(
            &limits,
            "replay captures/rping.pcap --speed max --no-tui --format json",
        );
        if ended.code == Some(0) {
            break;
        }
        failed += 1;
        assert_eq!(ended.code, Some(2), "{descriptors}: {ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{descriptors}: {ended:?}");
    }
    assert!(failed > 0, "no limit was too low");
}

/// Rust's runtime puts `/dev/null` in the place of what is closed, so that each write succeeds and nothing arrives.
#[test]
fn a_standard_output_that_takes_nothing_is_an_error() {
    for arguments in [
        "captures/write_bw_loss.pcap",
        "captures/write_bw_loss.pcap --format json",
        "annotate captures/write_bw_loss.pcap",
        "--version",
        "",
    ] {
        for (output, said) in [
            (">&-", "is closed"),
            ("1< /dev/null", "is open for reading alone"),
        ] {
            let ended = limited(":", &format!("{arguments} {output}"));
            assert_eq!(ended.code, Some(2), "{arguments}: {ended:?}");
            let is_said = ended.stderr.contains(&format!("the standard output {said}"));
            assert!(is_said, "{arguments}: {}", ended.stderr);
        }
    }
    // Whoever wants none of it says so, for reading and writing as well (Python's `subprocess.DEVNULL`).
    for wanted in ["> /dev/null", "1<> /dev/null"] {
        let ended = limited(":", &format!("captures/write_bw_loss.pcap {wanted}"));
        assert_eq!(ended.code, Some(0), "{wanted}: {ended:?}");
    }
}
