//! The table of the largest flows: which columns there is room for, and the strip in what is left.

use roce_model::FlowId;

use super::draw::{Height, strip};
use super::grid::{Column, choose, draw, gap};
use super::ink::{Ink, clean, shorten};
use super::strip::FlowStrips;
use super::style::Style;
use super::top::{TRIGGERS, TopFlow};
use roce_spelling::{ABSENT, bytes, rate, share, short_count};

/// A strip narrower than this says nothing.
const STRIP: usize = 10;
/// Screens narrower than this are crowded: what all flows share is said above the table instead of in a column.
const CROWDED: usize = 120;

/// Properties that all of these flows share, and that need no column: `those shown: RC, DSCP 26`.
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

/// Retransmitted packets, and their causes: all of them where there is room, else the only one.
fn retransmitted(flow: &TopFlow, style: &Style) -> String {
    let packets = short_count(flow.retransmitted_packets);
    let why: Vec<(&str, u64)> = TRIGGERS
        .into_iter()
        .zip(flow.runs)
        .filter(|(_, runs)| *runs > 0)
        .collect();
    match why.as_slice() {
        _ if flow.retransmitted_packets == 0 => packets,
        [] => packets,
        [(only, _)] => format!("{packets} {only}"),
        _ if style.width < CROWDED => format!("{packets} mixed"),
        several => {
            let each: Vec<String> = several
                .iter()
                .map(|(name, runs)| format!("{runs} {name}"))
                .collect();
            format!("{packets} ({})", each.join(", "))
        }
    }
}

/// The QPN of the other direction, and how it was found.
fn peer(flow: &TopFlow, qpn_of: impl Fn(FlowId) -> Option<u32>) -> String {
    let Some(pairing) = flow.pairing else {
        return ABSENT.to_owned();
    };
    let qpn = flow.peer.and_then(qpn_of);
    qpn.map_or_else(|| pairing.to_owned(), |qpn| format!("{qpn:#x} {pairing}"))
}

/// The columns, in the order in which they are shown.
fn columns(
    flows: &[TopFlow],
    taps: bool,
    qpn_of: impl Fn(FlowId) -> Option<u32> + Copy,
    style: &Style,
) -> Vec<Column> {
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
    let ack_time = |title, measured: fn(Option<&str>) -> bool| {
        Column::new(title, true, 5, flows, |flow| {
            let time = flow.ack_time.filter(|(what, ..)| measured(*what));
            time.map_or_else(|| ABSENT.to_owned(), |(_, median, _)| median.to_string())
        })
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
        Column::new("peer", false, 6, flows, |flow| peer(flow, qpn_of)).unless_zero(),
        Column::new("service", false, 11, flows, |flow| flow.service.to_owned()),
        counted("packets", 9, |flow| flow.packets),
        Column::new("data", true, 0, flows, |flow| bytes(flow.payload_bytes)),
        optional("rate", 8, |flow| {
            rate(flow.payload_bytes, flow.last_time.since(flow.first_time))
        }),
        optional("CE %", 1, |flow| share(flow.marked.1, flow.marked.0))
            .unless_zero()
            .in_ink(Ink::Warn),
        optional("CNPs", 2, |flow| flow.cnp.map(short_count))
            .unless_zero()
            .in_ink(Ink::Warn),
        Column::new("retrans", true, 4, flows, |flow| retransmitted(flow, style))
            .unless_zero()
            .in_ink(Ink::Bad),
        counted("lost", 3, |flow| flow.lost).in_ink(Ink::Bad),
        counted("not captured", 7, |flow| flow.not_captured).in_ink(Ink::Warn),
        counted("unclear", 7, |flow| flow.unclear),
        counted("late", 9, |flow| flow.late),
        ack_time("RTT", |what| what == Some("rtt")),
        ack_time("turnaround", |what| what == Some("turnaround")),
        ack_time("ACK time", |what| !matches!(what, Some("rtt" | "turnaround"))),
        counted("messages", 12, |flow| flow.messages),
        counted("ACKs", 13, |flow| flow.acks),
        counted("NAKs", 14, |flow| flow.naks).in_ink(Ink::Bad),
        counted("RNR NAKs", 15, |flow| flow.rnr_naks).in_ink(Ink::Bad),
        counted("missing", 16, |flow| flow.missing).in_ink(Ink::Bad),
        optional("DSCP", 17, |flow| flow.dscp.map(|dscp| dscp.to_string())),
        optional("VLAN", 18, |flow| flow.vlan.map(|vlan| vlan.to_string())).unless_zero(),
    ];
    columns
        .retain(|column| !(matches!(column.title, "RTT" | "turnaround" | "ACK time") && column.is_empty()));
    // Only where hosts have reported it.
    if flows.iter().any(|flow| flow.process.is_some()) {
        columns.push(Column::new("process", false, 1, flows, |flow| {
            flow.process.as_deref().map_or_else(|| ABSENT.to_owned(), clean)
        }));
    }
    // Only where a job's log names them.
    if flows.iter().any(|flow| flow.ranks.is_some()) {
        let ranks = Column::new("ranks", false, 0, flows, |flow| {
            flow.ranks.clone().unwrap_or_else(|| ABSENT.to_owned())
        });
        columns.insert(3, ranks);
    }
    if flows.iter().any(|flow| flow.epochs > 1) {
        columns.push(counted("epochs", 19, |flow| flow.epochs));
    }
    if taps {
        columns.push(Column::new("tap", true, 0, flows, |flow| flow.tap.0.to_string()));
    }
    if style.width < CROWDED {
        let constant = |column: &Column| column.cells.iter().all(|cell| Some(cell) == column.cells.first());
        columns.retain(|column| !(matches!(column.title, "service" | "DSCP") && constant(column)));
    }
    columns
}

/// The table's lines: with as many columns as there is room for beside strips that can be read. `qpn_of` knows the
/// destination QPN of a flow that may be another one's peer.
pub(super) fn table(
    flows: &[TopFlow],
    strips: &FlowStrips,
    taps: bool,
    qpn_of: impl Fn(FlowId) -> Option<u32> + Copy,
    style: &Style,
) -> Vec<String> {
    let gap = gap(style);
    let least = (style.width / 5).saturating_sub(6).clamp(STRIP, 40);
    let room = style.width.saturating_sub(1 + least);
    let mut chosen = choose(columns(flows, taps, qpn_of, style), room, gap);
    let used: usize = chosen.iter().map(|column| column.width() + gap).sum();
    // A frame too narrow for the first columns has no strip.
    let left = style.width.saturating_sub(1 + used);
    if left >= STRIP {
        chosen.push(Column::new("timeline", false, 0, flows, |flow| {
            let drawn = strips.columns(flow.flow_id, flow.tap, left.min(64));
            drawn.map_or_else(String::new, |drawn| strip(&drawn, Height::Volume, style))
        }));
    }
    draw(&chosen, gap)
}
