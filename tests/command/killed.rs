//! Runs that are killed (SIGKILL) at many moments: no file under a final name is damaged, an older dataset is whole, and what is left has
//! a temporary name, which the next run removes. `ROCE_ANALYZE_KILLS=100` kills that often instead of ten times.

#![expect(clippy::print_stdout, reason = "how the runs ended is said with --nocapture")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use roce_parquet::{TABLES, read_table};
use tempfile::tempdir;

use crate::captures::{Capture, root};
use crate::command::{command, ran};
use crate::dataset::{nothing_else, written};

fn kills() -> u32 {
    std::env::var("ROCE_ANALYZE_KILLS").map_or(10, |kills| kills.parse().unwrap())
}

/// Moments to kill at: half of them over a whole run, half in its last fifth, where files get their names.
fn moments(whole: Duration) -> impl Iterator<Item = Duration> {
    let kills = kills();
    (0..kills).map(move |number| {
        let share = f64::from(number / 2 * 2) / f64::from(kills.max(2));
        match number % 2 {
            0 => whole.mul_f64(share),
            _ => whole.mul_f64(share.mul_add(0.25, 0.8)),
        }
    })
}

/// The files in a folder of results and in its tables, with their content. All that may be there besides are folders of tables.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            assert!(TABLES.contains(&name.as_str()), "{name}");
            for part in fs::read_dir(entry.path()).unwrap() {
                let part = part.unwrap();
                let file = format!("{name}/{}", part.file_name().into_string().unwrap());
                files.insert(file, fs::read(part.path()).unwrap());
            }
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// Those with final names; the others have temporary ones.
fn published(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    files.retain(|path, _| {
        let name = path.rsplit('/').next().unwrap();
        let is_temporary = name
            .strip_prefix('.')
            .is_some_and(|name| name.strip_suffix(".tmp").is_some());
        assert!(is_temporary || !name.starts_with('.'), "{path}");
        !is_temporary
    });
    files
}

/// Every part is whole.
fn parts_are_whole(dir: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for table in TABLES {
        if files.keys().any(|name| name.starts_with(&format!("{table}/"))) {
            read_table(dir, table).unwrap();
        }
    }
}

/// Runs an analysis into `out`, and kills it after `moment`; true if it was still running.
fn killed(dir: &Path, capture: &str, more: &[&str], moment: Duration) -> bool {
    let mut command = command(&root());
    command
        .args([capture, "--format", "none", "-o"])
        .arg(dir)
        .args(more);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(moment);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

fn time_of(dir: &Path, capture: &str) -> Duration {
    let begun = Instant::now();
    written(dir, &[capture], &[]);
    begun.elapsed()
}

#[test]
fn killed_analyses_leave_no_damaged_file() {
    let folder = tempdir().unwrap();
    let capture = Capture::named("write_bw_loss").path;
    let whole = time_of(&folder.path().join("first"), &capture);
    let (mut ended, mut between) = (0, 0);
    for (number, moment) in moments(whole).enumerate() {
        let dir = folder.path().join(number.to_string());
        ended += u32::from(!killed(&dir, &capture, &[], moment));
        let found = published(files(&dir));
        parts_are_whole(&dir, &found);
        if found.contains_key("run.json") {
            assert!(found.len() > TABLES.len(), "{found:?}");
        } else if !found.is_empty() {
            between += 1;
        }
        // A published dataset counts as one, even if its document is missing.
        let more: &[&str] = if found.is_empty() { &[] } else { &["--overwrite"] };
        written(&dir, &[&capture], more);
        nothing_else(&dir);
    }
    println!(
        "{} runs of {whole:?}: {ended} had ended, {between} were killed between renames",
        kills()
    );
}

#[test]
fn killed_analyses_keep_the_older_dataset() {
    let folder = tempdir().unwrap();
    let (old, dir) = (folder.path().join("old"), folder.path().join("out"));
    let capture = Capture::named("write_bw_loss").path;
    written(&old, &[&Capture::named("atomic").path], &[]);
    let before = files(&old);
    let whole = time_of(&dir, &capture);
    let (mut kept, mut replaced, mut between) = (0, 0, 0);
    for moment in moments(whole) {
        fs::remove_dir_all(&dir).unwrap();
        let mut copy = std::process::Command::new("cp");
        assert!(copy.arg("-r").args([&old, &dir]).status().unwrap().success());
        killed(&dir, &capture, &["--overwrite"], moment);
        let found = published(files(&dir));
        if found == before {
            kept += 1;
        } else if found.contains_key("run.json") {
            // All tables are the new ones; the page is the last that gets its name. Tables without rows are alike.
            for file in [
                "run.json",
                "run/part-0.parquet",
                "flows/part-0.parquet",
                "timeline/part-0.parquet",
            ] {
                assert!(found[file] != before[file], "{file} is the older one");
            }
            replaced += 1;
        } else {
            // Between two renames: readers refuse it, and no file is damaged.
            let report = ran(command(folder.path()).args(["report", "out"]));
            assert!(
                report.code == Some(2) && report.stderr.contains("did not end"),
                "{report:?}"
            );
            between += 1;
        }
        parts_are_whole(&dir, &found);
        written(&dir, &[&capture], &["--overwrite"]);
        nothing_else(&dir);
    }
    println!(
        "{} runs of {whole:?}: {kept} kept, {replaced} replaced, {between} between renames",
        kills()
    );
}

#[test]
#[cfg(feature = "live")]
fn killed_live_runs_leave_whole_parts() {
    let Some(net) = crate::live::Net::new() else {
        return;
    };
    let folder = tempdir().unwrap();
    let dir = folder.path().join("out");
    let recording = dir.join(roce_model::RecordingStart::FILE);
    let (mut parts, mut first) = (0, true);
    for moment in moments(Duration::from_millis(600)) {
        let mut arguments = vec![
            "-i",
            "v1",
            "--no-tui",
            "--interval",
            "10ms",
            "--rotate",
            "20ms",
            "-o",
            "out",
            "--record",
        ];
        if !first {
            arguments.push("--overwrite");
        }
        first = false;
        let _ = fs::remove_file(&recording);
        let mut live = net.live(folder.path(), &arguments);
        live.captures_into(&recording);
        let sent = std::thread::scope(|scope| {
            let sender = scope.spawn(|| net.send("v0", crate::live::whole("write_bw_loss"), Some(10_000)));
            std::thread::sleep(moment);
            live.0.kill().unwrap();
            live.0.wait().unwrap();
            sender.join()
        });
        sent.unwrap();
        let mut found = published(files(&dir));
        assert!(found.remove(roce_model::RecordingStart::FILE).is_some());
        assert!(!found.contains_key("run.json"), "a killed run has no document");
        parts += found.len();
        parts_are_whole(&dir, &found);
    }
    assert!(parts > 0, "no run came far enough to close a part");
    // The next run removes everything that is left.
    let arguments = [
        "-i",
        "v1",
        "--no-tui",
        "--duration",
        "50ms",
        "-o",
        "out",
        "--overwrite",
    ];
    let ended = net.live(folder.path(), &arguments).ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    nothing_else(&dir);
    println!("{} runs, {parts} parts, all whole", kills());
}
