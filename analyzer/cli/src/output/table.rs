//! Tables of texts. Crates were looked at and not taken: comfy-table and tabled draw borders and measure terminals; these are plain columns.

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
    // Who is asked may look at all rows of the column.
    let columns: Vec<(usize, bool)> = (0..columns)
        .map(|column| (width(column), is_right(column)))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let begin = text.len();
        for (cell, (width, is_right)) in row.iter().zip(&columns) {
            // `format!` pads to 65,535 characters at most.
            let blanks = std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count()));
            text.push(' ');
            if *is_right {
                text.extend(blanks);
                text.push_str(cell);
            } else {
                text.push_str(cell);
                text.extend(blanks);
            }
            text.push(' ');
        }
        text.truncate(begin + text[begin..].trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_one_width_however_wide() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["name", "count"]), row(["\u{e4}", "7"])];
        assert_eq!(laid(&rows, &(1..2)), " name  count\n \u{e4}         7\n");
        let wide = "x".repeat(70_000);
        let text = laid(&[row([&wide, "1"]), row(["y", "2"])], &(1..2));
        let widths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(widths, [70_000 + 4, 70_000 + 4]);
    }

    /// A question about a column may look at all of its rows.
    #[test]
    fn each_column_is_asked_once() {
        let rows = vec![vec!["1".to_owned(); 3]; 100];
        let asked = std::cell::Cell::new(0);
        laid_by(&rows, |_| {
            asked.set(asked.get() + 1);
            true
        });
        assert_eq!(asked.get(), 3);
    }
}
