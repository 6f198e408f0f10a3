//! Gathers what is drawn over time while rows come, in bounded memory.
//!
//! Of each tap and destination there is a series of everything; of flows as long as there is room. When there is not, slots
//! become twice as wide down to [`FEWEST_SLOTS`] of them, then the flows that matter least lose theirs. What they did
//! is in the tap's series, so that sums stay whole.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState;
use roce_model::{Address, EventRow, FlowId, FlowKey, Nanos, TapId, TimelineColumns};

use super::axis::Axis;
use super::series::{Drawn, Series, metric, of_event};

/// Values that are kept of all flows at once: 16 bytes each.
const MOST_VALUES: usize = 4 << 20;
/// Flows with a series of their own at once.
const MOST_SERIES: usize = 1 << 14;
/// Slots on the whole axis at most: few flows are shown bin by bin for long.
const MOST_SLOTS: u64 = 1 << 14;
/// No slots are merged for want of room once there are only so many: a screen shows no more.
const FEWEST_SLOTS: u64 = 1 << 11;
/// Destinations whose senders are counted.
const MOST_DESTINATIONS: usize = 1 << 12;
/// The flows with the most bytes that stay whatever happens to the others.
const LARGEST: usize = 64;
/// Values and flows that go into the page.
const PAGE_VALUES: usize = 3 << 19;
const PAGE_SERIES: usize = 1 << 12;

/// A flow's series are kept per tap: the same traffic seen twice is two.
type Key = (FlowId, TapId);

/// What is kept by slot.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) axis: Axis,
    pub(super) taps: BTreeMap<TapId, Series>,
    destination_of: HashMap<FlowId, Address, RandomState>,
    destinations: HashMap<(TapId, Address), usize, RandomState>,
    towards: Vec<Series>,
    places: HashMap<Key, usize, RandomState>,
    keys: Vec<Key>,
    series: Vec<Series>,
    /// Of each flow with a series: where that of its destination stands.
    goes_to: Vec<Option<usize>>,
    /// Flows that lost their series once: a later one is not whole.
    dropped: HashSet<Key, RandomState>,
    values: usize,
}

/// A flow's series as it goes into the page.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    pub(super) flow: FlowId,
    pub(super) tap: TapId,
    /// Its beginning is not in it.
    pub(super) partial: bool,
    pub(super) series: &'a Series,
}

impl Gathered {
    pub(super) fn new(bin: Nanos) -> Self {
        Self {
            axis: Axis::new(bin),
            taps: BTreeMap::new(),
            destination_of: HashMap::default(),
            destinations: HashMap::default(),
            towards: Vec::new(),
            places: HashMap::default(),
            keys: Vec::new(),
            series: Vec::new(),
            goes_to: Vec::new(),
            dropped: HashSet::default(),
            values: 0,
        }
    }

    /// Where flows go.
    pub(super) fn opened(&mut self, keys: &[FlowKey]) {
        let flows = keys.iter().map(|key| (key.id(), key.destination));
        self.destination_of.extend(flows);
    }

    /// Takes rows of the timeline.
    pub(super) fn timeline(&mut self, rows: &TimelineColumns) {
        rows.time
            .iter()
            .flatten()
            .for_each(|time| self.axis.include(*time));
        self.fit();
        let (senders, drawn) = (metric("senders_to_destination"), Drawn::of(rows));
        let who = rows.time.iter().zip(rows.flow_id.iter()).zip(rows.tap.iter());
        for (row, ((time, flow), tap)) in who.enumerate() {
            let slot = self.axis.slot(time.copied().unwrap_or_default());
            let tap = TapId(tap.copied().unwrap_or_default());
            let place = self.place((FlowId(flow.copied().unwrap_or_default()), tap));
            let of_flow = &mut self.series[place];
            let of_tap = self.taps.entry(tap).or_default();
            let of_destination = self.goes_to[place].map(|place| &mut self.towards[place]);
            let mut at_once = 0;
            drawn.of_row(row, |metric, value| {
                self.values += of_flow.add(metric, slot, value);
                of_tap.add(metric, slot, value);
                if Some(metric) == senders {
                    at_once = value;
                }
            });
            if let (Some(series), Some(metric)) = (of_destination, senders)
                && at_once > 0
            {
                series.add(metric, slot, at_once);
            }
        }
        self.make_room();
    }

    /// Takes what an event tells of losses and notifications.
    pub(super) fn event(&mut self, event: &EventRow) {
        self.axis.include(event.time.0);
        self.fit();
        let Some((metric, value)) = of_event(event) else {
            return;
        };
        let slot = self.axis.slot(event.time.0);
        let tap = self.taps.entry(event.tap).or_default();
        tap.add(metric, slot, value);
        if let Some(flow) = event.flow_id {
            let place = self.place((flow, event.tap));
            self.values += self.series[place].add(metric, slot, value);
        }
    }

    fn place(&mut self, key: Key) -> usize {
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let place = self.series.len();
        self.places.insert(key, place);
        self.keys.push(key);
        self.series.push(Series::default());
        let goes_to = self.destination_of.get(&key.0).copied();
        let goes_to = goes_to.and_then(|destination| self.destination((key.1, destination)));
        self.goes_to.push(goes_to);
        place
    }

    fn destination(&mut self, key: (TapId, Address)) -> Option<usize> {
        if let Some(place) = self.destinations.get(&key) {
            return Some(*place);
        }
        let place = self.towards.len();
        if place >= MOST_DESTINATIONS {
            return None;
        }
        self.destinations.insert(key, place);
        self.towards.push(Series::default());
        Some(place)
    }

    fn fit(&mut self) {
        while self.axis.slots() > MOST_SLOTS {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.axis.widen();
        let all = self.series.iter_mut().chain(self.taps.values_mut());
        all.chain(&mut self.towards).for_each(Series::widen);
        self.values = self.series.iter().map(Series::len).sum();
    }

    fn make_room(&mut self) {
        while self.values > MOST_VALUES && self.axis.slots() > FEWEST_SLOTS {
            self.widen();
        }
        if self.values <= MOST_VALUES && self.series.len() <= MOST_SERIES {
            return;
        }
        // Half of the room, so that it is some time until the next ones go.
        let (mut values, mut stay) = (0, Vec::new());
        for place in self.ranked(&HashSet::new()) {
            values += self.series[place].len();
            if stay.len() > LARGEST && (values > MOST_VALUES / 2 || stay.len() >= MOST_SERIES / 2) {
                self.dropped.insert(self.keys[place]);
            } else {
                stay.push(place);
            }
        }
        stay.sort_unstable();
        self.series = stay
            .iter()
            .map(|place| std::mem::take(&mut self.series[*place]))
            .collect();
        self.keys = stay.iter().map(|place| self.keys[*place]).collect();
        self.goes_to = stay.iter().map(|place| self.goes_to[*place]).collect();
        let keys = self.keys.iter().enumerate();
        self.places = keys.map(|(place, key)| (*key, place)).collect();
        self.values = self.series.iter().map(Series::len).sum();
    }

    /// The flows' places: the largest, then those that `named` names, then those with signs of trouble, each by bytes.
    fn ranked(&self, named: &HashSet<FlowId>) -> Vec<usize> {
        let of = |place: usize| {
            let series = &self.series[place];
            (series.sum("wire_bytes"), self.keys[place])
        };
        let by_bytes = |places: &mut [usize]| {
            places.sort_by_cached_key(|place| {
                let (bytes, (flow, tap)) = of(*place);
                (std::cmp::Reverse(bytes), flow, tap)
            });
        };
        let mut places: Vec<usize> = (0..self.series.len()).collect();
        by_bytes(&mut places);
        let rest = places.get_mut(LARGEST..).unwrap_or_default();
        // The order by bytes stays among equals.
        rest.sort_by_cached_key(|place| {
            let is_named = named.contains(&self.keys[*place].0);
            (!is_named, !is_troubled(&self.series[*place]))
        });
        places
    }

    /// The flows whose series go into the page, the most interesting first.
    pub(super) fn kept(&self, named: &HashSet<FlowId>) -> Vec<Kept<'_>> {
        let mut values = 0;
        let mut ranked = self.ranked(named);
        ranked.truncate(PAGE_SERIES);
        let within = ranked.into_iter().take_while(|place| {
            values += self.series[*place].len();
            values <= PAGE_VALUES
        });
        let kept = within.map(|place| {
            let (flow, tap) = self.keys[place];
            Kept {
                flow,
                tap,
                partial: self.dropped.contains(&self.keys[place]),
                series: &self.series[place],
            }
        });
        kept.collect()
    }

    /// Destinations by how many senders they had at once at most, the most first.
    pub(super) fn crowded(&self, most: usize) -> Vec<(TapId, Address, &Series)> {
        let mut all: Vec<_> = self
            .destinations
            .iter()
            .map(|((tap, destination), place)| (*tap, *destination, &self.towards[*place]))
            .filter(|(_, _, series)| series.sum("senders_to_destination") > 0)
            .collect();
        all.sort_by_cached_key(|(tap, destination, series)| {
            let degree = series.sum("senders_to_destination");
            (std::cmp::Reverse(degree), *tap, destination.to_string())
        });
        all.truncate(most);
        all
    }
}

/// Whether anything of a flow points to congestion.
fn is_troubled(series: &Series) -> bool {
    [
        "ce",
        "cnp",
        "retransmitted_packets",
        "missing",
        "lost_downstream",
        "naks",
        "rnr_naks",
    ]
    .iter()
    .any(|name| series.sum(name) > 0)
}

#[cfg(test)]
mod tests {
    use roce_model::{Columns, TimelineRow};

    use super::*;

    fn row(bin: u64, flow: u64, bytes: u64) -> TimelineRow {
        TimelineRow {
            time: Nanos(bin * 1_000),
            flow_id: FlowId(flow),
            packets: 1,
            wire_bytes: bytes,
            senders_to_destination: 1,
            ..TimelineRow::default()
        }
    }

    fn gather(rows: impl IntoIterator<Item = TimelineRow>) -> Gathered {
        let mut gathered = Gathered::new(Nanos(1_000));
        let mut columns = TimelineColumns::default();
        for row in rows {
            columns.push(&row);
            if columns.len() == 8_192 {
                gathered.timeline(&columns);
                columns.clear();
            }
        }
        gathered.timeline(&columns);
        gathered
    }

    #[test]
    fn a_long_run_has_few_slots_and_the_same_sums() {
        // 100,000 bins: 16,384 slots hold them 8 by 8.
        let gathered = gather((0..100_000).map(|bin| row(bin, bin % 2, 3)));
        assert_eq!(gathered.axis.width(), Nanos(8_000));
        assert_eq!(gathered.axis.slots(), 12_500);
        assert_eq!(gathered.taps[&TapId(0)].sum("wire_bytes"), 300_000);
        let kept = gathered.kept(&HashSet::new());
        let sums: Vec<u64> = kept.iter().map(|kept| kept.series.sum("wire_bytes")).collect();
        assert_eq!(sums, [150_000, 150_000]);
        assert!(kept.iter().all(|kept| !kept.partial));
    }

    #[test]
    fn what_finds_no_room_stays_in_the_sum_of_its_tap() {
        // Twice as many flows as have room, the later ones larger; each has a byte more than the one before.
        let flows = u64::try_from(MOST_SERIES).unwrap() * 2;
        let gathered = gather((0..flows).map(|flow| row(0, flow, flow + 1)));
        assert!(gathered.series.len() <= MOST_SERIES);
        // 1 + 2 + ... + n.
        assert_eq!(
            gathered.taps[&TapId(0)].sum("wire_bytes"),
            flows * (flows + 1) / 2
        );
        let named = HashSet::from([FlowId(flows - 1_500)]);
        let kept = gathered.kept(&named);
        assert_eq!(kept.len(), PAGE_SERIES);
        assert_eq!(kept[0].flow, FlowId(flows - 1));
        // The 64 largest, then the one that was named.
        assert_eq!(kept[64].flow, FlowId(flows - 1_500));
        assert_eq!(kept[65].flow, FlowId(flows - 65));
    }

    #[test]
    fn a_flow_that_lost_its_series_says_so() {
        let flows = u64::try_from(MOST_SERIES).unwrap() * 2;
        let all = (0..flows).map(|flow| row(0, flow, flow + 1));
        let gathered = gather(all.chain([row(1, 0, 1 << 40)]));
        let kept = gathered.kept(&HashSet::new());
        assert_eq!((kept[0].flow, kept[0].partial), (FlowId(0), true));
        assert!(!kept[1].partial);
    }
}
