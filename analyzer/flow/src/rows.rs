//! Rows of a bin as they close: some at a time, then as columns.

use core::num::NonZeroU64;

use roce_model::{Active, FlowId, TapId, Time, TimelineColumns, Values};
use roce_verdict::BinRows;
use roce_wire::Ecn;

use crate::counts::{Counts, Rare};
use crate::timing::latency::BinTimes;

/// One flow in one bin, as its row closes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) flow_id: FlowId,
    pub(crate) tap: TapId,
    pub(crate) epoch: u32,
    /// The place of its pair of hosts among those of the bin.
    pub(crate) pair: u32,
    /// The other direction is known.
    pub(crate) paired: bool,
    /// True if notifications for the flow would be known.
    pub(crate) knows_cnp: bool,
    /// Times of its answers.
    pub(crate) times: BinTimes,
    pub(crate) limits: Limits,
    /// From its first packet in the bin to its last one, in ns after the begin of the bin.
    pub(crate) active: Active,
    pub(crate) counts: Counts,
}

/// Limits of a flow in one bin: pauses, and DCQCN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// How long it was paused, in ns.
    pub(crate) pause_ns: Option<u64>,
    /// Rate that DCQCN allowed it, in bit/s.
    pub(crate) dcqcn_rate_bps: Option<u64>,
}

/// Adds rows of the bin that begins at `time`.
pub(crate) fn add(to: &mut BinRows, time: Time, rows: &[Row]) {
    let before = to.len();
    to.active.extend(rows.iter().map(|row| row.active));
    to.pair_of_row.extend(rows.iter().map(|row| row.pair));
    let (columns, count) = (&mut to.columns, rows.len());
    columns.time.extend_with(time.0, count);
    columns.flow_id.extend(rows, |row| row.flow_id.0);
    columns.tap.extend(rows, |row| row.tap.0);
    columns.epoch.extend(rows, |row| row.epoch);
    columns.packets.extend(rows, |row| row.counts.packets);
    columns.wire_bytes.extend(rows, |row| row.counts.wire_bytes);
    columns.payload_bytes.extend(rows, |row| row.counts.payload_bytes);
    columns.data_packets.extend(rows, |row| row.counts.data_packets);
    columns.not_ect.extend(rows, |row| row.counts.by_ecn(Ecn::NotEct));
    columns.ect0.extend(rows, |row| row.counts.by_ecn(Ecn::Ect0));
    columns.ect1.extend(rows, |row| row.counts.by_ecn(Ecn::Ect1));
    columns.ce.extend(rows, |row| row.counts.by_ecn(Ecn::Ce));
    columns.acks.extend(rows, |row| row.counts.acks);
    columns.messages.extend(rows, |row| row.counts.messages);
    // Rare counts are 0 until they are added below.
    zero_where(&mut columns.cnp, rows, |row| row.knows_cnp);
    zero_where(&mut columns.lost_downstream, rows, |row| row.paired);
    columns.hop_queue_max.extend_null(count);
    columns.hop_delay_max_ns.extend_null(count);
    add_times(columns, rows);
    some(&mut columns.pause_ns, rows, |row| row.limits.pause_ns);
    some(&mut columns.dcqcn_rate_bps, rows, |row| row.limits.dcqcn_rate_bps);
    for (at, row) in rows.iter().enumerate() {
        if let Some(rare) = row.counts.rare.as_deref() {
            add_rare(to, before + at, rare);
        }
    }
}

/// Adds 0 for the rows that `have` a value.
#[inline]
fn zero_where(column: &mut Values<u32>, rows: &[Row], have: impl Fn(&Row) -> bool) {
    let count = rows.iter().filter(|row| have(row)).count();
    if count == rows.len() {
        column.extend_with(0, count);
    } else if count == 0 {
        column.extend_null(rows.len());
    } else {
        column.extend_some(rows, have, |_| 0);
    }
}

#[inline]
fn some<T: Default + Clone>(column: &mut Values<T>, rows: &[Row], of: impl Fn(&Row) -> Option<T>) {
    if rows.iter().all(|row| of(row).is_none()) {
        column.extend_null(rows.len());
    } else {
        column.extend_some(rows, |row| of(row).is_some(), |row| of(row).unwrap_or_default());
    }
}

fn add_times(columns: &mut TimelineColumns, rows: &[Row]) {
    if rows.iter().all(|row| row.times.is_empty()) {
        let count = rows.len();
        columns.ack_rtt_p50_ns.extend_null(count);
        columns.ack_rtt_max_ns.extend_null(count);
        columns.message_time_p50_ns.extend_null(count);
        columns.message_time_max_ns.extend_null(count);
        columns.inflight_bytes_max.extend_null(count);
        return;
    }
    some_time(&mut columns.ack_rtt_p50_ns, rows, |row| row.times.ack_rtt_p50);
    some_time(&mut columns.ack_rtt_max_ns, rows, |row| row.times.ack_rtt_max);
    some_time(&mut columns.message_time_p50_ns, rows, |row| {
        row.times.message_p50
    });
    some_time(&mut columns.message_time_max_ns, rows, |row| {
        row.times.message_max
    });
    some(&mut columns.inflight_bytes_max, rows, |row| {
        row.times.inflight_max
    });
}

#[inline]
fn some_time(column: &mut Values<u64>, rows: &[Row], of: impl Fn(&Row) -> Option<NonZeroU64>) {
    column.extend_some(
        rows,
        |row| of(row).is_some(),
        |row| of(row).map_or(0, NonZeroU64::get),
    );
}

/// True if the row at `place` is one of this flow at this tap in this epoch.
pub(crate) fn is_of(rows: &BinRows, place: usize, row: &Row) -> bool {
    let columns = &rows.columns;
    columns.flow_id.at(place) == Some(&row.flow_id.0)
        && columns.tap.at(place) == Some(&row.tap.0)
        && columns.epoch.at(place) == Some(&row.epoch)
}

/// Adds counts to the row at `place`.
pub(crate) fn add_counts(rows: &mut BinRows, place: usize, counts: &Counts) {
    let columns = &mut rows.columns;
    plus(&mut columns.packets, place, counts.packets);
    plus(&mut columns.wire_bytes, place, counts.wire_bytes);
    plus(&mut columns.payload_bytes, place, counts.payload_bytes);
    plus(&mut columns.data_packets, place, counts.data_packets);
    plus(&mut columns.not_ect, place, counts.by_ecn(Ecn::NotEct));
    plus(&mut columns.ect0, place, counts.by_ecn(Ecn::Ect0));
    plus(&mut columns.ect1, place, counts.by_ecn(Ecn::Ect1));
    plus(&mut columns.ce, place, counts.by_ecn(Ecn::Ce));
    plus(&mut columns.acks, place, counts.acks);
    plus(&mut columns.messages, place, counts.messages);
    if let Some(rare) = counts.rare.as_deref() {
        add_rare(rows, place, rare);
    }
}

/// Adds what is rare to the row at `place`.
#[cold]
fn add_rare(rows: &mut BinRows, place: usize, rare: &Rare) {
    rows.fill_up();
    let pair = rows.pair_of_row.get(place).map(|pair| *pair as usize);
    if let Some(traffic) = pair.and_then(|pair| rows.traffic.get_mut(pair)) {
        traffic.cnp_by_nak += u64::from(rare.cnp_by_nak);
        traffic.marked.add(&rare.marked);
        traffic.lost.add(&rare.lost);
    }
    if rare.mrc.has_again {
        rows.note_mrc(place);
    }
    let columns = &mut rows.columns;
    plus(
        &mut columns.retransmitted_packets,
        place,
        rare.retransmitted_packets,
    );
    plus(&mut columns.retransmitted_bytes, place, rare.retransmitted_bytes);
    plus(&mut columns.missing, place, rare.missing);
    plus(&mut columns.late, place, rare.late);
    plus(&mut columns.trimmed, place, rare.trimmed);
    plus(&mut columns.naks, place, rare.naks);
    plus(&mut columns.rnr_naks, place, rare.rnr_naks);
    plus(&mut columns.trim_nacks, place, rare.mrc.trimmed);
    plus(&mut columns.holes, place, rare.mrc.holes);
    plus(&mut columns.skips, place, rare.mrc.skips);
    plus(&mut columns.penalty, place, rare.mrc.penalty);
    most(&mut columns.hop_queue_max, place, rare.hop_queue);
    most(&mut columns.hop_delay_max_ns, place, rare.hop_delay);
    // Absent where the other direction is not known.
    plus(&mut columns.lost_downstream, place, rare.lost_downstream);
    // Notifications that were attributed to the flow are known, even if its other direction is not.
    if rare.cnp > 0
        && let Some(cnp) = columns.cnp.make_present(place)
    {
        *cnp = cnp.saturating_add(rare.cnp);
    }
}

/// Raises a value to another one; without that it stays absent.
fn most(column: &mut Values<u64>, place: usize, value: Option<u32>) {
    if let Some(value) = value
        && let Some(known) = column.make_present(place)
    {
        *known = (*known).max(value.into());
    }
}

fn plus<T: Default + core::ops::AddAssign>(column: &mut Values<T>, place: usize, more: T) {
    if let Some(value) = column.at_mut(place) {
        *value += more;
    }
}
