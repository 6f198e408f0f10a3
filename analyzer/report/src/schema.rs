//! The page that describes every table and column, made from the descriptions that the outputs use themselves.

use std::fmt::Write as _;

use roce_model::{
    CollectiveCallColumns, CollectiveColumns, CollectiveWaitColumns, Column, ColumnType, Columns,
    CreditColumns, EndColumns, EpisodeColumns, EventColumns, FindingColumns, FlowColumns, HopColumns,
    HopTimelineColumns, InbandHopColumns, MrcConnectionColumns, MrcPathColumns, RankStateColumns, RunColumns,
    RunKey, SampleColumns, StepColumns, Table, TapColumns, TimelineColumns, Totals, TraceColumns,
    UetTrafficColumns, VantageColumns, WaitColumns,
};

use crate::compare::{Direction, Quantity};

/// Every table, in the order of the page.
pub const TABLES: [Table; 21] = [
    FindingColumns::TABLE,
    EpisodeColumns::TABLE,
    StepColumns::TABLE,
    FlowColumns::TABLE,
    TimelineColumns::TABLE,
    EventColumns::TABLE,
    TapColumns::TABLE,
    VantageColumns::TABLE,
    HopColumns::TABLE,
    HopTimelineColumns::TABLE,
    EndColumns::TABLE,
    WaitColumns::TABLE,
    CollectiveColumns::TABLE,
    CreditColumns::TABLE,
    CollectiveWaitColumns::TABLE,
    MrcConnectionColumns::TABLE,
    MrcPathColumns::TABLE,
    UetTrafficColumns::TABLE,
    InbandHopColumns::TABLE,
    SampleColumns::TABLE,
    RunColumns::TABLE,
];

/// Tables of the JSON document alone.
pub const DOCUMENT_TABLES: [Table; 3] = [
    TraceColumns::TABLE,
    CollectiveCallColumns::TABLE,
    RankStateColumns::TABLE,
];

const BEGIN: &str = "\
# Tables and columns

This page is made from the column descriptions in the program: `cargo xtask schema` writes it.

The same names are used in the Parquet dataset (`DIR/TABLE/part-N.parquet`), in the JSON document and in the
terminal. An absent value is null in Parquet and JSON, `-` in the terminal; it is never 0.

Spark, DuckDB, pandas, polars, Delta Lake and Iceberg read the dataset as it is. Integers are signed, times are in microseconds
beside a column in nanoseconds, identifiers have 63 bits, and no column has to be quoted.

| Type | in Parquet | in JSON |
|---|---|---|
";

const END: &str = "
A time is two columns in Parquet: `time` in microseconds, rounded down, and `time_ns` in nanoseconds since the Unix epoch.
Times after 2262 and counts beyond the type are stored as its largest value.

To join the dataset with the JSON document: `printf('%016x', flow_id)` in DuckDB, `lpad(lower(hex(flow_id)), 16, '0')` in Spark,
`format(flow_id, '016x')` in Python.

## Names of the run

Each table of the dataset begins with these columns, so that the tables of many runs can be read as one. The JSON document has them in `run`.

| Column | Type | Unit | May be absent | Meaning |
|---|---|---|---|---|
";

const DOCUMENT: &str = "
## The JSON document

What `--format json` prints and `DIR/run.json` holds: one object. `schema_version` rises when a key changes its meaning.

| Key | Meaning |
|---|---|
| `schema_version` | 2 |
| `run` | `run_id`, `host`, `capture`, `version`, `started`, `elapsed_ns`, `bin_ns`, `first_time` and `last_time` of the frames, `zero_time` (the first frame of the captures, also before `--from`, from which times in texts count), `sentence` (what was wrong, for whom, when and at what price), `goodput_bps` (`new_payload_bytes` over the time between them, null without such), `options` (name and value of all that shape the results), `inputs` |
| `totals` | All counts of the run, below |
| `capture` | Of a thin capture: in `thin` the evidence of the finding `capture.thin`. Absent of others |
| `taps` | Rows of `taps`, each with `cnp_receivers`: who had to slow down |
| `vantages`, `hops`, `flows`, `episodes`, `waits`, `collectives`, `credits`, `collective_waits`, `steps` | Rows of the table of that name |
| `ends` | Rows of `ends` of connections that failed. The table has the others, too |
| `flows_left_out` | Rows of flows that the document leaves out (`--json-flows`): it has those with the most trouble, then those with the most bytes. The table has all |
| `traces`, `collective_calls`, `rank_states` | With `--merge`: the documents, their collectives and what they say of ranks, below. Absent without |
| `mrc_connections`, `mrc_paths` | Rows of the table of that name, where packets of MRC or UET were captured. Absent without |
| `uet_traffic` | Rows of the table of that name, where packets of UET were captured. Absent without |
| `hops_inband` | Rows of the table of that name, where packets had telemetry of switches. Absent without |
| `training_log` | How the log of `--training-log` fits the steps: `logged_steps`, `joined_rows`, medians of `allreduce` and `total` by the log (`log_ns`) and in the packets (`captured_ns`), `is_doubtful`. Absent without |
| `findings` | Rows of `findings`, the worst first; `evidence` is an object |
| `samples` | Rows of `samples`, where there are at most 1,000 of them. Absent without samples, and where there are more: the table has all |

The rows of `timeline`, `hop_timeline` and `events` are in the dataset alone.

The counts in `totals`:

| Key | Meaning |
|---|---|
";

const DOCUMENT_END: &str = "| `new_payload_bytes` | `payload_bytes` less `retransmitted_bytes` |
| `stops` | Frames whose decoding stopped early: `layer`, `cut`, `cut_by`, `frames`. |
| `opcodes` | By opcode: `name` and `packets`, CNPs and management datagrams included. |

`missing` = `reordered` + `network_lost` - `network_lost_again` + `capture_lost` + `ambiguous` + `unresolved`.
";

const COMPARISON: &str = "
## The comparison

What `compare A B --format json` prints: one object. `schema_version` rises when a key changes its meaning.

| Key | Meaning |
|---|---|
| `schema_version` | 1 |
| `a`, `b` | The two runs: `path`, `length_ns`, `flows`, `payload_bytes`, `bin_ns`, and the `slices` of `slice_ns` for the estimate of noise |
| `confidence` | How sure all intervals together are. Half of the rest goes to the whole run, half to pairs of hosts; each half in equal parts to its intervals |
| `matters` | A relative difference under this one does not matter |
| `notes` | What differs in how the two runs were made |
| `findings` | Those that are not the same: `id`, severity in `a` and `b` (null: none), `regression`, `may_be_chance` (it rests on so few losses, timeouts, RNR NAKs or stalls that a run as A was may have had them: no regression), `summary` |
| `pairs_left_out` | Pairs of hosts that were not compared one by one: 64 with most data are |
| `scopes` | The whole run (`source` and `destination` null), then what one host sent to another; each with `compared` |

A line of `compared`: `metric` and `unit`; the values `a` and `b` (null: that run does not have it); `difference` (b less a) and `relative` (over a); `low` and
`high`, the interval of the difference; `visible`, a difference that would have been seen in four of five such pairs of runs; and `outcome`: `worse`, `better` or
`different` (it stands out of the noise and matters; which way is better is not known), `negligible` (it stands out, and is too small), `alike`, `too_short` (fewer
than 16 slices, or five of their blocks), `one_sided`. Metrics that neither run has anything of are left out.

| Metric | Unit | Worse | Meaning |
|---|---|---|---|
";

/// A column's type as the page says it, with its forms in Parquet and JSON.
fn forms(kind: ColumnType) -> (&'static str, &'static str, &'static str) {
    match kind {
        ColumnType::U32 => ("u32", "INT32", "number"),
        ColumnType::U64 => ("u64", "INT64", "number"),
        ColumnType::F64 => ("f64", "DOUBLE", "number"),
        ColumnType::Bool => ("bool", "BOOLEAN", "true or false"),
        ColumnType::Text => ("text", "STRING (UTF-8)", "text"),
        ColumnType::Time => (
            "time",
            "TIMESTAMP(MICROS, UTC), and INT64 in nanoseconds",
            "nanoseconds since the Unix epoch, as text",
        ),
        ColumnType::Id => ("id", "INT64, positive", "text of 16 hex digits"),
        ColumnType::Address => ("address", "STRING (UTF-8)", "text"),
    }
}

/// The page, as Markdown.
pub fn markdown() -> String {
    const KINDS: [ColumnType; 8] = [
        ColumnType::U32,
        ColumnType::U64,
        ColumnType::F64,
        ColumnType::Bool,
        ColumnType::Text,
        ColumnType::Time,
        ColumnType::Id,
        ColumnType::Address,
    ];
    let mut page = String::from(BEGIN);
    // Writing to a string cannot fail.
    for (name, parquet, json) in KINDS.map(forms) {
        let _ = writeln!(page, "| {name} | {parquet} | {json} |");
    }
    page.push_str(END);
    for column in RunKey::COLUMNS {
        line(&mut page, &column);
    }
    for table in TABLES {
        head(&mut page, &table);
    }
    page.push_str(DOCUMENT);
    for (name, _, meaning) in Totals::default().counts() {
        let _ = writeln!(page, "| `{name}` | {} |", escape(meaning));
    }
    page.push_str(DOCUMENT_END);
    for table in DOCUMENT_TABLES {
        head(&mut page, &table);
    }
    page.push_str(COMPARISON);
    for metric in Quantity::ALL.map(Quantity::describe) {
        let worse = match metric.worse {
            Some(Direction::Up) => "up",
            Some(Direction::Down) => "down",
            None => "",
        };
        let _ = writeln!(
            page,
            "| `{}` | {} | {worse} | {} |",
            metric.key,
            metric.unit.name(),
            escape(metric.meaning)
        );
    }
    page
}

/// A table with all its columns.
fn head(page: &mut String, table: &Table) {
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "\n## {}\n\n{}\n\n| Column | Type | Unit | May be absent | Meaning |\n|---|---|---|---|---|\n",
        table.name,
        escape(table.row),
    );
    for column in table.columns {
        line(page, column);
    }
}

/// The line of a column in the table of its table.
fn line(page: &mut String, column: &Column) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "| `{}` | {} | {} | {} | {} |",
        column.name,
        forms(column.kind).0,
        escape(column.unit),
        if column.nullable { "yes" } else { "" },
        escape(column.meaning),
    );
}

/// Keeps text inside its table cell.
fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_line() {
        let page = markdown();
        let columns = TABLES.iter().map(|table| table.columns.len()).sum::<usize>() + RunKey::COLUMNS.len();
        assert_eq!(
            page.lines()
                .take_while(|line| *line != "## The JSON document")
                .filter(|line| line.starts_with("| `"))
                .count(),
            columns
        );
        for (name, ..) in Totals::default().counts() {
            assert!(page.contains(&format!("\n| `{name}` | ")), "{name}");
        }
        assert!(page.contains("| `ce` | u32 | packets |  | Data packets marked Congestion Experienced. |"));
        assert!(page.contains("| `peer_flow_id` | id |  | yes |"));
    }

    /// Words that cannot name a column without quotes: reserved ones of Spark 4.3 with ANSI mode and enforced reserved keywords
    /// (`sql_keywords()`), of DuckDB 2.0 (`duckdb_keywords()`) and of PostgreSQL 17 (its manual's appendix C). With that setting Spark
    /// reserves TIME, too; with its defaults it does not, nor does any other engine.
    const RESERVED: &str = "\
        all analyse analyze and anti any array as asc asof asymmetric at authorization between binary both by call case cast check collate \
        collation collations column columns concurrently constraint create cross current_catalog current_date current_path current_role \
        current_schema current_time current_timestamp current_user default deferrable desc describe distinct do else end escape except \
        execute exists false fetch filter for foreign freeze from full generated glob grant group having ilike in initially inner intersect \
        into is isnull join lambda lateral leading left like limit localtime localtimestamp map natural not notnull null offset on only or \
        order outer overlaps pivot pivot_longer pivot_wider placing positional primary qualify recursive references returning right select \
        semi session_user show similar some sql struct summarize symmetric system_user table tablesample then to trailing true \
        try_cast tuple union unique unknown unpack unpivot user using variadic verbose when where window with within";

    #[test]
    fn no_column_has_to_be_quoted() {
        let reserved: Vec<&str> = RESERVED.split_whitespace().collect();
        for table in TABLES {
            let mut names = Vec::new();
            for column in RunKey::COLUMNS.iter().chain(table.columns) {
                names.push(column.name.to_owned());
                names.extend(column.nanoseconds());
            }
            for name in &names {
                assert!(!reserved.contains(&name.as_str()), "{}.{name}", table.name);
                let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
                assert!(name.bytes().all(is_plain), "{}.{name}", table.name);
            }
            let columns = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), columns, "{}: two columns of one name", table.name);
        }
    }

    #[test]
    fn the_committed_page_is_the_generated_one() {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let path = std::path::Path::new(&folder).join("../../docs/schema.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == markdown(),
            "docs/schema.md differs from the columns in analyzer/model: run `cargo xtask schema`"
        );
    }
}
