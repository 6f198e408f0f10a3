//! `host`: what the devices of this host count and show.

pub(super) mod counters;
mod gpus;
mod hca;
pub(super) mod series;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::command::invocation::{Invocation, RunCommand};

use counters::Counters;
use gpus::GpusArguments;
use hca::Hca;

/// The task, and two examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze host counters --duration 10s             what changed in ten seconds, and how fast
  roce-analyze host counters -- ib_write_bw 10.0.0.7    what changed while a command ran
  roce-analyze host hca --print env                     the devices of this container, for a job
  roce-analyze host gpus                                load, memory, power and throttling of GPUs
  roce-analyze host gpus -o gpus -- python train.py     their readings while a job runs, as a dataset";

/// Show what this host's devices count: counters before and after
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Host {
    #[command(subcommand)]
    command: HostCommand,
}

#[derive(Subcommand, Debug)]
enum HostCommand {
    // Its description stands with its options.
    Counters(Counters),
    // As above.
    Gpus(GpusArguments),
    // As above.
    Hca(Hca),
}

impl RunCommand for Host {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        host(self)
    }
}

/// Runs a command about this host.
fn host(arguments: &Host) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        HostCommand::Counters(arguments) => counters::counters(arguments),
        HostCommand::Gpus(arguments) => gpus::gpus(arguments),
        HostCommand::Hca(arguments) => hca::hca(arguments),
    }
}
