//! Bins of time: which rows are open, which can still change, which are done.

use std::collections::{HashMap, VecDeque};

use roce_model::{Active, EventRow, FlowId, Groups, LinkAddresses, PauseFrame, Span, TapId, Time};
use roce_verdict::{BinRows, PairTraffic, counted_width};

use crate::key::FlowSlot;
use crate::pair_places::PairPlaces;
use crate::rows::{self, Limits, Row};
use crate::spare::Spare;
use crate::timing::latency::BinTimes;

/// Minimum number of bins that stay changeable after time has passed them.
const MIN_BINS: u64 = 4;
/// Minimum time whose bins stay changeable.
const MIN_TIME: Span = Span(10_000_000);
/// Maximum number of bins that stay changeable.
const MAX_BINS: u64 = 1024;
/// Closed rows that become columns together: they stay in the first cache level.
const ROW_BATCH: usize = 32;
/// Events that are looked through for one to be taken back.
const RECENT_EVENTS: usize = 1024;

/// A bin with its rows and with the events that became known in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bin {
    pub(crate) number: u64,
    pub(crate) rows: BinRows,
    pub(crate) events: Vec<EventRow>,
    /// Pause frames of it.
    pub(crate) pauses: Vec<PauseFrame>,
    /// Link addresses that became known in it.
    pub(crate) links: Vec<LinkAddresses>,
    /// Where a flow's row is; made when first needed.
    places: Option<HashMap<(FlowId, TapId, u32), u32, foldhash::fast::RandomState>>,
    late_pairs: LatePairs,
    /// Flows with packets in this bin that are neither late nor retransmitted yet.
    undecided: Vec<FlowSlot>,
    /// Receivers of congestion notifications in this bin, by their places.
    notified: Vec<usize>,
}

impl Bin {
    fn new(number: u64) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// Adds to the row of the flow of `row`; a new row when it has none.
    fn add(&mut self, time: Time, mut row: Row, groups: &Groups) {
        let rows = &mut self.rows;
        let columns = &rows.columns;
        let places = self.places.get_or_insert_with(|| {
            let keys = columns
                .flow_id
                .iter()
                .zip(columns.tap.iter())
                .zip(columns.epoch.iter());
            let keys = keys.map(|((flow, tap), epoch)| (flow.copied(), tap.copied(), epoch.copied()));
            keys.map(|(flow, tap, epoch)| {
                (
                    FlowId(flow.unwrap_or_default()),
                    TapId(tap.unwrap_or_default()),
                    epoch.unwrap_or_default(),
                )
            })
            .zip(0..)
            .collect()
        });
        let next = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let place = *places.entry((row.flow_id, row.tap, row.epoch)).or_insert(next);
        if place == next {
            row.pair = self.late_pairs.place(groups, row.tap, &mut rows.traffic);
            (row.times, row.limits, row.active) = (BinTimes::default(), Limits::default(), Active::ALL);
            rows::add(rows, time, &[row]);
        } else {
            rows::add_counts(rows, place as usize, &row.counts);
        }
    }
}

/// Pairs of rows that come late to a bin, by their hashes; made when first needed.
#[derive(Clone, Debug, Default)]
struct LatePairs(Option<HashMap<u64, u32, foldhash::fast::RandomState>>);

impl LatePairs {
    fn place(&mut self, groups: &Groups, tap: TapId, list: &mut Vec<PairTraffic>) -> u32 {
        let places = self
            .0
            .get_or_insert_with(|| list.iter().map(|traffic| traffic.groups.pair).zip(0..).collect());
        *places.entry(groups.pair).or_insert_with(|| {
            // No number of the shard: the run finds it by its hash.
            list.push(PairTraffic::new(*groups, tap, u32::MAX));
            u32::try_from(list.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

/// The order of the events of a bin. Where it says nothing, they keep theirs.
pub(crate) fn event_order(event: &EventRow) -> impl Ord + use<> {
    (event.time, event.tap, event.flow_id, event.psn)
}

/// The bins of a run.
#[derive(Debug)]
pub(crate) struct Bins {
    width: u64,
    /// Width of the bins of the timeline, which are made of these.
    shown: Span,
    window: u64,
    /// The bin that time is in: its number, its begin, and how wide it is (0: none was begun).
    current: u64,
    begin: u64,
    open: u64,
    /// Closed but changeable bins, in order.
    pending: VecDeque<Bin>,
    /// Bins before this one do not change any more, although their time is not over: too much was held.
    cut: u64,
    /// Flows with counts in the current bin, in the order of their first packet in it.
    pub(crate) active: Vec<FlowSlot>,
    /// When the first packet of each of them came; 0, or nothing at the end: not known.
    since: Vec<Time>,
    /// Rows of the current bin that have closed: the latest, and those before them.
    pub(crate) latest: Vec<Row>,
    rows: BinRows,
    pair_places: PairPlaces,
    /// Where room for rows comes from.
    pub(crate) spare: Spare,
    /// Events of the current bin.
    pub(crate) events: Vec<EventRow>,
    /// Pause frames of the current bin.
    pub(crate) pauses: Vec<PauseFrame>,
    /// Link addresses that became known in it.
    pub(crate) links: Vec<LinkAddresses>,
    /// Flows that became undecided in the current bin.
    undecided: Vec<FlowSlot>,
    /// Receivers of congestion notifications in the current bin.
    notified: Vec<usize>,
}

/// Where in time a packet falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BinPlace {
    /// In the current bin.
    Current,
    /// In a later one: the current one is to be closed first.
    Later(u64),
    /// In an earlier one: its stamp is out of order.
    Earlier(u64),
}

impl Bins {
    pub(crate) fn new(width: Span) -> Self {
        let width = width.0.max(1);
        Self {
            width,
            shown: Span(width),
            window: MIN_TIME.0.div_ceil(width).clamp(MIN_BINS, MAX_BINS),
            current: 0,
            begin: 0,
            open: 0,
            pending: VecDeque::new(),
            cut: 0,
            active: Vec::new(),
            since: Vec::new(),
            latest: Vec::with_capacity(ROW_BATCH),
            rows: BinRows::default(),
            pair_places: PairPlaces::default(),
            spare: Spare::default(),
            events: Vec::new(),
            pauses: Vec::new(),
            links: Vec::new(),
            undecided: Vec::new(),
            notified: Vec::new(),
        }
    }

    /// Bins for a timeline with bins of this width.
    pub(crate) fn for_timeline(shown: Span) -> Self {
        Self {
            shown,
            ..Self::new(counted_width(shown))
        }
    }

    /// How wide a bin of the timeline is.
    pub(crate) fn shown(&self) -> Span {
        self.shown
    }

    /// The number of the current bin.
    #[inline]
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// The end of the current bin.
    pub(crate) fn end(&self) -> Time {
        Time(self.time(self.current).0.saturating_add(self.width))
    }

    /// How wide a bin is.
    pub(crate) fn width(&self) -> Span {
        Span(self.width)
    }

    #[inline]
    pub(crate) fn place(&self, time: Time) -> BinPlace {
        if time.0.wrapping_sub(self.begin) < self.open {
            return BinPlace::Current;
        }
        let number = time.0 / self.width;
        if time.0 >= self.begin {
            BinPlace::Later(number)
        } else {
            BinPlace::Earlier(number)
        }
    }

    /// A flow becomes active in the current bin with a packet at `time`.
    #[inline]
    pub(crate) fn begin_flow(&mut self, flow: FlowSlot, time: Time) {
        self.since.resize(self.active.len(), Time(0));
        self.since.push(time);
        self.active.push(flow);
    }

    /// The current bin ends: when the first packet of each of [`Bins::active`] came.
    pub(crate) fn take_since(&mut self) -> Vec<Time> {
        core::mem::take(&mut self.since)
    }

    /// Gives the vector back.
    pub(crate) fn reuse_since(&mut self, mut since: Vec<Time>) {
        since.clear();
        self.since = since;
    }

    /// When a flow that has sent from `since` (0: not known) to `last` was active in the current bin.
    pub(crate) fn active_from(&self, since: Time, last: Time) -> Active {
        Active {
            first: since.0.saturating_sub(self.begin),
            last: if last.0 < self.begin {
                u64::MAX
            } else {
                last.0 - self.begin
            },
        }
    }

    /// Prefetches what [`Bins::place_row`] needs for the pair with this number.
    #[inline]
    pub(crate) fn prefetch_pair(&self, number: u32) {
        self.pair_places.prefetch(number);
    }

    /// A row of the current bin closes, which [`Bins::latest`] gets next: its place, and that of its pair. `pair`: the pair's number, as far
    /// as it is remembered.
    #[inline]
    pub(crate) fn place_row(&mut self, pair: &mut u32, groups: &Groups, tap: TapId) -> (u32, u32) {
        if self.latest.len() >= ROW_BATCH {
            self.store_latest();
        }
        let place = self.rows.len() + self.latest.len();
        let pair = self.pair_places.place(pair, groups, tap, &mut self.rows.traffic);
        (u32::try_from(place).unwrap_or(u32::MAX), pair)
    }

    fn store_latest(&mut self) {
        rows::add(&mut self.rows, Time(self.begin), &self.latest);
        self.latest.clear();
    }

    /// Ends the current bin and moves on to bin `number`.
    pub(crate) fn advance(&mut self, number: u64) {
        self.store_latest();
        let is_empty = self.rows.is_empty()
            && self.events.is_empty()
            && self.undecided.is_empty()
            && self.notified.is_empty();
        if !is_empty {
            // The next bin will have about as many.
            let mut room = self.spare.take().unwrap_or_default();
            room.reserve_like(&self.rows);
            let bin = Bin {
                rows: core::mem::replace(&mut self.rows, room),
                events: core::mem::take(&mut self.events),
                pauses: core::mem::take(&mut self.pauses),
                links: core::mem::take(&mut self.links),
                undecided: core::mem::take(&mut self.undecided),
                notified: core::mem::take(&mut self.notified),
                ..Bin::new(self.current)
            };
            self.pending.push_back(bin);
            self.pair_places.next_bin();
        }
        self.current = number;
        self.begin = number.saturating_mul(self.width);
        self.open = self.width;
    }

    /// Rows and events that wait, those of the current bin included.
    pub(crate) fn held(&self) -> usize {
        let pending = self.pending.iter().map(|bin| bin.rows.len() + bin.events.len());
        pending.sum::<usize>() + self.rows.len() + self.events.len()
    }

    /// Ends all bins, the current one included, so that they are emitted with what they have. What comes later for them makes
    /// rows of its own.
    pub(crate) fn cut(&mut self) {
        self.cut = self.current.saturating_add(1);
        self.advance(self.current);
    }

    /// Adds to the row of a flow in an earlier bin, if that is at `place`; says whether it was.
    pub(crate) fn add_at(&mut self, number: u64, place: u32, row: &Row) -> bool {
        let bin = self.pending.binary_search_by_key(&number, |bin| bin.number);
        let Some(bin) = bin.ok().and_then(|bin| self.pending.get_mut(bin)) else {
            return false;
        };
        let is_there = rows::is_of(&bin.rows, place as usize, row);
        if is_there {
            rows::add_counts(&mut bin.rows, place as usize, &row.counts);
        }
        is_there
    }

    /// Adds to the row of a flow in an earlier bin; once that has been emitted, a bin of its own comes back.
    pub(crate) fn add_earlier(&mut self, number: u64, row: Row, groups: &Groups) -> Option<Bin> {
        let time = self.time(number);
        let at = match self.pending.binary_search_by_key(&number, |bin| bin.number) {
            // Also when its time is over and what was undecided in it is being settled.
            Ok(at) => at,
            Err(_) if number < self.watermark() => {
                let mut overdue = Bin::new(number);
                overdue.add(time, row, groups);
                return Some(overdue);
            }
            Err(at) => {
                self.pending.insert(at, Bin::new(number));
                at
            }
        };
        if let Some(bin) = self.pending.get_mut(at) {
            bin.add(time, row, groups);
        }
        None
    }

    /// The oldest bin, once it can no longer change; with `all`, every bin.
    pub(crate) fn take_done(&mut self, all: bool) -> Option<Bin> {
        let oldest = self.pending.front()?;
        let is_done = all || oldest.number < self.watermark();
        let mut bin = is_done.then(|| self.pending.pop_front()).flatten()?;
        bin.events.sort_by_key(event_order);
        Some(bin)
    }

    /// Flows that are undecided in the bin that [`Bins::take_done`] emits next.
    pub(crate) fn undecided_in_done(&mut self, all: bool) -> Vec<FlowSlot> {
        let watermark = self.watermark();
        match self.pending.front_mut() {
            Some(oldest) if all || oldest.number < watermark => core::mem::take(&mut oldest.undecided),
            _ => Vec::new(),
        }
    }

    /// The flow at `flow` has undecided packets in bin `number`.
    pub(crate) fn undecided_at(&mut self, number: u64, flow: FlowSlot) {
        match self.pending.binary_search_by_key(&number, |bin| bin.number) {
            Ok(at) if number != self.current => self.pending[at].undecided.push(flow),
            _ => self.undecided.push(flow),
        }
    }

    /// A receiver got notifications in bin `number`, its first of this bin; `false` when that has been emitted.
    pub(crate) fn notified_at(&mut self, number: u64, receiver: usize) -> bool {
        if number >= self.current {
            self.notified.push(receiver);
            return true;
        }
        match self.pending.binary_search_by_key(&number, |bin| bin.number) {
            Ok(at) => self.pending[at].notified.push(receiver),
            Err(_) if number < self.watermark() => return false,
            Err(at) => {
                let mut bin = Bin::new(number);
                bin.notified.push(receiver);
                self.pending.insert(at, bin);
            }
        }
        true
    }

    /// The bin that [`Bins::take_done`] emits next, and who got notifications in it.
    pub(crate) fn notified_in_done(&mut self, all: bool) -> Option<(u64, Vec<usize>)> {
        let watermark = self.watermark();
        let oldest = self.pending.front_mut()?;
        (all || oldest.number < watermark).then(|| (oldest.number, core::mem::take(&mut oldest.notified)))
    }

    /// The latest events that have not been emitted, from the last one back.
    pub(crate) fn recent_events(&mut self) -> impl Iterator<Item = &mut EventRow> {
        let before = self
            .pending
            .iter_mut()
            .rev()
            .flat_map(|bin| bin.events.iter_mut().rev());
        self.events.iter_mut().rev().chain(before).take(RECENT_EVENTS)
    }

    /// Adds events to the bin that [`Bins::take_done`] emits next.
    pub(crate) fn add_to_oldest(&mut self, events: Vec<EventRow>) {
        if let Some(oldest) = self.pending.front_mut() {
            oldest.events.extend(events);
        }
    }

    /// A bin of its own for the events of the current one; they have times of their own.
    pub(crate) fn overdue_events(&mut self) -> Bin {
        Bin {
            events: core::mem::take(&mut self.events),
            pauses: core::mem::take(&mut self.pauses),
            links: core::mem::take(&mut self.links),
            ..Bin::new(self.watermark().saturating_sub(1))
        }
    }

    /// Every bin before this one has been emitted.
    pub(crate) fn watermark(&self) -> u64 {
        self.current.saturating_sub(self.window).max(self.cut)
    }

    /// The begin of bin `number`.
    pub(crate) fn time(&self, number: u64) -> Time {
        Time(number.saturating_mul(self.width))
    }
}

#[cfg(test)]
mod tests;
