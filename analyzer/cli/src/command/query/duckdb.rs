//! The answer of DuckDB to one question, as rows that arrive one by one. DuckDB's own program and Python's module give them as lines of
//! JSON. The question is a text within one statement of this program: DuckDB takes a single SELECT there, and nothing that changes or
//! writes anything.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use roce_files::lines_of;
use roce_model::text::clean;
use serde_json::Value;

use crate::command::duckdb::{DuckDb, Kind, LOCKED, PATIENCE, Scratch, closed, failure};

/// Rows that wait to be read; DuckDB waits when there are more.
const MAX_WAITING: usize = 16;
/// Limit of a line, which is one row, in bytes.
const MAX_ROW_BYTES: u64 = 16 << 20;
/// Limit of what is kept of DuckDB's error.
const MAX_ERROR_BYTES: u64 = 16 << 10;

/// Prints the columns' names, then each row as an array. Types that JSON lacks become text in DuckDB itself, as its own program does it.
const PYTHON: &str = r#"
import json, sys
import duckdb
work = json.load(sys.stdin)
numbers = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE", "BOOLEAN")
def column(name, kind):
    quoted = '"' + name.replace('"', '""') + '"'
    return quoted if kind in numbers else f"CAST({quoted} AS VARCHAR) AS {quoted}"
try:
    connection = duckdb.connect()
    for statement in work["setup"]:
        connection.execute(statement)
    columns = connection.execute("SELECT column_name, column_type FROM (DESCRIBE " + work["sql"] + ")").fetchall()
    answer = connection.execute("SELECT " + ", ".join(column(*each) for each in columns) + " FROM (" + work["sql"] + ")")
    print(json.dumps([each[0] for each in answer.description or ()]))
    while rows := answer.fetchmany(1000):
        for row in rows:
            print(json.dumps(row, default=str))
except duckdb.Error as error:
    sys.exit(str(error))
"#;

impl DuckDb {
    /// Starts to answer `sql` with the views that the statements of `views` make; paths in them are relative to `dir`.
    ///
    /// # Errors
    /// When the program cannot be started, or the text is no SQL for it.
    pub(super) fn ask(&self, dir: &Path, views: &[String], sql: &str) -> anyhow::Result<Rows> {
        if let Some(line) = sql.lines().find(|line| line.starts_with('.')) {
            bail!(
                "{}: is a command of DuckDB's shell, and no SQL",
                clean(line.split_whitespace().next().unwrap_or_default())
            );
        }
        let scratch = Scratch::new()?;
        // A text in quotes, in which the question is a single SELECT or an error.
        let sql = format!("SELECT * FROM query('{}')", sql.replace('\'', "''"));
        let mut setup = vec!["SET TimeZone = 'UTC';".to_owned()];
        setup.extend(scratch.limits());
        setup.extend(views.iter().cloned());
        setup.extend(closed(&["."]));
        setup.push(LOCKED.to_owned());
        let mut command = self.command(&["-no-init", "-jsonlines"], PYTHON);
        let input = match self.kind() {
            Kind::Shell => format!("{}\n{sql}\n;\n", setup.join("\n")),
            Kind::Python => serde_json::json!({ "setup": setup, "sql": sql }).to_string(),
        };
        let streams = command.current_dir(dir).stdin(Stdio::piped());
        let streams = streams.stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = self.program().display();
        let mut child = streams
            .spawn()
            .with_context(|| format!("{name}: cannot be started"))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (sender, lines) = sync_channel(MAX_WAITING);
        let thread = |name: &str| Builder::new().name(name.to_owned());
        // A program that ends early has an error to show, and reads no more.
        let writer = thread("question").spawn(move || {
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(input.as_bytes());
            }
        });
        let errors = thread("errors").spawn(move || {
            let mut text = Vec::new();
            if let Some(mut stderr) = stderr {
                let _ = stderr.by_ref().take(MAX_ERROR_BYTES).read_to_end(&mut text);
                let _ = io::copy(&mut stderr, &mut io::sink());
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        let reader = thread("answer").spawn(move || {
            let lines = stdout
                .into_iter()
                .flat_map(|stdout| lines_of(stdout, MAX_ROW_BYTES));
            for line in lines {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut rows = Rows {
            lines: Some(lines),
            patience: PATIENCE,
            columns: Vec::new(),
            waiting: VecDeque::new(),
            child: Some(child),
            threads: None,
            scratch: Some(scratch),
        };
        let failed = "no thread for DuckDB's answer";
        reader.context(failed)?;
        rows.threads = Some((writer.context(failed)?, errors.context(failed)?));
        Ok(rows)
    }
}

/// A line whose numbers JSON has: NaN and infinities, which DuckDB and Python write as words, become null.
fn finite(line: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(line.len());
    let (mut is_text, mut at) = (false, 0);
    while let Some(byte) = line.get(at) {
        let rest = line.get(at..).unwrap_or_default();
        let words: [&[u8]; 6] = [b"-Infinity", b"Infinity", b"-inf", b"inf", b"NaN", b"nan"];
        let word = words.iter().find(|word| !is_text && rest.starts_with(word));
        if let Some(word) = word {
            found.extend_from_slice(b"null");
            at += word.len();
            continue;
        }
        if is_text && *byte == b'\\' {
            found.extend(rest.iter().take(2));
            at += 2;
            continue;
        }
        is_text ^= *byte == b'"';
        found.push(*byte);
        at += 1;
    }
    found
}

/// The rows of an answer, as they arrive.
#[derive(Debug)]
pub(super) struct Rows {
    lines: Option<Receiver<io::Result<Vec<u8>>>>,
    /// Time that may still be waited for DuckDB.
    patience: Duration,
    columns: Vec<String>,
    /// A row that was read with the columns' names.
    waiting: VecDeque<Vec<Value>>,
    child: Option<Child>,
    threads: Option<(JoinHandle<()>, JoinHandle<String>)>,
    /// It goes with the last row.
    scratch: Option<Scratch>,
}

impl Rows {
    /// Names of the columns. Before the first row is read there are none; DuckDB's own program names none of an answer without rows.
    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The next row, in the order of [`Self::columns`]; `None` at the end.
    ///
    /// # Errors
    /// When DuckDB refuses the question, or a line is not a row.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Vec<Value>>> {
        loop {
            if let Some(row) = self.waiting.pop_front() {
                return Ok(Some(row));
            }
            let Some(line) = self.line()? else {
                self.end()?;
                return Ok(None);
            };
            match serde_json::from_slice(&line).or_else(|_| serde_json::from_slice(&finite(&line))) {
                Ok(Value::Array(names)) if self.columns.is_empty() => {
                    self.columns = names
                        .iter()
                        .map(|name| name.as_str().unwrap_or("?").to_owned())
                        .collect();
                }
                Ok(Value::Array(row)) => self.waiting.push_back(row),
                Ok(Value::Object(row)) => {
                    let names: Vec<String> = row.keys().cloned().collect();
                    if self.columns.is_empty() {
                        self.columns = names;
                    } else if self.columns != names {
                        bail!("the question has several answers\nhint: one SELECT at a time");
                    }
                    self.waiting
                        .push_back(row.into_iter().map(|(_, value)| value).collect());
                }
                _ => bail!(
                    "DuckDB's answer has a line that is no row: {}",
                    clean(&String::from_utf8_lossy(&line))
                ),
            }
        }
    }

    /// The next line; `None` at the end.
    fn line(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(lines) = &self.lines else {
            return Ok(None);
        };
        loop {
            let begun = Instant::now();
            let line = match lines.recv_timeout(self.patience) {
                Ok(line) => line?,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => bail!(
                    "DuckDB took longer than {} s\nhint: ask for less: fewer rows, a shorter time (--from, --to)",
                    PATIENCE.as_secs()
                ),
            };
            self.patience = self.patience.saturating_sub(begun.elapsed());
            if line.len() as u64 == MAX_ROW_BYTES {
                bail!("a row of the answer has more than {MAX_ROW_BYTES} bytes");
            }
            // The shell separates the answers of several statements by empty lines.
            if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                return Ok(Some(line));
            }
        }
    }

    /// Waits for the program, and says why it failed.
    fn end(&mut self) -> anyhow::Result<()> {
        self.lines = None;
        let (Some(mut child), Some((writer, errors))) = (self.child.take(), self.threads.take()) else {
            return Ok(());
        };
        let status = child.wait()?;
        let _ = writer.join();
        let error = errors.join().unwrap_or_default();
        if status.success() {
            return Ok(());
        }
        Err(failure(status, &error))
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        // The folder goes when it is closed, with what DuckDB has left in it only if that is nothing.
        drop(self.scratch.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_lacks_are_absent() {
        for (line, expected) in [
            (
                r#"{"a":NaN,"b":-inf,"c":"NaN \" inf"}"#,
                r#"{"a":null,"b":null,"c":"NaN \" inf"}"#,
            ),
            ("[Infinity, -Infinity, 1.5]", "[null, null, 1.5]"),
        ] {
            assert_eq!(String::from_utf8(finite(line.as_bytes())).unwrap(), expected);
        }
    }
}
