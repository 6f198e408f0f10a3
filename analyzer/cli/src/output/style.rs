//! Style of text on standard output: its width, colours and characters.

use std::io::Write;

use roce_report::{Style, TerminalReport};

/// The text of a run at its end.
pub(crate) fn terminal(top: usize, full: bool) -> TerminalReport<impl Write> {
    let style = Style { full, ..style(top) };
    TerminalReport::new(anstream::stdout(), style)
}

/// Style of text on standard output.
pub(crate) fn style(top: usize) -> Style {
    Style {
        width: width(),
        // The stream would remove colours that a pipe or NO_COLOR does not want, but not the words about
        // colours.
        color: anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never,
        unicode: unicode(),
        top,
        full: false,
        rows: terminal_size::terminal_size_of(std::io::stdout()).map(|(_, rows)| usize::from(rows.0)),
    }
}

/// Columns of the widest screen, as many as a terminal can have (`ws_col` of Linux include/uapi/asm-generic/termios.h). A larger
/// `COLUMNS` is taken for this.
const MAX_WIDTH: usize = u16::MAX as usize;

/// Columns that `COLUMNS` states.
fn stated_width(columns: &str) -> Option<usize> {
    let columns: usize = columns.trim().parse().ok()?;
    (columns > 0).then(|| columns.min(MAX_WIDTH))
}

/// Columns of the screen: `COLUMNS` when it is set (POSIX, 8.3), else what the terminal says, else 80.
pub(crate) fn width() -> usize {
    let set = std::env::var("COLUMNS").ok();
    set.and_then(|columns| stated_width(&columns))
        .unwrap_or_else(|| terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0)))
}

/// Columns that a table may have: those of the screen, or of `COLUMNS`; `None`: the output is no terminal, and takes all of them.
pub(crate) fn table_width() -> Option<usize> {
    use std::io::IsTerminal as _;
    let is_bounded = std::env::var_os("COLUMNS").is_some() || std::io::stdout().is_terminal();
    is_bounded.then(width)
}

/// True if the locale's character set is UTF-8, by the first of the variables that is set (POSIX, 8.2).
fn unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb" || term == "linux") {
        return false;
    }
    locale.is_some_and(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_has_at_most_as_many_columns_as_a_terminal() {
        for (columns, width) in [
            ("120", Some(120)),
            (" 80 ", Some(80)),
            ("65536", Some(65_535)),
            // 2^64 - 1.
            ("18446744073709551615", Some(65_535)),
            ("0", None),
            ("-1", None),
            ("wide", None),
        ] {
            assert_eq!(stated_width(columns), width, "{columns}");
        }
    }
}
