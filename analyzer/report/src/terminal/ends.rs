//! Section about connections that failed, those that waited longest first. Connections that were closed are in the table `ends` of the results.

use roce_model::{EndKind, EndRow, Span, Time};

use super::episodes::after;
use super::field::sentence;
use super::grid::{Column, lay};
use super::ink::Ink;
use super::view::View;
use roce_spelling::{ABSENT, plural, short_count};

/// Connections that are shown.
const SHOWN: usize = 8;

/// Section about the connections that failed.
pub(super) fn ends(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    let failed = |row: &&EndRow| row.outcome != EndKind::Closed;
    let count = run.ends.iter().filter(failed).count();
    let all: Vec<&EndRow> = run.ends.iter().filter(failed).take(SHOWN).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let origin = run.zero();
    let time = |time: Option<Time>| time.map_or_else(|| ABSENT.to_owned(), |time| after(time, origin));
    let columns = vec![
        Column::new("source", false, 0, &all, |row| row.source.to_string()),
        Column::new("destination", false, 0, &all, |row| row.destination.to_string()),
        Column::new("QP", true, 0, &all, |row| format!("{:#x}", row.destination_qpn)),
        Column::new("end", false, 0, &all, |row| {
            Ink::Warn.paint(row.refusal.unwrap_or(row.outcome.name()))
        }),
        Column::new("at", true, 0, &all, |row| after(row.time, origin)),
        Column::new("repeats", true, 2, &all, |row| match row.repeats {
            0 => ABSENT.to_owned(),
            repeats => short_count(repeats),
        })
        .unless_zero(),
        Column::new("apart", true, 4, &all, |row| {
            row.repeat_min_ns
                .map_or_else(|| ABSENT.to_owned(), |time| Span(time).to_string())
        })
        .unless_zero(),
        Column::new("waited", true, 1, &all, |row| Span(row.waited_ns).to_string()),
        Column::new("last answer", true, 3, &all, |row| time(row.last_answer_time)),
        Column::new("host's last", true, 5, &all, |row| time(row.peer_last_time)),
        Column::new("PSN", true, 6, &all, |row| {
            row.request_psn
                .map_or_else(|| ABSENT.to_owned(), |psn| psn.to_string())
        }),
    ];
    let mut lines = vec![String::new()];
    lines.extend(sentence(
        [
            Some(Ink::Bold.paint(&plural(count as u64, "connection failed", "connections failed"))),
            (count > SHOWN).then(|| format!("the {SHOWN} that waited longest")),
        ],
        style,
    ));
    let columns = columns.into_iter().filter(|column| column.rank < 50).collect();
    lines.extend(lay(columns, None, style));
    lines
}
