//! Series that are drawn over time: for each flow, for each tap and for each destination, the values by
//! slot.

use std::collections::BTreeMap;

use roce_model::{Columns, Data, EventKind, EventRow, TimelineColumns, Values};

use super::leb128::{self, MAX_BYTES};

/// Rule by which the values of several bins, or of several flows, become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// They add up.
    Sum,
    /// The largest counts.
    Most,
    /// Their mean: kept as their sum, with their number in the metric that follows.
    Mean,
    /// The number that belongs to the mean before; not a metric of its own.
    Number,
}

/// Kept metrics: columns of `timeline` under their names, then metrics from events, named as in `flows`
/// and `totals`.
pub(super) const METRICS: [(&str, Rule); 35] = [
    ("packets", Rule::Sum),
    ("wire_bytes", Rule::Sum),
    ("payload_bytes", Rule::Sum),
    ("data_packets", Rule::Sum),
    ("not_ect", Rule::Sum),
    ("ce", Rule::Sum),
    ("cnp", Rule::Sum),
    ("retransmitted_packets", Rule::Sum),
    ("retransmitted_bytes", Rule::Sum),
    ("missing", Rule::Sum),
    ("late", Rule::Sum),
    ("lost_downstream", Rule::Sum),
    ("naks", Rule::Sum),
    ("rnr_naks", Rule::Sum),
    ("acks", Rule::Sum),
    ("messages", Rule::Sum),
    ("pause_ns", Rule::Sum),
    ("ack_rtt_max_ns", Rule::Most),
    ("message_time_max_ns", Rule::Most),
    ("inflight_bytes_max", Rule::Most),
    ("senders_to_destination", Rule::Most),
    ("ack_rtt_p50_ns", Rule::Mean),
    ("", Rule::Number),
    ("message_time_p50_ns", Rule::Mean),
    ("", Rule::Number),
    ("dcqcn_rate_bps", Rule::Mean),
    ("", Rule::Number),
    ("reordered", Rule::Sum),
    ("network_lost", Rule::Sum),
    ("capture_lost", Rule::Sum),
    ("ambiguous", Rule::Sum),
    ("unresolved", Rule::Sum),
    ("response_network_lost", Rule::Sum),
    ("response_capture_lost", Rule::Sum),
    ("cnp_unattributed", Rule::Sum),
];

/// The place of a metric in [`METRICS`].
pub(super) fn metric(name: &str) -> Option<usize> {
    METRICS.iter().position(|(known, _)| *known == name)
}

/// Metric and amount that an event adds to the series of its flow and tap.
pub(super) fn event_metric(event: &EventRow) -> Option<(usize, u64)> {
    let name = match (event.kind, event.detail.as_deref().unwrap_or_default()) {
        (EventKind::Hole, class) => class,
        (EventKind::LostAgain, _) => "network_lost",
        (EventKind::ResponseHole, "network_lost") => "response_network_lost",
        (EventKind::ResponseHole, "capture_lost") => "response_capture_lost",
        (EventKind::Cnp, _) if event.flow_id.is_none() => "cnp_unattributed",
        _ => return None,
    };
    Some((metric(name)?, event.value.unwrap_or(1)))
}

/// Metrics of one row of the timeline, or of several rows together: a bit for each, and their values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    present: u64,
    values: [u64; METRICS.len()],
}

impl Default for Row {
    fn default() -> Self {
        Self {
            present: 0,
            values: [0; METRICS.len()],
        }
    }
}

impl Row {
    /// A single value.
    pub(super) fn single(metric: usize, value: u64) -> Self {
        let mut row = Self::default();
        row.set(metric, value);
        row
    }

    /// The value of a metric; 0 when it has none.
    pub(super) fn value(&self, metric: usize) -> u64 {
        if self.present & 1 << metric == 0 {
            0
        } else {
            self.values[metric]
        }
    }

    /// True if it has one of these metrics, a bit for each.
    pub(super) fn has(&self, metrics: u64) -> bool {
        self.present & metrics != 0
    }

    fn set(&mut self, metric: usize, value: u64) {
        self.values[metric] = value;
        self.present |= 1 << metric;
    }

    /// The metrics that have values, in their order.
    fn metrics(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.present;
        std::iter::from_fn(move || {
            let metric = left.trailing_zeros() as usize;
            (left != 0).then(|| {
                left &= left - 1;
                metric
            })
        })
    }

    /// Takes another row of the same slot.
    fn add(&mut self, other: &Self) {
        for metric in other.metrics() {
            self.combine(metric, other.values[metric]);
        }
    }

    fn combine(&mut self, metric: usize, value: u64) {
        let kept = self.value(metric);
        self.set(metric, combine(METRICS[metric].1, kept, value));
    }
}

/// Room to write a row in.
#[derive(Debug)]
pub(super) struct Room([u8; MAX_BYTES * (2 + METRICS.len())]);

impl Default for Room {
    fn default() -> Self {
        Self([0; MAX_BYTES * (2 + METRICS.len())])
    }
}

/// The rows of one flow, tap or destination, as they came. Each row has its distance in bins from the
/// one before it, the metrics in which it differs, and their values. A flow's row is written to one
/// place in memory, and takes two or three bytes a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    bytes: Vec<u8>,
    /// Bin of the last row.
    bin: u64,
    present: u64,
    /// Metrics that any row had, also those before it was cleared.
    ever: u64,
    /// A row came for the bin of the one before it, or for an earlier one.
    has_late_rows: bool,
    values: usize,
}

impl Series {
    /// Takes a row of a bin.
    pub(super) fn push(&mut self, bin: u64, row: &Row, room: &mut Room) {
        // Rows come in the order of time, but for few; the sign is the last bit.
        let distance = bin.wrapping_sub(self.bin).cast_signed();
        let distance = ((distance << 1) ^ (distance >> 63)).cast_unsigned();
        let mut length = leb128::write(&mut room.0, 0, distance);
        length = leb128::write(&mut room.0, length, row.present ^ self.present);
        for metric in row.metrics() {
            length = leb128::write(&mut room.0, length, row.values[metric]);
        }
        self.has_late_rows |= bin <= self.bin && !self.bytes.is_empty();
        self.bytes.extend_from_slice(&room.0[..length]);
        (self.bin, self.present) = (bin, row.present);
        self.values += row.present.count_ones() as usize;
    }

    /// Notes which metrics a row has, and has the processor fetch where it goes.
    #[inline]
    pub(super) fn touch(&mut self, row: &Row) {
        self.ever |= row.present;
        std::hint::black_box(self.bytes.last());
    }

    /// Forgets the rows, but not which metrics they had.
    pub(super) fn clear(&mut self) {
        *self = Self {
            ever: self.ever,
            ..Self::default()
        };
    }

    /// The rows, each with its bin.
    fn rows(&self) -> impl Iterator<Item = (u64, Row)> {
        let mut bytes = self.bytes.iter();
        let mut next = move || {
            let (mut value, mut shift) = (0, 0);
            for byte in bytes.by_ref() {
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    return Some(value);
                }
            }
            None
        };
        let (mut bin, mut row) = (0_u64, Row::default());
        std::iter::from_fn(move || {
            let distance = next()?;
            bin = bin.wrapping_add((distance >> 1) ^ 0_u64.wrapping_sub(distance & 1));
            row.present ^= next()?;
            for metric in row.metrics() {
                row.values[metric] = next()?;
            }
            Some((bin, row))
        })
    }

    /// The series with one row for each slot of `1 << shift` bins, in the order of time.
    pub(super) fn merged(&self, shift: u32) -> Self {
        let (mut slots, mut room) = (Slots::new(shift), Room::default());
        if self.has_late_rows {
            let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
            for (bin, row) in self.rows() {
                rows.entry(bin >> shift).or_default().add(&row);
            }
            for (slot, row) in rows {
                slots.push(slot << shift, &row, &mut room);
            }
        } else {
            self.rows()
                .for_each(|(bin, row)| slots.push(bin, &row, &mut room));
        }
        slots.close(&mut room);
        slots.kept.bytes.shrink_to_fit();
        slots.kept.ever = self.ever;
        slots.kept
    }

    /// True if [`merged`](Self::merged) would change nothing.
    pub(super) fn is_merged(&self, shift: u32) -> bool {
        shift == 0 && !self.has_late_rows
    }

    /// Number of kept values.
    pub(super) fn len(&self) -> usize {
        self.values
    }

    /// The room that they take, in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// True if any row had one of these metrics, a bit for each.
    pub(super) fn has(&self, metrics: u64) -> bool {
        self.ever & metrics != 0
    }

    /// Each metric that has values, with those of each slot of `1 << shift` bins in order; means are divided.
    pub(super) fn metrics(&self, shift: u32) -> impl Iterator<Item = (usize, Vec<(u64, u64)>)> {
        let mut all: [Vec<(u64, u64)>; METRICS.len()] = std::array::from_fn(|_| Vec::new());
        for (bin, row) in self.rows() {
            for metric in row.metrics() {
                insert(
                    &mut all[metric],
                    METRICS[metric].1,
                    bin >> shift,
                    row.values[metric],
                );
            }
        }
        for (metric, (_, rule)) in METRICS.iter().enumerate() {
            if *rule == Rule::Mean {
                let numbers = std::mem::take(&mut all[metric + 1]);
                for ((_, sum), (_, number)) in all[metric].iter_mut().zip(numbers) {
                    *sum /= number.max(1);
                }
            }
        }
        all.into_iter()
            .enumerate()
            .filter(|(_, values)| !values.is_empty())
    }
}

fn insert(values: &mut Vec<(u64, u64)>, rule: Rule, slot: u64, value: u64) {
    let place = match values.last() {
        None => 0,
        Some((last, _)) if *last < slot => values.len(),
        Some(_) => values.partition_point(|(other, _)| *other < slot),
    };
    match values.get_mut(place) {
        Some((other, kept)) if *other == slot => *kept = combine(rule, *kept, value),
        _ => values.insert(place, (slot, value)),
    }
}

/// Rows that come for the same slot become one before they are kept: those of all flows of a tap, or towards a destination.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    shift: u32,
    slot: u64,
    open: Row,
    kept: Series,
}

impl Slots {
    /// Nothing yet; slots are of `1 << shift` bins.
    pub(super) fn new(shift: u32) -> Self {
        Self {
            shift,
            slot: 0,
            open: Row::default(),
            kept: Series::default(),
        }
    }

    /// Takes a row.
    pub(super) fn push(&mut self, bin: u64, row: &Row, room: &mut Room) {
        self.open(bin, room).add(row);
    }

    /// Takes a single value.
    pub(super) fn add(&mut self, bin: u64, metric: usize, value: u64, room: &mut Room) {
        self.open(bin, room).combine(metric, value);
    }

    /// The open row for the slot of a bin.
    fn open(&mut self, bin: u64, room: &mut Room) -> &mut Row {
        let slot = bin >> self.shift;
        if slot != self.slot {
            self.close(room);
            self.slot = slot;
        }
        &mut self.open
    }

    fn close(&mut self, room: &mut Room) {
        if self.open.present != 0 {
            self.kept.push(self.slot << self.shift, &self.open, room);
            self.open.present = 0;
        }
    }

    /// Makes slots wider.
    pub(super) fn widen(&mut self, shift: u32) {
        self.close(&mut Room::default());
        *self = Self {
            kept: self.kept.merged(shift),
            ..Self::new(shift)
        };
    }

    /// The room that it takes, in bytes.
    pub(super) fn size(&self) -> usize {
        self.kept.size()
    }

    /// All that came.
    pub(super) fn whole(&self) -> Series {
        let mut whole = self.clone();
        whole.close(&mut Room::default());
        whole.kept
    }
}

/// Two values of one slot; 0 changes nothing.
fn combine(rule: Rule, kept: u64, value: u64) -> u64 {
    match rule {
        Rule::Most => kept.max(value),
        Rule::Sum | Rule::Mean | Rule::Number => kept.saturating_add(value),
    }
}

/// Columns of counts or times; what is drawn is nothing else.
#[derive(Clone, Copy)]
enum Counts<'a> {
    U32(&'a Values<u32>),
    U64(&'a Values<u64>),
}

/// Metrics of the timeline's rows.
pub(super) struct DrawnMetrics<'a>(Vec<(usize, Counts<'a>)>);

impl<'a> DrawnMetrics<'a> {
    /// The columns that are drawn, those without any value left out.
    pub(super) fn new(rows: &'a TimelineColumns) -> Self {
        let mut columns = Vec::new();
        rows.for_each(|column, data| {
            let values = match data {
                Data::U32(values) if !values.all_null() => Counts::U32(values),
                Data::U64(values) if !values.all_null() => Counts::U64(values),
                _ => return,
            };
            columns.extend(metric(column.name).map(|metric| (metric, values)));
        });
        Self(columns)
    }

    /// Values of the rows from `first` on that are neither zero nor absent: column after column, as in
    /// memory.
    pub(super) fn rows(&self, first: usize, rows: &mut [Row]) {
        for row in &mut *rows {
            row.present = 0;
        }
        for (metric, values) in &self.0 {
            match values {
                Counts::U32(values) => draw(values, *metric, first, rows),
                Counts::U64(values) => draw(values, *metric, first, rows),
            }
        }
    }
}

fn draw<T: Copy + Default + Into<u64>>(values: &Values<T>, metric: usize, first: usize, rows: &mut [Row]) {
    if METRICS[metric].1 == Rule::Mean {
        for (place, row) in rows.iter_mut().enumerate() {
            if let Some(value) = values.at(first + place) {
                row.set(metric, (*value).into());
                row.set(metric + 1, 1);
            }
        }
    } else if let Some(plain) = values.without_nulls() {
        for (row, value) in rows.iter_mut().zip(&plain[first..]) {
            let value: u64 = (*value).into();
            row.values[metric] = value;
            row.present |= u64::from(value > 0) << metric;
        }
    } else {
        for (place, row) in rows.iter_mut().enumerate() {
            if let Some(value) = values.at(first + place).map(|value| (*value).into())
                && value > 0
            {
                row.set(metric, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values_of(series: &Series, shift: u32, name: &str) -> Vec<(u64, u64)> {
        let wanted = metric(name).unwrap();
        let mut metrics = series.metrics(shift);
        metrics.find(|(metric, _)| *metric == wanted).unwrap().1
    }

    #[test]
    fn every_metric_of_the_timeline_is_a_column_of_it() {
        let columns = TimelineColumns::TABLE.columns;
        for (name, _) in METRICS.iter().take(26).filter(|(name, _)| !name.is_empty()) {
            assert!(columns.iter().any(|column| column.name == *name), "{name}");
        }
    }

    #[test]
    fn merging_slots_keeps_sums_and_largest_values() {
        let mut series = Series::default();
        let (bytes, rtt) = (metric("wire_bytes").unwrap(), metric("ack_rtt_max_ns").unwrap());
        // Out of order at the end: into a bin that is there and into one that is not.
        for (bin, value) in [(4, 10), (5, 7), (6, 1), (9, 100), (5, 3), (8, 2)] {
            let mut row = Row::single(bytes, value);
            row.set(rtt, value);
            series.touch(&row);
            series.push(bin, &row, &mut Room::default());
        }
        assert_eq!(series.len(), 12);
        assert!(series.has(1 << rtt) && !series.has(1 << metric("ce").unwrap()));
        let expected = [(4, 10), (5, 10), (6, 1), (8, 2), (9, 100)];
        assert_eq!(values_of(&series, 0, "wire_bytes"), expected);
        for series in [&series, &series.merged(1)] {
            assert_eq!(values_of(series, 1, "wire_bytes"), [(2, 20), (3, 1), (4, 102)]);
            assert_eq!(
                values_of(series, 1, "ack_rtt_max_ns"),
                [(2, 10), (3, 1), (4, 100)]
            );
            assert_eq!(values_of(series, 2, "wire_bytes"), [(1, 21), (2, 102)]);
        }
        // Two values in each of slots 2, 3, 4; then 1, 2.
        assert_eq!(series.merged(1).len(), 6);
        assert_eq!(series.merged(1).merged(2).len(), 4);
    }

    #[test]
    fn the_largest_distances_and_values_come_back() {
        let all = (0..METRICS.len()).fold(Row::default(), |mut row, metric| {
            row.set(metric, u64::MAX);
            row
        });
        let one = Row::single(METRICS.len() - 1, 1);
        let rows = [
            (u64::MAX, &one),
            (0, &all),
            (0, &all),
            (u64::MAX, &one),
            (u64::MAX, &all),
        ];
        let mut series = Series::default();
        for (bin, row) in rows {
            series.push(bin, row, &mut Room::default());
        }
        let read: Vec<_> = series
            .rows()
            .map(|(bin, row)| {
                (
                    bin,
                    row.metrics().map(|metric| (metric, row.values[metric])).collect(),
                )
            })
            .collect();
        let of_all: Vec<_> = (0..METRICS.len()).map(|metric| (metric, u64::MAX)).collect();
        let of_one = vec![(METRICS.len() - 1, 1)];
        assert_eq!(
            read,
            [
                (u64::MAX, of_one.clone()),
                (0, of_all.clone()),
                (0, of_all.clone()),
                (u64::MAX, of_one),
                (u64::MAX, of_all)
            ]
        );
    }

    #[test]
    fn rows_of_one_slot_are_one_before_they_are_kept() {
        let bytes = metric("wire_bytes").unwrap();
        let mut slots = Slots::new(0);
        for (bin, value) in [(2, 1), (2, 2), (3, 4), (3, 8), (4, 16)] {
            slots.push(bin, &Row::single(bytes, value), &mut Room::default());
        }
        assert_eq!(
            values_of(&slots.whole(), 0, "wire_bytes"),
            [(2, 3), (3, 12), (4, 16)]
        );
        slots.widen(1);
        slots.push(5, &Row::single(bytes, 32), &mut Room::default());
        let whole = slots.whole();
        // Bins 2 and 3, then 4 and what came since.
        assert_eq!(values_of(&whole, 1, "wire_bytes"), [(1, 15), (2, 48)]);
        assert_eq!(whole.len(), 3);
    }

    #[test]
    fn medians_of_merged_bins_become_their_mean() {
        let mut series = Series::default();
        let p50 = metric("ack_rtt_p50_ns").unwrap();
        for (bin, value) in [(2, 10), (3, 20), (3, 60)] {
            let mut row = Row::single(p50, value);
            row.set(p50 + 1, 1);
            series.push(bin, &row, &mut Room::default());
        }
        assert_eq!(values_of(&series, 0, "ack_rtt_p50_ns"), [(2, 10), (3, 40)]);
        // (10 + 20 + 60) / 3.
        assert_eq!(values_of(&series.merged(1), 1, "ack_rtt_p50_ns"), [(1, 30)]);
    }
}
