//! The command `roce-analyze`: arguments become a run, a run becomes results.

mod command;
mod options;
mod output;
mod sandbox;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use roce_model::text::clean;
use roce_model::{Sink, SinkError};

use command::compare::Compare;
#[cfg(feature = "sim")]
use command::demo::Demo;
use command::devices::Devices;
#[cfg(feature = "live")]
use command::live::Live;
#[cfg(feature = "live")]
use command::replay::Replay;
#[cfg(feature = "parquet")]
use command::report::Report;
#[cfg(feature = "sim")]
use command::simulate::Simulate;
use options::arguments::Analyse;
use output::messages;

/// Per-flow congestion timelines of RoCEv2 traffic.
///
/// Reads captures of RDMA traffic and says who slowed whom, when and why: ECN marks, congestion notifications,
/// losses and what they cost, pauses, receivers that were not ready; flow by flow, with the evidence.
#[derive(Parser, Debug)]
#[command(
    name = "roce-analyze",
    version,
    about,
    long_about,
    args_conflicts_with_subcommands = true
)]
#[command(
    after_help = "Several captures are one run, merged by time. A capture whose name equals a subcommand is \
given as ./NAME.\n\nExit codes: 0 done, 1 a finding at or over --fail-on, 2 an error (one bad input does not stop the others).\n\nEnvironment: COLUMNS is the width of \
the text; NO_COLOR and CLICOLOR_FORCE switch its colours off and on; SOURCE_DATE_EPOCH is the time at which a run says that it began, so that \
two runs give the same bytes."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    analyse: Analyse,
}

impl Arguments {
    /// True of runs that read what others made (captures, recordings, stored results), and need no device and no other program for it.
    fn is_confined(&self) -> bool {
        match &self.command {
            #[cfg(feature = "live")]
            Some(Command::Replay(_)) => true,
            #[cfg(feature = "parquet")]
            Some(Command::Report(_)) => true,
            Some(Command::Compare(_)) | None => true,
            Some(_) => false,
        }
    }
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Teaching scenarios: simulate a network, analyse its capture, explain what one sees
    #[cfg(feature = "sim")]
    Demo(Demo),
    /// Analyse devices while they are captured from
    #[cfg(feature = "live")]
    Live(Box<Live>),
    /// Replay captures, or a recorded live run, on the live screen at their pace
    #[cfg(feature = "live")]
    Replay(Box<Replay>),
    /// Make the HTML page of results that -o wrote
    #[cfg(feature = "parquet")]
    Report(Report),
    // What it is stands with its options.
    Compare(Box<Compare>),
    /// List interfaces and RDMA devices, and what can be captured there
    Devices(Devices),
    /// Make a capture of a scenario, and what really happened in it
    #[cfg(feature = "sim")]
    Simulate(Simulate),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// Runs the command with the arguments of the process.
///
/// Exit codes: 0 done, 1 a finding at or over `--fail-on`, 2 an error (also when one of several inputs failed).
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refused(&error),
    };
    if arguments.is_confined() {
        sandbox::offline();
    }
    let result = match &arguments.command {
        #[cfg(feature = "live")]
        Some(Command::Live(arguments)) => command::live::live(arguments),
        #[cfg(feature = "live")]
        Some(Command::Replay(arguments)) => command::replay::replay(arguments),
        #[cfg(feature = "parquet")]
        Some(Command::Report(arguments)) => command::report::report(arguments),
        Some(Command::Compare(arguments)) => command::compare::compare(arguments),
        Some(Command::Devices(arguments)) => command::devices::devices(arguments),
        #[cfg(feature = "sim")]
        Some(Command::Simulate(arguments)) => command::simulate::simulate(arguments),
        Some(Command::Completions { shell }) => completions(*shell),
        #[cfg(feature = "sim")]
        Some(Command::Demo(arguments)) => command::demo::demo(arguments),
        Some(Command::Man) => man(),
        None => match &arguments.analyse.explain {
            Some(id) => command::explain::print(id, &arguments.analyse),
            None => command::analyse::run(&arguments.analyse),
        },
    };
    match result {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            messages::report(&error);
            ExitCode::from(2)
        }
    }
}

/// Says why the arguments of the process are not understood, or gives the help that they request.
fn refused(error: &clap::Error) -> ExitCode {
    // The error quotes arguments, among escape sequences of its own. Parsed again, clean ones give it again without theirs.
    let arguments = std::env::args_os().map(|argument| clean(&argument.to_string_lossy()).into_owned());
    match Arguments::try_parse_from(arguments) {
        // That nothing can be written is nothing that could be told.
        Err(error) => drop(error.print()),
        Ok(_) => messages::error(
            error
                .kind()
                .as_str()
                .unwrap_or("the arguments are not understood"),
        ),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// The command line: subcommands, options and their help. For tests that hold documents to it.
pub fn command_line() -> clap::Command {
    Arguments::command()
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
    Ok(command::analyse::run_beside(&arguments.analyse, Some(sink))?)
}

/// Whoever reads our output has seen enough: not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
