//! `ucx_perftest`: the line `Final:` of its table (github.com/openucx/ucx, src/tools/perf/perftest.c). Its `MB/s` are 2^20 bytes; the
//! latency of its tests of ping-pong is half of the round trip.

use super::measured::{Latency, LatencyKind, Measurement, Results, Weight};
use super::perftest::MIB_BITS;
use super::text::{number, numbered};

/// Columns behind `Final:`: iterations, three times in microseconds, two rates, and two rates of messages.
const COLUMNS: usize = 8;

/// True if a text has a table of this tool.
pub(super) fn is_one(text: &str) -> bool {
    text.contains("# iterations") && text.contains("%ile") && text.contains("message rate (msg/s)")
}

/// The results of a text.
pub(super) fn parse(text: &str) -> Results {
    let mut found = Results {
        tool: "ucx_perftest",
        ..Results::default()
    };
    let mut title = "";
    let mut size_bytes = None;
    let mut is_latency = false;
    for (at, line) in numbered(text) {
        let setting = |name: &str| {
            let inside = line.trim().strip_prefix('|')?.trim_start();
            Some(inside.strip_prefix(name)?.trim_end_matches('|').trim())
        };
        if let Some(named) = setting("Test:") {
            title = named;
        } else if let Some(size) = setting("Message size:") {
            size_bytes = size.parse().ok();
        } else if line.contains("(usec)") {
            is_latency = line.contains("latency (usec)");
        } else if let Some(rest) = line.trim_start().strip_prefix("Final:") {
            let values: Vec<f64> = rest.split_whitespace().map_while(number).collect();
            let [_, typical, _, overall, _, rate, _, messages] = values.as_slice() else {
                let text = format!("the line has {} of {COLUMNS} fields: it was cut", values.len());
                found.remark(Weight::Warning, "results.cut", at, text);
                continue;
            };
            found.measured(Measurement {
                line: at,
                tool: "ucx_perftest".to_owned(),
                what: if title.is_empty() {
                    "UCX".to_owned()
                } else {
                    title.to_owned()
                },
                size_bytes,
                goodput_bps: Some(rate * MIB_BITS).filter(|_| !is_latency),
                messages_per_second: Some(*messages),
                latency: is_latency.then(|| Latency {
                    kind: LatencyKind::OneWay,
                    // 0 without enough iterations for it.
                    typical: Some(*typical).filter(|time| *time > 0.0),
                    average: Some(*overall),
                    ..Latency::default()
                }),
                ..Measurement::default()
            });
        }
    }
    found
}
