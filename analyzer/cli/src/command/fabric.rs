//! `fabric`: switches and hypervisors, as an inventory lists them.

mod changes;
mod device;
mod document;
mod fail;
mod host;
mod hypervisor;
mod pauses;
mod print;
mod switch;
mod text;
mod workers;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use hypervisor::HypervisorArguments;
use pauses::PausesArguments;
use switch::SwitchArguments;

/// The task, and examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze fabric switch leaf1                      PFC, 802.3x pauses, drops and marks of a switch
  roce-analyze fabric switch --duration 30s             what changed in 30 s on all switches, and how fast
  roce-analyze fabric hypervisor esxi1                  the same for the adapters of a hypervisor
  roce-analyze fabric switch leaf1 --fail-on critical   exit code 1 if packets are dropped
  roce-analyze fabric pauses -- ib_write_bw gpu2        where pauses begin while a command runs

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
    // As above.
    Pauses(Box<PausesArguments>),
}

/// Runs a command about the fabric.
pub(crate) fn fabric(arguments: &Fabric) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        FabricCommand::Switch(arguments) => switch::switch(arguments),
        FabricCommand::Hypervisor(arguments) => hypervisor::hypervisor(arguments),
        FabricCommand::Pauses(arguments) => pauses::pauses(arguments),
    }
}
