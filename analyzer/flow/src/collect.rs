//! Puts the results of the parts of a run together and hands them to sinks, bin by bin.

use std::collections::{HashSet, VecDeque};

use roce_model::{
    Columns, EventColumns, Filter, FlowId, FlowKey, FlowRow, Nanos, Progress, Sink, SinkError,
    TimelineColumns, TimelineRow,
};

use crate::analysis::{LiveFlows, Output};
use crate::bins::{Bin, Row};
use roce_verdict::{HostPairs, Settings, Verdicts};

/// Rows that go to the sinks together.
const FLUSH_ROWS: usize = 8192;
/// Rows made before they become columns.
const ROW_BATCH: usize = 32;

/// Merges the outputs of the parts of a run (one thread each) in the order of time.
pub struct Collector<'a> {
    sinks: Vec<&'a mut dyn Sink>,
    width: Nanos,
    shards: Vec<Shard>,
    timeline: TimelineColumns,
    events: EventColumns,
    pairs: HostPairs,
    /// The numbers of those of the rows of a bin.
    of_rows: Vec<u32>,
    /// Rows that are not in `timeline` yet; none between two bins.
    rows: Vec<TimelineRow>,
    verdicts: Verdicts,
    shown: Option<Shown>,
}

/// Which flows the sinks get.
struct Shown {
    filter: Filter,
    flows: HashSet<FlowId, foldhash::fast::RandomState>,
}

/// Flows that are shown, at most: some 64 MB. More of them are not.
const MAX_SHOWN: usize = 1 << 22;

impl Shown {
    /// True if a flow is shown from now on, whose first packet has this DSCP.
    fn opened(&mut self, key: &FlowKey, dscp: Option<u8>) -> bool {
        let id = key.id();
        if self.flows.len() < MAX_SHOWN && self.filter.matches_flow(key, dscp) {
            self.flows.insert(id);
        }
        self.has(id)
    }

    fn has(&self, flow: FlowId) -> bool {
        self.flows.contains(&flow)
    }
}

#[derive(Default)]
struct Shard {
    bins: VecDeque<Bin>,
    watermark: u64,
    /// How its live flows stand, when it was asked.
    snapshot: Option<LiveFlows>,
}

#[expect(
    clippy::missing_errors_doc,
    reason = "each error is that of a sink, after which no sink is called again"
)]
impl<'a> Collector<'a> {
    /// For `parts` parts.
    pub fn new(shards: usize, settings: Settings, sinks: Vec<&'a mut dyn Sink>) -> Self {
        Self {
            sinks,
            width: settings.bin,
            shards: (0..shards).map(|_| Shard::default()).collect(),
            timeline: TimelineColumns::default(),
            events: EventColumns::default(),
            pairs: HostPairs::default(),
            of_rows: Vec::new(),
            rows: Vec::with_capacity(ROW_BATCH),
            shown: settings.shown.clone().map(|filter| Shown {
                filter,
                flows: HashSet::default(),
            }),
            verdicts: Verdicts::new(settings),
        }
    }

    /// Takes the output of one part, emits what is complete.
    pub fn push(&mut self, shard: usize, mut output: Output) -> Result<(), SinkError> {
        let mut opened = core::mem::take(&mut output.opened);
        if let Some(shown) = &mut self.shown {
            opened.retain(|(key, dscp)| shown.opened(key, *dscp));
        }
        if !opened.is_empty() {
            let keys: Vec<FlowKey> = opened.into_iter().map(|(key, _)| key).collect();
            for sink in &mut self.sinks {
                sink.flows_opened(&keys)?;
            }
        }
        if !output.flows.is_empty() {
            for row in &output.flows {
                self.verdicts.flow(row);
            }
            if let Some(shown) = &self.shown {
                output.flows.retain(|row| shown.has(row.flow_id));
            }
            for sink in &mut self.sinks {
                sink.flows_closed(&output.flows)?;
            }
        }
        let Some(state) = self.shards.get_mut(shard) else {
            return Ok(());
        };
        state.watermark = output.watermark;
        if output.snapshot.is_some() {
            state.snapshot = output.snapshot;
        }
        state.bins.extend(output.bins);
        self.emit()
    }

    /// The first bin that a part may still add to.
    fn complete(&self) -> u64 {
        let shards = self.shards.iter();
        shards.map(|shard| shard.watermark).min().unwrap_or_default()
    }

    /// Emits every bin that no part will add to.
    fn emit(&mut self) -> Result<(), SinkError> {
        let complete = self.complete();
        loop {
            let next = self
                .shards
                .iter()
                .filter_map(|shard| shard.bins.front().map(|bin| bin.number))
                .min();
            let Some(number) = next.filter(|number| *number < complete) else {
                return Ok(());
            };
            let mut bins = Vec::with_capacity(self.shards.len());
            for shard in &mut self.shards {
                while let Some(bin) = shard.bins.pop_front_if(|bin| bin.number == number) {
                    bins.push(bin);
                }
            }
            self.bin(number, bins)?;
        }
    }

    fn bin(&mut self, number: u64, mut bins: Vec<Bin>) -> Result<(), SinkError> {
        let time = Nanos(number.saturating_mul(self.width.0));
        // A run of which only the summary is wanted has no sinks.
        let is_wanted = !self.sinks.is_empty();
        self.verdicts.begin_bin(time);
        if self.pairs.begin_bin() {
            self.verdicts.renumber(&mut self.pairs);
        }
        self.of_rows.clear();
        for row in bins.iter().flat_map(|bin| &bin.rows) {
            let pair = self.pairs.find_or_add(row.groups);
            if row.counts.payload_bytes > 0 {
                self.pairs.sends(pair, row.active);
            }
            self.of_rows.push(pair.number);
        }
        self.pairs.count_senders(time, self.width);
        let rows = bins
            .iter()
            .flat_map(|bin| bin.rows.iter().map(move |row| (bin, row)));
        for ((bin, row), number) in rows.zip(&self.of_rows) {
            let pair = self.pairs.by_number(*number);
            let senders = self.pairs.senders(pair.destination);
            // Written out twice: what the verdicts do not look at need not be filled in for them.
            self.verdicts
                .row(&timeline_row(time, bin, row, senders), pair, &self.pairs);
            let is_shown = self.shown.as_ref().is_none_or(|shown| shown.has(row.flow_id));
            if is_wanted && is_shown {
                self.rows.push(timeline_row(time, bin, row, senders));
                if self.rows.len() == ROW_BATCH {
                    self.timeline.extend(&self.rows);
                    self.rows.clear();
                }
            }
        }
        self.timeline.extend(&self.rows);
        self.rows.clear();
        let mut events: Vec<_> = bins
            .iter_mut()
            .flat_map(|bin| core::mem::take(&mut bin.events))
            .collect();
        events.sort_by_key(|event| (event.time, event.tap, event.flow_id, event.psn));
        for event in &events {
            self.verdicts.event(event);
        }
        if is_wanted {
            if let Some(shown) = &self.shown {
                events.retain(|event| event.flow_id.is_none_or(|flow| shown.has(flow)));
            }
            self.events.extend(&events);
        }
        for frame in bins.iter().flat_map(|bin| &bin.pauses) {
            self.verdicts.pause(frame);
        }
        self.verdicts.end_bin(&self.pairs);
        if self.timeline.len() >= FLUSH_ROWS || self.events.len() >= FLUSH_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        for sink in &mut self.sinks {
            if !self.timeline.is_empty() {
                sink.timeline(&self.timeline)?;
            }
            if !self.events.is_empty() {
                sink.events(&self.events)?;
            }
        }
        self.timeline.clear();
        self.events.clear();
        Ok(())
    }

    /// An interval of a live run has passed: emits what is complete, and says so.
    pub fn interval(&mut self) -> Result<(), SinkError> {
        self.flush()?;
        for sink in &mut self.sinks {
            sink.interval()?;
        }
        Ok(())
    }

    /// Somebody looks at the run: emits what is complete, says how far it has come, and, once all parts have told of their flows,
    /// what there is to say so far.
    pub fn progress(&mut self) -> Result<(), SinkError> {
        self.flush()?;
        let is_whole = self.shards.iter().all(|shard| shard.snapshot.is_some());
        let snapshot = is_whole.then(|| {
            let told = self.shards.iter_mut().filter_map(|shard| shard.snapshot.take());
            let rows = told.map(|flows| match flows {
                LiveFlows::Rows(rows) => Some(rows),
                LiveFlows::TooMany => None,
            });
            let flows: Option<Vec<Vec<FlowRow>>> = rows.collect();
            self.verdicts.snapshot(flows.map(|flows| flows.concat()))
        });
        let snapshot = snapshot.map(|mut snapshot| {
            if let Some(shown) = &self.shown {
                snapshot.flows.retain(|row| shown.has(row.flow_id));
            }
            snapshot
        });
        let progress = Progress {
            complete: Nanos(self.complete().saturating_mul(self.width.0)),
            snapshot: snapshot.as_ref(),
        };
        for sink in &mut self.sinks {
            sink.progress(&progress)?;
        }
        Ok(())
    }

    /// The end: emits what is left; gives what there is to conclude from.
    pub fn finish(mut self) -> Result<Verdicts, SinkError> {
        for shard in &mut self.shards {
            shard.watermark = u64::MAX;
        }
        self.emit()?;
        self.flush()?;
        Ok(self.verdicts)
    }
}

/// The row of the timeline that a bin's row comes to.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "most of what it fills in is not read where it is called"
)]
fn timeline_row(time: Nanos, bin: &Bin, row: &Row, senders_to_destination: u32) -> TimelineRow {
    let mut out = TimelineRow {
        time,
        flow_id: row.flow_id,
        tap: row.tap,
        epoch: row.epoch,
        senders_to_destination,
        lost_downstream: row.paired.then(|| row.counts.rare().lost_downstream),
        cnp: row.cnp(),
        ..TimelineRow::default()
    };
    row.counts.write_timeline(&mut out);
    if let Some(times) = bin.times.get((row.times as usize).wrapping_sub(1)) {
        times.write_timeline(&mut out);
    }
    if let Some(limits) = bin.limits.get((row.limits as usize).wrapping_sub(1)) {
        (out.pause_ns, out.dcqcn_rate_bps) = (limits.pause_ns, limits.dcqcn_rate_bps);
    }
    out
}

#[cfg(test)]
mod tests;
