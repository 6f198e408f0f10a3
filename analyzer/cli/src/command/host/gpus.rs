//! `host gpus`: load, memory, power, clocks and throttling of GPUs, once or over time.

mod form;
mod series;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use roce_hosts::gpu::{Gpu, Gpus, gpus as parsed};
use roce_model::text::escape_json;
use roce_model::{Counter, Span, Time};
use serde_json::{Value, json};

use form::{GIB, SCHEMA_VERSION, labels};
use series::Plan;

use crate::command::gpu_tool::{INPUT, MAX_TEXT_BYTES, ask};
use crate::command::host::series::Destination;
use crate::command::pasted::described;
use crate::options::duration::parse_duration;
use crate::options::format::{Format, text_or_json};
use crate::output::messages;
use crate::output::table::laid;

/// Show load, memory, power, clocks and throttling of this host's GPUs, or of a recorded text
///
/// Runs nvidia-smi, else amd-smi. A value that the tool does not report is -, never 0. With --duration, -o or a command it reads repeatedly,
/// and shows the minimum, mean and maximum of each quantity.
#[derive(Args, Debug)]
pub(crate) struct GpusArguments {
    /// Read a recorded text: nvidia-smi as CSV or XML (-q -x), dcgm-exporter's metrics, amd-smi metric --json or rocm-smi --json
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    read: Option<PathBuf>,

    /// Read repeatedly for this time
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "read")]
    duration: Option<Span>,

    /// Time between two readings
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Span,

    #[command(flatten)]
    destination: Destination,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,

    /// Run this command, and read repeatedly until it ends; its exit code becomes that of roce-analyze
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "read")]
    run: Vec<OsString>,
}

/// Reads the GPUs and shows them.
pub(crate) fn gpus(arguments: &GpusArguments) -> anyhow::Result<ExitCode> {
    if arguments.duration.is_some() || arguments.destination.output.is_some() || !arguments.run.is_empty() {
        return over_time(arguments);
    }
    let found = match &arguments.read {
        Some(path) => {
            let text = roce_files::read_text(path, MAX_TEXT_BYTES)?;
            let found = parsed(&text);
            if found.gpus.iter().all(|gpu| gpu.values.is_empty() && !gpu.is_lost) && !found.is_driver_silent()
            {
                let what = described(&text);
                bail!(
                    "{}: no values of a GPU in it{what}\nhint: nvidia-smi as CSV or XML, dcgm-exporter's metrics, amd-smi metric --json or \
                     rocm-smi --json",
                    path.display()
                );
            }
            found
        }
        None => ask().0,
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
        _ => writeln!(
            std::io::stdout(),
            "{}",
            escape_json(&format!("{:#}", document(&found)))
        )?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the GPUs until a time is over or a command ends, and shows what there was.
fn over_time(arguments: &GpusArguments) -> anyhow::Result<ExitCode> {
    let shown = series::series(&Plan {
        duration: arguments.duration,
        interval: arguments.interval,
        destination: &arguments.destination,
        run: &arguments.run,
        is_json: arguments.format == Format::Json,
    })?;
    std::io::stdout().write_all(shown.text.as_bytes())?;
    if let Some(kept) = shown.kept {
        kept.finish()?;
    }
    Ok(shown.code)
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
    // Bytes over NVLink are known of few documents.
    let carried = |gpu: &Gpu, direction| gpu.value(Counter::GpuNvlinkBytes, Some(direction));
    let has_links = found
        .gpus
        .iter()
        .any(|gpu| carried(gpu, "sent").is_some() || carried(gpu, "received").is_some());
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
        let mut cells = vec![
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
        ];
        if has_links {
            cells.extend(["sent", "received"].map(|direction| cell(carried(gpu, direction), GIB, 1)));
        }
        cells
    };
    let mut head = head.map(str::to_owned).to_vec();
    if has_links {
        head.extend(["NVLink GiB sent", "received"].map(str::to_owned));
    }
    let mut rows: Vec<Vec<String>> = vec![head];
    rows.extend(found.gpus.iter().map(row));
    laid(&rows, &(3..10))
}

fn document(found: &Gpus) -> Value {
    let samples = found.samples(Time(0), &"".into());
    let gpus: Vec<Value> = found
        .gpus
        .iter()
        .map(|gpu| {
            let own = samples.iter().filter(|sample| *sample.object == *gpu.object);
            let values: Vec<Value> = own
                .map(|sample| {
                    json!({
                        "counter": sample.counter.name(),
                        "labels": labels(sample.counter, &sample.details),
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
