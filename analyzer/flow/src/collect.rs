//! Puts the results of the parts of a run together and hands them to sinks, bin by bin.

use std::collections::{HashMap, HashSet, VecDeque};

use roce_model::{Columns, EventColumns, Nanos, Sink, SinkError, TimelineColumns, TimelineRow};

use crate::analysis::Output;
use crate::bins::Bin;

type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;
type Set<K> = HashSet<K, foldhash::fast::FixedState>;

/// Rows that go to the sinks together.
const ROWS: usize = 8192;

/// Merges the outputs of the parts of a run (one thread each) in the order of time.
pub struct Collector<'a> {
    sinks: Vec<&'a mut dyn Sink>,
    width: Nanos,
    parts: Vec<Part>,
    timeline: TimelineColumns,
    events: EventColumns,
    pairs: Set<u64>,
    senders: Map<u64, u32>,
}

#[derive(Default)]
struct Part {
    bins: VecDeque<Bin>,
    done_before: u64,
}

impl<'a> Collector<'a> {
    /// For `parts` parts with bins of `width`.
    pub fn new(parts: usize, width: Nanos, sinks: Vec<&'a mut dyn Sink>) -> Self {
        Self {
            sinks,
            width,
            parts: (0..parts).map(|_| Part::default()).collect(),
            timeline: TimelineColumns::default(),
            events: EventColumns::default(),
            pairs: Set::default(),
            senders: Map::default(),
        }
    }

    /// Takes the output of one part, hands on what is complete.
    ///
    /// # Errors
    /// When a sink fails.
    pub fn push(&mut self, part: usize, output: Output) -> Result<(), SinkError> {
        if !output.flows.is_empty() {
            for sink in &mut self.sinks {
                sink.flows_closed(&output.flows)?;
            }
        }
        let Some(state) = self.parts.get_mut(part) else { return Ok(()) };
        state.done_before = output.done_before;
        state.bins.extend(output.bins);
        self.hand_on()
    }

    /// Hands on every bin that no part will add to.
    fn hand_on(&mut self) -> Result<(), SinkError> {
        let complete = self.parts.iter().map(|part| part.done_before).min().unwrap_or_default();
        loop {
            let next = self.parts.iter().filter_map(|part| part.bins.front().map(|bin| bin.number)).min();
            let Some(number) = next.filter(|number| *number < complete) else { return Ok(()) };
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
        self.pairs.clear();
        self.senders.clear();
        for row in bins.iter().flat_map(|bin| &bin.rows) {
            if row.counts.payload_bytes > 0 && self.pairs.insert(row.pair) {
                *self.senders.entry(row.destination).or_default() += 1;
            }
        }
        for row in bins.iter().flat_map(|bin| &bin.rows) {
            let mut out = TimelineRow {
                time,
                flow_id: row.flow_id,
                tap: row.tap,
                epoch: row.epoch,
                senders_to_destination: self.senders.get(&row.destination).copied().unwrap_or_default(),
                ..TimelineRow::default()
            };
            row.counts.write_timeline(&mut out);
            self.timeline.push(&out);
        }
        let mut events: Vec<_> = bins.iter_mut().flat_map(|bin| core::mem::take(&mut bin.events)).collect();
        events.sort_by_key(|event| (event.time, event.tap, event.flow_id, event.psn));
        for event in &events {
            self.events.push(event);
        }
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

    /// The end: hands on what is left.
    ///
    /// # Errors
    /// When a sink fails.
    pub fn finish(mut self) -> Result<(), SinkError> {
        for part in &mut self.parts {
            part.done_before = u64::MAX;
        }
        self.hand_on()?;
        self.flush()
    }
}
