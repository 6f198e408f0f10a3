//! `traffic`: streams between hosts are planned, started, watched and stopped, and what traffic tools measured is shown.

#[cfg(feature = "probe")]
mod actions;
mod form;
#[cfg(feature = "probe")]
mod hosts;
#[cfg(feature = "probe")]
mod kept;
#[cfg(feature = "probe")]
mod plan;
#[cfg(feature = "probe")]
mod run;
#[cfg(feature = "probe")]
mod watched;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use roce_fabric::results::{Expectation, Outcome, results as parsed};
use roce_model::text::escape_json;

use crate::options::arguments::DocumentFormat;
use crate::options::rate::Rate;
use crate::output::messages;

/// The longest text that is read: a job's log of NCCL has tens of megabytes.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// The task, and examples.
#[cfg(feature = "probe")]
const AFTER_HELP: &str = "\
A plan says which host sends to which, with which tool and for how long. `run` starts all streams at one time, waits for their end and
shows the results. `start`, `status` and `stop` do the same in steps. Hosts are those of fabric.toml, over ssh.

Examples:
  roce-analyze traffic plan --pattern incast=7:1 --hosts gpu1,gpu2,gpu3,gpu4,gpu5,gpu6,gpu7,gpu8 --device mlx5_0 > incast.toml
  roce-analyze traffic plan incast.toml --preflight                       what would run, and what is in its way
  roce-analyze traffic run incast.toml -o incast                          streams, results, logs and counters
  roce-analyze traffic start incast.toml && roce-analyze traffic status   a run that goes on by itself
  roce-analyze traffic results bw.txt lat.txt tcp.json --link-rate 100G   one table, and RDMA against TCP
  roce-analyze traffic results nccl.log --expect 'nccl.busbw>=80GiB/s'    exit code 1 if it is slower
  roce-analyze traffic results before.txt after.txt --stages              what each change brought";
/// The task, and examples.
#[cfg(not(feature = "probe"))]
const AFTER_HELP: &str = "\
Examples:
  roce-analyze traffic results bw.txt lat.txt tcp.json --link-rate 100G   one table, and RDMA against TCP
  roce-analyze traffic results nccl.log --expect 'nccl.busbw>=80GiB/s'    exit code 1 if it is slower
  roce-analyze traffic results before.txt after.txt --stages              what each change brought";

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Traffic {
    #[command(subcommand)]
    command: TrafficCommand,
}

#[derive(Subcommand, Debug)]
enum TrafficCommand {
    // Their descriptions are with their options.
    #[cfg(feature = "probe")]
    Plan(Box<plan::PlanArguments>),
    #[cfg(feature = "probe")]
    Start(Box<run::StartArguments>),
    #[cfg(feature = "probe")]
    Status(watched::StatusArguments),
    #[cfg(feature = "probe")]
    Stop(watched::StopArguments),
    #[cfg(feature = "probe")]
    Run(Box<run::RunArguments>),
    Results(ResultsArguments),
}

/// Show the results of traffic tools in one table
///
/// Reads the output of perftest, iperf3 (JSON or text), iperf 2, nccl-tests, PyTorch benchmarks and NCCL's log, recognized by their content.
/// Rates are in bit/s whatever the tool prints. A value that a tool did not print is -, never 0.
#[derive(Args, Debug)]
pub(crate) struct ResultsArguments {
    /// Outputs of the tools
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

    /// Fail if a result does not reach a value, such as 'nccl.busbw>=80GiB/s' or 'perftest.latency@2<=5us' (can be repeated)
    ///
    /// Tools: perftest, iperf, nccl, pytorch, or a program such as ib_write_bw. Quantities: goodput, algbw, busbw, latency, retransmits, lost, wrong.
    /// @BYTES takes only the results of this size. Of rates the highest one counts, of latencies the lowest.
    #[arg(long, value_name = "CONDITION")]
    expect: Vec<Expectation>,

    /// Format of standard output
    #[arg(long, value_enum, default_value = "text")]
    format: DocumentFormat,
}

/// Runs a subcommand.
pub(crate) fn traffic(arguments: &Traffic) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        #[cfg(feature = "probe")]
        TrafficCommand::Plan(arguments) => plan::plan(arguments),
        #[cfg(feature = "probe")]
        TrafficCommand::Start(arguments) => run::start(arguments),
        #[cfg(feature = "probe")]
        TrafficCommand::Status(arguments) => watched::status(arguments),
        #[cfg(feature = "probe")]
        TrafficCommand::Stop(arguments) => watched::stop(arguments),
        #[cfg(feature = "probe")]
        TrafficCommand::Run(arguments) => run::run(arguments),
        TrafficCommand::Results(arguments) => results(arguments),
    }
}

fn results(arguments: &ResultsArguments) -> anyhow::Result<ExitCode> {
    let mut inputs = Vec::new();
    let mut has_failed = false;
    for path in &arguments.files {
        let text = match roce_files::read_text(path, MAX_TEXT_BYTES) {
            Ok(text) => text,
            Err(error) => {
                messages::report(&error.into());
                has_failed = true;
                continue;
            }
        };
        let results = parsed(&text, arguments.world);
        if results.tool.is_empty() {
            messages::error(&format!(
                "{}: no results of a traffic tool in it\nhint: the output of perftest, iperf3, nccl-tests or a PyTorch benchmark, or NCCL's log",
                path.display()
            ));
            has_failed = true;
            continue;
        }
        let name = path.file_name().unwrap_or(path.as_os_str());
        inputs.push(form::Input {
            name: name.to_string_lossy().into_owned(),
            results,
        });
    }
    let rate = arguments.link_rate.map(|rate| rate.0);
    match arguments.format {
        DocumentFormat::Text => {
            let text = form::text(&inputs, rate, arguments.stages);
            std::io::stdout().write_all(text.as_bytes())?;
        }
        DocumentFormat::Json => {
            let document = form::document(&inputs, rate);
            writeln!(std::io::stdout(), "{}", escape_json(&format!("{document:#}")))?;
        }
    }
    let mut is_met = true;
    for expectation in &arguments.expect {
        let all = inputs.iter().flat_map(|input| &input.results.measurements);
        let reason = match expectation.outcome(all) {
            Outcome::Holds(_) => continue,
            Outcome::Fails(value) => format!("{expectation}: it was {}", form::expected(expectation, value)),
            Outcome::NotMeasured => format!("{expectation}: nothing of this kind was measured"),
        };
        messages::failed("--expect", &reason);
        is_met = false;
    }
    Ok(ExitCode::from(match (has_failed, is_met) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    }))
}
