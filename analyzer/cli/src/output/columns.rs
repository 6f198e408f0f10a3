//! Columns of text, as many as there is room for.

use std::fmt::Write as _;

use crate::output::table::laid_by;

/// One column.
pub(crate) struct Column {
    title: &'static str,
    is_right: bool,
    /// Columns of a lower rank get room first; 0 always.
    rank: u8,
    cells: Vec<String>,
}

impl Column {
    /// A column with a cell for each row.
    pub(crate) fn new(title: &'static str, is_right: bool, rank: u8, cells: Vec<String>) -> Self {
        Self {
            title,
            is_right,
            rank,
            cells,
        }
    }

    /// True if all that it says is that there was nothing.
    fn is_zero(&self) -> bool {
        self.cells.iter().all(|cell| cell == "0" || cell == "-")
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([self.title.chars().count()]).max().unwrap_or(0)
    }
}

/// The columns for which `width` has room, and a line about those that are left out.
pub(crate) fn lay(mut columns: Vec<Column>, width: usize) -> String {
    let (mut hidden, mut zero) = (Vec::new(), Vec::new());
    // Each column has a blank before it and behind it.
    while columns.iter().map(|column| column.width() + 2).sum::<usize>() > width + 1 {
        let worst = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.rank > 0)
            .max_by_key(|(place, column)| (column.rank, *place));
        let Some((place, _)) = worst else { break };
        let column = columns.remove(place);
        let list = if column.is_zero() { &mut zero } else { &mut hidden };
        list.push(column.title);
    }
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let row = |row: usize| {
        let cells = columns.iter().map(|column| match row.checked_sub(1) {
            None => column.title.to_owned(),
            Some(row) => column.cells.get(row).cloned().unwrap_or_default(),
        });
        cells.collect()
    };
    let laid_out: Vec<Vec<String>> = (0..=rows).map(row).collect();
    let mut text = laid_by(&laid_out, |place| {
        columns.get(place).is_some_and(|column| column.is_right)
    });
    for (what, mut titles) in [("all 0 or not known", zero), ("no room for", hidden)] {
        if !titles.is_empty() {
            titles.reverse();
            let _ = writeln!(text, " {what}: {}", titles.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_least_gives_way() {
        let columns = || {
            vec![
                Column::new("interface", false, 0, vec!["Ethernet1/1".to_owned()]),
                Column::new("PFC in", true, 1, vec!["1,000".to_owned()]),
                Column::new("errors", true, 24, vec!["0".to_owned()]),
            ]
        };
        // 11, 6 and 6 characters, each with a blank before it and behind it; the last one needs none behind it.
        assert_eq!(
            lay(columns(), 28),
            " interface    PFC in  errors\n Ethernet1/1   1,000       0\n"
        );
        let narrow = lay(columns(), 22);
        assert_eq!(
            narrow,
            " interface    PFC in\n Ethernet1/1   1,000\n all 0 or not known: errors\n"
        );
    }
}
