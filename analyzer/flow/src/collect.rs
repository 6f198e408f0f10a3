//! Joins the results of a run's shards and emits them to sinks, bin by bin.

mod cell;
mod named;
mod wide;

use std::collections::{BTreeMap, HashSet, VecDeque};

use roce_model::{
    Columns, EventColumns, EventRow, Filter, FlowId, FlowKey, FlowRow, Progress, SampleColumns, Sink,
    SinkError, Span, TapId, TapMeasures, Time, TimelineColumns,
};

use crate::analysis::{LiveFlows, Output};
use crate::bins::{Bin, event_order};
use crate::spare::Spare;
use cell::Cell;
use named::NamedReceivers;
use roce_verdict::{CELL, HostPairs, Settings, TranslatedPairs, Verdicts, counted_width};
use wide::Wide;

/// Rows that go to the sinks together.
const FLUSH_ROWS: usize = 8192;

/// Merges the outputs of a run's shards (one thread each) in the order of time.
pub struct Collector<'a> {
    sinks: Vec<&'a mut dyn Sink>,
    /// Width of the shards' bins.
    width: Span,
    /// The timeline's bins, where those are wider.
    wide: Option<Wide>,
    /// The cell of verdicts that goes on, where it has several bins.
    cell: Cell,
    shards: Vec<Shard>,
    /// One past the last bin that was emitted.
    emitted: u64,
    timeline: TimelineColumns,
    events: EventColumns,
    pairs: HostPairs,
    verdicts: Verdicts,
    shown: Option<ShownFlows>,
    /// Ranks of flows, where a log names queue pairs.
    named: Option<NamedReceivers>,
    spare: Spare,
}

/// Which flows the sinks get.
struct ShownFlows {
    filter: Filter,
    flows: HashSet<FlowId, foldhash::fast::RandomState>,
}

/// Flows that are shown, at most: some 64 MB. More of them are not.
const MAX_SHOWN: usize = 1 << 22;

impl ShownFlows {
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
    /// The pairs of hosts that it has numbered.
    pairs: TranslatedPairs,
    /// Its live flows, where a snapshot was requested.
    snapshot: Option<LiveFlows>,
    measures: Vec<(TapId, TapMeasures)>,
}

#[expect(
    clippy::missing_errors_doc,
    reason = "each error is that of a sink, after which no sink is called again"
)]
impl<'a> Collector<'a> {
    /// A collector for `parts` shards.
    pub fn new(shards: usize, settings: Settings, sinks: Vec<&'a mut dyn Sink>) -> Self {
        let width = counted_width(settings.bin);
        Self {
            sinks,
            width,
            wide: (width < settings.bin).then(|| Wide::new(settings.bin)),
            cell: Cell::default(),
            shards: (0..shards).map(|_| Shard::default()).collect(),
            emitted: 0,
            timeline: TimelineColumns::default(),
            events: EventColumns::default(),
            pairs: HostPairs::default(),
            shown: settings.shown.clone().map(|filter| ShownFlows {
                filter,
                flows: HashSet::default(),
            }),
            named: NamedReceivers::new(&settings.job),
            verdicts: Verdicts::new(settings),
            spare: Spare::default(),
        }
    }

    /// Room of rows that have been emitted, for the shards.
    pub fn spare(&self) -> &Spare {
        &self.spare
    }

    /// Takes the output of one shard, and emits complete bins.
    pub fn push(&mut self, shard: usize, mut output: Output) -> Result<(), SinkError> {
        let mut opened = core::mem::take(&mut output.opened);
        if let Some(named) = &mut self.named {
            named.open(&opened);
            named.name(&mut output.flows);
        }
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
        if !output.samples.is_empty() {
            for row in &output.samples {
                self.verdicts.sample(row);
            }
            let mut rows = SampleColumns::default();
            rows.extend(&output.samples);
            self.verdicts.samples(&rows);
            for sink in &mut self.sinks {
                sink.samples(&rows)?;
            }
        }
        let Some(state) = self.shards.get_mut(shard) else {
            return Ok(());
        };
        state.watermark = output.watermark;
        if output.snapshot.is_some() {
            state.snapshot = output.snapshot;
            state.measures = output.measures;
        }
        state.bins.extend(output.bins);
        self.emit()
    }

    /// The first bin that a shard may still add to.
    fn complete(&self) -> u64 {
        let shards = self.shards.iter();
        shards.map(|shard| shard.watermark).min().unwrap_or_default()
    }

    /// Emits every bin that no shard will add to.
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
            for (at, shard) in self.shards.iter_mut().enumerate() {
                while let Some(bin) = shard.bins.pop_front_if(|bin| bin.number == number) {
                    bins.push((at, bin));
                }
            }
            self.bin(number, bins)?;
            self.emitted = number.saturating_add(1);
        }
    }

    fn bin(&mut self, number: u64, mut bins: Vec<(usize, Bin)>) -> Result<(), SinkError> {
        let time = Time(number.saturating_mul(self.width.0));
        if self.cell.ends_before(time) || self.pairs.is_full() {
            self.end_cell();
        }
        self.verdicts.begin_bin(time);
        if self.pairs.begin_bin() {
            self.verdicts.renumber(&mut self.pairs);
        }
        for (shard, bin) in &mut bins {
            if let Some(shard) = self.shards.get_mut(*shard) {
                bin.rows.enter(&mut self.pairs, &mut shard.pairs);
            }
        }
        self.pairs.count_senders(time, self.width);
        // A run of which only the summary is wanted has no sinks.
        let is_wanted = !self.sinks.is_empty();
        for (_, bin) in &mut bins {
            let pairs = &self.pairs;
            if is_wanted {
                bin.rows.fill_senders(|destination| pairs.senders(destination));
            }
            self.verdicts.traffic(time, &bin.rows, pairs);
        }
        self.take_events(&mut bins);
        for link in bins.iter().flat_map(|(_, bin)| &bin.links) {
            self.verdicts.link(link);
        }
        for frame in bins.iter().flat_map(|(_, bin)| &bin.pauses) {
            self.verdicts.pause(frame);
        }
        self.verdicts.end_bin(&self.pairs);
        let rows = bins.iter().map(|(_, bin)| (time, &bin.rows));
        if self.width < CELL {
            self.cell.add(time, rows, &mut self.pairs);
        } else {
            self.verdicts.end_cell(&self.pairs, rows);
        }
        if is_wanted {
            for (_, bin) in &mut bins {
                self.keep(&mut bin.rows.columns);
            }
        }
        for (_, bin) in bins {
            self.spare.put(bin.rows);
        }
        if self.timeline.len() >= FLUSH_ROWS || self.events.len() >= FLUSH_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    /// Puts the events of a bin in order: those of each shard are.
    fn take_events(&mut self, bins: &mut [(usize, Bin)]) {
        let count = bins.iter().map(|(_, bin)| bin.events.len()).sum();
        // With their times: nearly all of them are in order by these alone.
        let mut events: Vec<(Time, &mut EventRow)> = Vec::with_capacity(count);
        for (_, bin) in bins {
            events.extend(bin.events.iter_mut().map(|event| (event.time, event)));
        }
        events.sort_by(|(time, event), (other_time, other)| {
            let by_time = time.cmp(other_time);
            by_time.then_with(|| event_order(event).cmp(&event_order(other)))
        });
        for (_, event) in &events {
            self.verdicts.event(event);
        }
        if self.sinks.is_empty() {
            return;
        }
        let mut events: Vec<EventRow> = events
            .into_iter()
            .map(|(_, event)| core::mem::take(event))
            .collect();
        if let Some(shown) = &self.shown {
            events.retain(|event| event.flow_id.is_none_or(|flow| shown.has(flow)));
        }
        self.events.extend(&events);
    }

    /// Keeps rows for the sinks, those of shown flows.
    fn keep(&mut self, columns: &mut TimelineColumns) {
        if let Some(shown) = &self.shown {
            let flows = columns.flow_id.iter();
            let keep: Vec<bool> = flows
                .map(|flow| flow.is_some_and(|flow| shown.has(FlowId(*flow))))
                .collect();
            columns.retain(&keep);
        }
        if let Some(wide) = &mut self.wide {
            wide.add(columns, &mut self.timeline);
        } else if self.timeline.is_empty() {
            core::mem::swap(&mut self.timeline, columns);
        } else {
            self.timeline.append(columns);
        }
    }

    /// The cell that goes on has ended.
    fn end_cell(&mut self) {
        if let Some(rows) = self.cell.end(&mut self.pairs) {
            self.verdicts
                .end_cell(&self.pairs, rows.iter().map(|(time, rows)| (*time, rows)));
        }
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

    /// Emits what is complete and gives the sinks the watermark. Once all shards have given their live flows, a snapshot of the
    /// verdicts is added.
    pub fn progress(&mut self) -> Result<(), SinkError> {
        self.flush()?;
        let is_whole = self.shards.iter().all(|shard| shard.snapshot.is_some());
        let snapshot = is_whole.then(|| {
            let snapshots = self.shards.iter_mut().filter_map(|shard| shard.snapshot.take());
            let rows = snapshots.map(|flows| match flows {
                LiveFlows::Rows(rows) => Some(rows),
                LiveFlows::TooMany => None,
            });
            let flows: Option<Vec<Vec<FlowRow>>> = rows.collect();
            let flows = flows.map(|flows| {
                let mut rows = flows.concat();
                if let Some(named) = &self.named {
                    named.name(&mut rows);
                }
                rows
            });
            self.verdicts.snapshot(flows)
        });
        let snapshot = snapshot.map(|mut snapshot| {
            snapshot.measures = self.measures();
            if let Some(shown) = &self.shown {
                snapshot.flows.retain(|row| shown.has(row.flow_id));
            }
            snapshot
        });
        // Behind the end of all shards there are no bins but those that were emitted.
        let complete = match self.complete() {
            u64::MAX => self.emitted,
            number => number,
        };
        let complete = Time(complete.saturating_mul(self.width.0));
        let wide = self.wide.as_ref();
        let progress = Progress {
            complete: wide.map_or(complete, |wide| wide.begin_of(complete)),
            snapshot: snapshot.as_ref(),
        };
        for sink in &mut self.sinks {
            sink.progress(&progress)?;
        }
        Ok(())
    }

    /// Measurements of all shards, by tap.
    fn measures(&self) -> Vec<(TapId, TapMeasures)> {
        let mut all: BTreeMap<TapId, TapMeasures> = BTreeMap::new();
        for (tap, measures) in self.shards.iter().flat_map(|shard| &shard.measures) {
            all.entry(*tap).or_default().merge(measures);
        }
        all.into_iter().collect()
    }

    /// The end: emits what is left; gives what there is to conclude from.
    pub fn finish(mut self) -> Result<Verdicts, SinkError> {
        for shard in &mut self.shards {
            shard.watermark = u64::MAX;
        }
        self.emit()?;
        self.end_cell();
        if let Some(wide) = &mut self.wide {
            wide.end(&mut self.timeline);
        }
        self.flush()?;
        Ok(self.verdicts)
    }
}

#[cfg(test)]
mod tests;
