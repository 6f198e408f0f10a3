//! Gathers what is drawn over time while rows come, in bounded memory.
//!
//! Each tap and destination has a series of everything; flows have one as long as there is room. When there is
//! not, rows of one slot become one, then slots become twice as wide down to [`MIN_SLOTS`] of them, then the
//! flows that matter least lose theirs, and of them bytes alone are counted until they are among the largest,
//! or in trouble. What they did is in the tap's series, so that sums stay whole.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState;
use roce_model::{Address, Columns, EventRow, FlowId, FlowKey, Span, TapId, Time, TimelineColumns};

use super::axis::Axis;
use super::series::{DrawnMetrics, Room, Row, Series, Slots, event_metric, metric};

/// Bytes that the values of all flows take at once, and those of all destinations.
const MAX_BYTES: usize = 1 << 23;
/// Bytes that the values of all taps take at once.
const MAX_TAP_BYTES: usize = 1 << 25;
/// Flows that are known at once.
const MAX_FLOWS: usize = 1 << 17;
/// Flows of which the destination is known at once; the senders of others are not counted towards theirs.
const MAX_OPENED: usize = 4 * MAX_FLOWS;
/// Flows that are no longer, and are known to have been.
const MAX_DROPPED: usize = 1 << 20;
/// Slots on the whole axis at most: few flows are shown bin by bin for long.
const MAX_SLOTS: u64 = 1 << 14;
/// No slots are merged for want of room once there are only so many: a screen shows no more.
const MIN_SLOTS: u64 = 1 << 11;
/// Destinations whose senders are counted.
const MAX_DESTINATIONS: usize = 1 << 12;
/// The flows with the most bytes that stay whatever happens to the others.
const LARGEST: usize = 64;
/// Values and flows that go into the page.
const PAGE_VALUES: usize = 3 << 19;
const PAGE_SERIES: usize = 1 << 12;
/// Rows that are looked at together: they stay in the first cache level.
const ROW_BATCH: usize = 32;

/// A flow's series are kept per tap: the same traffic seen twice is two.
type Key = (FlowId, TapId);

/// All series, by slot.
#[derive(Debug)]
pub(super) struct GatheredSeries {
    pub(super) axis: Axis,
    taps: BTreeMap<TapId, Slots>,
    destination_of: HashMap<FlowId, Address, RandomState>,
    destinations: HashMap<(TapId, Address), usize, RandomState>,
    towards: Vec<Slots>,
    places: HashMap<Key, usize, RandomState>,
    flows: Vec<Flow>,
    /// Flows that are not there any more: a later series is not whole.
    dropped: HashSet<Key, RandomState>,
    /// With so many bytes a flow is among the largest.
    large: u64,
    flow_room: Budget,
    tap_room: Budget,
    destination_room: Budget,
    metrics: Metrics,
}

/// Bytes that series take, and the number at which they are merged.
#[derive(Clone, Copy, Debug)]
struct Budget {
    max: usize,
    bytes: usize,
    /// At least `max`, and at least twice what the last merge left: merging costs no more than the rows between two merges.
    merge_at: usize,
}

impl Budget {
    const fn new(max: usize) -> Self {
        Self {
            max,
            bytes: 0,
            merge_at: max,
        }
    }

    const fn is_spent(&self) -> bool {
        self.bytes > self.merge_at
    }

    /// Notes the bytes that are left after a merge.
    fn merged(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.merge_at = self.max.max(2 * bytes);
    }
}

/// The metrics that decide.
#[derive(Clone, Copy, Debug)]
struct Metrics {
    wire_bytes: usize,
    senders: usize,
    /// Those that point to congestion, a bit for each.
    trouble: u64,
}

/// A flow.
#[derive(Clone, Debug)]
struct Flow {
    series: Series,
    /// There is no room for its series.
    is_left_out: bool,
    key: Key,
    /// Where the series of its destination stands.
    goes_to: Option<usize>,
    wire_bytes: u64,
    /// Its beginning is not in it.
    partial: bool,
}

impl Flow {
    /// Counts what decides whether it matters, and looks at the end of the series, where a row will be written to soon.
    fn count(&mut self, row: &Row, metrics: &Metrics) {
        let wire_bytes = row.value(metrics.wire_bytes);
        self.wire_bytes = self.wire_bytes.saturating_add(wire_bytes);
        self.series.touch(row);
    }

    /// Gives the room of the series back.
    fn leave_out(&mut self) {
        self.series.clear();
        (self.is_left_out, self.partial) = (true, true);
    }
}

/// A flow's series as it goes into the page.
#[derive(Debug)]
pub(super) struct KeptSeries<'a> {
    pub(super) flow: FlowId,
    pub(super) tap: TapId,
    /// Its beginning is not in it.
    pub(super) partial: bool,
    pub(super) series: &'a Series,
}

impl GatheredSeries {
    pub(super) fn new(bin: Span) -> Self {
        let bit = |name| metric(name).map_or(0, |metric| 1 << metric);
        let trouble = [
            "ce",
            "cnp",
            "retransmitted_packets",
            "missing",
            "lost_downstream",
            "naks",
            "rnr_naks",
        ];
        Self {
            axis: Axis::new(bin),
            taps: BTreeMap::new(),
            destination_of: HashMap::default(),
            destinations: HashMap::default(),
            towards: Vec::new(),
            places: HashMap::default(),
            flows: Vec::new(),
            dropped: HashSet::default(),
            large: 0,
            flow_room: Budget::new(MAX_BYTES),
            tap_room: Budget::new(MAX_TAP_BYTES),
            destination_room: Budget::new(MAX_BYTES),
            metrics: Metrics {
                wire_bytes: metric("wire_bytes").unwrap_or_default(),
                senders: metric("senders_to_destination").unwrap_or_default(),
                trouble: trouble.into_iter().map(bit).sum(),
            },
        }
    }

    /// Where flows go.
    pub(super) fn opened(&mut self, keys: &[FlowKey]) {
        let room = MAX_OPENED.saturating_sub(self.destination_of.len());
        let flows = keys.iter().map(|key| (key.id(), key.destination));
        self.destination_of.extend(flows.take(room));
    }

    /// Has the axis reach from `first` to `last`.
    pub(super) fn cover(&mut self, first: Time, last: Time) {
        self.axis.include(first.0);
        self.axis.include(last.0);
        self.fit();
    }

    /// Takes rows of the timeline.
    pub(super) fn timeline(&mut self, columns: &TimelineColumns) {
        columns
            .time
            .iter()
            .flatten()
            .for_each(|time| self.axis.include(*time));
        self.fit();
        let drawn = DrawnMetrics::new(columns);
        let (mut rows, mut room) = ([Row::default(); ROW_BATCH], Room::default());
        let mut places = [0; ROW_BATCH];
        for first in (0..columns.len()).step_by(ROW_BATCH) {
            let rows = &mut rows[..ROW_BATCH.min(columns.len() - first)];
            drawn.rows(first, rows);
            let key = |row| {
                let flow = FlowId(columns.flow_id.at(row).copied().unwrap_or_default());
                (flow, TapId(columns.tap.at(row).copied().unwrap_or_default()))
            };
            // Each of a flow's three places in memory is fetched for many rows at once, before anything waits for it.
            for (row, place) in (first..first + rows.len()).zip(&mut places) {
                *place = self.place(key(row));
            }
            for (place, row) in places.iter().zip(&*rows) {
                self.flows[*place].count(row, &self.metrics);
            }
            for (row, drawn) in (first..).zip(&*rows) {
                let time = columns.time.at(row).copied().unwrap_or_default();
                let (bin, place) = (self.axis.bin(time), places[row - first]);
                self.towards(bin, place, drawn, &mut room);
                self.tap(key(row).1, bin, drawn, &mut room);
                self.flow(bin, place, drawn, &mut room);
            }
        }
        self.make_room();
    }

    /// Takes what an event tells of losses and notifications.
    pub(super) fn event(&mut self, event: &EventRow) {
        self.axis.include(event.time.0);
        self.fit();
        let Some((metric, value)) = event_metric(event) else {
            return;
        };
        let (bin, row) = (self.axis.bin(event.time.0), Row::single(metric, value));
        let mut room = Room::default();
        self.tap(event.tap, bin, &row, &mut room);
        if let Some(flow) = event.flow_id {
            let place = self.place((flow, event.tap));
            self.flows[place].count(&row, &self.metrics);
            self.flows[place].is_left_out = false;
            self.flow(bin, place, &row, &mut room);
        }
    }

    fn flow(&mut self, bin: u64, place: usize, row: &Row, room: &mut Room) {
        let flow = &mut self.flows[place];
        if flow.is_left_out && flow.wire_bytes <= self.large && !row.has(self.metrics.trouble) {
            return;
        }
        flow.is_left_out = false;
        let size = flow.series.size();
        flow.series.push(bin, row, room);
        self.flow_room.bytes += flow.series.size() - size;
    }

    fn towards(&mut self, bin: u64, place: usize, row: &Row, room: &mut Room) {
        let senders = self.metrics.senders;
        let at_once = row.value(senders);
        if at_once > 0
            && let Some(place) = self.flows[place].goes_to
        {
            let towards = &mut self.towards[place];
            let size = towards.size();
            towards.add(bin, senders, at_once, room);
            self.destination_room.bytes += towards.size() - size;
        }
    }

    fn tap(&mut self, tap: TapId, bin: u64, row: &Row, room: &mut Room) {
        let shift = self.axis.shift();
        let tap = self.taps.entry(tap).or_insert_with(|| Slots::new(shift));
        let size = tap.size();
        tap.push(bin, row, room);
        self.tap_room.bytes += tap.size() - size;
    }

    fn place(&mut self, key: Key) -> usize {
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let destination = self.destination_of.get(&key.0).copied();
        let flow = Flow {
            series: Series::default(),
            is_left_out: false,
            key,
            goes_to: destination.and_then(|destination| self.destination((key.1, destination))),
            wire_bytes: 0,
            partial: self.dropped.len() >= MAX_DROPPED || self.dropped.contains(&key),
        };
        let place = self.flows.len();
        self.places.insert(key, place);
        self.flows.push(flow);
        place
    }

    fn destination(&mut self, key: (TapId, Address)) -> Option<usize> {
        if let Some(place) = self.destinations.get(&key) {
            return Some(*place);
        }
        let place = self.towards.len();
        if place >= MAX_DESTINATIONS {
            return None;
        }
        self.destinations.insert(key, place);
        self.towards.push(Slots::new(self.axis.shift()));
        Some(place)
    }

    /// No more slots than there may be.
    fn fit(&mut self) {
        while self.axis.slots() > MAX_SLOTS {
            self.widen();
        }
    }

    /// Makes slots wider. What flows did is merged when room is wanted, or at the end.
    fn widen(&mut self) {
        self.axis.widen();
        self.merge_slots();
    }

    /// Makes one row of each slot's, for taps and destinations.
    fn merge_slots(&mut self) {
        let shift = self.axis.shift();
        let all = self.taps.values_mut().chain(&mut self.towards);
        all.for_each(|slots| slots.widen(shift));
        self.tap_room.merged(self.taps.values().map(Slots::size).sum());
        self.destination_room
            .merged(self.towards.iter().map(Slots::size).sum());
    }

    /// Makes one row of each slot's, for flows.
    fn merge(&mut self) {
        let shift = self.axis.shift();
        for flow in &mut self.flows {
            if !flow.series.is_merged(shift) {
                flow.series = flow.series.merged(shift);
            }
        }
        self.measure();
    }

    fn measure(&mut self) {
        let bytes = self.flows.iter().map(|flow| flow.series.size()).sum();
        self.flow_room.merged(bytes);
    }

    fn make_room(&mut self) {
        if self.destination_of.len() > 2 * MAX_FLOWS {
            let flows: HashSet<FlowId, RandomState> = self.flows.iter().map(|flow| flow.key.0).collect();
            self.destination_of.retain(|flow, _| flows.contains(flow));
        }
        if self.tap_room.is_spent() || self.destination_room.is_spent() {
            self.merge_slots();
            let is_over = |budget: &Budget| budget.bytes > budget.max;
            while (is_over(&self.tap_room) || is_over(&self.destination_room))
                && self.axis.slots() > MIN_SLOTS
            {
                self.widen();
            }
        }
        if !self.flow_room.is_spent() && self.flows.len() <= MAX_FLOWS {
            return;
        }
        // Half of the room, so that it is some time until more is wanted.
        self.merge();
        while self.flow_room.bytes > MAX_BYTES / 2 && self.axis.slots() > MIN_SLOTS {
            self.widen();
            self.merge();
        }
        let ranked = self.ranked(&HashSet::new());
        self.leave_out(&ranked);
        if self.flows.len() > MAX_FLOWS {
            self.forget(&ranked);
        }
        self.measure();
    }

    /// Half of the room is for the flows that come first; those for which there is room again come back.
    fn leave_out(&mut self, ranked: &[usize]) {
        let mut bytes = 0;
        for (rank, place) in ranked.iter().enumerate() {
            let flow = &mut self.flows[*place];
            bytes += flow.series.size();
            if rank + 1 == LARGEST {
                self.large = flow.wire_bytes;
            }
            if rank >= LARGEST && bytes > MAX_BYTES / 2 {
                flow.leave_out();
            } else {
                flow.is_left_out = false;
            }
        }
    }

    /// The flows that come last are no longer known.
    fn forget(&mut self, ranked: &[usize]) {
        let mut stay = vec![true; self.flows.len()];
        for place in &ranked[MAX_FLOWS / 2..] {
            stay[*place] = false;
            if self.dropped.len() < MAX_DROPPED {
                self.dropped.insert(self.flows[*place].key);
            }
        }
        let mut stay = stay.into_iter();
        self.flows.retain(|_| stay.next() == Some(true));
        let keys = self.flows.iter().enumerate();
        self.places = keys.map(|(place, flow)| (flow.key, place)).collect();
    }

    /// The flows' places: the largest, then those that `named` names, then those with signs of trouble, each by bytes.
    fn ranked(&self, named: &HashSet<FlowId>) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.flows.len()).collect();
        places.sort_by_cached_key(|place| {
            let flow = &self.flows[*place];
            (std::cmp::Reverse(flow.wire_bytes), flow.key)
        });
        let rest = places.get_mut(LARGEST..).unwrap_or_default();
        // The order by bytes stays among equals.
        rest.sort_by_cached_key(|place| {
            let flow = &self.flows[*place];
            let is_named = named.contains(&flow.key.0);
            (!is_named, !flow.series.has(self.metrics.trouble))
        });
        places
    }

    /// The taps' series.
    pub(super) fn taps(&self) -> impl ExactSizeIterator<Item = (TapId, Series)> {
        self.taps.iter().map(|(tap, slots)| (*tap, slots.whole()))
    }

    /// The flows whose series go into the page, the most interesting first.
    pub(super) fn kept(&mut self, named: &HashSet<FlowId>) -> Vec<KeptSeries<'_>> {
        let mut values = 0;
        let mut ranked = self.ranked(named);
        ranked.retain(|place| !self.flows[*place].is_left_out);
        ranked.truncate(PAGE_SERIES);
        let shift = self.axis.shift();
        for place in &ranked {
            let series = &mut self.flows[*place].series;
            if !series.is_merged(shift) {
                *series = series.merged(shift);
            }
        }
        let within = ranked.into_iter().take_while(|place| {
            values += self.flows[*place].series.len();
            values <= PAGE_VALUES
        });
        let kept = within.map(|place| {
            let flow = &self.flows[place];
            KeptSeries {
                flow: flow.key.0,
                tap: flow.key.1,
                partial: flow.partial,
                series: &flow.series,
            }
        });
        kept.collect()
    }

    /// Destinations by how many senders they had at once, slot by slot, the most first.
    pub(super) fn crowded(&self, most: usize) -> Vec<(TapId, Address, Series)> {
        let mut all: Vec<_> = self
            .destinations
            .iter()
            .map(|((tap, destination), place)| {
                let series = self.towards[*place].whole();
                let metrics = series.metrics(self.axis.shift());
                let senders = metrics.flat_map(|(_, slots)| slots).map(|(_, senders)| senders);
                let degree: u64 = senders.fold(0, u64::saturating_add);
                (std::cmp::Reverse(degree), *tap, *destination, series)
            })
            .filter(|(degree, ..)| degree.0 > 0)
            .collect();
        all.sort_by_cached_key(|(degree, tap, destination, _)| (*degree, *tap, destination.to_string()));
        all.truncate(most);
        all.into_iter()
            .map(|(_, tap, destination, series)| (tap, destination, series))
            .collect()
    }
}

#[cfg(test)]
mod tests;
