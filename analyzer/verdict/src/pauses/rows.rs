//! Rows of the table `waits`.

use std::borrow::Cow;

use roce_model::{Confidence, FlowId, RootKind, Time, WaitRow};

use super::contention::lower;
use super::graph::Graph;
use super::holds::{End, Hold};
use super::known::KnownFacts;
use super::net::Passes;
use super::readings::Quantity;
use super::series::{Series, Window, meet};

/// Rows in all, and flows of one paused cable that have a row.
pub(super) const MAX_ROWS: usize = 4096;
const MAX_FLOWS: usize = 32;

/// The names of an end as a row has them.
fn names(known: &KnownFacts<'_>, end: End) -> (Option<Cow<'static, str>>, Option<Cow<'static, str>>) {
    let ports = &known.readings.ports;
    match (end.port, end.host) {
        (Some(port), _) => (
            Some(ports.node_name(port).into()),
            Some(ports.object_name(port).into()),
        ),
        (None, Some(host)) => (Some(host.to_string().into()), None),
        (None, None) => (None, None),
    }
}

/// The row of one end that waits for another.
fn row(known: &KnownFacts<'_>, hold: &Hold, from: End, to: End) -> WaitRow {
    let (node, port) = names(known, from);
    let (waits_for_node, waits_for_port) = names(known, to);
    WaitRow {
        node,
        port,
        priority: hold.priority.map(u32::from),
        waits_for_node,
        waits_for_port,
        start_time: Time(hold.start()),
        end_time: Time(hold.end()),
        resolution_ns: hold.resolution,
        confidence: hold.confidence,
        ..WaitRow::default()
    }
}

/// All rows: of each paused cable, and of the ports within switches that connect them.
pub(super) fn rows(known: &KnownFacts<'_>, graph: &Graph) -> Vec<WaitRow> {
    let mut rows = Vec::new();
    for (at, ((hold, next), flows)) in graph.holds.iter().zip(&graph.next).zip(&graph.flows).enumerate() {
        let root = next.root.and_then(|root| graph.roots.get(root));
        let is_root_beyond = next.contention.is_some();
        let own = WaitRow {
            paused_ns: hold.paused_ns,
            is_root: root.is_some() && !is_root_beyond,
            root_kind: root.map(|root| root.kind).filter(|_| !is_root_beyond),
            confidence: root.filter(|_| !is_root_beyond).map_or(hold.confidence, |root| {
                if root.kind == RootKind::Unclear {
                    hold.confidence
                } else {
                    lower(hold.confidence, root.confidence)
                }
            }),
            ..row(known, hold, hold.tail, hold.head)
        };
        let sure = flows.iter().filter(|(_, passes)| *passes == Passes::Surely);
        let ids: Vec<FlowId> = sure
            .filter_map(|(place, _)| known.flows.all.get(*place).map(|flow| flow.flow))
            .take(MAX_FLOWS)
            .collect();
        if ids.is_empty() {
            rows.push(own);
        } else {
            rows.extend(ids.into_iter().map(|flow| WaitRow {
                victim_flow: Some(flow),
                ..own.clone()
            }));
        }
        // Within the switch. Of several ports that a flow may leave by nobody knows which one it waits for.
        for (place, behind) in next
            .holds
            .iter()
            .filter_map(|at| Some((*at, graph.holds.get(*at)?)))
        {
            let is_named = hold.head.port.is_some() && behind.tail.port.is_some();
            let is_known = next.holds.len() == 1 || next.is_circular || graph.surely_share(at, place);
            if is_named && is_known {
                rows.push(WaitRow {
                    confidence: if next.holds.len() == 1 && !flows.is_empty() && !next.is_assumed {
                        lower(lower(hold.confidence, behind.confidence), Confidence::Medium)
                    } else {
                        Confidence::Low
                    },
                    resolution_ns: hold.resolution.max(behind.resolution),
                    is_root: next.is_circular,
                    root_kind: root.map(|root| root.kind).filter(|_| next.is_circular),
                    ..row(known, hold, hold.head, behind.tail)
                });
            }
        }
        if let (Some(found), Some(root)) = (&next.contention, root) {
            let exit = End {
                port: found.port,
                host: None,
            };
            let mut own = WaitRow {
                is_root: true,
                root_kind: Some(RootKind::Contention),
                confidence: root.confidence,
                ..row(known, hold, hold.head, exit)
            };
            if found.port.is_none() {
                own.waits_for_port = Some(format!("the port to {}", found.destination).into());
            }
            rows.extend(found.shares.iter().take(MAX_FLOWS).map(|(place, share)| WaitRow {
                victim_flow: known.flows.all.get(*place).map(|flow| flow.flow),
                share: Some(*share),
                ..own.clone()
            }));
        }
        if rows.len() >= MAX_ROWS {
            break;
        }
    }
    rows.extend(internal(known, graph));
    rows.truncate(MAX_ROWS);
    rows.sort_by(|a, b| {
        let key = |row: &WaitRow| (row.start_time, row.node.clone(), row.port.clone(), row.priority);
        key(a).cmp(&key(b))
    });
    rows
}

/// Ports within switches that were paused while ports outside were: between which of these they stand is not known.
fn internal<'a>(known: &'a KnownFacts<'_>, graph: &'a Graph) -> impl Iterator<Item = WaitRow> + 'a {
    let ports = &known.readings.ports;
    let all = known.by_quantity(Quantity::PausesReceived).iter();
    all.filter(|(key, series)| known.readings.is_internal(key.port) && series.sum > 0.0)
        .filter_map(move |(key, series): &(_, &Series)| {
            let windows: Vec<Window> = series.risen().copied().collect();
            let node = ports.node_of(key.port)?;
            let mut holds = graph.holds.iter();
            let hold = holds.find(|hold| {
                let ends = [hold.tail.port, hold.head.port].into_iter().flatten();
                let mut nodes = ends.filter_map(|port| ports.node_of(port));
                nodes.any(|other| other == node) && meet(&hold.windows, &windows)
            })?;
            let end = End {
                port: Some(key.port),
                host: None,
            };
            let (first, last) = (windows.first()?, windows.last()?);
            Some(WaitRow {
                waits_for_node: Some(ports.node_name(key.port).into()),
                priority: key.priority.map(u32::from),
                start_time: Time(first.from),
                end_time: Time(last.to),
                resolution_ns: windows.iter().map(Window::length).max().unwrap_or_default(),
                confidence: Confidence::Low,
                ..row(known, hold, end, End::default())
            })
        })
}
