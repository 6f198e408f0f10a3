//! qperf: tests such as `rc_bw` and `ud_lat` (github.com/linux-rdma/qperf, src/qperf.c).

use super::measured::{Latency, LatencyKind, Measurement, Results, Weight};
use super::text::{number, numbered};

/// Units of rates, in bit/s: steps are of 1,000.
const RATES: [(&str, f64); 10] = [
    ("bytes/sec", 8.0),
    ("KB/sec", 8e3),
    ("MB/sec", 8e6),
    ("GB/sec", 8e9),
    ("TB/sec", 8e12),
    ("bits/sec", 1.0),
    ("Kb/sec", 1e3),
    ("Mb/sec", 1e6),
    ("Gb/sec", 1e9),
    ("Tb/sec", 1e12),
];
/// Units of times, in microseconds.
const TIMES: [(&str, f64); 4] = [("ns", 1e-3), ("us", 1.0), ("ms", 1e3), ("sec", 1e6)];
/// Units of counts in a second.
const COUNTS: [(&str, f64); 4] = [("/sec", 1.0), ("K/sec", 1e3), ("M/sec", 1e6), ("G/sec", 1e9)];
/// Units of sizes; `KB` are 1,000 bytes in one version and 1,024 in another, and are not read.
const SIZES: [(&str, f64); 5] = [
    ("byte", 1.0),
    ("bytes", 1.0),
    ("KiB", 1_024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// True if a text has results of qperf.
pub(super) fn is_one(text: &str) -> bool {
    let next = text.lines().skip(1);
    text.lines()
        .zip(next)
        .any(|(line, next)| test(line).is_some() && pair(next).is_some())
}

/// Transport, operation and kind of a line with the name of a test: `rc_rdma_write_bw:`.
fn test(line: &str) -> Option<(&str, &str, &str)> {
    let name = line.trim_end().strip_suffix(':')?;
    let (transport, rest) = name.split_once('_')?;
    let is_known = ["rc", "uc", "ud", "xrc", "rds", "sctp", "sdp", "tcp", "udp"].contains(&transport);
    let (operation, kind) = rest.rsplit_once('_').unwrap_or(("", rest));
    let is_kind = ["bw", "lat", "mr"].contains(&kind);
    (is_known && is_kind).then_some((transport, operation, kind))
}

/// Name and value of a line such as `    bw  =  4.67 GB/sec`.
fn pair(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(" = ")?;
    let is_inset = line.starts_with([' ', '\t']);
    is_inset.then_some((name.trim(), value.trim()))
}

/// A value with its unit.
fn value(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let mut words = text.split_whitespace();
    let number = number(&words.next()?.replace(',', ""))?;
    let unit = words.next()?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    Some(number * scale)
}

/// The operation as perftest names it, with its transport where that is not a reliable connection.
fn named(transport: &str, operation: &str) -> String {
    if ["tcp", "udp", "sctp", "sdp", "rds"].contains(&transport) {
        return transport.to_ascii_uppercase();
    }
    let what = if operation.contains("rdma_write") {
        "RDMA WRITE"
    } else if operation.contains("rdma_read") {
        "RDMA READ"
    } else if operation.contains("swap") || operation.contains("fetch") {
        "ATOMIC"
    } else {
        "SEND"
    };
    if transport == "rc" {
        what.to_owned()
    } else {
        format!("{what} {}", transport.to_ascii_uppercase())
    }
}

/// The tests of a text.
pub(super) fn parse(text: &str) -> Results {
    let mut found = Results {
        tool: "qperf",
        ..Results::default()
    };
    let mut open: Option<Measurement> = None;
    for (at, line) in numbered(text) {
        if let Some((transport, operation, kind)) = test(line) {
            close(&mut found, open.take());
            let what = named(transport, operation);
            // A READ or an atomic operation is the whole round trip.
            let is_whole = what.contains("READ") || what.contains("ATOMIC");
            open = Some(Measurement {
                line: at,
                tool: "qperf".to_owned(),
                is_bidirectional: operation.split('_').any(|word| word == "bi"),
                latency: (kind == "lat").then(|| Latency {
                    kind: if is_whole {
                        LatencyKind::RoundTrip
                    } else {
                        LatencyKind::OneWay
                    },
                    ..Latency::default()
                }),
                what,
                ..Measurement::default()
            });
            continue;
        }
        let (Some(row), Some((name, text))) = (open.as_mut(), pair(line)) else {
            continue;
        };
        match name {
            // Data that arrived counts, not data that was sent.
            "bw" | "recv_bw" => row.goodput_bps = value(text, &RATES),
            "latency" => {
                if let Some(latency) = &mut row.latency {
                    latency.average = value(text, &TIMES);
                }
            }
            "msg_rate" => row.messages_per_second = value(text, &COUNTS),
            "msg_size" => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "not negative, and it saturates"
                )]
                let size = value(text, &SIZES).map(|bytes| bytes.round() as u64);
                row.size_bytes = size;
            }
            _ => {}
        }
    }
    close(&mut found, open);
    found
}

/// Keeps a test that has a result.
fn close(found: &mut Results, row: Option<Measurement>) {
    let Some(row) = row else { return };
    let has_latency = row.latency.is_some_and(|latency| latency.average.is_some());
    if row.goodput_bps.is_some() || has_latency || row.messages_per_second.is_some() {
        found.measured(row);
    } else {
        let text = "the test has no result: the output was cut, or the test failed".to_owned();
        found.remark(Weight::Warning, "results.cut", row.line, text);
    }
}
