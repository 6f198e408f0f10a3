//! The command `roce-analyze`: arguments become a run, a run becomes results.

mod align;
mod args;
mod choices;
mod compare;
mod config;
mod dcqcn;
mod decode;
mod demo;
mod devices;
mod dscp;
mod duration;
mod explain;
#[cfg(feature = "parquet")]
mod folder;
mod inputs;
#[cfg(feature = "live")]
mod live;
mod neighbours;
mod pipeline;
mod processes;
mod progress;
mod rate;
#[cfg_attr(not(feature = "live"), path = "without_replay.rs")]
mod replay;
#[cfg(feature = "parquet")]
mod report;
mod run;
#[cfg(feature = "live")]
mod screen;
mod simulate;
mod span;
#[cfg(feature = "parquet")]
mod stored;
mod taps;
mod training;
#[cfg(feature = "live")]
mod watch;

use std::io::Write;
use std::process::ExitCode;

use anstream::stream::IsTerminal;
use clap::{CommandFactory, Parser};

use args::{Arguments, Command};
use pipeline::Plan;
use roce_capture::Merge;
use roce_flow::{Options, Settings};
use roce_model::{Sink, SinkError, Totals};

/// Runs the command with the arguments of the process.
///
/// Exit codes: 0 done, 1 a finding at or over `--fail-on`, 2 an error (also when one of several inputs failed).
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        #[cfg(feature = "live")]
        Some(Command::Live(arguments)) => live::live(arguments),
        #[cfg(feature = "live")]
        Some(Command::Replay(arguments)) => replay::replay(arguments),
        #[cfg(feature = "parquet")]
        Some(Command::Report(arguments)) => report::report(arguments),
        Some(Command::Compare(arguments)) => compare::compare(arguments),
        Some(Command::Devices(arguments)) => devices::devices(arguments),
        Some(Command::Simulate(arguments)) => simulate::simulate(arguments),
        Some(Command::Completions { shell }) => completions(*shell),
        Some(Command::Demo(arguments)) => demo::demo(arguments),
        Some(Command::Man) => man(),
        None => match &arguments.analyse.explain {
            Some(id) => explain(id, &arguments.analyse),
            None => run::run(&arguments.analyse),
        },
    };
    match result {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::from(2)
        }
    }
}

/// The command line: subcommands, options and their help. For tests that hold documents to it.
pub fn command_line() -> clap::Command {
    Arguments::command()
}

/// Analyses captures without a command line, on `threads` threads: for tests that bring their own bytes and sinks.
/// Inputs that fail end early, as they do on the command line; their errors are not told.
///
/// # Errors
/// When a sink fails.
pub fn analyse(
    merge: Merge,
    threads: u32,
    options: Options,
    sinks: Vec<&mut dyn Sink>,
) -> Result<Totals, SinkError> {
    let plan = Plan {
        threads: threads.max(1),
        options,
        settings: Settings {
            bin: options.bin,
            link_rate: options.link_rate,
            ..Settings::default()
        },
        filter: None,
        processes: processes::Processes::default(),
        range: 0..u64::MAX,
        lags: Vec::new(),
        match_taps: merge.readers().len() > 1,
        apart: std::sync::Arc::default(),
    };
    let (done, _) = pipeline::run(merge, &plan, sinks, |_| ())?;
    Ok(done.totals())
}

/// Analyses captures as the command does: `arguments` are those of its command line, without the program's name.
/// `sink` gets everything, too. For tests that want rows instead of text; `--format none` leaves that away.
///
/// # Errors
/// When the arguments are not understood, no capture can be read, or a sink fails.
pub fn analyse_as_told<I>(arguments: I, sink: &mut dyn Sink) -> Result<ExitCode, SinkError>
where
    I: IntoIterator<Item = std::ffi::OsString>,
{
    let program = std::ffi::OsString::from("roce-analyze");
    let arguments = Arguments::try_parse_from(std::iter::once(program).chain(arguments))?;
    Ok(run::run_beside(&arguments.analyse, Some(sink))?)
}

/// Gives `sink` the results that a run wrote to `dir` with `-o`, as that run gave them. For tests that compare both.
///
/// # Errors
/// When the folder does not hold whole results of this version, or the sink fails.
#[cfg(feature = "parquet")]
pub fn replay_stored(dir: &std::path::Path, sink: &mut dyn Sink) -> Result<(), SinkError> {
    Ok(stored::replay(dir, sink)?)
}

/// Whoever reads our output has seen enough: not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// An error on standard error: what failed, and why.
pub(crate) fn report(error: &anyhow::Error) {
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    aside(&format!("{style}error{style:#}: {error:#}"));
}

/// A line on standard error; while there is a screen, after that.
fn aside(text: &str) {
    #[cfg(feature = "live")]
    if screen::hold(text) {
        return;
    }
    // That standard error cannot be written is nothing that could be told.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// A warning about an input on standard error.
pub(crate) fn warn(input: &str, text: &str) {
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Yellow.into()));
    aside(&format!("{style}warning{style:#}: {input}: {text}"));
}

/// Something to know of a run, on standard error.
#[cfg(feature = "probe")]
pub(crate) fn note(input: &str, text: &str) {
    let style = anstyle::Style::new().bold();
    aside(&format!("{style}note{style:#}: {input}: {text}"));
}

fn explain(id: &str, arguments: &args::Analyse) -> anyhow::Result<ExitCode> {
    let (_, thresholds) = choices::configuration(arguments.shape.config.as_deref())?;
    let text = explain::explain(id, &thresholds, run::width())?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "roce-analyze", &mut out);
    std::io::stdout().write_all(&out)?;
    Ok(ExitCode::SUCCESS)
}

fn man() -> anyhow::Result<ExitCode> {
    let mut out = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut out)?;
    std::io::stdout().write_all(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether standard error is a terminal, for the progress bar.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}
