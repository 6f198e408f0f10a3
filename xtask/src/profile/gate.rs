//! The gate of speed: instructions of a packet by stage, beside those that are noted in `xtask/instructions.txt`.
//!
//! Two sizes of one capture are measured, and their difference counts: start and end cancel out. Instructions hardly depend on the machine,
//! but on the compiler: those of another one are shown, and not judged.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::callgrind::{Cost, by_function, by_stage, callgrind};
use crate::workspace::{Workspace, execute, output, step};

/// Packets of the two captures.
const SIZES: [u64; 2] = [100_000, 300_000];
/// More than this share above the noted number of a stage fails, and more than half of it above the sum.
const MAX_GROWTH: f64 = 0.03;
/// Stages below this share of all instructions are not judged alone.
const SMALL: f64 = 0.05;
/// The numbers that the next change has to keep.
const NOTED: &str = "xtask/instructions.txt";

/// Costs of a packet in each stage: instructions, and misses of the last cache.
type StageCosts = BTreeMap<String, (f64, f64)>;

/// Measures, prints, and compares with what is noted, or notes it (`write`).
pub(crate) fn gate(workspace: &Workspace, write: bool) -> Result<()> {
    let (program, generator) = step("build", || built(workspace))?;
    let now = measured(workspace, &program, &generator)?;
    let compiler = output(Command::new("rustc").arg("--version"))?;
    let path = workspace.root.join(NOTED);
    if write {
        fs::write(&path, noted(&now, &compiler))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    // Before the first --write everything is new, and nothing is judged.
    let text = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let before = match &text {
        Some(text) => read(text).with_context(|| format!("{}: no table of stages", path.display()))?,
        None => StageCosts::new(),
    };
    for line in table(&before, &now) {
        println!("{line}");
    }
    let why = match text {
        None => "Nothing is noted yet",
        Some(text) if !text.contains(compiler.trim()) => "Noted with another compiler",
        Some(_) => "",
    };
    if !why.is_empty() {
        println!(
            "\n{why}: not judged. `cargo xtask profile --gate --write` notes the numbers of {}.",
            compiler.trim()
        );
        return Ok(());
    }
    let slower = slower(&before, &now);
    if !slower.is_empty() {
        bail!("more instructions than noted in {NOTED}: {}", slower.join(", "));
    }
    Ok(())
}

/// The program and the generator of captures. The program is without Parquet, in a folder of its own: it builds in minutes, and what is
/// measured writes none.
fn built(workspace: &Workspace) -> Result<(PathBuf, PathBuf)> {
    let target = workspace.target.join("gate");
    let cargo = |arguments: &[&str]| {
        let mut cargo = workspace.cargo(arguments);
        cargo.env("CARGO_TARGET_DIR", &target);
        execute(&mut cargo)
    };
    cargo(&[
        "rustc",
        "--release",
        "--locked",
        "--package",
        "roce-analyze",
        "--bin",
        "roce-analyze",
        "--no-default-features",
        "--features",
        "jemalloc",
        "--",
        "-C",
        "strip=none",
    ])?;
    cargo(&[
        "build",
        "--release",
        "--locked",
        "--package",
        "roce-capture",
        "--example",
        "bench_capture",
    ])?;
    let release = target.join("release");
    Ok((
        release.join("roce-analyze"),
        release.join("examples/bench_capture"),
    ))
}

fn measured(workspace: &Workspace, program: &Path, generator: &Path) -> Result<StageCosts> {
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut sizes = Vec::new();
    for packets in SIZES {
        let capture = folder.join(format!("gate-{packets}.pcap"));
        let number = packets.to_string();
        // The mixed capture of the bench: 2 % of the data marked, 0.9 % of the packets CNPs.
        execute(Command::new(generator).arg(&capture).args([
            "--packets",
            &number,
            "--flows",
            "8192",
            "--captured",
            "96",
            "--per-row",
            "9",
            "--marked-in",
            "50",
            "--notified-in",
            "2",
        ]))?;
        let capture = capture.display().to_string();
        let text = callgrind(
            workspace,
            program,
            &[&capture, "--format", "none", "--bin", "1ms"],
        )?;
        sizes.push(by_stage(&by_function(&text)));
    }
    let [small, large] = sizes.as_slice() else {
        bail!("two sizes are measured");
    };
    Ok(per_packet(small, large, SIZES[1] - SIZES[0]))
}

/// The difference of two runs by stage, for each of `packets`.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn per_packet(small: &BTreeMap<&str, Cost>, large: &BTreeMap<&str, Cost>, packets: u64) -> StageCosts {
    let each = |more: u64, fewer: u64| (more as f64 - fewer as f64) / packets as f64;
    large
        .iter()
        .map(|(stage, large)| {
            let small = small.get(stage).copied().unwrap_or_default();
            let costs = (
                each(large.instructions, small.instructions),
                each(large.misses, small.misses),
            );
            ((*stage).to_owned(), costs)
        })
        .collect()
}

fn sum(costs: &StageCosts) -> (f64, f64) {
    costs
        .values()
        .fold((0.0, 0.0), |all, cost| (all.0 + cost.0, all.1 + cost.1))
}

fn noted(costs: &StageCosts, compiler: &str) -> String {
    let mut text = format!(
        "# Instructions of a packet, and its misses of the last cache, by stage: `cargo xtask profile --gate --write`.\n# {}\n",
        compiler.trim()
    );
    for (stage, (instructions, misses)) in costs {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{stage} | {instructions:.1} | {misses:.3}");
    }
    text
}

fn read(text: &str) -> Option<StageCosts> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let mut cells = line.split(" | ");
        let stage = cells.next()?.to_owned();
        let mut number = || cells.next()?.trim().parse().ok();
        Some((stage, (number()?, number()?)))
    })
    .collect::<Option<StageCosts>>()
    .filter(|found| !found.is_empty())
}

fn table(before: &StageCosts, now: &StageCosts) -> Vec<String> {
    let line = |stage: &str, before: (f64, f64), now: (f64, f64)| {
        let change = match before.0 {
            0.0 => "new".to_owned(),
            noted => format!("{:+.1} %", (now.0 / noted - 1.0) * 100.0),
        };
        format!(
            "| {stage} | {:.1} | {:.1} | {change} | {:.3} | {:.3} |",
            before.0, now.0, before.1, now.1
        )
    };
    let mut lines = vec![
        "| stage | instructions a packet, noted | now | change | misses a packet, noted | now |".to_owned(),
        "|---|--:|--:|--:|--:|--:|".to_owned(),
    ];
    let mut stages: Vec<_> = now.iter().collect();
    stages.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0));
    for (stage, cost) in stages {
        lines.push(line(stage, before.get(stage).copied().unwrap_or_default(), *cost));
    }
    lines.push(line("all", sum(before), sum(now)));
    lines
}

/// Stages that became dearer than they may, and the sum.
fn slower(before: &StageCosts, now: &StageCosts) -> Vec<String> {
    let (all_before, all_now) = (sum(before).0, sum(now).0);
    let more = |before: f64, now: f64| now / before.max(f64::MIN_POSITIVE) - 1.0;
    let mut found: Vec<String> = now
        .iter()
        .filter_map(|(stage, cost)| {
            let noted = before.get(stage).copied().unwrap_or_default().0;
            let is_judged = cost.0 > SMALL * all_now && more(noted, cost.0) > MAX_GROWTH;
            is_judged.then(|| format!("{stage} {noted:.0} -> {:.0}", cost.0))
        })
        .collect();
    if more(all_before, all_now) > MAX_GROWTH / 2.0 {
        found.push(format!("all {all_before:.0} -> {all_now:.0}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(stages: &[(&str, f64)]) -> StageCosts {
        stages
            .iter()
            .map(|(stage, instructions)| ((*stage).to_owned(), (*instructions, 0.25)))
            .collect()
    }

    #[test]
    fn numbers_come_back_as_they_were_noted() {
        let now = costs(&[("flow step", 301.5), ("decode", 120.0)]);
        let text = noted(&now, "rustc 1.0\n");
        assert!(text.contains("# rustc 1.0\n"), "{text}");
        assert_eq!(read(&text), Some(now));
        assert_eq!(read("# nothing\n"), None);
        assert_eq!(read("decode | many | 1\n"), None);
    }

    #[test]
    fn start_and_end_cancel_out() {
        let cost = |instructions, misses| Cost { instructions, misses };
        let small = BTreeMap::from([("decode", cost(5_000, 30))]);
        let large = BTreeMap::from([("decode", cost(25_000, 50)), ("verdicts", cost(1_000, 0))]);
        // (25,000 - 5,000) / 200, (50 - 30) / 200, 1,000 / 200.
        let found = per_packet(&small, &large, 200);
        assert_eq!(found["decode"], (100.0, 0.1));
        assert_eq!(found["verdicts"], (5.0, 0.0));
    }

    #[test]
    fn more_than_three_percent_fails() {
        let before = costs(&[("flow step", 300.0), ("decode", 100.0), ("other", 4.0)]);
        assert_eq!(slower(&before, &before), [""; 0]);
        // 2.9 % of one stage, and 1.5 % of all at most.
        let same = costs(&[("flow step", 300.0), ("decode", 102.9), ("other", 4.0)]);
        assert_eq!(slower(&before, &same), [""; 0]);
        // A small stage is judged by the sum alone: 4 of 404 is below 1.5 %.
        let small = costs(&[("flow step", 300.0), ("decode", 100.0), ("other", 8.0)]);
        assert_eq!(slower(&before, &small), [""; 0]);
        let dearer = costs(&[("flow step", 310.0), ("decode", 100.0), ("other", 4.0)]);
        assert_eq!(
            slower(&before, &dearer),
            ["flow step 300 -> 310", "all 404 -> 414"]
        );
    }
}
