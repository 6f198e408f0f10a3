//! The options of a run over captures, and those that any run has.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use roce_model::{Filter, Nanos, Severity};

use crate::options::dcqcn::Reaction;
use crate::options::dscp::DscpMap;
use crate::options::duration::{Moment, parse_duration};
use crate::options::processes::ProcessOptions;
use crate::options::rate::Rate;
use crate::options::size::parse_size;
use crate::options::training::Pattern;

/// What goes to standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// A summary for people
    Text,
    /// One JSON document
    Json,
    /// One HTML page, with everything in it
    Html,
    /// Nothing: to measure the analysis alone
    #[value(hide = true)]
    None,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Analyse {
    /// Captures: pcap or pcapng, plain, gzip or zstd; '-' is standard input; the folder of a recorded live run
    #[arg(value_name = "CAPTURE", required_unless_present = "explain")]
    pub(crate) captures: Vec<PathBuf>,

    /// Also write the results as a Parquet dataset, with run.json and report.html, to DIR
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the dataset that DIR holds
    #[arg(long, requires = "output")]
    pub(crate) overwrite: bool,

    /// What goes to standard output
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,

    /// What a finding means, how it is computed, where its rule comes from; 'list' names them all
    #[arg(long, value_name = "FINDING", conflicts_with = "captures")]
    pub(crate) explain: Option<String>,

    #[command(flatten)]
    pub(crate) shape: Shape,

    /// Only frames from this time on: RFC 3339, or +DURATION after the first frame
    ///
    /// Losses and disorder that a capture states of itself remain those of the whole capture.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(crate) from: Option<Moment>,

    /// Only frames before this time: RFC 3339, or +DURATION after the first frame
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(crate) to: Option<Moment>,

    /// Leave the captures' times as they are, also where packets that several saw show that their clocks differ
    #[arg(long)]
    pub(crate) no_align: bool,

    /// Read at most this much of each capture, decompressed, such as 10GB; a longer one is an error, and counts up to there
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_input: Option<u64>,

    /// Note the SHA-256 of every input in run.json (reads each once more)
    #[arg(long)]
    pub(crate) hash: bool,
}

// What shapes the results of any run. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Shape {
    /// Exit with 1 when a finding is of this severity or worse
    #[arg(long, value_name = "SEVERITY", value_parser = SEVERITIES)]
    pub(crate) fail_on: Option<String>,

    /// Width of a timeline bin, such as 100us, 1ms, 1s [default: 10us to 1ms, by the captures' length]
    ///
    /// The default makes 250 bins or more of the captures, and is 1ms from 250ms on, for standard input and in live runs.
    #[arg(long, value_name = "DURATION", value_parser = parse_bin)]
    pub(crate) bin: Option<Nanos>,

    /// Show only flows for which EXPR holds: addresses, qpn, service, dscp, vlan, vni with and, or, not, ( )
    ///
    /// All traffic is analysed, and verdicts and totals are about all of it. Examples: "10.0.0.1 <-> 10.0.0.2", "src 10.0.0.0/24
    /// and qpn 0x11", "service ud or dscp 48".
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse)]
    pub(crate) flow: Option<Filter>,

    /// Analyse only packets for which EXPR holds, as if there were no others: verdicts can be wrong by what is left out
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse)]
    pub(crate) only_flow: Option<Filter>,

    #[command(flatten)]
    pub(crate) processes: ProcessOptions,

    /// Members of a link aggregation, by interface or capture: one point of observation (can be repeated)
    #[arg(long, value_name = "NAME,NAME", value_parser = parse_lag)]
    pub(crate) lag: Vec<Vec<String>>,

    /// Speed of the links, such as 25G or 100Gbps: for pauses and DCQCN rates
    #[arg(long, value_name = "RATE", value_parser = Rate::parse)]
    pub(crate) link_rate: Option<Rate>,

    /// Priority of each DSCP, such as 26=3,48=6 or 24-31=3 [default: DSCP >> 3]
    ///
    /// Says which flows a pause of a priority stops. A VLAN tag's priority is stronger.
    #[arg(long, value_name = "DSCP=PRIORITY,...", value_parser = DscpMap::parse)]
    pub(crate) dscp_map: Option<DscpMap>,

    /// DCQCN parameters of the senders: paper, ns3, nvidia, changes such as nvidia,timer=55us, or none [default: paper]
    ///
    /// From them and --link-rate comes the rate that the timeline expects after each CNP. Stated, they alone say what a sender may
    /// send before it counts as one that ignores CNPs; else all known sets do. "none" is for senders with another
    /// congestion control.
    #[arg(long, value_name = "SET", value_parser = Reaction::parse)]
    pub(crate) dcqcn: Option<Reaction>,

    /// Log of the training script, whose step times are joined to the steps seen in the traffic
    ///
    /// Lines such as "Iteration 10 | ... AllReduce: 45.2ms | Total: 156.3ms" are understood.
    #[arg(long, value_name = "FILE")]
    pub(crate) training_log: Option<PathBuf>,

    /// How to read that log's lines: a regular expression with the named groups step, and allreduce_ms or total_ms
    ///
    /// The units _s, _ms and _us are known. Example: "step (?<step>\d+) took (?<total_ms>[0-9.]+)".
    #[arg(long, value_name = "REGEX", value_parser = Pattern::parse)]
    pub(crate) training_log_pattern: Option<Pattern>,

    /// Defaults of these options, and thresholds of the findings, from a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Flows in the terminal's table [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,

    /// Threads that analyse; 1 does everything on one [default: the processors there are, at most 8]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<u32>,

    /// Flows that are kept at once; more close the idle ones early, which is counted [default: 1000000]
    #[arg(long, value_name = "N", value_parser = parse_max_flows)]
    pub(crate) max_flows: Option<usize>,
}

impl Shape {
    /// These, and where nothing was said, `others`.
    #[cfg(feature = "live")]
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            fail_on: self.fail_on.or(others.fail_on),
            bin: self.bin.or(others.bin),
            flow: self.flow.or(others.flow),
            only_flow: self.only_flow.or(others.only_flow),
            processes: self.processes.or(others.processes),
            lag: if self.lag.is_empty() { others.lag } else { self.lag },
            link_rate: self.link_rate.or(others.link_rate),
            dscp_map: self.dscp_map.or(others.dscp_map),
            dcqcn: self.dcqcn.or(others.dcqcn),
            training_log: self.training_log.or(others.training_log),
            training_log_pattern: self.training_log_pattern.or(others.training_log_pattern),
            config: self.config.or(others.config),
            top: self.top.or(others.top),
            threads: self.threads.or(others.threads),
            max_flows: self.max_flows.or(others.max_flows),
        }
    }
}

pub(crate) fn parse_bin(text: &str) -> Result<Nanos, String> {
    let bin = parse_duration(text)?;
    if bin.0 < 1_000 || bin.0 > 60 * Nanos::SECOND {
        return Err("a bin is 1us to 60s wide".to_owned());
    }
    Ok(bin)
}

pub(crate) fn parse_lag(text: &str) -> Result<Vec<String>, String> {
    let members: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if members.len() < 2 || members.iter().any(String::is_empty) {
        return Err("a link aggregation has two members or more, such as eth0,eth1".to_owned());
    }
    Ok(members)
}

pub(crate) fn parse_max_flows(text: &str) -> Result<usize, String> {
    let flows: usize = text
        .replace('_', "")
        .parse()
        .map_err(|_| "expected a number".to_owned())?;
    if flows == 0 {
        return Err("at least one flow is kept".to_owned());
    }
    Ok(flows)
}

pub(crate) fn parse_threads(text: &str) -> Result<u32, String> {
    let threads = text.parse().map_err(|_| "expected a number")?;
    if (1..=64).contains(&threads) {
        Ok(threads)
    } else {
        Err("1 to 64 threads can analyse".to_owned())
    }
}

/// The severities that a run can fail on, the worst last.
const SEVERITIES: [&str; 3] = ["info", "warning", "critical"];

pub(crate) fn parse_severity(text: &str) -> Result<Severity, String> {
    let found = Severity::ALL
        .iter()
        .find(|severity| severity.name() == text && SEVERITIES.contains(&text));
    found
        .copied()
        .ok_or_else(|| format!("'{text}' is none of {}", SEVERITIES.join(", ")))
}
