//! perftest's `--out_json`: `test_info` and `results`.
//!
//! Versions write names without quotes there (`"Connection_type": RC,`), so that it is no JSON: names and values are read one by one.

use super::measured::{Latency, Measurement, ROUNDING, Results, Weight};
use super::perftest::{MIB_BITS, PerftestSetting};
use super::text::{agree, half_digit, number};

/// Names of a document that are read.
const MAX_NAMES: usize = 10_000;

/// True if a text is such a document.
pub(super) fn is_one(start: &str) -> bool {
    start.starts_with(['{', '[']) && start.contains("\"test_info\"") && start.contains("\"results\"")
}

/// The results of a document: one for each size.
pub(super) fn parse(text: &str) -> Results {
    let mut found = Results {
        tool: "perftest",
        ..Results::default()
    };
    let mut setting = PerftestSetting::default();
    let mut row: Vec<(&str, &str)> = Vec::new();
    for (at, name, value) in pairs(text).take(MAX_NAMES) {
        match name {
            "test" => setting = setting_of(value),
            "Number_of_qps" => setting.streams = value.parse().ok(),
            "Mtu" => setting.mtu = value.trim_end_matches("[B]").parse().ok(),
            "MsgSize" => {
                measured(&mut found, at, &setting, &row);
                row = vec![(name, value)];
            }
            _ if !row.is_empty() => row.push((name, value)),
            _ => {}
        }
    }
    let braces = |brace: char| text.matches(brace).count();
    if braces('{') > braces('}') {
        // Its last value may be a part of one.
        row.pop();
        if row
            .iter()
            .any(|(name, _)| name.starts_with("BW_") || name.starts_with("t_"))
        {
            measured(&mut found, 0, &setting, &row);
        }
        let text = "the document has no end: it was cut".to_owned();
        found.remark(Weight::Critical, "results.cut", 0, text);
        return found;
    }
    measured(&mut found, 0, &setting, &row);
    if found.measurements.is_empty() && found.remarks.is_empty() {
        let text = "the document has no result: the test did not end".to_owned();
        found.remark(Weight::Critical, "results.cut", 0, text);
    }
    found
}

/// `RDMA_Write_BW`, `Send_Lat`, as a title of the text.
fn setting_of(name: &str) -> PerftestSetting {
    let mut setting = PerftestSetting::default();
    let title = name.replace("_BW", " BW").replace("_Lat", " Latency");
    let title = title.trim_end_matches(" Test");
    setting.note(&format!("{title} Test"));
    setting
}

fn measured(found: &mut Results, at: usize, setting: &PerftestSetting, row: &[(&str, &str)]) {
    let text = |name: &str| row.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
    let value = |name: &str| text(name).and_then(number);
    let Some(size) = text("MsgSize").and_then(|size| size.parse::<u64>().ok()) else {
        return;
    };
    let printed_rate = text("MsgRate").unwrap_or_default();
    let printed_average = text("BW_average").or_else(|| text("BW_avg")).unwrap_or_default();
    let rate = number(printed_rate)
        .filter(|rate| *rate > 0.0)
        .map(|rate| rate * 1e6);
    let average = number(printed_average).filter(|rate| *rate > 0.0);
    let halves = (half_digit(printed_rate) * 1e6, half_digit(printed_average));
    let unit = unit(size, rate, average, halves);
    if average.is_some() && unit.is_none() {
        let text = "neither MB/s nor Gbit/s fit its message rate: the rate's unit is not known".to_owned();
        found.remark(Weight::Warning, "perftest.unit", at, text);
    }
    let latency = value("t_avg").or_else(|| value("t_typical")).map(|_| Latency {
        kind: setting.kind,
        min: value("t_min"),
        typical: value("t_typical"),
        average: value("t_avg"),
        max: value("t_max"),
        stddev: value("t_stdev"),
        p99: value("t_99_percentile")
            .or_else(|| value("99_percentile"))
            .or_else(|| value("percentile_99")),
        p999: value("t_99.9_percentile")
            .or_else(|| value("99.9_percentile"))
            .or_else(|| value("percentile_99.9")),
    });
    found.measured(Measurement {
        line: at,
        tool: if setting.tool.is_empty() {
            "perftest".to_owned()
        } else {
            setting.tool.clone()
        },
        what: if setting.what.is_empty() {
            "RDMA".to_owned()
        } else {
            setting.what.clone()
        },
        size_bytes: Some(size),
        streams: setting.streams,
        mtu: setting.mtu,
        is_bidirectional: setting.is_bidirectional,
        goodput_bps: average.zip(unit).map(|(average, unit)| average * unit),
        peak_bps: value("BW_peak")
            .filter(|peak| *peak > 0.0)
            .zip(unit)
            .map(|(peak, unit)| peak * unit),
        messages_per_second: rate,
        latency,
        cpu_ratio: value("CPU_util")
            .or_else(|| value("CPU_Util"))
            .map(|percent| percent / 100.0),
        ..Measurement::default()
    });
}

/// Bits of the unit of the rates, which the document does not name (`--report_gbits`): the one that fits the message rate. `halves`: of the
/// last digits of both.
fn unit(
    size: u64,
    rate: Option<f64>,
    average: Option<f64>,
    (half_rate, half_average): (f64, f64),
) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "sizes of messages")]
    let size_bits = size as f64 * 8.0;
    let (bits, average) = (rate? * size_bits, average?);
    let fits = |unit: &f64| {
        let digit = half_rate * size_bits + half_average * unit;
        agree(bits, average * unit, ROUNDING, digit)
    };
    // A rate of one digit may fit both.
    match [1e9, MIB_BITS].map(|unit| Some(unit).filter(fits)) {
        [unit, None] | [None, unit] => unit,
        _ => None,
    }
}

/// Names and values, with their lines. A value may lack its quotes, and objects and lists have none.
fn pairs(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    text.lines().enumerate().flat_map(|(at, line)| {
        // A document can be one line.
        line.split([',', '{', '}', '[']).filter_map(move |part| {
            let (name, value) = part.split_once(':')?;
            let value = value.trim().trim_matches('"');
            (!value.is_empty()).then(|| (at + 1, name.trim().trim_matches('"'), value))
        })
    })
}
