//! Measurements: generated captures, names of the commands that run on them, and their results.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// One generated capture; `bench_capture` says what is in it.
pub(super) struct GeneratedFile {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Packets, as a share of `--packets` (one in this many).
    pub(super) one_in: u64,
    pub(super) flows: &'static str,
    pub(super) captured: &'static str,
    pub(super) per_row: &'static str,
    /// Other arguments.
    pub(super) more: &'static [&'static str],
}

pub(super) const F4K_30: &str = "96b-4096-flows-30-a-row";
pub(super) const F4K_3: &str = "96b-4096-flows-3-a-row";
pub(super) const F100K_30: &str = "96b-100000-flows-30-a-row";
pub(super) const F100K_3: &str = "96b-100000-flows-3-a-row";
pub(super) const F100K_QUARTER: &str = "96b-100000-flows-3-a-row-quarter";
pub(super) const FULL: &str = "full-4096-flows-30-a-row";
pub(super) const MIXED: &str = "96b-mixed";
pub(super) const SHORT_MIXED: &str = "96b-mixed-short";
pub(super) const HOSTILE: &str = "96b-hostile";
pub(super) const SHORT: &str = "96b-4096-flows-30-a-row-short";

#[rustfmt::skip]
pub(super) const FILES: &[GeneratedFile] = &[
    GeneratedFile { name: F4K_30, about: "96 B, 4,096 flows, 30 packets a row", one_in: 1, flows: "4096", captured: "96", per_row: "30", more: &[] },
    GeneratedFile { name: F4K_3, about: "96 B, 4,096 flows, 3 packets a row", one_in: 1, flows: "4096", captured: "96", per_row: "3", more: &[] },
    GeneratedFile { name: F100K_30, about: "96 B, 100,000 flows, 30 packets a row", one_in: 1, flows: "100000", captured: "96", per_row: "30", more: &[] },
    GeneratedFile { name: F100K_3, about: "96 B, 100,000 flows, 3 packets a row", one_in: 1, flows: "100000", captured: "96", per_row: "3", more: &[] },
    GeneratedFile { name: F100K_QUARTER, about: "the same, a quarter of it", one_in: 4, flows: "100000", captured: "96", per_row: "3", more: &[] },
    GeneratedFile { name: FULL, about: "full size, 4,096 flows, 30 packets a row", one_in: 8, flows: "4096", captured: "full", per_row: "30", more: &[] },
    // 4,096 connections of 64 hosts: 2 % of the data marked, 0.9 % of the packets CNPs.
    GeneratedFile { name: MIXED, about: "mixed: 96 B, 8,192 flows, 9 packets a row", one_in: 1, flows: "8192", captured: "96", per_row: "9", more: &["--marked-in", "50", "--notified-in", "2"] },
    // Callgrind takes fifty times as long.
    GeneratedFile { name: SHORT_MIXED, about: "the first 10 % of that", one_in: 10, flows: "8192", captured: "96", per_row: "9", more: &["--marked-in", "50", "--notified-in", "2"] },
    GeneratedFile { name: HOSTILE, about: "each packet a flow of its own", one_in: 10, flows: "4096", captured: "96", per_row: "9", more: &["--hostile"] },
    // tshark takes minutes for what the others read in a second.
    GeneratedFile { name: SHORT, about: "the first 2 % of the first file", one_in: 50, flows: "4096", captured: "96", per_row: "30", more: &[] },
];

/// Names of what is measured, as far as ratios and targets speak of them.
pub(super) const FLOOR: &str = "read() alone";
pub(super) const NO_OUTPUT: &str = "analysis, no output";
pub(super) const NO_OUTPUT_WIDE: &str = "analysis, no output, --bin 1s";
pub(super) const PARQUET: &str = "analysis, Parquet";
pub(super) const PARQUET_WIDE: &str = "analysis, Parquet, --bin 1s";
pub(super) const CAPINFOS: &str = "capinfos -c";
pub(super) const NFPCAPD: &str = "nfpcapd, flows";
pub(super) const NDPI: &str = "ndpiReader -q";
pub(super) const TSHARK: &str = "tshark -T fields";

pub(crate) struct MeasuredFile {
    pub(super) file: &'static str,
    pub(super) what: &'static str,
    pub(super) cores: usize,
    pub(crate) seconds: f64,
    /// The fastest and the slowest round.
    pub(super) span: (f64, f64),
    pub(super) peak_megabytes: Option<f64>,
}

/// Generated captures.
pub(super) struct Capture {
    pub(super) path: PathBuf,
    pub(super) packets: f64,
    pub(super) rows: f64,
}

pub(super) type Captures = BTreeMap<&'static str, Capture>;

pub(super) fn find<'a>(
    measured: &'a [MeasuredFile],
    file: &str,
    what: &str,
    cores: usize,
) -> Option<&'a MeasuredFile> {
    measured
        .iter()
        .find(|row| row.file == file && row.what == what && row.cores == cores)
}
