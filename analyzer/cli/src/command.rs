//! The list of commands, one file or folder each. Without a command, captures are analysed (`analyse`).

pub(crate) mod analyse;
pub(crate) mod annotate;
mod beside;
pub(crate) mod compare;
pub(crate) mod completions;
#[cfg(feature = "live")]
mod confinement;
#[cfg(feature = "live")]
mod dataset;
#[cfg(feature = "sim")]
mod demo;
mod devices;
#[cfg(feature = "live")]
pub(crate) mod doctor;
mod duckdb;
#[cfg(feature = "live")]
pub(crate) mod endpoint;
mod explain;
#[cfg(feature = "live")]
pub(crate) mod fabric;
#[cfg(feature = "live")]
mod fleet;
#[cfg(feature = "live")]
mod gpu_tool;
#[cfg(feature = "live")]
pub(crate) mod host;
pub(crate) mod invocation;
#[cfg(feature = "live")]
pub(crate) mod joined;
#[cfg(feature = "live")]
mod lines;
#[cfg(feature = "live")]
pub(crate) mod live;
mod man;
pub(crate) mod mcp;
#[cfg(feature = "parquet")]
mod merging;
#[cfg(feature = "live")]
mod metrics;
#[cfg(feature = "object-store")]
mod objects;
mod pasted;
#[cfg(feature = "live")]
mod player;
#[cfg(feature = "live")]
#[cfg(feature = "nxapi")]
mod pushed;
pub(crate) mod query;
#[cfg(feature = "live")]
mod recorded;
#[cfg(feature = "live")]
mod replay;
#[cfg(feature = "parquet")]
mod report;
pub(crate) mod request;
#[cfg(feature = "sim")]
mod simulate;
mod traffic;
pub(crate) mod version;
#[cfg(feature = "live")]
mod watch;

use std::process::ExitCode;

use clap::Subcommand;

use invocation::{Invocation, Places, Rights, RunCommand};

/// Makes the enumeration of commands, and passes each question to the command that was given.
macro_rules! commands {
    ($($(#[cfg(feature = $feature:literal)])? $name:ident($arguments:ty),)*) => {
        /// A command that was given.
        #[derive(Subcommand, Debug)]
        pub(crate) enum Command {
            $($(#[cfg(feature = $feature)])? $name($arguments),)*
        }

        impl Command {
            /// The rights of the run.
            pub(crate) fn rights(&self) -> Rights {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$name(arguments) => arguments.rights(),)*
                }
            }

            /// Paths that may be URLs of object stores.
            pub(crate) fn places(&mut self) -> Places<'_> {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$name(arguments) => arguments.places(),)*
                }
            }

            /// Runs the command.
            pub(crate) fn run(&self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$name(arguments) => arguments.run(invocation),)*
                }
            }
        }
    };
}

// In the order of the help.
commands! {
    #[cfg(feature = "sim")]
    Demo(demo::Demo),
    #[cfg(feature = "live")]
    Live(Box<live::Live>),
    #[cfg(feature = "live")]
    Replay(Box<replay::Replay>),
    #[cfg(feature = "parquet")]
    Report(report::Report),
    Explain(Box<explain::Explain>),
    Query(query::Query),
    Mcp(mcp::Mcp),
    Compare(Box<compare::Compare>),
    Annotate(Box<annotate::Annotate>),
    Devices(devices::Devices),
    #[cfg(feature = "live")]
    Doctor(Box<doctor::Doctor>),
    #[cfg(feature = "live")]
    Host(host::Host),
    #[cfg(feature = "live")]
    Fabric(fabric::Fabric),
    #[cfg(feature = "live")]
    Fleet(fleet::Fleet),
    #[cfg(feature = "live")]
    Dataset(dataset::Dataset),
    #[cfg(feature = "live")]
    Metrics(metrics::Metrics),
    Traffic(traffic::Traffic),
    #[cfg(feature = "sim")]
    Simulate(simulate::Simulate),
    Completions(completions::Completions),
    Man(man::Man),
    #[cfg(feature = "object-store")]
    Objects(crate::objects::ServeArguments),
    Beside(beside::Beside),
}
