//! Readings that start programs or open sockets, for `metrics serve`: checks of `doctor`, GPUs, switches and hypervisors.
//!
//! The server talks to the network, so it may do neither. It starts this process before it gives that up, and reads a line of JSON for each
//! reading from its standard output. Both processes here end when the server's end of their standard input is closed.
//!
//! There are two, because the server can start none once it serves: the keeper starts the reader and waits for it; the reader becomes the
//! keeper where that one has gone. So whichever ends is replaced, and the server is told.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use roce_metrics::{Exposition, Format};
use roce_model::Span;
use roce_remote::each_again;
use rustix::process::{Pid, getppid};
use serde_json::json;

use super::fabric::Target;
use super::host::HostArguments;
use super::{checks, fabric, gpus};
use crate::options::duration::parse_duration;
use crate::options::fabric::MAX_AT_ONCE;
use crate::own_process::own_process;

/// Shortest time between two readings of GPUs.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Time until the reader is started again, at first and at most: twice as long each time, unless it went on for longer than that.
const DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];
/// How often the reader looks at whether its keeper is there.
const LOOK: Duration = Duration::from_millis(250);
/// The option by which the keeper starts the reader.
const KEEPER: &str = "--keeper";

/// Print readings of checks and GPUs for `metrics serve`
#[derive(Args, Debug)]
pub(super) struct Collect {
    #[command(flatten)]
    host: HostArguments,

    /// Time between two readings of GPUs
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    interval: Span,

    /// Time between two runs of all checks
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    doctor_every: Span,

    /// The inventory of switches and hypervisors
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// The process that waits for this one, which reads
    #[arg(long, value_name = "PID")]
    keeper: Option<i32>,
}

/// Reads, or keeps a reader, until the server has gone.
pub(super) fn collect(arguments: &Collect) -> anyhow::Result<ExitCode> {
    std::thread::Builder::new().name("end".to_owned()).spawn(|| {
        let mut rest = [0; 64];
        while io::stdin().read(&mut rest).is_ok_and(|count| count > 0) {}
        // Nothing is written by halves: the server has gone.
        std::process::exit(0);
    })?;
    match arguments.keeper {
        Some(keeper) => {
            let thread = std::thread::Builder::new().name("keeper".to_owned());
            thread.spawn(move || watch(keeper))?;
            read_on(arguments)
        }
        None => keep(),
    }
}

/// The arguments of this process without its keeper.
fn own_arguments() -> Vec<OsString> {
    let all = std::env::args_os().skip(1);
    all.take_while(|argument| argument != KEEPER).collect()
}

/// Starts the reader, again and again.
fn keep() -> anyhow::Result<ExitCode> {
    let [least, most] = DELAYS;
    let mut delay = least;
    loop {
        let begun = Instant::now();
        let mut command = own_process();
        command.args(own_arguments()).arg(KEEPER);
        command.arg(std::process::id().to_string());
        let ended = command
            .stdin(Stdio::inherit())
            .spawn()
            .and_then(|mut reader| reader.wait());
        if begun.elapsed() > most {
            delay = least;
        }
        say_end(
            &ended.map_or_else(|error| error.to_string(), |status| status.to_string()),
            delay,
        )?;
        std::thread::sleep(delay);
        delay = (delay * 2).min(most);
    }
}

/// Becomes the keeper where it has gone.
fn watch(keeper: i32) {
    while getppid().map(Pid::as_raw_pid) == Some(keeper) {
        std::thread::sleep(LOOK);
    }
    let [delay, _] = DELAYS;
    if say_end("its keeper has gone", delay).is_err() {
        std::process::exit(0);
    }
    std::thread::sleep(delay);
    // No line is cut.
    let _out = io::stdout().lock();
    let error = own_process().args(own_arguments()).exec();
    drop(error);
    std::process::exit(2);
}

/// Tells the server that the reader has ended, and in how many seconds it is started again.
fn say_end(how: &str, delay: Duration) -> io::Result<()> {
    let line = json!({ "ended": how, "again_in": delay.as_secs() });
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Reads until the server has gone.
fn read_on(arguments: &Collect) -> anyhow::Result<ExitCode> {
    let targets = Target::all(&fabric::inventory(arguments.inventory.as_ref())?)?;
    std::thread::Builder::new()
        .name("devices".to_owned())
        .spawn(move || each_again(targets, MAX_AT_ONCE, read))?;
    let interval = Duration::from_nanos(arguments.interval.0).max(MIN_INTERVAL);
    let every = Duration::from_nanos(arguments.doctor_every.0);
    let checks = checks::CheckedHost::new(&arguments.host);
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
            gpus = gpus.or_else(|| gpus::GpuSource::new(&arguments.host, Some(interval)));
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
