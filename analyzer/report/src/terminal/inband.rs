//! Section about hops that switches wrote into packets: those with the fullest queues. All are in the table `hops_inband` of the results.

use roce_model::{InbandHopRow, Span};

use super::field::sentence;
use super::grid::{Column, lay_some};
use super::ink::Ink;
use super::view::View;
use roce_spelling::{ABSENT, bytes, plural, short_count};

/// Hops that are shown.
const SHOWN: usize = 8;

fn number(value: Option<u32>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| value.to_string())
}

/// The section.
pub(super) fn inband(view: &View<'_>) -> Vec<String> {
    let style = view.style;
    let mut rows: Vec<&InbandHopRow> = view.run.hops_inband.iter().collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let count = rows.len();
    rows.sort_by_key(|row| core::cmp::Reverse((row.queued_bytes_max, row.residence_max_ns, row.value_max)));
    rows.truncate(SHOWN);
    let title = format!(
        "{} as switches wrote them into packets, the fullest queues",
        plural(count as u64, "hop of flows", "hops of flows")
    );
    let mut lines = vec![String::new()];
    lines.extend(sentence([Some(Ink::Bold.paint(&title))], style));
    let columns = vec![
        Column::new("flow", false, 0, &rows, |row| row.flow_id.to_string()),
        Column::new("by", false, 3, &rows, |row| row.kind.to_string()),
        Column::new("hop", true, 1, &rows, |row| number(row.hop)),
        Column::new("device", true, 0, &rows, |row| number(row.device)),
        Column::new("queue", true, 2, &rows, |row| number(row.queue)),
        Column::new("packets", true, 3, &rows, |row| short_count(row.packets)),
        Column::new("queued p50", true, 2, &rows, |row| {
            row.queued_bytes_p50.map_or_else(|| ABSENT.to_owned(), bytes)
        }),
        Column::new("queued max", true, 0, &rows, |row| {
            row.queued_bytes_max.map_or_else(|| ABSENT.to_owned(), bytes)
        }),
        Column::new("delay max", true, 1, &rows, |row| {
            row.residence_max_ns
                .map_or_else(|| ABSENT.to_owned(), |time| Span(time).to_string())
        }),
        Column::new("value max", true, 2, &rows, |row| {
            row.value_max
                .map_or_else(|| ABSENT.to_owned(), |value| value.to_string())
        }),
    ];
    lines.extend(lay_some(columns, (rows.len(), count), style));
    lines
}
