//! When a tool ran, as far as its output says.

use serde_json::{Deserializer, Value};

use super::perftest;
use super::text::number;
use crate::prefix::without_prefixes;

/// When a tool ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// From one time to another, in seconds since 1970, by the clock of its host.
    At {
        /// The start.
        begin: f64,
        /// The end.
        end: f64,
    },
    /// For this many seconds, at a time that the output does not have.
    Lasted(f64),
}

/// When the tool ran whose output this is. `None`: the output has neither times nor durations.
///
/// iperf3's documents have their start and seconds. perftest prints no time: a row took its iterations over their rate, or times their
/// latency.
pub fn when(text: &str) -> Option<When> {
    let text = text.trim_start_matches('\u{feff}');
    let bare = without_prefixes(text);
    let text = &*bare;
    if text.trim_start().starts_with('{') {
        return documents(text);
    }
    let seconds: f64 = perftest::rows(text).filter_map(|row| duration(&row)).sum();
    (seconds > 0.0 && seconds.is_finite()).then_some(When::Lasted(seconds))
}

/// From the start of the first test of iperf3 to the end of the last.
fn documents(text: &str) -> Option<When> {
    let mut span: Option<(f64, f64)> = None;
    for document in Deserializer::from_str(text).into_iter::<Value>() {
        let document = document.ok()?;
        let begin = document["start"]["timestamp"]["timesecs"].as_f64()?;
        let end = &document["end"];
        let seconds = ["sum_sent", "sum_received", "sum"]
            .iter()
            .filter_map(|sum| end[sum]["seconds"].as_f64())
            .fold(0.0, f64::max);
        let (first, last) = span.unwrap_or((begin, begin));
        span = Some((first.min(begin), last.max(begin + seconds)));
    }
    span.filter(|(begin, end)| end > begin)
        .map(|(begin, end)| When::At { begin, end })
}

/// A row of perftest: values by the names of their columns.
fn duration(row: &perftest::Row<'_>) -> Option<f64> {
    let value = |name: &str| row.field(name).and_then(number);
    let iterations = value("#iterations")?;
    if let Some(rate) = value("MsgRate")
        .map(|rate| rate * 1e6)
        .or_else(|| value("tps_average"))
    {
        return (rate > 0.0).then(|| iterations / rate);
    }
    // One way is half of an iteration.
    let ways = if row.is_one_way { 2.0 } else { 1.0 };
    Some(iterations * ways * value("t_avg")? * 1e-6)
}
