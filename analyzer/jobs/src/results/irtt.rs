//! irtt, a tester of round trips over UDP: its JSON document (`-o`), whose times are in nanoseconds, and its text (github.com/heistp/irtt,
//! `result.go` and `irtt_client.go`).

use serde_json::Value;

use super::measured::{Latency, LatencyKind, Measurement, Results, Weight};
use super::text::{number, numbered};

/// Nanoseconds in a microsecond.
const NS: f64 = 1e-3;

/// True if a text is irtt's document.
pub(super) fn is_document(start: &str) -> bool {
    start.starts_with('{') && start.contains("\"irtt\"") && start.contains("\"json_format\"")
}

/// True if a text has irtt's table.
pub(super) fn is_text(text: &str) -> bool {
    text.lines().any(is_head) && text.contains("packets sent/received:")
}

fn is_head(line: &str) -> bool {
    line.split_whitespace()
        .eq(["Min", "Mean", "Median", "Max", "Stddev"])
}

/// Times of one row: least, mean, median, greatest, standard deviation.
type Row = [Option<f64>; 5];

fn latency([min, average, typical, max, stddev]: Row, kind: LatencyKind) -> Option<Latency> {
    (average.is_some() || typical.is_some()).then(|| Latency {
        kind,
        min,
        typical,
        average,
        max,
        stddev,
        ..Latency::default()
    })
}

/// The rows of a test: round trips, and the delays of each way, which need clocks that agree.
fn measured(
    found: &mut Results,
    line: usize,
    rows: [Row; 3],
    size: Option<u64>,
    lost: Option<f64>,
    jitter: Row,
) {
    let kinds = [LatencyKind::RoundTrip, LatencyKind::OneWay, LatencyKind::OneWay];
    let names = ["UDP round trip", "UDP send delay", "UDP receive delay"];
    for ((row, kind), name) in rows.into_iter().zip(kinds).zip(names) {
        let is_whole = kind == LatencyKind::RoundTrip;
        let latency = latency(row, kind);
        if latency.is_none() && !(is_whole && lost.is_some()) {
            continue;
        }
        found.measured(Measurement {
            line,
            tool: "irtt".to_owned(),
            what: name.to_owned(),
            size_bytes: size,
            latency,
            lost_ratio: lost.filter(|_| is_whole),
            jitter_us: jitter[1].filter(|_| is_whole),
            ..Measurement::default()
        });
    }
}

/// The results of a document.
pub(super) fn document(text: &str) -> Results {
    let mut found = Results {
        tool: "irtt",
        ..Results::default()
    };
    let document = match serde_json::from_str::<Value>(text) {
        Ok(document) => document,
        Err(error) => {
            let said = format!("{error}: the document was cut");
            found.remark(Weight::Critical, "results.cut", error.line(), said);
            return found;
        }
    };
    let stats = &document["stats"];
    let row = |name: &str| {
        ["min", "mean", "median", "max", "stddev"].map(|key| Some(stats[name][key].as_f64()? * NS))
    };
    let rows = ["rtt", "send_delay", "receive_delay"].map(row);
    let lost = stats["packet_loss_percent"]
        .as_f64()
        .map(|percent| percent / 100.0);
    let size = document["config"]["length"].as_u64().filter(|length| *length > 0);
    measured(&mut found, 0, rows, size, lost, row("ipdv_round_trip"));
    if found.measurements.is_empty() {
        let said = "the document has no packet that came back".to_owned();
        found.remark(Weight::Critical, "results.cut", 0, said);
    }
    found
}

/// The results of a text.
pub(super) fn parse(text: &str) -> Results {
    let mut found = Results {
        tool: "irtt",
        ..Results::default()
    };
    let mut rows = [[None; 5]; 3];
    let (mut jitter, mut lost, mut size) = ([None; 5], None, None);
    let mut head = 0;
    for (at, line) in numbered(text) {
        if is_head(line) {
            head = at;
            continue;
        }
        let line = line.trim();
        let named = [("RTT", 0), ("send delay", 1), ("receive delay", 2)];
        let named = named
            .iter()
            .find_map(|(name, row)| Some((line.strip_prefix(name)?, row)));
        if let Some((cells, row)) = named.filter(|_| head > 0) {
            rows[*row] = times(cells);
        } else if let Some(cells) = line.strip_prefix("IPDV (jitter)") {
            jitter = times(cells);
        } else if let Some(counts) = line.strip_prefix("packets sent/received:") {
            // `600/599 (0.17% loss)`.
            let percent = counts
                .split_once('(')
                .and_then(|(_, rest)| rest.split_once("% loss"));
            lost = percent.and_then(|(percent, _)| Some(number(percent)? / 100.0));
        } else if let Some(length) = line.strip_prefix("packet length:") {
            size = length
                .split_whitespace()
                .next()
                .and_then(|length| length.parse().ok());
        }
    }
    measured(&mut found, head, rows, size, lost, jitter);
    found
}

/// The five times of a row; a `-` stands where there is none.
fn times(cells: &str) -> Row {
    let mut cells = cells.split_whitespace();
    [(); 5].map(|()| cells.next().and_then(microseconds))
}

/// Microseconds of a duration as Go prints it: `1m0.5s`, `1.12ms`, `56.2µs`, `700ns`, and below zero with a minus.
fn microseconds(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let mut sum = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|glyph: char| !glyph.is_ascii_digit() && glyph != '.')?;
        let (count, behind) = rest.split_at(end);
        let units = [
            ("ms", 1e3),
            ("\u{b5}s", 1.0),
            ("\u{3bc}s", 1.0),
            ("us", 1.0),
            ("ns", 1e-3),
            ("s", 1e6),
            ("m", 6e7),
            ("h", 3.6e9),
        ];
        let (unit, scale) = units.into_iter().find(|(unit, _)| behind.starts_with(unit))?;
        sum += number(count)? * scale;
        rest = &behind[unit.len()..];
    }
    Some(sign * sum)
}
