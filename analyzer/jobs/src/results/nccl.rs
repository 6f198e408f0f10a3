//! nccl-tests (github.com/NVIDIA/nccl-tests, src/common.cu and doc/PERFORMANCE.md): its table, older and newer, and its JSON.

use serde_json::Value;

use super::measured::{MAX_COLUMNS, Measurement, ROUNDING, Results, Weight, bus_factor};
use super::text::{after, agree, number, numbered};

/// Bits of nccl-tests' GB: 10^9 bytes.
const GB_BITS: f64 = 8e9;
/// Bits of the last digit of a rate: 0.01 GB/s, of which a half is lost by rounding.
const DIGIT: f64 = 0.005 * GB_BITS;
/// Levels of a JSON document.
const MAX_DEPTH: usize = 32;

/// True if a text has a table of nccl-tests.
pub(super) fn is_one(text: &str) -> bool {
    text.contains("# Collective test starting") || text.lines().any(is_head)
}

fn is_head(line: &str) -> bool {
    let mut fields = line.split_whitespace();
    fields.next() == Some("#") && fields.next() == Some("size") && fields.any(|field| field == "busbw")
}

/// The operation and the ranks of a table.
#[derive(Default)]
struct TableHead {
    operation: String,
    ranks: Option<u32>,
}

/// The tables of a text.
pub(super) fn parse(text: &str, world: Option<u32>) -> Results {
    let mut found = Results {
        tool: "nccl-tests",
        ..Results::default()
    };
    let mut run = TableHead::default();
    let mut columns: Vec<&str> = Vec::new();
    for (at, line) in numbered(text) {
        if let Some(operation) = after(line, "# Collective test starting:").or_else(|| program(line)) {
            run = TableHead {
                operation: operation.trim_end_matches("_perf").to_owned(),
                ranks: None,
            };
        } else if let Some(rank) = rank(line) {
            run.ranks = Some(run.ranks.unwrap_or(0).max(rank.saturating_add(1)));
        } else if is_head(line) {
            columns = line.split_whitespace().skip(1).take(MAX_COLUMNS).collect();
        } else if let Some(count) =
            after(line, "# Out of bounds values :").and_then(|text| text.parse::<u64>().ok())
            && count > 0
        {
            let text = format!("{count} values are out of bounds: the data was wrong");
            found.remark(Weight::Critical, "nccl.wrong", at, text);
        } else if line
            .trim_start()
            .starts_with(|first: char| first.is_ascii_digit())
            && !columns.is_empty()
        {
            row(&mut found, at, line, &run, world, &columns);
        }
    }
    found
}

/// The program that a command starts: `./build/all_reduce_perf -b 8 -e 1G`.
fn program(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().filter(|_| !line.starts_with('#'));
    let name = words.find_map(|word| {
        let name = word.rsplit('/').next()?;
        bus_factor(name.strip_suffix("_perf")?, 1).map(|_| name)
    })?;
    words
        .next()
        .is_some_and(|option| option.starts_with('-'))
        .then_some(name)
}

/// The rank of a line such as `#  Rank  0 Group  0 Pid  41211 on gpuserver1 device  0 [0000:3b:00] NVIDIA RTX A4000`.
fn rank(line: &str) -> Option<u32> {
    line.strip_prefix('#')?
        .trim_start()
        .strip_prefix("Rank")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

fn row(found: &mut Results, at: usize, line: &str, run: &TableHead, world: Option<u32>, columns: &[&str]) {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if fields.len() > columns.len() {
        // Another program's line.
        return;
    }
    let size = fields.first().and_then(|size| size.parse::<u64>().ok());
    let ranks = run.ranks.or(world);
    let places: Vec<usize> = (0..columns.len())
        .filter(|column| columns[*column] == "time")
        .collect();
    for (half, time) in places.into_iter().enumerate() {
        let value = |name: &str| {
            let column = time + columns.iter().skip(time).position(|column| *column == name)?;
            fields.get(column).copied()
        };
        let place = if half == 0 { "out of place" } else { "in place" };
        let numbers = (
            value("time").and_then(number),
            value("algbw").and_then(number),
            value("busbw").and_then(number),
        );
        let (Some(time_us), Some(algorithm), Some(bus)) = numbers else {
            // Some operations have no result in place.
            if value("busbw").is_none_or(|text| text != "N/A") {
                let text = format!(
                    "the line has {} of {} fields: it was cut",
                    fields.len(),
                    columns.len()
                );
                found.remark(Weight::Warning, "results.cut", at, text);
            }
            return;
        };
        let wrong = value("#wrong").and_then(|text| text.parse().ok());
        take(
            found,
            Measurement {
                line: at,
                tool: "nccl-tests".to_owned(),
                what: format!(
                    "{} {place}",
                    if run.operation.is_empty() {
                        "collective"
                    } else {
                        &run.operation
                    }
                ),
                size_bytes: size,
                ranks,
                goodput_bps: Some(algorithm * GB_BITS),
                bus_bps: Some(bus * GB_BITS),
                time_us: Some(time_us),
                wrong,
                ..Measurement::default()
            },
            &run.operation,
        );
    }
}

/// Checks a measurement by what follows from its size, its time and the ranks, and keeps it.
fn take(found: &mut Results, measurement: Measurement, operation: &str) {
    let at = measurement.line;
    if let Some(wrong) = measurement.wrong.filter(|wrong| *wrong > 0) {
        let text = format!("{wrong} elements have a wrong value: the data that arrived is not what was sent");
        found.remark(Weight::Critical, "nccl.wrong", at, text);
    }
    if let (Some(size), Some(time), Some(rate)) = (
        measurement.size_bytes,
        measurement.time_us,
        measurement.goodput_bps,
    ) && time > 0.0
    {
        #[expect(clippy::cast_precision_loss, reason = "sizes of buffers")]
        let follows = size as f64 * 8.0 / (time * 1e-6);
        if !agree(follows, rate, ROUNDING, DIGIT) {
            let text = format!(
                "size over time is {:.2} GB/s, algbw says {:.2}",
                follows / GB_BITS,
                rate / GB_BITS
            );
            found.remark(Weight::Warning, "nccl.disagrees", at, text);
        }
    }
    if let (Some(rate), Some(bus), Some(ranks)) =
        (measurement.goodput_bps, measurement.bus_bps, measurement.ranks)
        && let Some(factor) = bus_factor(operation, ranks)
        // Both rates are rounded.
        && !agree(rate * factor, bus, ROUNDING, DIGIT * (1.0 + factor))
    {
        let text = format!(
            "algbw times {factor:.3}, the factor of {ranks} ranks, is {:.2} GB/s, busbw says {:.2}",
            rate * factor / GB_BITS,
            bus / GB_BITS
        );
        found.remark(Weight::Warning, "nccl.disagrees", at, text);
    }
    // No operation has more than an all-reduce.
    let most = bus_factor("all_reduce", measurement.ranks.unwrap_or(u32::MAX));
    if let (Some(rate), Some(bus), Some(most), true) = (
        measurement.goodput_bps,
        measurement.bus_bps,
        most,
        operation.is_empty(),
    ) && bus > rate * most.max(1.0) * (1.0 + ROUNDING) + DIGIT * (1.0 + most)
    {
        let text = format!(
            "busbw {:.2} GB/s is more than any operation makes of algbw {:.2}",
            bus / GB_BITS,
            rate / GB_BITS
        );
        found.remark(Weight::Warning, "nccl.disagrees", at, text);
    }
    found.measured(measurement);
}

/// The results of nccl-tests' JSON (`-J`).
pub(super) fn document(text: &str) -> Results {
    let mut found = Results {
        tool: "nccl-tests",
        ..Results::default()
    };
    match serde_json::from_str::<Value>(text) {
        Ok(document) => search(&mut found, &document, None, "collective", 0),
        Err(error) => {
            let at = error.line();
            found.remark(
                Weight::Critical,
                "results.cut",
                at,
                format!("{error}: the document was cut"),
            );
        }
    }
    found
}

fn search(found: &mut Results, value: &Value, size: Option<u64>, name: &str, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items {
                search(found, item, size, name, depth + 1);
            }
        }
        Value::Object(items) => {
            let size = items.get("size").and_then(Value::as_u64).or(size);
            let positive = |key| {
                items
                    .get(key)
                    .and_then(Value::as_f64)
                    .filter(|number| *number >= 0.0)
            };
            if let (Some(bus), Some(rate), Some(time)) =
                (positive("bus_bw"), positive("alg_bw"), positive("time"))
            {
                let measurement = Measurement {
                    tool: "nccl-tests".to_owned(),
                    what: name.replace('_', " "),
                    size_bytes: size,
                    goodput_bps: Some(rate * GB_BITS),
                    bus_bps: Some(bus * GB_BITS),
                    time_us: Some(time),
                    wrong: items.get("nwrong").and_then(Value::as_u64),
                    ..Measurement::default()
                };
                take(found, measurement, "");
            }
            for (name, item) in items {
                search(found, item, size, name, depth + 1);
            }
        }
        _ => {}
    }
}
