//! The table and the document of traffic tools' results.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use roce_jobs::nccl::Log;
use roce_jobs::results::{Expectation, Latency, LatencyKind, Measurement, Results, Weight};
use roce_model::text::clean;
use roce_spelling::rate_of;
use serde_json::{Value, json};

use crate::output::columns::{Column, lay};
use crate::output::style::table_width;
use crate::output::table::laid;

/// One input, and what it has.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) results: Results,
}

/// The document of a run's folder.
pub(super) const RUN_DOCUMENT: &str = "run.json";

/// Version of the JSON document's form.
const SCHEMA_VERSION: u32 = 1;

/// Names of the columns; those from the third on are numbers.
const TITLES: [&str; 17] = [
    "what", "tool", "size", "streams", "ranks", "MTU", "goodput", "busbw", "of link", "time", "latency",
    "spread", "lost", "jitter", "resent", "CPU", "file",
];
/// Ranks of the columns: on a narrow screen those of a high rank are left out first.
const RANKS: [u8; 17] = [0, 6, 0, 4, 5, 7, 0, 1, 2, 8, 1, 10, 1, 5, 4, 9, 3];
/// The columns that have numbers.
const NUMBERS: core::ops::Range<usize> = 2..16;

const NONE: &str = "-";

/// Three digits that matter.
fn digits(number: f64) -> String {
    match number {
        number if number >= 99.95 => format!("{number:.0}"),
        number if number >= 9.995 => format!("{number:.1}"),
        number => format!("{number:.2}"),
    }
}

/// A time of microseconds with three digits.
fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", digits(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", digits(us / 1e3)),
        us => format!("{} us", digits(us)),
    }
}

/// Bytes, in the unit by which they are a whole number: the tools step by powers of two or of ten.
fn size(bytes: u64) -> String {
    if bytes > 0 && bytes.is_multiple_of(1_000_000) {
        return format!("{} MB", bytes / 1_000_000);
    }
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} B")
}

/// The rate of bytes in a time.
pub(super) fn bit_rate(bytes: u64, seconds: f64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let bits = bytes as f64 * 8.0;
    if seconds > 0.0 {
        rate_of(bits / seconds)
    } else {
        NONE.to_owned()
    }
}

fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

fn or_none<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), shown)
}

/// The rate that a link carries: of a collective operation, the bus bandwidth.
fn on_link(row: &Measurement) -> Option<f64> {
    row.bus_bps.or(row.goodput_bps)
}

fn row(input: &Input, row: &Measurement, link: Option<u64>) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "speeds of links")]
    let share = on_link(row).zip(link).map(|(bps, link)| bps / link as f64);
    let mark = row.latency.map_or("", |latency| mark(latency.kind));
    let direction = if row.is_bidirectional { " both ways" } else { "" };
    vec![
        format!("{}{direction}", row.what),
        row.tool.clone(),
        or_none(row.size_bytes, size),
        or_none(row.streams, |streams| streams.to_string()),
        or_none(row.ranks, |ranks| ranks.to_string()),
        or_none(row.mtu, |mtu| mtu.to_string()),
        or_none(row.goodput_bps, rate_of),
        or_none(row.bus_bps, rate_of),
        or_none(share, percent),
        or_none(row.time_us, time),
        or_none(row.latency.as_ref().and_then(Latency::usual), |us| {
            format!("{}{mark}", time(us))
        }),
        or_none(row.latency.and_then(|latency| latency.stddev), time),
        or_none(row.lost_ratio, |ratio| format!("{} %", digits(ratio * 100.0))),
        or_none(row.jitter_us, time),
        or_none(row.retransmits, |packets| packets.to_string()),
        or_none(row.cpu_ratio, percent),
        input.name.clone(),
    ]
}

/// The sign behind a latency that is not the result of a latency test.
fn mark(kind: LatencyKind) -> &'static str {
    match kind {
        LatencyKind::TcpRoundTrip => "*",
        LatencyKind::TcpFirst => "+",
        LatencyKind::OneWay | LatencyKind::RoundTrip => "",
    }
}

/// The table, ratios, stages and remarks.
pub(super) fn text(inputs: &[Input], link: Option<u64>, stages: bool) -> String {
    let mut text = table(inputs, link);
    if stages {
        text.push_str(&stages_of(inputs));
    } else {
        text.push_str(&ratio(inputs));
    }
    let all = || inputs.iter().flat_map(|input| &input.results.measurements);
    for (kind, meaning) in [
        (
            LatencyKind::TcpRoundTrip,
            "TCP's own smoothed round trip under load: not comparable with a latency test",
        ),
        (
            LatencyKind::TcpFirst,
            "the first round trip of the connection, before the load (irtt)",
        ),
    ] {
        if all().any(|row| row.latency.is_some_and(|latency| latency.kind == kind)) {
            let _ = writeln!(text, " {} {meaning}", mark(kind));
        }
    }
    for input in inputs {
        if let Some(log) = &input.results.log {
            text.push_str(&log_lines(&input.name, log));
        }
        if input.results.left_out > 0 {
            let _ = writeln!(
                text,
                " • info     results.left_out: {} results, remarks and edges are not listed ({})",
                input.results.left_out,
                clean(&input.name)
            );
        }
        for remark in &input.results.remarks {
            let sign = match remark.weight {
                Weight::Critical => "✗ critical",
                Weight::Warning => "▲ warning ",
                Weight::Info => "• info    ",
            };
            let place = if remark.line > 0 {
                format!(":{}", remark.line)
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                " {sign} {}: {} ({}{place})",
                remark.rule,
                clean(&remark.text),
                clean(&input.name)
            );
        }
    }
    text
}

/// The measurements; columns in which no row has a value are left out, and that of the files where there is only one.
fn table(inputs: &[Input], link: Option<u64>) -> String {
    let rows: Vec<Vec<String>> = inputs
        .iter()
        .flat_map(|input| {
            input
                .results
                .measurements
                .iter()
                .map(|found| row(input, found, link))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let is_shown = |column: usize| {
        if column == TITLES.len() - 1 {
            inputs.len() > 1
        } else {
            rows.iter().any(|row| row[column] != NONE)
        }
    };
    let columns = (0..TITLES.len())
        .filter(|column| is_shown(*column))
        .map(|column| {
            let cells = rows.iter().map(|row| clean(&row[column]).into_owned());
            Column::new(
                TITLES[column],
                NUMBERS.contains(&column),
                RANKS[column],
                cells.collect(),
            )
        });
    lay(columns.collect(), table_width().unwrap_or(usize::MAX - 1))
}

/// The best payload rate of RDMA against that of TCP, and what differs between the two tests.
fn ratio(inputs: &[Input]) -> String {
    let best = |is_one: &dyn Fn(&Measurement) -> bool| {
        inputs
            .iter()
            .flat_map(|input| &input.results.measurements)
            .filter(|row| is_one(row) && row.bus_bps.is_none() && row.goodput_bps.is_some())
            .max_by(|one, other| {
                one.goodput_bps
                    .unwrap_or(0.0)
                    .total_cmp(&other.goodput_bps.unwrap_or(0.0))
            })
    };
    let rdma = best(&|row| row.tool.starts_with("ib_"));
    let tcp = best(&|row| row.what == "TCP");
    let (Some(rdma), Some(tcp)) = (rdma, tcp) else {
        return String::new();
    };
    let (Some(fast), Some(slow)) = (rdma.goodput_bps, tcp.goodput_bps.filter(|bps| *bps > 0.0)) else {
        return String::new();
    };
    let mut differs = Vec::new();
    let mut compare = |name: &str, one: Option<String>, other: Option<String>| {
        if one != other {
            let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
            differs.push(format!("{name} {} and {}", known(one), known(other)));
        }
    };
    compare(
        "streams",
        rdma.streams.map(|count| count.to_string()),
        tcp.streams.map(|count| count.to_string()),
    );
    compare(
        "MTU",
        rdma.mtu.map(|mtu| mtu.to_string()),
        tcp.mtu.map(|mtu| mtu.to_string()),
    );
    compare("size", rdma.size_bytes.map(size), tcp.size_bytes.map(size));
    let ways = |row: &Measurement| Some(if row.is_bidirectional { "both" } else { "one" }.to_owned());
    compare("directions", ways(rdma), ways(tcp));
    let differs = if differs.is_empty() {
        String::new()
    } else {
        format!("; not the same: {}", differs.join(", "))
    };
    format!(" RDMA : TCP  goodput {} : 1{differs}\n", digits(fast / slow))
}

/// The sum of the clients' rates, where there are several: `; together 182 Gbit/s`.
#[cfg(feature = "live")]
pub(super) fn together(inputs: &[Input]) -> String {
    let rates = inputs.iter().flat_map(|input| &input.results.measurements);
    let rates: Vec<f64> = rates.filter_map(|row| row.goodput_bps).collect();
    match rates.len() {
        0 | 1 => String::new(),
        _ => format!("; together {}", rate_of(rates.iter().sum())),
    }
}

/// Rates of a file's measurements, or their latencies where no row has a rate.
struct Stage {
    count: usize,
    min: f64,
    mean: f64,
    /// Standard deviation over several results.
    stddev: Option<f64>,
    max: f64,
}

impl Stage {
    fn from_values(values: &[f64]) -> Option<Self> {
        let (min, max) = (
            values.iter().copied().reduce(f64::min)?,
            values.iter().copied().reduce(f64::max)?,
        );
        #[expect(clippy::cast_precision_loss, reason = "rows of a file")]
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let stddev = (values.len() > 1).then(|| square.sqrt());
        Some(Self {
            count: values.len(),
            min,
            mean,
            stddev,
            max,
        })
    }
}

/// Message size in bytes, where it is known, and a rate or a latency.
type ValueOfSize = (Option<u64>, f64);

/// Values of a file's rows by size: its rates, or its latencies where no row has a rate.
fn values_by_size(rows: &[Measurement]) -> (bool, Vec<ValueOfSize>) {
    let of = |value: fn(&Measurement) -> Option<f64>| -> Vec<ValueOfSize> {
        let all = rows.iter();
        all.filter_map(|row| Some((row.size_bytes, value(row)?)))
            .collect()
    };
    let rates = of(on_link);
    if rates.is_empty() {
        (true, of(|row| row.latency.as_ref()?.usual()))
    } else {
        (false, rates)
    }
}

/// Mean over the sizes of `wanted`; `None`: the rows have none of them.
fn mean_of_sizes(rows: &[ValueOfSize], wanted: &BTreeSet<Option<u64>>) -> Option<f64> {
    let values: Vec<f64> = rows
        .iter()
        .filter(|(size, _)| wanted.contains(size))
        .map(|(_, value)| *value)
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "rows of a file")]
    let count = values.len() as f64;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)
}

/// The files in their order: rates or latencies, and the change of the mean since the last file of the same kind, over the sizes that both
/// have.
fn stages_of(inputs: &[Input]) -> String {
    let titles = ["stage", "results", "min", "mean", "stddev", "max", "change"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let mut before: [Option<Vec<ValueOfSize>>; 2] = [None, None];
    let mut are_other_sizes = false;
    for input in inputs {
        let (is_latency, values) = values_by_size(&input.results.measurements);
        let plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        let Some(stage) = Stage::from_values(&plain) else {
            continue;
        };
        let shown = if is_latency { time } else { rate_of };
        let sizes =
            |rows: &[ValueOfSize]| -> BTreeSet<Option<u64>> { rows.iter().map(|(size, _)| *size).collect() };
        let before = &mut before[usize::from(is_latency)];
        let change = before.as_ref().and_then(|before| {
            let (first, second) = (sizes(before), sizes(&values));
            are_other_sizes |= first != second;
            let common = first.intersection(&second).copied().collect();
            let mean = mean_of_sizes(before, &common).filter(|mean| *mean > 0.0)?;
            Some(mean_of_sizes(&values, &common)? / mean - 1.0)
        });
        rows.push(vec![
            input.name.clone(),
            stage.count.to_string(),
            shown(stage.min),
            shown(stage.mean),
            or_none(stage.stddev, shown),
            shown(stage.max),
            or_none(change, |change| format!("{:+.1} %", change * 100.0)),
        ]);
        *before = Some(values);
    }
    let note = if are_other_sizes {
        " the files have other sizes: the change is that of the sizes that both have\n"
    } else {
        ""
    };
    format!("\n{}{note}", laid(&rows, &(1..7)))
}

fn log_lines(name: &str, log: &Log) -> String {
    let mut lines = Vec::new();
    let list = |items: Vec<String>| items.join(", ");
    if !log.networks.is_empty() {
        lines.push(("network", list(log.networks.iter().cloned().collect())));
    }
    if !log.devices.is_empty() {
        let relaxed = if log.is_relaxed { " (relaxed ordering)" } else { "" };
        lines.push(("devices", format!("{}{relaxed}", log.devices.join(", "))));
    }
    if let Some(world) = log.world {
        lines.push(("ranks", world.to_string()));
    }
    if !log.edges.is_empty() {
        let network = log.edges.keys().filter(|edge| edge.is_network()).count();
        let direct = log.edges.keys().filter(|edge| edge.is_direct()).count();
        lines.push((
            "edges",
            format!(
                "{} between ranks, {network} over the network, {direct} of them by GPUDirect",
                log.edges.len()
            ),
        ));
    }
    if !log.settings.is_empty() {
        let settings = log.settings.iter().map(|(name, value)| format!("{name}={value}"));
        lines.push(("settings", list(settings.collect())));
    }
    let mut text = match log.other_programs() {
        None => format!(" NCCL's log in {}\n", clean(name)),
        Some(programs) => format!(" errors in {}, by {}\n", clean(name), programs.join(", ")),
    };
    for (title, value) in lines {
        let _ = writeln!(text, "   {title:9} {}", clean(&value));
    }
    text
}

/// The value of an expectation that failed, in the form of its quantity, and in the unit of the bound.
pub(super) fn expected(expectation: &Expectation, value: f64) -> String {
    let shown = by_quantity(expectation, value);
    let (in_unit, unit) = expectation.in_unit(value);
    let other = if in_unit >= 0.01 {
        format!("{} {unit}", digits(in_unit))
    } else {
        format!("{in_unit:.2e} {unit}")
    };
    if unit.is_empty() || shown == other || shown.ends_with('%') {
        shown
    } else {
        format!("{shown} ({other})")
    }
}

fn by_quantity(expectation: &Expectation, value: f64) -> String {
    let text = expectation.to_string();
    if text.contains("bw") || text.contains("goodput") {
        rate_of(value)
    } else if text.contains("latency") {
        time(value)
    } else if text.contains("lost") {
        percent(value)
    } else {
        format!("{value:.0}")
    }
}

/// The document: every value, in base units.
pub(super) fn document(inputs: &[Input], link: Option<u64>) -> Value {
    let files: Vec<Value> = inputs
        .iter()
        .map(|input| {
            let results = &input.results;
            json!({
                "file": input.name,
                "tool": results.tool,
                "results": results.measurements.iter().map(measurement).collect::<Vec<_>>(),
                "remarks": results.remarks.iter().map(|remark| json!({
                    "severity": remark.weight.name(),
                    "id": remark.rule,
                    "line": remark.line,
                    "text": remark.text,
                })).collect::<Vec<_>>(),
                "nccl": results.log.as_ref().map(log_value),
                "left_out": results.left_out,
            })
        })
        .collect();
    json!({ "schema_version": SCHEMA_VERSION, "link_rate_bps": link, "files": files })
}

fn measurement(row: &Measurement) -> Value {
    json!({
        "line": row.line,
        "tool": row.tool,
        "what": row.what,
        "size_bytes": row.size_bytes,
        "streams": row.streams,
        "ranks": row.ranks,
        "mtu": row.mtu,
        "bidirectional": row.is_bidirectional,
        "server": row.is_server,
        "goodput_bps": row.goodput_bps,
        "peak_bps": row.peak_bps,
        "bus_bps": row.bus_bps,
        "messages_per_second": row.messages_per_second,
        "time_us": row.time_us,
        "latency_us": row.latency.map(|latency| json!({
            "kind": latency.kind.name(),
            "min": latency.min,
            "typical": latency.typical,
            "mean": latency.average,
            "max": latency.max,
            "stddev": latency.stddev,
            "p99": latency.p99,
            "p999": latency.p999,
        })),
        "retransmits": row.retransmits,
        "lost_ratio": row.lost_ratio,
        "jitter_us": row.jitter_us,
        "wrong": row.wrong,
        "cpu_ratio": row.cpu_ratio,
    })
}

fn log_value(log: &Log) -> Value {
    json!({
        "settings": log.settings,
        "networks": log.networks,
        "devices": log.devices,
        "out_of_band": log.out_of_band,
        "relaxed_ordering": log.is_relaxed,
        "ranks": log.world,
        "gpus": log.ranks.iter().map(|(rank, bus)| json!({"rank": rank, "pci": bus})).collect::<Vec<_>>(),
        "edges": log.edges.iter().map(|(edge, channels)| json!({
            "from": edge.from,
            "to": edge.to,
            "transport": edge.transport,
            "gpudirect": edge.is_direct(),
            "channels": channels,
        })).collect::<Vec<_>>(),
    })
}
