//! Questions to datasets, which DuckDB answers: the server itself may start no other program, so a process that may was started before. It
//! runs `query`, one at a time, and reads and writes lines of JSON. `stop` ends the question that is answered.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::answer::MAX_ANSWER;
use super::runner::{self, Bounds, Output};
use crate::command::beside;
use crate::own_process::own_process;

/// Bytes of rows that one answer needs at most: the rest is counted as cut.
const MAX_ROWS_BYTES: usize = 16 * MAX_ANSWER;
/// How often a question that is answered looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);
/// Error of a question to a process that is no more.
const ENDED: &str = "the process that asks datasets has ended";
/// Line that ends a question.
const STOP: &str = "stop";

/// A question for the other process.
#[derive(Serialize, Deserialize, Debug)]
struct Question {
    words: Vec<String>,
    /// Time that it has, in milliseconds.
    patience_ms: u64,
}

/// Its answer.
#[derive(Serialize, Deserialize, Debug)]
struct QueryAnswer {
    code: i32,
    text: String,
    is_cut: bool,
    messages: String,
}

/// The other process.
#[derive(Debug)]
pub(super) struct Queries {
    child: Child,
    /// It ends when this is closed.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Queries {
    /// Starts the process, in the folder where this one is.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start() -> anyhow::Result<Self> {
        let mut command = beside::command(own_process().get_program());
        command.args(["mcp", ".", "--answer-queries"]);
        let (sender, lines) = channel();
        let (outputs, output) = channel::<ChildStdout>();
        // First the thread: without one a process would write to nobody.
        std::thread::Builder::new()
            .name("queries".to_owned())
            .spawn(move || {
                let Ok(output) = output.recv() else { return };
                for line in BufReader::new(output).lines() {
                    let Ok(line) = line else { return };
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            })?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        outputs.send(child.stdout.take().context("no pipe")?)?;
        Ok(Self { child, input, lines })
    }

    /// Has a question answered.
    ///
    /// # Errors
    /// When it is cancelled, takes too long, or the process has ended.
    pub(super) fn ask(&mut self, words: &[String], bounds: &Bounds<'_>) -> anyhow::Result<Output> {
        let patience = bounds.until.saturating_duration_since(Instant::now());
        let question = Question {
            words: words.to_vec(),
            patience_ms: u64::try_from(patience.as_millis())?,
        };
        self.send(&serde_json::to_string(&question)?)?;
        let mut is_stopped = false;
        loop {
            if !is_stopped && bounds.cancelled.load(Ordering::Relaxed) {
                is_stopped = true;
                self.send(STOP)?;
            }
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => {
                    let answered: QueryAnswer = serde_json::from_str(&line).context(ENDED)?;
                    if is_stopped {
                        bail!("cancelled");
                    }
                    return Ok(Output {
                        text: answered.text.into_bytes(),
                        is_cut: answered.is_cut,
                        code: answered.code,
                        messages: answered.messages,
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!(ENDED),
            }
        }
    }
}

impl Queries {
    /// Sends a line.
    fn send(&mut self, line: &str) -> anyhow::Result<()> {
        let input = self.input.as_mut().context(ENDED)?;
        writeln!(input, "{line}").context(ENDED)
    }
}

impl Drop for Queries {
    fn drop(&mut self) {
        // It is out of reach of signals: Landlock confines them.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The other process: answers questions from standard input until that ends.
///
/// # Errors
/// When a line is no question, or the answer cannot be written.
pub(super) fn answer_all() -> anyhow::Result<()> {
    let cancelled = AtomicBool::new(false);
    let (sender, questions) = channel();
    std::thread::scope(|scope| {
        let cancelled = &cancelled;
        std::thread::Builder::new().spawn_scoped(scope, move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                // A wish to stop is for the question before it: the next one comes when that is answered.
                cancelled.store(line == STOP, Ordering::Relaxed);
                if line != STOP && sender.send(line).is_err() {
                    break;
                }
            }
            // Nobody waits for an answer any more.
            cancelled.store(true, Ordering::Relaxed);
        })?;
        for line in questions {
            let question: Question = serde_json::from_str(&line)?;
            let answered = answer(&question, cancelled);
            let mut output = std::io::stdout().lock();
            writeln!(output, "{}", serde_json::to_string(&answered)?)?;
            output.flush()?;
        }
        Ok(())
    })
}

/// Runs one question.
fn answer(question: &Question, cancelled: &AtomicBool) -> QueryAnswer {
    let bounds = Bounds {
        cancelled,
        until: Instant::now() + Duration::from_millis(question.patience_ms),
    };
    match runner::run(&question.words, &bounds) {
        Ok(output) => {
            let mut text = String::from_utf8_lossy(&output.text).into_owned();
            let is_long = text.len() > MAX_ROWS_BYTES;
            if is_long {
                let end = text
                    .get(..MAX_ROWS_BYTES)
                    .unwrap_or_default()
                    .rfind('\n')
                    .unwrap_or_default();
                text.truncate(end);
            }
            QueryAnswer {
                code: output.code,
                text,
                is_cut: output.is_cut || is_long,
                messages: output.messages,
            }
        }
        Err(error) => QueryAnswer {
            code: 2,
            text: String::new(),
            is_cut: false,
            messages: format!("{error:#}"),
        },
    }
}
