//! Adds up what the network did in the time of a collective, over the connections that carry it.
//!
//! Collectives of one kind and communicator use the same connections. So those with payload in at least half of them carry them; other
//! traffic of the same time does not. Of few collectives all connections count.
//!
//! A slot of the series belongs to a collective if the slot's middle lies in its time. So a slot counts once where collectives do not
//! overlap, and a collective that is shorter than a slot may have none.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use roce_model::cast::float;
use roce_model::{Address, CollectiveCallRow, EpisodeRow, FlowId, Time};
use roce_report::series::{ShownSeries, Slot, Subject};

use super::edges::Activity;

/// Episodes that are looked at for one collective: those that began last before its end.
const MAX_EPISODES_OF_CALL: usize = 256;

/// Fewer collectives than this do not show which connections carry them.
const MIN_ALIKE: usize = 4;

/// Counts of some slots.
#[derive(Clone, Copy, Default)]
struct Counts {
    payload_bytes: u64,
    ce: u64,
    cnp: u64,
    retransmitted: u64,
}

impl Counts {
    fn add(self, slot: &Slot) -> Self {
        Self {
            payload_bytes: self.payload_bytes.saturating_add(slot.payload_bytes),
            ce: self.ce.saturating_add(slot.ce),
            cnp: self.cnp.saturating_add(slot.cnp),
            retransmitted: self.retransmitted.saturating_add(slot.retransmitted),
        }
    }
}

/// A connection, or a sum of connections, with its counts up to each slot.
struct TrafficLine<'a> {
    shown: &'a ShownSeries,
    /// Counts before each slot, and of all.
    sums: Vec<Counts>,
}

/// The traffic of a run over time.
pub(super) struct Traffic<'a> {
    width: u64,
    lines: Vec<TrafficLine<'a>>,
}

/// Flows and receivers that carried a collective.
#[derive(Default)]
pub(super) struct Carriers {
    flows: HashSet<FlowId, RandomState>,
    receivers: HashSet<Address, RandomState>,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(shown: &'a [ShownSeries], width: u64) -> Self {
        let lines = shown.iter().map(|shown| {
            let mut sums = Vec::with_capacity(shown.series.slots.len() + 1);
            let mut sum = Counts::default();
            sums.push(sum);
            for slot in &shown.series.slots {
                sum = sum.add(slot);
                sums.push(sum);
            }
            TrafficLine { shown, sums }
        });
        Self {
            width: width.max(1),
            lines: lines.collect(),
        }
    }

    /// Numbers of slots whose middle lies in a collective.
    fn slots_of(&self, call: &CollectiveCallRow) -> (u64, u64) {
        let first = |time: Time| time.0.saturating_sub(self.width / 2).div_ceil(self.width);
        (first(call.start_time), first(call.end_time))
    }

    /// The lines that carry collectives of one kind and communicator, of a host's or of all.
    pub(super) fn carrying<'c>(
        &self,
        calls: impl Iterator<Item = &'c CollectiveCallRow> + Clone,
        host: Option<Address>,
    ) -> CarryingLines<'_> {
        let spans = calls
            .map(|call| self.slots_of(call))
            .filter(|(from, to)| from < to);
        let spans: Vec<(u64, u64)> = spans.collect();
        let lines = self.lines(host).filter(|line| {
            let carried = spans
                .iter()
                .filter(|(from, to)| line.between(*from, *to).0.payload_bytes > 0);
            spans.len() < MIN_ALIKE || carried.count() * 2 >= spans.len()
        });
        CarryingLines {
            width: self.width,
            lines: lines.collect(),
        }
    }

    /// The lines to and from a host, or all.
    fn lines(&self, host: Option<Address>) -> impl Iterator<Item = &TrafficLine<'a>> {
        self.lines.iter().filter(move |line| {
            host.is_none_or(|host| {
                line.shown
                    .ends()
                    .is_some_and(|(source, destination)| source == host || destination == host)
            })
        })
    }

    /// Payload over time.
    pub(super) fn activity(&self, host: Option<Address>) -> Activity {
        let mut slots: Vec<(u64, u64)> = self
            .lines(host)
            .flat_map(|line| &line.shown.series.slots)
            .map(|slot| (slot.at, slot.payload_bytes))
            .collect();
        slots.sort_unstable();
        slots.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                earlier.1 = earlier.1.saturating_add(later.1);
            }
            is_same
        });
        slots.retain(|(_, bytes)| *bytes > 0);
        Activity {
            width: self.width,
            slots,
        }
    }
}

impl TrafficLine<'_> {
    /// Counts of the slots from one number to another, and these slots.
    fn between(&self, from: u64, to: u64) -> (Counts, &[Slot]) {
        let slots = &self.shown.series.slots;
        let low = slots.partition_point(|slot| slot.at < from);
        let high = slots.partition_point(|slot| slot.at < to);
        let sum = |place: usize| self.sums.get(place).copied().unwrap_or_default();
        let (before, after) = (sum(low), sum(high));
        let counts = Counts {
            payload_bytes: after.payload_bytes.saturating_sub(before.payload_bytes),
            ce: after.ce.saturating_sub(before.ce),
            cnp: after.cnp.saturating_sub(before.cnp),
            retransmitted: after.retransmitted.saturating_sub(before.retransmitted),
        };
        (counts, slots.get(low..high).unwrap_or_default())
    }
}

/// The lines that carry some collectives.
pub(super) struct CarryingLines<'a> {
    width: u64,
    lines: Vec<&'a TrafficLine<'a>>,
}

impl CarryingLines<'_> {
    /// Fills in the columns of a collective that are about the network, and returns what carried it.
    pub(super) fn fill(&self, traffic: &Traffic<'_>, call: &mut CollectiveCallRow) -> Carriers {
        let (from, to) = traffic.slots_of(call);
        let mut carriers = Carriers::default();
        if from >= to {
            return carriers;
        }
        let mut all = Counts::default();
        let mut busy: Option<(u64, u64)> = None;
        let mut connections: Vec<(&ShownSeries, u64, f64)> = Vec::new();
        for line in &self.lines {
            let (counts, slots) = line.between(from, to);
            all.payload_bytes = all.payload_bytes.saturating_add(counts.payload_bytes);
            all.ce = all.ce.saturating_add(counts.ce);
            all.cnp = all.cnp.saturating_add(counts.cnp);
            all.retransmitted = all.retransmitted.saturating_add(counts.retransmitted);
            let is_busy = |slot: &&Slot| slot.payload_bytes > 0;
            let (Some(first), Some(last)) = (slots.iter().find(is_busy), slots.iter().rfind(is_busy)) else {
                continue;
            };
            let end = last.at.saturating_add(1);
            busy = Some(busy.map_or((first.at, end), |busy| (busy.0.min(first.at), busy.1.max(end))));
            if let Some((_, destination)) = line.shown.ends() {
                carriers.receivers.insert(destination);
            }
            if let Subject::Flow(flow) = line.shown.subject {
                carriers.flows.insert(flow);
                let seconds = Time((end - first.at).saturating_mul(self.width)).seconds();
                let rate = float(counts.payload_bytes) * 8.0 / seconds;
                connections.push((line.shown, counts.payload_bytes, rate));
            }
        }
        call.network_bytes = Some(all.payload_bytes);
        call.ce = Some(all.ce);
        call.cnp = Some(all.cnp);
        call.retransmitted_packets = Some(all.retransmitted);
        call.busy_ns = busy.map(|(first, end)| (end - first).saturating_mul(self.width));
        connections.sort_by_key(|(_, payload, _)| *payload);
        let median = connections
            .get(connections.len() / 2)
            .map_or(0, |(_, payload, _)| *payload);
        let slowest = connections
            .iter()
            .filter(|(_, payload, _)| *payload >= median / 2)
            .min_by(|a, b| a.2.total_cmp(&b.2));
        if let Some((shown, _, rate)) = slowest {
            if let Subject::Flow(flow) = shown.subject {
                call.slowest_flow = Some(flow);
            }
            call.slowest = Some(shown.name().into());
            call.slowest_rate = Some(*rate);
        }
        carriers
    }
}

/// Episodes in the order of their starts, with the flows that each names.
pub(super) struct Episodes<'a>(Vec<(&'a EpisodeRow, Vec<FlowId>)>);

/// Flows that an episode names.
pub(super) fn flows_named(names: &str) -> impl Iterator<Item = FlowId> {
    names
        .split_ascii_whitespace()
        .filter_map(|name| u64::from_str_radix(name, 16).ok())
        .map(FlowId)
}

impl<'a> Episodes<'a> {
    pub(super) fn new(rows: &'a [EpisodeRow]) -> Self {
        let mut episodes: Vec<_> = rows
            .iter()
            .map(|row| (row, flows_named(&row.flow_ids).collect::<Vec<_>>()))
            .collect();
        episodes.sort_by_key(|(row, _)| (row.start_time, row.episode));
        Self(episodes)
    }

    /// The episode that takes most of a collective's time, among those in the flows that carried it.
    pub(super) fn of(&self, call: &CollectiveCallRow, carriers: &Carriers) -> Option<u32> {
        let later = self.0.partition_point(|(row, _)| row.start_time < call.end_time);
        let before = self
            .0
            .get(..later)
            .unwrap_or_default()
            .iter()
            .rev()
            .take(MAX_EPISODES_OF_CALL);
        let overlapping = before.filter_map(|(row, flows)| {
            let both = call
                .end_time
                .min(row.end_time)
                .since(call.start_time.max(row.start_time))
                .0;
            let is_there = flows.iter().any(|flow| carriers.flows.contains(flow))
                || row
                    .destination
                    .is_some_and(|host| carriers.receivers.contains(&host));
            (both > 0 && is_there).then_some((both, std::cmp::Reverse(row.episode)))
        });
        overlapping.max().map(|(_, episode)| episode.0)
    }
}
