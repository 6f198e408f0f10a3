//! Links planted where output goes, and who may read what was written.

use std::fs;
#[cfg(feature = "live")]
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

#[cfg(feature = "live")]
use roce_model::RecordingStart;

#[cfg(feature = "parquet")]
use super::contents;
#[cfg(feature = "live")]
use super::ends;
use super::{Victim, capture, refused};
#[cfg(feature = "parquet")]
use crate::captures::Capture;
use crate::command::{command, ran};

#[test]
#[cfg(feature = "parquet")]
fn links_under_temporary_names_are_not_followed() {
    for name in [
        ".run.json.tmp",
        ".report.html.tmp",
        "flows/.part-0.parquet.tmp",
        "run.json",
        "report.html",
    ] {
        for overwrite in [false, true] {
            let victim = Victim::new();
            let at = victim.plant(format!("out/{name}"));
            let mut run = command(victim.path());
            run.args([&capture("rping"), "--format", "none", "-o", "out"]);
            if overwrite {
                run.arg("--overwrite");
            }
            if !overwrite && !name.contains(".tmp") {
                // Something of another one has a name of a result: that is not replaced unasked.
                assert_eq!(ran(&mut run).code, Some(2));
                victim.is_whole();
                assert!(fs::symlink_metadata(at).unwrap().is_symlink(), "the link stays");
                continue;
            }
            ran(&mut run).good();
            victim.is_whole();
            crate::dataset::nothing_else(&victim.path().join("out"));
            if !name.contains(".tmp") {
                assert!(
                    fs::symlink_metadata(at).unwrap().is_file(),
                    "the link is replaced"
                );
            }
        }
    }
    // `report` writes the page alone.
    let victim = Victim::new();
    let out = victim.path().join("out");
    crate::dataset::written(&out, &[&Capture::named("rping").path], &[]);
    victim.plant("out/.report.html.tmp");
    ran(command(victim.path()).args(["report", "out"]));
    victim.is_whole();
    crate::dataset::nothing_else(&out);
}

#[test]
#[cfg(feature = "parquet")]
fn folders_of_tables_are_not_followed() {
    let victim = Victim::new();
    let (other, out) = (victim.path().join("other"), victim.path().join("out"));
    crate::dataset::written(&other, &[&Capture::named("rping").path], &[]);
    fs::create_dir(&out).unwrap();
    symlink(other.join("flows"), out.join("flows")).unwrap();
    let before = contents(&other);
    for more in [&["--overwrite"][..], &[]] {
        let mut arguments = vec!["-o", "out", "--format", "none"];
        arguments.extend(more);
        let path = capture("rping");
        arguments.push(&path);
        refused(victim.path(), &arguments, "out/flows: a symbolic link");
        assert_eq!(contents(&other), before);
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "nothing is left behind");
}

#[test]
#[cfg(feature = "parquet")]
fn output_folders_behind_links_are_followed_if_these_are_trusted() {
    let victim = Victim::new();
    fs::create_dir(victim.path().join("disk")).unwrap();
    symlink("disk", victim.path().join("link")).unwrap();
    let path = capture("rping");
    let run = |out: &str| ran(command(victim.path()).args([&path, "--format", "none", "-o", out]));
    run("link/out").good();
    crate::dataset::nothing_else(&victim.path().join("disk/out"));
    symlink("disk/out2", victim.path().join("own")).unwrap();
    fs::create_dir(victim.path().join("disk/out2")).unwrap();
    run("own").good();
    crate::dataset::nothing_else(&victim.path().join("disk/out2"));
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let theirs = victim.path().join("theirs");
    symlink("disk", &theirs).unwrap();
    std::os::unix::fs::lchown(&theirs, Some(65_534), None).unwrap();
    refused(
        victim.path(),
        &[&path, "-o", "theirs"],
        "theirs: a symbolic link of another user (uid 65534)",
    );
}

#[test]
fn files_that_options_name_are_not_written_through_links() {
    let victim = Victim::new();
    let (a, b) = (capture("rping"), capture("atomic"));
    for arguments in [
        &["compare", &a, &b, "-o", "file.txt"][..],
        &["simulate", "clean", "-o", "file.pcapng"],
        &["simulate", "clean", "--truth", "file.json"],
        &["demo", "clean", "-o", "file-demo.pcapng"],
    ] {
        let name = arguments.iter().find(|word| word.starts_with("file")).unwrap();
        let at = victim.plant(name);
        // Its temporary name as well.
        victim.plant(format!(".{name}.tmp"));
        let ran = ran(command(victim.path()).args(arguments).arg("--overwrite"));
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        victim.is_whole();
        assert!(fs::symlink_metadata(&at).unwrap().is_file(), "{arguments:?}");
        let left: Vec<_> = fs::read_dir(victim.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(
            left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")),
            "{left:?}"
        );
    }
    // Devices are written to and stay what they are.
    let ran = ran(command(victim.path()).args(["compare", &a, &b, "-o", "/dev/stdout"]));
    assert!(ran.code == Some(0) && ran.stdout.contains("goodput"), "{ran:?}");
    refused(
        victim.path(),
        &["compare", &a, &b, "-o", "/dev/full"],
        "/dev/full: cannot be written",
    );
}

/// Every command that writes a file that its user names or whose name it chooses: a file, a link and a link that leads nowhere stay, and
/// are replaced with `--overwrite`.
#[test]
fn nothing_that_has_an_outputs_name_is_replaced_unasked() {
    let (a, b) = (capture("rping"), capture("atomic"));
    let mut cases = vec![
        (vec!["compare", &a, &b, "-o", "x.txt"], "x.txt"),
        (vec!["annotate", &a, "-o", "x.pcapng"], "x.pcapng"),
        (vec!["annotate", "--profile", "x"], "x/colorfilters"),
        (vec!["simulate", "clean", "-o", "x.pcapng"], "x.pcapng"),
        (vec!["simulate", "clean", "--truth", "x.json"], "x.json"),
        (vec!["simulate", "clean", "--counters", "x"], "x/fabric.toml"),
        (vec!["demo", "clean", "-o", "x.pcapng"], "x.pcapng"),
        (vec!["man", "-o", "x"], "x/roce-analyze-live.1"),
    ];
    if cfg!(feature = "live") {
        cases.extend([
            (vec!["metrics", "files", "rules", "-o", "x"], "x/roce.rules.yml"),
            (vec!["doctor", "--record", "x.tar.zst"], "x.tar.zst"),
        ]);
    }
    for (arguments, name) in cases {
        for planted in ["a file", "a link", "a link to nothing"] {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path().join(name);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(folder.path().join("precious"), "precious").unwrap();
            match planted {
                "a file" => fs::write(&at, "precious").unwrap(),
                "a link" => symlink(folder.path().join("precious"), &at).unwrap(),
                _ => symlink("/nonexistent", &at).unwrap(),
            }
            let before = fs::read_dir(at.parent().unwrap()).unwrap().count();
            let refused = ran(command(folder.path()).args(&arguments));
            assert_eq!(refused.code, Some(2), "{arguments:?}, {planted}: {refused:?}");
            assert!(
                refused.stderr.contains("already exists"),
                "{arguments:?}: {refused:?}"
            );
            let is_link = fs::symlink_metadata(&at).unwrap().is_symlink();
            assert_eq!(is_link, planted != "a file", "{arguments:?}");
            if planted != "a link to nothing" {
                assert_eq!(fs::read_to_string(&at).unwrap(), "precious", "{arguments:?}");
            }
            let after = fs::read_dir(at.parent().unwrap()).unwrap().count();
            assert_eq!(after, before, "{arguments:?}: nothing is left behind");
            let replaced = ran(command(folder.path()).args(&arguments).arg("--overwrite"));
            assert_eq!(replaced.code, Some(0), "{arguments:?}: {replaced:?}");
            assert!(fs::symlink_metadata(&at).unwrap().is_file(), "{arguments:?}");
            let kept = fs::read_to_string(folder.path().join("precious")).unwrap();
            assert_eq!(kept, "precious", "{arguments:?}");
        }
    }
}

#[test]
#[cfg(feature = "live")]
fn what_live_runs_write_is_private() {
    let Some(net) = crate::live::Net::new() else {
        return;
    };
    let victim = Victim::new();
    let link = victim.plant("trace.pcapng");
    let dataset = cfg!(feature = "parquet");
    let mut live = net.live(
        victim.path(),
        &[
            "-i",
            "v1",
            "--no-tui",
            "-w",
            "trace.pcapng",
            "--overwrite",
            "-o",
            "out",
            "--record",
        ],
    );
    live.captures_into(&victim.path().join("out").join(RecordingStart::FILE));
    net.send("v0", crate::live::whole("rping"), Some(2_000));
    live.signal(rustix::process::Signal::INT);
    let ran = live.ended();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // -w went through no link.
    victim.is_whole();
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
    let mode = |path: &str| {
        fs::metadata(victim.path().join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("trace.pcapng"), 0o600);
    assert_eq!(mode("out"), 0o700);
    assert_eq!(mode(&format!("out/{}", RecordingStart::FILE)), 0o600);
    if dataset {
        assert_eq!(mode("out/flows"), 0o700);
        for file in ["out/flows/part-0.parquet", "out/run.json", "out/report.html"] {
            assert_eq!(mode(file), 0o600, "{file}");
        }
        // Nor does a page that is made later show more.
        for page in ["out/report.html", "page.html"] {
            let arguments = ["report", "out", "-o", page, "--overwrite"];
            assert_eq!(ends(command(victim.path()).args(arguments)).code, Some(0));
            assert_eq!(mode(page), 0o600, "{page}");
        }
    }
}

/// An ordinary user who owns the parent of the output folder.
#[cfg(feature = "live")]
const ATTACKER: u32 = 54_321;

/// In the attacker's folder, waits for `out` and puts a link to `target` in its place; true if that was in time.
#[cfg(feature = "live")]
fn replaces(
    folder: &std::path::Path,
    target: &std::path::Path,
    ended: &std::sync::atomic::AtomicBool,
) -> bool {
    use rustix::{process::Gid, process::Uid, thread};
    thread::set_thread_groups(&[]).unwrap();
    let (user, group) = (Uid::from_raw(ATTACKER), Gid::from_raw(ATTACKER));
    thread::set_thread_res_gid(group, group, group).unwrap();
    thread::set_thread_res_uid(user, user, user).unwrap();
    let (out, moved) = (folder.join("out"), folder.join("moved"));
    while !ended.load(std::sync::atomic::Ordering::Relaxed) {
        if fs::rename(&out, &moved).is_ok() {
            std::os::unix::fs::symlink(target, &out).unwrap();
            return true;
        }
    }
    false
}

#[test]
#[cfg(feature = "live")]
fn a_folder_that_is_replaced_by_a_link_is_not_given_away() {
    use std::os::unix::fs::{MetadataExt, chown};
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::live::{A_MOMENT, Net, text};

    let Some(net) = Net::new() else {
        return;
    };
    let mut replaced = 0;
    // Only the attacker can enter this folder, so that a run of root continues as the attacker, to whom the new folder is given.
    for _ in 0..8 {
        let top = tempfile::tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (theirs, victim) = (top.path().join("theirs"), top.path().join("victim"));
        fs::create_dir(&victim).unwrap();
        fs::create_dir(&theirs).unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o700)).unwrap();
        chown(&theirs, Some(ATTACKER), Some(ATTACKER)).unwrap();
        let out = theirs.join("out");
        let arguments = [&A_MOMENT[..], &["--record", "-o", text(&out)]].concat();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let attacker = scope.spawn(|| replaces(&theirs, &victim, &ended));
            let ran = net.live(top.path(), &arguments).ended();
            ended.store(true, Ordering::Relaxed);
            replaced += u32::from(attacker.join().unwrap());
            assert!(ran.code.is_some(), "{ran:?}");
        });
        let found = fs::metadata(&victim).unwrap();
        assert_eq!(
            (found.uid(), found.gid()),
            (0, 0),
            "the folder of root is given away"
        );
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    }
    assert!(replaced > 0, "the attacker was never in time");
}
