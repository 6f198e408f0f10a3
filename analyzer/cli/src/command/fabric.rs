//! `fabric`: switches and hypervisors, as an inventory lists them.

mod changes;
mod device;
mod document;
mod fail;
mod hypervisor;
mod switch;
mod text;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use hypervisor::HypervisorArguments;
use switch::SwitchArguments;

/// The task, and examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze fabric switch leaf1                      PFC, 802.3x pauses, drops and marks of a switch
  roce-analyze fabric switch --duration 30s             what changed in 30 s on all switches, and how fast
  roce-analyze fabric hypervisor esxi1                  the same for the adapters of a hypervisor
  roce-analyze fabric switch leaf1 --fail-on critical   exit code 1 if packets are dropped

fabric.toml lists switches, hypervisors and hosts, and how they are reached (docs/switches.md).";

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Fabric {
    #[command(subcommand)]
    command: FabricCommand,
}

#[derive(Subcommand, Debug)]
enum FabricCommand {
    // Its description stands with its options.
    Switch(SwitchArguments),
    // As above.
    Hypervisor(HypervisorArguments),
}

/// Runs a command about the fabric.
pub(crate) fn fabric(arguments: &Fabric) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        FabricCommand::Switch(arguments) => switch::switch(arguments),
        FabricCommand::Hypervisor(arguments) => hypervisor::hypervisor(arguments),
    }
}
