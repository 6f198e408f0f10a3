//! A document that cannot be read.

use std::fmt;

/// The place of an error in a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DocumentPlace {
    /// A line, from 1.
    Line(u64),
    /// An offset in bytes, from 0.
    Byte(u64),
}

impl fmt::Display for DocumentPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A document that cannot be read: where, and what was expected there.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {place}: {reason}")]
pub struct DocumentError {
    /// The file.
    pub file: String,
    /// The place in it.
    pub place: DocumentPlace,
    /// Description of what is there, and of what was expected.
    pub reason: String,
}

impl DocumentError {
    pub(super) fn at_line(file: &str, line: u64, reason: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place: DocumentPlace::Line(line),
            reason: reason.into(),
        }
    }

    pub(super) fn at_byte(file: &str, byte: usize, reason: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place: DocumentPlace::Byte(byte as u64),
            reason: reason.into(),
        }
    }

    /// An error of JSON that begins after `lines` lines of the file. `expected` is what the text should be.
    pub(super) fn of_json(file: &str, lines: u64, error: &serde_json::Error, expected: &str) -> Self {
        // serde_json has the position at the end of its message: it is cut off, and printed in this project's form.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let words = error.to_string().replace(&place, "");
        let words = roce_model::text::clean(&words);
        let reason = format!("column {}: {words}; expected {expected}", error.column());
        Self::at_line(file, lines + error.line().max(1) as u64, reason)
    }
}
