//! Readings of devices as tables for people: interfaces, queues, neighbours, problems, findings.

mod tables;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roce_model::text::clean;
use roce_model::{Counter, SampleSource};
use roce_report::{Style, samples};
use roce_switches::device::{Reading, Reason};
use roce_switches::findings::DeviceFinding;

use super::changes::Device;
use crate::output::columns::{Column, lay};
use crate::output::findings::{FoundLine, lines};
use tables::{adapters, interfaces, queues};

/// Commands that the device does not know and that are named; of more, the rest is counted.
const MAX_NAMED: usize = 8;
/// Characters of a command in a line about it: scripts are long.
const MAX_COMMAND: usize = 60;

/// Everything about a device.
pub(super) fn device(device: &Device, findings: &[DeviceFinding], all: bool, style: &Style) -> String {
    let (reading, changes) = (&device.last, &device.changes);
    let mut out = String::new();
    head(device, style, &mut out);
    if changes.is_up() {
        if changes.readings() > 1 {
            let seconds = changes.time().seconds();
            let _ = if seconds > 0.0 {
                writeln!(out, " changes in {seconds:.1} s")
            } else {
                writeln!(out, " changes between two recordings")
            };
        }
        if reading.source == SampleSource::Hypervisor {
            adapters(reading, changes, all, style, &mut out);
        } else {
            interfaces(reading, changes, all, style, &mut out);
            queues(changes, all, style, &mut out);
        }
        neighbors(reading, style, &mut out);
    }
    problems(reading, style, &mut out);
    let found = findings.iter().map(|finding| FoundLine {
        severity: finding.severity,
        id: finding.id,
        object: &finding.object,
        text: &finding.text,
        next: finding.next,
    });
    out.push_str(&lines(found, style));
    if changes.is_up() && (all || changes.readings() > 1) {
        let mut table = Vec::new();
        // Writing to memory cannot fail.
        let _ = samples::text(changes.summary(), all, style, &mut table);
        out.push('\n');
        out.push_str(&String::from_utf8_lossy(&table));
    }
    out.push('\n');
    out
}

/// A text in lines of the screen's width; its later lines are indented.
fn wrapped(text: &str, style: &Style, out: &mut String) {
    let options = textwrap::Options::new(style.width.max(20))
        .initial_indent(" ")
        .subsequent_indent("   ");
    for line in textwrap::wrap(text, options) {
        let _ = writeln!(out, "{line}");
    }
}

/// Who it is.
fn head(device: &Device, style: &Style, out: &mut String) {
    let reading = &device.last;
    let about = &reading.description;
    let mut parts = vec![reading.node.to_string()];
    parts.extend([&about.model, &about.version].map(|text| clean(text).into_owned()));
    for (name, text) in [("build", &about.build), ("serial", &about.serial)] {
        if !text.is_empty() {
            parts.push(format!("{name} {}", clean(text)));
        }
    }
    if let Some(up) = device.changes.sum("", Counter::SwitchUptime) {
        parts.push(format!("up {}", days(up)));
    }
    parts.push(format!("{} by {}", device.kind, device.transport));
    parts.retain(|part| !part.is_empty());
    if !device.changes.is_up() {
        parts.push("cannot be read".to_owned());
    }
    wrapped(&parts.join(", "), style, out);
}

fn days(seconds: f64) -> String {
    let hours = seconds / 3600.0;
    if hours < 1.0 {
        format!("{:.0} min", seconds / 60.0)
    } else if hours < 48.0 {
        format!("{hours:.0} h")
    } else {
        format!("{:.0} days", hours / 24.0)
    }
}

fn neighbors(reading: &Reading, style: &Style, out: &mut String) {
    if reading.neighbors.is_empty() {
        return;
    }
    let column = |title, cell: &dyn Fn(&roce_switches::device::Neighbor) -> &str| {
        let cells = reading
            .neighbors
            .iter()
            .map(|neighbor| clean(cell(neighbor)).into_owned());
        Column::new(title, false, 0, cells.collect())
    };
    let _ = writeln!(out, "\n neighbours");
    let columns = vec![
        column("interface", &|neighbor| &neighbor.interface),
        column("neighbour", &|neighbor| &neighbor.node),
        column("its interface", &|neighbor| &neighbor.port),
    ];
    out.push_str(&lay(columns, style.width));
}

/// Absent parts, and why. Commands that the device does not know are one line.
fn problems(reading: &Reading, style: &Style, out: &mut String) {
    if reading.problems.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n problems");
    let short = |command: &str| {
        let line = command.lines().next().unwrap_or_default();
        let kept: String = clean(line).chars().take(MAX_COMMAND).collect();
        if kept.len() < command.len() {
            format!("{kept}...")
        } else {
            kept
        }
    };
    let mut unsupported = Vec::new();
    let mut others: BTreeMap<(Reason, String), Vec<String>> = BTreeMap::new();
    for problem in &reading.problems {
        if problem.reason == Reason::Unsupported {
            unsupported.push(short(&problem.command));
        } else {
            let commands = others
                .entry((problem.reason, clean(&problem.text).into_owned()))
                .or_default();
            commands.push(short(&problem.command));
        }
    }
    for ((reason, text), commands) in others {
        let more = commands.len().saturating_sub(1);
        let first = commands.first().map_or("", String::as_str);
        let others = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        wrapped(&format!("{}: {first}{others}: {text}", reason.name()), style, out);
    }
    if !unsupported.is_empty() {
        let more = unsupported.len().saturating_sub(MAX_NAMED);
        unsupported.truncate(MAX_NAMED);
        let others = if more > 0 {
            format!(", and {more} more")
        } else {
            String::new()
        };
        wrapped(
            &format!("unsupported: {}{others}", unsupported.join(", ")),
            style,
            out,
        );
    }
}
