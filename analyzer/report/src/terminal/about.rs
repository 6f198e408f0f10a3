//! Section about the capture: inputs, a single tap, time, frames, and the quality of the capture.

use jiff::Timestamp;
use roce_model::{Span, Time};

use super::field::{NAME, NAMED, field, more, wrapped};
use super::ink::{Ink, clean, shorten, width};
use super::places::vantage_field;
use super::view::View;
use roce_spelling::{bytes, count, plural};

/// Lines about the inputs.
pub(super) fn about(view: &View<'_>) -> Vec<String> {
    let View { run, style, .. } = view;
    let totals = &run.totals;
    let mut lines = Vec::new();
    let name = if run.inputs.len() == 1 { "input" } else { "inputs" };
    for (index, input) in run.inputs.iter().take(NAMED).enumerate() {
        let facts: Vec<String> = std::iter::once(clean(&input.format))
            .chain(input.bytes.map(bytes))
            .chain([plural(input.frames, "frame", "frames")])
            .filter(|fact| !fact.is_empty())
            .collect();
        let facts = facts.join(", ");
        let room = style.width.saturating_sub(NAME + 4 + width(&facts));
        let path = shorten(&clean(&input.input), room.max(12), style.unicode);
        lines.extend(field(
            if index == 0 { name } else { "" },
            &[format!("{} ({facts})", Ink::Bold.paint(&path))],
            style,
        ));
    }
    if let Some(more) = more(run.inputs.len(), "input", "inputs") {
        lines.extend(field("", &[more], style));
    }
    lines.extend(chosen(view));
    lines.extend(tap(view));
    let time = run.span.map(|span| {
        let length = span.length();
        vec![
            stamp(span.first),
            format!("{length} long"),
            format!("bins of {}", run.bin),
        ]
    });
    lines.extend(field(
        "time",
        &time.unwrap_or_else(|| vec!["no frame".to_owned()]),
        style,
    ));
    let mut frames = vec![format!("{} read", count(totals.frames))];
    let carriers = [
        ("RoCEv2", totals.roce_v2),
        ("RoCEv1", totals.roce_v1),
        ("InfiniBand", totals.infiniband),
    ];
    let carriers: Vec<String> = carriers
        .iter()
        .filter(|(_, packets)| *packets > 0)
        .map(|(name, packets)| {
            if *packets == totals.roce_packets {
                (*name).to_owned()
            } else {
                format!("{} {name}", count(*packets))
            }
        })
        .collect();
    frames.push(if carriers.is_empty() {
        format!("{} RoCE", count(totals.roce_packets))
    } else {
        format!("{} RoCE ({})", count(totals.roce_packets), carriers.join(", "))
    });
    if totals.uet_packets > 0 {
        frames.push(format!("{} UET", count(totals.uet_packets)));
    }
    if totals.not_roce > 0 {
        frames.push(format!("{} of other traffic", count(totals.not_roce)));
    }
    lines.extend(field("frames", &frames, style));
    lines.extend(field("capture", &quality(view), style));
    lines
}

/// Part of the traffic that is shown, or was analysed at all.
fn chosen(view: &View<'_>) -> Vec<String> {
    let of = |name: &str| view.option(name).map(clean);
    let mut lines = Vec::new();
    if let Some(only) = of("only_flow") {
        let words =
            format!("only packets with {only} were analysed: verdicts can be wrong by what was left out");
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        lines.extend(wrapped("warning", &words, Ink::Warn, view.style));
    }
    if let Some(shown) = of("flow") {
        let is_none = view.sums.rows == 0 && view.totals.roce_packets > 0;
        let (words, ink) = if is_none {
            (
                format!("no flow matches {shown}; verdicts and counts are about all traffic"),
                Ink::Warn,
            )
        } else {
            (
                format!("flows with {shown}; verdicts and counts are about all traffic"),
                Ink::Faint,
            )
        };
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        lines.extend(wrapped("shown", &words, ink, view.style));
    }
    lines
}

/// Facts of a single tap that the input line lacks; several taps have a table of their own.
fn tap(view: &View<'_>) -> Vec<String> {
    let View { run, style, .. } = view;
    let [tap] = run.taps.as_slice() else {
        return Vec::new();
    };
    let mut items = vec![clean(&tap.link)];
    items.extend(
        tap.interface
            .as_deref()
            .map(|name| format!("interface {}", clean(name))),
    );
    items.extend(
        tap.mirror
            .as_deref()
            .map(|name| format!("mirror {}", clean(name))),
    );
    let mut lines = field("link", &items, style);
    lines.extend(vantage_field(view));
    lines
}

/// `2026-11-20 14:03:11.123456 UTC`.
fn stamp(time: Time) -> String {
    Timestamp::from_nanosecond(i128::from(time.0)).map_or_else(
        |_| format!("{} ns", time.0),
        |time| time.strftime("%Y-%m-%d %H:%M:%S%.6f UTC").to_string(),
    )
}

/// Quality of the capture.
fn quality(view: &View<'_>) -> Vec<String> {
    let run = view.run;
    let sum = |of: fn(&roce_model::TapRow) -> u64| run.taps.iter().map(of).sum::<u64>();
    let bad =
        |value: u64, one: &str, many: &str| (value > 0).then(|| Ink::Bad.paint(&plural(value, one, many)));
    let warn =
        |value: u64, one: &str, many: &str| (value > 0).then(|| Ink::Warn.paint(&plural(value, one, many)));
    let mut items = Vec::new();
    let truncated = run.inputs.iter().filter(|input| input.truncated).count() as u64;
    let lost = bad(
        run.totals.frames_lost,
        "frame lost by the capture",
        "frames lost by the capture",
    );
    let mirror = bad(
        sum(|tap| tap.mirror_lost),
        "frame lost by the mirror",
        "frames lost by the mirror",
    );
    let totals = &run.totals;
    let missed = totals.capture_lost.saturating_add(totals.response_capture_lost);
    let missed = warn(missed, "packet not captured", "packets not captured");
    if lost.is_none() && mirror.is_none() && missed.is_none() {
        items.push("no loss reported".to_owned());
    }
    items.extend(lost);
    items.extend(mirror);
    items.extend(missed);
    items.extend(warn(
        truncated,
        "input ends inside a record",
        "inputs end inside a record",
    ));
    items.extend(warn(
        sum(|tap| tap.cut_frames),
        "frame cut short",
        "frames cut short",
    ));
    let step = run
        .taps
        .iter()
        .map(|tap| tap.out_of_order_max_ns)
        .max()
        .unwrap_or(0);
    items.extend(
        warn(
            sum(|tap| tap.out_of_order),
            "stamp out of order",
            "stamps out of order",
        )
        .map(|item| format!("{item} (by up to {})", Span(step))),
    );
    if run.totals.copies > 0 {
        items.push(format!("{} dropped", plural(run.totals.copies, "copy", "copies")));
    }
    items
}
