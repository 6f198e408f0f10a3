//! Runs under callgrind: instructions and misses by function, and by stage.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::{Workspace, execute, step};

/// Stages, by what their functions' names contain; the first that fits counts.
const STAGES: &[(&str, &[&str])] = &[
    ("read, records", &["roce_capture::"]),
    ("decode", &["roce_wire::", "roce_pipeline::"]),
    ("lookup", &["find_all"]),
    ("verdicts", &["roce_verdict::"]),
    (
        "rows: close, collect",
        &[
            "roce_flow::rows",
            "roce_flow::bins",
            "roce_flow::ways",
            "close_row",
            "begin_bin",
            "roce_flow::collect",
            "TimelineColumns",
        ],
    ),
    (
        "flows: open, close",
        &["open_flow", "close_flow", "flow_row", "drop_flow"],
    ),
    ("flow step", &["roce_flow::"]),
    ("terminal, JSON, page", &["roce_report::"]),
    ("Parquet", &["polars", "roce_parquet::", "zstd", "ZSTD"]),
];
pub(super) const OTHER: &str = "other: allocation, copies, start";

/// Runs the program under callgrind, in one thread, and returns the numbers.
pub(super) fn callgrind(workspace: &Workspace, program: &Path, arguments: &[&str]) -> Result<String> {
    let out = callgrind_file(workspace)?;
    let mut valgrind = workspace.command("valgrind");
    valgrind
        .args(["--tool=callgrind", "--cache-sim=yes", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(arguments)
        .args(["--threads", "1", "--quiet"])
        .stdout(std::process::Stdio::null());
    step("callgrind", || execute(&mut valgrind))?;
    fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))
}

pub(super) fn callgrind_file(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.join("callgrind.out"))
}

/// Instructions, and misses of the last cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) instructions: u64,
    pub(super) misses: u64,
}

/// Cost of each function by itself.
pub(super) fn by_function(text: &str) -> BTreeMap<String, Cost> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
    let (mut function, mut is_call) = ("", false);
    let mut events: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(list) = line.strip_prefix("events: ") {
            events = list.split(' ').collect();
        } else if let Some(name) = line.strip_prefix("fn=") {
            // "(12) name" the first time, "(12)" afterwards.
            let (id, name) = name.split_once(' ').unwrap_or((name, ""));
            if !name.is_empty() {
                names.insert(id, name);
            }
            function = names.get(id).copied().unwrap_or_default();
        } else if let Some(name) = line.strip_prefix("cfn=") {
            if let Some((id, name)) = name.split_once(' ') {
                names.insert(id, name);
            }
        } else if line.starts_with("calls=") {
            // The next line is what the call cost: that is another function's.
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '*'))
            && !core::mem::take(&mut is_call)
        {
            let numbers = line.split(' ').skip(1).map(|number| number.parse().unwrap_or(0));
            let cost = costs.entry(function.to_owned()).or_default();
            for (event, number) in events.iter().zip(numbers) {
                let number: u64 = number;
                match *event {
                    "Ir" => cost.instructions += number,
                    "DLmr" | "DLmw" => cost.misses += number,
                    _ => {}
                }
            }
        }
    }
    costs
}

pub(super) fn stage(function: &str) -> &'static str {
    let fits = |(_, parts): &&(&str, &[&str])| parts.iter().any(|part| function.contains(part));
    STAGES.iter().find(fits).map_or(OTHER, |(name, _)| name)
}

pub(super) fn by_stage(functions: &BTreeMap<String, Cost>) -> BTreeMap<&'static str, Cost> {
    let mut stages: BTreeMap<&str, Cost> = BTreeMap::new();
    for (function, cost) in functions {
        let sum = stages.entry(stage(function)).or_default();
        sum.instructions += cost.instructions;
        sum.misses += cost.misses;
    }
    stages
}
