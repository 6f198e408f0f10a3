//! The command `roce-analyze`: arguments become a run, a run becomes results.

mod command;
#[cfg(feature = "live")]
mod extcap;
#[cfg(fuzzing)]
pub mod fuzzing;
mod limits;
#[cfg(feature = "object-store")]
mod objects;
mod options;
mod output;
mod own_process;
mod sandbox;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{CommandFactory, Parser};
use roce_model::text::{clean, shell_word};
use roce_model::{Sink, SinkError};

use command::Command;
use command::compare::is_recording;
#[cfg(not(feature = "object-store"))]
use command::invocation::Places;
#[cfg(not(feature = "object-store"))]
use command::invocation::is_elsewhere;
use command::invocation::{Invocation, Rights, RunCommand as _};
use options::arguments::Analyse;
use options::nearest::near;
use options::old_words;
use output::{messages, overview};

/// Examples and the last lines of all help.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze a.pcap                                       the verdict on a capture
  roce-analyze host7.pcap host9.pcap -o results             two points, with a report
  roce-analyze a.pcap --flow '10.0.0.5 > 10.0.0.7 QP 0x11'  one flow, by its printed name
  roce-analyze a.pcap --fail-on loss.network                exit code 1 on network loss
  roce-analyze explain loss.network                         a finding's meaning and rule
  roce-analyze demo incast                                  a lesson with a simulated capture

Several captures are one run, merged by time. Write ./NAME for a capture whose name equals a command.

Exit codes: 0 done, 1 a finding that --fail-on names, 2 an error (one bad input does not stop the others).

Environment: COLUMNS is the width of the text; NO_COLOR and CLICOLOR_FORCE switch its colours off and on; \
SOURCE_DATE_EPOCH replaces the start time of a run, so that two runs give the same bytes. \
Where outputs are in an object store, AWS_*, GOOGLE_* and AZURE_* name its account. TMPDIR is the folder for what DuckDB writes.";

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
#[command(after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    analyse: Analyse,
}

/// Looks for a standard output, before Rust's runtime starts.
pub extern "C" fn before_runtime() {
    limits::look_at_output();
}

/// Runs the command with the arguments of the process.
///
/// Exit codes: 0 done, 1 a finding that `--fail-on` names, 2 an error (also when one of several inputs failed).
pub fn main() -> ExitCode {
    limits::hear();
    if let Some(error) = limits::no_output() {
        messages::report(&error);
        return ExitCode::from(2);
    }
    if let Some(code) = command::completions::answer(command_line) {
        return code;
    }
    #[cfg(feature = "live")]
    if extcap::is_wanted(std::env::args_os().skip(1)) {
        return extcap::run(std::env::args_os()).unwrap_or_else(|error| {
            messages::report(&error);
            ExitCode::from(2)
        });
    }
    if overview::is_wanted(std::env::args_os().skip(1)) {
        let text = overview::overview(&Arguments::command());
        return ended(printed(&text));
    }
    let (words, replaced) = old_words::replaced(std::env::args_os().collect());
    for (old, new) in replaced {
        messages::warn(
            &old,
            &format!("an old spelling, for one more release; the new one is {new}"),
        );
    }
    let mut arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) if is_long_version(&error) => {
            return ended(printed(&command::version::text()));
        }
        Err(error) => return refused(&error, &words),
    };
    roce_capture::on_bomb(|file, expanded, stored| {
        messages::warn(
            file,
            &format!(
                "decompressed it has {expanded} bytes so far, of {stored}: it may be made to take time\nhint: --max-input limits it"
            ),
        );
    });
    ended(run(&mut arguments))
}

/// The exit code of an outcome. A text that nobody reads to its end is no error.
fn ended(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            messages::report(&error);
            ExitCode::from(2)
        }
    }
}

/// Writes a text that was requested to standard output.
fn printed(text: &str) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the command that the arguments name, or the analysis of captures.
fn run(arguments: &mut Arguments) -> anyhow::Result<ExitCode> {
    let places = match &mut arguments.command {
        Some(command) => command.places(),
        None => arguments.analyse.places(),
    };
    #[cfg(not(feature = "parquet"))]
    refuse_results(&places)?;
    #[cfg(not(feature = "object-store"))]
    refuse_urls(&places)?;
    // Another process connects to stores: it has to be there before this one can start none.
    #[cfg(feature = "object-store")]
    let objects = objects::ObjectRun::prepare(places)?;
    let rights = arguments
        .command
        .as_ref()
        .map_or(Analyse::RIGHTS, Command::rights);
    if rights == Rights::Files {
        sandbox::offline();
    }
    let invocation = Invocation { command_line };
    let code = if let Some(command) = &arguments.command {
        command.run(&invocation)?
    } else {
        let captures = &arguments.analyse.run.captures;
        if let Some(error) = mistaken_command(captures).or_else(|| mistaken_folder(captures)) {
            return Err(error);
        }
        arguments.analyse.run(&invocation)?
    };
    #[cfg(feature = "object-store")]
    objects.finish()?;
    Ok(code)
}

/// True where the arguments request the version in its long form: `-V` requests one line.
fn is_long_version(error: &clap::Error) -> bool {
    error.kind() == clap::error::ErrorKind::DisplayVersion
        && std::env::args_os().any(|argument| argument == "--version")
}

/// Says why the arguments of the process are not understood, or gives the help that they request.
fn refused(error: &clap::Error, words: &[std::ffi::OsString]) -> ExitCode {
    // The error quotes arguments, among escape sequences of its own. Parsed again, clean ones give it again without theirs.
    let arguments = words
        .iter()
        .map(|word| clean(&word.to_string_lossy()).into_owned());
    match Arguments::try_parse_from(arguments) {
        // A message for which standard error cannot be written is dropped.
        Err(error) if error.use_stderr() => drop(error.print()),
        Err(help) => return ended(help.print().map(|()| ExitCode::SUCCESS).map_err(Into::into)),
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

/// Analyses captures as the command does: `arguments` are those of its command line, without the
/// program's name. `sink` gets everything, too. For tests that need rows instead of text; `--format
/// none` suppresses the text.
///
/// # Errors
/// When the arguments are not understood, no capture can be read, or a sink fails.
pub fn analyse_arguments<I>(arguments: I, sink: &mut dyn Sink) -> Result<ExitCode, SinkError>
where
    I: IntoIterator<Item = std::ffi::OsString>,
{
    let program = std::ffi::OsString::from("roce-analyze");
    let (words, _) = old_words::replaced(std::iter::once(program).chain(arguments).collect());
    let arguments = Arguments::try_parse_from(words)?;
    Ok(command::analyse::run(&arguments.analyse, Some(sink))?)
}

/// The reader of the output has closed it: not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// An error for a first argument that is no capture and looks like a command, with the command that may be meant.
fn mistaken_command(captures: &[PathBuf]) -> Option<anyhow::Error> {
    let first = captures.first()?;
    let word = first.to_str()?;
    if word == "-" || word.contains(['.', '/']) || first.exists() {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let second = captures.get(1).and_then(|path| path.to_str());
    let hint = match lower.as_str() {
        "probe" => "the probe is a part of live captures: roce-analyze live -i DEVICE --probe".to_owned(),
        "qp" | "qpn" | "flow" | "flows" => {
            format!(
                "one flow of a capture: roce-analyze CAPTURE --flow \"qpn {}\"",
                second.unwrap_or("0x11")
            )
        }
        "analyze" | "analyse" | "summary" | "read" => {
            "captures need no command: roce-analyze CAPTURE...".to_owned()
        }
        "capture" | "sniff" => "roce-analyze live -i DEVICE -w FILE".to_owned(),
        "diff" => "did you mean 'compare'?".to_owned(),
        "list" | "interfaces" => "did you mean 'devices'?".to_owned(),
        "version" => "roce-analyze --version".to_owned(),
        _ => {
            let command = Arguments::command();
            let names = command.get_subcommands().map(clap::Command::get_name);
            near(&lower, names).map_or_else(
                || "roce-analyze --help lists the commands".to_owned(),
                |name| format!("did you mean '{name}'?"),
            )
        }
    };
    Some(anyhow!(
        "{word}: neither a capture that exists nor a command\nhint: {hint}"
    ))
}

/// Refuses URLs in a build without object stores.
#[cfg(not(feature = "object-store"))]
fn refuse_urls(places: &Places<'_>) -> anyhow::Result<()> {
    let paths = places.captures.iter().map(|path| &**path);
    match paths
        .chain(places.results.as_ref().map(|results| &*results.path))
        .find(|path| is_elsewhere(path))
    {
        Some(url) => Err(anyhow!(
            "{}: this roce-analyze was built without object stores\nhint: build it with `--features object-store`",
            url.display()
        )),
        None => Ok(()),
    }
}

/// Refuses `-o` in a build without datasets.
#[cfg(not(feature = "parquet"))]
fn refuse_results(places: &Places<'_>) -> anyhow::Result<()> {
    match &places.results {
        Some(_) => Err(messages::no_datasets()),
        None => Ok(()),
    }
}

/// An error for a folder in the place of the only capture, unless it has a recorded run.
fn mistaken_folder(captures: &[PathBuf]) -> Option<anyhow::Error> {
    let [folder] = captures else { return None };
    if !folder.is_dir() || is_recording(folder) {
        return None;
    }
    #[cfg(feature = "live")]
    if command::joined::is_fleet(folder) {
        return None;
    }
    let path = folder.to_string_lossy();
    let hint = if folder.join("run.json").is_file() {
        format!(
            "the page of its results: roce-analyze report {}",
            shell_word(&path)
        )
    } else {
        format!(
            "give the captures in it: roce-analyze {}/*.pcap*",
            shell_word(&path)
        )
    };
    Some(anyhow!("{path}: a folder, not a capture\nhint: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// Commands that have no commands below them, without hidden ones.
    fn leaves(command: &clap::Command) -> usize {
        let below = command.get_subcommands().filter(|command| !command.is_hide_set());
        below.map(|command| leaves(command).max(1)).sum()
    }

    /// How the parser ends with a command line of old words and a request for help; and the words that it got.
    #[cfg(feature = "live")]
    fn parsed(words: &[&str]) -> (clap::error::ErrorKind, Vec<String>) {
        let words = std::iter::once("roce-analyze").chain(words.iter().copied());
        let (words, said) = old_words::replaced(words.chain(["--help"]).map(Into::into).collect());
        assert_eq!(said.len(), 1, "{words:?}: {said:?}");
        let error = Arguments::try_parse_from(&words).unwrap_err();
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        (error.kind(), words.collect())
    }

    #[test]
    #[cfg(feature = "live")]
    fn every_old_spelling_is_understood() {
        use clap::error::ErrorKind;
        for (old, new) in old_words::COMMANDS {
            let line = command_line();
            let mut command = new.iter().take_while(|word| !word.starts_with('-')).take(2);
            let is_here = command
                .try_fold(&line, |line, word| line.find_subcommand(word))
                .is_some();
            // The commands of another build.
            if !is_here && new[0] == "dataset" {
                continue;
            }
            let (kind, words) = parsed(old);
            assert_eq!(kind, ErrorKind::DisplayHelp, "{words:?}");
            assert!(
                words[1..].iter().zip(*new).all(|(word, new)| word == new),
                "{words:?}"
            );
        }
        let values = [
            "1",
            "2026-01-01",
            "2026-01-01T00:00:00Z",
            "nccl.busbw>=1GB/s",
            "list",
        ];
        let options = old_words::OPTIONS
            .iter()
            .map(|option| (option.command, option.old));
        for (command, old) in options.chain(old_words::EXPLANATIONS.iter().copied()) {
            let is_understood = |value: &&str| {
                let has_value = old != "--strict";
                let words = [old, value];
                // An option of a command with commands below it is one of theirs.
                let line = command_line();
                let named = command
                    .iter()
                    .try_fold(&line, |line, word| line.find_subcommand(word));
                let below = named.into_iter().flat_map(clap::Command::get_subcommands);
                let below: Vec<&str> = below.map(clap::Command::get_name).collect();
                let is_taken = |below: &[&str]| {
                    let (kind, _) = parsed(&[command, below, &words[..=usize::from(has_value)]].concat());
                    kind == ErrorKind::DisplayHelp
                };
                is_taken(&[]) || !command.is_empty() && below.iter().any(|name| is_taken(&[name]))
            };
            let is_of_this_build = cfg!(feature = "parquet") || command != ["dataset", "compact"];
            assert!(
                !is_of_this_build || values.iter().any(is_understood),
                "{command:?} {old}"
            );
        }
    }

    #[test]
    fn there_are_few_commands() {
        let count = leaves(&command_line());
        assert!(count <= 35, "{count} commands: which two are one?");
    }

    #[test]
    fn words_that_look_like_commands_get_a_hint() {
        let hint = |words: &[&str]| {
            let paths: Vec<PathBuf> = words.iter().map(PathBuf::from).collect();
            mistaken_command(&paths).map(|error| error.to_string())
        };
        for (words, expected) in [
            (&["dmeo"][..], "did you mean 'demo'?"),
            (&["replya"], "did you mean 'replay'?"),
            (&["probe"], "--probe"),
            (&["qp", "0x11"], "--flow \"qpn 0x11\""),
            (&["nosuchthing"], "roce-analyze --help lists the commands"),
        ] {
            let hint = hint(words).unwrap_or_default();
            assert!(hint.contains(expected), "{words:?}: {hint}");
        }
        for capture in ["missing.pcap", "./live", "-", "src"] {
            assert_eq!(hint(&[capture]), None, "{capture}");
        }
        assert_eq!(hint(&[]), None);
    }
}
