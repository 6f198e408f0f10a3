//! `fleet run`: a command on all hosts; each line of its output has the host's name in front.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Args;
use roce_model::Span;
use roce_model::text::clean;
use roce_remote::{RemoteError, SessionLine, each, quoted};

use super::interrupt::Interrupts;
use super::targets::{Target, exit_code, targets};
use crate::options::duration::parse_duration;
use crate::options::fabric::InventoryFile;
use crate::options::size::parse_size;
use crate::output::messages;

/// Hosts at once.
const MAX_AT_ONCE: usize = 64;
/// Period of looking at interruptions.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of a host's output, unless another limit is given: 64 MB.
const MAX_OUTPUT: &str = "64MB";
/// Time for the end of ssh behind the end of the output.
const FINISH_PATIENCE: Duration = Duration::from_secs(30);

/// Runs a command whose standard error joins its output, so that lines of both are in order. It ends when standard input does: a host that
/// is given up, or loses its connection, keeps no process. The number is that of a child that was not waited for: nobody else has it.
const FOLLOWED: &str = "\
exec 3<&0 2>&1 < /dev/null
COMMAND &
pid=$!
(cat <&3; kill $pid) > /dev/null 2>&1 &
watch=$!
wait $pid
code=$?
kill $watch 2> /dev/null
exit $code
";

/// Run a command on all hosts; each line of output has the host's name in front
///
/// Its arguments are quoted: pipes and variables need `sh -c '...'`. The exit code is 0 if it succeeded on all hosts, 1 on some, 2 on none.
#[derive(Args, Debug)]
pub(super) struct Run {
    /// Hosts [default: all of the inventory]
    #[arg(value_name = "HOST")]
    names: Vec<String>,

    #[command(flatten)]
    inventory: InventoryFile,

    /// Give a host up after this time
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = parse_duration)]
    timeout: Span,

    /// Give a host up after this much output
    #[arg(long, value_name = "SIZE", default_value = MAX_OUTPUT, value_parser = parse_size)]
    max_output: u64,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(arguments: &Run) -> anyhow::Result<ExitCode> {
    let targets = targets(&arguments.inventory, &arguments.names)?;
    let words = quoted(arguments.command.iter().map(String::as_str))?;
    let script = FOLLOWED.replace("COMMAND", &words);
    let width = targets
        .iter()
        .map(|target| target.name().chars().count())
        .max()
        .unwrap_or(0);
    let patience = Duration::from_nanos(arguments.timeout.0);
    let output = Mutex::new(anstream::stdout());
    let interrupts = Interrupts::default();
    let good = interrupts.over(|| {
        let results = each(&targets, MAX_AT_ONCE, |_, target| {
            let print = |line: &str| {
                let mut output = output.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let name = clean(target.name());
                // A reader that has gone away is no error of the hosts.
                let _ = writeln!(output, "{name:width$}  {}", clean(line));
            };
            let result = one(
                target,
                &script,
                (patience, arguments.max_output),
                &interrupts,
                &print,
            );
            if let Err(error) = &result {
                messages::error(&format!("{}: {error}", target.name()));
            }
            result.is_ok()
        });
        Ok(results.iter().filter(|good| **good).count())
    })?;
    Ok(exit_code(good, targets.len()))
}

/// Runs the script on one host.
fn one(
    target: &Target,
    script: &str,
    (patience, max_output): (Duration, u64),
    interrupts: &Interrupts,
    print: &dyn Fn(&str),
) -> Result<(), RemoteError> {
    // Whoever interrupts may have seen that the command is wrong.
    if interrupts.ends_captures() {
        return Err(RemoteError::Interrupted);
    }
    let mut session = target.machine.session(script)?;
    let begun = Instant::now();
    let mut bytes = 0_u64;
    loop {
        match session.line(LOOK) {
            SessionLine::Text(line) => {
                // Its end is a byte, too.
                bytes = bytes.saturating_add(line.len() as u64 + 1);
                if bytes > max_output {
                    return Err(RemoteError::TooMuch(max_output));
                }
                print(&line);
            }
            SessionLine::Silence => {}
            SessionLine::Closed => break,
        }
        if begun.elapsed() > patience {
            return Err(RemoteError::NoAnswer(patience));
        }
        if interrupts.ends_captures() {
            return Err(RemoteError::Interrupted);
        }
    }
    session.finish(FINISH_PATIENCE)
}
