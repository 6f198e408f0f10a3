//! Hostile folders and files: links planted where output goes, full disks, files of options that never end, captures that expand.
//! Nothing outside the output folder is written, nothing hangs, and nothing is left behind.

#[cfg(feature = "parquet")]
use std::collections::BTreeMap;
use std::fs;
#[cfg(feature = "live")]
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[cfg(feature = "live")]
use roce_model::Recorded;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::{TempDir, tempdir};

use crate::captures::{Capture, root};
use crate::command::{Ran, command, ran};

/// What nobody may write to.
const PRECIOUS: &[u8] = b"precious\n";

/// A folder with a file that must not change.
struct Victim(TempDir);

impl Victim {
    fn new() -> Self {
        let victim = Self(tempdir().unwrap());
        fs::write(victim.file(), PRECIOUS).unwrap();
        victim
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self) -> PathBuf {
        self.path().join("victim")
    }

    /// Plants a link to the file.
    fn plant(&self, at: impl AsRef<Path>) -> PathBuf {
        let at = self.path().join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(self.file(), &at).unwrap();
        at
    }

    #[track_caller]
    fn is_whole(&self) {
        assert_eq!(fs::read(self.file()).unwrap(), PRECIOUS);
    }
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

fn capture(name: &str) -> String {
    root().join(Capture::named(name).path).display().to_string()
}

/// A run that has to end by itself: after 30 s it is killed, and has no exit code.
#[track_caller]
pub(crate) fn ends(command: &mut Command) -> Ran {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the command starts");
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], text: &str) {
    let ran = ends(command(folder).args(arguments));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(2), ""),
        "{arguments:?}: {ran:?}"
    );
    assert!(ran.stderr.contains(text), "{arguments:?}: {ran:?}");
}

/// All files under a folder with their content.
#[cfg(feature = "parquet")]
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.insert(path.display().to_string(), Vec::new());
            all.extend(contents(&path));
        } else {
            all.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    all
}

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
        &["demo", "clean", "-o", "file-demo.pcapng", "--overwrite"],
    ] {
        let name = arguments.iter().find(|word| word.starts_with("file")).unwrap();
        let at = victim.plant(name);
        // Its temporary name as well.
        victim.plant(format!(".{name}.tmp"));
        let ran = ran(command(victim.path()).args(arguments));
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
    let recorded = Recorded {
        input: "v1".to_owned(),
        seed: 7,
        arguments: arguments.iter().map(ToString::to_string).collect(),
    };
    let frames = Capture::named("rping").frames();
    crate::replay::record(&folder.path().join(Recorded::FILE), &recorded, &frames, &[]);
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
    // Who replays it chooses files of their own.
    let folder = recording(&["live", "-i", "v1", "--config", "/dev/zero"]);
    fs::write(folder.path().join("own.toml"), "bin = \"5ms\"\n").unwrap();
    let document = ends(command(folder.path()).args([".", "--config", "own.toml", "--format", "json"]))
        .good()
        .json();
    assert_eq!(document["run"]["bin_ns"], 5_000_000);
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
    live.captures_into(&victim.path().join("out").join(Recorded::FILE));
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
    assert_eq!(mode(&format!("out/{}", Recorded::FILE)), 0o600);
    if dataset {
        assert_eq!(mode("out/flows"), 0o700);
        for file in ["out/flows/part-0.parquet", "out/run.json", "out/report.html"] {
            assert_eq!(mode(file), 0o600, "{file}");
        }
        // Nor does a page that is made later show more.
        for page in ["out/report.html", "page.html"] {
            let arguments = ["report", "out", "-o", page];
            assert_eq!(ends(command(victim.path()).args(arguments)).code, Some(0));
            assert_eq!(mode(page), 0o600, "{page}");
        }
    }
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
    // What came before counts: 1,000,000 bytes less the whole sample, in records of 16 bytes.
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

/// The place of the count of values in the first data page of a Parquet file (parquet.thrift, `PageHeader`: fields 1 to 3 are numbers, then
/// comes the page's own header, whose first field is the count). Pages begin behind the magic.
#[cfg(feature = "parquet")]
fn first_count(bytes: &[u8]) -> usize {
    let varint = |at: &mut usize| {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = bytes[*at];
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    // A data page of a column that is not repeated: dictionaries come before, and are gone over by a search for the header's bytes.
    (4..bytes.len() - 8)
        .find_map(|begin| {
            let mut at = begin;
            for _ in 0..3 {
                if bytes.get(at) != Some(&0x15) {
                    return None;
                }
                at += 1;
                varint(&mut at);
            }
            // The header of a data page is field 5.
            (bytes[begin + 1] == 0 && bytes[at] == 0x2c && bytes[at + 1] == 0x15).then_some(at + 2)
        })
        .unwrap()
}

#[test]
#[cfg(feature = "parquet")]
fn damaged_datasets_are_refused_and_others_are_read() {
    let folder = tempdir().unwrap();
    let dir = |name: &str| folder.path().join(name);
    crate::dataset::written(&dir("good"), &[&Capture::named("rping").path], &[]);
    crate::dataset::written(&dir("bad"), &[&Capture::named("atomic").path], &[]);
    let part = dir("bad/timeline/part-0.parquet");
    let whole = fs::read(&part).unwrap();
    // An odd number is negative: -1 and less become 2^64 values.
    let mut negative = whole.clone();
    negative[first_count(&whole)] |= 1;
    // The footer's length, and a footer whose list of columns claims 2^31 elements.
    let end = whole.len();
    let mut long = whole.clone();
    long[end - 5] = 0x7f;
    let mut list = whole.clone();
    let footer = end - 8 - u32::from_le_bytes(whole[end - 8..end - 4].try_into().unwrap()) as usize;
    let at = footer
        + whole[footer..]
            .windows(2)
            .position(|bytes| bytes[0] == 0x19 && bytes[1] & 0xf == 0xc)
            .unwrap();
    list.splice(at + 1..at + 7, [0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]);
    for (what, bytes) in [
        ("negative", negative),
        ("long", long),
        ("list", list),
        ("cut", whole[..end / 2].to_vec()),
    ] {
        fs::write(&part, bytes).unwrap();
        for arguments in [
            &["report", "bad"][..],
            &["compare", "bad", "good"],
            &["compare", "good", "bad"],
        ] {
            refused(folder.path(), arguments, "bad/timeline/part-0.parquet");
        }
        // Of several folders the others are on the page.
        let ran = ends(command(folder.path()).args(["report", "bad", "good", "-o", "page.html"]));
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(2), "page.html\n"),
            "{what}: {ran:?}"
        );
        assert!(
            ran.stderr.contains("bad/timeline/part-0.parquet"),
            "{what}: {ran:?}"
        );
        let page = fs::read_to_string(dir("page.html")).unwrap();
        assert!(page.contains("</html>"), "{what}");
    }
    // A FIFO under the name of a part would never end.
    fs::remove_file(&part).unwrap();
    fifo(&part);
    refused(
        folder.path(),
        &["report", "bad"],
        "bad/timeline/part-0.parquet: a FIFO, not a regular file",
    );
    refused(
        folder.path(),
        &["report", "bad", "bad", "-o", "none.html"],
        "no folder could be read",
    );
    assert!(!dir("none.html").exists());
}
