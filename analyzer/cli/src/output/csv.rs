//! Comma-separated values (RFC 4180, lines end with a line feed).

use std::io::Write;

use roce_model::text::clean;
use serde_json::Value;

/// A writer of records.
pub(crate) struct CsvWriter<W: Write> {
    out: csv::Writer<W>,
    /// A text that a spreadsheet would take for a formula gets an apostrophe.
    is_guarded: bool,
}

impl<W: Write> CsvWriter<W> {
    /// Writes to `out`; with `is_guarded` no text of it is a formula for a spreadsheet.
    pub(crate) fn new(out: W, is_guarded: bool) -> Self {
        let out = csv::Writer::from_writer(out);
        Self { out, is_guarded }
    }

    /// Writes the names of the columns.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn head<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> csv::Result<()> {
        let is_guarded = self.is_guarded;
        self.out.write_record(names.map(|name| written(name, is_guarded)))
    }

    /// Writes a row; null is nothing.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn row<'a>(&mut self, values: impl Iterator<Item = &'a Value>) -> csv::Result<()> {
        let is_guarded = self.is_guarded;
        self.out.write_record(values.map(|value| match value {
            Value::Null => String::new(),
            Value::String(text) => written(text, is_guarded),
            other => written(&other.to_string(), false),
        }))
    }
}

/// A text without characters that steer a terminal, and with an apostrophe where it is to be no formula.
fn written(text: &str, is_guarded: bool) -> String {
    let text = clean(text);
    if is_guarded && text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text.into_owned()
    }
}
