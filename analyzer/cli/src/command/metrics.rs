//! `metrics`: this host's counters in the text formats of Prometheus.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use roce_files::{Access, Place};
use roce_metrics::{BUILD_INFO, COLLECTOR_DURATION, COLLECTOR_SUCCESS, Exposition, Format};
use roce_pipeline::time_of_day;
use roce_probe::HostReader;

/// The task, and two examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze metrics once                                                      the metrics of this host, as text
  roce-analyze metrics once --textfile /var/lib/node_exporter/textfile/roce.prom  for node_exporter's textfile collector";

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Metrics {
    #[command(subcommand)]
    command: MetricsCommand,
}

#[derive(Subcommand, Debug)]
enum MetricsCommand {
    // Its description stands with its options.
    Once(Once),
}

/// Read the counters of this host once, and print them as metrics
///
/// Counters of RDMA devices, their ports and network interfaces, as `roce_...` metrics in base units. A value that is not known has no
/// series. Needs no rights.
#[derive(Args, Debug)]
struct Once {
    /// Another network interface to read; those of RDMA devices are always read
    #[arg(short, long, value_name = "NAME")]
    interface: Vec<String>,

    /// Text format
    #[arg(long, value_enum, default_value = "prometheus")]
    format: TextFormat,

    /// Write FILE instead of standard output; it is replaced at once, complete
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,

    /// Read a recorded host below DIR instead of this one
    #[arg(long, value_name = "DIR", conflicts_with = "interface")]
    read: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum TextFormat {
    /// Prometheus' text format 0.0.4
    Prometheus,
    /// OpenMetrics 1.0
    Openmetrics,
}

/// Runs a command about metrics.
pub(crate) fn metrics(arguments: &Metrics) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        MetricsCommand::Once(arguments) => once(arguments),
    }
}

fn once(arguments: &Once) -> anyhow::Result<ExitCode> {
    let mut reader = match &arguments.read {
        Some(folder) if !folder.join("sys").is_dir() => bail!(
            "{}: not a recorded host\nhint: the folder has the files of /sys below sys, and texts in commands",
            folder.display()
        ),
        Some(folder) => HostReader::recorded(folder, &folder.to_string_lossy()),
        None => HostReader::new(&arguments.interface),
    };
    let begun = Instant::now();
    let mut samples = Vec::new();
    reader.read(time_of_day(), &mut samples);
    let took = begun.elapsed();
    let mut exposition = Exposition::default();
    for sample in &samples {
        exposition.add(sample);
    }
    let collector = [("collector", "host".into())];
    exposition.own(COLLECTOR_SUCCESS, &collector, 1.0);
    exposition.own(COLLECTOR_DURATION, &collector, took.as_secs_f64());
    exposition.own(BUILD_INFO, &[("version", env!("CARGO_PKG_VERSION").into())], 1.0);
    let text = exposition.text(match arguments.format {
        TextFormat::Prometheus => Format::Prometheus,
        TextFormat::Openmetrics => Format::OpenMetrics,
    });
    match &arguments.textfile {
        Some(path) => write(path, &text).with_context(|| path.display().to_string())?,
        None => std::io::stdout().write_all(text.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Replaces a file by a complete one, which every user may read: a collector of another user reads it.
fn write(path: &std::path::Path, text: &str) -> anyhow::Result<()> {
    let mut out = Place::named(path)?.begin(Access::Umask)?;
    out.write_all(text.as_bytes())?;
    out.finish()?;
    Ok(())
}
