//! The table `run`, and the summaries of its inputs.

use std::borrow::Cow;

use crate::table::table;
use crate::{Column, ColumnType, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    RunRow, RunColumns, "run", "One input of the run, with the counts of the whole run beside it.";
    version: Cow<'static, str>, "", "Version of roce-analyze.";
    started: Time, "ns", "Start of the run.";
    elapsed_ns: u64, "ns", "Duration of the run.";
    options: Cow<'static, str>, "", "The options that shape the results, as key=value.";
    input: Cow<'static, str>, "", "Key of the input: its path relative to what was given, or the device.";
    format: Cow<'static, str>, "", "Format of the input.";
    bytes: Option<u64>, "bytes", "Size of the input as stored. Absent for a stream or a device.";
    sha256: Option<Cow<'static, str>>, "", "SHA-256 of the input. Absent without --hash.";
    input_frames: u64, "frames", "Frames read from the input.";
    first_time: Option<Time>, "ns", "Earliest stamp of the input. Absent without frames.";
    last_time: Option<Time>, "ns", "Latest stamp of the input. Absent without frames.";
    truncated: bool, "", "True if the last record of the input was cut off.";
    error: Option<Cow<'static, str>>, "", "Error that ended the input early. Absent: there was none.";
    frames: u64, "frames", "Records read in the whole run.";
    frames_lost: u64, "frames", "Lost records, as the captures report them.";
    copies: u64, "packets", "Exact copies of packets that were dropped.";
    roce_packets: u64, "packets", "RoCE packets.";
    undecodable: u64, "frames", "Frames that lead to RoCE but could not be decoded.";
    evicted: u64, "flows", "Flows closed early for --max-flows.";
}

/// Names of a run in tables that hold many runs: the first columns of each table in a dataset, and keys of `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunKey {
    /// Identifier of the run: equal whenever one capture is analysed with the same options.
    pub run_id: String,
    /// Host that captured.
    pub host: String,
    /// Key of the capture.
    pub capture: String,
}

impl RunKey {
    /// The columns that begin each table of a dataset.
    pub const COLUMNS: [Column; 3] = [
        Self::column(
            "run_id",
            "Identifier of the run, from --run-id: by default a hash of the capture's key, its size and the options that shape results.",
        ),
        Self::column(
            "host",
            "Host that captured, from --host-name: by default the name of the machine that analysed.",
        ),
        Self::column(
            "capture",
            "Key of the capture, from --capture: by default its path relative to what was given; of several, the first and `+` the number of the others.",
        ),
    ];

    const fn column(name: &'static str, meaning: &'static str) -> Column {
        Column {
            name,
            kind: ColumnType::Text,
            nullable: false,
            unit: "",
            meaning,
        }
    }

    /// The values of [`COLUMNS`](Self::COLUMNS).
    pub fn values(&self) -> [&str; 3] {
        [&self.run_id, &self.host, &self.capture]
    }
}

/// The summary of one input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputSummary {
    /// Its key: its path relative to what was given, or the device. Never an absolute path.
    pub input: String,
    /// Its format.
    pub format: String,
    /// Its size as stored, in bytes; `None` for a stream.
    pub bytes: Option<u64>,
    /// Its SHA-256 in hex, with `--hash`.
    pub sha256: Option<String>,
    /// Frames read from it.
    pub frames: u64,
    /// Its earliest stamp.
    pub first_time: Option<Time>,
    /// Its latest stamp.
    pub last_time: Option<Time>,
    /// True if its last record was cut off.
    pub truncated: bool,
    /// The error that ended it early.
    pub error: Option<String>,
    /// Warnings for readers, in words.
    pub warnings: Vec<String>,
}
