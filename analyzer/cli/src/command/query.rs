//! `query`: SQL over a dataset. DuckDB answers (`query/duckdb.rs`); `query/views.rs` names the tables; this shows the rows.

mod duckdb;
mod views;

use std::io::{BufWriter, Read as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::command::duckdb::DuckDb;
use crate::output::csv::CsvWriter;
use crate::output::table::laid_by;
use duckdb::Rows;

/// Limit of the rows that are laid out as a table: the widths of its columns need all of them at once.
const MAX_TABLE_ROWS: usize = 10_000;
/// Limit of the SQL text, in bytes.
const MAX_SQL_BYTES: u64 = 1 << 20;

/// Form of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// A table for people
    Text,
    /// Comma-separated values, the names of the columns first
    Csv,
    /// One JSON object for each row
    Jsonl,
}

/// Answer a question in SQL over results that -o wrote
///
/// DIR is a dataset, a folder of datasets, or a fleet's dataset. Each table has a view of its name (flows, timeline, episodes, findings,
/// hops, ...): `roce-analyze --explain flows` lists its columns. Times are in UTC. DuckDB runs the SQL, and opens files below DIR only.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze query results \"SELECT source, destination, ce FROM flows WHERE counted ORDER BY ce DESC LIMIT 10\"
  roce-analyze query runs --file slow.sql --format csv > slow.csv

DuckDB is the program `duckdb` on the path, or Python's module: pip install duckdb.")]
pub(crate) struct Query {
    /// Results: the folder of -o, or one that holds several such folders
    dir: PathBuf,

    /// The question, one SELECT; '-' reads it from standard input
    #[arg(
        required_unless_present = "file",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    sql: Option<String>,

    /// Read the question from FILE
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Form of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// DuckDB: the program, or a Python that has the module [default: duckdb, else python3]
    #[arg(long, value_name = "PROGRAM")]
    duckdb: Option<PathBuf>,
}

/// Answers the question.
pub(crate) fn query(arguments: &Query) -> anyhow::Result<ExitCode> {
    let sql = match (&arguments.sql, &arguments.file) {
        (Some(sql), None) if sql != "-" => sql.clone(),
        (_, Some(path)) => {
            let file = std::fs::File::open(path).with_context(|| format!("{}", path.display()))?;
            read(file, &path.display().to_string())?
        }
        _ => read(std::io::stdin().lock(), "standard input")?,
    };
    if sql.trim().is_empty() {
        bail!("the question is empty\nhint: \"SELECT * FROM flows LIMIT 5\"");
    }
    let views = views::views(&arguments.dir)?;
    let program = DuckDb::find(
        arguments.duckdb.as_deref(),
        "name it with --duckdb; any engine that reads Parquet answers, too",
    )?;
    let answer = program.ask(&arguments.dir, &views, &sql)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    match arguments.format {
        Format::Text => write_table(answer, &mut out)?,
        Format::Csv => write_csv(answer, &mut out)?,
        Format::Jsonl => write_lines(answer, &mut out)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The SQL of a file, whose size has a limit.
fn read(from: impl std::io::Read, name: &str) -> anyhow::Result<String> {
    let mut sql = String::new();
    let read = from.take(MAX_SQL_BYTES + 1).read_to_string(&mut sql);
    read.with_context(|| format!("{name}: is no SQL"))?;
    if sql.len() as u64 > MAX_SQL_BYTES {
        bail!("{name}: the question has more than {MAX_SQL_BYTES} bytes");
    }
    Ok(sql)
}

/// A value as a person reads it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Writes a table with columns of equal width, as all tables of this command: numbers to the right.
fn write_table(mut answer: Rows, out: &mut impl Write) -> anyhow::Result<()> {
    let (mut rows, mut left_out) = (Vec::new(), 0_u64);
    while let Some(row) = answer.next()? {
        if rows.len() < MAX_TABLE_ROWS {
            rows.push(row);
        } else {
            left_out += 1;
        }
    }
    let columns = answer.columns();
    if rows.is_empty() {
        writeln!(out, " no rows")?;
        return Ok(());
    }
    let is_number = |column: usize| {
        let values = || rows.iter().filter_map(|row| row.get(column));
        values().any(Value::is_number) && values().all(|value| value.is_number() || value.is_null())
    };
    let mut cells = vec![columns.to_vec()];
    cells.extend(rows.iter().map(|row| row.iter().map(shown).collect()));
    write!(out, "{}", laid_by(&cells, is_number))?;
    if left_out > 0 {
        writeln!(out, " ... {left_out} more rows: --format csv has all")?;
    }
    Ok(())
}

/// Writes comma-separated values; null is nothing.
fn write_csv(mut answer: Rows, out: &mut impl Write) -> anyhow::Result<()> {
    let mut out = CsvWriter::new(out, false);
    let mut has_head = false;
    loop {
        let row = answer.next()?;
        if !has_head && !answer.columns().is_empty() {
            has_head = true;
            out.head(answer.columns().iter().map(String::as_str))?;
        }
        let Some(row) = row else { return Ok(()) };
        out.row(row.iter())?;
    }
}

/// Writes an object for each row.
fn write_lines(mut answer: Rows, out: &mut impl Write) -> anyhow::Result<()> {
    while let Some(row) = answer.next()? {
        let columns = answer.columns().iter().cloned();
        let object: serde_json::Map<String, Value> = columns.zip(row).collect();
        let line = serde_json::to_string(&object)?;
        writeln!(out, "{}", roce_model::text::escape_json(&line))?;
    }
    Ok(())
}
