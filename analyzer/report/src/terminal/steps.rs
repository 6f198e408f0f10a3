//! The steps of a training job: how long each took, and which took longer than the others.

use std::collections::BTreeMap;

use roce_model::cast::float;
use roce_model::{Address, Span, StepRow, Time, TrainingLogFit};

use super::draw::bars;
use super::episodes::after;
use super::field::{NAME, field, padded};
use super::grid::{Column, lay};
use super::ink::{Ink, clean, shorten};
use super::view::View;
use roce_spelling::{ABSENT, bytes, count, plural};

/// Outliers that are shown, the longest first.
const SHOWN: usize = 5;

/// One step over all its pairs of hosts.
#[derive(Clone, Copy, Default)]
struct Step {
    first: Option<Time>,
    last: Time,
    bytes: u64,
}

impl Step {
    fn duration(&self) -> u64 {
        self.last.since(self.first.unwrap_or(self.last)).0
    }
}

/// Section about training steps.
pub(super) fn steps(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    if run.steps.is_empty() {
        let Some(fit) = &run.training_log else {
            return Vec::new();
        };
        let steps = plural(fit.logged_steps, "step", "steps");
        let said = format!("its {steps} cannot be joined: the packets show no steps");
        let mut lines = vec![String::new()];
        lines.extend(field("log", &[Ink::Warn.paint(&said)], style));
        return lines;
    }
    let mut all: BTreeMap<(u32, u32), Step> = BTreeMap::new();
    let mut pairs: Vec<(Address, Address)> = Vec::new();
    for row in &run.steps {
        let step = all.entry((row.tap.0, row.step)).or_default();
        step.first = Some(
            step.first
                .map_or(row.start_time, |first| first.min(row.start_time)),
        );
        step.last = step.last.max(row.end_time);
        step.bytes = step.bytes.saturating_add(row.payload_bytes);
        pairs.push((row.host_a, row.host_b));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut durations: Vec<u64> = all.values().map(Step::duration).collect();
    let drawn: Vec<f64> = durations.iter().map(|duration| float(*duration)).collect();
    durations.sort_unstable();
    let median = |values: &[u64]| values.get(values.len() / 2).copied().unwrap_or_default();
    let mut periods: Vec<u64> = run.steps.iter().map(|row| row.period_ns).collect();
    periods.sort_unstable();
    let mut sizes: Vec<u64> = all.values().map(|step| step.bytes).collect();
    sizes.sort_unstable();
    let mut facts = vec![
        Ink::Bold.paint(&plural(all.len() as u64, "step", "steps")),
        format!(
            "between {}",
            plural(pairs.len() as u64, "pair of hosts", "pairs of hosts")
        ),
        format!("every {}", Span(median(&periods))),
        format!("median {}", Span(median(&durations))),
        format!("longest {}", Span(durations.last().copied().unwrap_or_default())),
        bytes(median(&sizes)),
    ];
    let mut outliers: Vec<&StepRow> = run.steps.iter().filter(|row| row.outlier).collect();
    facts.push(if outliers.is_empty() {
        "no outlier".to_owned()
    } else {
        Ink::Warn.paint(&plural(outliers.len() as u64, "outlier", "outliers"))
    });
    let mut lines = vec![String::new()];
    lines.extend(field("training", &facts, style));
    let room = style.width.saturating_sub(NAME + 1);
    lines.push(format!(
        " {}{}",
        padded(&Ink::Faint.paint("duration"), NAME - 1),
        bars(&longest(&drawn, room), style)
    ));
    if let Some(fit) = &run.training_log {
        lines.extend(field("log", &logged(fit), style));
    }
    if outliers.is_empty() {
        return lines;
    }
    outliers.sort_by_key(|row| (std::cmp::Reverse(row.duration_ns), row.step, row.start_time));
    let left = outliers.len().saturating_sub(SHOWN);
    outliers.truncate(SHOWN);
    outliers.sort_by_key(|row| (row.start_time, row.step));
    lines.extend(table(view, &outliers));
    if left > 0 {
        lines.push(format!(" and {} more", count(left as u64)));
    }
    lines
}

/// The training log's times beside those of the packets: `45.2 ms by the log and 0.54 ms in the packets`, `another run?`.
fn logged(fit: &TrainingLogFit) -> Vec<String> {
    if fit.joined_rows == 0 {
        let steps = plural(fit.logged_steps, "step", "steps");
        return vec![Ink::Warn.paint(&format!("none of its {steps} is one of the capture's"))];
    }
    let pair = |what: &str, (log, packets): (u64, u64), of_packets: &str| {
        format!(
            "{what} {} by the log and {} {of_packets}",
            Span(log),
            Span(packets)
        )
    };
    let mut facts = vec![format!("{} joined", plural(fit.joined_rows, "burst", "bursts"))];
    facts.extend(
        fit.allreduce
            .map(|both| pair("all-reduce", both, "in the packets")),
    );
    facts.extend(fit.total.map(|both| pair("step", both, "between bursts")));
    if fit.is_doubtful() {
        facts.push(Ink::Warn.paint("another run?"));
    }
    facts
}

/// The steps that took longer than the others of their pair.
fn table(view: &View<'_>, outliers: &[&StepRow]) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    let origin = run.zero();
    let room = if style.width < 100 { 15 } else { 39 };
    let host = |host: Address| shorten(&clean(&host.to_string()), room, style.unicode);
    let columns = vec![
        Column::new("step", true, 0, outliers, |row| row.step.to_string()),
        Column::new("at", true, 0, outliers, |row| after(row.start_time, origin)),
        Column::new("took", true, 0, outliers, |row| {
            Ink::Warn.paint(&Span(row.duration_ns).to_string())
        }),
        Column::new("host", false, 0, outliers, |row| host(row.host_a)),
        Column::new("host", false, 0, outliers, |row| host(row.host_b)),
        Column::new("data", true, 3, outliers, |row| bytes(row.payload_bytes)),
        Column::new("spread", true, 2, outliers, |row| Span(row.spread_ns).to_string()),
        Column::new("logged", true, 1, outliers, |row| {
            row.logged_ns
                .map_or_else(|| ABSENT.to_owned(), |time| Span(time).to_string())
        })
        .unless_zero(),
    ];
    let columns = columns.into_iter().filter(|column| column.rank < 50).collect();
    let because = Column::new("episode", false, 0, outliers, |row| {
        let found = row
            .episode
            .and_then(|number| run.episodes.iter().find(|episode| episode.episode == number));
        found.map_or_else(
            || ABSENT.to_owned(),
            |episode| {
                let to = episode
                    .destination
                    .map_or_else(String::new, |to| format!(" to {to}"));
                clean(&format!(
                    "{}{to} at {}, {}",
                    episode.kind.name(),
                    after(episode.start_time, origin),
                    episode.end_time.since(episode.start_time)
                ))
            },
        )
    });
    lay(columns, Some(because), style)
}

/// The values in at most `room` columns: of those that share one, the largest.
fn longest(values: &[f64], room: usize) -> Vec<f64> {
    let each = values.len().div_ceil(room.max(1)).max(1);
    values
        .chunks(each)
        .map(|chunk| chunk.iter().copied().fold(0.0, f64::max))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_is_seen_however_many_steps_there_are() {
        let mut values = vec![1.0; 1_000];
        values[777] = 9.0;
        let drawn = longest(&values, 67);
        assert!(drawn.len() <= 67);
        assert!(drawn.contains(&9.0));
        assert_eq!(longest(&[1.0, 2.0], 67), [1.0, 2.0]);
    }
}
