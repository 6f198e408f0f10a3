//! Benchmarks of collective operations in PyTorch: lines with `[bench]`, and a table of sizes.

use super::measured::{MAX_COLUMNS, Measurement, ROUNDING, Results, Weight, bus_factor};
use super::text::{agree, number, numbered};

const GIB_BITS: f64 = 1_073_741_824.0 * 8.0;

/// True if a text has results of such a benchmark.
pub(super) fn is_one(text: &str) -> bool {
    text.lines()
        .any(|line| line.contains("[bench] op=") || is_head(line))
}

fn is_head(line: &str) -> bool {
    line.contains("size(MB)") && line.contains("tavg(usec)")
}

/// The results of a text. `world`: the ranks of the table, which it does not say.
pub(super) fn parse(text: &str, world: Option<u32>) -> Results {
    let mut found = Results {
        tool: "pytorch",
        ..Results::default()
    };
    let mut columns: Vec<&str> = Vec::new();
    let mut run = String::new();
    for (at, line) in numbered(text) {
        let trimmed = line.trim();
        if let Some((_, fields)) = line.split_once("[bench] ") {
            bench(&mut found, at, fields);
        } else if let Some(name) = trimmed
            .strip_prefix("=== Run ")
            .and_then(|rest| rest.strip_suffix(" ==="))
        {
            run = format!(" run {name}");
        } else if is_head(line) {
            columns = line.split_whitespace().take(MAX_COLUMNS).collect();
        } else if trimmed.starts_with(|first: char| first.is_ascii_digit()) && !columns.is_empty() {
            row(&mut found, at, line, &columns, &run, world);
        }
    }
    if world.is_none() && found.measurements.iter().any(|row| row.ranks.is_none()) {
        let text = "the table does not say the ranks: --world gives the rate of the operation".to_owned();
        found.remark(Weight::Info, "pytorch.ranks", 0, text);
    }
    found
}

/// A line such as `op=all_reduce world=8 bytes=268435456 iters=50 avg_sec=0.005249 approx_alg_BW=83.34 GiB/s`. What it calls the
/// algorithm's bandwidth is that of the bus for `all_reduce`, and (n - 1) x bytes / time for `all_gather`.
fn bench(found: &mut Results, at: usize, fields: &str) {
    let value = |name: &str| {
        fields
            .split_whitespace()
            .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    };
    let (Some(operation), Some(size), Some(seconds)) = (
        value("op"),
        value("bytes").and_then(|text| text.parse::<u64>().ok()),
        value("avg_sec").and_then(number).filter(|seconds| *seconds > 0.0),
    ) else {
        found.remark(
            Weight::Warning,
            "results.cut",
            at,
            "the line lacks op, bytes or avg_sec: it was cut".to_owned(),
        );
        return;
    };
    let ranks = value("world").and_then(|text| text.parse::<u32>().ok());
    #[expect(clippy::cast_precision_loss, reason = "sizes of buffers")]
    let goodput = size as f64 * 8.0 / seconds;
    let printed = value("approx_alg_BW")
        .and_then(number)
        .map(|rate| rate * GIB_BITS);
    let factor = ranks.and_then(|ranks| match operation {
        // Each rank gives `bytes`, so that the buffers have n times as many.
        "all_gather" => Some(f64::from(ranks) - 1.0),
        _ => bus_factor(operation, ranks),
    });
    if let (Some(printed), Some(factor)) = (printed, factor)
        && !agree(goodput * factor, printed, ROUNDING, 0.005 * GIB_BITS)
    {
        let text = format!(
            "bytes, world and avg_sec give {:.2} GiB/s, the line says {:.2}",
            goodput * factor / GIB_BITS,
            printed / GIB_BITS
        );
        found.remark(Weight::Warning, "pytorch.disagrees", at, text);
    }
    found.measured(Measurement {
        line: at,
        tool: "pytorch".to_owned(),
        what: operation.to_owned(),
        size_bytes: Some(size),
        ranks,
        goodput_bps: Some(goodput),
        bus_bps: factor.map(|factor| goodput * factor),
        time_us: Some(seconds * 1e6),
        ..Measurement::default()
    });
}

fn row(found: &mut Results, at: usize, line: &str, columns: &[&str], run: &str, world: Option<u32>) {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let value = |name: &str| {
        let column = columns.iter().position(|column| *column == name)?;
        number(fields.get(column)?)
    };
    let (Some(size), Some(time_us), Some(bus)) =
        (value("size(MB)"), value("tavg(usec)"), value("avgbw(GB/sec)"))
    else {
        let text = format!(
            "the line has {} of {} fields: it was cut",
            fields.len(),
            columns.len()
        );
        found.remark(Weight::Warning, "results.cut", at, text);
        return;
    };
    // Decimal units.
    let bus_bps = bus * 8e9;
    let factor = world
        .and_then(|ranks| bus_factor("all_reduce", ranks))
        .filter(|factor| *factor > 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and it saturates"
    )]
    let size_bytes = (size * 1e6) as u64;
    found.measured(Measurement {
        line: at,
        tool: "pytorch".to_owned(),
        what: format!("all_reduce{run}"),
        size_bytes: Some(size_bytes),
        ranks: world,
        goodput_bps: factor.map(|factor| bus_bps / factor),
        bus_bps: Some(bus_bps),
        peak_bps: value("maxbw(GB/sec)").map(|rate| rate * 8e9),
        time_us: Some(time_us),
        ..Measurement::default()
    });
}
