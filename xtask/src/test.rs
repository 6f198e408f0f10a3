//! `cargo xtask test`: everything the tests need, then all of them, clippy, format, documents and dependencies.

mod steps;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};

use crate::browser::Browser;
use crate::need::{self, C_COMPILER, LIBPCAP, PYTHON, TIME, TMUX};
use crate::python::{self, engines, hadolint, mcp, perfetto, reader};
use crate::workspace::{self, Profile, Workspace, execute, line, succeeds};
use crate::{attack, deny, ebpf, faults, fleet, glibc, package, prometheus, schema, store, vm};
use steps::{
    ATTACK, BROWSER, CLIPPY, DATASETS, DENY, DOCUMENTS, ENGINES, FAULTS, FLEET, FORMAT, GLIBC, IMAGE, KERNEL,
    MCP, OTLP, PACKAGE, PROMETHEUS, SCHEMA, STEPS, STORE, Step, TESTS, VM, WHEEL,
};

pub(crate) const ABOUT: &str = "all tests, clippy, format, documents, dependencies, a short vm-test";
pub(crate) const ARGUMENTS: &str = "[--only STEP]... [--no-STEP]...";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut run = SuiteRun {
        chosen: chosen(arguments)?,
        skipped: Vec::new(),
        failed: Vec::new(),
    };
    let begun = Instant::now();
    need::ensure(&[C_COMPILER, LIBPCAP])?;
    let mut counts = Counts::default();
    run.step(
        &FORMAT,
        || component(workspace, "fmt", "rustfmt"),
        |()| format(workspace),
    );
    run.step(
        &CLIPPY,
        || component(workspace, "clippy", "clippy"),
        |()| clippy(workspace),
    );
    if let (true, Err(reason)) = (run.has(&TESTS), need::ensure(&[TMUX])) {
        run.skip("the live screen in a terminal", &reason);
    }
    let perfetto = if run.has(&TESTS) {
        perfetto(workspace)
            .map_err(|reason| run.skip("traces, by Perfetto's schema", &reason))
            .ok()
    } else {
        None
    };
    run.step(
        &TESTS,
        || Ok(()),
        |()| tests(workspace, perfetto.as_deref(), &mut counts),
    );
    run.step(&ATTACK, || need::ensure(&[TIME]), |()| attack::quick(workspace));
    run.step(&FAULTS, faults::possible, |()| faults::quick(workspace));
    doors(&mut run, workspace);
    run.step(
        &GLIBC,
        || Ok(()),
        |()| glibc::check(&workspace.program(Profile::Dev, "roce-analyze")),
    );
    run.step(
        &KERNEL,
        || kernel_compiler(workspace),
        |compiler| ebpf::check(workspace, &compiler),
    );
    run.step(&DOCUMENTS, || Ok(()), |()| documents(workspace));
    run.step(
        &SCHEMA,
        || Ok(()),
        |()| schema::run(workspace, &["--check".to_owned()]),
    );
    run.step(
        &DENY,
        || cargo_deny(workspace),
        |program| deny::check(workspace, &program),
    );
    run.step(
        &DATASETS,
        || reader(workspace),
        |python| datasets(workspace, &python),
    );
    in_engines(workspace, &mut run);
    run.step(
        &STORE,
        || store::possible(workspace),
        |python| store::check(workspace, &python),
    );
    run.step(
        &BROWSER,
        || Ok((Browser::find(workspace)?, reader(workspace)?)),
        |(browser, python)| browser.check(workspace, &python),
    );
    packages(&mut run, workspace);
    run.step(
        &VM,
        || vm::smoke_possible(workspace).and_then(|()| reader(workspace)),
        |python| vm::smoke(workspace, &python),
    );
    let SuiteRun { skipped, failed, .. } = run;
    print!(
        "\n{}",
        end(&counts, &skipped, &failed, begun.elapsed().as_secs_f64())
    );
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failed.join(", "))
}

/// Steps about what other programs ask the program that the tests of the command line have built.
fn doors(run: &mut SuiteRun, workspace: &Workspace) {
    run.step(&PROMETHEUS, prometheus::possible, |()| {
        prometheus::check(workspace, &workspace.program(Profile::Dev, "roce-analyze"), None)
    });
    run.step(
        &MCP,
        || mcp(workspace),
        |python| {
            let program = workspace.program(Profile::Dev, "roce-analyze");
            python::check_mcp(workspace, &python, &program)
        },
    );
    run.step(
        &OTLP,
        || python::otlp(workspace),
        |python| prometheus::otlp(workspace, &python),
    );
}

/// Steps about what is installed. The package has the program that the tests have built: a build for release takes many minutes more.
fn packages(run: &mut SuiteRun, workspace: &Workspace) {
    run.step(
        &IMAGE,
        || hadolint(workspace),
        |program| package::lint_image(workspace, &program),
    );
    let is_built = run.has(&TESTS);
    let program = || {
        if is_built {
            Ok(workspace.program(Profile::Dev, "roce-analyze"))
        } else {
            package::built(workspace, None)
        }
    };
    run.step(&PACKAGE, package::possible, |()| {
        package::check(workspace, &program()?)
    });
    run.step(
        &WHEEL,
        || need::ensure(&[PYTHON]),
        |()| package::check_wheel(workspace, &program()?),
    );
}

/// Steps in engines that sites have: datasets, and a fleet.
fn in_engines(workspace: &Workspace, run: &mut SuiteRun) {
    run.step(
        &ENGINES,
        || engines(workspace),
        |python| {
            let mut engines = workspace.command(&python);
            execute(
                engines
                    .arg("tests/independent/engines.py")
                    .arg(written(workspace)),
            )?;
            let program = workspace.program(Profile::Dev, "roce-analyze");
            execute(
                workspace
                    .command(&python)
                    .arg("tests/independent/check_programs.py")
                    .arg(program)
                    // Left by `datasets`.
                    .arg(workspace.target.join("answers")),
            )
        },
    );
    run.step(
        &FLEET,
        || Ok((engines(workspace)?, python::store(workspace)?)),
        |(python, store)| fleet::check(workspace, &python, &store),
    );
}

/// One run of the tests.
struct SuiteRun {
    /// Names of the steps that are made.
    chosen: Vec<&'static str>,
    /// Steps that were not made, each with the reason.
    skipped: Vec<String>,
    /// Titles of the steps that failed.
    failed: Vec<&'static str>,
}

impl SuiteRun {
    fn has(&self, step: &Step) -> bool {
        self.chosen.contains(&step.name)
    }

    /// Makes a step, if it is chosen and `prepare` finds what it needs. A failure does not end the run.
    fn step<T>(
        &mut self,
        step: &Step,
        prepare: impl FnOnce() -> Result<T>,
        work: impl FnOnce(T) -> Result<()>,
    ) {
        if !self.has(step) {
            self.skip(step.title, &anyhow!("left out by the command line"));
            return;
        }
        let prepared = match prepare() {
            Ok(prepared) => prepared,
            Err(reason) => {
                self.skip(step.title, &reason);
                return;
            }
        };
        if let Err(error) = workspace::step(step.title, || work(prepared)) {
            println!("   {}: FAILED: {error:#}", step.title);
            self.failed.push(step.title);
        }
    }

    /// Says aloud that something is not done, and remembers it for the end.
    fn skip(&mut self, title: &str, reason: &anyhow::Error) {
        println!("== {title}: SKIPPED: {reason:#}");
        let reason = reason.to_string();
        self.skipped
            .push(format!("{title}: {}", reason.lines().next().unwrap_or_default()));
    }
}

/// Names of the steps that the command line chooses.
fn chosen(arguments: &[String]) -> Result<Vec<&'static str>> {
    let names = STEPS.map(|step| step.name);
    let known = |name: &str| names.into_iter().find(|known| *known == name);
    let (mut only, mut left_out) = (Vec::new(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (name, list) = match argument.strip_prefix("--no-") {
            Some(name) => (known(name), &mut left_out),
            None if argument == "--only" => (arguments.next().and_then(|name| known(name)), &mut only),
            None => (None, &mut only),
        };
        let Some(name) = name else {
            bail!(
                "`cargo xtask test` takes {ARGUMENTS}; steps are {}",
                names.join(", ")
            );
        };
        list.push(name);
    }
    let is_chosen = |name: &&str| (only.is_empty() || only.contains(name)) && !left_out.contains(name);
    Ok(names.into_iter().filter(is_chosen).collect())
}

/// The end of all output: what was skipped, what failed, and the sums behind it, so that the last line cannot hide a skipped step.
fn end(counts: &Counts, skipped: &[String], failed: &[&str], seconds: f64) -> String {
    let lines = skipped
        .iter()
        .chain(&counts.skipped)
        .map(|what| format!("SKIPPED: {what}\n"));
    let text: String = lines
        .chain(failed.iter().map(|what| format!("FAILED: {what}\n")))
        .collect();
    let verdict = match failed.len() {
        0 if skipped.is_empty() && counts.skipped.is_empty() => "All passed".to_owned(),
        0 => "All that ran passed".to_owned(),
        failed => format!("{failed} steps failed"),
    };
    text + &format!(
        "{verdict} in {seconds:.0} s: {} tests ({} ignored, {} skipped) in {} binaries; {} steps skipped.\n",
        counts.passed,
        counts.ignored,
        counts.skipped.len(),
        counts.binaries,
        skipped.len()
    )
}

/// Checks that a component of the toolchain is installed.
fn component(workspace: &Workspace, command: &str, name: &str) -> Result<()> {
    if succeeds(&mut workspace.cargo([command, "--version"])) {
        return Ok(());
    }
    bail!("it is not installed (`rustup component add {name}`)")
}

fn format(workspace: &Workspace) -> Result<()> {
    execute(&mut workspace.cargo(["fmt", "--all", "--check"]))?;
    for manifest in [
        "tests/crates/fuzz/Cargo.toml",
        "tests/crates/writers/Cargo.toml",
        "ebpf/Cargo.toml",
    ] {
        execute(&mut workspace.cargo(["fmt", "--manifest-path", manifest, "--check"]))?;
    }
    Ok(())
}

fn clippy(workspace: &Workspace) -> Result<()> {
    let mut clippy = workspace.cargo(["clippy", "--quiet", "--workspace", "--all-targets", "--locked"]);
    execute(clippy.args(["--", "-D", "warnings"]))?;
    // Features that the whole workspace needs hide errors of the command alone.
    for features in ["", "live"] {
        let mut clippy = workspace.cargo(["clippy", "--quiet", "--locked", "-p", "roce-analyze"]);
        clippy.args(["--no-default-features", "--features", features]);
        execute(clippy.args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

fn documents(workspace: &Workspace) -> Result<()> {
    let mut doc = workspace.cargo(["doc", "--quiet", "--workspace", "--no-deps", "--locked"]);
    execute(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

fn kernel_compiler(workspace: &Workspace) -> Result<ebpf::Toolchain> {
    ebpf::Toolchain::find(workspace)?
        .context("there is no compiler for BPF (`cargo xtask build-ebpf` gets one)")
}

fn cargo_deny(workspace: &Workspace) -> Result<PathBuf> {
    workspace
        .tool("cargo-deny")
        .context("cargo-deny is not installed (`cargo xtask deny` installs it)")
}

#[derive(Default, Debug, PartialEq, Eq)]
struct Counts {
    binaries: u64,
    passed: u64,
    ignored: u64,
    /// Tests that could not run here, with the reason.
    skipped: Vec<String>,
}

impl Counts {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; ...`, and `SKIPPED: the test: why`, which
    /// can follow output of the harness on its line.
    fn add(&mut self, line: &str) {
        if let Some((_, skipped)) = line.split_once("SKIPPED: ") {
            self.skipped.push(skipped.to_owned());
        }
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let number = |what: &str| -> u64 {
            result
                .split([';', '.'])
                .find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok())
                .unwrap_or(0)
        };
        self.binaries += 1;
        self.passed += number("passed");
        self.ignored += number("ignored");
    }
}

/// Variable with the seed from which the property tests draw their inputs (proptest). With the same one a run that fails can be repeated;
/// `cargo test` without it draws others each time.
const PROPERTY_SEED: &str = "PROPTEST_RNG_SEED";

/// Unit, integration and documentation tests; examples are built.
fn tests(workspace: &Workspace, perfetto: Option<&Path>, counts: &mut Counts) -> Result<()> {
    let mut cargo = workspace.cargo(["test", "--quiet", "--workspace", "--locked", "--no-fail-fast"]);
    if std::env::var_os(PROPERTY_SEED).is_none() {
        cargo.env(PROPERTY_SEED, "7");
    }
    if let Some(python) = perfetto {
        // Read by `tests/command/perfetto.rs`.
        cargo.env("PERFETTO_PYTHON", python);
    }
    let mut child = cargo
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{}`", line(&cargo)))?;
    let output = child.stdout.take().context("no output of cargo test")?;
    for printed in BufReader::new(output).split(b'\n') {
        let printed = printed.context("cannot read what cargo test prints")?;
        let printed = String::from_utf8_lossy(&printed);
        counts.add(&printed);
        println!("{printed}");
    }
    let status = child.wait().context("cannot wait for cargo test")?;
    if !status.success() {
        bail!("tests failed: {status}");
    }
    Ok(())
}

/// The folder of the datasets that are checked.
fn written(workspace: &Workspace) -> PathBuf {
    workspace.target.join("check")
}

/// Writes the dataset of every capture, and one of all of them, and has them checked.
fn datasets(workspace: &Workspace, python: &Path) -> Result<()> {
    // Built by the tests of the command line.
    let program = workspace.program(Profile::Dev, "roce-analyze");
    let folder = written(workspace);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let captures = workspace.captures()?;
    let write = |name: &str, inputs: &[PathBuf]| {
        let json = folder.join(format!("{name}.json"));
        let document = File::create(&json).with_context(|| format!("cannot write {}", json.display()))?;
        let mut analyze = workspace.command(&program);
        analyze
            .args(inputs)
            .args(["--format", "json", "--output"])
            .arg(folder.join(name));
        execute(analyze.stdout(document))
    };
    for capture in &captures {
        let name = capture.file_stem().unwrap_or_default().to_string_lossy();
        write(&name, std::slice::from_ref(capture))?;
    }
    write("all", &captures)?;
    // A recording with samples, which a test of the command line has made (`tests/command/samples.rs`).
    let counters = workspace.target.join("tmp/counters");
    if counters.is_dir() {
        write("counters", &[counters])?;
    }
    execute(
        workspace
            .command(python)
            .args([
                "tests/independent/check_dataset.py",
                "--golden",
                "tests/data/golden",
            ])
            .arg(folder),
    )?;
    execute(
        workspace
            .command(python)
            .arg("tests/independent/check_answers.py")
            .arg(program)
            .arg(workspace.target.join("answers")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_what_was_skipped() {
        let counts = Counts {
            binaries: 2,
            passed: 13,
            ignored: 1,
            skipped: vec!["live::a: not root".to_owned()],
        };
        let steps = [
            "vm-test: no QEMU".to_owned(),
            "dependencies: no cargo-deny".to_owned(),
        ];
        assert_eq!(
            end(&counts, &steps, &[], 7.4),
            "SKIPPED: vm-test: no QEMU\nSKIPPED: dependencies: no cargo-deny\nSKIPPED: live::a: not root\n\
             All that ran passed in 7 s: 13 tests (1 ignored, 1 skipped) in 2 binaries; 2 steps skipped.\n"
        );
        assert!(end(&Counts::default(), &[], &[], 1.0).starts_with("All passed in 1 s: 0 tests"));
        let failed = end(&Counts::default(), &[], &["clippy"], 1.0);
        assert!(
            failed.starts_with("FAILED: clippy\n1 steps failed in 1 s"),
            "{failed}"
        );
    }

    #[test]
    fn steps_are_chosen_and_left_out_by_name() {
        let chosen = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            chosen(&words)
        };
        assert_eq!(chosen("").unwrap().len(), STEPS.len());
        assert_eq!(chosen("--only vm --only tests").unwrap(), ["tests", "vm"]);
        let without = chosen("--no-vm --no-engines").unwrap();
        assert_eq!(without.len(), STEPS.len() - 2);
        assert!(!without.contains(&"vm") && !without.contains(&"engines"));
        for wrong in ["--only", "--only moon", "--no-moon", "vm"] {
            let error = chosen(wrong).unwrap_err().to_string();
            assert!(error.contains("steps are format, clippy"), "{wrong}: {error}");
        }
    }

    #[test]
    fn results_are_counted() {
        let mut counts = Counts::default();
        counts.add("running 4 tests");
        counts.add(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s",
        );
        counts.add("test x ... SKIPPED: probe, rights: no setpriv");
        counts.add(".......SKIPPED: live::a: not root: no namespaces");
        counts.add("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(
            counts,
            Counts {
                binaries: 2,
                passed: 13,
                ignored: 1,
                skipped: vec![
                    "probe, rights: no setpriv".to_owned(),
                    "live::a: not root: no namespaces".to_owned()
                ],
            }
        );
    }
}
