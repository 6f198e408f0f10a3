//! `fleet`: captures, commands and checks on many hosts at once, over the system's ssh; and the dataset of many hosts.

mod book;
mod capture;
mod clean;
mod collect;
#[cfg(feature = "parquet")]
mod compact;
mod counted;
mod doctor;
mod gather;
mod interrupt;
#[cfg(feature = "parquet")]
mod map;
#[cfg(feature = "parquet")]
mod pass2;
mod prepare;
mod report;
mod run;
mod sql;
#[cfg(feature = "parquet")]
mod stop;
mod table;
mod targets;

use std::process::ExitCode;

use clap::{Args, Subcommand};

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
  roce-analyze fleet run -- uname -r
      a command on all hosts
  roce-analyze fleet doctor
      checks of all hosts, and of their differences
  roce-analyze fleet map RAW -o DS
      all captures below a folder, as one dataset
  roce-analyze fleet sql DS destinations
      a question about a dataset of many hosts
  roce-analyze fleet report DS -o fleet.html
      the page of all questions

Exit codes: 0 all hosts, 1 some of them, 2 none, or an error. ssh gets no password, and accepts no unknown host key.";

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
    Doctor(doctor::FleetDoctor),
    Clean(clean::Clean),
    #[cfg(feature = "parquet")]
    Map(Box<map::Map>),
    #[cfg(feature = "parquet")]
    Compact(compact::Compact),
    #[cfg(feature = "parquet")]
    Pass2(pass2::Pass2),
    Sql(sql::Sql),
    Report(report::Report),
}

impl Fleet {
    /// Runs a subcommand.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.command {
            FleetCommand::Capture(arguments) => capture::capture(arguments),
            FleetCommand::Collect(arguments) => collect::collect(arguments),
            FleetCommand::Run(arguments) => run::run(arguments),
            FleetCommand::Doctor(arguments) => doctor::doctor(arguments),
            FleetCommand::Clean(arguments) => clean::clean(arguments),
            #[cfg(feature = "parquet")]
            FleetCommand::Map(arguments) => map::map(arguments),
            #[cfg(feature = "parquet")]
            FleetCommand::Compact(arguments) => compact::compact(arguments),
            #[cfg(feature = "parquet")]
            FleetCommand::Pass2(arguments) => pass2::pass2(arguments),
            FleetCommand::Sql(arguments) => sql::sql(arguments),
            FleetCommand::Report(arguments) => report::report(arguments),
        }
    }
}
