//! The page that describes every table and column, made from the descriptions that the outputs use themselves.

use std::fmt::Write as _;

use roce_model::{
    ColumnType, Columns, EpisodeColumns, EventColumns, FindingColumns, FlowColumns, HopColumns, RunColumns,
    StepColumns, Table, TapColumns, TimelineColumns, Totals, VantageColumns,
};

use crate::compare::{Direction, Quantity};

/// Every table, in the order of the page.
pub const TABLES: [Table; 10] = [
    FindingColumns::TABLE,
    EpisodeColumns::TABLE,
    StepColumns::TABLE,
    FlowColumns::TABLE,
    TimelineColumns::TABLE,
    EventColumns::TABLE,
    TapColumns::TABLE,
    VantageColumns::TABLE,
    HopColumns::TABLE,
    RunColumns::TABLE,
];

const BEGIN: &str = "\
# Tables and columns

This page is made from the column descriptions in the program: `cargo xtask schema` writes it.

The same names are used in the Parquet dataset (`DIR/TABLE/part-N.parquet`), in the JSON document and in the
terminal. An absent value is null in Parquet and JSON, `-` in the terminal; it is never 0.

| Type | in Parquet | in JSON |
|---|---|---|
";

const END: &str = "
To join the dataset with the JSON document: `printf('%016x', flow_id)` in DuckDB, `format(flow_id, '016x')` in Python.
";

const DOCUMENT: &str = "
## The JSON document

What `--format json` prints and `DIR/run.json` holds: one object. `schema_version` rises when a key changes its meaning.

| Key | Meaning |
|---|---|
| `schema_version` | 1 |
| `run` | `version`, `started`, `elapsed_ns`, `bin_ns`, `first_time` and `last_time` of the frames, `options` (name and value of all that shape the results), `inputs` |
| `totals` | All counts of the run, below |
| `taps` | Rows of `taps`, each with `cnp_receivers`: who had to slow down |
| `vantages`, `hops`, `flows`, `episodes`, `steps` | Rows of the table of that name |
| `flows_left_out` | Rows of flows that the document leaves out (`--json-flows`): it has those with the most trouble, then those with the most bytes. The table has all |
| `findings` | Rows of `findings`, the worst first; `evidence` is an object |

The counts in `totals`:

| Key | Meaning |
|---|---|
";

const DOCUMENT_END: &str =
    "| `stops` | Frames whose decoding stopped early: `layer`, `cut`, `cut_by`, `frames`. |
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
        ColumnType::U32 => ("u32", "unsigned, 32 bits", "number"),
        ColumnType::U64 => ("u64", "unsigned, 64 bits", "number"),
        ColumnType::F64 => ("f64", "floating point, 64 bits", "number"),
        ColumnType::Bool => ("bool", "boolean", "true or false"),
        ColumnType::Text => ("text", "UTF-8", "text"),
        ColumnType::Time => (
            "time",
            "timestamp in nanoseconds, UTC",
            "nanoseconds since the Unix epoch, as text",
        ),
        ColumnType::Id => ("id", "unsigned, 64 bits", "text of 16 hex digits"),
        ColumnType::Address => ("address", "UTF-8", "text"),
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
    for table in TABLES {
        let _ = write!(
            page,
            "\n## {}\n\n{}\n\n| Column | Type | Unit | May be absent | Meaning |\n|---|---|---|---|---|\n",
            table.name,
            escape(table.row),
        );
        for column in table.columns {
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
    }
    page.push_str(DOCUMENT);
    for (name, _, meaning) in Totals::default().counts() {
        let _ = writeln!(page, "| `{name}` | {} |", escape(meaning));
    }
    page.push_str(DOCUMENT_END);
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
        let columns: usize = TABLES.iter().map(|table| table.columns.len()).sum();
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

    #[test]
    fn the_committed_page_is_the_generated_one() {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let path = std::path::Path::new(&folder).join("../../reports/SCHEMA.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == markdown(),
            "reports/SCHEMA.md differs from the columns in analyzer/model: run `cargo xtask schema`"
        );
    }
}
