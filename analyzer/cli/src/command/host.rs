//! `host`: what the devices of this host count and show.

mod counters;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use counters::Counters;

/// The task, and two examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze host counters --duration 10s             what moved in ten seconds, and how fast
  roce-analyze host counters -- ib_write_bw 10.0.0.7    what moved while a command ran";

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
}

/// Runs a command about this host.
pub(crate) fn host(arguments: &Host) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        HostCommand::Counters(arguments) => counters::counters(arguments),
    }
}
