//! The tables of hops: which of the packets that one of two taps did not see were lost.

use std::collections::HashMap;

use roce_model::cast::float;
use roce_model::{FlowId, HopRow, HopTimelineRow, TapId};
use roce_verdict::at_least;

use super::bins::LostOfRuns;
use super::{Between, Hop, Hops, earliest};

/// Counts that show how well one tap records, over all captures of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Record {
    /// Packets that arrived and that it did not see, and in how many stretches.
    missed: u64,
    stretches: u64,
    /// Packets that it and another tap saw; of them, those whose loss would have been repaired.
    matched: u64,
    seen: u64,
    /// Packets that it did not see and with which a run of retransmissions began; all such runs.
    begins: u64,
    runs: u64,
    /// Packets that it saw and that would have shown that it missed them.
    shown: u64,
    /// Transmissions that were behind it and that it did not see, whether they were sent again or not.
    passed_by: u64,
    /// It reported lost records.
    has_lost: bool,
}

impl Record {
    /// True if this tap may miss packets as often as the tap `before` does, and no more than twice as many were not seen here. Where all packets are
    /// sent again, or READs are, no packet shows by itself that a tap missed it: packets that are behind the other tap show what that one misses.
    fn may_be_as_holed_as(self, before: Self, unseen: u64, matched: u64) -> bool {
        if before.passed_by == 0 || unseen == 0 {
            return false;
        }
        let rate = float(before.passed_by) / float(before.passed_by.saturating_add(before.matched));
        let expected = rate * float(self.missed.saturating_add(self.shown));
        let is_better = expected > NONE_BY_CHANCE && float(self.missed) < expected / 2.0;
        let rate = (2.0 * rate).min(1.0);
        !is_better && at_least(unseen, unseen.saturating_add(matched), rate) > BY_CHANCE
    }

    /// True if runs begin with a packet that it did not see no more often than it misses packets, whatever made the sender fall back. What
    /// it misses at once counts once.
    fn explains_runs(self) -> bool {
        if self.missed == 0 || self.begins == 0 {
            return false;
        }
        let rate = float(self.missed) / float(self.missed.saturating_add(self.matched));
        let at_once = self.missed.div_ceil(self.stretches.max(1)).max(1);
        let signs = self.begins.div_ceil(at_once);
        at_least(signs, self.runs.div_ceil(at_once).max(signs), rate) > BY_CHANCE
    }
}

/// Events that are expected where none happens in 1 of 20 cases.
const NONE_BY_CHANCE: f64 = 3.0;
/// Signs that a capture's own holes bring about as often as this show nothing.
const BY_CHANCE: f64 = 0.05;

/// Without a packet of which it is known that the tap saw it or not, one of so many may be lost: a tap that misses more does not see all.
const MIN_SHARE: u64 = 4;

/// How well each tap records.
type Records = HashMap<TapId, Record, foldhash::fast::RandomState>;

fn of_taps(records: &Records, taps: [TapId; 2]) -> [Record; 2] {
    taps.map(|tap| records.get(&tap).copied().unwrap_or_default())
}

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
            let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
            let forth = usize::from(!hop.is_upwards());
            for (side, other) in [hop.high, hop.low].into_iter().enumerate() {
                let unseen = hop.unseen[side];
                let record = records.entry(other).or_default();
                add(&mut record.seen, hop.repaired);
                add(&mut record.matched, hop.matched);
                if side == forth {
                    add(&mut record.missed, unseen.not_captured);
                    add(
                        &mut record.shown,
                        u64::try_from(hop.acknowledged).unwrap_or_default(),
                    );
                    add(&mut record.begins, unseen.begins);
                    add(&mut record.runs, unseen.runs);
                } else {
                    // A packet that is behind a tap passed it.
                    add(&mut record.passed_by, unseen.all());
                    add(&mut record.shown, hop.matched);
                    add(&mut record.missed, unseen.alone.max(unseen.not_captured));
                }
                add(&mut record.stretches, unseen.stretches);
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
                let [from, to] = of_taps(&records, [row.from_tap, row.to_tap]);
                hop.bins.write(
                    &row,
                    hop.is_upwards(),
                    (hop.lost_of_runs(from, to), hop.shows_silent(to)),
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
    /// Tells which of the packets that were sent again were lost. Where the tap at the end missed more than a tenth of what it did not see, as a count with a
    /// small prior says it, only the first losses of each run count. One tap alone judges what is missing inside a run by the same share.
    fn lost_of_runs(&self, from: Record, to: Record) -> LostOfRuns {
        let unseen = self.unseen[usize::from(!self.is_upwards())];
        let missed = unseen.not_captured.saturating_mul(5);
        let all = unseen.lost.saturating_mul(5).saturating_add(missed);
        let is_holed = missed > 0 && missed.saturating_add(1).saturating_mul(10) > all.saturating_add(4);
        if to.explains_runs() || to.may_be_as_holed_as(from, unseen.lost, self.matched) {
            LostOfRuns::Unknown
        } else if is_holed || to.has_lost {
            LostOfRuns::First
        } else {
            LostOfRuns::All
        }
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
        let [from, to] = of_taps(records, [from_tap, to_tap]);
        let (repaired, mut first) = match self.lost_of_runs(from, to) {
            LostOfRuns::All => (unseen.lost, unseen.first),
            LostOfRuns::First => (unseen.begins, unseen.first_begins),
            LostOfRuns::Unknown => (0, None),
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
