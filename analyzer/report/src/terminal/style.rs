//! Style of the texts: size of the terminal, colours and characters.

/// Style of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Columns of the terminal; no line is longer, unless it is narrower than 60.
    pub width: usize,
    /// Colours, as ANSI escape sequences.
    pub color: bool,
    /// Blocks and other characters beyond ASCII.
    pub unicode: bool,
    /// How many flows to show.
    pub top: usize,
    /// Every finding with its numbers, and every episode.
    pub full: bool,
    /// Lines of the terminal, when there is one: text that is longer ends with the verdicts.
    pub rows: Option<usize>,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            width: 80,
            color: false,
            unicode: true,
            top: 10,
            full: false,
            rows: None,
        }
    }
}

/// Minimum number of columns that the report is laid out for.
pub(super) const MIN_WIDTH: usize = 60;
