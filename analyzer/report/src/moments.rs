//! The events that a page or a trace shows: all of them while they are few, of flows with very many every second, fourth, ... one.
//! Evictions are those of the table of flows, not of one flow.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use roce_model::{Columns, EventColumns, EventKind, EventRow, EventSource, FlowId, TapId, Time};

/// Events kept of one flow, or of one kind of those without a flow.
const MAX_EVENTS_OF_FLOW: usize = 2_048;
/// Events kept of all.
const MAX_EVENTS: usize = 1 << 17;

/// Events, thinned out evenly where there are too many.
#[derive(Debug)]
pub(crate) struct Moments {
    groups: HashMap<Group, ThinnedEvents, RandomState>,
    most_of_one: usize,
    kept: usize,
    seen: u64,
}

type Group = (Option<FlowId>, Option<EventKind>);

/// Every `stride`-th event of a group.
#[derive(Debug)]
struct ThinnedEvents {
    stride: u64,
    seen: u64,
    rows: Vec<EventRow>,
}

impl Default for ThinnedEvents {
    fn default() -> Self {
        Self {
            stride: 1,
            seen: 0,
            rows: Vec::new(),
        }
    }
}

impl ThinnedEvents {
    fn thin(&mut self) {
        let mut place = 0;
        self.rows.retain(|_| {
            place += 1;
            place % 2 == 1
        });
        self.stride *= 2;
    }
}

impl Moments {
    pub(crate) fn new() -> Self {
        Self {
            groups: HashMap::default(),
            most_of_one: MAX_EVENTS_OF_FLOW,
            kept: 0,
            seen: 0,
        }
    }

    /// Takes an event.
    pub(crate) fn add(&mut self, event: &EventRow) {
        self.seen += 1;
        if self.kept >= MAX_EVENTS {
            // Each group has one.
            return;
        }
        let flow = event.flow_id.filter(|_| event.kind != EventKind::Evicted);
        let kind = flow.is_none().then_some(event.kind);
        let group = self.groups.entry((flow, kind)).or_default();
        let is_wanted = group.seen.is_multiple_of(group.stride);
        group.seen += 1;
        if !is_wanted {
            return;
        }
        group.rows.push(event.clone());
        self.kept += 1;
        if group.rows.len() > self.most_of_one {
            let before = group.rows.len();
            group.thin();
            self.kept -= before - group.rows.len();
        }
        while self.kept >= MAX_EVENTS && self.most_of_one > 1 {
            self.most_of_one /= 2;
            for group in self.groups.values_mut() {
                while group.rows.len() > self.most_of_one {
                    group.thin();
                }
            }
            self.kept = self.groups.values().map(|group| group.rows.len()).sum();
        }
    }

    /// Number of events, the thinned ones included.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Number of those that were thinned out.
    pub(crate) fn thinned(&self) -> u64 {
        self.seen - self.kept as u64
    }

    /// Those that were kept, in the order of time.
    pub(crate) fn columns(&self) -> EventColumns {
        let mut rows: Vec<&EventRow> = self.groups.values().flat_map(|group| &group.rows).collect();
        rows.sort_by(|a, b| {
            let of = |row: &EventRow| (row.time, row.tap, row.flow_id, row.psn, row.kind.name());
            of(a)
                .cmp(&of(b))
                .then_with(|| (a.value, &a.detail).cmp(&(b.value, &b.detail)))
        });
        let mut columns = EventColumns::default();
        for row in rows {
            columns.push(row);
        }
        columns
    }
}

/// One row of the columns, as a row.
pub(crate) fn event(rows: &EventColumns, row: usize) -> EventRow {
    let kind = rows
        .kind
        .at(row)
        .and_then(|name| EventKind::ALL.iter().find(|kind| kind.name() == name));
    let source = rows
        .source
        .at(row)
        .and_then(|name| EventSource::ALL.iter().find(|source| source.name() == name));
    EventRow {
        time: Time(rows.time.at(row).copied().unwrap_or_default()),
        kind: kind.copied().unwrap_or_default(),
        tap: TapId(rows.tap.at(row).copied().unwrap_or_default()),
        flow_id: rows.flow_id.at(row).copied().map(FlowId),
        source: source.copied().unwrap_or_default(),
        psn: rows.psn.at(row).copied(),
        value: rows.value.at(row).copied(),
        object: rows.object.at(row).cloned(),
        name: rows.name.at(row).cloned(),
        detail: rows.detail.at(row).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, flow: Option<u64>) -> EventRow {
        EventRow {
            time: Time(time),
            kind: EventKind::Nak,
            flow_id: flow.map(FlowId),
            ..EventRow::default()
        }
    }

    #[test]
    fn a_flow_with_many_is_thinned_and_others_are_not() {
        let mut moments = Moments::new();
        (0..3_000).for_each(|time| moments.add(&event(time, Some(1))));
        (0..5).for_each(|time| moments.add(&event(time, Some(2))));
        moments.add(&event(9, None));
        let columns = moments.columns();
        // Every second event of 3,000 stays.
        assert_eq!((columns.len(), moments.seen()), (1_500 + 5 + 1, 3_006));
        assert_eq!(columns.time.at(columns.len() - 1), Some(&2_998));
    }

    #[test]
    fn all_together_are_bounded() {
        let mut moments = Moments::new();
        for time in 0..40 {
            for flow in 0..10_000 {
                moments.add(&event(time, Some(flow)));
            }
        }
        assert_eq!(moments.seen(), 400_000);
        let kept = moments.columns().len();
        // Each flow keeps as many events as all have room for: a power of two.
        assert!((MAX_EVENTS / 4..=MAX_EVENTS).contains(&kept), "{kept}");
    }

    #[test]
    fn more_flows_than_events_are_not_remembered() {
        let mut moments = Moments::new();
        for flow in 0..2 * MAX_EVENTS as u64 {
            moments.add(&event(0, Some(flow)));
        }
        assert_eq!(moments.groups.len(), MAX_EVENTS);
        assert_eq!(moments.columns().len(), MAX_EVENTS);
    }

    #[test]
    fn evictions_leave_room_for_other_events() {
        let mut moments = Moments::new();
        let evicted = |flow| EventRow {
            kind: EventKind::Evicted,
            ..event(0, Some(flow))
        };
        (0..2 * MAX_EVENTS as u64).for_each(|flow| moments.add(&evicted(flow)));
        moments.add(&event(1, Some(7)));
        let columns = moments.columns();
        assert!(columns.len() <= MAX_EVENTS_OF_FLOW + 1, "{}", columns.len());
        assert_eq!(columns.time.at(columns.len() - 1), Some(&1), "the NAK");
    }
}
