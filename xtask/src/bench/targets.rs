//! Targets of the bench: ratios within one run, and numbers of a row, a flow, a packet.

use super::files::{
    CAPINFOS, Captures, F4K_3, F4K_30, F100K_3, F100K_30, F100K_QUARTER, FLOOR, FULL, HOSTILE, MIXED,
    MeasuredFile, NDPI, NFPCAPD, NO_OUTPUT, NO_OUTPUT_WIDE, PARQUET, PARQUET_WIDE, SHORT, TSHARK, find,
};
use TargetBound::{AtLeast, AtMost};

/// Targets, each with the result.
#[expect(clippy::too_many_lines, reason = "a list")]
pub(super) fn targets(measured: &[MeasuredFile], captures: &Captures) -> Vec<Target> {
    let seconds =
        |file: &str, what: &str, cores: usize| find(measured, file, what, cores).map(|row| row.seconds);
    // How much longer `a` takes than `b`.
    let ratio = |a: (&str, &str, usize), b: (&str, &str, usize)| {
        Some(seconds(a.0, a.1, a.2)? / seconds(b.0, b.1, b.2)?)
    };
    let row_cost = |file: &'static str| {
        let more = seconds(file, PARQUET, 1)? - seconds(file, NO_OUTPUT, 1)?;
        Some(more * 1e9 / captures.get(file)?.rows)
    };
    // A row's cost beside that of its packets, which are the same in wide bins.
    let row_by_bin = |what: &str, wide: &str| {
        let more = seconds(MIXED, what, 1)? - seconds(MIXED, wide, 1)?;
        Some(more * 1e9 / captures.get(MIXED)?.rows)
    };
    let per_packet =
        |file: &'static str, what: &str| Some(seconds(file, what, 1)? * 1e9 / captures.get(file)?.packets);
    let peak = |file: &str| {
        let all = measured
            .iter()
            .filter(|row| row.file == file && matches!(row.what, NO_OUTPUT | PARQUET));
        all.filter_map(|row| row.peak_megabytes).reduce(f64::max)
    };
    let one_core_peak = |file: &str| find(measured, file, PARQUET, 1)?.peak_megabytes;
    let growth = one_core_peak(F100K_3)
        .zip(one_core_peak(F100K_QUARTER))
        .map(|(whole, quarter)| whole / quarter);
    let both_peaks = peak(F100K_3).zip(peak(F100K_30)).map(|(a, b)| a.max(b));
    let slower = |value: Option<f64>, f: fn(f64, f64) -> f64, other: Option<f64>| Some(f(value?, other?));

    [
        AtLeast.target(
            "mixed, no output: x capinfos -c",
            1.2,
            ratio((MIXED, CAPINFOS, 1), (MIXED, NO_OUTPUT, 1)),
        ),
        AtLeast.target(
            "mixed, Parquet: x capinfos -c",
            0.9,
            ratio((MIXED, CAPINFOS, 1), (MIXED, PARQUET, 1)),
        ),
        AtMost.target(
            "mixed, no output: ns for each row",
            350.0,
            row_by_bin(NO_OUTPUT, NO_OUTPUT_WIDE),
        ),
        AtMost.target(
            "mixed, Parquet: ns for each row",
            500.0,
            row_by_bin(PARQUET, PARQUET_WIDE),
        ),
        AtLeast.target(
            "mixed, no output: two cores x one",
            1.7,
            ratio((MIXED, NO_OUTPUT, 1), (MIXED, NO_OUTPUT, 2)),
        ),
        AtLeast.target(
            "mixed, Parquet: two cores x one",
            1.7,
            ratio((MIXED, PARQUET, 1), (MIXED, PARQUET, 2)),
        ),
        AtMost.target(
            "packets that are each a new flow, no output: ns/packet",
            1_000.0,
            per_packet(HOSTILE, NO_OUTPUT),
        ),
        AtLeast.target(
            "4,096 flows, no output: x capinfos -c",
            1.5,
            ratio((F4K_30, CAPINFOS, 1), (F4K_30, NO_OUTPUT, 1)),
        ),
        AtLeast.target(
            "4,096 flows, no output: x nfpcapd",
            1.5,
            ratio((F4K_30, NFPCAPD, 1), (F4K_30, NO_OUTPUT, 1)),
        ),
        AtLeast.target(
            "4,096 flows, no output: x ndpiReader -q",
            0.9,
            ratio((F4K_30, NDPI, 1), (F4K_30, NO_OUTPUT, 1)),
        ),
        AtMost.target(
            "4,096 flows, no output: x read() alone",
            12.0,
            ratio((F4K_30, NO_OUTPUT, 1), (F4K_30, FLOOR, 1)),
        ),
        AtLeast.target(
            "4,096 flows, Parquet, 30 a row: x capinfos -c",
            1.2,
            ratio((F4K_30, CAPINFOS, 1), (F4K_30, PARQUET, 1)),
        ),
        AtLeast.target(
            "4,096 flows, Parquet, 30 a row: x tshark (its rate on the first 2 %)",
            150.0,
            per_packet(SHORT, TSHARK)
                .zip(per_packet(F4K_30, PARQUET))
                .map(|(tshark, own)| tshark / own),
        ),
        AtMost.target(
            "Parquet, 30 packets a row: ns for each row",
            300.0,
            row_cost(F4K_30),
        ),
        AtMost.target(
            "Parquet, 3 packets a row: ns for each row",
            300.0,
            row_cost(F4K_3),
        ),
        AtMost.target(
            "100,000 flows, no output: ns/packet (the slower of both)",
            200.0,
            slower(
                per_packet(F100K_3, NO_OUTPUT),
                f64::max,
                per_packet(F100K_30, NO_OUTPUT),
            ),
        ),
        AtMost.target(
            "full size, no output: x read() alone",
            2.0,
            ratio((FULL, NO_OUTPUT, 1), (FULL, FLOOR, 1)),
        ),
        AtLeast.target(
            "4,096 flows, no output: two cores x one",
            1.6,
            ratio((F4K_30, NO_OUTPUT, 1), (F4K_30, NO_OUTPUT, 2)),
        ),
        AtMost.target("100,000 flows: peak MB", 300.0, both_peaks),
        AtMost.target(
            "100,000 flows: peak of the whole x peak of a quarter",
            1.1,
            growth,
        ),
    ]
    .to_vec()
}

#[derive(Clone, Copy)]
pub(super) enum TargetBound {
    AtLeast,
    AtMost,
}

impl TargetBound {
    pub(super) fn target(self, what: &'static str, bound: f64, value: Option<f64>) -> Target {
        Target {
            what,
            limit: self,
            bound,
            value,
        }
    }
}

/// A number that is to be reached.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) what: &'static str,
    limit: TargetBound,
    bound: f64,
    pub(super) value: Option<f64>,
}

impl Target {
    /// The number, without a verdict.
    pub(super) fn text(&self) -> String {
        let words = match self.limit {
            AtLeast => "at least",
            AtMost => "at most",
        };
        let value = self
            .value
            .map_or("not measured".to_owned(), |value| format!("{value:.2}"));
        format!("{}: {value}, {words} {}", self.what, self.bound)
    }

    pub(super) fn line(&self) -> String {
        let reached = match (self.value, self.limit) {
            (None, _) => "not measured ",
            (Some(value), AtLeast) if value >= self.bound => "reached      ",
            (Some(value), AtMost) if value <= self.bound => "reached      ",
            _ => "NOT REACHED  ",
        };
        format!("{reached} {}", self.text())
    }
}
