//! The benchmark of all-reduce in Machine Learning Engineering (github.com/stas00/ml-engineering, `network/benchmarks/all_reduce_bench.py`):
//! its table by payload, and the older paragraph of one payload.

use super::measured::{Measurement, ROUNDING, Results, Weight, bus_factor};
use super::text::{agree, number, numbered};

/// Bits of its `GBps`: 10^9 bytes.
const GB_BITS: f64 = 8e9;
/// Bits of half of the last digit, of 0.01 GBps.
const DIGIT: f64 = 0.005 * GB_BITS;
const TITLE: &str = "The average bandwidth of all_reduce ";

/// True if a text has results of this benchmark.
pub(super) fn is_one(text: &str) -> bool {
    text.contains(TITLE)
}

/// The results of a text.
pub(super) fn parse(text: &str) -> Results {
    let mut found = Results {
        tool: "all_reduce_bench",
        ..Results::default()
    };
    let mut ranks = None;
    let mut size = None;
    let mut algorithm = None;
    for (at, line) in numbered(text) {
        if let Some((_, about)) = line.split_once(TITLE) {
            ranks = number_before(about, " ranks");
            size = about
                .strip_prefix("with a ")
                .and_then(|rest| bytes(rest.split(' ').next()?));
        } else if line.trim_start().starts_with('|') {
            table_row(&mut found, at, line, ranks);
        } else if let Some(rate) = rate_behind(line, "algbw:") {
            algorithm = Some(rate);
        } else if let Some(bus) = rate_behind(line, "busbw:") {
            row(&mut found, at, size, ranks, bus, algorithm.take());
        }
    }
    found
}

/// `|   32KiB |   1.18GBps |   0.79GBps |`: payload, rate on the bus, rate of the algorithm.
fn table_row(found: &mut Results, at: usize, line: &str, ranks: Option<u32>) {
    let cells: Vec<&str> = line
        .split('|')
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .take(4)
        .collect();
    let [size, bus, algorithm] = cells.as_slice() else {
        return;
    };
    let Some(size) = bytes(size) else { return };
    let rate = |cell: &str| number(cell.strip_suffix("GBps")?).map(|rate| rate * GB_BITS);
    match (rate(bus), rate(algorithm)) {
        (Some(bus), algorithm) => row(found, at, Some(size), ranks, bus, algorithm),
        (None, _) => found.remark(
            Weight::Warning,
            "results.cut",
            at,
            "the row has no rate: it was cut".to_owned(),
        ),
    }
}

fn row(
    found: &mut Results,
    at: usize,
    size: Option<u64>,
    ranks: Option<u32>,
    bus: f64,
    algorithm: Option<f64>,
) {
    let factor = ranks
        .and_then(|ranks| bus_factor("all_reduce", ranks))
        .filter(|factor| *factor > 0.0);
    if let (Some(factor), Some(algorithm)) = (factor, algorithm)
        && !agree(algorithm * factor, bus, ROUNDING, DIGIT * (1.0 + factor))
    {
        let text = format!(
            "algbw of {} ranks is a busbw of {:.2} GBps, the row says {:.2}",
            ranks.unwrap_or_default(),
            algorithm * factor / GB_BITS,
            bus / GB_BITS
        );
        found.remark(Weight::Warning, "bench.disagrees", at, text);
    }
    let goodput = algorithm.or(factor.map(|factor| bus / factor));
    #[expect(clippy::cast_precision_loss, reason = "sizes of buffers")]
    let time_us = size
        .zip(goodput.filter(|rate| *rate > 0.0))
        .map(|(size, rate)| size as f64 * 8.0 / rate * 1e6);
    found.measured(Measurement {
        line: at,
        tool: "all_reduce_bench".to_owned(),
        what: "all_reduce".to_owned(),
        size_bytes: size,
        ranks,
        goodput_bps: goodput,
        bus_bps: Some(bus),
        time_us,
        ..Measurement::default()
    });
}

/// `32KiB` and `32KB` are both 2^10 bytes there; the old paragraph has `4.0GB`, which are 10^9.
fn bytes(text: &str) -> Option<u64> {
    let at = text.find(|glyph: char| glyph.is_ascii_alphabetic())?;
    let (digits, unit) = text.split_at(at);
    let power = match unit.chars().next()? {
        'B' => 0,
        'K' => 1,
        'M' => 2,
        'G' => 3,
        'T' => 4,
        _ => return None,
    };
    let base: f64 = if digits.contains('.') { 1_000.0 } else { 1_024.0 };
    let bytes = number(digits)? * base.powi(power);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and it saturates"
    )]
    (bytes > 0.0).then_some(bytes.round() as u64)
}

/// `algbw: 239.742 GBps (1917.9 Gbps)` in bit/s.
fn rate_behind(line: &str, name: &str) -> Option<f64> {
    let (_, rest) = line.split_once(name)?;
    let mut words = rest.split_whitespace();
    let rate = number(words.next()?)?;
    (words.next()? == "GBps").then_some(rate * GB_BITS)
}

/// The number before a word: `over 4 ranks`.
fn number_before(text: &str, name: &str) -> Option<u32> {
    let (before, _) = text.split_once(name)?;
    before.rsplit([' ', '(', ',']).next()?.parse().ok()
}
