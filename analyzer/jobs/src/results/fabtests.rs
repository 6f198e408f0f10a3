//! Tables of libfabric's fabtests: `fi_pingpong`, `fi_rdm_bw` and the others (github.com/ofiwg/libfabric, fabtests/common/shared.c,
//! show_perf). Its `MB/sec` are 10^6 bytes, its sizes powers of two (`64k`).

use super::measured::{MAX_COLUMNS, Measurement, Results, Weight};
use super::text::{number, numbered};

/// Bits of its `MB`.
const MB_BITS: f64 = 8e6;

/// True if a text has a table of these tests.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(is_head)
}

fn is_head(line: &str) -> bool {
    line.trim_start().starts_with("bytes ") && line.contains("MB/sec") && line.contains("usec/xfer")
}

/// The tables of a text.
pub(super) fn parse(text: &str) -> Results {
    let mut found = Results {
        tool: "fabtests",
        ..Results::default()
    };
    let mut columns: Vec<&str> = Vec::new();
    for (at, line) in numbered(text) {
        if is_head(line) {
            columns = line.split_whitespace().take(MAX_COLUMNS).collect();
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().take(MAX_COLUMNS).collect();
        let field = |name: &str| {
            let column = columns.iter().position(|column| *column == name)?;
            fields.get(column).copied()
        };
        let Some(size) = field("bytes").and_then(bytes) else {
            continue;
        };
        let value = |name: &str| number(field(name)?);
        let (rate, time) = (value("MB/sec"), value("usec/xfer"));
        if rate.is_none() || time.is_none() {
            let text = format!(
                "the line has {} of {} fields: it was cut",
                fields.len(),
                columns.len()
            );
            found.remark(Weight::Warning, "results.cut", at, text);
            continue;
        }
        found.measured(Measurement {
            line: at,
            tool: "fabtests".to_owned(),
            what: "libfabric".to_owned(),
            size_bytes: Some(size),
            goodput_bps: rate.map(|rate| rate * MB_BITS),
            // It is half of the round trip of a ping-pong, or the time of a transfer: the table does not say which.
            time_us: time,
            messages_per_second: value("Mxfers/sec").map(|rate| rate * 1e6),
            ..Measurement::default()
        });
    }
    found
}

/// `64`, `64k`, `1m`: powers of two.
fn bytes(text: &str) -> Option<u64> {
    let end = text
        .find(|glyph: char| !glyph.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}
