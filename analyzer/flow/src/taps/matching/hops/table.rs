//! The tables of hops: which of the packets that one of two taps did not see were lost.

use std::collections::HashMap;

use roce_model::{FlowId, HopRow, HopTimelineRow, TapId};

use super::{Between, Hop, Hops, earliest};

/// Counts that show how well one tap records, over all captures of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Record {
    /// Packets that arrived and that it did not see.
    missed: u64,
    /// Packets that it and another tap saw.
    seen: u64,
    /// It reported lost records.
    has_lost: bool,
}

/// Without a packet of which it is known that the tap saw it or not, one of so many may be lost: a tap that misses more does not see all.
const MIN_SHARE: u64 = 4;

/// How well each tap records.
type Records = HashMap<TapId, Record, foldhash::fast::RandomState>;

/// A flow at the first one of two taps, and at the second one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowAtTwo {
    pub(crate) first: (FlowId, TapId),
    pub(crate) second: (FlowId, TapId),
    /// Packets at the first tap while the second one recorded.
    pub(crate) packets: u64,
    /// Number of the packets that were lost in between and are no answers.
    pub(crate) lost: u64,
}

impl Hops {
    /// The table.
    pub(crate) fn rows(&self) -> Vec<HopRow> {
        let records = self.records();
        let row = |(between, place): (&Between, &u32)| {
            let hop = self.list.get(*place as usize)?;
            Some(hop.row(*between, &records))
        };
        let mut rows: Vec<HopRow> = self.by_ends.iter().filter_map(row).collect();
        rows.sort_unstable_by_key(|row| (row.flow_id, row.from_tap, row.to_tap));
        rows
    }

    /// The flows between two taps of which the second one missed nothing itself.
    pub(crate) fn flows(&self) -> Vec<FlowAtTwo> {
        let records = self.records();
        let flow = |(between, place): (&Between, &u32)| {
            let hop = self.list.get(*place as usize)?;
            let row = hop.row(*between, &records);
            let name = if hop.is_upwards() { hop.name } else { between.flow };
            (row.not_captured == 0).then_some(FlowAtTwo {
                first: (row.flow_id, row.from_tap),
                second: (name, row.to_tap),
                packets: row.matched + row.lost + row.unresolved,
                lost: row.lost - row.answers_lost,
            })
        };
        self.by_ends.iter().filter_map(flow).collect()
    }

    fn records(&self) -> Records {
        let mut records = Records::default();
        for hop in &self.list {
            for (unseen, other) in hop.unseen.iter().zip([hop.high, hop.low]) {
                let record = records.entry(other).or_default();
                record.missed = record.missed.saturating_add(unseen.not_captured);
                record.seen = record.seen.saturating_add(hop.repaired);
            }
        }
        for tap in &self.incomplete {
            records.entry(*tap).or_default().has_lost = true;
        }
        records
    }

    /// The table `hop_timeline`: each row of [`rows`](Self::rows) by bin.
    pub(crate) fn timeline(&self) -> Vec<HopTimelineRow> {
        let records = self.records();
        let mut rows = Vec::new();
        for (between, place) in &self.by_ends {
            if let Some(hop) = self.list.get(*place as usize) {
                let row = hop.row(*between, &records);
                let record = records.get(&row.to_tap).copied().unwrap_or_default();
                hop.bins.write(
                    &row,
                    hop.is_upwards(),
                    [hop.is_incomplete(record), hop.shows_silent(record)],
                    self.room.width(),
                    &mut rows,
                );
            }
        }
        rows.sort_unstable_by_key(|row| (row.time, row.flow_id, row.from_tap, row.to_tap));
        rows
    }
}

impl Hop {
    /// True if the tap at the end missed more than a tenth of what it did not see, as a count with a small prior says it: then only the
    /// first losses of each run count. One tap alone judges what is missing inside a run by the same share.
    fn is_incomplete(&self, to: Record) -> bool {
        let unseen = self.unseen[usize::from(!self.is_upwards())];
        let missed = unseen.not_captured.saturating_mul(5);
        let all = unseen.lost.saturating_mul(5).saturating_add(missed);
        let is_holed = missed > 0 && missed.saturating_add(1).saturating_mul(10) > all.saturating_add(4);
        is_holed || to.has_lost
    }

    /// True if what nobody sends again, and the tap at the end did not see, was lost: that tap missed nothing of all that shows what it
    /// missed. Where nothing shows that, it has to have seen most of this flow.
    fn shows_silent(&self, to: Record) -> bool {
        let unseen = self.unseen[usize::from(!self.is_upwards())];
        let silent = unseen.answers.saturating_add(unseen.unreliable);
        let is_proven = to.seen >= silent.saturating_mul(MIN_SHARE);
        let is_whole = silent.saturating_mul(MIN_SHARE) <= self.matched.saturating_add(silent);
        !to.has_lost && to.missed == 0 && (is_proven || is_whole)
    }

    fn row(&self, between: Between, records: &Records) -> HopRow {
        let upwards = self.is_upwards();
        let delays = self.delays.summary();
        let at = |percent| delays.quantile(percent, upwards);
        let Between { flow, low, high } = between;
        let (from_tap, flow_id, to_tap) = if upwards {
            (low, flow, high)
        } else {
            (high, self.name, low)
        };
        let unseen = self.unseen[usize::from(!upwards)];
        let to = records.get(&to_tap).copied().unwrap_or_default();
        let (repaired, mut first) = if self.is_incomplete(to) {
            (unseen.begins, unseen.first_begins)
        } else {
            (unseen.lost, unseen.first)
        };
        let silent = unseen.answers + unseen.unreliable;
        let (answers_lost, lost) = if self.shows_silent(to) {
            if let Some(silent) = unseen.first_silent {
                earliest(&mut first, silent);
            }
            (unseen.answers, repaired + silent)
        } else {
            (0, repaired)
        };
        HopRow {
            flow_id,
            from_tap,
            to_tap,
            matched: self.matched,
            marked: self.marked[usize::from(!upwards)],
            lost,
            answers_lost,
            unresolved: unseen.lost + silent + unseen.open - lost,
            first_lost_psn: first.map(|(_, psn)| psn.value()),
            first_lost_time: first.map(|(time, _)| time),
            not_captured: unseen.not_captured,
            delay_min_ns: at(0),
            delay_p50_ns: at(50),
            delay_p99_ns: at(99),
            delay_max_ns: at(100),
        }
    }
}
