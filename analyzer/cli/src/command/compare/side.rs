//! One of the two runs: takes its rows as any sink, and keeps sums over slices of time, of the whole run and of each pair of hosts.
//!
//! Memory does not grow with the run: when there are too many slices, two become one, and of flows a million are known by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use roce_model::{
    Address, Columns, EventColumns, FlowId, FlowKey, FlowRow, RunSummary, Sink, SinkError, Span, TapId,
    TimelineColumns, Values,
};

/// Slices of a run, at most; half as many at least once a run has that many bins.
const MAX_SLICES: usize = 256;
/// Limit of the flows whose hosts are remembered: about 64 MB. Other flows count for the whole run alone.
const MAX_FLOWS: usize = 1 << 20;
/// Limit of the pairs of hosts (at one tap) with sums of their own; other traffic counts for the whole
/// run alone. About 40 kB each.
const MAX_SERIES: usize = 1_000;

macro_rules! sums {
    ($( $(#[$meta:meta])* $name:ident, )+) => {
        /// Sums over a slice.
        #[derive(Clone, Copy, Default, Debug, PartialEq)]
        pub(super) struct Sums { $( $(#[$meta])* pub(super) $name: f64, )+ }

        impl Sums {
            fn add(&mut self, other: &Self) {
                $( self.$name += other.$name; )+
            }
        }
    };
}

sums! {
    /// Length of the slice, in seconds.
    seconds,
    /// Application data, in bytes.
    payload,
    /// Retransmitted part of it.
    retransmitted,
    data_packets,
    /// Data packets that ECN can mark, and those that are marked.
    ecn_capable,
    ce,
    cnp,
    /// Application data of rows that CNPs can be charged to.
    payload_with_cnp,
    lost,
    unclear,
    reordered,
    not_captured,
    rnr_naks,
    /// Rows with ACK times, and the sums of their medians and longest ones, in ns.
    ack_rows,
    ack_median,
    ack_longest,
    /// Rows with message times.
    message_rows,
    message_median,
    message_longest,
    pause_frames,
    /// Seconds for which priorities were paused.
    paused,
}

/// Pair of hosts and the tap; no pair for traffic without one, or beyond the limit.
type Key = (Option<Pair>, TapId);

/// Source and destination.
pub(super) type Pair = (Address, Address);

/// Sums slice by slice.
#[derive(Clone, Default, Debug)]
struct Series {
    slices: Vec<Sums>,
    /// Begin of the first and end of the last bin with application data.
    active: Option<(u64, u64)>,
    /// Packets of its flows that count, and of those that another tap saw more of.
    counted: u64,
    uncounted: u64,
}

/// Everything that is kept of a run.
#[derive(Default)]
pub(super) struct CollectedRun {
    bin: u64,
    /// Begin of the first slice.
    origin: Option<u64>,
    width: u64,
    flows: HashMap<FlowId, Pair>,
    series: BTreeMap<Key, Series>,
    /// Kinds of ACK times at its taps.
    pub(super) ack_rtt_kind: BTreeSet<&'static str>,
    pub(super) counted_flows: u64,
    pub(super) payload_bytes: u64,
    pub(super) run: RunSummary,
}

/// The sums of a scope, from its first slice with application data to its last one.
pub(super) struct Slices {
    pub(super) sums: Vec<Sums>,
}

impl CollectedRun {
    /// Width of a bin and of a slice.
    pub(super) fn widths(&self) -> (Span, Span) {
        (Span(self.bin), Span(self.width))
    }

    /// The whole run.
    pub(super) fn whole(&self) -> Slices {
        let mut whole = Series::default();
        for pair in self.pairs() {
            whole.add(&self.pair_series(pair));
        }
        for ((pair, _), series) in &self.series {
            if pair.is_none() {
                whole.add(series);
            }
        }
        self.slices(whole)
    }

    /// Sums of one host's traffic to another; `None` when it sent nothing.
    pub(super) fn pair(&self, pair: Pair) -> Option<Slices> {
        let series = self.pair_series(pair);
        series.active.is_some().then(|| self.slices(series))
    }

    /// Pairs of hosts that have sums.
    pub(super) fn pairs(&self) -> BTreeSet<Pair> {
        self.series.keys().filter_map(|(pair, _)| *pair).collect()
    }

    /// A pair at all taps that saw it; where two saw the same flows, at the one that saw most of them.
    fn pair_series(&self, pair: Pair) -> Series {
        let (from, to) = ((Some(pair), TapId(0)), (Some(pair), TapId(u32::MAX)));
        let taps = || self.series.range(from..=to).map(|(_, series)| series);
        let mut sum = Series::default();
        if taps().all(|series| series.uncounted == 0) {
            taps().for_each(|series| sum.add(series));
        } else if let Some(most) = taps().max_by_key(|series| series.counted) {
            sum.add(most);
        }
        sum
    }

    /// The slices in which a series sends, with their lengths.
    fn slices(&self, series: Series) -> Slices {
        let (Some((begin, end)), Some(origin)) = (series.active, self.origin) else {
            return Slices { sums: Vec::new() };
        };
        let first = self.place(begin, origin);
        let last = self.place(end.saturating_sub(1), origin);
        let mut sums = series.slices;
        sums.resize(last + 1, Sums::default());
        for (place, slice) in sums.iter_mut().enumerate() {
            let from = origin.saturating_add(self.width.saturating_mul(place as u64));
            let to = from.saturating_add(self.width);
            slice.seconds = Span(to.min(end).saturating_sub(from.max(begin))).seconds();
        }
        Slices {
            sums: sums.split_off(first.min(last)),
        }
    }

    /// The slice that a time is in; what is stamped before the first one belongs to it.
    fn place(&self, time: u64, origin: u64) -> usize {
        let place = time.saturating_sub(origin) / self.width.max(1);
        usize::try_from(place).unwrap_or(usize::MAX)
    }

    /// The slice of a time, made wide enough that it is one of those that are kept.
    fn slice_of(&mut self, time: u64) -> usize {
        let origin = *self.origin.get_or_insert(time);
        while self.place(time, origin) >= MAX_SLICES {
            self.width = self.width.max(1).saturating_mul(2);
            for series in self.series.values_mut() {
                series.halve();
            }
        }
        self.place(time, origin)
    }

    /// Adds to the slice of a time; of a flow, to its pair of hosts.
    fn add(&mut self, time: u64, flow: Option<FlowId>, tap: TapId, sums: &Sums) {
        let place = self.slice_of(time);
        let pair = flow.and_then(|flow| self.flows.get(&flow).copied());
        let full = self.series.len() >= MAX_SERIES;
        let key = match (pair, tap) {
            key if !full || self.series.contains_key(&key) => key,
            (_, tap) => (None, tap),
        };
        let bin = self.bin;
        let series = self.series.entry(key).or_default();
        if series.slices.len() <= place {
            series.slices.resize(place + 1, Sums::default());
        }
        if let Some(slice) = series.slices.get_mut(place) {
            slice.add(sums);
        }
        if sums.data_packets > 0.0 {
            series.include(time, time.saturating_add(bin));
        }
    }
}

impl Series {
    fn include(&mut self, begin: u64, end: u64) {
        let (first, last) = self.active.unwrap_or((begin, end));
        self.active = Some((first.min(begin), last.max(end)));
    }

    fn add(&mut self, other: &Self) {
        if self.slices.len() < other.slices.len() {
            self.slices.resize(other.slices.len(), Sums::default());
        }
        for (sum, slice) in self.slices.iter_mut().zip(&other.slices) {
            sum.add(slice);
        }
        if let Some((begin, end)) = other.active {
            self.include(begin, end);
        }
    }

    /// Two slices become one.
    fn halve(&mut self) {
        let halved = self.slices.chunks(2).map(|two| {
            let mut sum = Sums::default();
            for slice in two {
                sum.add(slice);
            }
            sum
        });
        self.slices = halved.collect();
    }
}

/// A count of a row as a number; absent is nothing.
#[expect(clippy::cast_precision_loss, reason = "sums for ratios: 53 bits are enough")]
fn number<T: Copy + Into<u64> + Default>(values: &Values<T>, row: usize) -> f64 {
    let value: u64 = values.at(row).copied().unwrap_or_default().into();
    value as f64
}

impl Sink for CollectedRun {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        (self.bin, self.width) = (bin.0, bin.0);
        Ok(())
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        let room = MAX_FLOWS.saturating_sub(self.flows.len());
        let pairs = keys.iter().map(|key| (key.id(), (key.source, key.destination)));
        self.flows.extend(pairs.take(room));
        Ok(())
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        for row in 0..rows.len() {
            let (Some(time), Some(flow), Some(tap)) =
                (rows.time.at(row), rows.flow_id.at(row), rows.tap.at(row))
            else {
                continue;
            };
            let payload = number(&rows.payload_bytes, row);
            let times = |values: &Values<u64>| values.at(row).map_or(0.0, |_| 1.0);
            let sums = Sums {
                payload,
                retransmitted: number(&rows.retransmitted_bytes, row),
                data_packets: number(&rows.data_packets, row),
                ecn_capable: number(&rows.ect0, row) + number(&rows.ect1, row) + number(&rows.ce, row),
                ce: number(&rows.ce, row),
                cnp: number(&rows.cnp, row),
                payload_with_cnp: rows.cnp.at(row).map_or(0.0, |_| payload),
                lost: number(&rows.lost_downstream, row),
                rnr_naks: number(&rows.rnr_naks, row),
                ack_rows: times(&rows.ack_rtt_p50_ns),
                ack_median: number(&rows.ack_rtt_p50_ns, row),
                ack_longest: number(&rows.ack_rtt_max_ns, row),
                message_rows: times(&rows.message_time_p50_ns),
                message_median: number(&rows.message_time_p50_ns, row),
                message_longest: number(&rows.message_time_max_ns, row),
                ..Sums::default()
            };
            self.add(*time, Some(FlowId(*flow)), TapId(*tap), &sums);
        }
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for row in 0..rows.len() {
            let (Some(time), Some(kind), Some(tap)) =
                (rows.time.at(row), rows.kind.at(row), rows.tap.at(row))
            else {
                continue;
            };
            let value = number(&rows.value, row);
            let mut sums = Sums::default();
            match (&**kind, rows.detail.at(row).map(|detail| &**detail)) {
                ("hole" | "response_hole", Some("network_lost")) | ("lost_again", _) => sums.lost = value,
                ("hole" | "response_hole", Some("capture_lost")) => sums.not_captured = value,
                ("hole" | "response_hole", Some("reordered")) => sums.reordered = value,
                ("hole" | "response_hole", Some("ambiguous" | "unresolved")) => sums.unclear = value,
                ("pause", _) => sums.pause_frames = 1.0,
                ("pause_interval", _) => sums.paused = value / 1e9,
                _ => continue,
            }
            let flow = rows.flow_id.at(row).map(|id| FlowId(*id));
            self.add(*time, flow, TapId(*tap), &sums);
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            let pair = (row.source, row.destination);
            if let Some(series) = self.series.get_mut(&(Some(pair), row.tap)) {
                let packets = if row.counted {
                    &mut series.counted
                } else {
                    &mut series.uncounted
                };
                *packets = packets.saturating_add(row.packets);
            }
            if row.counted {
                self.counted_flows += 1;
                self.payload_bytes = self.payload_bytes.saturating_add(row.payload_bytes);
                self.ack_rtt_kind.extend(row.ack_rtt_kind);
            }
        }
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.run = run.clone();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
