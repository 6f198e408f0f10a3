//! The run's counts and timeline, what is said around the table of flows, and what could not be read.

use roce_model::cast::{float, whole};
use roce_model::text::clean_message;
use roce_model::{CutLimit, Layer, Span, TimeState};

use super::about::about;
use super::counts::totals;
use super::draw::{Height, peak, strip};
use super::field::{NAME, NAMED, field, more, padded, sentence, wrapped};
use super::ink::{Ink, clean, shorten};
use super::strip::FlowStrips;
use super::table;
use super::top::TopFlows;
use super::view::View;
use roce_spelling::{bytes, count, percent, plural, rate_of};

/// The part above the flows.
pub(super) fn lines(view: &View<'_>) -> Vec<String> {
    let mut lines = about(view);
    lines.push(String::new());
    lines.extend(totals(view));
    lines.extend(times(view));
    let drawn = timeline(view);
    if !drawn.is_empty() {
        lines.push(String::new());
        lines.extend(drawn);
    }
    lines
}

/// Where the time of flows went: all of it is the time of each flow with requests, from its first packet to its last, in sum.
fn times(view: &View<'_>) -> Vec<String> {
    let times = &view.sums.times;
    let sum = times.sum();
    if sum == 0 {
        return Vec::new();
    }
    let of = match view.sums.divided {
        0 | 1 => format!("of {}", Span(sum)),
        flows => format!("of {} of {} in sum", Span(sum), plural(flows, "flow", "flows")),
    };
    let mut parts: Vec<_> = times.iter().filter(|(_, time)| *time > 0).collect();
    parts.sort_by_key(|(_, time)| core::cmp::Reverse(*time));
    let part = |(state, time): (TimeState, u64)| Some(format!("{} {}", state.words(), percent(time, sum)?));
    let items: Vec<String> = core::iter::once(of)
        .chain(parts.into_iter().filter_map(part))
        .collect();
    field("spent", &items, view.style)
}

/// The run as strips: payload, and below it CE and loss when there was any.
fn timeline(view: &View<'_>) -> Vec<String> {
    let style = view.style;
    let length = view.whole.length();
    let columns = view.whole.columns(style.width.saturating_sub(NAME + 1).min(256));
    let column_time = float(length) / float(columns.len() as u64);
    if length == 0
        || columns
            .iter()
            .all(|column| column.volume <= 0.0 && !column.has_trouble && !column.has_ce)
    {
        return Vec::new();
    }
    let named = |name: &str, text: &str| format!(" {}{text}", padded(&Ink::Faint.paint(name), NAME - 1));
    let peak_rate = rate_of(peak(&columns, Height::Volume) * 8e9 / column_time);
    let mut scales = vec![format!("payload up to {peak_rate}")];
    if view.run.totals.seen_again > 0 {
        scales.push("all taps together".to_owned());
    }
    let mut lines = vec![named("payload", &strip(&columns, Height::Volume, style))];
    if columns.iter().any(|column| column.has_ce) {
        lines.push(named("CE", &strip(&columns, Height::Ce, style)));
        scales.push(format!(
            "CE up to {} % of data packets",
            digits(peak(&columns, Height::Ce) * 100.0)
        ));
    }
    if columns.iter().any(|column| column.has_trouble) {
        lines.push(named("loss", &strip(&columns, Height::Trouble, style)));
        scales.push("loss: retransmitted or missing packets".to_owned());
    }
    let each = Span(whole(column_time));
    scales.push(format!("one column is {each}"));
    let skipped = view
        .run
        .span
        .map_or(0, |span| span.first.since(view.run.zero()).0);
    let begin = match skipped {
        0 => "0 s".to_owned(),
        skipped => format!("+{}", Span(skipped)),
    };
    let end = Span(skipped.saturating_add(length)).to_string();
    let axis = format!(
        "{begin}{end:>room$}",
        room = columns.len().saturating_sub(begin.len())
    );
    lines.push(named("", &Ink::Faint.paint(&axis)));
    lines.extend(field("scale", &scales, style));
    lines
}

/// Up to three digits.
fn digits(value: f64) -> String {
    let decimals = if value < 9.995 {
        2
    } else {
        usize::from(value < 99.95)
    };
    format!("{value:.decimals$}")
}

/// The table of the largest flows, and how many more there are.
pub(super) fn flows(view: &View<'_>, top: &TopFlows, strips: &FlowStrips) -> Vec<String> {
    let (style, sums) = (view.style, view.sums);
    if sums.rows == 0 {
        return Vec::new();
    }
    let sorted = top.sorted();
    let shown = sorted.get(..style.top.min(sorted.len())).unwrap_or_default();
    let all = strips
        .flows()
        .map_or(sums.first_epochs, |flows| {
            (flows as u64).saturating_sub(sums.seen_again)
        })
        .max(shown.len() as u64);
    let several = view.run.taps.len() > 1;
    let qpn_of = |id| {
        sorted
            .iter()
            .find(|flow| flow.flow_id == id)
            .map(|flow| flow.destination_qpn)
    };
    let mut lines = vec![String::new()];
    let title = plural(all, "flow", "flows");
    let facts = [
        Some(Ink::Bold.paint(&title)),
        (several && sums.seen_again == 0).then(|| "at each tap".to_owned()),
        (sums.seen_again > 0).then(|| "each at the tap that saw most of it".to_owned()),
        (all > 1).then(|| "the largest by payload".to_owned()),
        table::shared(shown, style),
    ];
    lines.extend(sentence(facts, style));
    if !shown.is_empty() {
        lines.extend(table::table(shown, strips, several, qpn_of, style));
        let legend = [
            Some("timeline: scaled to each flow's own peak".to_owned()),
            style.color.then(|| format!("{}: CE", Ink::Warn.paint("yellow"))),
            style
                .color
                .then(|| format!("{}: retrans or missing", Ink::Bad.paint("red"))),
        ];
        lines.extend(sentence(legend, style));
    }
    let left = all - shown.len() as u64;
    if left > 0 {
        let payload = sums
            .counted
            .payload_bytes
            .saturating_sub(shown.iter().map(|flow| flow.payload_bytes).sum());
        let share = percent(payload, sums.counted.payload_bytes)
            .map_or_else(String::new, |share| format!(" ({share} of all payload)"));
        lines.push(format!(
            " and {} with {}{share}",
            plural(left, "more flow", "more flows"),
            bytes(payload)
        ));
    }
    lines
}

/// Unreadable inputs, and the warnings of the others.
pub(super) fn troubles(view: &View<'_>) -> Vec<String> {
    let View { run, style, .. } = view;
    let totals = &run.totals;
    let mut items = Vec::new();
    let mut say = |value: u64, one: &str, many: &str| {
        if value > 0 {
            items.push(plural(value, one, many));
        }
    };
    say(
        totals.undecodable,
        "frame leads to RoCE without a readable BTH",
        "frames lead to RoCE without a readable BTH",
    );
    say(
        totals.cut_by_snaplen,
        "RoCE packet with a header cut by the snaplen",
        "RoCE packets with a header cut by the snaplen",
    );
    say(
        totals.unknown_link,
        "frame of a link type that is not known",
        "frames of a link type that is not known",
    );
    say(
        totals.fragments,
        "later fragment of a datagram",
        "later fragments of datagrams",
    );
    // Where all frames that end before their lengths say were trimmed, that is said with the losses.
    let is_short = |layer: Layer, cut: CutLimit| {
        matches!(layer, Layer::Ipv4 | Layer::Ipv6 | Layer::Udp) && cut == CutLimit::Length(layer)
    };
    let short = totals
        .stops
        .iter()
        .filter(|((layer, cut), _)| is_short(*layer, *cut));
    let are_trims = short.map(|(_, frames)| frames).sum::<u64>() == totals.trimmed;
    let mut stops: Vec<_> = totals
        .stops
        .iter()
        .filter(|((layer, cut), _)| !(are_trims && is_short(*layer, *cut)))
        .collect();
    stops.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let named: Vec<String> = stops
        .iter()
        .take(NAMED)
        .map(|((layer, cut), frames)| {
            let why = match cut {
                CutLimit::Snaplen => "cut by the snaplen".to_owned(),
                CutLimit::Length(by) => format!("cut by the length in {by}"),
                CutLimit::Frame => "beyond the frame's end".to_owned(),
                CutLimit::Depth => "under too many layers".to_owned(),
            };
            format!("{} {layer} {why}", count(**frames))
        })
        .chain(more(stops.len(), "cause", "causes"))
        .collect();
    let mut lines = field("undecoded", &items, style);
    lines.extend(field(
        if items.is_empty() { "undecoded" } else { "" },
        &named,
        style,
    ));
    let mut left_out = Vec::new();
    if totals.filtered > 0 {
        left_out.push(format!(
            "{} by --only-flow or the choice of processes",
            plural(totals.filtered, "RoCE packet", "RoCE packets")
        ));
    }
    if totals.evicted > 0 {
        left_out.push(Ink::Warn.paint(&format!(
            "{} closed early for --max-flows",
            plural(totals.evicted, "flow", "flows")
        )));
    }
    lines.extend(field("left out", &left_out, style));
    for input in &run.inputs {
        let path = shorten(&clean(&input.input), style.width / 3, style.unicode);
        let texts = input.warnings.iter().map(|text| (text, Ink::Warn, "warning"));
        for (text, ink, name) in texts.chain(input.error.iter().map(|text| (text, Ink::Bad, "error"))) {
            let text = clean_message(text, std::slice::from_ref(&input.input)).replace('\n', "; ");
            let words: Vec<String> = format!("{path}: {text}")
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            lines.extend(wrapped(name, &words, ink, style));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}
