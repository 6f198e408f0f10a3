//! `traffic`: streams between hosts are planned, started, watched and stopped, and what traffic tools measured is shown.

#[cfg(feature = "live")]
mod actions;
mod beside;
mod errors;
mod form;
#[cfg(feature = "live")]
mod hosts;
#[cfg(feature = "live")]
mod kept;
#[cfg(feature = "live")]
mod plan;
#[cfg(feature = "live")]
mod run;
#[cfg(feature = "live")]
mod watched;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use roce_jobs::results::{Expectation, Outcome, results as parsed};
use roce_model::text::escape_json;
use serde_json::Value;

use crate::command::invocation::{Invocation, RunCommand};
use crate::command::pasted::described;
use crate::options::format::{Format, text_or_json};
use crate::options::rate::Rate;
use crate::output::messages;

/// The longest text that is read: a job's log of NCCL has tens of megabytes.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// The task, and examples.
#[cfg(feature = "live")]
const AFTER_HELP: &str = "\
A plan says which host sends to which, with which tool and for how long. `run` starts all streams at one time, waits for their end and \
shows the results. With --detach it leaves them running: --status and --stop take the run's id. Hosts are those of fabric.toml, over ssh.

Examples:
  roce-analyze traffic plan --pattern ring --device mlx5_0 > ring.toml
      a plan over all hosts of fabric.toml
  roce-analyze traffic plan ring.toml --preflight
      what would run, and what is in its way
  roce-analyze traffic run ring.toml -o ring
      streams, results, logs and counters
  roce-analyze traffic run ring.toml --detach
      a run that goes on by itself; `traffic run --status` shows it
  roce-analyze traffic results bw.txt lat.txt tcp.json --link-rate 100G
      one table, and RDMA against TCP
  roce-analyze traffic results nccl.log --fail-on 'nccl.busbw<80GiB/s'
      exit code 1 if it is slower
  roce-analyze traffic results ring --beside results
      a run on the timeline of a capture
  roce-analyze traffic results nccl.log --capture host3.pcap
      errors of programs, and what the packets show of them";
/// The task, and examples.
#[cfg(not(feature = "live"))]
const AFTER_HELP: &str = "\
Examples:
  roce-analyze traffic results bw.txt lat.txt tcp.json --link-rate 100G   one table, and RDMA against TCP
  roce-analyze traffic results nccl.log --fail-on 'nccl.busbw<80GiB/s'    exit code 1 if it is slower
  roce-analyze traffic results before.txt after.txt --stages              what each change brought
  roce-analyze traffic results incast --beside results                    a run on the timeline of a capture";

#[cfg_attr(
    feature = "live",
    doc = "Run traffic between hosts, and read results of perftest, iperf3, nccl-tests, NCCL"
)]
#[cfg_attr(
    not(feature = "live"),
    doc = "Read the results of traffic tools: perftest, iperf3, nccl-tests, PyTorch, NCCL's log"
)]
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Traffic {
    #[command(subcommand)]
    command: TrafficCommand,
}

#[derive(Subcommand, Debug)]
enum TrafficCommand {
    // Their descriptions are with their options.
    #[cfg(feature = "live")]
    Plan(Box<plan::PlanArguments>),
    #[cfg(feature = "live")]
    Run(Box<run::RunArguments>),
    Results(ResultsArguments),
}

/// Show the results of traffic tools in one table
///
/// Reads the output of perftest, iperf3 (JSON or text), iperf 2, nccl-tests, PyTorch benchmarks and NCCL's log, recognized by their content.
/// Rates are in bit/s whatever the tool prints. A value that a tool did not print is -, never 0.
#[derive(Args, Debug)]
pub(crate) struct ResultsArguments {
    /// Outputs of the tools, or folders that `traffic run -o` wrote
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Speed of the link, such as 100G: shows the share of it that was reached
    #[arg(long, value_name = "RATE", value_parser = Rate::parse)]
    link_rate: Option<Rate>,

    /// Ranks of a collective operation, where the text does not say them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    world: Option<u32>,

    /// Compare the files in their order: each is one stage of tuning
    #[arg(long)]
    stages: bool,

    /// Exit with 1 if a result is worse than a bound, such as 'nccl.busbw<80GiB/s' or 'perftest.latency@2>5us' (can be repeated)
    ///
    /// Tools: perftest, iperf, nccl, pytorch, or a program such as ib_write_bw. Quantities: goodput, algbw, busbw, latency, retransmits, lost, wrong.
    /// @BYTES takes only the results of this size. Of rates the highest one counts, of latencies the lowest.
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    fail_on: Vec<Expectation>,

    /// Show what the dataset in DIR, which -o wrote of a capture, has in the time of each run: payload, marks, CNPs, retransmissions, episodes
    ///
    /// Times are those in the outputs (iperf3's documents, folders of `traffic run`), else the file's own less the duration. The clock of
    /// the host and that of the capture have to agree.
    #[arg(long, value_name = "DIR")]
    beside: Option<PathBuf>,

    /// Show what the packets of a capture say about the errors of a program's log: the end of each connection (can be repeated)
    #[arg(long, value_name = "CAPTURE")]
    capture: Vec<PathBuf>,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,
}

impl RunCommand for Traffic {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        traffic(self)
    }
}

/// Runs a subcommand.
fn traffic(arguments: &Traffic) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        #[cfg(feature = "live")]
        TrafficCommand::Plan(arguments) => plan::plan(arguments),
        #[cfg(feature = "live")]
        TrafficCommand::Run(arguments) => run::run(arguments),
        TrafficCommand::Results(arguments) => results(arguments),
    }
}

/// Logs that a run's folder may have.
const MAX_LOGS: usize = 1_024;

/// Results in the files, and the times of the runs.
#[derive(Default)]
struct ReadResults {
    inputs: Vec<form::Input>,
    windows: Vec<beside::Window>,
    has_failed: bool,
}

impl ReadResults {
    fn file(&mut self, path: &Path, world: Option<u32>) {
        if path.is_dir() {
            self.folder(path, world);
        } else if let Some(text) = self.output(path, world) {
            let name = name_of(path);
            self.windows.push(beside::Window::from_output(name, path, &text));
        }
    }

    /// Reads the output of a tool; returns its text.
    fn output(&mut self, path: &Path, world: Option<u32>) -> Option<String> {
        let text = match roce_files::read_text(path, MAX_TEXT_BYTES) {
            Ok(text) => text,
            Err(error) => {
                messages::report(&error.into());
                self.has_failed = true;
                return None;
            }
        };
        let results = parsed(&text, world);
        if results.tool.is_empty() {
            messages::error(&format!(
                "{}: no results of a traffic tool in it{}\nhint: the output of perftest, iperf3, nccl-tests or a PyTorch benchmark, or a log with NCCL's lines or with errors",
                path.display(),
                described(&text)
            ));
            self.has_failed = true;
            return None;
        }
        let name = name_of(path);
        self.inputs.push(form::Input { name, results });
        Some(text)
    }

    /// Reads the logs of clients that ended, in a folder of `traffic run`.
    fn folder(&mut self, path: &Path, world: Option<u32>) {
        let text = roce_files::read_text(&path.join(form::RUN_DOCUMENT), MAX_TEXT_BYTES);
        let document = text
            .ok()
            .and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let Some(document) = document else {
            messages::error(&format!(
                "{}: not a folder of a run: it has no {}\nhint: roce-analyze traffic run PLAN -o DIR",
                path.display(),
                form::RUN_DOCUMENT
            ));
            self.has_failed = true;
            return;
        };
        self.windows
            .push(beside::Window::from_run(name_of(path), &document));
        let streams = document["streams"].as_array().into_iter().flatten();
        for stream in streams.filter(|stream| stream["state"] == "done").take(MAX_LOGS) {
            // The name of a file in the folder, and nothing else.
            let log = stream["log"].as_str().and_then(|log| Path::new(log).file_name());
            if let Some(log) = log {
                self.output(&path.join(log), world);
            }
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn results(arguments: &ResultsArguments) -> anyhow::Result<ExitCode> {
    let mut read = ReadResults::default();
    for path in &arguments.files {
        read.file(path, arguments.world);
    }
    let ReadResults {
        inputs,
        windows,
        has_failed,
    } = read;
    let beside = match &arguments.beside {
        Some(dataset) => Some((dataset, beside::read(dataset, windows)?)),
        None => None,
    };
    let ends = errors::ends(&inputs, &arguments.capture)?;
    let rate = arguments.link_rate.map(|rate| rate.0);
    if arguments.format == Format::Text {
        let mut text = form::text(&inputs, rate, arguments.stages);
        if let Some((dataset, beside)) = &beside {
            text.push_str(&beside.text(dataset));
        }
        if let Some(ends) = &ends {
            text.push_str("\n completion errors in the packets of the capture\n");
            text.push_str(&ends.text());
        }
        std::io::stdout().write_all(text.as_bytes())?;
    } else {
        let mut document = form::document(&inputs, rate);
        if let Some((dataset, beside)) = &beside {
            document["beside"] = beside.document(dataset);
        }
        if let Some(ends) = &ends {
            document["capture"] = ends.document();
        }
        writeln!(std::io::stdout(), "{}", escape_json(&format!("{document:#}")))?;
    }
    let mut is_met = true;
    for expectation in &arguments.fail_on {
        let all = inputs.iter().flat_map(|input| &input.results.measurements);
        let reason = match expectation.outcome(all) {
            Outcome::Holds(_) => continue,
            Outcome::Fails(value) => format!("{expectation}: it was {}", form::expected(expectation, value)),
            Outcome::NotMeasured => format!("{expectation}: nothing of this kind was measured"),
        };
        messages::failed("--fail-on", &reason);
        is_met = false;
    }
    Ok(ExitCode::from(match (has_failed, is_met) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    }))
}
