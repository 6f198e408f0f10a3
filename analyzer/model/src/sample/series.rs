//! Readings of counters one after the other: how far each rose.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::counter::SampleKind;
use super::reading::Sample;
use super::row::SampleRow;
use super::start::SystemStart;
use crate::CounterChange;

/// Devices whose starts are kept; restarts of others are not noticed.
const MAX_STARTS: usize = 16_384;

/// Series that are remembered; samples of others have no change.
const MAX_SERIES: usize = 1 << 17;

/// One above the largest value of a 32-bit register.
const WRAP: f64 = 4_294_967_296.0;

/// The last reading of every series.
///
/// A counter that rose changed by the difference. One that fell wrapped, if it has 32 bits, fell from the upper half of its range
/// into the lower one, and can have counted as much in the time. Otherwise it was reset, and changed by what it counted since.
/// Where a counter of 32 bits can have counted a whole range more in the time, several changes fit, and the change is unknown.
/// Behind a [restart](Self::restart) of its device a counter began again: a value that did not fall says nothing, unless it was 0 before.
/// A gauge has no change. A series that is absent from a reading has no row; it goes on when it comes back.
#[derive(Debug, Default)]
pub struct SampleSeries {
    last: HashTable<LastReading>,
    state: RandomState,
    /// When devices started, by their last readings.
    starts: BTreeMap<Box<str>, SystemStart>,
}

/// The last reading of a series.
#[derive(Debug)]
struct LastReading {
    hash: u64,
    sample: Sample,
    /// It rose since the reading before.
    moved: bool,
    /// Its device restarted since.
    is_restarted: bool,
}

/// The parts of a sample that make a series: two series differ in one of them at least.
fn identity(sample: &Sample) -> impl Hash + Eq + '_ {
    let places = (&sample.node, &sample.object, sample.priority, &sample.queue);
    (sample.source, sample.counter, places, &sample.details)
}

/// Flags of a reading's samples: true if another one is about the same quantity and is larger, or as large and before it: some drivers
/// have two names for one quantity.
pub fn repeated(samples: &[Sample]) -> Vec<bool> {
    let mut flags = vec![false; samples.len()];
    let mut largest = HashMap::with_capacity(samples.len());
    for (at, sample) in samples.iter().enumerate() {
        let known = largest.entry(identity(sample)).or_insert(at);
        if *known == at {
            continue;
        }
        let is_larger = samples
            .get(*known)
            .is_some_and(|known| sample.value > known.value);
        let repeat = if is_larger {
            std::mem::replace(known, at)
        } else {
            at
        };
        if let Some(flag) = flags.get_mut(repeat) {
            *flag = true;
        }
    }
    flags
}

impl SampleSeries {
    /// Notes when a device started, as its next reading says. True if it [restarted](Self::restart) since the reading before.
    pub fn started(&mut self, node: &str, start: SystemStart) -> bool {
        let is_restart = start.is_restart_of(self.start_of(node));
        if is_restart {
            self.restart(node);
        }
        if let Some(known) = self.starts.get_mut(node) {
            *known = start;
        } else if self.starts.len() < MAX_STARTS {
            self.starts.insert(node.into(), start);
        }
        is_restart
    }

    /// Start of a device by its last reading, as far as it was noted.
    pub fn start_of(&self, node: &str) -> SystemStart {
        self.starts.get(node).copied().unwrap_or_default()
    }

    /// Notes that a device restarted since its last reading: its next reading is not compared as if its counters went on.
    pub fn restart(&mut self, node: &str) {
        for last in &mut self.last {
            last.is_restarted |= &*last.sample.node == node;
        }
    }

    /// The last value of a sample's series; `None`: it is new.
    pub fn last_value(&self, sample: &Sample) -> Option<f64> {
        let hash = self.state.hash_one(identity(sample));
        let is_same = |last: &LastReading| identity(&last.sample) == identity(sample);
        Some(self.last.find(hash, is_same)?.sample.value)
    }

    /// The row of a sample. `max_per_second` is the highest rate that the counted thing can have, in the counter's unit;
    /// `None`: unknown, then every fall from the upper half to the lower half of 32 bits counts as a wrap. Two readings of one time
    /// are recordings whose times nobody knows: then the rate says nothing.
    pub fn row(&mut self, sample: &Sample, max_per_second: Option<f64>) -> SampleRow {
        self.read(sample, max_per_second).0
    }

    /// The row of a sample as [`row`](Self::row) gives it, and what about it is worth an event: a reset, a link that went down, a
    /// pause storm, drops after a reading without any.
    pub fn read(
        &mut self,
        sample: &Sample,
        max_per_second: Option<f64>,
    ) -> (SampleRow, Option<CounterChange>) {
        let kind = sample.counter.kind();
        let hash = self.state.hash_one(identity(sample));
        let is_same = |last: &LastReading| identity(&last.sample) == identity(sample);
        let last = self.last.find_mut(hash, is_same);
        let interval = last.as_ref().map(|last| sample.time.since(last.sample.time));
        let mut row = SampleRow {
            time: sample.time,
            source: sample.source.name(),
            node: Cow::Owned(sample.node.as_ref().to_owned()),
            object: Cow::Owned(sample.object.as_ref().to_owned()),
            counter: sample.counter.name(),
            priority: sample.priority,
            queue: sample.queue.as_deref().map(|queue| Cow::Owned(queue.to_owned())),
            detail: (!sample.details.is_empty()).then(|| Cow::Owned(sample.details.join(","))),
            kind: kind.name(),
            value: sample.value,
            change: None,
            interval_ns: interval.map(|interval| interval.0),
            unit: sample.counter.unit(),
            reset: false,
        };
        let (mut worth, mut moved) = (None, false);
        if let (SampleKind::Cumulative, Some(last), Some(interval)) = (kind, &last, interval) {
            let seconds = interval.seconds();
            let max = max_per_second
                .filter(|_| seconds > 0.0)
                .map(|rate| rate * seconds);
            let (change, reset) = if last.is_restarted {
                change_behind_restart(last.sample.value, sample.value)
            } else {
                change(last.sample.value, sample.value, sample.bits, max)
            };
            row.change = change;
            row.reset = reset;
            // After a reading whose change is unknown nothing is known to have begun.
            moved = change.map_or(last.moved, |change| change > 0.0);
            worth = match sample.counter.event() {
                _ if reset => Some(CounterChange::Reset),
                Some(CounterChange::FirstDrop) if last.moved => None,
                event => event.filter(|_| change.is_some_and(|change| change > 0.0)),
            };
        }
        if let Some(last) = last {
            (last.sample.time, last.sample.value, last.moved) = (sample.time, sample.value, moved);
            last.is_restarted = false;
        } else if self.last.len() < MAX_SERIES {
            let sample = sample.clone();
            let reading = LastReading {
                hash,
                sample,
                moved,
                is_restarted: false,
            };
            self.last.insert_unique(hash, reading, |last| last.hash);
        }
        (row, worth)
    }
}

/// True if a counter of `bits` bits that fell from `before` to `after` wrapped; false if it was reset.
///
/// A counter of 32 bits that fell from the upper half of its range into the lower half wrapped, unless it would have counted more than
/// `max`, the largest possible change.
fn has_wrapped(before: f64, after: f64, bits: u8, max: Option<f64>) -> bool {
    let half = WRAP / 2.0;
    let is_candidate = bits == 32 && (half..WRAP).contains(&before) && after < half;
    is_candidate && max.is_none_or(|max| after + WRAP - before <= max)
}

/// By how much a counter rose, and whether it was reset: then it has counted `after` since. No change: it can have counted 2^32 more.
fn change(before: f64, after: f64, bits: u8, max: Option<f64>) -> (Option<f64>, bool) {
    let rise = after - before;
    // The least rise by which a register of 32 bits comes from the one value to the other.
    let least = if rise >= 0.0 { rise } else { rise + WRAP };
    if bits == 32 && before.max(after) < WRAP && max.is_some_and(|max| least + WRAP <= max) {
        (None, false)
    } else if rise >= 0.0 {
        (Some(rise), false)
    } else if has_wrapped(before, after, bits, max) {
        (Some(least), false)
    } else {
        (Some(after), true)
    }
}

/// By how much a counter rose whose device restarted, and whether it was reset. A value that did not fall may be of either start.
fn change_behind_restart(before: f64, after: f64) -> (Option<f64>, bool) {
    if before == 0.0 {
        (Some(after), false)
    } else {
        ((after < before).then_some(after), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, SampleSource, Time};

    fn sample(counter: Counter, seconds: u64, value: f64, bits: u8) -> Sample {
        Sample {
            time: Time(seconds * 1_000_000_000),
            source: SampleSource::Host,
            node: "a".into(),
            object: "mlx5_0:1".into(),
            counter,
            priority: None,
            queue: None,
            details: Vec::new(),
            value,
            bits,
        }
    }

    /// Change and reset of the second of two readings, one second apart.
    fn second(counter: Counter, before: f64, after: f64, bits: u8, max: Option<f64>) -> (Option<f64>, bool) {
        let mut series = SampleSeries::default();
        let first = series.row(&sample(counter, 1, before, bits), max);
        assert_eq!(
            (first.change, first.interval_ns, first.reset),
            (None, None, false)
        );
        let row = series.row(&sample(counter, 2, after, bits), max);
        assert_eq!(row.interval_ns, Some(1_000_000_000));
        (row.change, row.reset)
    }

    #[test]
    fn counters_rise_wrap_and_are_reset() {
        let counter = Counter::PortOutOfSequencePackets;
        assert_eq!(second(counter, 5.0, 9.0, 64, None), (Some(4.0), false));
        assert_eq!(second(counter, 5.0, 5.0, 64, None), (Some(0.0), false));
        // 2^32 - 4,294,967,290 = 6 up to the wrap, then 10.
        let (high, low) = (4_294_967_290.0, 10.0);
        assert_eq!(second(counter, high, low, 32, None), (Some(16.0), false));
        assert_eq!(second(counter, high, low, 64, None), (Some(10.0), true));
        // Only 15 are possible in that second: it did not wrap.
        assert_eq!(second(counter, high, low, 32, Some(15.0)), (Some(10.0), true));
        assert_eq!(second(counter, high, low, 32, Some(16.0)), (Some(16.0), false));
        // From the lower half: somebody cleared it.
        assert_eq!(second(counter, 1_000.0, 10.0, 32, None), (Some(10.0), true));
        // A register of 32 bits holds no such value: the width is not what was believed.
        assert_eq!(second(counter, 5e9, 10.0, 32, None), (Some(10.0), true));
    }

    #[test]
    fn a_change_is_unknown_where_the_register_can_have_wrapped_once_more() {
        let counter = Counter::PortRequestsReceived;
        // 400 Gbit/s in packets of 672 bits on the wire: 595,238,095 a second, and 2^32 of them in 7.2 s.
        let rate = 4e11 / 672.0;
        let after = |seconds, before, after, bits| {
            let mut series = SampleSeries::default();
            series.row(&sample(counter, 0, before, bits), Some(rate));
            let row = series.row(&sample(counter, seconds, after, bits), Some(rate));
            (row.change, row.reset)
        };
        // 7 s: at most 4,166,666,666. It rose by 2; it cannot have risen by 4,294,967,298.
        assert_eq!(after(7, 5.0, 7.0, 32), (Some(2.0), false));
        // 8 s: at most 4,761,904,761, which are 2^32 and 466,937,465 more: a rise of 2 may be one of 2^32 + 2.
        assert_eq!(after(8, 5.0, 7.0, 32), (None, false));
        assert_eq!(after(8, 0.0, 466_937_465.0, 32), (None, false));
        assert_eq!(after(8, 0.0, 466_937_466.0, 32), (Some(466_937_466.0), false));
        // It wrapped: by 16, or within 8 s by 2^32 + 16.
        let (high, low) = (4_294_967_290.0, 10.0);
        assert_eq!(after(7, high, low, 32), (Some(16.0), false));
        assert_eq!(after(8, high, low, 32), (None, false));
        // From the lower half to the lower half is a reset within 7 s; within 30 s it may have wrapped, once or several times.
        assert_eq!(after(7, 1_000.0, 10.0, 32), (Some(10.0), true));
        assert_eq!(after(30, 1_000.0, 10.0, 32), (None, false));
        // 64 bits last for centuries.
        assert_eq!(after(3600, 5.0, 7.0, 64), (Some(2.0), false));
        assert_eq!(after(3600, high, low, 64), (Some(10.0), true));
        // Two recordings without a time: the rate says nothing.
        assert_eq!(after(0, high, low, 32), (Some(16.0), false));
    }

    #[test]
    fn behind_a_restart_a_value_is_no_growth_of_the_one_before() {
        let counter = Counter::PortAckTimeouts;
        let behind = |before, after, node| {
            let mut series = SampleSeries::default();
            series.row(&sample(counter, 1, before, 32), None);
            series.restart(node);
            let row = series.row(&sample(counter, 2, after, 32), None);
            let next = series.row(&sample(counter, 3, after + 2.0, 32), None);
            assert_eq!((next.change, next.reset), (Some(2.0), false));
            (row.change, row.reset)
        };
        assert_eq!(behind(10.0, 7.0, "a"), (Some(7.0), true));
        // From the upper half to the lower one: it began again and did not wrap.
        assert_eq!(behind(3e9, 7.0, "a"), (Some(7.0), true));
        // 12 may be 2 more than 10, or 12 since the restart.
        assert_eq!(behind(10.0, 12.0, "a"), (None, true));
        assert_eq!(behind(0.0, 12.0, "a"), (Some(12.0), false));
        assert_eq!(behind(10.0, 12.0, "another host"), (Some(2.0), false));
    }

    #[test]
    fn an_unknown_change_is_no_event_and_begins_nothing() {
        let mut series = SampleSeries::default();
        let mut drops = |seconds, value| {
            let sample = sample(Counter::NetdevDiscards, seconds, value, 32);
            let (row, worth) = series.read(&sample, Some(1e9));
            (row.change, worth)
        };
        assert_eq!(drops(0, 5.0), (None, None));
        // 1e9 a second: 2^32 in 4.3 s.
        assert_eq!(drops(10, 6.0), (None, None));
        assert_eq!(drops(11, 7.0), (Some(1.0), Some(CounterChange::FirstDrop)));
        // Drops went on before what is unknown: those after it are not the first.
        assert_eq!(drops(21, 9.0), (None, None));
        assert_eq!(drops(22, 10.0), (Some(1.0), None));
    }

    #[test]
    fn a_gauge_that_falls_is_neither_reset_nor_a_change() {
        // bnxt_re's active_qps: 50 queue pairs, then 49.
        let counter = Counter::PortObjects;
        assert_eq!(second(counter, 50.0, 49.0, 64, None), (None, false));
    }

    #[test]
    fn resets_storms_downed_links_and_first_drops_are_worth_an_event() {
        let mut series = SampleSeries::default();
        let mut read = |counter, seconds, value| series.read(&sample(counter, seconds, value, 64), None).1;
        let drops = Counter::NetdevDiscards;
        // 5 drops of an unknown time are no event; nor is a reading without more.
        assert_eq!((read(drops, 1, 5.0), read(drops, 2, 5.0)), (None, None));
        assert_eq!(read(drops, 3, 6.0), Some(CounterChange::FirstDrop));
        assert_eq!(read(drops, 4, 9.0), None, "drops go on");
        assert_eq!(
            (read(drops, 5, 9.0), read(drops, 6, 10.0)),
            (None, Some(CounterChange::FirstDrop))
        );
        assert_eq!(read(drops, 7, 2.0), Some(CounterChange::Reset));
        for (counter, change) in [
            (Counter::PhyLinkDowns, CounterChange::LinkDown),
            (Counter::PauseStormEvents, CounterChange::Storm),
        ] {
            assert_eq!((read(counter, 1, 1.0), read(counter, 2, 1.0)), (None, None));
            assert_eq!(
                (read(counter, 3, 2.0), read(counter, 4, 3.0)),
                (Some(change), Some(change))
            );
        }
        // 4,294,967,290 and then 10 in 64 bits is a reset of any counter; of a gauge it is nothing.
        let cnps = Counter::PortCnpSent;
        assert_eq!(
            (read(cnps, 1, 4_294_967_290.0), read(cnps, 2, 10.0)),
            (None, Some(CounterChange::Reset))
        );
        assert_eq!(
            (
                read(Counter::PortObjects, 1, 50.0),
                read(Counter::PortObjects, 2, 49.0)
            ),
            (None, None)
        );
    }

    #[test]
    fn a_series_that_was_absent_goes_on() {
        let mut series = SampleSeries::default();
        let counter = Counter::PortCnpSent;
        series.row(&sample(counter, 1, 10.0, 64), None);
        series.row(&sample(Counter::PortCnpHandled, 2, 3.0, 64), None);
        let row = series.row(&sample(counter, 4, 16.0, 64), None);
        assert_eq!((row.change, row.interval_ns), (Some(6.0), Some(3_000_000_000)));
    }

    #[test]
    fn priorities_and_details_are_series_of_their_own() {
        let mut series = SampleSeries::default();
        let mut first = sample(Counter::PfcReceivedFrames, 1, 10.0, 64);
        first.priority = Some(3);
        series.row(&first, None);
        let other = Sample {
            priority: Some(4),
            ..first.clone()
        };
        assert_eq!(series.row(&other, None).change, None);
        let mut write = sample(Counter::PortRequestsReceived, 1, 1.0, 64);
        write.details = vec!["write".into()];
        let mut read = write.clone();
        read.details = vec!["read".into()];
        assert_eq!(series.row(&write, None).change, None);
        let row = series.row(&read, None);
        assert_eq!((row.change, row.detail.as_deref()), (None, Some("read")));
    }

    #[test]
    fn the_memory_has_a_bound() {
        let mut series = SampleSeries::default();
        for number in 0..MAX_SERIES + 10 {
            let mut sample = sample(Counter::PortCnpSent, 1, 1.0, 64);
            sample.object = format!("device{number}").into();
            series.row(&sample, None);
        }
        assert_eq!(series.last.len(), MAX_SERIES);
    }
}
