//! OSU's micro-benchmarks of MPI, NCCL and OpenSHMEM: `osu_bw`, `osu_latency`, `osu_allreduce` and the others
//! (mvapich.cse.ohio-state.edu/benchmarks, `c/util/osu_util_mpi.c`). Its `MB/s` are 10^6 bytes; its latency is half of a round trip.

use super::measured::{Latency, LatencyKind, MAX_COLUMNS, Measurement, Results, Weight};
use super::text::{number, numbered};

/// Bits of its `MB`.
const MB_BITS: f64 = 8e6;

/// Titles of columns that have spaces within them, and their names here.
const TITLES: [(&str, &str); 14] = [
    ("Avg Latency(us)", "average"),
    ("Avg Latency (us)", "average"),
    ("Min Latency(us)", "min"),
    ("Max Latency(us)", "max"),
    ("P50 Tail Lat(us)", "median"),
    ("P90 Tail Lat(us)", "p90"),
    ("P95 Tail Lat(us)", "p95"),
    ("P99 Tail Lat(us)", "p99"),
    ("Pure Comm.(us)", "communication"),
    ("Bandwidth (MB/s)", "rate"),
    ("Latency (us)", "average"),
    ("Latency(us)", "average"),
    ("Overall(us)", "average"),
    ("MB/s", "rate"),
];

/// Words of a title, and the end of the program's name that has it. The first that fits counts.
const PROGRAMS: [(&str, &str); 22] = [
    ("Multiple Bandwidth", "mbw_mr"),
    ("Bi-Directional Bandwidth", "bibw"),
    ("Bidirectional Bandwidth", "bibw"),
    ("_Put Bandwidth", "put_bw"),
    ("_Put Bi-directional Bandwidth", "put_bibw"),
    ("_Put Latency", "put_latency"),
    ("_Put latency", "put_latency"),
    ("_Get Bandwidth", "get_bw"),
    ("_Get Latency", "get_latency"),
    ("_Get latency", "get_latency"),
    ("Multi Latency", "multi_lat"),
    ("Multi-threaded Latency", "latency_mt"),
    ("Reduce_scatter", "reduce_scatter"),
    ("Allreduce", "allreduce"),
    ("Allgather", "allgather"),
    ("All-to-All", "alltoall"),
    ("Broadcast", "bcast"),
    ("Barrier", "barrier"),
    ("Scatter", "scatter"),
    ("Gather", "gather"),
    ("Reduce", "reduce"),
    ("Bandwidth", "bw"),
];

/// The test of a table.
struct OsuTest {
    tool: String,
    what: String,
    columns: Vec<&'static str>,
}

/// True if a text has a table of these benchmarks.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| title(line).is_some() || is_head(line))
}

/// The name in a title: `MPI-CUDA Allreduce Latency` of `# OSU MPI-CUDA Allreduce Latency Test v7.1`.
fn title(line: &str) -> Option<&str> {
    let about = line.trim().strip_prefix('#')?.trim_start().strip_prefix("OSU ")?;
    Some(about.split_once(" Test")?.0)
}

/// The names of the columns begin with the size; a barrier has none.
fn is_head(line: &str) -> bool {
    let line = line.trim();
    let is_table = line.starts_with("# Size") || line.starts_with("# Avg Latency");
    is_table && TITLES.iter().any(|(title, _)| line.contains(title))
}

/// The program with such a title.
fn program(title: &str) -> String {
    let known = PROGRAMS.iter().find(|(words, _)| title.contains(words));
    let known = known
        .map(|(_, name)| *name)
        .or(title.ends_with("Latency").then_some("latency"));
    known.map_or("osu".to_owned(), |name| format!("osu_{name}"))
}

/// The names of a table's columns; one that is not read is empty.
fn columns(head: &str) -> Vec<&'static str> {
    let mut head = head.trim().trim_start_matches('#').to_owned();
    for (title, name) in TITLES {
        head = head.replace(title, name);
    }
    let known = TITLES.map(|(_, name)| name);
    let named = head.split_whitespace().take(MAX_COLUMNS).map(|word| match word {
        "Size" => "size",
        "Messages/s" => "messages",
        "Validation" => "validation",
        word => known.into_iter().find(|name| *name == word).unwrap_or_default(),
    });
    named.collect()
}

/// The tables of a text.
pub(super) fn parse(text: &str) -> Results {
    let mut found = Results {
        tool: "osu",
        ..Results::default()
    };
    let mut named = String::new();
    let mut table: Option<OsuTest> = None;
    let count = text.lines().count();
    for (at, line) in numbered(text) {
        if let Some(name) = title(line) {
            name.clone_into(&mut named);
            table = None;
        } else if is_head(line) {
            table = Some(heading(&named, line));
        } else if let Some(test) = &table
            && line
                .trim_start()
                .starts_with(|first: char| first.is_ascii_digit())
        {
            // The last line of a text can be cut.
            let is_open = !text.ends_with('\n') && at == count;
            row(&mut found, at, line, test, is_open);
        }
    }
    found
}

/// The test with this title; without one, its columns tell.
fn heading(title: &str, head: &str) -> OsuTest {
    let columns = columns(head);
    if !title.is_empty() {
        return OsuTest {
            tool: program(title),
            what: title.to_owned(),
            columns,
        };
    }
    let (tool, what) = if columns.contains(&"rate") {
        ("osu_bw", "MPI Bandwidth")
    } else {
        ("osu_latency", "MPI Latency")
    };
    OsuTest {
        tool: tool.to_owned(),
        what: what.to_owned(),
        columns,
    }
}

fn row(found: &mut Results, at: usize, line: &str, test: &OsuTest, is_open: bool) {
    let fields: Vec<&str> = line.split_whitespace().take(MAX_COLUMNS).collect();
    let field = |name: &str| {
        let column = test.columns.iter().position(|column| *column == name)?;
        fields.get(column).copied()
    };
    // All its numbers have two digits behind the point (`FLOAT_PRECISION`): a line that was cut in a number has fewer.
    let has_digits = |field: &&str| field.split_once('.').is_some_and(|(_, digits)| digits.len() >= 2);
    let is_whole = |field: &&str| !is_open || fields.last() != Some(field) || has_digits(field);
    let value = |name: &str| number(field(name).filter(is_whole)?);
    let goodput_bps = value("rate").map(|rate| rate * MB_BITS);
    let average = value("average");
    if goodput_bps.is_none() && average.is_none() {
        let said = if fields.len() < test.columns.len() {
            let all = test.columns.len();
            format!("the line has {} of {all} fields: it was cut", fields.len())
        } else {
            "the line ends within a number: it was cut".to_owned()
        };
        return found.remark(Weight::Warning, "results.cut", at, said);
    }
    // A collective operation has the time of all ranks, not that of a message.
    let is_message = ["latency", "put_latency", "get_latency", "multi_lat", "latency_mt"]
        .iter()
        .any(|name| test.tool.strip_prefix("osu_") == Some(name));
    let is_one_sided = test.what.contains("_Get") || test.what.contains("_Put");
    let wrong = field("validation").and_then(|word| match word {
        "Pass" => Some(0),
        "Fail" => Some(1),
        _ => None,
    });
    if wrong == Some(1) {
        let said = format!("{}: the data that arrived is wrong", test.tool);
        found.remark(Weight::Critical, "osu.wrong", at, said);
    }
    found.measured(Measurement {
        line: at,
        tool: test.tool.clone(),
        what: test.what.clone(),
        size_bytes: field("size").and_then(|size| size.parse().ok()),
        is_bidirectional: test.tool.ends_with("bibw"),
        goodput_bps,
        messages_per_second: value("messages"),
        time_us: average.filter(|_| !is_message),
        latency: average.filter(|_| is_message).map(|average| Latency {
            kind: if is_one_sided {
                LatencyKind::RoundTrip
            } else {
                LatencyKind::OneWay
            },
            average: Some(average),
            typical: value("median"),
            min: value("min"),
            max: value("max"),
            p99: value("p99"),
            ..Latency::default()
        }),
        wrong,
        ..Measurement::default()
    });
}
