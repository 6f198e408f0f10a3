//! The options of a run over captures, and those that any run has.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use roce_model::{Address, CapturePart, Expectation, Filter, Span, TapPlace};
use roce_report::JsonFlows;

use crate::options::csig::CsigTypes;
use crate::options::dcqcn::Reaction;
use crate::options::dscp::DscpMap;
use crate::options::duration::{Moment, parse_duration};
use crate::options::expect;
use crate::options::fail_on::{self, FailOn};
use crate::options::format::{Format, formats};
use crate::options::given::GivenOptions;
use crate::options::named::NamedValues;
use crate::options::names::{Names, parse_key, parse_name};
use crate::options::processes::ProcessOptions;
use crate::options::rate::Rate;
use crate::options::size::parse_size;
use crate::options::tap_at;
use crate::options::training::Pattern;

/// The layout of a dataset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Layout {
    /// One run: a folder for each table
    #[default]
    Run,
    /// Many runs of many hosts
    #[cfg(feature = "parquet")]
    Fleet,
}

/// Formats of an analysis.
pub(crate) const FORMATS: [Format; 6] = [
    Format::Text,
    Format::Json,
    Format::Html,
    Format::Perfetto,
    Format::Chrome,
    Format::None,
];

/// Headings of the groups of options in the help.
pub(crate) const RESULTS: &str = "Results";
const SELECTION: &str = "Selection";
const NETWORK: &str = "Network";
const TRAINING: &str = "Training job";
const RUN: &str = "Run";

// A run over captures, as the command without a name has it. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, Debug)]
pub(crate) struct Analyse {
    /// Write the results to DIR, too: a Parquet dataset, run.json and report.html
    #[arg(short, long, value_name = "DIR", help_heading = RESULTS)]
    pub(crate) output: Option<PathBuf>,

    /// Layout of the dataset in DIR
    ///
    /// With "fleet" the run becomes a part of a dataset of many runs: `TABLE/date=YYYY-MM-DD/host=NAME/RUN_ID.parquet`, the date that of
    /// the first frame in UTC. Results of the same run are replaced. Standard output is one line of JSON, the manifest of the run.
    /// There are no run.json and no page, and a bin is 1ms wide unless --bin gives another width.
    #[arg(long, value_enum, default_value = "run", requires = "output", help_heading = RESULTS)]
    pub(crate) layout: Layout,

    /// Replace the dataset in DIR
    #[arg(long, requires = "output", help_heading = RESULTS)]
    pub(crate) overwrite: bool,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats(&FORMATS), help_heading = RESULTS)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) run: RunOptions,

    #[command(flatten)]
    pub(crate) scope: FleetScope,

    /// The folder of results is a passing one, from which they go elsewhere.
    #[arg(skip)]
    pub(crate) is_output_elsewhere: bool,
}

// Captures, and the options that shape their analysis. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RunOptions {
    /// Captures: pcap or pcapng, plain, gzip or zstd; '-' is standard input; the folder of a recorded live run or of a fleet run
    #[arg(value_name = "CAPTURE", required = true)]
    pub(crate) captures: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) shape: Shape,

    /// Use only frames from this time on: RFC 3339, or +DURATION after the first frame
    ///
    /// Losses and disorder that a capture reports about itself remain those of the whole capture.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, help_heading = SELECTION)]
    pub(crate) from: Option<Moment>,

    /// Use only frames before this time: RFC 3339, or +DURATION after the first frame
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, help_heading = SELECTION)]
    pub(crate) to: Option<Moment>,

    /// Leave times unchanged, even where packets in several captures show that their clocks differ
    #[arg(long, help_heading = NETWORK)]
    pub(crate) no_align: bool,

    /// Read at most this much of each capture, decompressed (10GB); a longer one is read up to there and ends with an error
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = SELECTION)]
    pub(crate) max_input: Option<u64>,

    /// Cables between hosts, switches and hypervisors, and their addresses, from an inventory
    ///
    /// With them, samples of switches and hypervisors are related to the captured flows: origins of pauses, drops, uneven links.
    #[arg(long = "inventory", value_name = "FILE", help_heading = NETWORK)]
    pub(crate) fabric: Option<PathBuf>,

    /// Join the samples of another run: a folder that `live -o`, `host counters -o` or `fabric counters -o` wrote, or a file of JSON lines
    /// (can be repeated)
    ///
    /// They become rows of the table `samples` and tracks of the report. A capture that lies in the folder gives them its clock.
    #[arg(long, value_name = "DIR|FILE", help_heading = NETWORK)]
    pub(crate) samples: Vec<PathBuf>,

    /// Log of NCCL or RCCL of the captured job: flows get the ranks behind their queue pairs (can be repeated)
    ///
    /// Set NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH for the job. Findings, tables and the page then speak of ranks, too. Errors
    /// of other programs in it (UCX, libfabric, MPI, the kernel, ...) are joined with their connections, too.
    #[arg(long, value_name = "FILE", help_heading = TRAINING)]
    pub(crate) nccl_log: Vec<PathBuf>,

    /// Merge a document of the job, whose content says what it is (can be repeated)
    ///
    /// Traces of PyTorch's profiler and NCCL's, NCCL Inspector's files, answers of NCCL's RAS, PyTorch's flight recorder; compressed or not.
    ///
    /// Collectives are shown on the capture's clock, each with what the network did meanwhile. With ADDRESS= only the traffic of this
    /// host counts for them. A log counts as with --nccl-log.
    #[arg(long, visible_alias = "job-log", value_name = "[ADDRESS=]FILE", help_heading = NETWORK)]
    pub(crate) merge: Vec<String>,

    /// Key of the capture, for the column `capture` of all tables [default: its path relative to what was given]
    #[arg(long, value_name = "KEY", value_parser = parse_key, help_heading = RESULTS)]
    pub(crate) capture: Option<String>,

    #[command(flatten)]
    pub(crate) names: Names,

    /// Write the SHA-256 of every input to run.json (reads each input once more)
    #[arg(long, help_heading = RESULTS)]
    pub(crate) hash: bool,
}

// Options that `dataset join` gives to the runs that it starts. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FleetScope {
    /// Tables that are written with --layout fleet
    #[arg(long, hide = true, value_delimiter = ',')]
    pub(crate) tables: Vec<String>,

    /// Write only hops of flows to this address
    #[arg(long, hide = true)]
    pub(crate) hops_to: Option<Address>,

    /// Day of the run
    #[arg(long, hide = true, value_parser = parse_name)]
    pub(crate) run_date: Option<String>,
}

// Options that change the results of any run. (A comment for the compiler would become the help's first
// line.)
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Shape {
    #[command(flatten)]
    pub(crate) given: GivenOptions,

    /// Exit with 1 when there is a finding of this severity or worse, or with this id
    ///
    /// Severities are info, warning and critical; `explain list` has the ids. A list such as "critical,loss.network" is possible.
    /// A run without any RoCE packet fails, too, because nothing could be judged; `no-roce` asks for that alone.
    /// A line on standard error names what failed the run.
    #[arg(
        long,
        value_name = "SEVERITY|FINDING",
        help_heading = RESULTS,
        hide_possible_values = true,
        value_parser = NamedValues::new(FailOn::parse, || fail_on::names().collect())
    )]
    pub(crate) fail_on: Option<FailOn>,

    /// Flows in the terminal's table [default: 10]
    #[arg(long, value_name = "N", value_parser = parse_top, help_heading = RESULTS)]
    pub(crate) top: Option<usize>,

    /// Rows of flows in run.json and --format json, or "all": those with the most trouble, then the most bytes [default: 1000]
    ///
    /// `flows_left_out` counts the others. With "all" they are written while they close, before the other keys, in no order.
    /// The Parquet table has all flows in any case.
    #[arg(long, value_name = "N|all", value_parser = parse_json_flows, help_heading = RESULTS)]
    pub(crate) json_flows: Option<JsonFlows>,

    /// Show every finding with its numbers and next step, and every episode
    #[arg(long, help_heading = RESULTS)]
    pub(crate) full: bool,

    /// Print no notes on standard error, only warnings and errors
    #[arg(short, long, help_heading = RESULTS)]
    pub(crate) quiet: bool,

    /// Width of a timeline bin, such as 100us, 1ms, 1s [default: 10us to 1ms, by the captures' length]
    ///
    /// The default gives 250 bins or more. It is 1ms for captures of 250ms or longer, for standard input and for live runs.
    #[arg(long, value_name = "DURATION", value_parser = parse_bin, help_heading = RESULTS)]
    pub(crate) bin: Option<Span>,

    /// Show only flows that match EXPR: addresses, qpn, service, dscp, vlan, vni with and, or, not, ( )
    ///
    /// All traffic is analysed, and verdicts and totals are about all of it. Examples: "10.0.0.1 <-> 10.0.0.2", "src 10.0.0.0/24
    /// and qpn 0x11", "service ud or dscp 48". The name of a flow, as results print it, is an expression, too: "10.0.0.5 > 10.0.0.7 QP 0x11".
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse, help_heading = SELECTION)]
    pub(crate) flow: Option<Filter>,

    /// Analyse only packets that match EXPR, as if no others existed: verdicts can be wrong without the rest
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse, help_heading = SELECTION)]
    pub(crate) only_flow: Option<Filter>,

    #[command(flatten)]
    pub(crate) processes: ProcessOptions,

    /// Members of a link aggregation, by interface or capture: they are one point of observation (can be repeated)
    #[arg(long, value_name = "NAME,NAME", value_parser = parse_lag, help_heading = NETWORK)]
    pub(crate) lag: Vec<Vec<String>>,

    /// Where the only capture was made: sender, receiver (of the data), or the address of the host beside it [default: from answer times and hop limits]
    #[arg(long, value_name = "PLACE", value_parser = tap_at::parse, help_heading = NETWORK)]
    pub(crate) tap_at: Option<TapPlace>,

    /// The captures hold 1 in N packets, or ("ends") first and last packets of messages, answers and CNPs: nothing is concluded from what is missing
    ///
    /// Shares of marks, opcodes and talkers get bounds, counts of CNPs and NAKs estimates. Finding `capture.thin` lists what cannot be told.
    /// Without the option, captures of which the packets show it are taken so as well.
    #[arg(long, value_name = "N|ends", value_parser = str::parse::<CapturePart>, help_heading = NETWORK)]
    pub(crate) sampled: Option<CapturePart>,

    /// UDP port of MRC besides 4791 and 4971
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = NETWORK)]
    pub(crate) mrc_port: Option<u16>,

    /// EtherType of CSIG tags, and after a comma that of wide ones, such as 0x9900,0x9901 [default: 0x9900]
    #[arg(long, value_name = "TYPE[,TYPE]", value_parser = CsigTypes::parse, help_heading = NETWORK)]
    pub(crate) csig_type: Option<CsigTypes>,

    /// Speed of the links, such as 25G or 100Gbps: for pauses and DCQCN rates
    #[arg(long, value_name = "RATE", value_parser = Rate::parse, help_heading = NETWORK)]
    pub(crate) link_rate: Option<Rate>,

    /// Priority of each DSCP, such as 26=3,48=6 or 24-31=3 [default: DSCP >> 3]
    ///
    /// It decides which flows the pause of a priority stops. A VLAN tag's priority overrides it.
    #[arg(long, value_name = "DSCP=PRIORITY,...", value_parser = DscpMap::parse, help_heading = NETWORK)]
    pub(crate) dscp_map: Option<DscpMap>,

    /// The class and path MTU that the traffic has to have: dscp, priority, mtu (the path MTU), cnp-dscp, cnp-priority; such as dscp=26,mtu=4096 (can be repeated)
    ///
    /// Data or CNPs in another class, and other path MTUs, are findings then. With --inventory, what its [cluster] states is expected, too.
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = expect::parse, help_heading = NETWORK)]
    pub(crate) expect: Vec<Expectation>,

    /// DCQCN parameters of the senders: paper, ns3, nvidia, changes such as nvidia,timer=55us, or none [default: paper]
    ///
    /// They and --link-rate give the rate that the timeline expects after each CNP. A sender ignores CNPs when it sends more than these
    /// parameters allow; without the option, more than every known set allows. "none" is for senders with another congestion control.
    #[arg(long, value_name = "SET", value_parser = Reaction::parse, help_heading = NETWORK)]
    pub(crate) dcqcn: Option<Reaction>,

    /// Log of the training script: its step times are joined to the steps in the traffic
    ///
    /// Lines such as "Iteration 10 | ... AllReduce: 45.2ms | Total: 156.3ms" are understood.
    #[arg(long, value_name = "FILE", help_heading = TRAINING)]
    pub(crate) training_log: Option<PathBuf>,

    /// Regular expression for that log's lines, with the named groups step, and allreduce_ms or total_ms
    ///
    /// The units _s, _ms and _us are known. Example: "step (?<step>\d+) took (?<total_ms>[0-9.]+)".
    #[arg(long, value_name = "REGEX", value_parser = Pattern::parse, help_heading = TRAINING)]
    pub(crate) training_log_pattern: Option<Pattern>,

    /// Read defaults of these options, and thresholds of the findings, from a TOML file
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub(crate) config: Option<PathBuf>,

    // Text of the configuration that a recorded run had.
    #[arg(skip)]
    pub(crate) recorded_config: Option<String>,

    /// Threads of the analysis; 1 runs everything on one thread [default: the number of processors, at most 8]
    #[arg(long, value_name = "N", value_parser = parse_threads, help_heading = RUN)]
    pub(crate) threads: Option<u32>,

    /// Flows in memory at once; beyond it the idle ones are closed early, and counted [default: 500000]
    #[arg(long, value_name = "N", value_parser = parse_max_flows, help_heading = RUN)]
    pub(crate) max_flows: Option<usize>,
}

/// A command line of options that shape a run, and nothing else.
#[derive(Parser, Debug)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct ShapeArguments {
    #[command(flatten)]
    shape: Shape,
}

/// Options that shape a run and take a value.
pub(crate) fn valued_options() -> Vec<clap::Arg> {
    let command = ShapeArguments::command();
    let options = command.get_arguments();
    options
        .filter(|option| option.get_action().takes_values())
        .cloned()
        .collect()
}

impl Shape {
    /// Parses arguments such as `--bin=1ms`.
    ///
    /// # Errors
    /// When they are not understood.
    pub(crate) fn from_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Ok(ShapeArguments::try_parse_from(words)?.shape)
    }

    /// These options; where one is not given, that of `base`.
    ///
    /// # Errors
    /// None: arguments that were understood once are so again.
    pub(crate) fn over(&self, mut base: Self) -> Result<Self, clap::Error> {
        // A flag that is not given is false, and would end that of the base.
        let (is_full, is_quiet) = (base.full, base.quiet);
        if self.processes != ProcessOptions::default() {
            // Processes are chosen together.
            base.processes = ProcessOptions::default();
        }
        if self.config.is_some() {
            base.recorded_config = None;
        }
        for matches in self.given.layers() {
            base.update_from_arg_matches(matches)?;
        }
        base.full |= is_full;
        base.quiet |= is_quiet;
        Ok(base)
    }
}

pub(crate) fn parse_bin(text: &str) -> Result<Span, String> {
    let bin = parse_duration(text)?;
    if bin.0 < 1_000 || bin.0 > 60 * Span::SECOND.0 {
        return Err("expected 1us to 60s".to_owned());
    }
    Ok(bin)
}

pub(crate) fn parse_top(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a number".to_owned())
}

pub(crate) fn parse_json_flows(text: &str) -> Result<JsonFlows, String> {
    if text == "all" {
        return Ok(JsonFlows::All);
    }
    text.parse()
        .map(JsonFlows::Most)
        .map_err(|_| "expected a number of rows, or all".to_owned())
}

pub(crate) fn parse_lag(text: &str) -> Result<Vec<String>, String> {
    let members: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if members.len() < 2 || members.iter().any(String::is_empty) {
        return Err("expected two members or more, such as eth0,eth1".to_owned());
    }
    Ok(members)
}

pub(crate) fn parse_max_flows(text: &str) -> Result<usize, String> {
    let flows: usize = text
        .replace('_', "")
        .parse()
        .map_err(|_| "expected a number".to_owned())?;
    if flows == 0 {
        return Err("expected 1 or more".to_owned());
    }
    Ok(flows)
}

pub(crate) fn parse_threads(text: &str) -> Result<u32, String> {
    let threads = text.parse().map_err(|_| "expected a number")?;
    if (1..=64).contains(&threads) {
        Ok(threads)
    } else {
        Err("expected 1 to 64".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(words: &[&str]) -> Shape {
        Shape::from_words(words.iter().map(OsString::from)).unwrap()
    }

    #[test]
    fn later_layers_win_option_by_option() {
        let file = shape(&["--bin=1ms", "--top=5", "--lag=a,b", "--lag=c,d"]);
        let recorded = shape(&["--top=7", "--full", "--pid=4", "--training-log=x.log"]);
        let own = shape(&["--lag=e,f", "--comm=ib_write_bw", "--quiet"]);
        let all = own.over(recorded.over(file).unwrap()).unwrap();
        assert_eq!((all.bin.map(|bin| bin.0), all.top), (Some(1_000_000), Some(7)));
        // The list of the command line replaces that of the file, as do its processes.
        assert_eq!(all.lag, [["e", "f"]]);
        assert_eq!(all.processes, shape(&["--comm=ib_write_bw"]).processes);
        assert!(all.full && all.quiet);
        // The layers go on as one.
        let again = all.over(shape(&["--top=1", "--threads=2"])).unwrap();
        assert_eq!((again.top, again.threads), (Some(7), Some(2)));
    }

    #[test]
    #[cfg(feature = "live")]
    fn a_forgotten_path_is_no_option() {
        let mut recorded = shape(&["--training-log=x.log", "--top=7"]);
        recorded.given.forget_path("training_log");
        let all = recorded.over(Shape::default()).unwrap();
        assert_eq!((all.training_log, all.top), (None, Some(7)));
    }
}
