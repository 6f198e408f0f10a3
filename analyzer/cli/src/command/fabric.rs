//! `fabric`: switches, hypervisors and hosts together, as an inventory lists them.

mod changes;
mod configure;
mod counters;
mod device;
mod document;
mod host;
mod pauses;
mod print;
mod recordings;
mod samples;
mod sflow;
mod text;
mod workers;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::command::invocation::{Invocation, Places, Rights, RunCommand};

use configure::Configure;
use counters::CountersArguments;
use pauses::PausesArguments;
use samples::SamplesArguments;
pub(crate) use samples::targets;
use sflow::SflowArguments;

/// The task, and examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze fabric counters leaf1
      PFC, 802.3x pauses, drops and marks of a switch
  roce-analyze fabric counters --duration 30s
      what changed in 30 s on all switches and hypervisors, and how fast
  roce-analyze fabric pauses -- ib_write_bw gpu2
      where pauses begin while a command runs
  roce-analyze fabric sflow collector.pcap
      shares of marks, CNPs and talkers, by what switches sample
  roce-analyze fabric configure host -i ens1f0np0
      the commands for a host, with reasons
  roce-analyze fabric configure switch --kind sonic
      the configuration of a switch

fabric.toml lists switches, hypervisors and hosts, and how they are reached (docs/switches.md).";

/// Read switches and hypervisors: PFC, pauses, drops, marks; print their configuration
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Fabric {
    #[command(subcommand)]
    command: FabricCommand,
}

#[derive(Subcommand, Debug)]
enum FabricCommand {
    // Its description stands with its options.
    Counters(CountersArguments),
    // As above.
    Pauses(Box<PausesArguments>),
    // As above.
    Configure(Box<Configure>),
    // As above.
    Sflow(SflowArguments),
    // As above.
    #[command(hide = true)]
    Samples(SamplesArguments),
}

impl RunCommand for Fabric {
    fn rights(&self) -> Rights {
        match &self.command {
            FabricCommand::Sflow(arguments) => arguments.rights(),
            _ => Self::RIGHTS,
        }
    }

    fn places(&mut self) -> Places<'_> {
        match &mut self.command {
            FabricCommand::Sflow(arguments) => Places {
                captures: arguments.captures().collect(),
                ..Places::default()
            },
            _ => Places::default(),
        }
    }

    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        fabric(self)
    }
}

/// Runs a command about the fabric.
fn fabric(arguments: &Fabric) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        FabricCommand::Counters(arguments) => counters::counters(arguments),
        FabricCommand::Pauses(arguments) => pauses::pauses(arguments),
        FabricCommand::Configure(arguments) => configure::configure(arguments),
        FabricCommand::Sflow(arguments) => sflow::sflow(arguments),
        FabricCommand::Samples(arguments) => samples::samples(arguments),
    }
}
