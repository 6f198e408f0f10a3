//! Measured quantities in equal units, whatever a tool prints: rates in bit/s, times in microseconds.

use super::meanings::REMARK_MEANINGS;
use crate::nccl::Log;

/// Measurements and remarks that are kept of a text: the longest sweep of nccl-tests has fewer than 100 sizes.
const MAX_KEPT: usize = 10_000;

/// A quantity compared with what follows from others of the same line may differ by this share: tools round.
pub(super) const ROUNDING: f64 = 0.01;

/// Columns of a table that are read: the widest, of nccl-tests, has 13.
pub(super) const MAX_COLUMNS: usize = 64;

/// Results in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The tool, by its name; empty: no tool's text was recognized.
    pub tool: &'static str,
    /// One for each line of results, in the order of the text.
    pub measurements: Vec<Measurement>,
    /// Errors and remarks.
    pub remarks: Vec<Remark>,
    /// Facts of NCCL's log, where there is one.
    pub log: Option<Log>,
    /// Measurements, remarks and edges beyond what is kept.
    pub left_out: u64,
}

impl Results {
    pub(super) fn measured(&mut self, measurement: Measurement) {
        if self.measurements.len() < MAX_KEPT {
            self.measurements.push(measurement);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn remark(&mut self, weight: Weight, rule: &'static str, line: usize, text: String) {
        debug_assert!(
            REMARK_MEANINGS.iter().any(|(name, _)| *name == rule),
            "{rule} has no meaning"
        );
        if self.remarks.len() < MAX_KEPT {
            self.remarks.push(Remark {
                weight,
                rule,
                line,
                text,
            });
        } else {
            self.left_out += 1;
        }
    }
}

/// How much a remark matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// To be known.
    Info,
    /// Something to look at.
    Warning,
    /// The result is wrong, or there is none.
    Critical,
}

impl Weight {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// An error or remark about a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Remark {
    /// How much it matters.
    pub weight: Weight,
    /// The name of its kind, such as `nccl.wrong`.
    pub rule: &'static str,
    /// The line of the text, from 1 on; 0: of no line.
    pub line: usize,
    /// One sentence.
    pub text: String,
}

/// One line of results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// The line of the text, from 1 on; 0: the text is one document.
    pub line: usize,
    /// The program, such as `ib_write_bw`.
    pub tool: String,
    /// The operation, such as `RDMA WRITE`, `TCP` or `all_reduce`.
    pub what: String,
    /// Bytes of a message, of a write, or of a collective operation.
    pub size_bytes: Option<u64>,
    /// Queue pairs or connections.
    pub streams: Option<u32>,
    /// Ranks of a collective operation.
    pub ranks: Option<u32>,
    /// Bytes: of InfiniBand's path MTU (perftest), or of the IP packets (iperf3).
    pub mtu: Option<u32>,
    /// The rate is the sum of both directions.
    pub is_bidirectional: bool,
    /// The side that received, or served the client's test.
    pub is_server: bool,
    /// Payload in bit/s: the average. Of a collective operation: size over time (algbw).
    pub goodput_bps: Option<f64>,
    /// Payload in bit/s: the highest.
    pub peak_bps: Option<f64>,
    /// Rate on each link of a collective operation, in bit/s (busbw).
    pub bus_bps: Option<f64>,
    /// Messages per second.
    pub messages_per_second: Option<f64>,
    /// Time of an operation, in microseconds: the average.
    pub time_us: Option<f64>,
    /// Time of a message or of a segment.
    pub latency: Option<Latency>,
    /// Retransmissions of TCP.
    pub retransmits: Option<u64>,
    /// Share of the datagrams that were lost.
    pub lost_ratio: Option<f64>,
    /// Jitter of datagrams, in microseconds.
    pub jitter_us: Option<f64>,
    /// Elements with a wrong value.
    pub wrong: Option<u64>,
    /// Load of the CPU, 1 being one core (iperf3), or all of them (perftest).
    pub cpu_ratio: Option<f64>,
}

/// Operation whose time a latency is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyKind {
    /// One way: half of the round trip (perftest's WRITE and SEND).
    #[default]
    OneWay,
    /// The whole round trip (perftest's READ and atomics).
    RoundTrip,
    /// TCP's own smoothed round trip under the load of the test.
    TcpRoundTrip,
    /// The first round trip of a TCP connection, before the load (iperf 2's `irtt`).
    TcpFirst,
}

impl LatencyKind {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneWay => "one_way",
            Self::RoundTrip => "round_trip",
            Self::TcpRoundTrip => "tcp_round_trip",
            Self::TcpFirst => "tcp_first_round_trip",
        }
    }
}

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Operation whose time it is.
    pub kind: LatencyKind,
    /// The shortest.
    pub min: Option<f64>,
    /// The most frequent (perftest: the median).
    pub typical: Option<f64>,
    /// The mean.
    pub average: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
    /// The standard deviation.
    pub stddev: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    pub p999: Option<f64>,
}

impl Latency {
    /// The value that stands for all: the typical one, else the mean.
    pub fn usual(&self) -> Option<f64> {
        self.typical.or(self.average)
    }
}

/// The ratio of bus bandwidth to size over time, of `ranks` ranks (nccl-tests, doc/PERFORMANCE.md). `None`: not known for this operation.
pub fn bus_factor(operation: &str, ranks: u32) -> Option<f64> {
    let ranks = f64::from(ranks);
    if ranks < 1.0 {
        return None;
    }
    match operation.trim_end_matches("_perf") {
        "all_reduce" => Some(2.0 * (ranks - 1.0) / ranks),
        "all_gather" | "reduce_scatter" | "alltoall" | "gather" | "scatter" => Some((ranks - 1.0) / ranks),
        "broadcast" | "reduce" | "sendrecv" => Some(1.0),
        _ => None,
    }
}
