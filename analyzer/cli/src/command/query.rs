//! `query`: questions about a dataset. DuckDB answers (`query/duckdb.rs`); `query/source.rs` names the tables; this shows the rows.

#[cfg_attr(
    not(feature = "live"),
    expect(dead_code, reason = "pages of datasets take whole answers")
)]
mod answer;
mod duckdb;
mod inventory;
pub(crate) mod questions;
mod source;
mod text;
mod views;

use std::io::{BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use roce_model::text::clean;
use serde_json::Value;

use crate::command::duckdb::DuckDb;
use crate::command::invocation::{Invocation, RunCommand};
use crate::options::format::{Format, formats};
use crate::output::csv::CsvWriter;
use crate::output::messages;
use crate::output::table::laid_by;
#[cfg(all(test, feature = "live"))]
pub(crate) use answer::AnswerColumn;
use answer::are_numbers;
#[cfg(feature = "live")]
pub(crate) use answer::{Answer, Cell};
use duckdb::Rows;
pub(crate) use source::DatasetSource;
use text::Engine;

/// Limit of the rows that are laid out as a table: the widths of its columns need all of them at once.
const MAX_TABLE_ROWS: usize = 10_000;
/// Limit of the SQL text, in bytes.
const MAX_SQL_BYTES: u64 = 1 << 20;
/// Hint at other engines where there is no DuckDB.
pub(crate) const OTHERS: &str = "name it with --duckdb; --print gives the text for another engine";

/// Ask about results that -o wrote: a question by its name, or SQL
///
/// Each table has a view of its name (flows, timeline, episodes, findings, hops, ...): `roce-analyze explain flows` lists its columns. `hosts`
/// has the inventory, `sides` the flows with their hosts and racks, `bins` the timeline of these flows. Times are in UTC. docs/questions.md
/// describes the questions. DuckDB runs the SQL, within limits of time and memory, and opens files below DS only.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze query DS                 the questions that have a name
  roce-analyze query DS destinations --from 2026-03-02
      one of them, for some days
  roce-analyze query DS \"SELECT source, destination, ce FROM flows LIMIT 10\"
      SQL
  roce-analyze query DS slow.sql --format csv > slow.csv
      SQL in a file

DuckDB is the program `duckdb` on the path, or Python's module: pip install duckdb.")]
pub(crate) struct Query {
    #[command(flatten)]
    source: DatasetSource,

    /// A question by its name, one SELECT, or a file FILE.sql; '-' reads standard input [default: list the questions]
    #[arg(value_name = "QUESTION|SQL", allow_hyphen_values = true, add = ArgValueCandidates::new(candidates))]
    question: Option<String>,

    /// Read the SELECT from FILE, whatever its name is
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    file: Option<PathBuf>,

    /// Print the text for an engine, with the paths filled in, and do not run it
    #[arg(long)]
    print: bool,

    /// The engine that --print writes for
    #[arg(long, value_enum, default_value = "duckdb", requires = "print")]
    engine: Engine,

    /// Format of the answer
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats(&[Format::Text, Format::Json, Format::Jsonl, Format::Csv]))]
    format: Format,

    /// Rows of the text's table [default: all, up to 10000]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,

    /// DuckDB: the program, or a Python that has the module [default: duckdb, else python3]
    #[arg(long, value_name = "PROGRAM")]
    duckdb: Option<PathBuf>,
}

impl RunCommand for Query {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        query(self)
    }
}

/// The names of the questions, for completions.
fn candidates() -> Vec<CompletionCandidate> {
    questions::ALL
        .iter()
        .map(|question| question.name.into())
        .collect()
}

/// Answers the question.
fn query(arguments: &Query) -> anyhow::Result<ExitCode> {
    let sql = match (&arguments.question, &arguments.file) {
        (None, None) => {
            anstream::stdout().write_all(questions::list().as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        (Some(question), _) if question == "-" => read(std::io::stdin().lock(), "standard input")?,
        (Some(question), _) => sql_of(question)?,
        (None, Some(path)) => read_file(path)?,
    };
    let sql = sql.trim_end().trim_end_matches(';').trim_end();
    if sql.trim().is_empty() {
        bail!("the question is empty\nhint: \"SELECT * FROM flows LIMIT 5\"");
    }
    if let Some(line) = sql.lines().find(|line| line.trim_start().starts_with('.')) {
        bail!(
            "{}: is a command of DuckDB's shell, and no SQL",
            clean(line.split_whitespace().next().unwrap_or_default())
        );
    }
    let source = &arguments.source;
    let asked = source.open()?;
    if arguments.print {
        let text = asked.text(arguments.engine)? + sql + ";\n";
        anstream::stdout().write_all(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let program = DuckDb::find(arguments.duckdb.as_deref(), OTHERS)?;
    let answer = source.ask(&asked, &program, sql)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    match arguments.format {
        Format::Csv => write_csv(answer, &mut out)?,
        Format::Json => write_array(answer, &mut out)?,
        Format::Jsonl => write_lines(answer, &mut out)?,
        _ => {
            let has_rows = write_table(answer, arguments.rows.unwrap_or(MAX_TABLE_ROWS), &mut out)?;
            let is_named = arguments.question.as_deref().and_then(questions::find).is_some();
            if !has_rows && is_named {
                messages::note(
                    &source.dataset.display().to_string(),
                    "most questions need to know which host has which address: from --inventory, or from captures that show at which host they \
                     were made",
                );
            }
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The SQL of a question by its name, of a file, or the text itself.
fn sql_of(question: &str) -> anyhow::Result<String> {
    if let Some(known) = questions::find(question) {
        return Ok(known.sql.to_owned());
    }
    let path = Path::new(question);
    let is_word = !question.trim().is_empty() && !question.trim().contains(char::is_whitespace);
    if is_word || path.is_file() {
        if path.extension().is_some_and(|extension| extension == "sql") {
            return read_file(path);
        }
        bail!(
            "there is no question {}\nhint: one of {}, one SELECT, or a file FILE.sql",
            clean(question),
            questions::names()
        );
    }
    Ok(question.to_owned())
}

/// The SQL of a file.
fn read_file(path: &Path) -> anyhow::Result<String> {
    let file = std::fs::File::open(path).with_context(|| format!("{}", path.display()))?;
    read(file, &path.display().to_string())
}

/// The SQL of a stream, whose size has a limit.
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

/// Writes a table with columns of equal width, as all tables of this command: numbers to the right. True if there are rows.
fn write_table(mut answer: Rows, most: usize, out: &mut impl Write) -> anyhow::Result<bool> {
    let (mut rows, mut left_out) = (Vec::new(), 0_u64);
    while let Some(row) = answer.next()? {
        if rows.len() < most.min(MAX_TABLE_ROWS) {
            rows.push(row);
        } else {
            left_out += 1;
        }
    }
    let columns = answer.columns();
    if rows.is_empty() && left_out == 0 {
        writeln!(out, " no rows")?;
        return Ok(false);
    }
    let is_number = |column: usize| are_numbers(rows.iter().filter_map(|row: &Vec<Value>| row.get(column)));
    let mut cells = vec![columns.to_vec()];
    cells.extend(rows.iter().map(|row| row.iter().map(shown).collect()));
    write!(out, "{}", laid_by(&cells, is_number))?;
    if left_out > 0 {
        writeln!(out, " ... {left_out} more rows: --rows N, or --format csv")?;
    }
    Ok(true)
}

/// Writes comma-separated values, the names of the columns first; null is nothing.
fn write_csv(mut answer: Rows, out: &mut impl Write) -> anyhow::Result<()> {
    let mut out = CsvWriter::new(out);
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

/// A row as an object.
fn object(columns: &[String], row: Vec<Value>) -> anyhow::Result<String> {
    let object: serde_json::Map<String, Value> = columns.iter().cloned().zip(row).collect();
    let line = serde_json::to_string(&object)?;
    Ok(roce_model::text::escape_json(&line).into_owned())
}

/// Writes an object for each row.
fn write_lines(mut answer: Rows, out: &mut impl Write) -> anyhow::Result<()> {
    while let Some(row) = answer.next()? {
        writeln!(out, "{}", object(answer.columns(), row)?)?;
    }
    Ok(())
}

/// Writes an array of objects.
fn write_array(mut answer: Rows, out: &mut impl Write) -> anyhow::Result<()> {
    let mut separator = "[\n";
    while let Some(row) = answer.next()? {
        write!(out, "{separator}{}", object(answer.columns(), row)?)?;
        separator = ",\n";
    }
    // An answer without rows is an empty array.
    let begin = if separator == "[\n" { separator } else { "\n" };
    writeln!(out, "{begin}]")?;
    Ok(())
}

#[cfg(test)]
mod tests;
