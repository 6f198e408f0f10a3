//! `cargo xtask pgo`: a release build that the compiler optimises by a profile of the program's own runs, for packagers.
//!
//! An instrumented build runs on captures that are generated for it and on those of `captures/`; the profiles are merged, and the
//! release is built with them (the rustc book, "Profile-guided Optimization"). At the end it is measured beside a build without a
//! profile, on captures that it was not trained with.
//!
//! A crate was looked for and not taken: cargo-pgo runs the same builds, but the runs between them, which are most of this
//! file, would still be our own, and it wants the tools of rustup, which a distribution does not have.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::bench::{self, Row};
use crate::need::{self, C_COMPILER, LIBPCAP};
use crate::workspace::{Profile, Workspace, execute, on_path, output, step};

pub(crate) const ABOUT: &str = "build a release by a profile of its own runs, and say its gain";
pub(crate) const ARGUMENTS: &str = "[CARGO-OPTION]...";

/// Captures to train with: name, packets, and what `bench_capture` makes them of.
const TRAINING: &[(&str, &str)] = &[
    (
        "mixed",
        "--packets 1000000 --flows 1000 --captured 96 --per-row 12 --marked-in 40 --notified-in 3",
    ),
    (
        "rows",
        "--packets 1000000 --flows 20000 --captured 128 --per-row 4",
    ),
    (
        "full",
        "--packets 200000 --flows 500 --captured full --per-row 20",
    ),
    (
        "hostile",
        "--packets 100000 --flows 4096 --captured 96 --per-row 9 --hostile",
    ),
];
/// Captures to measure with: other flows, rows and lengths.
const MEASURED: &[(&str, &str)] = &[
    (
        "4,096 flows, 30 packets a row",
        "--packets 2000000 --flows 4096 --captured 96 --per-row 30",
    ),
    (
        "8,192 flows, 9 packets a row, marked and notified",
        "--packets 2000000 --flows 8192 --captured 96 --per-row 9 --marked-in 50 --notified-in 2",
    ),
];
/// Outputs that are trained and measured.
const NO_OUTPUT: &[&str] = &["--format", "none"];
const PARQUET: &[&str] = &["--format", "none", "--overwrite", "--output"];
const ROUNDS: usize = 5;

pub(crate) fn run(workspace: &Workspace, options: &[String]) -> Result<()> {
    need::ensure(&[C_COMPILER, LIBPCAP])?;
    let (host, llvm) = compiler(workspace)?;
    let merge = profdata(workspace, &host, llvm)?;
    let folder = workspace.target.join("pgo");
    let profiles = folder.join("profiles");
    if profiles.exists() {
        fs::remove_dir_all(&profiles).with_context(|| format!("cannot remove {}", profiles.display()))?;
    }
    fs::create_dir_all(&profiles).with_context(|| format!("cannot make {}", profiles.display()))?;
    let plain = step("build without a profile", || {
        let mut build = workspace.cargo(["build", "--release", "--locked", "--package", "roce-analyze"]);
        execute(build.args(options))?;
        let mut example = workspace.cargo(["build", "--release", "--locked", "--package", "roce-capture"]);
        execute(example.args(["--example", "bench_capture"]))?;
        Ok(workspace.program(Profile::Release, "roce-analyze"))
    })?;
    let build = |flags: &str| -> Result<PathBuf> {
        // With a target named, build scripts and macros are built without the flags.
        let mut build = workspace.cargo(["build", "--release", "--locked", "--package", "roce-analyze"]);
        build
            .args(["--target", &host])
            .args(options)
            .env("CARGO_TARGET_DIR", &folder)
            .env("RUSTFLAGS", flags);
        execute(&mut build)?;
        let name = format!("roce-analyze{}", env::consts::EXE_SUFFIX);
        Ok(folder.join(&host).join("release").join(name))
    };
    let instrumented = step("instrumented build", || {
        build(&format!("-Cprofile-generate={}", profiles.display()))
    })?;
    step("training", || train(workspace, &instrumented, &folder))?;
    let merged = folder.join("merged.profdata");
    step("merge", || {
        execute(
            workspace
                .command(&merge)
                .args(["merge", "-o"])
                .arg(&merged)
                .arg(&profiles),
        )
    })?;
    let optimised = step("build with the profile", || {
        build(&format!("-Cprofile-use={}", merged.display()))
    })?;
    step("measure", || measure(workspace, &plain, &optimised, &folder))?;
    println!("\nwrote: {}", workspace.shown(&optimised));
    Ok(())
}

/// The compiler's host, and the major version of its LLVM.
fn compiler(workspace: &Workspace) -> Result<(String, u32)> {
    let text = output(workspace.command(rustc()).arg("-vV"))?;
    parse_version(&text).context("`rustc -vV` names no host and no version of LLVM")
}

fn rustc() -> OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn parse_version(text: &str) -> Option<(String, u32)> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let llvm = value("LLVM version: ")?.split('.').next()?.parse().ok()?;
    Some((value("host: ")?.to_owned(), llvm))
}

/// The program that merges profiles, of the compiler's LLVM: another version's does not read them.
fn profdata(workspace: &Workspace, host: &str, llvm: u32) -> Result<PathBuf> {
    let versioned = format!("llvm-profdata-{llvm}");
    let sysroot = output(workspace.command(rustc()).args(["--print", "sysroot"]))?;
    let component = Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(host)
        .join("bin/llvm-profdata");
    let found = on_path(&versioned).or_else(|| component.is_file().then_some(component));
    found.with_context(|| {
        format!("{versioned} is not installed\nhint: install the package llvm-{llvm}, or `rustup component add llvm-tools`")
    })
}

/// Makes a capture unless it is there.
fn capture(workspace: &Workspace, folder: &Path, name: &str, arguments: &str) -> Result<PathBuf> {
    let path = folder.join(format!("{}.pcap", name.replace([' ', ','], "-")));
    if !path.is_file() {
        let program = workspace.example(Profile::Release, "bench_capture");
        output(Command::new(program).arg(&path).args(arguments.split(' ')))?;
    }
    Ok(path)
}

/// Runs the instrumented program on each capture, with each output. Runs on captures that are damaged by intent may fail.
fn train(workspace: &Workspace, program: &Path, folder: &Path) -> Result<()> {
    let mut captures = Vec::new();
    for (name, arguments) in TRAINING {
        captures.push(capture(workspace, folder, name, arguments)?);
    }
    captures.extend(workspace.captures()?);
    let dataset = folder.join("dataset");
    let dataset = dataset.display().to_string();
    let outputs: [&[&str]; 4] = [
        &["--format", "text"],
        &["--format", "json"],
        &["--format", "none", "--overwrite", "--output", &dataset],
        &["--format", "none", "--threads", "1"],
    ];
    let mut done = 0;
    for capture in &captures {
        for output in outputs {
            let mut run = workspace.command(program);
            run.arg(capture).args(output);
            let status = run.stdout(Stdio::null()).stderr(Stdio::null()).status();
            done += usize::from(status.is_ok_and(|status| status.success()));
        }
    }
    println!("   {done} of {} runs ended well", captures.len() * outputs.len());
    if done < captures.len() * outputs.len() / 2 {
        bail!("most runs of the instrumented program failed");
    }
    Ok(())
}

/// Prints the times of both builds on each capture, in turns on one core.
fn measure(workspace: &Workspace, plain: &Path, optimised: &Path, folder: &Path) -> Result<()> {
    if on_path("taskset").is_none() {
        bail!(
            "taskset is not installed: nothing can be pinned to a core\nhint: install the package util-linux"
        );
    }
    let dataset = folder.join("dataset").display().to_string();
    println!("   {:<52} {:>8} {:>8} {:>7}", "", "plain", "profile", "gain");
    for (about, arguments) in MEASURED {
        let path = capture(workspace, folder, about, arguments)?;
        for (what, options) in [("no output", NO_OUTPUT), ("Parquet", PARQUET)] {
            let mut arguments = vec![path.display().to_string()];
            arguments.extend(options.iter().map(|option| (*option).to_owned()));
            if options.contains(&"--output") {
                arguments.push(dataset.clone());
            }
            let row = |program: &Path| Row {
                file: about,
                what,
                cores: 1,
                program: program.to_owned(),
                arguments: arguments.clone(),
            };
            let mut measured = Vec::new();
            bench::measure(workspace, &[&row(plain), &row(optimised)], ROUNDS, &mut measured)?;
            let [plain, optimised] = &measured[..] else {
                bail!(
                    "two builds were measured, and there are {} results",
                    measured.len()
                );
            };
            println!(
                "   {:<52} {:>6.3} s {:>6.3} s {:>5.1} %",
                format!("{about}: {what}"),
                plain.seconds,
                optimised.seconds,
                (1.0 - optimised.seconds / plain.seconds) * 100.0
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_names_its_host_and_its_llvm() {
        let text = "rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\nLLVM version: 22.1.2\n";
        assert_eq!(
            parse_version(text),
            Some(("x86_64-unknown-linux-gnu".to_owned(), 22))
        );
        assert_eq!(parse_version("rustc 1.95.0\n"), None);
    }
}
