//! The episodes: when something was congested, what, how badly, and why. In the order of time.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use roce_model::{EpisodeRow, Span, Time};

use super::field::padded;
use super::grid::{Column, lay};
use super::ink::{Ink, clean, shorten, width};
use super::style::Style;
use super::verdicts::three_digits;
use super::view::View;
use roce_spelling::{ABSENT, plural, short_count};

/// Episodes that are shown on wide screens; of more, those with most losses and marks.
const SHOWN: usize = 8;
/// Episodes that are shown on narrow ones, where causes have lines of their own.
const SHOWN_NARROW: usize = 4;
/// Screens are wide from here on.
const WIDE: usize = 100;

/// Blanks between the numbers and a cause beside them.
const GAP: usize = 2;
/// Blanks before a cause on a line of its own.
const INDENT: usize = 4;

/// The table of episodes.
pub(super) fn episodes(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    let all = run.episodes.len();
    if all == 0 {
        return Vec::new();
    }
    let mut worst: Vec<&EpisodeRow> = run.episodes.iter().collect();
    worst.sort_by_key(|row| {
        std::cmp::Reverse((
            row.lost,
            row.pause_ns.unwrap_or(0),
            row.cnp.saturating_add(row.ce),
            row.rnr_naks,
            row.end_time.since(row.start_time),
        ))
    });
    let wide = style.width >= WIDE;
    worst.truncate(match style.full {
        true => all,
        false if wide => SHOWN,
        false => SHOWN_NARROW,
    });
    worst.sort_by_key(|row| (row.start_time, row.episode));
    let origin = run.zero();
    let several = run.taps.len() > 1;
    let room = match style.width {
        0..100 => 15,
        100..140 => 24,
        _ => 39,
    };
    let counted = |title, rank, value: fn(&EpisodeRow) -> u64| {
        Column::new(title, true, rank, &worst, |row| short_count(value(row))).unless_zero()
    };
    let mut columns = vec![
        Column::new("at", true, 0, &worst, |row| after(row.start_time, origin)),
        Column::new("for", true, 0, &worst, |row| {
            row.end_time.since(row.start_time).to_string()
        }),
        Column::new("kind", false, 0, &worst, |row| row.kind.name().to_owned()),
        Column::new("destination", false, 0, &worst, |row| {
            let place = match (row.destination, row.priority) {
                (Some(destination), _) => destination.to_string(),
                (None, Some(8)) => "whole link".to_owned(),
                (None, Some(priority)) => format!("priority {priority}"),
                (None, None) => ABSENT.to_owned(),
            };
            shorten(&clean(&place), room, style.unicode)
        }),
        counted("senders", 5, |row| u64::from(row.senders_max)),
        counted("flows", 7, |row| u64::from(row.flows)),
        Column::new("CE %", true, 2, &worst, |row| {
            row.ce_share_peak
                .map_or_else(|| ABSENT.to_owned(), |share| three_digits(share * 100.0))
        })
        .unless_zero()
        .in_ink(Ink::Warn),
        counted("CNPs", 3, |row| row.cnp),
        counted("lost", 1, |row| row.lost).in_ink(Ink::Bad),
        counted("RNR NAKs", 4, |row| row.rnr_naks).in_ink(Ink::Bad),
        Column::new("paused", true, 4, &worst, |row| {
            row.pause_ns
                .map_or_else(|| ABSENT.to_owned(), |time| Span(time).to_string())
        })
        .unless_zero(),
    ];
    if several {
        columns.push(Column::new("tap", true, 6, &worst, |row| row.tap.0.to_string()));
    }
    // Empty columns leave their room to the cause.
    columns.retain(|column| column.rank < 50);
    let cause = Column::new("cause", false, 0, &worst, |row| clean(&row.cause));
    let mut title = plural(all as u64, "episode", "episodes");
    let taps: BTreeSet<u32> = run.episodes.iter().map(|row| row.tap.0).collect();
    if taps.len() > 1 {
        let _ = write!(title, ", those of {} taps", taps.len());
    }
    let shown = if all > worst.len() {
        format!(", the {} with most losses and marks", worst.len())
    } else {
        String::new()
    };
    let mut lines = vec![String::new(), format!(" {}{shown}", Ink::Bold.paint(&title))];
    lines.extend(with_causes(lay(columns, None, style), &cause, wide, style));
    lines
}

/// The lines of the table with the causes: beside the numbers where all of them have room there, else on lines of their own.
fn with_causes(table: Vec<String>, cause: &Column, wide: bool, style: &Style) -> Vec<String> {
    let used = table.iter().map(|line| width(line)).max().unwrap_or(0);
    if wide && used + GAP + cause.width() <= style.width {
        let title = Ink::Bold.paint(cause.title);
        let causes = std::iter::once(&title).chain(&cause.cells);
        let beside = |(line, cause): (&String, &String)| {
            let line = format!("{}{:GAP$}{cause}", padded(line, used), "");
            line.trim_end().to_owned()
        };
        return table.iter().zip(causes).map(beside).collect();
    }
    let mut rows = table.into_iter();
    let mut lines: Vec<String> = rows.next().into_iter().collect();
    for (place, (row, text)) in rows.zip(&cause.cells).enumerate() {
        lines.push(row);
        // A cause that several episodes in a row have in common is written once, after the last of them.
        if !text.is_empty() && cause.cells.get(place + 1) != Some(text) {
            let wrapped = textwrap::wrap(text, style.width.saturating_sub(INDENT));
            lines.extend(
                wrapped
                    .iter()
                    .map(|line| format!("{:INDENT$}{}", "", Ink::Faint.paint(line))),
            );
        }
    }
    lines
}

/// `+12.5 ms` after the first frame; to the millisecond from ten seconds on, so that moments can be distinguished.
pub(crate) fn after(time: Time, origin: Time) -> String {
    let after = time.since(origin);
    if after.0 < 10 * Span::SECOND.0 {
        return format!("+{after}");
    }
    format!("+{:.3} s", after.seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_moments_look_different() {
        let after = |ns: u64| after(Time(1_000 + ns), Time(1_000));
        assert_eq!(after(0), "+0 ns");
        assert_eq!(after(582_000_000), "+582 ms");
        assert_eq!(after(1_926_123_456_789), "+1926.123 s");
    }
}
