//! Readings that start programs or open sockets, for `metrics serve`: checks of `doctor`, GPUs, switches and hypervisors.
//!
//! The server talks to the network, so it may do neither. It starts this process before it gives that up, and reads a line of JSON for each
//! reading from its standard output. This process ends when the server's end of its standard input is closed.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use roce_metrics::{Exposition, Format};
use roce_model::Nanos;
use roce_remote::each_again;
use serde_json::json;

use super::fabric::Target;
use super::host::HostArguments;
use super::{checks, fabric, gpus};
use crate::options::duration::parse_duration;
use crate::options::fabric::MAX_AT_ONCE;

/// Shortest time between two readings of GPUs.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Print readings of checks and GPUs for `metrics serve`
#[derive(Args, Debug)]
pub(super) struct Collect {
    #[command(flatten)]
    host: HostArguments,

    /// Time between two readings of GPUs
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    interval: Nanos,

    /// Time between two runs of all checks
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    doctor_every: Nanos,

    /// The inventory of switches and hypervisors
    #[arg(long, value_name = "FILE", alias = "hosts")]
    fabric: Option<PathBuf>,
}

/// Reads until the server has gone.
pub(super) fn collect(arguments: &Collect) -> anyhow::Result<ExitCode> {
    std::thread::Builder::new().name("end".to_owned()).spawn(|| {
        let mut rest = [0; 64];
        while io::stdin().read(&mut rest).is_ok_and(|count| count > 0) {}
        // Nothing is written by halves: the server has gone.
        std::process::exit(0);
    })?;
    let targets = Target::all(&fabric::inventory(arguments.fabric.as_ref())?)?;
    std::thread::Builder::new()
        .name("devices".to_owned())
        .spawn(move || each_again(targets, MAX_AT_ONCE, read))?;
    let interval = Duration::from_nanos(arguments.interval.0).max(MIN_INTERVAL);
    let every = Duration::from_nanos(arguments.doctor_every.0);
    let checks = checks::Source::new(&arguments.host);
    let mut gpus = None;
    let mut checked: Option<Instant> = None;
    loop {
        let begun = Instant::now();
        if checked.is_none_or(|checked| checked.elapsed() >= every) {
            checked = Some(begun);
            let mut exposition = Exposition::default();
            if checks.add(&mut exposition) {
                print("doctor", &exposition, begun, true)?;
            }
            // A driver may have been loaded since.
            gpus = gpus.or_else(|| gpus::Source::new(&arguments.host, Some(interval)));
        }
        if let Some(source) = &mut gpus {
            let begun = Instant::now();
            let mut exposition = Exposition::default();
            source.refresh(interval);
            if source.add(&mut exposition) {
                print("gpu", &exposition, begun, true)?;
            }
        }
        std::thread::sleep(interval.saturating_sub(begun.elapsed()));
    }
}

/// Reads a switch or hypervisor once. The result is the time until the next reading, as long as there is a server.
fn read(target: &mut Target) -> Option<Duration> {
    let begun = Instant::now();
    let mut exposition = Exposition::default();
    let is_up = target.add(&mut exposition);
    let printed = print(&target.about.collector, &exposition, begun, is_up);
    printed.is_ok().then_some(target.about.every)
}

/// One reading as a line.
fn print(collector: &str, exposition: &Exposition, begun: Instant, is_success: bool) -> io::Result<()> {
    let line = json!({
        "collector": collector,
        "success": is_success,
        "seconds": begun.elapsed().as_secs_f64(),
        "prometheus": exposition.part(Format::Prometheus),
        "open_metrics": exposition.part(Format::OpenMetrics),
        "left_out": exposition.left_out(),
    });
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
