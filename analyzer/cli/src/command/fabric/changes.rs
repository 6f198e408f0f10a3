//! Changes of a device's counters from the first reading to the last, and the values of its gauges.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use roce_model::{Counter, Sample, SampleKind, SampleRow, SampleSeries, Span, SystemStart, Time};
use roce_report::samples::SampleSummary;
use roce_switches::device::Reading;

/// Series of one device; of more, the rest is not shown.
const MAX_SERIES: usize = 1 << 17;

/// Identity of a value: an object's counter, queue, priority and details.
type Key = (
    Arc<str>,
    Counter,
    Option<Arc<str>>,
    Option<u8>,
    Vec<Cow<'static, str>>,
);

/// A series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    /// Its last value.
    pub(super) last: f64,
    /// The number of the reading that it is of.
    reading: u64,
    /// By how much it rose; `None`: there was one reading, it is a gauge, it began again, or one of the changes is not known.
    pub(super) change: Option<f64>,
    /// Time between its first and its last reading.
    pub(super) time: Span,
    is_unknown: bool,
}

/// Everything read of one device.
pub(super) struct Device {
    pub(super) kind: &'static str,
    pub(super) transport: &'static str,
    pub(super) first: Option<Reading>,
    pub(super) last: Reading,
    pub(super) changes: Changes,
}

/// Everything that a device counted.
#[derive(Default)]
pub(super) struct Changes {
    series: SampleSeries,
    values: BTreeMap<Key, Value>,
    summary: SampleSummary,
    rows: Vec<SampleRow>,
    readings: u64,
    /// Time of the first reading.
    begun: Option<Time>,
    ended: Time,
    is_up: bool,
}

impl Changes {
    /// Adds a reading; readings come in order of time.
    pub(super) fn add(&mut self, reading: &Reading) {
        self.readings += 1;
        self.begun = self.begun.or(Some(reading.time));
        self.ended = reading.time;
        self.rows.clear();
        self.is_up = false;
        let start = SystemStart::from_samples(&reading.samples);
        self.series.started(&reading.node, start);
        for sample in &reading.samples {
            let row = self.series.row(sample, None);
            self.summary.add(&row);
            if matches!(sample.counter, Counter::SwitchUp | Counter::HypervisorUp) {
                self.is_up = sample.value > 0.0;
            }
            self.keep(sample, &row);
            self.rows.push(row);
        }
    }

    fn keep(&mut self, sample: &Sample, row: &SampleRow) {
        let key = (
            Arc::clone(&sample.object),
            sample.counter,
            sample.queue.clone(),
            sample.priority,
            sample.details.clone(),
        );
        let new = Value {
            last: sample.value,
            reading: self.readings,
            change: row.change,
            time: row.interval_ns.map_or(Span(0), Span),
            is_unknown: false,
        };
        if let Some(value) = self.values.get_mut(&key) {
            let is_counter = sample.counter.kind() == SampleKind::Cumulative;
            let is_unknown = value.is_unknown || is_counter && (row.change.is_none() || row.reset);
            let change = row.change.map(|change| change + value.change.unwrap_or(0.0));
            *value = Value {
                change: change.filter(|_| !is_unknown),
                time: value.time + new.time,
                is_unknown,
                ..new
            };
        } else if self.values.len() < MAX_SERIES {
            self.values.insert(key, new);
        }
    }

    /// Rows of the last reading.
    pub(super) fn last_rows(&self) -> &[SampleRow] {
        &self.rows
    }

    /// All readings, for the table of counters.
    pub(super) fn summary(&self) -> &SampleSummary {
        &self.summary
    }

    /// True if the device answered the last reading.
    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Number of readings.
    pub(super) fn readings(&self) -> u64 {
        self.readings
    }

    /// From the first reading to the last.
    pub(super) fn time(&self) -> Span {
        self.ended.since(self.begun.unwrap_or(self.ended))
    }

    /// The series of a sample.
    pub(super) fn of(&self, sample: &Sample) -> Option<&Value> {
        let key = (
            Arc::clone(&sample.object),
            sample.counter,
            sample.queue.clone(),
            sample.priority,
            sample.details.clone(),
        );
        self.values.get(&key)
    }

    /// The shown value of an object's counter, all its priorities, queues and details together: the change of a counter where there are
    /// two readings, else the value. `None`: it is not known.
    pub(super) fn sum(&self, object: &str, counter: Counter) -> Option<f64> {
        self.added(object, counter, |_| true)
    }

    /// As [`sum`](Self::sum), of one queue.
    pub(super) fn of_queue(&self, object: &str, queue: &str, counter: Counter) -> Option<f64> {
        self.added(object, counter, |(_, _, of, ..)| of.as_deref() == Some(queue))
    }

    /// As [`sum`](Self::sum), of a counter that has its own sum under the detail `all`: that one, or what there is of its parts.
    pub(super) fn of_all(&self, object: &str, counter: Counter) -> Option<f64> {
        let is_all = |(.., details): &Key| details.iter().any(|detail| detail == "all");
        self.added(object, counter, is_all)
            .or_else(|| self.sum(object, counter))
    }

    fn added(&self, object: &str, counter: Counter, is_wanted: impl Fn(&Key) -> bool) -> Option<f64> {
        let object: Arc<str> = object.into();
        let first = (Arc::clone(&object), counter, None, None, Vec::new());
        let values = self
            .values
            .range(first..)
            .take_while(|(key, _)| key.0 == object && key.1 == counter)
            .filter(|(key, value)| is_wanted(key) && value.reading == self.readings);
        let is_counter = counter.kind() == SampleKind::Cumulative;
        let shown = values.map(|(_, value)| {
            if is_counter && self.readings > 1 {
                value.change
            } else {
                Some(value.last)
            }
        });
        // One part that is not known makes the sum unknown.
        shown.reduce(|sum, value| Some(sum? + value?)).flatten()
    }

    /// Objects that have a value, in the order of their names: numbers in them count as numbers.
    pub(super) fn objects(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.values.keys().map(|key| key.0.as_ref()).collect();
        names.dedup();
        names.retain(|name| !name.is_empty());
        names.sort_by_cached_key(|name| natural(name));
        names
    }

    /// Queues of objects, in order.
    pub(super) fn queues(&self) -> Vec<(&str, &str)> {
        let queues = self.values.keys();
        let mut names: Vec<(&str, &str)> = queues
            .filter_map(|key| Some((key.0.as_ref(), key.2.as_deref()?)))
            .collect();
        names.sort_by_cached_key(|(object, queue)| (natural(object), natural(queue)));
        names.dedup();
        names
    }
}

/// A name in parts, so that `Ethernet1/2` comes before `Ethernet1/10`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = vec![(String::new(), 0)];
    let mut is_number = false;
    for character in name.chars() {
        let digit = character.to_digit(10);
        if digit.is_none() && is_number {
            parts.push((String::new(), 0));
        }
        is_number = digit.is_some();
        if let Some((text, number)) = parts.last_mut() {
            match digit {
                Some(digit) => *number = number.saturating_mul(10).saturating_add(u64::from(digit)),
                None => text.push(character),
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_model::SampleSource;

    fn reading(seconds: u64, values: &[(&str, Option<u8>, f64)]) -> Reading {
        let time = Time(seconds * 1_000_000_000);
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", time);
        for (object, priority, value) in values {
            let sample = reading.push(Counter::SwitchPriorityPfcReceivedFrames, object, *value);
            sample.priority = *priority;
        }
        reading
    }

    #[test]
    fn sums_are_of_whole_names_and_of_what_is_known() {
        let counter = Counter::SwitchPriorityPfcReceivedFrames;
        let mut changes = Changes::default();
        changes.add(&reading(
            1,
            &[
                ("Ethernet1/1", Some(3), 7.0),
                ("Ethernet1/1", Some(4), 5.0),
                ("Ethernet1/10", Some(3), 1.0),
            ],
        ));
        assert_eq!(changes.sum("Ethernet1/1", counter), Some(12.0));
        assert_eq!(changes.sum("Ethernet1/2", counter), None);
        assert!(!changes.is_up());
        // 4 more, and 1 more; the other interface is absent.
        changes.add(&reading(
            3,
            &[("Ethernet1/1", Some(3), 11.0), ("Ethernet1/1", Some(4), 6.0)],
        ));
        assert_eq!(changes.sum("Ethernet1/1", counter), Some(5.0));
        assert_eq!(changes.sum("Ethernet1/10", counter), None);
        assert_eq!(changes.time(), Span(2_000_000_000));
        // A priority that appears now has no change: the sum is not known.
        changes.add(&reading(
            4,
            &[
                ("Ethernet1/1", Some(3), 11.0),
                ("Ethernet1/1", Some(4), 6.0),
                ("Ethernet1/1", Some(5), 9.0),
            ],
        ));
        assert_eq!(changes.sum("Ethernet1/1", counter), None);
    }

    // `Total receive errors: 5` and `Receive CRC errors: 4` are five errors.
    #[test]
    fn a_total_is_not_added_to_its_parts() {
        let counter = Counter::HypervisorErrors;
        let mut reading = Reading::new(SampleSource::Hypervisor, "esxi1", Time(1));
        for (object, direction, reason, value) in [
            ("vmnic5", "received", "all", 5.0),
            ("vmnic5", "received", "crc", 4.0),
            ("vmnic5", "transmitted", "all", 2.0),
            ("vmnic6", "received", "crc", 4.0),
            ("vmnic6", "received", "fifo", 1.0),
        ] {
            reading.push(counter, object, value).details = vec![direction.into(), reason.into()];
        }
        let mut changes = Changes::default();
        changes.add(&reading);
        let all = ["vmnic5", "vmnic6", "vmnic7"].map(|object| changes.of_all(object, counter));
        assert_eq!(all, [Some(7.0), Some(5.0), None]);
    }

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut changes = Changes::default();
        let names = ["ii1/1/1", "Ethernet1/10", "Ethernet1/2", "Ethernet1/1/3"];
        changes.add(&reading(1, &names.map(|name| (name, None, 1.0))));
        assert_eq!(
            changes.objects(),
            ["Ethernet1/1/3", "Ethernet1/2", "Ethernet1/10", "ii1/1/1"]
        );
    }
}
