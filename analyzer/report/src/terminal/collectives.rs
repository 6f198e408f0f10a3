//! Merged traces of ranks: how their clocks are related to the capture's, and the collectives that took longest against their equals.

use std::cmp::Reverse;

use roce_model::cast::{float, whole};
use roce_model::{CollectiveCallRow, Span, TraceClock, TraceRow};

use super::episodes::after;
use super::field::{NAMED, field};
use super::grid::{Column, lay};
use super::ink::{Ink, clean, shorten};
use super::view::View;
use roce_spelling::{ABSENT, bytes, count, plural, rate_of};

/// Collectives that are shown: those that were slowed, then those that are longest against the median of their equals.
const SHOWN: usize = 5;

/// Section about merged traces.
pub(super) fn collectives(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    if run.traces.is_empty() {
        return Vec::new();
    }
    let slowed = run.collective_calls.iter().filter(|call| call.is_slowed).count() as u64;
    let mut facts = vec![
        Ink::Bold.paint(&plural(
            run.collective_calls.len() as u64,
            "collective",
            "collectives",
        )),
        plural(run.traces.len() as u64, "trace", "traces"),
        if slowed == 0 {
            "none slowed".to_owned()
        } else {
            Ink::Warn.paint(&format!("{} slowed", count(slowed)))
        },
    ];
    let outside: u64 = run.traces.iter().map(|trace| trace.outside).sum();
    if outside > 0 {
        facts.push(format!("{} outside the capture", count(outside)));
    }
    let left_out: u64 = run.traces.iter().map(|trace| trace.left_out).sum();
    if left_out > 0 {
        facts.push(format!("{} left out", count(left_out)));
    }
    let mut lines = vec![String::new()];
    lines.extend(field("ranks", &facts, style));
    for trace in run.traces.iter().take(NAMED) {
        lines.extend(field("clock", &clock(trace), style));
    }
    if let Some(more) = run.traces.len().checked_sub(NAMED).filter(|more| *more > 0) {
        lines.extend(field(
            "",
            &[format!("and {} more", plural(more as u64, "trace", "traces"))],
            style,
        ));
    }
    let mut calls: Vec<&CollectiveCallRow> = run.collective_calls.iter().collect();
    let share = |call: &CollectiveCallRow| {
        let median = call.median_ns.filter(|median| *median > 0);
        median.map_or(0, |median| whole(1e3 * float(call.duration_ns) / float(median)))
    };
    calls.sort_by_key(|call| {
        (
            !call.is_slowed,
            Reverse(share(call)),
            Reverse(call.duration_ns),
            call.start_time,
        )
    });
    let left = calls.len().saturating_sub(SHOWN);
    calls.truncate(SHOWN);
    calls.sort_by_key(|call| call.start_time);
    lines.extend(table(view, &calls));
    if left > 0 {
        lines.push(format!(" and {} more", count(left as u64)));
    }
    lines
}

/// How a trace's clock is related to the capture's.
fn clock(trace: &TraceRow) -> Vec<String> {
    let rank = trace
        .rank
        .map_or_else(String::new, |rank| format!(" (rank {rank})"));
    let within = trace
        .uncertainty_ns
        .map_or_else(String::new, |time| format!(" within {}", Span(time)));
    let offset = trace.offset_ns.map_or_else(String::new, |offset| {
        let sign = if offset < 0.0 { "-" } else { "+" };
        let seconds = offset.abs() / 1e9;
        if seconds >= 1e6 {
            String::new()
        } else {
            format!(" {sign}{seconds:.6} s")
        }
    });
    let how = match (trace.clock, trace.uncertainty_ns) {
        (TraceClock::Stated, None) => vec![
            "as it states its epoch".to_owned(),
            "not confirmed by the traffic".to_owned(),
        ],
        (TraceClock::Stated, Some(_)) => vec![
            "as it states its epoch".to_owned(),
            format!("corrected by the traffic by{offset}{within}"),
        ],
        (TraceClock::Traffic, _) => vec![format!("by the traffic{offset}{within}")],
    };
    let mut facts = vec![clean(&format!("{}{rank}", trace.file))];
    facts.extend(how);
    if trace.matched > 0 {
        facts.push(format!(
            "{} matched",
            plural(trace.matched, "collective", "collectives")
        ));
    }
    facts
}

fn table(view: &View<'_>, calls: &[&CollectiveCallRow]) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    let origin = run.zero();
    let absent = || ABSENT.to_owned();
    let number = |value: Option<u64>| value.map_or_else(absent, count);
    let columns = vec![
        Column::new("rank", true, 0, calls, |call| {
            call.rank.map_or_else(absent, |rank| rank.to_string())
        }),
        Column::new("collective", false, 0, calls, |call| clean(&call.kind)),
        Column::new("size", true, 1, calls, |call| {
            call.message_bytes.map_or_else(absent, bytes)
        }),
        Column::new("at", true, 0, calls, |call| after(call.start_time, origin)),
        Column::new("took", true, 0, calls, |call| {
            let time = Span(call.duration_ns).to_string();
            if call.is_slowed {
                Ink::Warn.paint(&time)
            } else {
                time
            }
        }),
        Column::new("median", true, 1, calls, |call| {
            call.median_ns.map_or_else(absent, |time| Span(time).to_string())
        }),
        Column::new("data", true, 2, calls, |call| {
            call.network_bytes.map_or_else(absent, bytes)
        }),
        Column::new("CE", true, 2, calls, |call| number(call.ce)),
        Column::new("CNP", true, 3, calls, |call| number(call.cnp)),
        Column::new("retr.", true, 2, calls, |call| number(call.retransmitted_packets)),
        Column::new("episode", false, 1, calls, |call| {
            let episode = run.episodes.iter().find(|row| Some(row.episode) == call.episode);
            episode.map_or_else(absent, |row| format!("{} {}", row.episode, row.kind.name()))
        }),
    ];
    let slowest = Column::new("slowest connection", false, 0, calls, |call| {
        let rate = call
            .slowest_rate
            .map_or_else(String::new, |rate| format!(", {}", rate_of(rate)));
        let name = call
            .slowest
            .as_deref()
            .map(|name| format!("{}{rate}", clean(name)));
        name.map_or_else(absent, |name| shorten(&name, 60, style.unicode))
    });
    lay(columns, Some(slowest), style)
}
