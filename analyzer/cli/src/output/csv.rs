//! Comma-separated values (RFC 4180, lines end with a line feed).

use std::io::Write;

use roce_model::text::clean;
use serde_json::Value;

/// A writer of records.
pub(crate) struct CsvWriter<W: Write> {
    out: csv::Writer<W>,
}

impl<W: Write> CsvWriter<W> {
    /// Writes to `out`. No text of it is a formula for a spreadsheet.
    pub(crate) fn new(out: W) -> Self {
        Self {
            out: csv::Writer::from_writer(out),
        }
    }

    /// Writes the names of the columns.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn head<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> csv::Result<()> {
        self.out.write_record(names.map(written))
    }

    /// Writes a row; null is nothing.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn row<'a>(&mut self, values: impl Iterator<Item = &'a Value>) -> csv::Result<()> {
        self.out.write_record(values.map(|value| match value {
            Value::Null => String::new(),
            Value::String(text) => written(text),
            other => other.to_string(),
        }))
    }
}

/// A text without characters that steer a terminal, and with an apostrophe where a spreadsheet would take it for a formula.
fn written(text: &str) -> String {
    let text = clean(text);
    if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text.into_owned()
    }
}
