//! Several questions in one run of DuckDB: its program, or Python with its module, gets the name of a file with the statements.
//!
//! DuckDB reads the dataset's folder and writes its answers into a private folder, and nothing else.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::Command;

use anyhow::{Context as _, anyhow, bail};
use roce_files::Access;
use roce_remote::program::{self, Failure, Limits};
use serde_json::Value;

use super::text::{Dataset, Engine};
use crate::command::duckdb::{DuckDb, Kind, LOCKED, PATIENCE, Scratch, closed, failure};

/// Largest answer that is read.
const MAX_ANSWER: u64 = 256 << 20;
/// Most rows of an answer.
const MAX_ROWS: usize = 1_000_000;
/// Bytes of messages that are kept.
const MAX_MESSAGE: u64 = 16 << 10;
/// Runs the statements in a file with the module.
const PYTHON: &str = "\
import sys
import duckdb
try:
    with open(sys.argv[1], encoding='utf-8') as file:
        duckdb.connect().execute(file.read())
except duckdb.Error as error:
    print(error, file=sys.stderr)
    sys.exit(1)
";

/// A column of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct AnswerColumn {
    /// Its name.
    pub(in super::super) name: String,
    /// True for integers and floating point.
    pub(in super::super) is_number: bool,
}

/// A value of an answer.
#[derive(Clone, PartialEq, Debug)]
pub(in super::super) struct Cell(pub(in super::super) Value);

impl Cell {
    /// Its text; `None` if it is absent.
    pub(in super::super) fn text(&self) -> Option<String> {
        match &self.0 {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// Its text for people: `-` if it is absent.
    pub(in super::super) fn shown(&self) -> String {
        self.text().unwrap_or_else(|| "-".to_owned())
    }
}

/// The answer to a question.
#[derive(Clone, PartialEq, Debug, Default)]
pub(in super::super) struct Answer {
    /// Its columns.
    pub(in super::super) columns: Vec<AnswerColumn>,
    /// Its rows, a cell for each column.
    pub(in super::super) rows: Vec<Vec<Cell>>,
}

impl Answer {
    /// The place of a column.
    pub(in super::super) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Asks questions, each a SELECT, in one run of DuckDB.
///
/// # Errors
/// If there is no DuckDB, a question is wrong, or an answer too large.
pub(in super::super) fn ask(dataset: &Dataset, queries: &[&str]) -> anyhow::Result<Vec<Answer>> {
    if dataset.is_remote() {
        bail!(
            "{}: DuckDB is run here on folders alone\nhint: --print prints the text for an engine that reads object stores",
            dataset.place()
        );
    }
    let files = Files {
        scratch: Scratch::new()?,
    };
    let outcome = run(dataset, queries, &files);
    files.remove(queries.len());
    outcome
}

/// The private folder of a run, and its files.
struct Files {
    scratch: Scratch,
}

impl Files {
    const STATEMENTS: &'static str = "statements.sql";

    /// The path of a file in it, as DuckDB gets it.
    fn path(&self, name: &str) -> String {
        self.scratch.path(name)
    }

    /// The text of a file that DuckDB wrote.
    fn read(&self, name: &str) -> anyhow::Result<String> {
        let mut text = String::new();
        let file = self.scratch.folder.open(name)?;
        file.take(MAX_ANSWER + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_ANSWER {
            bail!(
                "the answer is larger than {} MiB\nhint: end the SELECT with LIMIT",
                MAX_ANSWER >> 20
            );
        }
        Ok(text)
    }

    /// Removes all files. The folder goes when it is closed.
    fn remove(&self, queries: usize) {
        let answers = (0..queries).flat_map(|number| [columns(number), rows(number)]);
        for name in answers.chain([Self::STATEMENTS.to_owned()]) {
            // A file that stays has no more than the dataset itself, in a private folder.
            let _ = self.scratch.folder.remove(&name);
        }
    }
}

fn columns(number: usize) -> String {
    format!("{number}.columns.json")
}

fn rows(number: usize) -> String {
    format!("{number}.rows.json")
}

fn run(dataset: &Dataset, queries: &[&str], files: &Files) -> anyhow::Result<Vec<Answer>> {
    let text = statements(dataset, queries, files);
    let folder = &files.scratch.folder;
    let mut file = folder.create(Files::STATEMENTS, false, Access::Private)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    execute(&files.path(Files::STATEMENTS))?;
    (0..queries.len())
        .map(|number| parse(&files.read(&columns(number))?, &files.read(&rows(number))?))
        .collect()
}

/// All statements of a run.
fn statements(dataset: &Dataset, queries: &[&str], files: &Files) -> String {
    let mut text = String::new();
    let closed = closed(&[&format!("{}/", dataset.place()), &files.path("")]);
    for statement in files.scratch.limits().into_iter().chain(closed) {
        let _ = writeln!(text, "{statement}");
    }
    text.push_str(&dataset.text(Engine::Duckdb));
    let _ = writeln!(text, "{LOCKED}");
    for (number, query) in queries.iter().enumerate() {
        let (columns, rows) = (files.path(&columns(number)), files.path(&rows(number)));
        let _ = writeln!(
            text,
            "COPY (SELECT column_name, column_type FROM (DESCRIBE\n{query}\n)) TO '{columns}' (FORMAT json);\n\
             COPY (\n{query}\n) TO '{rows}' (FORMAT json);"
        );
    }
    text
}

/// Runs the statements in a file.
fn execute(file: &str) -> anyhow::Result<()> {
    let duckdb = DuckDb::find(None, "--print for another engine")?;
    let mut command = duckdb.command(&["-init", file, "-c", "SELECT 1", ":memory:"], PYTHON);
    if duckdb.kind() == Kind::Python {
        command.arg(file);
    }
    run_to_end(&mut command)
}

/// Runs a program to its end, within limits of time and output.
fn run_to_end(command: &mut Command) -> anyhow::Result<()> {
    let limits = Limits {
        patience: PATIENCE,
        output: MAX_MESSAGE,
        errors: MAX_MESSAGE,
    };
    let ended = match program::run(command, limits) {
        Ok(ended) => ended,
        Err(Failure::System(error)) => return Err(anyhow!(error).context("cannot run DuckDB")),
        Err(Failure::NoAnswer) => bail!(
            "DuckDB took longer than {} s\nhint: --since DATE, --until DATE",
            PATIENCE.as_secs()
        ),
        // Only runs that a signal can stop end so.
        Err(Failure::Stopped) => bail!("DuckDB was stopped"),
    };
    let message = String::from_utf8_lossy(&ended.errors);
    if !ended.status.success() {
        return Err(failure(ended.status, &message));
    }
    if !message.trim().is_empty() {
        bail!("DuckDB: {}", message.trim());
    }
    Ok(())
}

/// Reads an answer from what DuckDB wrote: an object on each line.
fn parse(columns: &str, rows: &str) -> anyhow::Result<Answer> {
    let wrong = "DuckDB wrote what is no answer";
    let mut answer = Answer::default();
    for line in columns.lines().filter(|line| !line.is_empty()) {
        let column: Value = serde_json::from_str(line).context(wrong)?;
        let text = |key: &str| column.get(key).and_then(Value::as_str).map(str::to_owned);
        let (Some(name), Some(kind)) = (text("column_name"), text("column_type")) else {
            bail!(wrong);
        };
        let numbers = ["INT", "DOUBLE", "FLOAT", "DECIMAL", "REAL"];
        let is_number =
            numbers.iter().any(|number| kind.contains(number)) && kind != "INTERVAL" && !kind.ends_with("[]");
        answer.columns.push(AnswerColumn { name, is_number });
    }
    for line in rows.lines().filter(|line| !line.is_empty()) {
        if answer.rows.len() >= MAX_ROWS {
            bail!("the answer has more than {MAX_ROWS} rows\nhint: end the SELECT with LIMIT");
        }
        let Value::Object(mut row) = serde_json::from_str(line).context(wrong)? else {
            bail!(wrong);
        };
        let cells = answer
            .columns
            .iter()
            .map(|column| Cell(row.shift_remove(&column.name).unwrap_or(Value::Null)));
        answer.rows.push(cells.collect());
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read() {
        let columns = "{\"column_name\":\"host\",\"column_type\":\"VARCHAR\"}\n{\"column_name\":\"ce\",\"column_type\":\"BIGINT\"}\n";
        // 2^53 + 1 is no number of floating point.
        let rows = "{\"host\":\"h1\",\"ce\":9007199254740993}\n{\"host\":null,\"ce\":null}\n";
        let answer = parse(columns, rows).unwrap();
        let numbers: Vec<bool> = answer.columns.iter().map(|column| column.is_number).collect();
        assert_eq!(numbers, [false, true]);
        assert_eq!(answer.rows[0][1].shown(), "9007199254740993");
        assert_eq!(
            (answer.rows[1][0].text(), answer.rows[1][1].shown()),
            (None, "-".to_owned())
        );
        // No rows: the columns are still known.
        assert_eq!(parse(columns, "").unwrap().columns.len(), 2);
        for (columns, rows) in [("x", ""), ("{}", ""), (columns, "[1]"), (columns, "{")] {
            assert!(parse(columns, rows).is_err(), "{columns} {rows}");
        }
    }

    #[test]
    fn a_program_that_fails_says_why() {
        assert!(run_to_end(Command::new("sh").args(["-c", "echo 1"])).is_ok());
        let wrong = run_to_end(Command::new("sh").args(["-c", "echo 'Parser Error' >&2; exit 1"]));
        assert!(format!("{:#}", wrong.unwrap_err()).contains("Parser Error"));
        // An error of a statement before the last one leaves the exit code at 0.
        assert!(run_to_end(Command::new("sh").args(["-c", "echo 'Parser Error' >&2"])).is_err());
        assert!(run_to_end(&mut Command::new("a-program-that-nobody-has")).is_err());
    }
}
