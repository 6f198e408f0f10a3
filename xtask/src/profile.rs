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

/// The share of the instructions that the reading and the collecting thread have, at so many threads; `None` without valgrind.
pub(crate) fn serial_share(
    workspace: &Workspace,
    program: &Path,
    capture: &Path,
    threads: usize,
) -> Result<Option<f64>> {
    if on_path("valgrind").is_none() {
        return Ok(None);
    }
    let out = callgrind_file(workspace)?;
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
    // Thread 1 is the caller's, which collects; the others begin in this order: those that analyse, the one that reads.
    let mut instructions = Vec::new();
    for thread in 1..=threads + 2 {
        let path = PathBuf::from(format!("{}-{thread:02}", out.display()));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        instructions.push(total(&text).with_context(|| format!("{}: no totals", path.display()))?);
    }
    Ok(share_of_ends(&instructions))
}

fn total(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    line?.split(' ').next()?.parse().ok()
}

/// Share of the first and the last in the sum.
fn share_of_ends(all: &[f64]) -> Option<f64> {
    let sum: f64 = all.iter().sum();
    let (first, last) = (all.first()?, all.last()?);
    (sum > 0.0).then(|| (first + last) / sum)
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
    fn the_serial_share_is_that_of_both_ends() {
        assert_eq!(share_of_ends(&[1.0, 8.0, 8.0, 3.0]), Some(0.2));
        assert_eq!(share_of_ends(&[]), None);
        assert_eq!(total("x: 1\ntotals: 17 4\n"), Some(17.0));
    }
}
