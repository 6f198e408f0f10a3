//! `cargo xtask test`: everything the tests need, then all of them, clippy, format, documents and dependencies.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::browser::Browser;
use crate::need::{self, C_COMPILER, JAVA, LIBPCAP, PYTHON, TIME, TMUX};
use crate::workspace::{Profile, Workspace, execute, line, step, succeeds};
use crate::{attack, deny, ebpf, prometheus, schema, vm};

pub(crate) const ABOUT: &str = "all tests, clippy, format, documents, dependencies, a short vm-test";
pub(crate) const ARGUMENTS: &str = "[--no-vm] [--no-engines] [--no-prometheus]";

const DATASETS: &str = "datasets, by an independent reader";
const ENGINES: &str = "datasets, in other engines";
const BROWSER: &str = "reports, in a browser";
const ATTACK: &str = "hostile inputs";
const VM: &str = "vm-test";
const PROMETHEUS: &str = "metrics, in Prometheus";

/// Spark, DuckDB and others, pinned.
const REQUIREMENTS: &str = "tests/independent/requirements.txt";

/// Reader of datasets that is independent of polars.
const READER: &str = "duckdb>=1.3,<3";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut left_out = LeftOut::default();
    for argument in arguments {
        match argument.as_str() {
            "--no-vm" => left_out.vm = true,
            "--no-engines" => left_out.engines = true,
            "--no-prometheus" => left_out.prometheus = true,
            _ => bail!("`cargo xtask test` takes {ARGUMENTS} alone"),
        }
    }
    let begun = Instant::now();
    need::ensure(&[C_COMPILER, LIBPCAP])?;
    let mut skipped = Vec::new();
    if let Err(reason) = need::ensure(&[TMUX]) {
        skip(
            &mut skipped,
            "the live screen in a terminal",
            &format!("{reason:#}"),
        );
    }

    format(workspace, &mut skipped)?;
    clippy(workspace, &mut skipped)?;
    let counts = step("tests", || tests(workspace))?;
    match need::ensure(&[TIME]) {
        Ok(()) => step(ATTACK, || attack::quick(workspace))?,
        Err(reason) => skip(&mut skipped, ATTACK, &format!("{reason:#}")),
    }
    if left_out.prometheus {
        skip(&mut skipped, PROMETHEUS, "--no-prometheus was said");
    } else {
        match prometheus::possible() {
            // Built by the tests of the command line.
            Ok(()) => step(PROMETHEUS, || {
                prometheus::check(workspace, &workspace.program(Profile::Dev, "roce-analyze"))
            })?,
            Err(reason) => skip(&mut skipped, PROMETHEUS, &format!("{reason:#}")),
        }
    }
    match ebpf::Toolchain::find(workspace)? {
        Some(toolchain) => step("kernel programs", || ebpf::check(workspace, &toolchain))?,
        None => skip(
            &mut skipped,
            "kernel programs",
            "there is no compiler for BPF (`cargo xtask build-ebpf` gets one)",
        ),
    }
    step("documents", || {
        let mut doc = workspace.cargo(["doc", "--quiet", "--workspace", "--no-deps", "--locked"]);
        execute(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    step("schema", || schema::run(workspace, &["--check".to_owned()]))?;
    match workspace.tool("cargo-deny") {
        Some(program) => step("dependencies", || deny::check(workspace, &program))?,
        None => skip(
            &mut skipped,
            "dependencies",
            "cargo-deny is not installed (`cargo xtask deny` installs it)",
        ),
    }
    match reader(workspace) {
        Ok(python) => independent(workspace, &python, left_out, &mut skipped)?,
        Err(reason) => {
            for what in [DATASETS, ENGINES, BROWSER, VM] {
                skip(&mut skipped, what, &format!("{reason:#}"));
            }
        }
    }

    print!("\n{}", end(&counts, &skipped, begun.elapsed().as_secs_f64()));
    Ok(())
}

/// The steps that the command line leaves out.
#[derive(Clone, Copy, Default)]
struct LeftOut {
    vm: bool,
    engines: bool,
    prometheus: bool,
}

/// The end of all output: what was skipped, and the sums behind it, so that the last line cannot hide a skipped step.
fn end(counts: &Counts, steps: &[String], seconds: f64) -> String {
    let skipped = steps.iter().chain(&counts.skipped);
    let text: Vec<String> = skipped.map(|what| format!("SKIPPED: {what}\n")).collect();
    let verdict = if steps.is_empty() && counts.skipped.is_empty() {
        "All passed"
    } else {
        "All that ran passed"
    };
    text.concat()
        + &format!(
            "{verdict} in {seconds:.0} s: {} tests ({} ignored, {} skipped) in {} binaries; {} steps skipped.\n",
            counts.passed,
            counts.ignored,
            counts.skipped.len(),
            counts.binaries,
            steps.len()
        )
}

/// Checks that need the independent reader: `python` has it.
fn independent(
    workspace: &Workspace,
    python: &Path,
    left_out: LeftOut,
    skipped: &mut Vec<String>,
) -> Result<()> {
    step(DATASETS, || datasets(workspace, python))?;
    if left_out.engines {
        skip(skipped, ENGINES, "--no-engines was said");
    } else {
        match engines(workspace) {
            Ok(python) => step(ENGINES, || {
                execute(
                    workspace
                        .command(python)
                        .arg("tests/independent/engines.py")
                        .arg(written(workspace)),
                )
            })?,
            Err(reason) => skip(skipped, ENGINES, &format!("{reason:#}")),
        }
    }
    match Browser::find(workspace) {
        Ok(browser) => step(BROWSER, || browser.check(workspace, python))?,
        Err(reason) => skip(skipped, BROWSER, &format!("{reason:#}")),
    }
    if left_out.vm {
        skip(skipped, VM, "--no-vm was said");
        return Ok(());
    }
    match vm::smoke_possible(workspace) {
        Ok(()) => vm::smoke(workspace, python),
        Err(reason) => {
            skip(skipped, VM, &format!("{reason:#}"));
            Ok(())
        }
    }
}

/// Says aloud that something is not done, and remembers it for the end.
fn skip(skipped: &mut Vec<String>, what: &str, reason: &str) {
    println!("== {what}: SKIPPED: {reason}");
    skipped.push(format!("{what}: {}", reason.lines().next().unwrap_or_default()));
}

fn format(workspace: &Workspace, skipped: &mut Vec<String>) -> Result<()> {
    if !succeeds(&mut workspace.cargo(["fmt", "--version"])) {
        skip(
            skipped,
            "format",
            "rustfmt is not installed (`rustup component add rustfmt`)",
        );
        return Ok(());
    }
    step("format", || {
        execute(&mut workspace.cargo(["fmt", "--all", "--check"]))?;
        for manifest in ["tests/fuzz/Cargo.toml", "ebpf/Cargo.toml"] {
            execute(&mut workspace.cargo(["fmt", "--manifest-path", manifest, "--check"]))?;
        }
        Ok(())
    })
}

fn clippy(workspace: &Workspace, skipped: &mut Vec<String>) -> Result<()> {
    if !succeeds(&mut workspace.cargo(["clippy", "--version"])) {
        skip(
            skipped,
            "clippy",
            "it is not installed (`rustup component add clippy`)",
        );
        return Ok(());
    }
    step("clippy", || {
        let mut clippy = workspace.cargo(["clippy", "--quiet", "--workspace", "--all-targets", "--locked"]);
        execute(clippy.args(["--", "-D", "warnings"]))
    })
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

/// Unit, integration and documentation tests; examples are built.
fn tests(workspace: &Workspace) -> Result<Counts> {
    let mut cargo = workspace.cargo(["test", "--quiet", "--workspace", "--locked", "--no-fail-fast"]);
    let mut child = cargo
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{}`", line(&cargo)))?;
    let mut counts = Counts::default();
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
    Ok(counts)
}

/// A python that has the reader, in an environment of its own.
pub(crate) fn reader(workspace: &Workspace) -> Result<PathBuf> {
    let environment = workspace.target.join("python");
    let python = environment.join("bin").join("python3");
    let module = READER.split(['>', '<', '=']).next().unwrap_or(READER);
    let import = format!("import {module}");
    if succeeds(Command::new(&python).args(["-c", &import])) {
        return Ok(python);
    }
    need::ensure(&[PYTHON])?;
    println!(
        "installing {module} into {} (once)",
        workspace.shown(&environment)
    );
    execute(
        workspace
            .command("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        READER,
    ];
    execute(workspace.command(&python).args(pip)).context("no independent reader")?;
    Ok(python)
}

/// A python that has the engines, in an environment of its own (1.5 GB, once).
fn engines(workspace: &Workspace) -> Result<PathBuf> {
    need::ensure(&[PYTHON, JAVA])?;
    let environment = workspace.target.join("engines");
    let python = environment.join("bin").join("python3");
    let pinned = workspace.root.join(REQUIREMENTS);
    let pinned = fs::read_to_string(&pinned).with_context(|| format!("cannot read {}", pinned.display()))?;
    let installed = environment.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == pinned) {
        return Ok(python);
    }
    println!(
        "installing {REQUIREMENTS} into {} (once)",
        workspace.shown(&environment)
    );
    execute(
        workspace
            .command("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        REQUIREMENTS,
    ];
    execute(workspace.command(&python).args(pip)).context("the engines cannot be installed")?;
    fs::write(&installed, pinned).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(python)
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
    execute(
        workspace
            .command(python)
            .args(["tests/independent/check_dataset.py", "--golden", "tests/golden"])
            .arg(folder),
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
            end(&counts, &steps, 7.4),
            "SKIPPED: vm-test: no QEMU\nSKIPPED: dependencies: no cargo-deny\nSKIPPED: live::a: not root\n\
             All that ran passed in 7 s: 13 tests (1 ignored, 1 skipped) in 2 binaries; 2 steps skipped.\n"
        );
        assert!(end(&Counts::default(), &[], 1.0).starts_with("All passed in 1 s: 0 tests"));
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
