//! Tools that report this host's GPUs: one answer, and nvidia-smi's lines while it runs.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use roce_hosts::gpu::{Gpus, QUERY, csv_columns, gpus, gpus_of_columns};
use roce_model::{Sample, Time};

use crate::command::lines::{LineLimits, Lines};
use crate::output::messages;
use roce_remote::program::{self, Failure, Limits};

/// Name of messages about GPUs.
pub(super) const INPUT: &str = "gpus";
/// The longest text of a tool.
pub(super) const MAX_TEXT_BYTES: u64 = 64 << 20;
/// The longest that a tool may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Times that a column is left out because the driver does not have it.
const MAX_TRIES: usize = QUERY.len() + 1;
/// Bounds of nvidia-smi's lines.
const LINE_LIMITS: LineLimits = LineLimits {
    line: 1 << 16,
    look: 1 << 20,
};

/// The tool that answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Tool {
    /// nvidia-smi, with the columns that its driver has.
    NvidiaSmi(Vec<&'static str>),
    /// amd-smi.
    AmdSmi,
}

/// The GPUs of this host, and the tool that knows them.
pub(super) fn ask() -> (Gpus, Option<Tool>) {
    if let Some((found, columns)) = ask_nvidia() {
        return (found, Some(Tool::NvidiaSmi(columns)));
    }
    if let Some(found) = ask_amd() {
        return (found, Some(Tool::AmdSmi));
    }
    let found = Gpus {
        gpus: Vec::new(),
        notes: vec!["neither nvidia-smi nor amd-smi answers: no GPU is known here".to_owned()],
    };
    (found, None)
}

/// GPUs that amd-smi reports.
pub(super) fn ask_amd() -> Option<Gpus> {
    run("amd-smi", &["metric", "--json"]).map(|text| gpus(&text))
}

/// GPUs that nvidia-smi reports, by the columns that its driver has.
fn ask_nvidia() -> Option<(Gpus, Vec<&'static str>)> {
    let mut columns: Vec<&'static str> = QUERY.to_vec();
    let mut missing: Vec<&str> = Vec::new();
    for _ in 0..MAX_TRIES {
        let text = run("nvidia-smi", &[&query(&columns), "--format=csv"])?;
        if let Some(others) = csv_columns(&columns, &text) {
            missing.extend(columns.iter().filter(|column| !others.contains(column)));
            columns = others;
            continue;
        }
        let mut found = gpus(&text);
        if !missing.is_empty() {
            found
                .notes
                .push(format!("the driver does not have {}", missing.join(", ")));
        }
        return Some((found, columns));
    }
    None
}

fn query(columns: &[&str]) -> String {
    format!("--query-gpu={}", columns.join(","))
}

/// A tool's standard output; `None` when it cannot be started, or takes too long.
fn run(tool: &str, arguments: &[&str]) -> Option<String> {
    let limits = Limits {
        patience: PATIENCE,
        output: MAX_TEXT_BYTES,
        errors: 0,
    };
    match program::run(Command::new(tool).args(arguments), limits) {
        Ok(ended) => Some(String::from_utf8_lossy(&ended.output).into_owned()),
        Err(Failure::System(_)) => None,
        Err(Failure::NoAnswer | Failure::Stopped) => {
            messages::warn(INPUT, &format!("{tool} does not answer"));
            None
        }
    }
}

/// nvidia-smi as one process for a whole run: it prints a line for each GPU each interval.
///
/// Its pipe is read without waiting, by a run that may neither start programs nor send signals any more. When the pipe is closed,
/// the tool ends at its next line.
#[derive(Debug)]
pub(super) struct GpuStream {
    child: Child,
    lines: Lines,
    columns: Vec<&'static str>,
    node: Arc<str>,
}

impl GpuStream {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(columns: &[&'static str], interval: Duration, node: &str) -> anyhow::Result<Self> {
        let mut child = Command::new("nvidia-smi")
            .args([&query(columns), "--format=csv,noheader", "-lms"])
            .arg(interval.as_millis().max(1).to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("nvidia-smi cannot be started")?;
        let lines = Lines::new(child.stdout.take(), LINE_LIMITS)?;
        Ok(Self {
            child,
            lines,
            columns: columns.to_vec(),
            node: node.into(),
        })
    }

    /// True until the tool has ended.
    pub(super) const fn is_open(&self) -> bool {
        self.lines.is_open()
    }

    /// Adds the samples of all lines that have come, as of `time`.
    pub(super) fn read(&mut self, time: Time, into: &mut Vec<Sample>) {
        let Self {
            lines, columns, node, ..
        } = self;
        lines.look(|line| {
            let found = gpus_of_columns(&String::from_utf8_lossy(line), columns);
            into.extend(found.samples(time, node));
        });
    }

    /// Ends the tool.
    pub(super) fn end(mut self) {
        self.lines.close();
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_tool_become_samples() {
        let mut child = Command::new("printf")
            .arg("0, 98 %%\\n1, [N/A]\\n2, 41 %%\\n")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = Lines::new(child.stdout.take(), LINE_LIMITS).unwrap();
        child.wait().unwrap();
        let mut stream = GpuStream {
            child,
            lines,
            columns: vec!["index", "utilization.gpu"],
            node: "h1".into(),
        };
        let mut samples = Vec::new();
        stream.read(Time(7), &mut samples);
        let seen: Vec<(&str, f64)> = samples
            .iter()
            .map(|sample| (sample.object.as_ref(), sample.value))
            .collect();
        assert_eq!(seen, [("gpu0", 0.98), ("gpu2", 0.41)], "gpu1 has no value");
        assert!(!stream.is_open());
        stream.end();
    }
}
