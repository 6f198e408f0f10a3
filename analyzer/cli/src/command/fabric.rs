//! `fabric`: switches, hypervisors and hosts together.

mod configure;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use configure::Configure;

/// The task, and examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze fabric configure host --dev ens1f0np0              the commands for a host, with reasons
  roce-analyze fabric configure switch --kind sonic               the configuration of a switch
  roce-analyze fabric configure host --dev ens1f0np0 --check      only what has to change here";

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Fabric {
    #[command(subcommand)]
    command: FabricCommand,
}

#[derive(Subcommand, Debug)]
enum FabricCommand {
    // Its description stands with its options.
    Configure(Box<Configure>),
}

/// Runs a command about a fabric.
pub(crate) fn fabric(arguments: &Fabric) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        FabricCommand::Configure(arguments) => configure::configure(arguments),
    }
}
