//! The arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use roce_model::{Filter, Nanos};

use crate::duration::{Moment, parse_duration};

/// Per-flow congestion timelines of RoCEv2 traffic.
///
/// Reads captures of RDMA traffic and shows, flow by flow, what happened: ECN marks, congestion notifications,
/// retransmissions, losses, receivers that were not ready.
#[derive(Parser, Debug)]
#[command(
    name = "roce-analyze",
    version,
    about,
    long_about,
    args_conflicts_with_subcommands = true
)]
#[command(
    after_help = "Several captures are one run, merged by time. A capture whose name equals a subcommand is \
given as ./NAME.\n\nExit codes: 0 done, 2 an error (one bad input does not stop the others).\n\nEnvironment: COLUMNS is the width of \
the text; NO_COLOR and CLICOLOR_FORCE switch its colours off and on."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) analyse: Analyse,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// What goes to standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// A summary for people
    Text,
    /// One JSON document
    Json,
    /// Nothing: to measure the analysis alone
    #[value(hide = true)]
    None,
}

#[derive(Args, Debug)]
pub(crate) struct Analyse {
    /// Captures: pcap or pcapng, plain, gzip or zstd; '-' is standard input
    #[arg(value_name = "CAPTURE", required = true)]
    pub(crate) captures: Vec<PathBuf>,

    /// Also write the results as a Parquet dataset, with run.json, to DIR
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the dataset that DIR holds
    #[arg(long, requires = "output")]
    pub(crate) overwrite: bool,

    /// What goes to standard output
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,

    /// Width of a timeline bin, such as 100us, 1ms, 1s
    #[arg(long, value_name = "DURATION", default_value = "1ms", value_parser = parse_bin)]
    pub(crate) bin: Nanos,

    /// Only packets for which EXPR holds: addresses, qpn, service, dscp, vlan, vni with and, or, not, ( )
    ///
    /// Examples: "10.0.0.1 <-> 10.0.0.2", "src 10.0.0.0/24 and qpn 0x11", "service ud or dscp 48".
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse)]
    pub(crate) flow: Option<Filter>,

    /// Only frames from this time on: RFC 3339, or +DURATION after the first frame
    ///
    /// Losses and disorder that a capture states of itself remain those of the whole capture.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(crate) from: Option<Moment>,

    /// Only frames before this time: RFC 3339, or +DURATION after the first frame
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(crate) to: Option<Moment>,

    /// Members of a link aggregation, by interface or capture: one point of observation (can be repeated)
    #[arg(long, value_name = "NAME,NAME", value_parser = parse_lag)]
    pub(crate) lag: Vec<Vec<String>>,

    /// Flows in the terminal's table
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// Threads that analyse; 1 does everything on one [default: the processors there are, at most 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) threads: Option<u32>,

    /// Flows that are kept at once; more close the idle ones early, which is counted
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = parse_max_flows)]
    pub(crate) max_flows: usize,

    /// Note the SHA-256 of every input in run.json (reads each once more)
    #[arg(long)]
    pub(crate) hash: bool,
}

fn parse_bin(text: &str) -> Result<Nanos, String> {
    let bin = parse_duration(text)?;
    if bin.0 < 1_000 || bin.0 > 60 * Nanos::SECOND {
        return Err("a bin is 1us to 60s wide".to_owned());
    }
    Ok(bin)
}

fn parse_lag(text: &str) -> Result<Vec<String>, String> {
    let members: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if members.len() < 2 || members.iter().any(String::is_empty) {
        return Err("a link aggregation has two members or more, such as eth0,eth1".to_owned());
    }
    Ok(members)
}

fn parse_max_flows(text: &str) -> Result<usize, String> {
    let flows: usize = text
        .replace('_', "")
        .parse()
        .map_err(|_| "expected a number".to_owned())?;
    if flows == 0 {
        return Err("at least one flow is kept".to_owned());
    }
    Ok(flows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
