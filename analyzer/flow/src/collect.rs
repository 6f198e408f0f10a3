//! Puts the results of the parts of a run together and hands them to sinks, bin by bin.

use std::collections::{HashSet, VecDeque};

use roce_model::{
    Columns, EventColumns, Filter, FlowId, FlowKey, FlowRow, Nanos, Progress, Sink, SinkError,
    TimelineColumns, TimelineRow,
};

use crate::analysis::{LiveFlows, Output};
use crate::bins::{Bin, Row};
use crate::verdict::{Settings, Verdicts};
use crate::ways::Ways;

/// Rows that go to the sinks together.
const ROWS: usize = 8192;
/// Rows made before they become columns.
const TOGETHER: usize = 32;

/// Merges the outputs of the parts of a run (one thread each) in the order of time.
pub struct Collector<'a> {
    sinks: Vec<&'a mut dyn Sink>,
    width: Nanos,
    parts: Vec<Part>,
    timeline: TimelineColumns,
    events: EventColumns,
    ways: Ways,
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
const MOST_SHOWN: usize = 1 << 22;

impl Shown {
    /// Whether a flow is shown from now on, whose first packet has this DSCP.
    fn opened(&mut self, key: &FlowKey, dscp: Option<u8>) -> bool {
        let id = key.id();
        if self.flows.len() < MOST_SHOWN && self.filter.matches_flow(key, dscp) {
            self.flows.insert(id);
        }
        self.has(id)
    }

    fn has(&self, flow: FlowId) -> bool {
        self.flows.contains(&flow)
    }
}

#[derive(Default)]
struct Part {
    bins: VecDeque<Bin>,
    done_before: u64,
    /// How its live flows stand, when it was asked.
    so_far: Option<LiveFlows>,
}

impl<'a> Collector<'a> {
    /// For `parts` parts.
    pub fn new(parts: usize, settings: Settings, sinks: Vec<&'a mut dyn Sink>) -> Self {
        Self {
            sinks,
            width: settings.bin,
            parts: (0..parts).map(|_| Part::default()).collect(),
            timeline: TimelineColumns::default(),
            events: EventColumns::default(),
            ways: Ways::default(),
            of_rows: Vec::new(),
            rows: Vec::with_capacity(TOGETHER),
            shown: settings.shown.clone().map(|filter| Shown {
                filter,
                flows: HashSet::default(),
            }),
            verdicts: Verdicts::new(settings),
        }
    }

    /// Takes the output of one part, hands on what is complete.
    ///
    /// # Errors
    /// When a sink fails.
    pub fn push(&mut self, part: usize, mut output: Output) -> Result<(), SinkError> {
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
        let Some(state) = self.parts.get_mut(part) else {
            return Ok(());
        };
        state.done_before = output.done_before;
        if output.so_far.is_some() {
            state.so_far = output.so_far;
        }
        state.bins.extend(output.bins);
        self.hand_on()
    }

    /// The first bin that a part may still add to.
    fn complete(&self) -> u64 {
        let parts = self.parts.iter();
        parts.map(|part| part.done_before).min().unwrap_or_default()
    }

    /// Hands on every bin that no part will add to.
    fn hand_on(&mut self) -> Result<(), SinkError> {
        let complete = self.complete();
        loop {
            let next = self
                .parts
                .iter()
                .filter_map(|part| part.bins.front().map(|bin| bin.number))
                .min();
            let Some(number) = next.filter(|number| *number < complete) else {
                return Ok(());
            };
            let mut bins = Vec::with_capacity(self.parts.len());
            for part in &mut self.parts {
                while let Some(bin) = part.bins.pop_front_if(|bin| bin.number == number) {
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
        if self.ways.begin_bin() {
            self.verdicts.renumber(&mut self.ways);
        }
        self.of_rows.clear();
        for row in bins.iter().flat_map(|bin| &bin.rows) {
            let way = self.ways.of(row.groups);
            if row.counts.payload_bytes > 0 {
                self.ways.sends(way, row.active);
            }
            self.of_rows.push(way.number);
        }
        self.ways.count_senders(time, self.width);
        let rows = bins
            .iter()
            .flat_map(|bin| bin.rows.iter().map(move |row| (bin, row)));
        for ((bin, row), number) in rows.zip(&self.of_rows) {
            let way = self.ways.by_number(*number);
            let senders = self.ways.senders(way.destination);
            // Written out twice: what the verdicts do not look at need not be filled in for them.
            self.verdicts
                .row(&timeline_row(time, bin, row, senders), way, &self.ways);
            let is_shown = self.shown.as_ref().is_none_or(|shown| shown.has(row.flow_id));
            if is_wanted && is_shown {
                self.rows.push(timeline_row(time, bin, row, senders));
                if self.rows.len() == TOGETHER {
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
        self.verdicts.end_bin(&self.ways);
        if self.timeline.len() >= ROWS || self.events.len() >= ROWS {
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

    /// An interval of a live run has passed: hands on what is complete, and says so.
    ///
    /// # Errors
    /// When a sink fails.
    pub fn interval(&mut self) -> Result<(), SinkError> {
        self.flush()?;
        for sink in &mut self.sinks {
            sink.interval()?;
        }
        Ok(())
    }

    /// Somebody looks at the run: hands on what is complete, says how far it has come, and, once all parts have told of their flows,
    /// what there is to say so far.
    ///
    /// # Errors
    /// When a sink fails.
    pub fn progress(&mut self) -> Result<(), SinkError> {
        self.flush()?;
        let all_told = self.parts.iter().all(|part| part.so_far.is_some());
        let so_far = all_told.then(|| {
            let told = self.parts.iter_mut().filter_map(|part| part.so_far.take());
            let rows = told.map(|flows| match flows {
                LiveFlows::Rows(rows) => Some(rows),
                LiveFlows::TooMany => None,
            });
            let flows: Option<Vec<Vec<FlowRow>>> = rows.collect();
            self.verdicts.so_far(flows.map(|flows| flows.concat()))
        });
        let so_far = so_far.map(|mut so_far| {
            if let Some(shown) = &self.shown {
                so_far.flows.retain(|row| shown.has(row.flow_id));
            }
            so_far
        });
        let progress = Progress {
            complete: Nanos(self.complete().saturating_mul(self.width.0)),
            so_far: so_far.as_ref(),
        };
        for sink in &mut self.sinks {
            sink.progress(&progress)?;
        }
        Ok(())
    }

    /// The end: hands on what is left; gives what there is to conclude from.
    ///
    /// # Errors
    /// When a sink fails.
    pub fn finish(mut self) -> Result<Verdicts, SinkError> {
        for part in &mut self.parts {
            part.done_before = u64::MAX;
        }
        self.hand_on()?;
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
