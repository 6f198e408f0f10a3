//! The collector: sums of each row's changes before, during and after the command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roce_model::{Counter, Sample, SampleSeries, Span, SystemStart, Time};

use super::document::MovedInterval;
use super::judged::JudgedReadings;
use super::links::{self, Cable};
use super::row::{Kind, Level, RowKey, Unseen, row_of};
use crate::device::Reading;

/// Rows that are kept; more are counted.
const MAX_ROWS: usize = 16_384;
/// Neighbours and rows without numbers that are kept, each; more are left out.
const MAX_NOTES: usize = 16_384;
/// A quantity begins to move where its rate is more than this often its rate before the command.
const MOVED_FACTOR: f64 = 2.0;

/// Time relative to the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Before,
    During,
    After,
}

/// Changes of one phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) change: f64,
    pub(super) seconds: f64,
    pub(super) intervals: u64,
}

/// Changes of all series of a row between two readings.
#[derive(Clone, Copy, Debug)]
struct Interval {
    moved: MovedInterval,
    change: f64,
    /// One of the series began again in it: the sum is not known.
    is_unknown: bool,
}

/// Sums of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct RowSums {
    pub(super) phases: [Sum; 3],
    pub(super) moved: Option<MovedInterval>,
    pub(super) first: Option<f64>,
    pub(super) last: f64,
    pub(super) resets: u64,
    pub(super) last_reset: Option<Time>,
    open: Option<Interval>,
}

impl RowSums {
    /// Adds the change of one series; `None`: it began again.
    fn add(&mut self, moved: MovedInterval, change: Option<f64>, marks: &Marks) {
        if self.open.is_none_or(|open| open.moved.to != moved.to) {
            self.close(marks);
            self.open = Some(Interval {
                moved,
                change: 0.0,
                is_unknown: false,
            });
        }
        if let Some(open) = &mut self.open {
            open.moved.from = open.moved.from.min(moved.from);
            open.change += change.unwrap_or(0.0);
            open.is_unknown |= change.is_none();
        }
    }

    /// Adds the open interval to its phase.
    fn close(&mut self, marks: &Marks) {
        let open = self.open.take().filter(|open| !open.is_unknown);
        let Some(Interval { moved, change, .. }) = open else {
            return;
        };
        let phase = marks.phase(moved);
        let seconds = moved.to.since(moved.from).seconds();
        let before = self.phases[Phase::Before as usize];
        let usual = if before.seconds > 0.0 {
            before.change / before.seconds
        } else {
            0.0
        };
        if phase == Phase::During
            && self.moved.is_none()
            && change > 0.0
            && change > usual * seconds * MOVED_FACTOR
        {
            self.moved = Some(moved);
        }
        let sum = &mut self.phases[phase as usize];
        sum.change += change;
        sum.seconds += seconds;
        sum.intervals += 1;
        self.first.get_or_insert(change);
        self.last = change;
    }

    /// The sums with the open interval.
    pub(super) fn closed(&self, marks: &Marks) -> Self {
        let mut sums = self.clone();
        sums.close(marks);
        sums
    }
}

/// Start and end of the command.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    pub(super) has_command: bool,
    pub(super) start: Option<Time>,
    pub(super) end: Option<Time>,
}

impl Marks {
    /// An interval that has a part of the command's time belongs to it.
    pub(super) fn phase(&self, moved: MovedInterval) -> Phase {
        if !self.has_command {
            return Phase::During;
        }
        if self.start.is_none_or(|start| moved.to <= start) {
            Phase::Before
        } else if self.end.is_some_and(|end| moved.from >= end) {
            Phase::After
        } else {
            Phase::During
        }
    }
}

/// Takes readings in the order of their times, and keeps sums.
#[derive(Debug)]
pub struct PauseCollector {
    pub(super) every: Span,
    pub(super) marks: Marks,
    pub(super) first: Option<Time>,
    pub(super) last: Option<Time>,
    pub(super) rows: BTreeMap<RowKey, RowSums>,
    /// Rows by priority, which count where there is no row of the sum.
    pub(super) by_priority: BTreeMap<RowKey, RowSums>,
    pub(super) unseen: BTreeSet<Unseen>,
    pub(super) cables: BTreeSet<Cable>,
    /// Node and adapter by the digits of their MAC addresses.
    pub(super) addresses: BTreeMap<String, (String, String)>,
    pub(super) left_out: BTreeSet<RowKey>,
    /// Hosts and switches that restarted between two readings.
    pub(super) restarts: BTreeSet<Arc<str>>,
    pub(super) judged: JudgedReadings,
    series: SampleSeries,
}

impl PauseCollector {
    /// A collector for a time without a command. `every` is the wanted time between two readings.
    pub fn new(every: Span) -> Self {
        Self {
            every,
            marks: Marks::default(),
            first: None,
            last: None,
            rows: BTreeMap::new(),
            by_priority: BTreeMap::new(),
            unseen: BTreeSet::new(),
            cables: BTreeSet::new(),
            addresses: BTreeMap::new(),
            left_out: BTreeSet::new(),
            restarts: BTreeSet::new(),
            judged: JudgedReadings::default(),
            series: SampleSeries::default(),
        }
    }

    /// A collector for a time with a command: what is read up to [`mark_start`](Self::mark_start) is before it.
    pub fn with_command(every: Span) -> Self {
        let mut new = Self::new(every);
        new.marks.has_command = true;
        new
    }

    /// True if anything was read twice.
    pub fn has_changes(&self) -> bool {
        let mut all = self.rows.values().chain(self.by_priority.values());
        all.any(|sums| sums.open.is_some() || sums.first.is_some() || sums.resets > 0)
            || self.judged.has_changes()
    }

    /// A collector of the time that begins with the last readings of this one. It keeps what is known of cables, addresses and absent rows.
    #[must_use]
    pub fn next(self) -> Self {
        Self {
            first: self.last,
            unseen: self.unseen,
            cables: self.cables,
            addresses: self.addresses,
            judged: self.judged.next(),
            series: self.series,
            ..Self::new(self.every)
        }
    }

    /// The command starts. To be called before readings of a later time are added.
    pub fn mark_start(&mut self, time: Time) {
        self.close();
        self.judged.begin();
        self.marks.start = Some(time);
    }

    /// The command ended at `time`, which is not that of a reading behind it: the interval from that reading on is behind the command.
    /// To be called before readings of a later time are added.
    pub fn mark_end(&mut self, time: Time) {
        self.close();
        self.judged.end();
        self.marks.end = Some(time);
    }

    /// Adds open intervals to their phases.
    fn close(&mut self) {
        for sums in self.rows.values_mut().chain(self.by_priority.values_mut()) {
            sums.close(&self.marks);
        }
    }

    /// Notes when a host or switch started. To be called before its samples are added: after a restart its counters began again.
    pub fn note_start(&mut self, node: &Arc<str>, start: SystemStart) {
        if self.series.started(node, start) {
            self.restarts.insert(Arc::clone(node));
        }
    }

    /// Adds a reading of one host. Samples of other quantities are left out.
    pub fn add_samples(&mut self, samples: &[Sample]) {
        if let Some(first) = samples.first() {
            let start = self.series.start_of(&first.node);
            self.judged.add(&first.node, samples, start);
        }
        for sample in samples {
            self.add(sample);
        }
    }

    /// Adds a reading of a switch or hypervisor, with its neighbours, and with adapters whose driver counts no pauses.
    pub fn add_reading(&mut self, reading: &Reading) {
        self.note_start(&reading.node, SystemStart::from_samples(&reading.samples));
        self.add_samples(&reading.samples);
        for neighbor in &reading.neighbors {
            if self.cables.len() < MAX_NOTES {
                self.cables.insert(Cable {
                    node: reading.node.to_string(),
                    interface: neighbor.interface.clone(),
                    neighbor: neighbor.node.clone(),
                    port: neighbor.port.clone(),
                });
            }
        }
        let rows = reading.samples.iter().filter_map(row_of);
        let paused = rows.filter(|(key, _)| key.kind.family().is_some());
        let paused: BTreeSet<Arc<str>> = paused.map(|(key, _)| key.object).collect();
        let links = reading
            .of(Counter::HypervisorNicUp)
            .filter(|sample| sample.value < 0.5);
        let down: BTreeSet<&str> = links.map(|sample| &*sample.object).collect();
        for adapter in &reading.adapters {
            self.add_address(&reading.node, &adapter.name, &adapter.mac);
            if paused.contains(adapter.name.as_str()) {
                continue;
            }
            let name = format!("{}: ", adapter.name);
            let mut said = reading
                .problems
                .iter()
                .filter_map(|problem| problem.text.strip_prefix(&name));
            self.unseen(Unseen {
                level: Level::Hypervisor,
                node: reading.node.to_string(),
                object: adapter.name.clone(),
                kind: Kind::PfcReceived,
                why: if down.contains(adapter.name.as_str()) {
                    "its link is down".to_owned()
                } else {
                    said.next().unwrap_or("its driver counts no pauses").to_owned()
                },
            });
        }
    }

    /// Notes the MAC address of an adapter: a switch may know its neighbour by it.
    pub fn add_address(&mut self, node: &str, object: &str, mac: &str) {
        if let Some(mac) = links::digits_of(mac).filter(|_| self.addresses.len() < MAX_NOTES) {
            self.addresses.insert(mac, (node.to_owned(), object.to_owned()));
        }
    }

    /// Notes a row that a level cannot fill, such as PFC of a virtual function. It is shown where no reading has it.
    pub fn unseen(&mut self, unseen: Unseen) {
        if self.unseen.len() < MAX_NOTES {
            self.unseen.insert(unseen);
        }
    }

    fn add(&mut self, sample: &Sample) {
        self.first = Some(self.first.map_or(sample.time, |first| first.min(sample.time)));
        self.last = self.last.max(Some(sample.time));
        let Some((key, is_by_priority)) = row_of(sample) else {
            return;
        };
        let rows = if is_by_priority {
            &mut self.by_priority
        } else {
            &mut self.rows
        };
        if !rows.contains_key(&key) && rows.len() >= MAX_ROWS {
            if self.left_out.len() < MAX_NOTES {
                self.left_out.insert(key);
            }
            return;
        }
        let sums = rows.entry(key).or_default();
        let row = self.series.row(sample, None);
        let Some(interval) = row.interval_ns else {
            return;
        };
        let moved = MovedInterval {
            from: Time(sample.time.0.saturating_sub(interval)),
            to: sample.time,
        };
        if row.reset {
            sums.resets += 1;
            sums.last_reset = Some(sample.time);
            sums.add(moved, None, &self.marks);
        } else if row.change.is_some() {
            sums.add(moved, row.change, &self.marks);
        }
    }
}
