//! `cargo xtask profile`: which stage of the analysis takes how many instructions and cache misses, by callgrind.
//!
//! Instructions do not depend on what else the machine does. The kernel's part (reading the file, page faults) is not among them.

mod callgrind;
mod gate;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::{Profile, Workspace, execute, on_path, step};
use callgrind::{Cost, by_function, by_stage, callgrind, callgrind_file};
pub(crate) use gate::gate;

pub(crate) const ABOUT: &str = "print the instructions and cache misses of each stage, by callgrind";
pub(crate) const ARGUMENTS: &str = "CAPTURE [OPTION]... | --gate [--write]";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let Some((capture, options)) = arguments.split_first() else {
        bail!("which capture?\nhint: cargo xtask profile {ARGUMENTS}");
    };
    if on_path("valgrind").is_none() {
        bail!("valgrind is not installed\nhint: install the package valgrind");
    }
    if capture == "--gate" {
        let write = match options {
            [] => false,
            [option] if option == "--write" => true,
            _ => bail!("--gate takes nothing but --write\nhint: cargo xtask profile {ARGUMENTS}"),
        };
        return gate(workspace, write);
    }
    step("build", || {
        let mut build = workspace.cargo(["rustc", "--release", "--locked", "--package", "roce-analyze"]);
        execute(build.args(["--bin", "roce-analyze", "--", "-C", "strip=none"]))
    })?;
    let program = workspace.program(Profile::Release, "roce-analyze");
    let mut all = vec![capture.as_str(), "--format", "text"];
    all.extend(options.iter().map(String::as_str));
    let text = callgrind(workspace, &program, &all)?;
    for line in table(&by_function(&text)) {
        println!("{line}");
    }
    Ok(())
}

fn table(functions: &BTreeMap<String, Cost>) -> Vec<String> {
    let stages = by_stage(functions);
    let all = stages.values().fold(Cost::default(), |all, cost| Cost {
        instructions: all.instructions + cost.instructions,
        misses: all.misses + cost.misses,
    });
    let mut rows: Vec<(&str, Cost)> = stages.into_iter().collect();
    rows.sort_by_key(|(_, cost)| core::cmp::Reverse(cost.instructions));
    let line = |(name, cost): &(&str, Cost)| {
        let share = cost.instructions * 100 / all.instructions.max(1);
        format!(
            "| {name} | {} | {share} % | {} |",
            cost.instructions / 1_000,
            cost.misses / 1_000
        )
    };
    [
        "| stage | thousand instructions | share | thousand misses of the last cache |",
        "|---|--:|--:|--:|",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain(rows.iter().map(line))
    .chain([line(&("all", all))])
    .collect()
}

/// Effects of more threads, as multiples of the instructions with one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ThreadCosts {
    /// Those of the reading and the collecting thread, which more threads do not shorten.
    pub(crate) serial: f64,
    /// Those of all threads.
    pub(crate) all: f64,
}

/// The costs of a number of threads; `None` without valgrind.
pub(crate) fn thread_costs(
    workspace: &Workspace,
    program: &Path,
    capture: &Path,
    threads: usize,
) -> Result<Option<ThreadCosts>> {
    if on_path("valgrind").is_none() {
        return Ok(None);
    }
    // Thread 1 is the caller's, which collects; the others begin in this order: those that analyse, the one that reads.
    let several = instructions(workspace, program, capture, threads)?;
    // With one thread, the caller's does all, and another one reads ahead.
    let one = instructions(workspace, program, capture, 1)?;
    Ok(costs_of(&several, &one))
}

/// The instructions of each thread, where this number of threads analyse.
fn instructions(workspace: &Workspace, program: &Path, capture: &Path, threads: usize) -> Result<Vec<f64>> {
    let out = callgrind_file(workspace)?;
    let of_thread = |thread: usize| PathBuf::from(format!("{}-{thread:02}", out.display()));
    for stale in (1..).map(of_thread).take_while(|path| path.exists()) {
        fs::remove_file(&stale).with_context(|| format!("cannot remove {}", stale.display()))?;
    }
    let count = threads.to_string();
    let mut valgrind = workspace.command("valgrind");
    valgrind
        .args(["--tool=callgrind", "--separate-threads=yes", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .arg(capture)
        .args(["--format", "none", "--quiet", "--threads", &count])
        .stdout(std::process::Stdio::null());
    step("callgrind", || execute(&mut valgrind))?;
    let mut instructions = Vec::new();
    for path in (1..).map(of_thread).take_while(|path| path.exists()) {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        instructions.push(total(&text).with_context(|| format!("{}: no totals", path.display()))?);
    }
    Ok(instructions)
}

fn total(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    line?.split(' ').next()?.parse().ok()
}

/// The first and the last of several threads, and all of them, over the sum of one thread's run.
fn costs_of(several: &[f64], one: &[f64]) -> Option<ThreadCosts> {
    let one: f64 = one.iter().sum();
    let (first, last) = (several.first()?, several.last()?);
    (one > 0.0).then(|| ThreadCosts {
        serial: (first + last) / one,
        all: several.iter().sum::<f64>() / one,
    })
}

#[cfg(test)]
mod tests {
    use super::callgrind::{OTHER, stage};
    use super::*;

    #[test]
    fn costs_are_of_functions_without_those_that_they_call() {
        let text = "events: Ir DLmr DLmw\nfn=(1) roce_flow::rows::add\n3 10 1 2\ncfn=(2) find_all\ncalls=1 5\n4 1000 9 9\n+1 5\nfn=(2)\n7 20\nfn=(1)\n* 1\n";
        let costs = by_function(text);
        let cost = |instructions, misses| Cost { instructions, misses };
        assert_eq!(costs["roce_flow::rows::add"], cost(16, 3));
        assert_eq!(costs["find_all"], cost(20, 0));
        assert_eq!(
            (stage("roce_flow::rows::add"), stage("find_all")),
            ("rows: close, collect", "lookup")
        );
        assert_eq!(stage("malloc"), OTHER);
        assert!(table(&costs).iter().any(|line| line == "| all | 0 | 100 % | 0 |"));
    }

    #[test]
    fn the_serial_part_is_that_of_both_ends() {
        let costs = ThreadCosts {
            serial: 0.25,
            all: 1.25,
        };
        assert_eq!(costs_of(&[1.0, 8.0, 8.0, 3.0], &[15.0, 1.0]), Some(costs));
        assert_eq!(costs_of(&[], &[16.0]), None);
        assert_eq!(total("x: 1\ntotals: 17 4\n"), Some(17.0));
    }
}
