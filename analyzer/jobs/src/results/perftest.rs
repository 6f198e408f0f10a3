//! perftest: `ib_write_bw`, `ib_read_lat` and the others (github.com/linux-rdma/perftest, src/perftest_resources.c and .h).

use super::measured::{Latency, LatencyKind, MAX_COLUMNS, Measurement, ROUNDING, Results, Weight};
use super::text::{agree, half_digit, number, numbered, setting};
use crate::errors::{Program, report};

/// perftest's `MB` and `MiB`: 2^20 bytes.
pub(super) const MIB_BITS: f64 = 1_048_576.0 * 8.0;

/// Titles of columns that have spaces within them.
const TITLES: [(&str, &str); 5] = [
    ("BW peak", "BW_peak"),
    ("BW average", "BW_average"),
    ("99% percentile", "99%"),
    ("99.9% percentile", "99.9%"),
    ("tps average", "tps_average"),
];

/// Words with which a test ends before its table (src/perftest_resources.c, src/perftest_communication.c).
const FAILURES: [&str; 7] = [
    " state is Down",
    "Couldn't get context for the device",
    "Failed to modify QP",
    "Unable to Connect the HCA's through the link",
    "Unable to find the Infiniband/RoCE device",
    "Unable to init the socket connection",
    "Unable to open file descriptor for socket connection",
];

/// True if a text has a table of perftest, or one of the failures that leave none.
pub(super) fn is_one(text: &str) -> bool {
    let fails = |line: &str| FAILURES.iter().any(|words| line.contains(words));
    // A log of a job has failures of several programs.
    let is_of_others = |line: &str| {
        report(line).is_some_and(|error| !matches!(error.program, Program::Perftest | Program::Verbs))
    };
    text.lines().any(is_head) || text.lines().any(fails) && !text.lines().any(is_of_others)
}

fn is_head(line: &str) -> bool {
    line.trim_start().starts_with("#bytes") && line.contains("#iterations")
}

/// Settings in the lines above a table.
#[derive(Default)]
pub(super) struct PerftestSetting {
    pub(super) what: String,
    pub(super) tool: String,
    pub(super) kind: LatencyKind,
    pub(super) is_bidirectional: bool,
    is_server: bool,
    pub(super) streams: Option<u32>,
    pub(super) mtu: Option<u32>,
}

impl PerftestSetting {
    pub(super) fn note(&mut self, line: &str) {
        let title = line.trim();
        if let Some((title, is_latency)) = title
            .strip_suffix(" BW Test")
            .map(|title| (title, false))
            .or_else(|| title.strip_suffix(" Latency Test").map(|title| (title, true)))
        {
            let (title, is_bidirectional) = title
                .strip_suffix(" Bidirectional")
                .map_or((title, false), |title| (title, true));
            let (what, program) = match title.split_whitespace().next().unwrap_or_default() {
                "RDMA_Write" => ("RDMA WRITE", "ib_write"),
                "RDMA_Read" => ("RDMA READ", "ib_read"),
                "Send" => ("SEND", "ib_send"),
                "Atomic" => ("ATOMIC", "ib_atomic"),
                other => (other, "perftest"),
            };
            // A test on the other side of the connection keeps what the banner said.
            *self = Self {
                what: what.to_owned(),
                tool: format!("{program}_{}", if is_latency { "lat" } else { "bw" }),
                kind: if matches!(program, "ib_read" | "ib_atomic") {
                    LatencyKind::RoundTrip
                } else {
                    LatencyKind::OneWay
                },
                is_bidirectional,
                is_server: self.is_server,
                ..Self::default()
            };
        } else if line.contains("Waiting for client to connect") {
            self.is_server = true;
        } else if let Some(streams) = setting(line, "Number of qps").and_then(|text| text.parse().ok()) {
            self.streams = Some(streams);
        } else if let Some(mtu) = setting(line, "Mtu") {
            self.mtu = mtu.trim_end_matches("[B]").parse().ok();
        }
    }
}

/// The columns of a table, and the bits of its unit.
fn columns(head: &str) -> (Vec<String>, f64) {
    let mut head = head.to_owned();
    for (title, name) in TITLES {
        head = head.replace(title, name);
    }
    let unit = if head.contains("Gb/sec]") { 1e9 } else { MIB_BITS };
    let name = |title: &str| title.split('[').next().unwrap_or_default().to_owned();
    let names = head.split_whitespace().take(MAX_COLUMNS);
    (names.map(name).collect(), unit)
}

/// A row of a table, and its columns.
pub(super) struct Row<'a> {
    columns: Vec<String>,
    fields: Vec<&'a str>,
    /// Its latency is half of the round trip.
    pub(super) is_one_way: bool,
}

impl Row<'_> {
    /// The text in a column.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let column = self.columns.iter().position(|column| column == name)?;
        self.fields.get(column).copied()
    }
}

/// The rows of all tables of a text.
pub(super) fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    let mut setting = PerftestSetting::default();
    let mut table: Option<Vec<String>> = None;
    text.lines().filter_map(move |line| {
        if is_head(line) {
            table = Some(columns(line).0);
            return None;
        }
        if !line
            .trim_start()
            .starts_with(|first: char| first.is_ascii_digit())
        {
            setting.note(line);
            return None;
        }
        Some(Row {
            columns: table.clone()?,
            fields: line.split_whitespace().take(MAX_COLUMNS).collect(),
            is_one_way: setting.kind == LatencyKind::OneWay,
        })
    })
}

/// The tables of a text.
pub(super) fn parse(text: &str) -> Results {
    let mut found = Results {
        tool: "perftest",
        ..Results::default()
    };
    let mut setting = PerftestSetting {
        tool: "perftest".to_owned(),
        what: "RDMA".to_owned(),
        ..PerftestSetting::default()
    };
    let mut table: Option<(Vec<String>, f64)> = None;
    for (at, line) in numbered(text) {
        if is_head(line) {
            table = Some(columns(line));
            continue;
        }
        let is_row = line
            .trim_start()
            .starts_with(|first: char| first.is_ascii_digit());
        match &table {
            Some((columns, unit)) if is_row => row(&mut found, at, line, &setting, columns, *unit),
            _ => setting.note(line),
        }
        if let Some(error) = report(line).filter(|error| error.status.is_some()) {
            let name = error.status_name();
            let program = match error.program {
                Program::Verbs => Program::Perftest,
                program => program,
            };
            let says = program.name();
            let text = format!("{says} says: {} ({name}: {})", line.trim(), error.meaning());
            found.remark(Weight::Critical, "perftest.failed", at, text);
        } else if ["Failed", "Couldn't", "Unable to", " state is Down"]
            .iter()
            .any(|words| line.contains(words))
        {
            let text = format!("perftest says: {}", line.trim());
            found.remark(Weight::Critical, "perftest.failed", at, text);
        }
    }
    if setting.is_server && !found.measurements.is_empty() {
        let text = "the server's output: the client's is the one that counts".to_owned();
        found.remark(Weight::Info, "perftest.server", 0, text);
    }
    found
}

fn row(found: &mut Results, at: usize, line: &str, setting: &PerftestSetting, columns: &[String], unit: f64) {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let field = |name: &str| {
        let column = columns.iter().position(|column| column == name)?;
        fields.get(column).copied()
    };
    let value = |name: &str| number(field(name)?);
    let is_bandwidth = columns.iter().any(|column| column == "BW_average");
    let least = if is_bandwidth { "BW_average" } else { "t_avg" };
    if value(least).is_none() {
        let text = format!(
            "the line has {} of {} fields: it was cut",
            fields.len(),
            columns.len()
        );
        return found.remark(Weight::Warning, "results.cut", at, text);
    }
    let size_bytes = fields.first().and_then(|size| size.parse().ok());
    let is_zero = is_bandwidth && value("BW_average") == Some(0.0);
    if is_zero && value("#iterations").is_some_and(|iterations| iterations > 0.0) {
        let text =
            "the average is 0 although messages were sent: perftest did not find the processor's frequency";
        found.remark(Weight::Warning, "perftest.no_rate", at, text.to_owned());
    }
    let messages_per_second = value("MsgRate")
        .filter(|_| !is_zero)
        .map(|rate| rate * 1e6)
        .or_else(|| value("tps_average"));
    let goodput_bps = value("BW_average").filter(|_| !is_zero).map(|rate| rate * unit);
    if let (Some(size), Some(messages), Some(goodput)) = (size_bytes, messages_per_second, goodput_bps)
        && is_bandwidth
    {
        #[expect(clippy::cast_precision_loss, reason = "sizes of messages")]
        let size_bits = size as f64 * 8.0;
        let bits = messages * size_bits;
        // A rate of small messages is a few units of its last digit.
        let digit_of = |name: &str| field(name).map_or(0.0, half_digit);
        let digit = digit_of("MsgRate") * 1e6 * size_bits + digit_of("BW_average") * unit;
        if !agree(bits, goodput, ROUNDING, digit) {
            let text = format!(
                "the message rate times the size is {:.2} Gbit/s, the average says {:.2}",
                bits / 1e9,
                goodput / 1e9
            );
            found.remark(Weight::Warning, "perftest.disagrees", at, text);
        }
    }
    found.measured(Measurement {
        line: at,
        tool: setting.tool.clone(),
        what: setting.what.clone(),
        size_bytes,
        streams: setting.streams,
        mtu: setting.mtu,
        is_bidirectional: setting.is_bidirectional,
        is_server: setting.is_server,
        goodput_bps,
        peak_bps: value("BW_peak")
            .filter(|peak| *peak > 0.0)
            .map(|rate| rate * unit),
        messages_per_second,
        latency: (!is_bandwidth).then(|| Latency {
            kind: setting.kind,
            min: value("t_min"),
            typical: value("t_typical"),
            average: value("t_avg"),
            max: value("t_max"),
            stddev: value("t_stdev"),
            p99: value("99%"),
            p999: value("99.9%"),
        }),
        cpu_ratio: value("CPU_Util").map(|percent| percent / 100.0),
        ..Measurement::default()
    });
}
