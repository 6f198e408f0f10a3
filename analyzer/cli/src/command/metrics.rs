//! `metrics`: this host's counters for Prometheus, and files for the programs around it.

mod checks;
mod collect;
mod fabric;
mod files;
mod gpus;
mod host;
#[cfg(feature = "nxapi")]
mod push;
mod received;
mod serve;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, Subcommand};
use roce_files::{Access, FilePlace};
use roce_metrics::{
    BUILD_INFO, COLLECTOR_DURATION, COLLECTOR_SUCCESS, Exposition, Format as TextFormat, Label,
};

use crate::command::invocation::{Invocation, RunCommand};
use crate::options::format::{Format, formats};
use crate::output::messages;
use host::{COLLECTOR, HostArguments, HostMetrics};
#[cfg(feature = "nxapi")]
pub(crate) use push::{END, MAX_TOKEN};

/// The task, and examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze metrics serve
      the endpoint that Prometheus scrapes, on port 9902
  roce-analyze metrics serve --inventory fabric.toml
      with switches and hypervisors, each in its own interval
  roce-analyze metrics once --textfile roce.prom
      a file for node_exporter's textfile collector
  roce-analyze metrics files rules
      rules and alerts for Prometheus
  roce-analyze metrics files dashboards -o grafana
      five dashboards for Grafana";

/// Export this host's counters to Prometheus
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Metrics {
    #[command(subcommand)]
    command: MetricsCommand,
}

#[derive(Subcommand, Debug)]
enum MetricsCommand {
    // Descriptions stand with the options.
    Serve(serve::Serve),
    #[command(hide = true)]
    Collect(collect::Collect),
    #[cfg(feature = "nxapi")]
    #[command(hide = true)]
    Push(push::Push),
    Once(Once),
    Files(files::Files),
}

/// Read the counters of this host once, and print them as metrics
///
/// Counters of RDMA devices, their ports and network interfaces, outcomes of `doctor`, and GPUs, as `roce_...` metrics in base units. A value
/// that is not known has no series. Needs no rights.
#[derive(Args, Debug)]
struct Once {
    #[command(flatten)]
    host: HostArguments,

    /// Read the switches and hypervisors of this inventory, too
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// Text format
    #[arg(long, value_name = "FORMAT", default_value = "prometheus", value_parser = formats(&[Format::Prometheus, Format::Openmetrics]))]
    format: Format,

    /// Write FILE instead of standard output; it is replaced at once, complete
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
}

impl RunCommand for Metrics {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        metrics(self)
    }
}

/// Runs a command about metrics.
fn metrics(arguments: &Metrics) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        MetricsCommand::Serve(arguments) => serve::serve(arguments),
        MetricsCommand::Collect(arguments) => collect::collect(arguments),
        #[cfg(feature = "nxapi")]
        MetricsCommand::Push(arguments) => push::push(arguments),
        MetricsCommand::Once(arguments) => once(arguments),
        MetricsCommand::Files(arguments) => files::files(arguments),
    }
}

fn once(arguments: &Once) -> anyhow::Result<ExitCode> {
    let mut host = HostMetrics::open(&arguments.host)?;
    let begun = Instant::now();
    let mut exposition = host.read();
    collected(&mut exposition, COLLECTOR, begun);
    for remark in host.remarks() {
        messages::note("metrics", &remark);
    }
    let begun = Instant::now();
    if checks::CheckedHost::new(&arguments.host).add(&mut exposition) {
        collected(&mut exposition, checks::COLLECTOR, begun);
    }
    let begun = Instant::now();
    if let Some(mut source) = gpus::GpuSource::new(&arguments.host, None)
        && source.add(&mut exposition)
    {
        collected(&mut exposition, gpus::COLLECTOR, begun);
    }
    let mut targets = fabric::Target::all(&fabric::inventory(arguments.inventory.as_ref())?)?;
    fabric::add_all(&mut targets, &mut exposition);
    exposition.own(BUILD_INFO, &[("version", env!("CARGO_PKG_VERSION").into())], 1.0);
    let text = exposition.text(match arguments.format {
        Format::Openmetrics => TextFormat::OpenMetrics,
        _ => TextFormat::Prometheus,
    });
    match &arguments.textfile {
        Some(path) => write(path, &text).with_context(|| path.display().to_string())?,
        None => std::io::stdout().write_all(text.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Notes that a collector has read everything since `begun`.
fn collected(exposition: &mut Exposition, collector: Label<'static>, begun: Instant) {
    let took = begun.elapsed().as_secs_f64();
    exposition.own(COLLECTOR_DURATION, std::slice::from_ref(&collector), took);
    exposition.own(COLLECTOR_SUCCESS, &[collector], 1.0);
}

/// Replaces a file by a complete one, which every user may read: a collector of another user reads it. A timer writes it again and again, so
/// it is the one file that is replaced without `--overwrite`.
fn write(path: &std::path::Path, text: &str) -> anyhow::Result<()> {
    let mut out = FilePlace::named(path)?.begin(true, Access::Umask)?;
    out.write_all(text.as_bytes())?;
    out.finish()?;
    Ok(())
}
