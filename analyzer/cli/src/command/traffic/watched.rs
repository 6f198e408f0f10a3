//! `traffic run --status` and `traffic run --stop`: runs that were started before.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use roce_model::text::{clean, escape_json};
use roce_remote::traffic::{
    RunRecord, RunStatus, StoppedHost, clean as remove, status as asked, stop as ended,
};
use roce_spelling::{packet_rate, rate_of};
use serde_json::{Value, json};

use super::actions::{code, counted, recorded, records, stream_values, table, time};
use super::kept::RunFolder;
use crate::options::format::Format;
use crate::output::messages;

/// Version of the JSON documents' form.
const SCHEMA_VERSION: u32 = 1;

/// Shows a run: the one with this id, or the latest.
///
/// # Errors
/// If there is no such run, or its record cannot be read.
pub(super) fn status(id: Option<&str>, format: Format) -> anyhow::Result<ExitCode> {
    let record = recorded(&records()?, id)?;
    let found = asked(&record, &record.machines(), true);
    let text = match format {
        Format::Text => text(&record, &found),
        _ => escape_json(&format!("{:#}\n", document(&record, &found))).into_owned(),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let is_unknown = found.hosts.iter().any(|host| host.error.is_some());
    Ok(if is_unknown {
        ExitCode::from(2)
    } else {
        code(&found.streams)
    })
}

fn rate(rate: f64, is_bits: bool) -> String {
    if is_bits { rate_of(rate) } else { packet_rate(rate) }
}

fn text(record: &RunRecord, found: &RunStatus) -> String {
    let mut text = format!(
        " run {} ({}): {} for {} s, started {}: {}\n",
        record.id,
        clean(&record.name),
        record.tool,
        record.duration_s,
        time(record.started_ns).unwrap_or_default(),
        counted(&found.streams)
    );
    text.push_str(&table(record, found));
    for host in &found.hosts {
        if let Some(error) = &host.error {
            let _ = writeln!(text, " ✗ {}: {}", host.name, clean(error));
        }
        for seen in &host.rates {
            let _ = writeln!(
                text,
                " {} {}: sends {}, receives {}",
                host.name,
                clean(&seen.device),
                rate(seen.sent, seen.is_bits),
                rate(seen.received, seen.is_bits)
            );
        }
    }
    text
}

fn document(record: &RunRecord, found: &RunStatus) -> Value {
    let hosts: Vec<Value> = found
        .hosts
        .iter()
        .map(|host| {
            json!({
                "host": host.name,
                "error": host.error,
                "processes": host.living,
                "rates": host.rates.iter().map(|rate| json!({
                    "device": rate.device,
                    "unit": if rate.is_bits { "bit/s" } else { "packets/s" },
                    "sent": rate.sent,
                    "received": rate.received,
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "schema_version": SCHEMA_VERSION,
        "id": record.id,
        "name": record.name,
        "tool": record.tool,
        "duration_s": record.duration_s,
        "started": time(record.started_ns),
        "streams": stream_values(record, found),
        "hosts": hosts,
    })
}

/// Ends a run: the one with this id, or the latest. With `output` its logs and results are fetched to this folder.
///
/// # Errors
/// If there is no such run, its record cannot be read, or the folder cannot be made.
pub(super) fn stop(id: Option<&str>, output: Option<&Path>, format: Format) -> anyhow::Result<ExitCode> {
    let records = records()?;
    let record = recorded(&records, id)?;
    let kept = output.map(RunFolder::new).transpose()?;
    let machines = record.machines();
    let all = ended(&record, &machines);
    let outcome = outcome(&all);
    if let Some(kept) = kept {
        let found = asked(&record, &machines, false);
        kept.collect(&record, &machines, &found, None)?;
        if outcome == Outcome::Clean {
            for (host, error) in remove(&record, &machines) {
                messages::warn(&host, &format!("the run's files are still there: {error}"));
            }
            records.remove(&record.id)?;
        }
    }
    let text = if format == Format::Text {
        lines(&record, &all)
    } else {
        let hosts: Vec<Value> = all
            .iter()
            .map(|host| {
                json!({
                    "host": host.host,
                    "error": host.error,
                    "ended": host.found,
                    "killed": host.killed,
                    "left": host.left,
                })
            })
            .collect();
        let document = json!({ "schema_version": SCHEMA_VERSION, "id": record.id, "hosts": hosts });
        escape_json(&format!("{document:#}\n")).into_owned()
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(match outcome {
        Outcome::Clean => 0,
        Outcome::Left => 1,
        Outcome::Unknown => 2,
    }))
}

/// State of a run that was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Nothing.
    Clean,
    /// Processes.
    Left,
    /// A host did not answer.
    Unknown,
}

/// The outcome over all hosts.
pub(super) fn outcome(all: &[StoppedHost]) -> Outcome {
    if all.iter().any(|host| host.error.is_some()) {
        Outcome::Unknown
    } else if all.iter().any(|host| !host.left.is_empty()) {
        Outcome::Left
    } else {
        Outcome::Clean
    }
}

/// Lines about ended and remaining processes, by host.
pub(super) fn lines(record: &RunRecord, all: &[StoppedHost]) -> String {
    let mut text = format!(" run {}\n", record.id);
    for host in all {
        let _ = match &host.error {
            Some(error) => writeln!(text, " ✗ {}: not stopped: {}", host.host, clean(error)),
            None if host.found == 0 => writeln!(text, " {}: nothing of it runs", host.host),
            None => {
                let killed = if host.killed > 0 {
                    format!(", {} of them by KILL", host.killed)
                } else {
                    String::new()
                };
                writeln!(text, " {}: {} processes ended{killed}", host.host, host.found)
            }
        };
        for left in &host.left {
            let _ = writeln!(text, " ✗ {}: process {} is still there", host.host, clean(left));
        }
    }
    text
}
