//! Readings of counters, folded into one line for each series.

use std::borrow::Cow;
use std::collections::BTreeMap;

use roce_model::{SampleKind, SampleRow, Time};

/// Series that a summary keeps; of more, rows are left out and counted.
const MAX_SERIES: usize = 1 << 17;

/// Identity of a series. Series are shown in its order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) node: Cow<'static, str>,
    pub(crate) object: Cow<'static, str>,
    pub(crate) counter: &'static str,
    pub(crate) priority: Option<u8>,
    pub(crate) queue: Option<Cow<'static, str>>,
    pub(crate) detail: Option<Cow<'static, str>>,
}

/// A series from its first reading to its last.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) kind: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) first: (Time, f64),
    pub(crate) last: (Time, f64),
    /// Sum of the changes; `None` for gauges, where there was one reading, and where one of the changes is unknown.
    pub(crate) change: Option<f64>,
    /// Readings whose change is unknown: the register can have wrapped more than once, or the device restarted.
    pub(crate) unknown: u64,
    pub(crate) resets: u64,
    pub(crate) readings: u64,
}

impl Series {
    /// Change per second; `None` for gauges, where no time passed, and where it began again: nobody knows when.
    pub(crate) fn rate(&self) -> Option<f64> {
        let seconds = self.last.0.since(self.first.0).seconds();
        (seconds > 0.0 && self.resets == 0).then(|| self.change.map(|change| change / seconds))?
    }

    /// True if something happened: a counter rose or was reset, or a gauge has another value.
    pub(crate) fn has_moved(&self) -> bool {
        self.resets > 0
            || self.unknown > 0
            || self
                .change
                .map_or_else(|| (self.last.1 - self.first.1).abs() > 0.0, |change| change > 0.0)
    }
}

/// Readings of counters, folded into one line each.
#[derive(Debug, Default)]
pub struct SampleSummary {
    pub(crate) series: BTreeMap<Key, Series>,
    /// Rows of series that found no room.
    pub(crate) left_out: u64,
}

impl SampleSummary {
    /// Adds a row of a reading; rows come in order of time.
    pub fn add(&mut self, row: &SampleRow) {
        let key = Key {
            node: row.node.clone(),
            object: row.object.clone(),
            counter: row.counter,
            priority: row.priority,
            queue: row.queue.clone(),
            detail: row.detail.clone(),
        };
        let reading = (row.time, row.value);
        if let Some(series) = self.series.get_mut(&key) {
            series.last = reading;
            series.readings += 1;
            series.resets += u64::from(row.reset);
            let is_counter = row.kind == SampleKind::Cumulative.name() && row.interval_ns.is_some();
            series.unknown += u64::from(is_counter && row.change.is_none());
            series.change = match (series.change, row.change) {
                _ if series.unknown > 0 => None,
                (Some(before), Some(change)) => Some(before + change),
                (before, change) => before.or(change),
            };
        } else if self.series.len() < MAX_SERIES {
            self.series.insert(
                key,
                Series {
                    kind: row.kind,
                    unit: row.unit,
                    first: reading,
                    last: reading,
                    change: row.change,
                    unknown: 0,
                    resets: u64::from(row.reset),
                    readings: 1,
                },
            );
        } else {
            self.left_out += 1;
        }
    }
}
