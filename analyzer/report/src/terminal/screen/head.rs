//! Head and foot of every page: the input and its time, the traffic of all flows, losses, counters; and the keys.

use jiff::Timestamp;
use roce_model::{Span, Time};

use super::super::grid::end_cut;
use super::super::ink::{Ink, clean, shorten, width};
use super::flows::strip;
use super::shown::ShownScreen;
use super::view::{Page, View};
use roce_spelling::{ABSENT, count, percent, plural, rate};

/// Columns for a filter that is typed, at least.
const TYPED: usize = 40;

/// The lines above a page.
pub(super) fn head(shown: &ShownScreen<'_>, view: &View) -> Vec<String> {
    let mut lines = vec![title(shown, view), sums(shown), lost(shown)];
    let interval = shown.interval.unwrap_or_default();
    lines.extend(shown.state.counters.line(interval, &shown.style));
    lines.extend(shown.state.gpus.line(interval, &shown.style));
    lines
}

/// `left`, and `right` at the end of the line.
pub(super) fn both(left: &str, right: &str, room: usize, unicode: bool) -> String {
    let left = if width(left) + width(right) + 2 > room {
        shorten(left, room.saturating_sub(width(right) + 2), unicode)
    } else {
        left.to_owned()
    };
    let blank = room.saturating_sub(width(&left) + width(right));
    format!("{left}{}{right}", " ".repeat(blank))
}

fn title(shown: &ShownScreen<'_>, view: &View) -> String {
    let room = shown.style.width;
    let what = if shown.about.paced { "replay of" } else { "live on" };
    let mut right = Vec::new();
    if let Some(interval) = shown.interval {
        right.push(when(shown, interval));
    }
    let newest = shown.state.newest();
    let behind = newest.zip(shown.interval).map_or(0, |(newest, at)| newest - at);
    let word = match (
        view.paused,
        shown.state.conclusions.ended,
        shown.standing.stopping,
    ) {
        (_, true, _) => Ink::Bold.paint("ended"),
        (_, _, true) => Ink::Bold.paint("ending ..."),
        (true, ..) => Ink::Warn.paint("PAUSED"),
        _ => shown
            .standing
            .speed
            .clone()
            .unwrap_or_else(|| "running".to_owned()),
    };
    right.push(word);
    if behind > 0 {
        right.push(Ink::Warn.paint(&format!("{} back", plural(behind, "interval", "intervals"))));
    }
    let right = right.join("  ");
    let program = "roce-analyze";
    let what = format!("{what} {}", clean(&shown.about.what));
    let left = room.saturating_sub(width(&right) + width(program) + 3);
    let what = shorten(&what, left, shown.style.unicode);
    both(
        &format!("{} {what}", Ink::Bold.paint(program)),
        &right,
        room,
        shown.style.unicode,
    )
}

/// End of an interval, and for a replay its distance from the end.
fn when(shown: &ShownScreen<'_>, interval: u64) -> String {
    let end = shown.state.begins(interval + 1);
    let Some(span) = shown.replayed() else {
        return moment(shown, end, shown.width());
    };
    let end = moment(shown, end.min(span.last), shown.width());
    format!("{end} of {}", seconds(span.length(), shown.width()))
}

/// A time of day, or the distance from the start of a replay. `exact`: times this far apart must differ.
pub(super) fn moment(shown: &ShownScreen<'_>, time: Time, exact: Span) -> String {
    if let Some(span) = shown.replayed() {
        return format!("+{}", seconds(time.since(span.first), exact));
    }
    let decimals = decimals(exact);
    Timestamp::from_nanosecond(i128::from(time.0)).map_or_else(
        |_| ABSENT.to_owned(),
        |time| match decimals {
            0 => time.strftime("%H:%M:%S").to_string(),
            _ => time.strftime(&format!("%H:%M:%S.%{decimals}f")).to_string(),
        },
    )
}

fn seconds(time: Span, exact: Span) -> String {
    format!("{:.*} s", decimals(exact), time.seconds())
}

/// Decimals of a second in which times this far apart differ.
fn decimals(exact: Span) -> usize {
    match exact.0 {
        0..100_000 => 6,
        100_000..10_000_000 => 4,
        10_000_000..1_000_000_000 => 2,
        _ => 0,
    }
}

/// Traffic of all flows in the selected interval, and before.
fn sums(shown: &ShownScreen<'_>) -> String {
    let Some(interval) = shown.interval else {
        let captured = shown
            .standing
            .counted
            .map(|counted| format!(" ({} read)", plural(counted.frames, "frame", "frames")));
        return format!("no RoCE packet yet{}", captured.unwrap_or_default());
    };
    let (active, sum) = shown.state.sum(interval);
    // The least important words are last: the line is cut there.
    let mut words = vec![Ink::Bold.paint(&rate(sum.payload, shown.width()).unwrap_or_default())];
    for (value, what) in [(sum.missing, "missing"), (sum.retransmitted, "retrans")] {
        if value > 0 {
            words.push(Ink::Bad.paint(&format!("{} {what}", count(value))));
        }
    }
    if let Some(share) = percent(sum.ce, sum.data).filter(|_| sum.ce > 0) {
        words.push(Ink::Warn.paint(&format!("CE {share}")));
    }
    if let Some(cnp) = sum.cnp.filter(|cnp| *cnp > 0) {
        words.push(Ink::Warn.paint(&plural(cnp, "CNP", "CNPs")));
    }
    let begun = shown.state.begun(interval) as u64;
    words.push(format!("{} of {}", count(active), plural(begun, "flow", "flows")));
    words.push(plural(sum.packets, "packet", "packets"));
    let words = format!("all in {}: {}", shown.width(), words.join(", "));
    let words = end_cut(&words, shown.style.width, shown.style.unicode);
    let left = shown.style.width.saturating_sub(width(&words) + 2);
    if left < 10 {
        return words;
    }
    let many = left.min(40);
    let from = interval.saturating_add(1).saturating_sub(many as u64);
    let cells: Vec<_> = (from..=interval).map(|at| shown.state.sum(at).1).collect();
    both(
        &words,
        &strip(&cells, &shown.style),
        shown.style.width,
        shown.style.unicode,
    )
}

/// Losses of the capture, and their places.
fn lost(shown: &ShownScreen<'_>) -> String {
    let mut losses = Vec::new();
    let state = shown.state;
    match shown.standing.counted {
        Some(counted) => {
            losses.push((counted.kernel, "dropped by the kernel"));
            losses.push((counted.overrun, "not taken in time"));
            // Other losses in the stream are those of ring buffers and mirrors.
            let conclusions = counted.kernel.saturating_add(counted.overrun);
            losses.push((state.records_lost.saturating_sub(conclusions), "lost on the way"));
        }
        None => losses.push((state.records_lost, "lost by the capture")),
    }
    let frames = losses.into_iter().filter(|(lost, _)| *lost > 0);
    let mut words: Vec<String> = frames
        .map(|(lost, how)| format!("{} {how}", plural(lost, "frame", "frames")))
        .collect();
    if state.host_events_lost > 0 {
        words.push(plural(state.host_events_lost, "host event", "host events"));
    }
    let behind = shown
        .standing
        .counted
        .map_or(Span(0), |counted| counted.now.since(state.complete));
    let mut line = if words.is_empty() {
        Ink::Faint.paint("capture: no loss known")
    } else {
        Ink::Bad.paint(&format!("CAPTURE LOST: {}", words.join(", ")))
    };
    if state.complete.0 > 0 && !state.conclusions.ended && behind.0 > 2 * Span::SECOND.0 + state.width {
        line.push_str(&Ink::Warn.paint(&format!("; {behind} behind")));
    }
    line
}

/// Keys, or the text that is being typed.
pub(super) fn foot(shown: &ShownScreen<'_>, view: &View) -> String {
    let room = shown.style.width;
    if let Some(typing) = &view.typing {
        let text = format!("filter: {}_", clean(&typing.text));
        // Typed text is shown at its end.
        let left = width(&text).min(room.saturating_sub(2).min(TYPED.max(room / 2)));
        let text: String = text.chars().skip(width(&text) - left).collect();
        let right = room.saturating_sub(left + 2);
        let right = match &typing.error {
            Some(error) => Ink::Bad.paint(&end_cut(&clean(error), right, shown.style.unicode)),
            None => Ink::Faint.paint(&end_cut(
                "Enter: only these; Esc: as before",
                right,
                shown.style.unicode,
            )),
        };
        return both(&text, &right, room, shown.style.unicode);
    }
    let keys: &[(&str, &str)] = match view.page {
        Page::Flows => &[
            ("q", "quit"),
            ("space", "pause"),
            ("Enter", "flow"),
            ("/", "filter"),
            ("f", "findings"),
            ("?", "help"),
        ],
        _ => &[
            ("q", "quit"),
            ("space", "pause"),
            ("arrows", "look"),
            ("Esc", "back"),
        ],
    };
    let keys: Vec<String> = keys
        .iter()
        .map(|(key, what)| format!("{} {what}", Ink::Bold.paint(key)))
        .collect();
    let order = if view.reversed { ", reversed" } else { "" };
    let mut right = format!("by {}{order}", view.sort.word());
    if let Some(filter) = &view.filter {
        right = format!("{}; {right}", Ink::Warn.paint(&clean(&filter.to_string())));
    }
    if view.page != Page::Flows {
        right.clear();
    }
    let keys = keys.join("  ");
    let left = room.saturating_sub(width(&keys) + 2);
    both(
        &keys,
        &shorten(&right, left, shown.style.unicode),
        room,
        shown.style.unicode,
    )
}
