//! Rows of bins that are wider than those in which a run is counted: sums and maxima of these.

use std::collections::HashMap;

use roce_model::{Columns, FlowId, Span, TapId, Time, TimelineColumns, TimelineRow};

/// Rows of one bin that are put together, at most; more of them stay apart, and their values add up.
const MAX_ROWS: usize = 1 << 20;

/// The bin that goes on.
#[derive(Debug)]
pub(super) struct Wide {
    width: u64,
    begin: Time,
    rows: Vec<Sum>,
    places: HashMap<(FlowId, TapId, u32), usize, foldhash::fast::RandomState>,
}

/// A row, and how many parts each of its means has.
#[derive(Debug)]
struct Sum {
    row: TimelineRow,
    rates: u64,
    ack_rtts: Vec<u64>,
    message_times: Vec<u64>,
}

impl Wide {
    pub(super) fn new(width: Span) -> Self {
        Self {
            width: width.0.max(1),
            begin: Time(0),
            rows: Vec::new(),
            places: HashMap::default(),
        }
    }

    /// The begin of the bin that a time lies in.
    pub(super) fn begin_of(&self, time: Time) -> Time {
        Time(time.0 - time.0 % self.width)
    }

    /// Adds rows of one narrow bin; those of a wide one that has ended go to `done`.
    pub(super) fn add(&mut self, columns: &mut TimelineColumns, done: &mut TimelineColumns) {
        for at in 0..columns.len() {
            let mut row = row_at(columns, at);
            row.time = self.begin_of(row.time);
            if row.time != self.begin || self.rows.len() >= MAX_ROWS {
                self.end(done);
                self.begin = row.time;
            }
            self.add_row(row);
        }
        columns.clear();
    }

    fn add_row(&mut self, row: TimelineRow) {
        let next = self.rows.len();
        let place = *self
            .places
            .entry((row.flow_id, row.tap, row.epoch))
            .or_insert(next);
        if let Some(sum) = self.rows.get_mut(place) {
            sum.add(&row);
        } else {
            self.rows.push(Sum::new(row));
        }
    }

    /// The bin has ended.
    pub(super) fn end(&mut self, done: &mut TimelineColumns) {
        self.places.clear();
        for sum in self.rows.drain(..) {
            done.push(&sum.row());
        }
    }
}

impl Sum {
    fn new(row: TimelineRow) -> Self {
        Self {
            rates: u64::from(row.dcqcn_rate_bps.is_some()),
            ack_rtts: row.ack_rtt_p50_ns.into_iter().collect(),
            message_times: row.message_time_p50_ns.into_iter().collect(),
            row,
        }
    }

    fn add(&mut self, other: &TimelineRow) {
        let row = &mut self.row;
        row.packets = row.packets.saturating_add(other.packets);
        row.wire_bytes = row.wire_bytes.saturating_add(other.wire_bytes);
        row.payload_bytes = row.payload_bytes.saturating_add(other.payload_bytes);
        row.data_packets = row.data_packets.saturating_add(other.data_packets);
        row.not_ect = row.not_ect.saturating_add(other.not_ect);
        row.ect0 = row.ect0.saturating_add(other.ect0);
        row.ect1 = row.ect1.saturating_add(other.ect1);
        row.ce = row.ce.saturating_add(other.ce);
        row.cnp = both(row.cnp, other.cnp, u32::saturating_add);
        row.retransmitted_packets = row
            .retransmitted_packets
            .saturating_add(other.retransmitted_packets);
        row.retransmitted_bytes = row.retransmitted_bytes.saturating_add(other.retransmitted_bytes);
        row.missing = row.missing.saturating_add(other.missing);
        row.late = row.late.saturating_add(other.late);
        row.lost_downstream = both(row.lost_downstream, other.lost_downstream, u32::saturating_add);
        row.naks = row.naks.saturating_add(other.naks);
        row.rnr_naks = row.rnr_naks.saturating_add(other.rnr_naks);
        row.acks = row.acks.saturating_add(other.acks);
        row.trimmed = row.trimmed.saturating_add(other.trimmed);
        row.trim_nacks = row.trim_nacks.saturating_add(other.trim_nacks);
        row.holes = row.holes.saturating_add(other.holes);
        row.skips = row.skips.saturating_add(other.skips);
        row.penalty = row.penalty.saturating_add(other.penalty);
        row.messages = row.messages.saturating_add(other.messages);
        row.ack_rtt_max_ns = both(row.ack_rtt_max_ns, other.ack_rtt_max_ns, u64::max);
        row.message_time_max_ns = both(row.message_time_max_ns, other.message_time_max_ns, u64::max);
        row.inflight_bytes_max = both(row.inflight_bytes_max, other.inflight_bytes_max, u64::max);
        row.hop_queue_max = both(row.hop_queue_max, other.hop_queue_max, u64::max);
        row.hop_delay_max_ns = both(row.hop_delay_max_ns, other.hop_delay_max_ns, u64::max);
        row.senders_to_destination = row.senders_to_destination.max(other.senders_to_destination);
        row.pause_ns = both(row.pause_ns, other.pause_ns, u64::saturating_add);
        row.dcqcn_rate_bps = both(row.dcqcn_rate_bps, other.dcqcn_rate_bps, u64::saturating_add);
        self.rates += u64::from(other.dcqcn_rate_bps.is_some());
        self.ack_rtts.extend(other.ack_rtt_p50_ns);
        self.message_times.extend(other.message_time_p50_ns);
    }

    fn row(mut self) -> TimelineRow {
        self.row.dcqcn_rate_bps = self.row.dcqcn_rate_bps.map(|sum| sum / self.rates.max(1));
        self.row.ack_rtt_p50_ns = median(&mut self.ack_rtts);
        self.row.message_time_p50_ns = median(&mut self.message_times);
        self.row
    }
}

/// Joins the values of both, or gives the one that is there.
fn both<T>(one: Option<T>, other: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(join(one, other)),
        (one, other) => one.or(other),
    }
}

/// The middle one, the lower of two.
fn median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// The row at a place.
fn row_at(columns: &TimelineColumns, at: usize) -> TimelineRow {
    macro_rules! row {
        ($($plain:ident)*; $($optional:ident)*) => {
            TimelineRow {
                time: Time(columns.time.at(at).copied().unwrap_or_default()),
                flow_id: FlowId(columns.flow_id.at(at).copied().unwrap_or_default()),
                tap: TapId(columns.tap.at(at).copied().unwrap_or_default()),
                $($plain: columns.$plain.at(at).copied().unwrap_or_default(),)*
                $($optional: columns.$optional.at(at).copied(),)*
            }
        };
    }
    row! {
        epoch packets wire_bytes payload_bytes data_packets not_ect ect0 ect1 ce retransmitted_packets retransmitted_bytes
        missing late trimmed naks rnr_naks acks messages senders_to_destination trim_nacks holes skips
        penalty;
        cnp lost_downstream ack_rtt_p50_ns ack_rtt_max_ns message_time_p50_ns message_time_max_ns inflight_bytes_max pause_ns
        dcqcn_rate_bps hop_queue_max hop_delay_max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ms: u64, flow: u64, packets: u32, rtt: Option<u64>) -> TimelineRow {
        TimelineRow {
            time: Time(ms * 1_000_000),
            flow_id: FlowId(flow),
            packets,
            cnp: rtt.map(|_| 1),
            ack_rtt_p50_ns: rtt,
            ack_rtt_max_ns: rtt,
            senders_to_destination: packets,
            dcqcn_rate_bps: rtt,
            ..TimelineRow::default()
        }
    }

    #[test]
    fn rows_of_a_wide_bin_are_sums_and_maxima() {
        let mut wide = Wide::new(Span(3_000_000));
        let mut done = TimelineColumns::default();
        for rows in [
            vec![row(3, 1, 2, Some(10)), row(3, 2, 1, None)],
            vec![row(4, 1, 5, Some(40))],
            vec![row(5, 1, 1, Some(20))],
            vec![row(6, 1, 7, None)],
        ] {
            let mut columns = TimelineColumns::default();
            columns.extend(&rows);
            wide.add(&mut columns, &mut done);
            assert!(columns.is_empty());
        }
        assert_eq!(done.len(), 2, "the bin from 6 ms on goes on");
        let sum = TimelineRow {
            cnp: Some(3),
            ack_rtt_p50_ns: Some(20),
            ack_rtt_max_ns: Some(40),
            senders_to_destination: 5,
            // (10 + 40 + 20) / 3.
            dcqcn_rate_bps: Some(23),
            ..row(3, 1, 8, None)
        };
        assert_eq!([row_at(&done, 0), row_at(&done, 1)], [sum, row(3, 2, 1, None)]);
        wide.end(&mut done);
        assert_eq!(row_at(&done, 2), row(6, 1, 7, None));
    }
}
