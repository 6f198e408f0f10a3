//! `cargo xtask faults`: each system call of a list of commands fails once, and every end has to be a good one.
//!
//! strace counts the calls of a command, and fails the n-th one of a name with an error (`-e inject`), in the real program: no seam in the
//! sources could be forgotten. Counts are of each thread. Calls of the loader, before the first `poll` of the standard library, are left out.

mod cases;
mod judge;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use cases::{CASES, Fault, FaultCase, PREPARED};
use judge::{End, INJECTED, judge};

use crate::need;
use crate::workspace::{Profile, Workspace};

pub(crate) const ABOUT: &str = "fail each system call of a list of commands once, by strace";
pub(crate) const ARGUMENTS: &str = "[--few] [--only TEXT]... [--bin PROGRAM]";

/// Calls, and the errors that each may give (their manual pages, section ERRORS).
const CALLS: &[(&str, &[&str])] = &[
    ("openat", &["EIO", "EMFILE"]),
    ("openat2", &["EIO", "EMFILE"]),
    ("read", &["EIO", "EINTR"]),
    ("pread64", &["EIO", "EINTR"]),
    ("write", &["ENOSPC", "EINTR"]),
    ("pwrite64", &["ENOSPC"]),
    ("writev", &["ENOSPC"]),
    ("lseek", &["EINVAL"]),
    ("ftruncate", &["EIO"]),
    ("fsync", &["EIO"]),
    ("fdatasync", &["EIO"]),
    ("rename", &["EIO"]),
    ("renameat", &["EIO"]),
    ("renameat2", &["EIO"]),
    ("linkat", &["EIO"]),
    ("mkdir", &["ENOSPC"]),
    ("mkdirat", &["ENOSPC"]),
    ("unlink", &["EIO"]),
    ("unlinkat", &["EIO"]),
    ("getdents64", &["EIO"]),
    ("statx", &["EIO"]),
    ("newfstatat", &["EIO"]),
    ("socket", &["EMFILE"]),
    ("bind", &["EADDRINUSE"]),
    ("connect", &["ECONNREFUSED"]),
    ("pipe2", &["EMFILE"]),
    ("clone3", &["EAGAIN"]),
    ("clone", &["EAGAIN"]),
];
/// Failures of one call of one command with `--few`.
const FEW: usize = 3;

/// Failures of one call of one command in the step of the tests.
const DRAWS: usize = 2;

/// Number of the failures that are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FaultShare {
    /// Every call, with every error.
    All,
    /// `FEW` calls of each name and command, with every error.
    Few,
    /// `DRAWS` calls of each name and command, with one error each. Commands take other calls and errors in turn, so that together they
    /// cover the beginnings, middles and ends of runs evenly.
    Drawn,
}
/// The error of a program that was built without the feature `parquet`.
const NO_DATASETS: &str = "this build cannot write datasets";
/// Longest run, in seconds.
const LONGEST: &str = "30";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (mut share, mut only) = (FaultShare::All, Vec::new());
    let mut program = workspace.program(Profile::Dev, "roce-analyze");
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.len()) {
            ("--few", _) => share = FaultShare::Few,
            ("--only", 1..) => only.extend(arguments.next().cloned()),
            ("--bin", 1..) => program = arguments.next().map(PathBuf::from).unwrap_or_default(),
            _ => bail!("'{argument}' is not understood\nhint: {ARGUMENTS}"),
        }
    }
    possible()?;
    let program = program
        .canonicalize()
        .with_context(|| format!("there is no program {}", program.display()))?;
    check(workspace, program, share, &only)
}

/// The step of the tests: some calls of each name and command, of the program that the tests have built.
pub(crate) fn quick(workspace: &Workspace) -> Result<()> {
    let program = workspace.program(Profile::Dev, "roce-analyze");
    check(workspace, program, FaultShare::Drawn, &[])
}

/// strace is there, and may trace.
pub(crate) fn possible() -> Result<()> {
    need::ensure(&[need::STRACE])?;
    let works = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .status();
    if works.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    bail!("strace may not trace here")
}

/// Fails calls of a program.
fn check(workspace: &Workspace, program: PathBuf, share: FaultShare, only: &[String]) -> Result<()> {
    let bench = FaultBench::new(workspace, program)?;
    let chosen =
        |case: &&FaultCase| only.is_empty() || only.iter().any(|text| case.name.contains(text.as_str()));
    let mut wrong = Vec::new();
    let (mut tried, mut commands) = (0, 0);
    for case in CASES.iter().filter(chosen) {
        if !bench.has_results && case.words.contains("{ready}") {
            println!("   {}: SKIPPED: {NO_DATASETS}", case.name);
            continue;
        }
        let good = bench.run(case, "good", None)?;
        if good.errors.contains(NO_DATASETS) {
            println!("   {}: SKIPPED: {NO_DATASETS}", case.name);
            continue;
        }
        if good.code.is_none_or(|code| code == 101) {
            wrong.push(format!("{}: it fails by itself: {}", case.name, good.errors));
            continue;
        }
        let faults = faults(case, &good.trace, share);
        let next = AtomicUsize::new(0);
        let hits = AtomicUsize::new(0);
        let found: Result<Vec<Vec<String>>> = thread::scope(|scope| {
            let worker = |name: &'static str| {
                let (faults, next, hits, good, bench) = (&faults, &next, &hits, &good, &bench);
                scope.spawn(move || {
                    let mut wrong = Vec::new();
                    while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let end = bench.run(fault.case, name, Some(fault))?;
                        hits.fetch_add(usize::from(end.trace.contains(INJECTED)), Ordering::Relaxed);
                        wrong.extend(judge(fault, good, &end));
                    }
                    Ok(wrong)
                })
            };
            [worker("one"), worker("two")]
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
                .collect()
        });
        let (before, hits) = (wrong.len(), hits.into_inner());
        wrong.extend(found?.into_iter().flatten());
        // The whole list takes an hour.
        if share != FaultShare::Drawn {
            println!(
                "   {}: {hits} failures, {} wrong ends",
                case.name,
                wrong.len() - before
            );
            wrong.iter().skip(before).for_each(|end| println!("       {end}"));
        }
        tried += hits;
        commands += 1;
    }
    println!(
        "   {tried} failures of calls in {commands} commands, {} wrong ends",
        wrong.len()
    );
    if wrong.is_empty() {
        Ok(())
    } else {
        bail!("{}", wrong.join("\n"))
    }
}

struct FaultBench {
    root: String,
    folder: PathBuf,
    program: PathBuf,
    /// The results of `PREPARED` are there.
    has_results: bool,
}

impl FaultBench {
    fn new(workspace: &Workspace, program: PathBuf) -> Result<Self> {
        let mut bench = Self {
            root: workspace.root.display().to_string(),
            folder: workspace.target.join("faults"),
            program,
            has_results: true,
        };
        let ready = bench.folder.join("ready");
        empty(&ready)?;
        for words in PREPARED {
            let done = Command::new(&bench.program)
                .args(bench.words(words))
                .current_dir(&ready)
                .output()
                .with_context(|| format!("cannot run {}", bench.program.display()))?;
            let errors = String::from_utf8_lossy(&done.stderr);
            if errors.contains(NO_DATASETS) {
                bench.has_results = false;
            } else if !done.status.success() {
                bail!("{words}: {errors}");
            }
        }
        Ok(bench)
    }

    fn words(&self, words: &str) -> Vec<String> {
        let ready = self.folder.join("ready").display().to_string();
        words
            .split(' ')
            .map(|word| word.replace("{root}", &self.root).replace("{ready}", &ready))
            .collect()
    }

    /// Runs a command in a folder of this name, with or without a failure.
    fn run(&self, case: &FaultCase, name: &str, fault: Option<&Fault>) -> Result<End> {
        let folder = self.folder.join(name);
        empty(&folder)?;
        let beside = |ending: &str| self.folder.join(format!("{name}.{ending}"));
        let (trace, input) = (beside("trace"), beside("input"));
        fs::write(&input, case.input).with_context(|| format!("cannot write {}", input.display()))?;
        let mut command = Command::new("timeout");
        command.args([
            "--signal=KILL",
            LONGEST,
            "strace",
            "-f",
            "-qq",
            "-y",
            "--seccomp-bpf",
            "-o",
        ]);
        command.arg(&trace).arg("-e");
        match fault {
            None => {
                let names: Vec<&str> = CALLS.iter().map(|(call, _)| *call).collect();
                command.arg(format!("trace=poll,{}", names.join(",")));
            }
            Some(Fault { call, error, at, .. }) => {
                command.arg(format!("trace={call}"));
                command.args(["-e", &format!("inject={call}:error={error}:when={at}")]);
            }
        }
        let done = command
            .arg(&self.program)
            .args(self.words(case.words))
            .current_dir(&folder)
            .env("NO_COLOR", "1")
            .stdin(File::open(&input).with_context(|| format!("cannot open {}", input.display()))?)
            .stdout(Stdio::piped())
            .output()
            .context("cannot run strace")?;
        let mut files = BTreeMap::new();
        collect(&folder, &folder, &mut files)?;
        let text = fs::read(&trace).with_context(|| format!("cannot read {}", trace.display()))?;
        Ok(End {
            code: done.status.code(),
            output: done.stdout,
            errors: String::from_utf8_lossy(&done.stderr).into_owned(),
            files,
            trace: String::from_utf8_lossy(&text).into_owned(),
        })
    }
}

/// An empty folder of this path.
fn empty(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", folder.display()));
        }
        _ => {}
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(path.strip_prefix(root)?.to_owned(), bytes);
        }
    }
    Ok(())
}

/// The failures to try, by the trace of a good run.
fn faults(case: &'static FaultCase, trace: &str, share: FaultShare) -> Vec<Fault> {
    let mut all = Vec::new();
    let turn = CASES
        .iter()
        .position(|other| other.name == case.name)
        .unwrap_or_default();
    for (number, (call, errors)) in CALLS.iter().enumerate() {
        let (loader, most) = counts(trace, call);
        let calls = most.saturating_sub(loader);
        if share == FaultShare::Drawn {
            let fault = |draw: usize| {
                // The multiples of the golden ratio are spread over a range evenly.
                let place = (DRAWS * turn + number + draw) * 618 % 1000;
                Some(Fault {
                    case,
                    call,
                    error: errors.get((turn + draw) % errors.len())?,
                    at: loader + 1 + calls * place / 1000,
                })
            };
            let draws = DRAWS.min(calls * errors.len());
            all.extend((0..draws).filter_map(fault));
            continue;
        }
        let step = if share == FaultShare::Few {
            calls.div_ceil(FEW).max(1)
        } else {
            1
        };
        for at in (loader + 1..=most).step_by(step) {
            all.extend(errors.iter().map(|error| Fault {
                case,
                call,
                error,
                at,
            }));
        }
    }
    all
}

/// Calls of this name that the loader makes, and the most that a thread makes.
fn counts(trace: &str, call: &str) -> (usize, usize) {
    let begins = format!("{call}(");
    let mut threads: BTreeMap<&str, usize> = BTreeMap::new();
    let mut loader = None;
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        if rest.starts_with("poll(") {
            loader.get_or_insert(threads.get(thread).copied().unwrap_or_default());
        }
        if rest.starts_with(&begins) {
            *threads.entry(thread).or_default() += 1;
        }
    }
    (
        loader.unwrap_or_default(),
        threads.into_values().max().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "7 openat(AT_FDCWD, \"/lib/libc.so.6\") = 3\n7 poll([{fd=0}], 3, 0) = 0\n7 openat(AT_FDCWD, \"a\") = 3\n8 openat(AT_FDCWD, \"b\") = 4\n7 openat(AT_FDCWD, \"c\") = 3\n7 poll([{fd=0}], 3, 0) = 0\n";

    #[test]
    fn calls_of_the_loader_are_left_out() {
        assert_eq!(counts(TRACE, "openat"), (1, 3));
        assert_eq!(counts(TRACE, "read"), (0, 0));
        // The second and the third, with two errors each.
        let tried = faults(&CASES[0], TRACE, FaultShare::All);
        let at: Vec<usize> = tried.iter().map(|fault| fault.at).collect();
        assert_eq!(at, [2, 2, 3, 3]);
        // Two of them are drawn, with one error each: at 0 and 0.618 of two calls for the first command.
        let drawn = faults(&CASES[0], TRACE, FaultShare::Drawn);
        let drawn: Vec<(&str, &str, usize)> = drawn
            .iter()
            .map(|fault| (fault.call, fault.error, fault.at))
            .collect();
        assert_eq!(drawn, [("openat", "EIO", 2), ("openat", "EMFILE", 3)]);
    }
}
