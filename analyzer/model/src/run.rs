//! The table `run`, and the summaries of its inputs.

use std::borrow::Cow;

use crate::Nanos;
use crate::table::table;

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    RunRow, RunColumns, "run", "One input of the run, with the counts of the whole run beside it.";
    version: Cow<'static, str>, "", "Version of roce-analyze.";
    started: Nanos, "ns", "When the run began.";
    elapsed_ns: u64, "ns", "How long it took.";
    options: Cow<'static, str>, "", "The options that shape the results, as key=value.";
    path: Cow<'static, str>, "", "The input.";
    format: Cow<'static, str>, "", "What it turned out to be.";
    bytes: Option<u64>, "bytes", "Its size as stored.";
    sha256: Option<Cow<'static, str>>, "", "Its SHA-256, with --hash.";
    input_frames: u64, "frames", "Frames read from it.";
    first_time: Option<Nanos>, "ns", "Its earliest stamp.";
    last_time: Option<Nanos>, "ns", "Its latest stamp.";
    truncated: bool, "", "Its last record was cut off.";
    error: Option<Cow<'static, str>>, "", "Why reading it ended early.";
    frames: u64, "frames", "Records read in the whole run.";
    frames_lost: u64, "frames", "Records that the captures say they lost.";
    copies: u64, "packets", "Exact copies dropped.";
    roce_packets: u64, "packets", "RoCE packets.";
    undecodable: u64, "frames", "Frames that lead to RoCE but could not be decoded.";
    evicted: u64, "flows", "Flows closed early for --max-flows.";
}

/// Summary of one input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputSummary {
    /// Its path as given.
    pub path: String,
    /// Format of the input.
    pub format: String,
    /// Its size as stored, in bytes; `None` for a stream.
    pub bytes: Option<u64>,
    /// Its SHA-256 in hex, when requested.
    pub sha256: Option<String>,
    /// Frames read from it.
    pub frames: u64,
    /// Its earliest stamp.
    pub first_time: Option<Nanos>,
    /// Its latest stamp.
    pub last_time: Option<Nanos>,
    /// Its last record was cut off.
    pub truncated: bool,
    /// Why reading it ended early.
    pub error: Option<String>,
    /// Warnings for readers, in words.
    pub warnings: Vec<String>,
}
