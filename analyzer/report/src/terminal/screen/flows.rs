//! The table of flows: as many columns as there is room for, and the latest intervals in what is left.

use roce_model::cast::float;
use roce_model::{FlowId, Span};

use super::super::draw::{self, Height};
use super::super::field::padded;
use super::super::ink::{Ink, clean, shorten, width};
use super::super::strip::Column as Bar;
use super::super::style::Style;
use super::super::top;
use super::history::{Cell, MAX_INTERVALS};
use super::shown::ShownScreen;
use super::state::Flow;
use super::view::{View, lately};
use roce_spelling::{ABSENT, bytes, rate_of, share, short_count};

/// A strip narrower than this says nothing.
const STRIP: usize = 10;
/// A name shorter than this says nothing.
const NAME: usize = 15;
/// No name is longer: two IPv6 addresses, and a queue pair.
const LONGEST: usize = 90;

/// A column of the table of flows.
struct Column {
    title: &'static str,
    cells: Vec<String>,
    /// Columns with the highest one go first where there is no room.
    rank: u8,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| width(cell));
        cells.chain([width(self.title)]).max().unwrap_or(0)
    }
}

/// The table, in `room` lines; and which of them is the flow that is selected.
pub(super) fn table(shown: &ShownScreen<'_>, view: &mut View, room: usize) -> (Vec<String>, Option<usize>) {
    let Some(interval) = shown.interval else {
        view.order.clear();
        return (
            vec![String::new(), "waiting for the first interval to end".to_owned()],
            None,
        );
    };
    let order = view.order(shown.state, interval);
    view.order = order.iter().map(|flow| flow.id).collect();
    let rows = room.saturating_sub(1).max(1);
    view.rows = rows;
    let at = view
        .selected
        .and_then(|id| view.order.iter().position(|flow| *flow == id));
    // The selected flow stays in sight.
    view.top = match at {
        Some(at) => view.top.clamp((at + 1).saturating_sub(rows), at),
        None => 0,
    };
    view.top = view.top.min(order.len().saturating_sub(rows));
    let seen = order.get(view.top..).unwrap_or_default();
    let seen = seen.get(..rows.min(seen.len())).unwrap_or_default();
    let mut lines = lay_out(shown, seen, interval, (view.top, order.len()));
    if order.is_empty() {
        lines.push(match &view.filter {
            Some(filter) => format!("no flow for which this holds: {}", clean(&filter.to_string())),
            None => "no flow".to_owned(),
        });
    }
    let line = at.map(|at| at - view.top + 1);
    if let Some(line) = line.and_then(|line| lines.get_mut(line)) {
        line.replace_range(..1, ">");
    }
    (lines, line)
}

fn lay_out(
    shown: &ShownScreen<'_>,
    flows: &[&Flow],
    interval: u64,
    (top, all): (usize, usize),
) -> Vec<String> {
    let style = &shown.style;
    let mut columns = columns(shown, flows, interval);
    let longest = flows
        .iter()
        .map(|flow| width(&shown.name(flow.id, LONGEST)))
        .max()
        .unwrap_or(0)
        .clamp(NAME, LONGEST);
    let taken = |columns: &[Column]| -> usize { columns.iter().map(|column| column.width() + 1).sum() };
    // Two characters of marks, the name, the strip.
    let least = |name: usize| 2 + name + 1 + STRIP;
    let wanted = longest.min(style.width / 3);
    while style.width < taken(&columns) + least(wanted.max(NAME)) {
        let worst = columns.iter().map(|column| column.rank).max().unwrap_or(0);
        if worst == 0 {
            break;
        }
        columns.retain(|column| column.rank < worst);
    }
    let left = style.width.saturating_sub(taken(&columns) + 2);
    let name = longest.min(left.saturating_sub(STRIP + 1));
    let strip_room = left.saturating_sub(name + 1).min(MAX_INTERVALS / 2);
    let name = longest.min(left.saturating_sub(strip_room + 1));
    let end = top + flows.len();
    let title = if top > 0 || end < all {
        format!("FLOW {}-{end} of {all}", top + 1)
    } else {
        "FLOW".to_owned()
    };
    let mut head = format!("  {}", padded(&shorten(&title, name, style.unicode), name));
    for column in &columns {
        head.push(' ');
        head.push_str(&right(column.title, column.width()));
    }
    head.push(' ');
    let time = Span(shown.state.width * strip_room as u64).to_string();
    let title = format!("LAST {time}");
    head.push_str(if title.len() <= strip_room { &title } else { &time });
    let mut lines = vec![Ink::Faint.paint(&head)];
    for (at, flow) in flows.iter().enumerate() {
        let mut line = format!(
            " {}{}",
            mark(flow, interval, style),
            padded(&shown.name(flow.id, name), name)
        );
        for column in &columns {
            line.push(' ');
            let cell = column.cells.get(at).map_or("", String::as_str);
            line.push_str(&right(cell, column.width()));
        }
        line.push(' ');
        line.push_str(&strip(&flow.until(interval, strip_room), style));
        lines.push(line);
    }
    lines
}

/// True if a flow had losses, or congestion, in the last intervals: by symbol and colour.
fn mark(flow: &Flow, interval: u64, style: &Style) -> String {
    let lately = lately(flow, interval);
    let (ink, glyph) = match (lately.has_losses(), lately.is_congested(), style.unicode) {
        (true, _, true) => (Ink::Bad, "✗"),
        (true, _, false) => (Ink::Bad, "X"),
        (_, true, true) => (Ink::Warn, "▲"),
        (_, true, false) => (Ink::Warn, "!"),
        _ => return " ".to_owned(),
    };
    ink.paint(glyph)
}

fn columns(shown: &ShownScreen<'_>, flows: &[&Flow], interval: u64) -> Vec<Column> {
    let column = |title, rank, cell: &dyn Fn(&Flow, &Cell) -> String| Column {
        title,
        cells: flows.iter().map(|flow| cell(flow, &flow.at(interval))).collect(),
        rank,
    };
    let inked = |value: u64, ink: Ink| {
        let text = short_count(value);
        if value > 0 { ink.paint(&text) } else { text }
    };
    let mut columns = vec![
        column("BIT/S", 0, &|_, cell| speed(cell, shown.width())),
        column("CE %", 0, &|_, cell| {
            let text = share(cell.ce, cell.data).unwrap_or_else(|| ABSENT.to_owned());
            if cell.ce > 0 { Ink::Warn.paint(&text) } else { text }
        }),
        column("CNP", 0, &|_, cell| {
            cell.cnp
                .map_or_else(|| ABSENT.to_owned(), |cnp| inked(cnp, Ink::Warn))
        }),
        column("RETRANS", 0, &|_, cell| inked(cell.retransmitted, Ink::Bad)),
        column("MISS", 1, &|_, cell| inked(cell.missing, Ink::Bad)),
        column("RTT", 0, &|_, cell| time(cell.answer())),
        column("RTT MAX", 2, &|_, cell| {
            time(Some(cell.answer_max).filter(|max| *max > 0))
        }),
        column("IN FLIGHT", 4, &|_, cell| {
            cell.inflight.map_or_else(|| ABSENT.to_owned(), bytes)
        }),
        column("SENDERS", 5, &|_, cell| short_count(cell.senders)),
    ];
    let ranks = |flow: &Flow| flow.row.as_ref().and_then(|row| top::ranks(row));
    if flows.iter().any(|flow| ranks(flow).is_some()) {
        columns.insert(0, column("RANKS", 1, &|flow, _| ranks(flow).unwrap_or_default()));
    }
    if flows.iter().any(|flow| process(flow).is_some()) {
        columns.push(column("PROCESS", 3, &|flow, _| process(flow).unwrap_or_default()));
    }
    columns
}

/// `ib_send_bw 71`.
pub(super) fn process(flow: &Flow) -> Option<String> {
    let row = flow.row.as_ref()?;
    let pid = row.pid?;
    let comm = row.comm.as_deref().unwrap_or_default();
    Some(format!("{} {pid}", clean(comm)))
}

/// Application data in a second: `1.00 G`.
fn speed(cell: &Cell, time: Span) -> String {
    if cell.payload == 0 {
        return if cell.packets > 0 { "0" } else { "" }.to_owned();
    }
    let rate = rate_of(float(cell.payload) * 8.0 / time.seconds());
    rate.trim_end_matches("bit/s").trim_end().to_owned()
}

pub(super) fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| ABSENT.to_owned(), |ns| Span(ns).to_string())
}

/// Intervals as a strip: height by application data, coloured by losses and congestion.
pub(super) fn strip(cells: &[Cell], style: &Style) -> String {
    let bars: Vec<Bar> = cells
        .iter()
        .map(|cell| Bar {
            volume: float(cell.payload),
            has_ce: cell.is_congested(),
            has_trouble: cell.has_losses(),
            ..Bar::default()
        })
        .collect();
    draw::strip(&bars, Height::Volume, style)
}

fn right(text: &str, room: usize) -> String {
    format!("{}{text}", " ".repeat(room.saturating_sub(width(text))))
}

/// The flows to the same destination that sent in this interval, the largest first, with their application data.
pub(super) fn rivals<'a>(shown: &ShownScreen<'a>, of: FlowId, interval: u64) -> Vec<(&'a Flow, u64)> {
    let Some(key) = shown.state.key(of) else {
        return Vec::new();
    };
    let mut rivals: Vec<(&Flow, u64)> = shown
        .state
        .flows()
        .filter(|flow| flow.key.is_some_and(|other| other.destination == key.destination))
        .map(|flow| (flow, flow.at(interval).payload))
        .filter(|(_, payload)| *payload > 0)
        .collect();
    rivals.sort_unstable_by_key(|(flow, payload)| (std::cmp::Reverse(*payload), flow.id));
    rivals
}
