//! A table that is shown again and again (`--watch`): drawn in place on a terminal, appended elsewhere.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use clap::Args;
use jiff::Timestamp;
use roce_model::{Span, Time};
use textwrap::core::display_width;

use crate::options::format::Format;

/// The option of a command that can show a running table.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WatchOption {
    /// Show what changed in each interval until Ctrl-C, --duration or the command ends it, and then the whole time; a terminal is redrawn,
    /// a pipe gets one table after the other
    #[arg(long, conflicts_with = "read")]
    watch: bool,
}

impl WatchOption {
    /// The time of a run: as long as is wanted; for ever where a running table is and nothing is said; else `usual`.
    pub(crate) fn duration(self, wanted: Option<Span>, usual: Option<Span>) -> Option<Span> {
        wanted.or(if self.watch { Some(Span(u64::MAX)) } else { usual })
    }

    /// Begins the table, if it is wanted. `is_shared`: a command writes to the terminal, too.
    pub(crate) fn begin(self, format: Format, is_shared: bool) -> Option<RunningTable> {
        let is_drawn = format == Format::Text && !is_shared && io::stdout().is_terminal();
        self.watch.then_some(RunningTable {
            is_drawn,
            has_heads: format == Format::Text,
            rows: 0,
        })
    }
}

/// A running table.
#[derive(Debug)]
pub(crate) struct RunningTable {
    /// Each table takes the place of the one before.
    is_drawn: bool,
    /// Each table has its time above it.
    has_heads: bool,
    /// Rows of the terminal that the last table takes.
    rows: usize,
}

impl RunningTable {
    /// Shows the table of the interval that ended at `time`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn show(&mut self, time: Time, table: &str) -> io::Result<()> {
        self.clear()?;
        let mut text = String::new();
        if self.has_heads {
            let at = Timestamp::from_nanosecond(i128::from(time.0)).unwrap_or_default();
            text = format!(" {}\n", at.strftime("%Y-%m-%d %H:%M:%SZ"));
        }
        text.push_str(table);
        if self.is_drawn {
            let size = terminal_size::terminal_size_of(io::stdout());
            let size = size.map_or((80, 24), |(width, height)| {
                (usize::from(width.0), usize::from(height.0))
            });
            (text, self.rows) = fitted(&text, size);
        }
        let mut out = anstream::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Takes the last table from the terminal, so that the next text stands in its place.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        // Up by these rows, and everything below is erased (ECMA-48, CUU and ED).
        let mut out = io::stdout();
        write!(out, "\x1b[{rows}A\r\x1b[J")?;
        out.flush()
    }
}

/// The lines that a terminal of these columns and rows has room for, with their rows. Long lines take several rows.
fn fitted(text: &str, (columns, height): (usize, usize)) -> (String, usize) {
    let rows_of = |line: &str| display_width(line).div_ceil(columns.max(1)).max(1);
    let total: usize = text.lines().map(rows_of).sum();
    // The cursor stands in the row below the text.
    let room = height.saturating_sub(1).max(1);
    if total <= room {
        return (text.to_owned(), total);
    }
    let (mut kept, mut rows, mut shown) = (String::new(), 0, 0);
    for line in text.lines() {
        if rows + rows_of(line) >= room {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
        rows += rows_of(line);
        shown += 1;
    }
    let more = text.lines().count() - shown;
    // Writing to a string does not fail.
    let _ = writeln!(kept, " {more} more lines: the terminal is too low");
    (kept, rows + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_cut_to_the_terminal() {
        // Three lines in a terminal of ten rows are whole.
        assert_eq!(fitted("a\nb\nc\n", (80, 10)), ("a\nb\nc\n".to_owned(), 3));
        // 25 characters take three rows of ten columns; colours take none.
        let long = "x".repeat(25);
        assert_eq!(fitted(&format!("{long}\n\x1b[31mb\x1b[0m\n"), (10, 10)).1, 4);
        // A terminal of five rows shows three of ten lines and the remark; its last row is the cursor's.
        let text = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n".to_owned();
        let (kept, rows) = fitted(&text, (80, 5));
        assert_eq!(kept, "0\n1\n2\n 7 more lines: the terminal is too low\n");
        assert_eq!(rows, 4);
    }
}
