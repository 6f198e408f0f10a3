//! The table of the largest flows: which columns there is room for, and the strip in what is left.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use super::Style;
use super::draw::{Height, strip};
use super::ink::{Ink, clean, shorten, width};
use super::number::{ABSENT, bytes, rate, share, short_count};
use super::strip::FlowStrips;
use super::top::TopFlow;

/// A strip narrower than this says nothing.
const STRIP: usize = 10;
/// Screens narrower than this are crowded: what all flows share is said above the table instead of in a column.
const CROWDED: usize = 120;

/// Blanks between two columns.
fn gap(style: &Style) -> usize {
    if style.width < 100 { 1 } else { 2 }
}

struct Column {
    title: &'static str,
    right: bool,
    /// Columns with a lower one are given room first; 0 always.
    rank: u8,
    cells: Vec<String>,
}

impl Column {
    fn new<'a>(
        title: &'static str,
        right: bool,
        rank: u8,
        flows: &'a [TopFlow],
        cell: impl Fn(&'a TopFlow) -> String,
    ) -> Self {
        Self {
            title,
            right,
            rank,
            cells: flows.iter().map(cell).collect(),
        }
    }

    fn width(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| width(cell))
            .chain([width(self.title)])
            .max()
            .unwrap_or(0)
    }

    /// Counts that are all zero say least: they come last.
    fn unless_zero(mut self) -> Self {
        if self.cells.iter().all(|cell| cell == "0" || cell == ABSENT) {
            self.rank += 50;
        }
        self
    }
}

/// What all of these flows share and no column needs to say: `those shown: RC, DSCP 26`.
pub(super) fn shared(flows: &[TopFlow], style: &Style) -> Option<String> {
    if style.width >= CROWDED {
        return None;
    }
    let first = flows.first()?;
    let service = (flows.iter().all(|flow| flow.service == first.service)).then(|| first.service.to_owned());
    let dscp = first
        .dscp
        .filter(|_| flows.iter().all(|flow| flow.dscp == first.dscp));
    let shared: Vec<String> = service
        .into_iter()
        .chain(dscp.map(|dscp| format!("DSCP {dscp}")))
        .collect();
    (!shared.is_empty()).then(|| format!("those shown: {}", shared.join(", ")))
}

/// The columns, in the order in which they are shown.
fn columns(flows: &[TopFlow], taps: bool, style: &Style) -> Vec<Column> {
    let room = match style.width {
        0..100 => 15,
        100..140 => 24,
        _ => 39,
    };
    let counted = |title, rank, value: fn(&TopFlow) -> u64| {
        Column::new(title, true, rank, flows, |flow| short_count(value(flow))).unless_zero()
    };
    let optional = |title, rank, value: fn(&TopFlow) -> Option<String>| {
        Column::new(title, true, rank, flows, |flow| {
            value(flow).unwrap_or_else(|| ABSENT.to_owned())
        })
    };
    let warn = |text: String, ink: Ink| {
        if text == "0" || text == ABSENT {
            text
        } else {
            ink.of(&text)
        }
    };
    let mut columns = vec![
        Column::new("source", false, 0, flows, |flow| {
            shorten(&clean(&flow.source.to_string()), room, style.unicode)
        }),
        Column::new("destination", false, 0, flows, |flow| {
            shorten(&clean(&flow.destination.to_string()), room, style.unicode)
        }),
        Column::new("QPN", true, 0, flows, |flow| {
            format!("{:#x}", flow.destination_qpn)
        }),
        Column::new("service", false, 9, flows, |flow| flow.service.to_owned()),
        counted("packets", 7, |flow| flow.packets),
        Column::new("data", true, 0, flows, |flow| bytes(flow.payload_bytes)),
        optional("rate", 6, |flow| {
            rate(flow.payload_bytes, flow.last_time.since(flow.first_time))
        }),
        optional("CE %", 3, |flow| share(flow.ce, flow.data_packets)).unless_zero(),
        counted("resent", 4, |flow| flow.retransmitted_packets),
        counted("missing", 5, |flow| flow.missing),
        counted("late", 15, |flow| flow.late),
        counted("messages", 10, |flow| flow.messages),
        counted("ACKs", 11, |flow| flow.acks),
        counted("NAKs", 12, |flow| flow.naks),
        counted("RNR NAKs", 13, |flow| flow.rnr_naks),
        optional("DSCP", 14, |flow| flow.dscp.map(|dscp| dscp.to_string())),
        optional("VLAN", 16, |flow| flow.vlan.map(|vlan| vlan.to_string())).unless_zero(),
    ];
    if flows.iter().any(|flow| flow.epochs > 1) {
        columns.push(counted("epochs", 17, |flow| flow.epochs));
    }
    if taps {
        columns.push(Column::new("tap", true, 0, flows, |flow| flow.tap.0.to_string()));
    }
    if style.width < CROWDED {
        let constant = |column: &Column| column.cells.iter().all(|cell| Some(cell) == column.cells.first());
        columns.retain(|column| !(matches!(column.title, "service" | "DSCP") && constant(column)));
    }
    for column in &mut columns {
        let ink = match column.title {
            "CE %" => Ink::Warn,
            "resent" | "missing" | "NAKs" | "RNR NAKs" => Ink::Bad,
            _ => continue,
        };
        column.cells = std::mem::take(&mut column.cells)
            .into_iter()
            .map(|cell| warn(cell, ink))
            .collect();
    }
    columns
}

/// The table's lines: with as many columns as there is room for beside strips that can be read.
pub(super) fn table(flows: &[TopFlow], strips: &FlowStrips, taps: bool, style: &Style) -> Vec<String> {
    let columns = columns(flows, taps, style);
    let gap = gap(style);
    let least = (style.width / 5).saturating_sub(6).clamp(STRIP, 40);
    let room = style.width.saturating_sub(1 + least);
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|index| columns.get(*index).map_or(0, |column| column.rank));
    let mut used = 0;
    let mut chosen: Vec<usize> = Vec::new();
    for index in order {
        let Some(column) = columns.get(index) else {
            continue;
        };
        let needs = column.width() + gap;
        // One that has no room does not keep narrower ones out.
        if column.rank == 0 || used + needs <= room {
            used += needs;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    // What only a frame too narrow for the first columns could not hold: no strip then.
    let left = style.width.saturating_sub(1 + used);
    let strip_columns = if left < STRIP { 0 } else { left.min(64) };

    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    let chosen: Vec<&Column> = chosen
        .into_iter()
        .filter_map(|index| columns.get(index))
        .collect();
    let cell = |text: String, right: bool| {
        Cell::new_owned(text).set_alignment(if right {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        })
    };
    let strip_title = (strip_columns > 0).then(|| cell(Ink::Bold.of("timeline"), false));
    table.set_header(
        chosen
            .iter()
            .map(|column| cell(Ink::Bold.of(column.title), column.right))
            .chain(strip_title),
    );
    for (row, flow) in flows.iter().enumerate() {
        let drawn = strips.columns(flow.flow_id, flow.tap, strip_columns);
        let drawn = drawn.map_or_else(String::new, |drawn| strip(&drawn, Height::Volume, style));
        let cells = chosen
            .iter()
            .map(|column| cell(column.cells.get(row).cloned().unwrap_or_default(), column.right));
        table.add_row(cells.chain((strip_columns > 0).then(|| cell(drawn, false))));
    }
    let end = table.column_count().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        let after = if index == end { 0 } else { gap };
        column.set_padding((u16::from(index == 0), u16::try_from(after).unwrap_or(1)));
    }
    table.lines().collect()
}
