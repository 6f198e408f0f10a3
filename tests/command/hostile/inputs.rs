//! Files that options, recordings and captures make the command read: FIFOs, devices, sparse files, data that expands.

use std::fs;

#[cfg(feature = "live")]
use roce_model::RecordingStart;
use tempfile::{TempDir, tempdir};

use super::{capture, ends, fifo, refused};
use crate::captures::Capture;
use crate::command::command;

#[test]
fn options_read_regular_files_alone_and_within_bounds() {
    let folder = tempdir().unwrap();
    fifo(&folder.path().join("fifo"));
    let sparse = fs::File::create(folder.path().join("sparse")).unwrap();
    sparse.set_len(8 << 30).unwrap();
    let path = capture("rping");
    for option in ["--config", "--training-log"] {
        for (file, text) in [
            ("fifo", "fifo: a FIFO, not a regular file"),
            ("/dev/zero", "/dev/zero: a device, not a regular file"),
            (".", ".: a folder, not a regular file"),
        ] {
            refused(folder.path(), &[&path, option, file], text);
        }
    }
    refused(
        folder.path(),
        &[&path, "--config", "sparse"],
        "sparse: larger than 1048576 bytes",
    );
    refused(
        folder.path(),
        &["simulate", "fifo", "-o", "x.pcapng"],
        "fifo: a FIFO",
    );
    refused(
        folder.path(),
        &["simulate", "/dev/zero", "-o", "x.pcapng"],
        "/dev/zero: a device",
    );
    // Captures come from FIFOs, too.
    let mut fed = command(folder.path());
    fed.args(["fifo", "--format", "none"]);
    let feeder = {
        let (to, from) = (folder.path().join("fifo"), path.clone());
        std::thread::spawn(move || fs::copy(from, to).unwrap())
    };
    assert_eq!(ends(&mut fed).good().code, Some(0));
    feeder.join().unwrap();
}

/// A folder with the recording of a run that had these arguments.
#[cfg(feature = "live")]
fn recording(arguments: &[&str]) -> TempDir {
    let folder = tempdir().unwrap();
    let recorded = RecordingStart {
        input: "v1".to_owned(),
        seed: 7,
        arguments: arguments.iter().map(ToString::to_string).collect(),
    };
    let frames = Capture::named("rping").frames();
    crate::replay::record(&folder.path().join(RecordingStart::FILE), &recorded, &frames, &[]);
    folder
}

#[test]
#[cfg(feature = "live")]
fn recordings_choose_no_files_of_this_host() {
    let plain = recording(&["live", "-i", "v1", "--bin", "2ms"]);
    let plain = ends(command(plain.path()).args([".", "--format", "json"]))
        .good()
        .json();
    let secret = tempdir().unwrap();
    fifo(&secret.path().join("fifo"));
    fs::write(secret.path().join("secret"), "the secret line\n").unwrap();
    let file = |name: &str| secret.path().join(name).display().to_string();
    for named in ["/dev/zero".to_owned(), file("fifo"), file("secret")] {
        for option in ["--config", "--training-log"] {
            let folder = recording(&["live", "-i", "v1", "--bin", "2ms", option, &named]);
            let ran = ends(command(folder.path()).args([".", "--format", "json"]));
            assert_eq!(ran.code, Some(0), "{option} {named}: {ran:?}");
            let left_out = format!("the run had {option} {named}, which a recording cannot choose");
            assert!(ran.stderr.contains(&left_out), "{ran:?}");
            assert!(!ran.stderr.contains("the secret line"), "{ran:?}");
            let mut document = ran.json();
            for key in ["run_id", "started", "elapsed_ns", "options"] {
                document["run"][key] = plain["run"][key].clone();
            }
            assert_eq!(document["flows"], plain["flows"]);
            assert_eq!(document["findings"], plain["findings"]);
        }
    }
    // Folders of cgroups are recorded as numbers, and looked up nowhere.
    for words in [
        &["--cgroup", "../../../etc/shadow"][..],
        &["--cgroup=/user.slice"],
    ] {
        let folder = recording(&[&["live", "-i", "v1", "--probe"], words].concat());
        refused(folder.path(), &["."], "names the cgroup");
    }
    // The text of a configuration counts, but for the file that it names.
    let text = "--recorded-config=bin = \"5ms\"\ntraining-log = \"/dev/zero\"\n";
    let folder = recording(&["live", "-i", "v1", text]);
    let document = ends(command(folder.path()).args([".", "--format", "json"]))
        .good()
        .json();
    assert_eq!(document["run"]["bin_ns"], 5_000_000);
    let large = format!("--recorded-config={}", " ".repeat((1 << 20) + 1));
    let folder = recording(&["live", "-i", "v1", &large]);
    refused(
        folder.path(),
        &["."],
        "the configuration in the recording: larger than",
    );
    // Names in a recording make no lines of their own.
    let folder = recording(&["live", "-i", "v1", "--top", "a\nhint: run b"]);
    let ran = ends(command(folder.path()).args(["."]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        !ran.stderr.lines().any(|line| line.starts_with("hint: run b")),
        "{ran:?}"
    );
    // Who replays it chooses files of their own.
    let folder = recording(&["live", "-i", "v1", "--config", "/dev/zero"]);
    fs::write(folder.path().join("own.toml"), "bin = \"5ms\"\n").unwrap();
    let document = ends(command(folder.path()).args([".", "--config", "own.toml", "--format", "json"]))
        .good()
        .json();
    assert_eq!(document["run"]["bin_ns"], 5_000_000);
}

#[test]
fn captures_are_read_up_to_a_limit() {
    use std::io::Write;
    let folder = tempdir().unwrap();
    let mut encoder =
        zstd::Encoder::new(fs::File::create(folder.path().join("bomb.zst")).unwrap(), 1).unwrap();
    let sample = Capture::named("rping").bytes();
    encoder.write_all(&sample).unwrap();
    // 64 MiB of records without bytes: each is 16 bytes of zeros.
    let zeros = vec![0; 1 << 20];
    for _ in 0..64 {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap();
    let ran = ends(command(folder.path()).args(["bomb.zst", "--max-input", "1MB", "--format", "json"]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .contains("bomb.zst: longer than 1000000 bytes of the data inside of zstd: read no further"),
        "{ran:?}"
    );
    // Bytes before the damage count: 1,000,000 bytes less the whole sample, in records of 16 bytes.
    let records = Capture::named("rping").frames().len();
    let frames = records + (1_000_000 - sample.len()) / 16;
    assert_eq!(ran.json()["totals"]["frames"], frames);
    let whole = ran_good(&folder, &["--max-input", "1MB"]);
    assert_eq!(whole, ran_good(&folder, &[]));
}

/// The number of frames of a small capture that is read whole.
fn ran_good(folder: &TempDir, more: &[&str]) -> serde_json::Value {
    let path = capture("rping");
    let mut command = command(folder.path());
    command.args([&path, "--format", "json"]).args(more);
    ends(&mut command).good().json()["totals"]["frames"].clone()
}
