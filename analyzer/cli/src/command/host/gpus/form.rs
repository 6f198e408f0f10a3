//! Forms that one reading of GPUs and a series of them share.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use roce_model::Counter;
use roce_model::text::clean;
use serde_json::{Map, Value};

/// Version of the JSON document's form.
pub(super) const SCHEMA_VERSION: u32 = 1;
/// A byte in GiB.
pub(super) const GIB: f64 = 1.0 / 1_073_741_824.0;

/// Rows with columns of equal width; those in `right` have numbers.
pub(super) fn laid(rows: &[Vec<String>], right: &Range<usize>) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| clean(cell).into_owned()).collect())
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if right.contains(&place) {
                write!(line, " {cell:>width$} ")
            } else {
                write!(line, " {cell:width$} ")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The labels of a sample by their names.
pub(super) fn labels(counter: Counter, details: &[Cow<'static, str>]) -> Map<String, Value> {
    let pairs = counter.labels().iter().zip(details);
    pairs
        .map(|(name, value)| ((*name).to_owned(), value.as_ref().into()))
        .collect()
}
