//! `host gpus`: load, memory, power, clocks and throttling of GPUs, once.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use roce_fabric::gpu::{Gpu, Gpus, QUERY, csv_columns, gpus as parsed};
use roce_model::text::{clean, escape_json};
use roce_model::{Counter, Nanos};
use serde_json::{Map, Value, json};

use crate::command::program::{self, Failure, Limits};
use crate::options::arguments::Format;
use crate::output::messages;

/// The longest recorded text.
const MAX_TEXT_BYTES: u64 = 64 << 20;
/// Version of the JSON document's form.
const SCHEMA_VERSION: u32 = 1;
/// The longest that a tool may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Times that a column is left out because the driver does not have it.
const MAX_TRIES: usize = QUERY.len() + 1;
const INPUT: &str = "gpus";
/// A byte in GiB.
const GIB: f64 = 1.0 / 1_073_741_824.0;

/// Show load, memory, power, clocks and throttling of this host's GPUs, or of a recorded text
///
/// Asks nvidia-smi, else amd-smi. What a tool does not say is -, never 0.
#[derive(Args, Debug)]
pub(crate) struct GpusArguments {
    /// Read a recorded text: nvidia-smi as CSV or XML (-q -x), dcgm-exporter's metrics, or amd-smi metric --json
    #[arg(long, value_name = "FILE")]
    read: Option<PathBuf>,

    /// Format of standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Reads the GPUs and shows them.
pub(crate) fn gpus(arguments: &GpusArguments) -> anyhow::Result<ExitCode> {
    let found = match &arguments.read {
        Some(path) => {
            let text = roce_files::read_text(path, MAX_TEXT_BYTES)?;
            let found = parsed(&text);
            if found.gpus.is_empty() && found.notes.is_empty() {
                bail!(
                    "{}: no GPU in it\nhint: nvidia-smi as CSV or XML, dcgm-exporter's metrics, or amd-smi metric --json",
                    path.display()
                );
            }
            found
        }
        None => by_tools(),
    };
    for note in &found.notes {
        messages::note(INPUT, note);
    }
    for gpu in found.gpus.iter().filter(|gpu| gpu.is_lost) {
        messages::warn(
            INPUT,
            &format!("{}: the driver has lost it, or it needs a reset", gpu.object),
        );
    }
    match arguments.format {
        Format::Text => std::io::stdout().write_all(table(&found).as_bytes())?,
        Format::Json => writeln!(
            std::io::stdout(),
            "{}",
            escape_json(&format!("{:#}", document(&found)))
        )?,
        Format::Html => bail!("there is no page about GPUs\nhint: --format text or json"),
        Format::None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The GPUs of this host, by the tool that is there.
fn by_tools() -> Gpus {
    let mut columns: Vec<&'static str> = QUERY.to_vec();
    let mut missing: Vec<&str> = Vec::new();
    for _ in 0..MAX_TRIES {
        let query = format!("--query-gpu={}", columns.join(","));
        let Some(text) = run("nvidia-smi", &[&query, "--format=csv"]) else {
            break;
        };
        if let Some(others) = csv_columns(&columns, &text) {
            missing.extend(columns.iter().filter(|column| !others.contains(column)));
            columns = others;
            continue;
        }
        let mut found = parsed(&text);
        if !missing.is_empty() {
            found
                .notes
                .push(format!("the driver does not have {}", missing.join(", ")));
        }
        return found;
    }
    if let Some(text) = run("amd-smi", &["metric", "--json"]) {
        return parsed(&text);
    }
    Gpus {
        gpus: Vec::new(),
        notes: vec!["neither nvidia-smi nor amd-smi answers: no GPU is known here".to_owned()],
    }
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
        Err(Failure::NoAnswer) => {
            messages::warn(INPUT, &format!("{tool} does not answer"));
            None
        }
    }
}

fn cell(value: Option<f64>, factor: f64, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", value * factor))
}

/// A table for people.
fn table(found: &Gpus) -> String {
    if found.gpus.is_empty() {
        return String::new();
    }
    let head = [
        "gpu",
        "name",
        "PCI",
        "load %",
        "memory GiB",
        "of",
        "C",
        "W",
        "of",
        "SM MHz",
        "PCIe",
        "throttled by",
    ];
    let row = |gpu: &Gpu| {
        let value = |counter| gpu.value(counter, None);
        let of = |counter, detail| gpu.value(counter, Some(detail));
        let link = match (
            value(Counter::GpuPcieLinkGeneration),
            value(Counter::GpuPcieLinkWidth),
        ) {
            (Some(generation), Some(width)) => format!("{generation} x{width}"),
            (None, Some(width)) => format!("x{width}"),
            _ => "-".to_owned(),
        };
        let throttled = match &gpu.throttled {
            _ if gpu.is_lost => "lost".to_owned(),
            None => "-".to_owned(),
            Some(all) if all.is_empty() => "nothing".to_owned(),
            Some(all) => all.join(", "),
        };
        vec![
            gpu.object.clone(),
            gpu.name.clone().unwrap_or_else(|| "-".to_owned()),
            gpu.pci_address.clone().unwrap_or_else(|| "-".to_owned()),
            cell(value(Counter::GpuUtilization), 100.0, 0),
            cell(value(Counter::GpuMemoryUsed), GIB, 1),
            cell(value(Counter::GpuMemoryTotal), GIB, 1),
            cell(of(Counter::GpuTemperature, "gpu"), 1.0, 0),
            cell(value(Counter::GpuPower), 1.0, 0),
            cell(value(Counter::GpuPowerLimit), 1.0, 0),
            cell(of(Counter::GpuClock, "sm"), 1e-6, 0),
            link,
            throttled,
        ]
    };
    let mut rows: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
    rows.extend(found.gpus.iter().map(row));
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| clean(cell).into_owned()).collect())
        .collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Numbers stand right.
            let _ = if (3..10).contains(&place) {
                write!(line, " {cell:>width$} ")
            } else {
                write!(line, " {cell:width$} ")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn document(found: &Gpus) -> Value {
    let samples = found.samples(Nanos(0), &"".into());
    let gpus: Vec<Value> = found
        .gpus
        .iter()
        .map(|gpu| {
            let own = samples.iter().filter(|sample| *sample.object == *gpu.object);
            let values: Vec<Value> = own
                .map(|sample| {
                    let labels: Map<String, Value> = sample
                        .counter
                        .labels()
                        .iter()
                        .zip(&sample.details)
                        .map(|(name, value)| ((*name).to_owned(), value.as_ref().into()))
                        .collect();
                    json!({
                        "counter": sample.counter.name(),
                        "labels": labels,
                        "kind": sample.counter.kind().name(),
                        "unit": sample.counter.unit(),
                        "value": sample.value,
                    })
                })
                .collect();
            json!({
                "gpu": gpu.object,
                "uuid": gpu.uuid,
                "name": gpu.name,
                "pci_address": gpu.pci_address,
                "lost": gpu.is_lost,
                "throttled": gpu.throttled,
                "values": values,
            })
        })
        .collect();
    json!({ "schema_version": SCHEMA_VERSION, "gpus": gpus, "notes": found.notes })
}
