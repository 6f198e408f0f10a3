//! State of one side of a stream, from its tool's log.
//!
//! The texts are those of perftest 4.5+0.17 (src/perftest_communication.c, src/perftest_resources.c) and of iperf3 3.12.

use crate::results::{Weight, results};

/// Characters of a line that are kept.
const MAX_LINE: usize = 200;

/// State that a log shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogState {
    /// Nothing.
    Empty,
    /// The server waits for its client.
    Waiting,
    /// The client did not reach its server: the line.
    CouldNotConnect(String),
    /// A queue pair did not change its state, which a wrong GID or path causes: the line.
    FailedQueuePair(String),
    /// A completion had an error: the line, with perftest's status.
    CompletionError(String),
    /// The tool failed in another way: the line.
    Failed(String),
    /// There are results.
    Table,
    /// It has begun, and has no results.
    Begun,
}

impl LogState {
    /// The line of an error.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::CouldNotConnect(line)
            | Self::FailedQueuePair(line)
            | Self::CompletionError(line)
            | Self::Failed(line) => Some(line),
            Self::Empty | Self::Waiting | Self::Table | Self::Begun => None,
        }
    }
}

/// Beginnings of perftest's lines that say why it failed, and of those of the system that could not start it.
const FAILURES: [&str; 12] = [
    "Couldn't",
    "Failed",
    "Unable to",
    "Did not detect devices",
    "No IB devices found",
    "IB device ",
    "Can't produce a report",
    "Bad wc status",
    "Invalid",
    "timeout: failed",
    "timeout: can't",
    "env: ",
];

/// The state in a log. An error counts before results that follow it.
pub fn log_state(text: &str) -> LogState {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return LogState::Empty;
    }
    if text.trim_start().starts_with('{') || text.contains("iperf3: error") {
        return iperf3(text);
    }
    if let Some(error) = last_error(text) {
        return LogState::Failed(cut(&format!("iperf3 says: {error}")));
    }
    let mut failed = None;
    let mut is_waiting = false;
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line.starts_with("Completion with error") {
            // The status is in the next line.
            let status = lines.next().unwrap_or_default();
            return LogState::CompletionError(cut(&format!("{line}: {status}")));
        } else if line.starts_with("Couldn't connect to") || line.starts_with("Unexpected CM event") {
            return LogState::CouldNotConnect(cut(line));
        } else if line.starts_with("Failed to modify QP") {
            return LogState::FailedQueuePair(cut(line));
        } else if FAILURES.iter().any(|begin| line.starts_with(begin)) && failed.is_none() {
            failed = Some(cut(line));
        } else if line.contains("Waiting for client to connect") {
            is_waiting = true;
        } else if line.starts_with("local address:") {
            is_waiting = false;
        }
    }
    if let Some(line) = failed {
        return LogState::Failed(line);
    }
    if !results(text, None).measurements.is_empty() {
        LogState::Table
    } else if is_waiting {
        LogState::Waiting
    } else {
        LogState::Begun
    }
}

/// iperf3's document, or its error.
fn iperf3(text: &str) -> LogState {
    let found = results(text, None);
    let failure = found
        .remarks
        .iter()
        .find(|remark| remark.weight == Weight::Critical && remark.rule == "iperf3.failed");
    match failure {
        Some(remark) if remark.text.contains("unable to connect") => {
            LogState::CouldNotConnect(cut(&remark.text))
        }
        Some(remark) => LogState::Failed(cut(&remark.text)),
        None if found.measurements.is_empty() => LogState::Begun,
        None => LogState::Table,
    }
}

/// The error at the end of a document of iperf3 whose beginning is absent: its last key.
fn last_error(text: &str) -> Option<String> {
    let text = text.trim_end().strip_suffix('}')?.trim_end();
    let line = text.lines().next_back()?.trim();
    serde_json::from_str(line.strip_prefix("\"error\":")?.trim()).ok()
}

fn cut(line: &str) -> String {
    line.chars().take(MAX_LINE).collect()
}
