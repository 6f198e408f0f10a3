//! What is drawn over time: for each flow, for each tap and for each destination, the values by slot.

use roce_model::{Columns, Data, EventKind, EventRow, TimelineColumns, Values};

/// How the values of several bins, or of several flows, become one.
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

/// What is kept: columns of `timeline` under their names, then what events tell, named as in `flows` and `totals`.
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

/// What an event adds to the series of its flow and tap: the metric and how much.
pub(super) fn of_event(event: &EventRow) -> Option<(usize, u64)> {
    let name = match (event.kind, event.detail.as_deref()?) {
        (EventKind::Hole, class) => class,
        (EventKind::ResponseHole, "network_lost") => "response_network_lost",
        (EventKind::ResponseHole, "capture_lost") => "response_capture_lost",
        (EventKind::Cnp, _) if event.flow_id.is_none() => "cnp_unattributed",
        _ => return None,
    };
    Some((metric(name)?, event.value.unwrap_or(1)))
}

/// The values of one flow, tap or destination: for each metric, slots in order with what is not zero or absent.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// The slot that values come for now. They stand together until another one comes: a row touches one place in memory.
    open: u64,
    /// Which metrics have a value there, a bit for each.
    present: u64,
    now: [u64; METRICS.len()],
    before: [Vec<(u64, u64)>; METRICS.len()],
}

impl Default for Series {
    fn default() -> Self {
        Self {
            open: 0,
            present: 0,
            now: [0; METRICS.len()],
            before: std::array::from_fn(|_| Vec::new()),
        }
    }
}

impl Series {
    /// Adds a value; gives how many take room of their own now that did not before.
    pub(super) fn add(&mut self, metric: usize, slot: u64, value: u64) -> usize {
        let mut grown = 0;
        if slot != self.open {
            if self.present != 0 && slot < self.open {
                // Rows come in the order of time, but for few.
                return self.insert(metric, slot, value);
            }
            grown = self.close();
            self.open = slot;
        }
        let bit = 1 << metric;
        let kept = &mut self.now[metric];
        *kept = if self.present & bit == 0 {
            value
        } else {
            combine(METRICS[metric].1, *kept, value)
        };
        self.present |= bit;
        grown
    }

    /// What came for the open slot goes to the others.
    fn close(&mut self) -> usize {
        let mut grown = 0;
        let mut left = std::mem::take(&mut self.present);
        while left != 0 {
            let metric = left.trailing_zeros() as usize;
            left &= left - 1;
            grown += self.insert(metric, self.open, self.now[metric]);
        }
        grown
    }

    fn insert(&mut self, metric: usize, slot: u64, value: u64) -> usize {
        let values = &mut self.before[metric];
        let place = match values.last() {
            None => 0,
            Some((last, _)) if *last < slot => values.len(),
            Some(_) => values.partition_point(|(other, _)| *other < slot),
        };
        match values.get_mut(place) {
            Some((other, kept)) if *other == slot => {
                *kept = combine(METRICS[metric].1, *kept, value);
                0
            }
            _ => {
                values.insert(place, (slot, value));
                1
            }
        }
    }

    /// Every two slots become one.
    pub(super) fn widen(&mut self) {
        self.close();
        self.open >>= 1;
        for (values, (_, rule)) in self.before.iter_mut().zip(METRICS) {
            for (slot, _) in values.iter_mut() {
                *slot >>= 1;
            }
            values.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 = combine(rule, kept.1, next.1);
                }
                same
            });
        }
    }

    /// How many values it keeps, those of the open slot left out.
    pub(super) fn len(&self) -> usize {
        self.before.iter().map(Vec::len).sum()
    }

    /// The sum of a metric over all slots.
    pub(super) fn sum(&self, name: &str) -> u64 {
        let Some(metric) = metric(name) else {
            return 0;
        };
        let now = if self.present & 1 << metric == 0 {
            0
        } else {
            self.now[metric]
        };
        let before = self.before[metric].iter().map(|(_, value)| *value);
        before.fold(now, u64::saturating_add)
    }

    /// Each metric that has values, with them; means are divided.
    pub(super) fn metrics(&self) -> impl Iterator<Item = (usize, Vec<(u64, u64)>)> {
        let mut whole = self.clone();
        whole.close();
        let mut kept = whole.before;
        for (metric, (_, rule)) in METRICS.iter().enumerate() {
            if *rule == Rule::Mean {
                let numbers = std::mem::take(&mut kept[metric + 1]);
                for ((_, sum), (_, number)) in kept[metric].iter_mut().zip(numbers) {
                    *sum /= number.max(1);
                }
            }
        }
        kept.into_iter()
            .enumerate()
            .filter(|(_, values)| !values.is_empty())
    }
}

/// Two values of one slot.
fn combine(rule: Rule, kept: u64, value: u64) -> u64 {
    match rule {
        Rule::Most => kept.max(value),
        Rule::Sum | Rule::Mean | Rule::Number => kept.saturating_add(value),
    }
}

/// What rows of the timeline have to draw.
pub(super) struct Drawn<'a>(Vec<(usize, Counts<'a>)>);

/// A column of counts or times; what is drawn is nothing else.
enum Counts<'a> {
    U32(&'a Values<u32>),
    U64(&'a Values<u64>),
}

impl<'a> Drawn<'a> {
    /// The columns that are drawn, those without any value left out.
    pub(super) fn of(rows: &'a TimelineColumns) -> Self {
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

    /// Calls `add` with metric and value for what is not zero or absent in a row.
    pub(super) fn of_row(&self, row: usize, mut add: impl FnMut(usize, u64)) {
        for (metric, values) in &self.0 {
            let value = match values {
                Counts::U32(values) => values.at(row).map(|value| u64::from(*value)),
                Counts::U64(values) => values.at(row).copied(),
            };
            let is_mean = METRICS[*metric].1 == Rule::Mean;
            if let Some(value) = value.filter(|value| *value > 0 || is_mean) {
                add(*metric, value);
                if is_mean {
                    add(*metric + 1, 1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(series: &Series, name: &str) -> Vec<(u64, u64)> {
        let wanted = metric(name).unwrap();
        let mut metrics = series.metrics();
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
        for (slot, value) in [(4, 10), (5, 7), (6, 1), (9, 100)] {
            series.add(bytes, slot, value);
            series.add(rtt, slot, value);
        }
        assert_eq!(series.len(), 6, "those of slot 9 are not there yet");
        // Out of order, into a slot that is there and into one that is not.
        assert_eq!(series.add(bytes, 5, 3), 0);
        assert_eq!(series.add(bytes, 8, 2), 1);
        assert_eq!(series.sum("wire_bytes"), 123);
        assert_eq!(
            of(&series, "wire_bytes"),
            [(4, 10), (5, 10), (6, 1), (8, 2), (9, 100)]
        );
        series.widen();
        assert_eq!(of(&series, "wire_bytes"), [(2, 20), (3, 1), (4, 102)]);
        assert_eq!(of(&series, "ack_rtt_max_ns"), [(2, 10), (3, 1), (4, 100)]);
        series.widen();
        assert_eq!(of(&series, "wire_bytes"), [(1, 21), (2, 102)]);
        assert_eq!(series.sum("wire_bytes"), 123);
    }

    #[test]
    fn medians_of_merged_bins_become_their_mean() {
        let mut series = Series::default();
        let p50 = metric("ack_rtt_p50_ns").unwrap();
        for (slot, value) in [(2, 10), (3, 20), (3, 60)] {
            series.add(p50, slot, value);
            series.add(p50 + 1, slot, 1);
        }
        assert_eq!(of(&series, "ack_rtt_p50_ns"), [(2, 10), (3, 40)]);
        series.widen();
        // (10 + 20 + 60) / 3.
        assert_eq!(of(&series, "ack_rtt_p50_ns"), [(1, 30)]);
    }
}
