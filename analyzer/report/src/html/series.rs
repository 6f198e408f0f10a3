//! What is drawn over time: for each flow, for each tap and for each destination, the values by slot.

use roce_model::{Columns, Data, EventKind, EventRow, TimelineColumns};

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
pub(super) struct Series([Vec<(u64, u64)>; METRICS.len()]);

impl Default for Series {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Vec::new()))
    }
}

impl Series {
    /// Adds a value; gives 1 when it takes room of its own.
    pub(super) fn add(&mut self, metric: usize, slot: u64, value: u64) -> usize {
        let rule = METRICS[metric].1;
        let values = &mut self.0[metric];
        // Rows come in the order of time, but for few.
        let place = match values.last() {
            None => 0,
            Some((last, _)) if *last < slot => values.len(),
            Some((last, _)) if *last == slot => values.len() - 1,
            Some(_) => values.partition_point(|(other, _)| *other < slot),
        };
        match values.get_mut(place) {
            Some((other, kept)) if *other == slot => {
                *kept = combine(rule, *kept, value);
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
        for (values, (_, rule)) in self.0.iter_mut().zip(METRICS) {
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

    /// How many values it keeps.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// The sum of a metric over all slots.
    pub(super) fn sum(&self, name: &str) -> u64 {
        let values = metric(name).map(|metric| &self.0[metric]);
        values.into_iter().flatten().map(|(_, value)| value).sum()
    }

    /// Each metric that has values, with them; means are divided.
    pub(super) fn metrics(&self) -> impl Iterator<Item = (usize, Vec<(u64, u64)>)> {
        let kept = METRICS.iter().zip(&self.0).enumerate();
        kept.filter(|(_, ((_, rule), values))| *rule != Rule::Number && !values.is_empty())
            .map(|(metric, ((_, rule), values))| {
                let mut values = values.clone();
                if *rule == Rule::Mean {
                    for ((_, sum), (_, number)) in values.iter_mut().zip(&self.0[metric + 1]) {
                        *sum /= (*number).max(1);
                    }
                }
                (metric, values)
            })
    }
}

/// Two values of one slot.
fn combine(rule: Rule, kept: u64, value: u64) -> u64 {
    match rule {
        Rule::Most => kept.max(value),
        Rule::Sum | Rule::Mean | Rule::Number => kept.saturating_add(value),
    }
}

/// Calls `add` with row, metric and value for all that rows of the timeline have to draw.
pub(super) fn for_each_value(rows: &TimelineColumns, mut add: impl FnMut(usize, usize, u64)) {
    rows.for_each(|column, data| {
        let Some(metric) = metric(column.name) else {
            return;
        };
        let is_mean = METRICS[metric].1 == Rule::Mean;
        let mut value = |row: usize, value: u64| {
            if value > 0 || is_mean {
                add(row, metric, value);
            }
            if is_mean {
                add(row, metric + 1, 1);
            }
        };
        match data {
            Data::U32(values) => {
                let present = values.iter().enumerate();
                present
                    .for_each(|(row, kept)| kept.into_iter().for_each(|kept| value(row, u64::from(*kept))));
            }
            Data::U64(values) => {
                let present = values.iter().enumerate();
                present.for_each(|(row, kept)| kept.into_iter().for_each(|kept| value(row, *kept)));
            }
            // What is drawn is counts and times.
            _ => {}
        }
    });
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
        // Out of order, into a slot that is there and into one that is not.
        assert_eq!(series.add(bytes, 5, 3), 0);
        assert_eq!(series.add(bytes, 8, 2), 1);
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
