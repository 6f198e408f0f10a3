//! `dataset`: the dataset of many hosts: made of captures, kept small, joined between hosts, shown on a page.

#[cfg(feature = "parquet")]
mod compact;
#[cfg(feature = "parquet")]
mod join;
#[cfg(feature = "parquet")]
mod map;
mod report;
#[cfg(feature = "parquet")]
mod stop;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::command::invocation::{Invocation, RunCommand};

/// Make a dataset of captures of many hosts, keep it, show it on a page
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze dataset map RAW -o DS
      all captures below a folder, as one dataset
  roce-analyze dataset compact DS --to 2026-03-31
      one file for each table and day
  roce-analyze dataset join DS RAW --date 2026-03-02
      hops between hosts, and how their clocks differ
  roce-analyze dataset report DS -o fleet.html
      the page of all questions
  roce-analyze query DS destinations
      one question")]
pub(crate) struct Dataset {
    #[command(subcommand)]
    command: DatasetCommand,
}

#[derive(Subcommand, Debug)]
enum DatasetCommand {
    // Their descriptions are with their options.
    #[cfg(feature = "parquet")]
    Map(Box<map::Map>),
    #[cfg(feature = "parquet")]
    Compact(compact::Compact),
    #[cfg(feature = "parquet")]
    Join(join::Join),
    Report(report::Report),
}

impl RunCommand for Dataset {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        match &self.command {
            #[cfg(feature = "parquet")]
            DatasetCommand::Map(arguments) => map::map(arguments),
            #[cfg(feature = "parquet")]
            DatasetCommand::Compact(arguments) => compact::compact(arguments),
            #[cfg(feature = "parquet")]
            DatasetCommand::Join(arguments) => join::join(arguments),
            DatasetCommand::Report(arguments) => report::report(arguments),
        }
    }
}
