//! Bins of time: which rows are open, which can still change, which are done.

use std::collections::{HashMap, VecDeque};

use roce_model::{Active, EventRow, FlowId, Groups, Nanos, PauseFrame, TapId};

use crate::counts::Counts;
use crate::key::FlowSlot;
use crate::timing::latency::BinTimes;

/// Bins that stay changeable after time has passed them: at least so many, ...
const MIN_BINS: u64 = 4;
/// ... and at least as many as this time has, ...
const MIN_TIME: Nanos = Nanos(10_000_000);
/// ... but no more than this.
const MAX_BINS: u64 = 128;
/// Events that are looked through for one to be taken back.
const RECENT_EVENTS: usize = 1024;

/// One flow in one bin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) flow_id: FlowId,
    pub(crate) tap: TapId,
    pub(crate) epoch: u32,
    pub(crate) groups: Groups,
    /// The other direction is known.
    pub(crate) paired: bool,
    /// The place in [`Bin::times`], counted from 1; 0: none.
    pub(crate) times: u32,
    /// True if notifications for the flow would be known.
    pub(crate) knows_cnp: bool,
    /// The place in [`Bin::limits`], counted from 1; 0: none.
    pub(crate) limits: u32,
    /// From its first packet in the bin to its last one, in ns after the begin of the bin.
    pub(crate) active: Active,
    pub(crate) counts: Counts,
}

/// What held a flow back in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// How long it was paused, in ns.
    pub(crate) pause_ns: Option<u64>,
    /// What DCQCN allowed it, in bit/s.
    pub(crate) dcqcn_rate_bps: Option<u64>,
}

impl Row {
    /// The notifications that slowed the flow; `None` where none could have been charged to it.
    pub(crate) fn cnp(&self) -> Option<u32> {
        let cnp = self.counts.rare().cnp;
        (self.knows_cnp || cnp > 0).then_some(cnp)
    }

    /// True if the two are of one flow.
    fn is_of_flow_of(&self, other: &Self) -> bool {
        (self.flow_id, self.tap, self.epoch) == (other.flow_id, other.tap, other.epoch)
    }
}

/// A bin with its rows and with the events that became known in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bin {
    pub(crate) number: u64,
    pub(crate) rows: Vec<Row>,
    /// What answers took, of those rows that have some.
    pub(crate) times: Vec<BinTimes>,
    /// What held flows back, of those rows that have some.
    pub(crate) limits: Vec<Limits>,
    pub(crate) events: Vec<EventRow>,
    /// Pause frames of it.
    pub(crate) pauses: Vec<PauseFrame>,
    /// Where a flow's row is; made when first needed.
    places: Option<HashMap<(FlowId, TapId, u32), u32, foldhash::fast::RandomState>>,
    /// Flows with packets in this bin that are neither late nor sent again yet.
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

    /// The counts of the flow of `like`; a new row when it has none.
    fn counts(&mut self, like: &Row) -> &mut Counts {
        let rows = &mut self.rows;
        let places = self.places.get_or_insert_with(|| {
            (0..)
                .zip(rows.iter())
                .map(|(at, row)| ((row.flow_id, row.tap, row.epoch), at))
                .collect()
        });
        let at = *places
            .entry((like.flow_id, like.tap, like.epoch))
            .or_insert_with(|| {
                rows.push(Row {
                    times: 0,
                    limits: 0,
                    active: Active::ALL,
                    counts: Counts::default(),
                    ..like.clone()
                });
                u32::try_from(rows.len() - 1).unwrap_or(u32::MAX)
            });
        &mut rows[at as usize].counts
    }
}

/// The bins of a run.
#[derive(Debug)]
pub(crate) struct Bins {
    width: u64,
    window: u64,
    /// The bin that time is in: its number, its begin, and how wide it is (0: none was begun).
    current: u64,
    begin: u64,
    open: u64,
    /// Closed but changeable bins, in order.
    pending: VecDeque<Bin>,
    /// Flows with counts in the current bin, in the order of their first packet in it.
    pub(crate) active: Vec<FlowSlot>,
    /// When the first packet of each of them came; 0, or nothing at the end: not known.
    since: Vec<Nanos>,
    /// Rows of the current bin that closed before its end.
    pub(crate) rows: Vec<Row>,
    /// The times of those rows and of the others to come.
    times: Vec<BinTimes>,
    /// The same of what held flows back.
    limits: Vec<Limits>,
    /// What became known in the current bin.
    pub(crate) events: Vec<EventRow>,
    /// Pause frames of the current bin.
    pub(crate) pauses: Vec<PauseFrame>,
    /// Flows that became undecided in the current bin.
    undecided: Vec<FlowSlot>,
    /// Receivers of congestion notifications in the current bin.
    notified: Vec<usize>,
}

/// Where in time a packet falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In the current bin.
    Current,
    /// In a later one: the current one is to be closed first.
    Later(u64),
    /// In an earlier one: its stamp is out of order.
    Earlier(u64),
}

impl Bins {
    pub(crate) fn new(width: Nanos) -> Self {
        let width = width.0.max(1);
        Self {
            width,
            window: MIN_TIME.0.div_ceil(width).clamp(MIN_BINS, MAX_BINS),
            current: 0,
            begin: 0,
            open: 0,
            pending: VecDeque::new(),
            active: Vec::new(),
            since: Vec::new(),
            rows: Vec::new(),
            times: Vec::new(),
            limits: Vec::new(),
            events: Vec::new(),
            pauses: Vec::new(),
            undecided: Vec::new(),
            notified: Vec::new(),
        }
    }

    /// The number of the current bin.
    #[inline]
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// The end of the current bin.
    pub(crate) fn end(&self) -> Nanos {
        Nanos(self.time(self.current).0.saturating_add(self.width))
    }

    /// How wide a bin is.
    pub(crate) fn width(&self) -> Nanos {
        Nanos(self.width)
    }

    #[inline]
    pub(crate) fn place(&self, time: Nanos) -> Place {
        if time.0.wrapping_sub(self.begin) < self.open {
            return Place::Current;
        }
        let number = time.0 / self.width;
        if time.0 >= self.begin {
            Place::Later(number)
        } else {
            Place::Earlier(number)
        }
    }

    /// A flow becomes active in the current bin with a packet at `time`.
    #[inline]
    pub(crate) fn begin_flow(&mut self, flow: FlowSlot, time: Nanos) {
        self.since.resize(self.active.len(), Nanos(0));
        self.since.push(time);
        self.active.push(flow);
    }

    /// The current bin ends: when the first packet of each of [`Bins::active`] came.
    pub(crate) fn take_since(&mut self) -> Vec<Nanos> {
        core::mem::take(&mut self.since)
    }

    /// Gives the vector back.
    pub(crate) fn reuse_since(&mut self, mut since: Vec<Nanos>) {
        since.clear();
        self.since = since;
    }

    /// When a flow that has sent from `since` (0: not known) to `last` was active in the current bin.
    pub(crate) fn active_from(&self, since: Nanos, last: Nanos) -> Active {
        Active {
            first: since.0.saturating_sub(self.begin),
            last: if last.0 < self.begin {
                u64::MAX
            } else {
                last.0 - self.begin
            },
        }
    }

    /// Keeps the times of a row of the current bin; gives their place for [`Row::times`].
    pub(crate) fn add_times(&mut self, times: BinTimes) -> u32 {
        self.times.push(times);
        u32::try_from(self.times.len()).unwrap_or_default()
    }

    /// The same for what held it back and [`Row::limits`]; 0 for nothing.
    pub(crate) fn add_limits(&mut self, limits: Limits) -> u32 {
        if limits == Limits::default() {
            return 0;
        }
        self.limits.push(limits);
        u32::try_from(self.limits.len()).unwrap_or_default()
    }

    /// Ends the current bin with its rows and moves on to bin `number`.
    pub(crate) fn advance(&mut self, number: u64, rows: Vec<Row>) {
        let is_empty = rows.is_empty()
            && self.events.is_empty()
            && self.undecided.is_empty()
            && self.notified.is_empty();
        if !is_empty {
            // The next bin will have about as many.
            let room = Vec::with_capacity(self.times.len());
            let bin = Bin {
                number: self.current,
                rows,
                times: core::mem::replace(&mut self.times, room),
                limits: core::mem::take(&mut self.limits),
                events: core::mem::take(&mut self.events),
                pauses: core::mem::take(&mut self.pauses),
                places: None,
                undecided: core::mem::take(&mut self.undecided),
                notified: core::mem::take(&mut self.notified),
            };
            self.pending.push_back(bin);
        }
        self.current = number;
        self.begin = number.saturating_mul(self.width);
        self.open = self.width;
    }

    /// The counts of the flow of `like` in an earlier bin whose row of it, if it has one, is at `place`; `None` when it is not
    /// there.
    pub(crate) fn at(&mut self, number: u64, place: u32, like: &Row) -> Option<&mut Counts> {
        let bin = self
            .pending
            .binary_search_by_key(&number, |bin| bin.number)
            .ok()?;
        let row = self.pending[bin].rows.get_mut(place as usize)?;
        row.is_of_flow_of(like).then_some(&mut row.counts)
    }

    /// The counts of the flow of `like` in an earlier bin; `None` when that bin has been emitted.
    pub(crate) fn earlier(&mut self, number: u64, like: &Row) -> Option<&mut Counts> {
        let at = match self.pending.binary_search_by_key(&number, |bin| bin.number) {
            // Also when its time is over and what was undecided in it is being settled.
            Ok(at) => at,
            Err(_) if number + self.window < self.current => return None,
            Err(at) => {
                self.pending.insert(at, Bin::new(number));
                at
            }
        };
        self.pending.get_mut(at).map(|bin| bin.counts(like))
    }

    /// The oldest bin, once it can no longer change; with `all`, every bin.
    pub(crate) fn take_done(&mut self, all: bool) -> Option<Bin> {
        let oldest = self.pending.front()?;
        (all || oldest.number + self.window < self.current)
            .then(|| self.pending.pop_front())
            .flatten()
    }

    /// Flows that are undecided in the bin that [`Bins::take_done`] emits next.
    pub(crate) fn undecided_in_done(&mut self, all: bool) -> Vec<FlowSlot> {
        match self.pending.front_mut() {
            Some(oldest) if all || oldest.number + self.window < self.current => {
                core::mem::take(&mut oldest.undecided)
            }
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
            Err(_) if number + self.window < self.current => return false,
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
        let oldest = self.pending.front_mut()?;
        (all || oldest.number + self.window < self.current)
            .then(|| (oldest.number, core::mem::take(&mut oldest.notified)))
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

    /// A bin of its own for counts of a time that has been emitted.
    pub(crate) fn overdue(number: u64, row: Row) -> Bin {
        Bin {
            rows: vec![row],
            ..Bin::new(number)
        }
    }

    /// A bin of its own for the events of the current one; they have times of their own.
    pub(crate) fn overdue_events(&mut self) -> Bin {
        Bin {
            events: core::mem::take(&mut self.events),
            pauses: core::mem::take(&mut self.pauses),
            ..Bin::new(self.watermark().saturating_sub(1))
        }
    }

    /// Every bin before this one has been emitted.
    pub(crate) fn watermark(&self) -> u64 {
        self.current.saturating_sub(self.window)
    }

    /// The begin of bin `number`.
    pub(crate) fn time(&self, number: u64) -> Nanos {
        Nanos(number.saturating_mul(self.width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::slot;

    const MS: u64 = 1_000_000;

    fn row(flow: u64, packets: u32) -> Row {
        let counts = Counts {
            packets,
            ..Counts::default()
        };
        Row {
            flow_id: FlowId(flow),
            tap: TapId(0),
            epoch: 0,
            groups: Groups::default(),
            paired: false,
            times: 0,
            knows_cnp: false,
            counts,
            limits: 0,
            active: Active::ALL,
        }
    }

    fn bins() -> Bins {
        let mut bins = Bins::new(Nanos(MS));
        bins.advance(100, Vec::new());
        bins
    }

    #[test]
    fn times_fall_into_bins() {
        let bins = bins();
        assert_eq!(bins.place(Nanos(100 * MS)), Place::Current);
        assert_eq!(bins.place(Nanos(101 * MS - 1)), Place::Current);
        assert_eq!(bins.place(Nanos(101 * MS)), Place::Later(101));
        assert_eq!(bins.place(Nanos(100 * MS - 1)), Place::Earlier(99));
        assert_eq!(bins.time(100), Nanos(100 * MS));
        assert_eq!(
            Bins::new(Nanos(MS)).place(Nanos(0)),
            Place::Later(0),
            "time zero, too, begins a bin"
        );
    }

    #[test]
    fn a_bin_stays_changeable_for_ten_milliseconds() {
        let mut bins = bins();
        bins.advance(101, vec![row(1, 5)]);
        bins.advance(110, vec![row(1, 7)]);
        assert!(bins.take_done(false).is_none());
        assert_eq!(bins.watermark(), 100);
        bins.advance(111, Vec::new());
        assert_eq!(bins.watermark(), 101);
        let done = bins.take_done(false).unwrap();
        assert_eq!((done.number, done.rows), (100, vec![row(1, 5)]));
        assert!(bins.take_done(false).is_none(), "101 is next and not over");
        assert_eq!(bins.take_done(true).unwrap().number, 101);
        assert!(bins.take_done(true).is_none());
    }

    #[test]
    fn windows_have_a_least_and_a_most() {
        // 10 ms are no bin of 1 s, 4 are kept; of 1 us they are 10,000, 128 are kept.
        for (width, window) in [(1_000 * MS, 4), (MS, 10), (1_000, 128)] {
            let mut bins = Bins::new(Nanos(width));
            bins.advance(1_000, Vec::new());
            assert_eq!(bins.watermark(), 1_000 - window);
        }
    }

    #[test]
    fn counts_of_an_earlier_bin() {
        let mut bins = bins();
        bins.advance(105, vec![row(1, 5), row(2, 6)]);
        bins.earlier(100, &row(2, 0)).unwrap().packets += 1;
        bins.earlier(100, &row(3, 9)).unwrap().packets += 2;
        bins.earlier(103, &row(1, 9)).unwrap().packets += 3;
        assert!(bins.earlier(94, &row(1, 9)).is_none(), "11 bins ago");
        bins.earlier(95, &row(1, 9)).unwrap().packets += 4;
        let all: Vec<_> = core::iter::from_fn(|| bins.take_done(true))
            .map(|bin| (bin.number, bin.rows))
            .collect();
        let expected = [
            (95, vec![row(1, 4)]),
            (100, vec![row(1, 5), row(2, 7), row(3, 2)]),
            (103, vec![row(1, 3)]),
        ];
        assert_eq!(all, expected, "in order, no row twice");
    }

    #[test]
    fn undecided_flows_are_settled_before_their_bin_goes() {
        let mut bins = bins();
        bins.undecided_at(100, slot(7));
        bins.advance(101, vec![row(1, 5)]);
        bins.undecided_at(100, slot(8));
        bins.advance(111, Vec::new());
        assert_eq!(bins.undecided_in_done(false), [slot(7), slot(8)]);
        assert!(bins.undecided_in_done(false).is_empty(), "once");
        // Its time is over, and still the row can be corrected.
        bins.earlier(100, &row(1, 0)).unwrap().rare_mut().late += 1;
        assert_eq!(bins.take_done(false).unwrap().rows[0].counts.rare().late, 1);
        assert!(bins.earlier(100, &row(1, 0)).is_none(), "now it is gone");
    }
}
