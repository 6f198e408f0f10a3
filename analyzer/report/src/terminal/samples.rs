//! Counters before and after, laid out for the terminal: a table for each device, port and interface.

use super::grid::{Column, lay};
use super::ink::{self, Ink, clean};
use super::style::Style;
use crate::samples::summary::{Key, SampleSummary, Series};
use roce_spelling::{ABSENT, decimal, plural};

/// All lines, painted.
pub(crate) fn lines(summary: &SampleSummary, all: bool, style: &Style) -> String {
    let mut lines = Vec::new();
    let rows: Vec<(&Key, &Series)> = summary
        .series
        .iter()
        .filter(|(_, series)| all || series.has_moved())
        .collect();
    let has_changes = summary.series.values().any(|series| series.readings > 1);
    for object in rows.chunk_by(|one, next| (&one.0.node, &one.0.object) == (&next.0.node, &next.0.object)) {
        let Some((key, _)) = object.first() else { continue };
        lines.push(format!(" {}", Ink::Bold.paint(&clean(&key.object))));
        let mut columns = vec![
            Column::new("counter", false, 0, object, |(key, _)| name(key)),
            Column::new("unit", false, 3, object, |(_, series)| series.unit.to_owned()),
        ];
        if has_changes {
            columns.extend([
                Column::new("before", true, 2, object, |(_, series)| decimal(series.first.1)),
                Column::new("after", true, 1, object, |(_, series)| decimal(series.last.1)),
                Column::new("change", true, 0, object, |(_, series)| change(series)),
                Column::new("per second", true, 1, object, |(_, series)| {
                    series.rate().map_or_else(|| ABSENT.to_owned(), decimal)
                }),
            ]);
        } else {
            columns.push(Column::new("value", true, 0, object, |(_, series)| {
                decimal(series.last.1)
            }));
        }
        lines.extend(lay(columns, None, style));
        lines.push(String::new());
    }
    let read = summary.series.len() as u64;
    let still = read - rows.len() as u64;
    if read == 0 {
        lines.push(" no counter: this host has no RDMA device, and no interface was named".to_owned());
    } else if still == read {
        lines.push(format!(
            " none of {} moved; --all shows them",
            plural(read, "counter", "counters")
        ));
    } else if still > 0 {
        lines.push(format!(
            " {still} of {} did not move; --all shows them",
            plural(read, "counter", "counters")
        ));
    }
    let unknown = summary
        .series
        .values()
        .filter(|series| series.unknown > 0 && series.resets == 0)
        .count();
    if unknown > 0 {
        lines.push(format!(
            " {} of 32 bits can have wrapped twice: a shorter --interval tells",
            plural(unknown as u64, "counter", "counters")
        ));
    }
    if summary.left_out > 0 {
        lines.push(format!(
            " {} left out: too many counters",
            plural(summary.left_out, "reading", "readings")
        ));
    }
    lines.push(String::new());
    ink::paint(&lines.join("\n"), style.color)
}

/// The counter with what tells it from others of the same name: `pfc_received_frames 3`, `port_requests_received write`.
fn name(key: &Key) -> String {
    let mut name = key.priority.map_or_else(
        || key.counter.to_owned(),
        |priority| format!("{} priority {priority}", key.counter),
    );
    for more in [&key.queue, &key.detail].into_iter().flatten() {
        name.push(' ');
        name.push_str(&clean(more));
    }
    name
}

fn change(series: &Series) -> String {
    let text = match series.change {
        // Nobody knows what was counted before it began again.
        Some(change) if series.resets > 0 => format!("at least {}", decimal(change)),
        Some(change) if change > 0.0 => format!("+{}", decimal(change)),
        Some(_) => "0".to_owned(),
        None if series.unknown > 0 => "unknown".to_owned(),
        None => ABSENT.to_owned(),
    };
    match series.resets {
        0 => text,
        1 => format!("{text} (reset)"),
        many => format!("{text} ({many} resets)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_all_digits_and_few_decimals() {
        for (value, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (133_704_872.0, "133,704,872"),
            (12.034_511, "12.035"),
            (0.02, "0.02"),
            (-1_000.5, "-1,000.5"),
        ] {
            assert_eq!(decimal(value), text);
        }
    }
}
