//! Section about pauses: which port waited for which other one, from the roots back to the flows that suffered. One line for each pair of
//! ports; flows and pauses by themselves are in the table `waits` of the results.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::text::port_name;
use roce_model::{Confidence, FlowId, RootKind, Span, Time, WaitRow};

use super::episodes::after;
use super::field::sentence;
use super::grid::{Column, lay_some};
use super::ink::{Ink, clean, shorten};
use super::view::View;
use roce_spelling::{ABSENT, plural, short_count};

/// Pairs of ports that are shown.
const SHOWN: usize = 12;
/// The priority of rows about the whole link.
const WHOLE_LINK: u32 = 8;

/// A port: the host or switch, and the port's name there. Each can be unknown.
type Port<'a> = (Option<&'a str>, Option<&'a str>);

/// One port that waited for another, over all flows and pauses.
#[derive(Clone, Debug)]
struct Wait<'a> {
    from: Port<'a>,
    to: Port<'a>,
    priority: Option<u32>,
    flows: BTreeSet<FlowId>,
    start: Time,
    end: Time,
    paused_ns: Option<u64>,
    root: Option<RootKind>,
    confidence: Confidence,
    /// Waits from the far end of this one to the root; absent: no root was found there.
    distance: Option<usize>,
}

/// The pairs of ports, those nearest to a root first.
fn gather(rows: &[WaitRow]) -> Vec<Wait<'_>> {
    let mut all: BTreeMap<(Port<'_>, Port<'_>, Option<u32>), Wait<'_>> = BTreeMap::new();
    for row in rows {
        let from = (row.node.as_deref(), row.port.as_deref());
        let to = (row.waits_for_node.as_deref(), row.waits_for_port.as_deref());
        let wait = all.entry((from, to, row.priority)).or_insert_with(|| Wait {
            from,
            to,
            priority: row.priority,
            flows: BTreeSet::new(),
            start: row.start_time,
            end: row.end_time,
            paused_ns: None,
            root: None,
            confidence: row.confidence,
            distance: None,
        });
        wait.flows.extend(row.victim_flow);
        wait.start = wait.start.min(row.start_time);
        wait.end = wait.end.max(row.end_time);
        // Rows of several flows have the one time of their port.
        wait.paused_ns = wait.paused_ns.max(row.paused_ns);
        if row.is_root {
            wait.root = wait.root.or(row.root_kind).or(Some(RootKind::Unclear));
            wait.distance = Some(0);
        }
    }
    let mut all: Vec<Wait<'_>> = all.into_values().collect();
    measure(&mut all);
    all.sort_by_key(|wait| (wait.distance.unwrap_or(usize::MAX), wait.start));
    all
}

/// Sets the distances, from the roots on. Ports that nobody names are not connected: they can be different ones.
fn measure(all: &mut [Wait<'_>]) {
    let mut by_end: BTreeMap<(Port<'_>, Option<u32>), Vec<usize>> = BTreeMap::new();
    for (at, wait) in all.iter().enumerate() {
        if wait.to != (None, None) {
            by_end.entry((wait.to, wait.priority)).or_default().push(at);
        }
    }
    let mut reached: Vec<usize> = (0..all.len())
        .filter(|at| all.get(*at).is_some_and(|wait| wait.distance.is_some()))
        .collect();
    let mut place = 0;
    while let Some(wait) = reached.get(place).and_then(|at| all.get(*at)) {
        let distance = wait.distance.map(|distance| distance + 1);
        // Each end is left once: what waits for it is found then.
        let behind = by_end.remove(&(wait.from, wait.priority)).unwrap_or_default();
        for at in behind {
            if let Some(wait) = all.get_mut(at).filter(|wait| wait.distance.is_none()) {
                wait.distance = distance;
                reached.push(at);
            }
        }
        place += 1;
    }
}

/// Section about the ports that waited.
pub(super) fn waits(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    let mut all = gather(&run.waits);
    if all.is_empty() {
        return Vec::new();
    }
    let count = all.len();
    all.truncate(SHOWN);
    let origin = run.zero();
    let room = (style.width / 4).max(16);
    let name = |(node, port): Port<'_>| {
        let node = node.unwrap_or("unknown");
        let name = port.map_or_else(|| node.to_owned(), |port| port_name(node, port));
        shorten(&clean(&name), room, style.unicode)
    };
    let columns = vec![
        Column::new("port", false, 0, &all, |wait| name(wait.from)),
        Column::new("waits for", false, 0, &all, |wait| name(wait.to)),
        Column::new("root", false, 0, &all, |wait| {
            wait.root.map_or_else(
                || ABSENT.to_owned(),
                |kind| Ink::Warn.paint(&kind.name().replace('_', " ")),
            )
        }),
        Column::new("priority", true, 4, &all, |wait| match wait.priority {
            Some(WHOLE_LINK) => "all".to_owned(),
            Some(priority) => priority.to_string(),
            None => ABSENT.to_owned(),
        }),
        Column::new("paused", true, 1, &all, |wait| {
            wait.paused_ns
                .map_or_else(|| ABSENT.to_owned(), |time| Span(time).to_string())
        }),
        // No flow is named for ports within a switch: the number is not known, and not 0.
        Column::new("flows", true, 2, &all, |wait| match wait.flows.len() {
            0 => ABSENT.to_owned(),
            flows => short_count(flows as u64),
        })
        .unless_zero(),
        Column::new("from", true, 3, &all, |wait| after(wait.start, origin)),
        Column::new("for", true, 5, &all, |wait| {
            wait.end.since(wait.start).to_string()
        }),
        Column::new("confidence", false, 6, &all, |wait| {
            wait.confidence.name().to_owned()
        }),
    ];
    let mut lines = vec![String::new()];
    lines.extend(sentence(
        [
            Some(Ink::Bold.paint(&plural(
                count as u64,
                "wait between two ports",
                "waits between two ports",
            ))),
            Some("because of pauses, the roots first".to_owned()),
        ],
        style,
    ));
    lines.extend(lay_some(columns, (all.len(), count), style));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(from: (&'static str, &'static str), to: (&'static str, &'static str)) -> WaitRow {
        WaitRow {
            node: Some(from.0.into()),
            port: Some(from.1.into()),
            waits_for_node: Some(to.0.into()),
            waits_for_port: Some(to.1.into()),
            priority: Some(3),
            ..WaitRow::default()
        }
    }

    fn root(row: WaitRow, kind: RootKind) -> WaitRow {
        WaitRow {
            is_root: true,
            root_kind: Some(kind),
            ..row
        }
    }

    /// h1 - leaf1 - leaf2 - the full port: given from the flows' side.
    #[test]
    fn a_chain_is_shown_from_its_root_back() {
        let flow = |row: WaitRow, flow| WaitRow {
            victim_flow: Some(FlowId(flow)),
            paused_ns: Some(flow * 100),
            ..row
        };
        let rows = [
            flow(row(("h1", "e"), ("leaf1", "1")), 1),
            flow(row(("h1", "e"), ("leaf1", "1")), 2),
            row(("leaf1", "1"), ("leaf1", "9")),
            row(("leaf1", "9"), ("leaf2", "9")),
            root(row(("leaf2", "9"), ("leaf2", "4")), RootKind::Contention),
            // This wait has another priority: its chain has no root.
            WaitRow {
                priority: Some(4),
                ..row(("leaf1", "1"), ("leaf1", "9"))
            },
        ];
        let all = gather(&rows);
        let distances: Vec<_> = all
            .iter()
            .map(|wait| (wait.from.0.unwrap(), wait.priority.unwrap(), wait.distance))
            .collect();
        assert_eq!(
            distances,
            [
                ("leaf2", 3, Some(0)),
                ("leaf1", 3, Some(1)),
                ("leaf1", 3, Some(2)),
                ("h1", 3, Some(3)),
                ("leaf1", 4, None)
            ]
        );
        assert_eq!((all[3].flows.len(), all[3].paused_ns), (2, Some(200)));
    }

    #[test]
    fn a_circle_ends_and_unknown_ports_connect_nothing() {
        let circle = [
            root(row(("a", "1"), ("b", "1")), RootKind::Loop),
            root(row(("b", "1"), ("a", "1")), RootKind::Loop),
            row(("h", "e"), ("a", "1")),
        ];
        let distances: Vec<_> = gather(&circle).iter().map(|wait| wait.distance).collect();
        assert_eq!(distances, [Some(0), Some(0), Some(1)]);
        let unknown = |row: WaitRow| WaitRow {
            waits_for_node: None,
            waits_for_port: None,
            ..row
        };
        let nobody = WaitRow {
            node: None,
            port: None,
            ..root(row(("", ""), ("leaf1", "1")), RootKind::SlowReceiver)
        };
        let rows = [unknown(row(("h1", "e"), ("", ""))), nobody];
        let distances: Vec<_> = gather(&rows).iter().map(|wait| wait.distance).collect();
        assert_eq!(distances, [Some(0), None]);
    }
}
