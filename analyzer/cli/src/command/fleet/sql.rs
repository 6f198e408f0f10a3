//! `fleet sql`: a question about the dataset of a fleet, answered by DuckDB, or its text for any engine.

mod duckdb;
pub(super) mod inventory;
pub(super) mod questions;
pub(super) mod text;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use jiff::civil::Date;
use roce_model::text::escape_json;

use crate::output::csv::CsvWriter;
use crate::output::messages;
use crate::output::table::laid;
#[cfg(test)]
pub(super) use duckdb::AnswerColumn;
pub(super) use duckdb::{Answer, Cell, ask};
use inventory::HostAddress;
use text::{Dataset, Engine, Range};

/// Longest SQL file that is read.
const MAX_QUERY: u64 = 1 << 20;
/// Rows of the table that are shown without `--rows`.
const SHOWN_ROWS: usize = 40;

/// Format of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// A table for people
    Text,
    /// An array of objects
    Json,
    /// Comma-separated values, with a header
    Csv,
}

/// Options that `fleet sql` and `fleet report` share.
#[derive(Args, Debug)]
pub(super) struct DatasetSource {
    /// The dataset: the folder that `-o DS --layout fleet` wrote
    #[arg(value_name = "DS")]
    pub(super) dataset: PathBuf,

    /// The inventory with addresses, racks, jobs and ranks of the hosts [default: DS/fabric.toml if it exists]
    #[arg(long, value_name = "FILE", aliases = ["fabric", "hosts"])]
    inventory: Option<PathBuf>,

    /// Read only days from this one on, such as 2026-03-02
    #[arg(long, value_name = "DATE")]
    since: Option<Date>,

    /// Read only days up to this one
    #[arg(long, value_name = "DATE")]
    until: Option<Date>,
}

impl DatasetSource {
    /// Hosts of the inventory. Empty without one: then the captures themselves show which host has which address.
    fn inventory(&self) -> anyhow::Result<Vec<HostAddress>> {
        let beside = self.dataset.join("fabric.toml");
        match &self.inventory {
            Some(path) => inventory::read(path),
            None if beside.is_file() => inventory::read(&beside),
            None => Ok(Vec::new()),
        }
    }

    /// The dataset as an engine is to read it.
    pub(super) fn open(&self) -> anyhow::Result<Dataset> {
        let range = Range {
            since: self.since,
            until: self.until,
        };
        Dataset::new(&self.dataset, range, &self.inventory()?)
    }
}

/// Ask a question of a fleet's dataset: one of those that come with the program, or a file with a SELECT
///
/// Answered by DuckDB: the program `duckdb` on the path, or the module of python3. Tables have the names and columns of docs/schema.md;
/// `hosts` has the inventory, `sides` the flows with their hosts and racks, `bins` the timeline of these flows. docs/questions.md describes
/// the questions: destinations, incasts, ends, racks, pairs, clocks, jobs.
#[derive(Args, Debug)]
pub(super) struct Sql {
    #[command(flatten)]
    source: DatasetSource,

    /// The name of a question, or a file FILE.sql; without it the questions are listed
    #[arg(value_name = "NAME|FILE.sql")]
    question: Option<String>,

    /// Print the text for an engine, with the paths filled in, and do not run it
    #[arg(long)]
    print: bool,

    /// The engine that --print writes for
    #[arg(long, value_enum, default_value = "duckdb", requires = "print")]
    engine: Engine,

    /// Format of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Rows of the table that are shown
    #[arg(long, value_name = "N", default_value_t = SHOWN_ROWS)]
    rows: usize,
}

/// Answers the question, or prints its text.
pub(super) fn sql(arguments: &Sql) -> anyhow::Result<ExitCode> {
    let Some(question) = &arguments.question else {
        anstream::stdout().write_all(questions::list().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    let query = query(question)?;
    let dataset = arguments.source.open()?;
    if arguments.print {
        let text = dataset.text(arguments.engine) + &query + ";\n";
        anstream::stdout().write_all(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let answers = ask(&dataset, &[&query])?;
    let answer = answers.first().context("the engine gave no answer")?;
    if answer.rows.is_empty() && arguments.format == Format::Text {
        messages::note(
            &arguments.source.dataset.display().to_string(),
            "the answer has no rows. Most questions need to know which host has which address: from --inventory, or from captures that show at which host they were made",
        );
    }
    let text = match arguments.format {
        Format::Text => table(answer, arguments.rows),
        Format::Json => json(answer),
        Format::Csv => csv(answer)?,
    };
    anstream::stdout().write_all(text.as_bytes())?;
    if arguments.format == Format::Text && answer.rows.len() > arguments.rows {
        let more = answer.rows.len() - arguments.rows;
        messages::note(question, &format!("{more} more rows: --rows N, or --format csv"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The text of a question that comes with the program, or of a file.
fn query(question: &str) -> anyhow::Result<String> {
    if let Some(known) = questions::find(question) {
        return Ok(known.sql.trim_end().to_owned());
    }
    if Path::new(question).extension().is_none_or(|name| name != "sql") {
        bail!(
            "there is no question {question}\nhint: one of {}, or a file FILE.sql",
            questions::names()
        );
    }
    let text = roce_files::read_text(Path::new(question), MAX_QUERY)?;
    let text = text.trim_end().trim_end_matches(';').trim_end();
    if text.is_empty() {
        bail!("{question}: there is no SELECT in it");
    }
    if let Some(number) = text.lines().position(|line| line.trim_start().starts_with('.')) {
        bail!(
            "{question}: line {}: a line that begins with a dot is a command of DuckDB's shell, and no SQL",
            number + 1
        );
    }
    Ok(text.to_owned())
}

/// A table for people.
fn table(answer: &Answer, shown: usize) -> String {
    let mut rows: Vec<Vec<String>> = vec![answer.columns.iter().map(|column| column.name.clone()).collect()];
    rows.extend(
        answer
            .rows
            .iter()
            .take(shown)
            .map(|row| row.iter().map(Cell::shown).collect()),
    );
    for (place, column) in answer
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.is_number)
    {
        let cells = || rows.iter().filter_map(|row: &Vec<String>| row.get(place));
        let width = cells()
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(column.name.len());
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(place)) {
            *cell = format!("{cell:>width$}");
        }
    }
    laid(&rows, &(0..0))
}

/// An array of objects.
fn json(answer: &Answer) -> String {
    let rows: Vec<String> = answer
        .rows
        .iter()
        .map(|row| {
            let cells = answer.columns.iter().zip(row);
            let object: serde_json::Map<String, serde_json::Value> = cells
                .map(|(column, cell)| (column.name.clone(), cell.0.clone()))
                .collect();
            serde_json::Value::Object(object).to_string()
        })
        .collect();
    let text = format!("[\n{}\n]\n", rows.join(",\n"));
    escape_json(&text).into_owned()
}

/// Comma-separated values; absent values are empty. A text that a spreadsheet would take for a formula gets an apostrophe.
fn csv(answer: &Answer) -> anyhow::Result<String> {
    let mut text = Vec::new();
    let mut out = CsvWriter::new(&mut text, true);
    out.head(answer.columns.iter().map(|column| column.name.as_str()))?;
    for row in &answer.rows {
        out.row(row.iter().map(|cell| &cell.0))?;
    }
    drop(out);
    Ok(String::from_utf8(text)?)
}

#[cfg(test)]
mod tests;
