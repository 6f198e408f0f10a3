//! Tables of texts. Crates were looked at and not taken: comfy-table and tabled draw borders and measure terminals; these are plain columns.

use std::fmt::Write as _;
use std::ops::Range;

use roce_model::text::clean;

/// Rows with columns of equal width; those in `right` have numbers.
pub(crate) fn laid(rows: &[Vec<String>], right: &Range<usize>) -> String {
    laid_by(rows, |column| right.contains(&column))
}

/// Rows with columns of equal width; those for which `is_right` is true have numbers.
pub(crate) fn laid_by(rows: &[Vec<String>], is_right: impl Fn(usize) -> bool) -> String {
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
            let _ = if is_right(place) {
                write!(line, " {cell:>width$} ")
            } else {
                write!(line, " {cell:width$} ")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
