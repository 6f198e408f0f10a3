//! Rows of a bin as they close: some at a time, then as columns.

use roce_model::{Active, FlowId, Nanos, TapId, TimelineColumns, Values};
use roce_verdict::BinRows;
use roce_wire::Ecn;

use crate::counts::Counts;
use crate::timing::latency::BinTimes;

/// One flow in one bin, as its row closes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) flow_id: FlowId,
    pub(crate) tap: TapId,
    pub(crate) epoch: u32,
    /// The place of its way among those of the bin.
    pub(crate) way: u32,
    /// The other direction is known.
    pub(crate) paired: bool,
    /// True if notifications for the flow would be known.
    pub(crate) knows_cnp: bool,
    /// What its answers took, if there were any.
    pub(crate) times: Option<BinTimes>,
    pub(crate) limits: Limits,
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
    fn cnp(&self) -> Option<u32> {
        let cnp = self.counts.rare().cnp;
        (self.knows_cnp || cnp > 0).then_some(cnp)
    }
}

/// Adds rows of the bin that begins at `time`.
pub(crate) fn add(to: &mut BinRows, time: Nanos, rows: &[Row]) {
    to.active.extend(rows.iter().map(|row| row.active));
    to.way_of_row.extend(rows.iter().map(|row| row.way));
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
    some(&mut columns.cnp, rows, Row::cnp);
    some(&mut columns.lost_downstream, rows, |row| {
        row.paired.then(|| row.counts.rare().lost_downstream)
    });
    add_rare(columns, rows);
    add_times(columns, rows);
    some(&mut columns.pause_ns, rows, |row| row.limits.pause_ns);
    some(&mut columns.dcqcn_rate_bps, rows, |row| row.limits.dcqcn_rate_bps);
}

#[inline]
fn some<T: Default + Clone>(column: &mut Values<T>, rows: &[Row], of: impl Fn(&Row) -> Option<T>) {
    if rows.iter().all(|row| of(row).is_none()) {
        column.extend_null(rows.len());
    } else {
        column.extend_some(rows, |row| of(row).is_some(), |row| of(row).unwrap_or_default());
    }
}

fn add_rare(columns: &mut TimelineColumns, rows: &[Row]) {
    if rows.iter().all(|row| row.counts.rare.is_none()) {
        let count = rows.len();
        columns.retransmitted_packets.extend_with(0, count);
        columns.retransmitted_bytes.extend_with(0, count);
        columns.missing.extend_with(0, count);
        columns.late.extend_with(0, count);
        columns.naks.extend_with(0, count);
        columns.rnr_naks.extend_with(0, count);
        return;
    }
    let rare = |row: &Row| row.counts.rare();
    columns
        .retransmitted_packets
        .extend(rows, |row| rare(row).retransmitted_packets);
    columns
        .retransmitted_bytes
        .extend(rows, |row| rare(row).retransmitted_bytes);
    columns.missing.extend(rows, |row| rare(row).missing);
    columns.late.extend(rows, |row| rare(row).late);
    columns.naks.extend(rows, |row| rare(row).naks);
    columns.rnr_naks.extend(rows, |row| rare(row).rnr_naks);
}

fn add_times(columns: &mut TimelineColumns, rows: &[Row]) {
    let all = [
        &mut columns.ack_rtt_p50_ns,
        &mut columns.ack_rtt_max_ns,
        &mut columns.message_time_p50_ns,
        &mut columns.message_time_max_ns,
        &mut columns.inflight_bytes_max,
    ];
    if rows.iter().all(|row| row.times.is_none()) {
        for column in all {
            column.extend_null(rows.len());
        }
        return;
    }
    for (at, column) in all.into_iter().enumerate() {
        some(column, rows, |row| {
            row.times.as_ref().and_then(|times| times.values()[at])
        });
    }
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
    fn plus<T: Default + core::ops::AddAssign>(column: &mut Values<T>, place: usize, more: T) {
        if let Some(value) = column.at_mut(place) {
            *value += more;
        }
    }
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
    let Some(rare) = counts.rare.as_deref() else {
        return;
    };
    plus(
        &mut columns.retransmitted_packets,
        place,
        rare.retransmitted_packets,
    );
    plus(&mut columns.retransmitted_bytes, place, rare.retransmitted_bytes);
    plus(&mut columns.missing, place, rare.missing);
    plus(&mut columns.late, place, rare.late);
    plus(&mut columns.naks, place, rare.naks);
    plus(&mut columns.rnr_naks, place, rare.rnr_naks);
    // Absent where the other direction is not known.
    plus(&mut columns.lost_downstream, place, rare.lost_downstream);
    if rare.cnp > 0
        && let Some(cnp) = columns.cnp.make_present(place)
    {
        *cnp = cnp.saturating_add(rare.cnp);
    }
}
