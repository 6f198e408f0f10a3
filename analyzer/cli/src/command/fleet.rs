//! `fleet`: captures and commands on many hosts at once, over the system's ssh.

mod book;
mod capture;
mod clean;
mod collect;
mod counted;
mod gather;
pub(super) mod interrupt;
mod prepare;
mod run;
mod table;
mod targets;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::command::invocation::{Invocation, RunCommand};

/// The task, and examples.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze fleet capture -o run1 --duration 10s
      all hosts of fabric.toml, at the same time
  roce-analyze fleet capture gpu1 gpu2 -o run2 -- ./job.sh
      while a command runs here
  roce-analyze run1
      the joined analysis
  roce-analyze fleet collect run1
      fetch what an interrupted run left on the hosts
  roce-analyze fleet clean
      remove what finished runs left on the hosts
  roce-analyze fleet run -- uname -r
      a command on all hosts
  roce-analyze doctor --host
      checks of all hosts, and of their differences

Exit codes: 0 all hosts, 1 some of them, 2 none, or an error. ssh gets no password, and accepts no unknown host key.";

/// Capture on many hosts at once, and run commands there
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Subcommand, Debug)]
enum FleetCommand {
    // Their descriptions are with their options.
    Capture(Box<capture::Capture>),
    Collect(collect::Collect),
    Run(run::Run),
    Clean(clean::Clean),
}

impl RunCommand for Fleet {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        match &self.command {
            FleetCommand::Capture(arguments) => capture::capture(arguments),
            FleetCommand::Collect(arguments) => collect::collect(arguments),
            FleetCommand::Run(arguments) => run::run(arguments),
            FleetCommand::Clean(arguments) => clean::clean(arguments),
        }
    }
}
