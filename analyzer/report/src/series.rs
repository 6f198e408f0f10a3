//! Gathers what connections did over time while rows come, in bounded memory.
//!
//! Each flow has a series of slots as long as there is room. When there is not, slots of one time become one, then the flows that matter
//! least are added to the series of their two hosts, then slots become twice as wide. Sums stay whole in any case.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use roce_model::{
    Address, Columns, FlowId, FlowKey, FlowRow, Service, Sink, SinkError, Span, TapId, TimelineColumns,
};

/// Slots of all series at once: 46 MB.
const MAX_SLOTS: usize = 1 << 19;
/// Flows that have a series at once.
const MAX_FLOWS: usize = 1 << 14;
/// Flows that keep their series when there is no room for all.
const FLOWS_KEPT: usize = 1 << 10;
/// Pairs of hosts with a series for their other flows; those of further pairs have one together.
const MAX_PAIRS: usize = 1 << 12;
/// Flows whose identity is known. The others are named when they close.
const MAX_KNOWN: usize = 1 << 17;
/// Flows that are known to be in the series of their hosts.
const MAX_FOLDED: usize = 1 << 20;
/// Flows with a series of their own at the end.
pub const MAX_CONNECTIONS: usize = 256;
/// Pairs of hosts with the sum of their other flows at the end.
pub const MAX_SUMS: usize = 256;

/// The traffic of a series.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Subject {
    /// One flow.
    Flow(FlowId),
    /// Other flows from one host to another.
    Pair(Address, Address),
    /// Flows of further pairs of hosts, and those whose hosts are not known.
    Others,
}

/// Counts of one slot of time.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its number since the epoch.
    pub at: u64,
    /// Payload.
    pub payload_bytes: u64,
    /// Data packets.
    pub data_packets: u64,
    /// Data packets with CE.
    pub ce: u64,
    /// CNPs that slow the flow.
    pub cnp: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// The longest time to an acknowledgement in ns.
    pub ack_time: Option<u64>,
    /// The most bytes in flight.
    pub in_flight: Option<u64>,
}

impl Slot {
    fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.payload_bytes, other.payload_bytes),
            (&mut self.data_packets, other.data_packets),
            (&mut self.ce, other.ce),
            (&mut self.cnp, other.cnp),
            (&mut self.retransmitted, other.retransmitted),
        ];
        for (sum, value) in sums {
            *sum = sum.saturating_add(value);
        }
        self.ack_time = self.ack_time.max(other.ack_time);
        self.in_flight = self.in_flight.max(other.in_flight);
    }

    const fn is_trouble(&self) -> bool {
        self.ce > 0 || self.cnp > 0 || self.retransmitted > 0
    }
}

/// Slots in the order of time, each of them once.
pub(crate) fn merged(mut slots: Vec<Slot>) -> Vec<Slot> {
    slots.sort_by_key(|slot| slot.at);
    slots.dedup_by(|later, earlier| {
        let is_same = later.at == earlier.at;
        if is_same {
            earlier.add(later);
        }
        is_same
    });
    slots
}

/// The slots of one subject at one tap.
#[derive(Clone, Default, Debug)]
pub struct Series {
    /// The slots, in the order of time.
    pub slots: Vec<Slot>,
    /// Payload of all of them.
    pub payload_bytes: u64,
    /// Flows that were added to it.
    pub flows: u64,
    /// The flow of the other direction.
    pub peer: Option<FlowId>,
    has_trouble: bool,
    /// No other tap saw more of it.
    is_counted: bool,
}

impl Series {
    fn push(&mut self, slot: Slot) -> usize {
        self.payload_bytes = self.payload_bytes.saturating_add(slot.payload_bytes);
        self.has_trouble |= slot.is_trouble();
        match self.slots.last_mut() {
            Some(last) if last.at == slot.at => {
                last.add(&slot);
                0
            }
            _ => {
                self.slots.push(slot);
                1
            }
        }
    }

    /// Takes all of another series, of which only sums can be added.
    fn absorb(&mut self, other: Self) {
        self.payload_bytes = self.payload_bytes.saturating_add(other.payload_bytes);
        self.has_trouble |= other.has_trouble;
        self.flows += other.flows.max(1);
        self.slots.extend(other.slots.into_iter().map(summable));
    }
}

/// A slot without what cannot be added up over flows.
fn summable(slot: Slot) -> Slot {
    Slot {
        ack_time: None,
        in_flight: None,
        ..slot
    }
}

type Key = (Subject, TapId);

/// A series that is shown.
#[derive(Debug)]
pub struct ShownSeries {
    /// The traffic.
    pub subject: Subject,
    /// The tap that counts it.
    pub tap: TapId,
    /// Absent: its packets do not say, or there were too many flows.
    pub identity: Option<FlowKey>,
    /// Its slots.
    pub series: Series,
}

impl ShownSeries {
    /// The two hosts of a series, where they are known.
    pub fn ends(&self) -> Option<(Address, Address)> {
        match self.subject {
            Subject::Pair(source, destination) => Some((source, destination)),
            Subject::Flow(_) => self.identity.map(|key| (key.source, key.destination)),
            Subject::Others => None,
        }
    }

    /// The name of a connection or a sum, as results print flows.
    pub fn name(&self) -> String {
        let flows = self.series.flows;
        match (self.subject, self.identity) {
            (Subject::Flow(_), Some(key)) => flow_name(&key),
            (Subject::Flow(flow), None) => format!("flow {flow}"),
            (Subject::Pair(source, destination), _) => format!("{source} > {destination}: other flows"),
            (Subject::Others, _) => format!("other flows ({flows})"),
        }
    }
}

fn flow_name(key: &FlowKey) -> String {
    let FlowKey {
        source, destination, ..
    } = key;
    let mut name = format!("{source} > {destination} QP {:#x}", key.destination_qpn.value());
    if key.source_qpn.value() > 0 {
        name = format!("{name} from QP {:#x}", key.source_qpn.value());
    }
    if key.service != Service::Rc {
        name = format!("{name} {}", key.service);
    }
    for (word, number) in [("VLAN", key.vlan.map(u32::from)), ("VNI", key.vni)] {
        if let Some(number) = number {
            name = format!("{name} {word} {number}");
        }
    }
    name
}

/// All series.
#[derive(Debug)]
pub struct SeriesStore {
    bin: u64,
    /// Slots are `bin << shift` wide.
    shift: u32,
    series: HashMap<Key, Series, RandomState>,
    known: HashMap<FlowId, FlowKey, RandomState>,
    folded: HashSet<(FlowId, TapId), RandomState>,
    slots: usize,
    flows: usize,
    pairs: usize,
    /// Series of other taps that are left out, because they are of the same traffic.
    pub(crate) seen_again: u64,
}

impl SeriesStore {
    /// Series of slots that begin as wide as `bin`.
    pub fn new(bin: Span) -> Self {
        Self {
            bin: bin.0.max(1),
            shift: 0,
            series: HashMap::default(),
            known: HashMap::default(),
            folded: HashSet::default(),
            slots: 0,
            flows: 0,
            pairs: 0,
            seen_again: 0,
        }
    }

    /// The width of a slot in ns.
    pub const fn width(&self) -> u64 {
        self.bin.saturating_mul(1 << self.shift)
    }

    /// Flows whose numbers are in the sum of their hosts' other flows.
    pub(crate) fn folded(&self) -> u64 {
        self.folded.len() as u64
    }

    fn push(&mut self, flow: FlowId, tap: TapId, slot: Slot) {
        let key = (Subject::Flow(flow), tap);
        if let Some(series) = self.series.get_mut(&key) {
            self.slots += series.push(slot);
            return;
        }
        if self.folded.contains(&(flow, tap)) {
            let pair = self.pair_of(flow, tap);
            let series = self.series.entry(pair).or_default();
            self.slots += series.push(summable(slot));
            return;
        }
        self.flows += 1;
        self.slots += self.series.entry(key).or_default().push(slot);
    }

    /// The series of a flow's hosts; it is counted where it is new.
    fn pair_of(&mut self, flow: FlowId, tap: TapId) -> Key {
        let pair = self.known.get(&flow).map(|key| (key.source, key.destination));
        let Some((source, destination)) = pair else {
            return (Subject::Others, tap);
        };
        let key = (Subject::Pair(source, destination), tap);
        if !self.series.contains_key(&key) {
            if self.pairs >= MAX_PAIRS {
                return (Subject::Others, tap);
            }
            self.pairs += 1;
        }
        key
    }

    fn make_room(&mut self) {
        if self.slots <= MAX_SLOTS && self.flows <= MAX_FLOWS {
            return;
        }
        self.merge();
        if self.slots > MAX_SLOTS / 2 || self.flows > MAX_FLOWS {
            let ranked = self.ranked(&HashSet::default());
            for key in ranked.into_iter().skip(FLOWS_KEPT) {
                self.fold(key);
            }
            self.merge();
        }
        while self.slots > MAX_SLOTS / 2 && self.shift < 40 {
            self.shift += 1;
            for series in self.series.values_mut() {
                series.slots.iter_mut().for_each(|slot| slot.at >>= 1);
            }
            self.merge();
        }
    }

    fn merge(&mut self) {
        for series in self.series.values_mut() {
            series.slots = merged(std::mem::take(&mut series.slots));
        }
        self.slots = self.series.values().map(|series| series.slots.len()).sum();
    }

    fn fold(&mut self, key: Key) {
        let (Subject::Flow(flow), tap) = key else {
            return;
        };
        let Some(series) = self.series.remove(&key) else {
            return;
        };
        self.flows -= 1;
        if self.folded.len() < MAX_FOLDED {
            self.folded.insert((flow, tap));
        }
        let pair = self.pair_of(flow, tap);
        self.series.entry(pair).or_default().absorb(series);
    }

    /// The flows' series: half of those that are kept by bytes, then those that `named` names, then those with trouble, then the others.
    fn ranked(&self, named: &HashSet<FlowId, RandomState>) -> Vec<Key> {
        let mut keys: Vec<Key> = self
            .series
            .keys()
            .filter(|key| flow_of(key.0).is_some())
            .copied()
            .collect();
        let bytes = |key: &Key| self.series.get(key).map_or(0, |series| series.payload_bytes);
        keys.sort_by_cached_key(|key| (Reverse(bytes(key)), *key));
        let largest = MAX_CONNECTIONS / 2;
        if let Some(rest) = keys.get_mut(largest..) {
            rest.sort_by_cached_key(|key| {
                let is_named = flow_of(key.0).is_some_and(|flow| named.contains(&flow));
                let has_trouble = self.series.get(key).is_some_and(|series| series.has_trouble);
                (!is_named, !has_trouble)
            });
        }
        keys
    }

    /// Takes out the series that are shown, of each subject that of the tap that counts it. Flows that `named` names have precedence
    /// before the smaller ones.
    pub fn take(&mut self, named: &HashSet<FlowId, RandomState>) -> Vec<ShownSeries> {
        self.choose_taps();
        for key in self.ranked(named).into_iter().skip(MAX_CONNECTIONS) {
            self.fold(key);
        }
        let mut all: Vec<(Key, Series)> = self.series.drain().collect();
        all.sort_by_cached_key(|(key, series)| (Reverse(series.payload_bytes), *key));
        let mut others = Series::default();
        let mut shown = Vec::new();
        let mut sums = 0;
        for ((subject, tap), mut series) in all {
            match subject {
                Subject::Flow(_) => {}
                Subject::Pair(..) if sums < MAX_SUMS => sums += 1,
                Subject::Pair(..) | Subject::Others => {
                    others.absorb(series);
                    continue;
                }
            }
            series.slots = merged(series.slots);
            let identity = flow_of(subject).and_then(|flow| self.known.get(&flow).copied());
            shown.push(ShownSeries {
                subject,
                tap,
                identity,
                series,
            });
        }
        if !others.slots.is_empty() {
            others.slots = merged(others.slots);
            shown.push(ShownSeries {
                subject: Subject::Others,
                tap: TapId::default(),
                identity: None,
                series: others,
            });
        }
        shown
    }

    /// Keeps one series of each subject: that of the tap that counts it, else that with the most bytes.
    fn choose_taps(&mut self) {
        let mut keys: Vec<Key> = self.series.keys().copied().collect();
        keys.sort_by_cached_key(|key| {
            let series = self.series.get(key);
            let is_counted = series.is_some_and(|series| series.is_counted);
            let bytes = series.map_or(0, |series| series.payload_bytes);
            (key.0, !is_counted, Reverse(bytes), key.1)
        });
        for pair in keys.windows(2) {
            if pair[0].0 == pair[1].0 && self.series.remove(&pair[1]).is_some() {
                self.seen_again += 1;
            }
        }
    }
}

/// Takes identities of new flows, rows of the timeline, and flows that are complete. The last rows of a flow may follow its end.
impl Sink for SeriesStore {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        *self = Self::new(bin);
        Ok(())
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        if self.known.len() + keys.len() > MAX_KNOWN {
            let series = &self.series;
            let taps: HashSet<FlowId, RandomState> = series.keys().filter_map(|key| flow_of(key.0)).collect();
            self.known.retain(|flow, _| taps.contains(flow));
        }
        let room = MAX_KNOWN.saturating_sub(self.known.len());
        self.known
            .extend(keys.iter().take(room).map(|key| (key.id(), *key)));
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            if self.folded.contains(&(row.flow_id, row.tap)) {
                continue;
            }
            let entry = self.series.entry((Subject::Flow(row.flow_id), row.tap));
            self.flows += usize::from(matches!(entry, Entry::Vacant(_)));
            let series = entry.or_default();
            series.is_counted |= row.counted;
            series.peer = series.peer.or(row.peer_flow_id);
            if let Some(key) = row.key() {
                self.known.insert(row.flow_id, key);
            }
        }
        self.make_room();
        Ok(())
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        for row in 0..rows.len() {
            let time = rows.time.at(row).copied().unwrap_or_default();
            let flow = FlowId(rows.flow_id.at(row).copied().unwrap_or_default());
            let tap = TapId(rows.tap.at(row).copied().unwrap_or_default());
            let slot = Slot {
                at: time / self.width(),
                payload_bytes: rows.payload_bytes.at(row).copied().unwrap_or_default(),
                data_packets: rows.data_packets.at(row).copied().unwrap_or_default().into(),
                ce: rows.ce.at(row).copied().unwrap_or_default().into(),
                cnp: rows.cnp.at(row).copied().unwrap_or_default().into(),
                retransmitted: rows
                    .retransmitted_packets
                    .at(row)
                    .copied()
                    .unwrap_or_default()
                    .into(),
                ack_time: rows.ack_rtt_max_ns.at(row).copied(),
                in_flight: rows.inflight_bytes_max.at(row).copied(),
            };
            self.push(flow, tap, slot);
        }
        self.make_room();
        Ok(())
    }
}

/// The flow of a series of one.
const fn flow_of(subject: Subject) -> Option<FlowId> {
    match subject {
        Subject::Flow(flow) => Some(flow),
        Subject::Pair(..) | Subject::Others => None,
    }
}
