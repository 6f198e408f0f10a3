//! The command `roce-analyze`: arguments become a run, a run becomes results.

mod command;
#[cfg(fuzzing)]
pub mod fuzzing;
mod limits;
#[cfg_attr(not(feature = "object-store"), path = "without_objects.rs")]
mod objects;
mod options;
mod output;
mod own_process;
mod sandbox;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::{CommandFactory, Parser, Subcommand};
use roce_files::{Access, Directory, FilePlace};
use roce_model::text::{clean, shell_word};
use roce_model::{Sink, SinkError};

use command::annotate::Annotate;
use command::compare::{Compare, is_recording};
#[cfg(feature = "sim")]
use command::demo::Demo;
use command::devices::Devices;
#[cfg(feature = "probe")]
use command::doctor::Doctor;
#[cfg(feature = "probe")]
use command::fabric::Fabric;
#[cfg(feature = "probe")]
use command::fleet::Fleet;
#[cfg(feature = "probe")]
use command::host::Host;
use command::joined::is_fleet;
#[cfg(feature = "live")]
use command::live::Live;
#[cfg(feature = "probe")]
use command::metrics::Metrics;
use command::query::Query;
#[cfg(feature = "live")]
use command::replay::Replay;
#[cfg(feature = "parquet")]
use command::report::Report;
#[cfg(feature = "sim")]
use command::simulate::Simulate;
use command::traffic::Traffic;
use objects::ObjectRun;
use options::arguments::Analyse;
use options::nearest::near;
use output::{messages, overview};

/// The name of the command.
const PROGRAM: &str = "roce-analyze";

/// Examples and the last lines of all help.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze a.pcap                                       the verdict on a capture
  roce-analyze host7.pcap host9.pcap -o results             two points, with a report
  roce-analyze a.pcap --flow '10.0.0.5 > 10.0.0.7 QP 0x11'  one flow, by its printed name
  roce-analyze a.pcap --fail-on loss.network                exit code 1 on network loss
  roce-analyze --explain loss.network                       a finding's meaning and rule
  roce-analyze demo incast                                  a lesson with a simulated capture

Several captures are one run, merged by time. Write ./NAME for a capture whose name equals a command.

Exit codes: 0 done, 1 a finding that --fail-on names, 2 an error (one bad input does not stop the others).

Environment: COLUMNS is the width of the text; NO_COLOR and CLICOLOR_FORCE switch its colours off and on; \
SOURCE_DATE_EPOCH replaces the start time of a run, so that two runs give the same bytes.";

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

impl Arguments {
    /// True of runs that read what others made (captures, recordings, stored results), and need no device and no other program for it.
    fn is_confined(&self) -> bool {
        match &self.command {
            #[cfg(feature = "live")]
            Some(Command::Replay(_)) => true,
            #[cfg(feature = "parquet")]
            Some(Command::Report(_)) => true,
            #[cfg(feature = "probe")]
            Some(Command::Doctor(arguments)) => arguments.is_offline(),
            Some(Command::Annotate(_) | Command::Compare(_)) | None => true,
            Some(_) => false,
        }
    }
}

impl Arguments {
    /// Prepares for captures and results of this command line that are objects of stores.
    fn prepare_objects(&mut self) -> anyhow::Result<ObjectRun> {
        match &mut self.command {
            #[cfg(feature = "live")]
            Some(Command::Replay(replay)) => {
                ObjectRun::prepare(&mut replay.analyse.run.captures, &mut None, false)
            }
            Some(Command::Annotate(annotate)) => ObjectRun::prepare(&mut annotate.captures, &mut None, false),
            Some(Command::Compare(compare)) => {
                let mut sides = [compare.a.clone(), compare.b.clone()];
                let objects = ObjectRun::prepare(&mut sides, &mut None, false)?;
                [compare.a, compare.b] = sides;
                Ok(objects)
            }
            None => {
                let analyse = &mut self.analyse;
                let objects =
                    ObjectRun::prepare(&mut analyse.run.captures, &mut analyse.output, analyse.overwrite)?;
                analyse.is_output_elsewhere = objects.has_objects();
                Ok(objects)
            }
            Some(_) => Ok(ObjectRun::default()),
        }
    }
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a lesson: simulate a network, analyse its capture, explain what the packets show
    #[cfg(feature = "sim")]
    Demo(Demo),
    /// Capture from devices and analyse at the same time
    #[cfg(feature = "live")]
    Live(Box<Live>),
    /// Replay captures, or a recorded live run, on the live screen
    #[cfg(feature = "live")]
    Replay(Box<Replay>),
    /// Make the HTML page of results that -o wrote
    #[cfg(feature = "parquet")]
    Report(Report),
    // As above.
    Annotate(Box<Annotate>),
    // Its options have the description.
    Query(Query),
    // Its options have the description.
    Compare(Box<Compare>),
    #[cfg(feature = "object-store")]
    #[command(hide = true)]
    Objects(objects::ServeArguments),
    // For children of this program alone.
    #[command(hide = true)]
    Beside(command::beside::Beside),
    /// List interfaces and RDMA devices, and what can be captured there
    Devices(Devices),
    // Its options have the description.
    #[cfg(feature = "probe")]
    Doctor(Box<Doctor>),
    /// Read switches and hypervisors: PFC, pauses, drops, marks; print their configuration
    #[cfg(feature = "probe")]
    Fabric(Fabric),
    /// Capture on many hosts at once; run commands and checks there
    #[cfg(feature = "probe")]
    Fleet(Fleet),
    /// Show what this host's devices count: counters before and after
    #[cfg(feature = "probe")]
    Host(Host),
    /// Export this host's counters to Prometheus
    #[cfg(feature = "probe")]
    Metrics(Metrics),
    #[cfg_attr(
        feature = "probe",
        doc = "Run traffic between hosts, and read results of perftest, iperf3, nccl-tests, NCCL"
    )]
    #[cfg_attr(
        not(feature = "probe"),
        doc = "Read the results of traffic tools: perftest, iperf3, nccl-tests, PyTorch, NCCL's log"
    )]
    Traffic(Traffic),
    /// Simulate a scenario: write its capture, and the truth about it
    #[cfg(feature = "sim")]
    Simulate(Simulate),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page, or write all of them to a folder
    #[command(after_help = MAN_HELP)]
    Man {
        /// The command whose page is printed [default: the page of roce-analyze itself]
        #[arg(conflicts_with = "output")]
        command: Option<String>,

        /// Write the pages of all commands to DIR
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
}

/// Folders in which shells look for completion scripts.
const COMPLETIONS_HELP: &str = "\
Where to put the script:
  bash  roce-analyze completions bash > ~/.local/share/bash-completion/completions/roce-analyze
  zsh   roce-analyze completions zsh > ~/.zfunc/_roce-analyze
        with fpath+=~/.zfunc before compinit in ~/.zshrc
  fish  roce-analyze completions fish > ~/.config/fish/completions/roce-analyze.fish";

/// Folder in which `man` looks for pages.
const MAN_HELP: &str = "\
Where to put the pages:
  roce-analyze man -o ~/.local/share/man/man1
  man roce-analyze-live";

/// Looks for a standard output, before Rust's runtime starts.
pub extern "C" fn before_runtime() {
    limits::look_at_output();
}

/// Runs the command with the arguments of the process.
///
/// Exit codes: 0 done, 1 a finding that `--fail-on` names, 2 an error (also when one of several inputs failed).
pub fn main() -> ExitCode {
    limits::hear();
    if let Some(error) = limits::closed_output() {
        messages::report(&error);
        return ExitCode::from(2);
    }
    if overview::is_wanted(std::env::args_os().skip(1)) {
        let text = overview::overview(&Arguments::command());
        // A text that nobody reads to its end is no error.
        let _ = std::io::stdout().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    let mut arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if is_long_version(&error) => {
            let text = command::version::text();
            // As above.
            let _ = std::io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(error) => return refused(&error),
    };
    roce_capture::tell_of_bombs(|file, expanded, stored| {
        messages::warn(
            file,
            &format!(
                "decompressed it has {expanded} bytes so far, of {stored}: it may be made to take time\nhint: --max-input limits it"
            ),
        );
    });
    // Another process connects to stores: it has to be there before this one can start none.
    let objects = match arguments.prepare_objects() {
        Ok(objects) => objects,
        Err(error) => {
            messages::report(&error);
            return ExitCode::from(2);
        }
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
        Some(Command::Annotate(arguments)) => command::annotate::annotate(arguments),
        Some(Command::Compare(arguments)) => command::compare::compare(arguments),
        #[cfg(feature = "object-store")]
        Some(Command::Objects(arguments)) => objects::serve(arguments),
        Some(Command::Query(arguments)) => command::query::query(arguments),
        Some(Command::Beside(arguments)) => command::beside::beside(arguments),
        Some(Command::Devices(arguments)) => command::devices::devices(arguments),
        #[cfg(feature = "probe")]
        Some(Command::Doctor(arguments)) => command::doctor::doctor(arguments),
        #[cfg(feature = "probe")]
        Some(Command::Fabric(arguments)) => command::fabric::fabric(arguments),
        #[cfg(feature = "probe")]
        Some(Command::Fleet(arguments)) => arguments.run(),
        #[cfg(feature = "probe")]
        Some(Command::Host(arguments)) => command::host::host(arguments),
        #[cfg(feature = "probe")]
        Some(Command::Metrics(arguments)) => command::metrics::metrics(arguments),
        Some(Command::Traffic(arguments)) => command::traffic::traffic(arguments),
        #[cfg(feature = "sim")]
        Some(Command::Simulate(arguments)) => command::simulate::simulate(arguments),
        Some(Command::Completions { shell }) => completions(*shell),
        #[cfg(feature = "sim")]
        Some(Command::Demo(arguments)) => command::demo::demo(arguments),
        Some(Command::Man { command, output }) => man(command.as_deref(), output.as_deref()),
        None => {
            let analyse = &arguments.analyse;
            let mistake =
                || mistaken_command(&analyse.run.captures).or_else(|| mistaken_folder(&analyse.run.captures));
            if let Some(id) = &analyse.explain {
                command::explain::print(id, analyse)
            } else if let Some(error) = mistake() {
                Err(error)
            } else if let Some(line) = &analyse.explain_error {
                command::explain_error::explain(analyse, line)
            } else {
                command::analyse::run(analyse, None)
                    .and_then(|code| objects.finish(analyse.run.shape.quiet).map(|()| code))
            }
        }
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

/// True where the arguments request the version in its long form: `-V` requests one line.
fn is_long_version(error: &clap::Error) -> bool {
    error.kind() == clap::error::ErrorKind::DisplayVersion
        && std::env::args_os().any(|argument| argument == "--version")
}

/// Says why the arguments of the process are not understood, or gives the help that they request.
fn refused(error: &clap::Error) -> ExitCode {
    // The error quotes arguments, among escape sequences of its own. Parsed again, clean ones give it again without theirs.
    let arguments = std::env::args_os().map(|argument| clean(&argument.to_string_lossy()).into_owned());
    match Arguments::try_parse_from(arguments) {
        // A message that cannot be written is dropped.
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
    let arguments = Arguments::try_parse_from(std::iter::once(program).chain(arguments))?;
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
        "explain" => format!("roce-analyze --explain {}", second.unwrap_or("list")),
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

/// An error for a folder in the place of the only capture, unless it has a recorded run.
fn mistaken_folder(captures: &[PathBuf]) -> Option<anyhow::Error> {
    let [folder] = captures else { return None };
    if !folder.is_dir() || is_recording(folder) || is_fleet(folder) {
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

fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), PROGRAM, &mut out);
    if shell == clap_complete::Shell::Bash {
        // clap_complete writes the hyphen of a program's name in two ways (clap issues 6421 and 6529): no case fits a subcommand then.
        let name = PROGRAM.replace('-', "__subcmd__");
        let script = String::from_utf8_lossy(&out).replace(&name, &PROGRAM.replace('-', "__"));
        out = script.into_bytes();
    }
    std::io::stdout().write_all(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// A command and all commands below it, without hidden ones.
fn with_subcommands(command: &clap::Command) -> Vec<&clap::Command> {
    let mut all = vec![command];
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    all.extend(visible.flat_map(with_subcommands));
    all
}

/// Prints the manual page of one command, or writes those of all to a folder.
fn man(name: Option<&str>, folder: Option<&Path>) -> anyhow::Result<ExitCode> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    if let Some(folder) = folder {
        let folder = Directory::named(folder, Access::Umask)?;
        for command in with_subcommands(&command) {
            let page = clap_mangen::Man::new(command.clone());
            let mut out = FilePlace::below(&folder, &page.get_filename()).begin(Access::Umask)?;
            page.render(&mut out)?;
            out.finish()?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = name {
        let short = name
            .strip_prefix("roce-analyze-")
            .unwrap_or(name)
            .replace(' ', "-");
        let pages = with_subcommands(&command);
        let found = pages
            .iter()
            .find(|page| page.get_display_name() == Some(&format!("{PROGRAM}-{short}")));
        let Some(found) = found else {
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            bail!(
                "there is no command '{name}'\nhint: the commands are {}",
                names.join(", ")
            )
        };
        command = (*found).clone();
    }
    let mut out = Vec::new();
    clap_mangen::Man::new(command).render(&mut out)?;
    std::io::stdout().write_all(&out)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
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
            (&["explain", "rnr"], "roce-analyze --explain rnr"),
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

    #[test]
    fn every_command_has_a_manual_page_with_its_options() {
        let folder = std::env::temp_dir().join(format!("roce-analyze-man-{}", std::process::id()));
        man(None, Some(&folder)).unwrap();
        let mut command = Arguments::command().disable_help_subcommand(true);
        command.build();
        let pages = with_subcommands(&command);
        for sub in pages.into_iter().skip(1) {
            let name = sub.get_display_name().unwrap();
            let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
            for option in sub.get_arguments().filter(|option| !option.is_hide_set()) {
                let Some(long) = option.get_long() else { continue };
                let long = long.replace('-', "\\-");
                assert!(page.contains(&long), "{}: {long}", sub.get_name());
            }
        }
        fs::remove_dir_all(&folder).unwrap();
        assert!(man(Some("nothing"), None).is_err());
    }
}
