//! Tables without lines: columns of text, as many as there is room for. What they say is left to those who fill them.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use super::ink::{Ink, shorten, width};
use super::style::Style;
use roce_spelling::ABSENT;

/// Blanks between two columns.
pub(super) fn gap(style: &Style) -> usize {
    if style.width < 100 { 1 } else { 2 }
}

/// One column.
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) right: bool,
    /// Columns with a lower one are given room first; 0 always.
    pub(super) rank: u8,
    pub(super) cells: Vec<String>,
}

impl Column {
    /// A column with a cell for each of `rows`.
    pub(super) fn new<'a, R>(
        title: &'static str,
        right: bool,
        rank: u8,
        rows: &'a [R],
        cell: impl Fn(&'a R) -> String,
    ) -> Self {
        Self {
            title,
            right,
            rank,
            cells: rows.iter().map(cell).collect(),
        }
    }

    /// Width of the column.
    pub(super) fn width(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| width(cell))
            .chain([width(self.title)])
            .max()
            .unwrap_or(0)
    }

    /// True if all that it says is that there was nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.cells
            .iter()
            .all(|cell| cell == "0" || cell == ABSENT || cell.is_empty())
    }

    /// Counts that are all zero say least: they come last.
    pub(super) fn unless_zero(mut self) -> Self {
        if self.is_empty() {
            self.rank += 50;
        }
        self
    }

    /// Its cells in an ink, but those that say nothing.
    pub(super) fn in_ink(mut self, ink: Ink) -> Self {
        for cell in &mut self.cells {
            if cell != "0" && cell != ABSENT {
                *cell = ink.paint(cell);
            }
        }
        self
    }
}

/// The columns for which there is `room`, in their order.
pub(super) fn choose(columns: Vec<Column>, room: usize, gap: usize) -> Vec<Column> {
    let mut order: Vec<(u8, usize, usize)> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| (column.rank, index, column.width() + gap))
        .collect();
    order.sort_unstable();
    let mut used = 0;
    let mut chosen = vec![false; columns.len()];
    for (rank, index, needs) in order {
        // One that has no room does not keep narrower ones out.
        if rank == 0 || used + needs <= room {
            used += needs;
            chosen[index] = true;
        }
    }
    columns
        .into_iter()
        .zip(chosen)
        .filter_map(|(column, chosen)| chosen.then_some(column))
        .collect()
}

/// The columns one beside the other, under their titles.
pub(super) fn draw(columns: &[Column], gap: usize) -> Vec<String> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    let cell = |text: String, right: bool| {
        Cell::new_owned(text).set_alignment(if right {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        })
    };
    table.set_header(
        columns
            .iter()
            .map(|column| cell(Ink::Bold.paint(column.title), column.right)),
    );
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    for row in 0..rows {
        table.add_row(
            columns
                .iter()
                .map(|column| cell(column.cells.get(row).cloned().unwrap_or_default(), column.right)),
        );
    }
    let end = table.column_count().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        let after = if index == end { 0 } else { gap };
        column.set_padding((u16::from(index == 0), u16::try_from(after).unwrap_or(1)));
    }
    table.lines().collect()
}

/// A table over the whole screen. The text of `last` is in the last column, in the remaining room; when
/// that is too little to read, it is left out.
pub(super) fn lay(columns: Vec<Column>, last: Option<Column>, style: &Style) -> Vec<String> {
    /// Less than this of a text says nothing.
    const TEXT: usize = 20;
    let gap = gap(style);
    let all = style.width.saturating_sub(1);
    let kept = if last.is_some() { TEXT } else { 0 };
    let mut chosen = choose(columns, (all + gap).saturating_sub(kept), gap);
    let used: usize = chosen.iter().map(|column| column.width() + gap).sum();
    let left = all.saturating_sub(used);
    if let Some(mut last) = last.filter(|last| left >= TEXT && !last.is_empty()) {
        for cell in &mut last.cells {
            *cell = end_cut(cell, left, style.unicode);
        }
        chosen.push(last);
    }
    draw(&chosen, gap)
}

/// A table of some of `all` rows, without columns that say nothing, and how many rows are not in it.
pub(super) fn lay_some(columns: Vec<Column>, (shown, all): (usize, usize), style: &Style) -> Vec<String> {
    let columns = columns.into_iter().filter(|column| column.rank < 50).collect();
    let mut lines = lay(columns, None, style);
    if all > shown {
        lines.push(format!(" and {} more", all - shown));
    }
    lines
}

/// A sentence in at most `room` columns: its end goes.
pub(super) fn end_cut(text: &str, room: usize, unicode: bool) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mark = if unicode { "…" } else { ".." };
    let keep = room.saturating_sub(width(mark));
    let mut kept = String::new();
    for word in text.split(' ') {
        let blank = usize::from(!kept.is_empty());
        if width(&kept) + blank + width(word) > keep {
            break;
        }
        if blank > 0 {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    if kept.is_empty() {
        return shorten(text, room, unicode);
    }
    format!("{kept}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_a_word() {
        assert_eq!(end_cut("the queue overflowed here", 20, true), "the queue…");
        assert_eq!(end_cut("the queue", 9, true), "the queue");
        assert_eq!(end_cut("a-very-long-word", 8, false), "a-v..ord");
    }

    #[test]
    fn narrow_columns_are_not_kept_out_by_wide_ones() {
        let column = |title, rank, width: usize| Column {
            title,
            right: false,
            rank,
            cells: vec!["x".repeat(width)],
        };
        let chosen = choose(
            vec![column("a", 2, 5), column("b", 1, 20), column("c", 0, 5)],
            14,
            1,
        );
        let titles: Vec<&str> = chosen.iter().map(|column| column.title).collect();
        assert_eq!(titles, ["a", "c"]);
    }
}
