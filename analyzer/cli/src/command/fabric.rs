//! `fabric`: switches, hypervisors and hosts together, as an inventory lists them.

mod changes;
mod configure;
mod device;
mod document;
mod host;
mod hypervisor;
mod pauses;
mod print;
mod samples;
mod switch;
mod text;
mod workers;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use configure::Configure;
use hypervisor::HypervisorArguments;
use pauses::PausesArguments;
use samples::SamplesArguments;
pub(crate) use samples::targets;
use switch::SwitchArguments;

/// The task, and examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze fabric switch leaf1
      PFC, 802.3x pauses, drops and marks of a switch
  roce-analyze fabric switch --duration 30s
      what changed in 30 s on all switches, and how fast
  roce-analyze fabric hypervisor esxi1
      the same for the adapters of a hypervisor
  roce-analyze fabric pauses -- ib_write_bw gpu2
      where pauses begin while a command runs
  roce-analyze fabric configure host --dev ens1f0np0
      the commands for a host, with reasons
  roce-analyze fabric configure switch --kind sonic
      the configuration of a switch

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
    // As above.
    Configure(Box<Configure>),
    // As above.
    #[command(hide = true)]
    Samples(SamplesArguments),
}

/// Runs a command about the fabric.
pub(crate) fn fabric(arguments: &Fabric) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        FabricCommand::Switch(arguments) => switch::switch(arguments),
        FabricCommand::Hypervisor(arguments) => hypervisor::hypervisor(arguments),
        FabricCommand::Pauses(arguments) => pauses::pauses(arguments),
        FabricCommand::Configure(arguments) => configure::configure(arguments),
        FabricCommand::Samples(arguments) => samples::samples(arguments),
    }
}
