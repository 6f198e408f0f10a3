//! The page: one HTML file with the verdicts, the timeline, and every table, which opens from disk in any browser.
//!
//! While rows come, `gather` collects the series by slots, and `crate::moments` thins events where they are too
//! many. The rest is the JSON document itself, and the rows of flows as columns (`pack`). The page, its
//! style and its scripts are files beside this one's modules, put together in `page`. The page says what
//! was merged or left out.

mod axis;
mod counters;
mod gather;
mod leb128;
mod pack;
mod page;
mod series;

use std::collections::HashSet;
use std::io::Write;

use roce_model::{
    CollectiveCallColumns, Columns, EventColumns, FlowColumns, FlowId, FlowKey, FlowRow, RankStateColumns,
    RunSummary, SampleColumns, Sink, SinkError, Span, Table, Time, TimelineColumns, Totals, TraceColumns,
};
use serde::Serialize;

use crate::kept::KeptFlows;
use crate::moments::{Moments, event};
use crate::schema::TABLES;
use crate::{Error, json};
use counters::GatheredCounters;
use gather::GatheredSeries;
use pack::{ColumnPlace, PackedColumns};
use page::Block;
use series::{METRICS, Rule};

/// Rows of flows that go into the page: about 25 MB.
const MAX_FLOWS: usize = 1 << 14;
/// Destinations whose senders are drawn.
const MAX_DESTINATIONS: usize = 32;

/// Writes the page when the run ends.
#[derive(Debug)]
pub struct HtmlReport<W> {
    out: W,
    gathered: GatheredSeries,
    counters: GatheredCounters,
    moments: Moments,
    flows: KeptFlows,
}

impl<W: Write> HtmlReport<W> {
    /// Will write to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self {
            out,
            gathered: GatheredSeries::new(Span(0)),
            counters: GatheredCounters::default(),
            moments: Moments::new(),
            flows: KeptFlows::new(MAX_FLOWS),
        }
    }

    /// The destination.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn blocks(&mut self, run: &RunSummary) -> Result<Vec<Block>, Error> {
        let rows = self.flows.take();
        let mut document = Vec::new();
        json::document_for_page(run, &mut document)?;

        // Without packets the axis is that of the readings.
        if let Some((first, last)) = self.counters.span().filter(|_| self.gathered.axis.slots() == 0) {
            self.gathered.cover(first, last);
        }
        let events = self.moments.columns();
        let times = [
            Some(self.gathered.axis.begin()),
            run.span.map(|span| span.first),
            events.time.at(0).map(|time| Time(*time)),
            rows.iter().map(|row| row.first_time).min(),
        ];
        let is_any = self.gathered.axis.slots() > 0;
        let base = times
            .into_iter()
            .skip(usize::from(!is_any))
            .flatten()
            .min()
            .unwrap_or_default();

        let mut flows = FlowColumns::default();
        // One copy at a time.
        for row in rows {
            flows.push(&row);
        }
        let mut tables = PackedColumns::new(base.0);
        let mut described: Vec<DescribedTable> = TABLES.into_iter().map(DescribedTable::new).collect();
        if !run.traces.is_empty() {
            described.extend(
                [
                    TraceColumns::TABLE,
                    CollectiveCallColumns::TABLE,
                    RankStateColumns::TABLE,
                ]
                .map(DescribedTable::new),
            );
        }
        for (name, rows, columns) in [
            ("flows", flows.len(), tables.table(&flows)),
            ("events", events.len(), tables.table(&events)),
        ] {
            if let Some(table) = described.iter_mut().find(|table| table.name == name) {
                (table.rows, table.columns) = (Some(rows), columns);
            }
        }

        let (series, kept) = self.series(run, &events);
        let head = Head {
            base: base.0.to_string(),
            begin: self.gathered.axis.begin().since(base).0,
            width: self.gathered.axis.width().0,
            slots: self.gathered.axis.slots(),
            metrics: METRICS
                .iter()
                .map(|(name, rule)| {
                    let rule = match rule {
                        Rule::Sum => "sum",
                        Rule::Most => "most",
                        Rule::Mean | Rule::Number => "mean",
                    };
                    (*name, rule)
                })
                .collect(),
            tables: described,
            totals: Totals::default()
                .counts()
                .map(|(name, _, meaning)| (name, meaning))
                .collect(),
            flows_seen: self.flows.seen(),
            series: kept,
            events_seen: self.moments.seen(),
        };
        let head = serde_json::to_vec(&head).map_err(|error| Error::Html(error.into()))?;
        let counters = self.counters.drawn(base);
        let counters = serde_json::to_vec(&counters).map_err(|error| Error::Html(error.into()))?;
        Ok([
            ("head", head),
            ("counters", counters),
            ("document", document),
            ("tables", tables.bytes),
            ("series", series),
        ]
        .into_iter()
        .map(|(name, bytes)| Block { name, bytes })
        .collect())
    }

    /// All series: the taps', then the flows', then the destinations'; and how many flows have one.
    fn series(&mut self, run: &RunSummary, events: &EventColumns) -> (Vec<u8>, usize) {
        let in_episodes = run
            .episodes
            .iter()
            .flat_map(|episode| episode.flow_ids.split(' '));
        let mut named: HashSet<FlowId> = in_episodes
            .filter_map(|id| u64::from_str_radix(id, 16).ok())
            .map(FlowId)
            .collect();
        // Stalls, too, leave no count in the timeline.
        let stalled = events.kind.iter().zip(events.flow_id.iter());
        named.extend(
            stalled
                .filter(|(kind, _)| kind.is_some_and(|kind| kind == "stall"))
                .filter_map(|(_, flow)| flow.copied().map(FlowId)),
        );
        let axis = self.gathered.axis;
        let mut packed = PackedColumns::default();
        let taps = self.gathered.taps();
        packed.number(taps.len() as u64);
        for (tap, series) in taps {
            packed.number(u64::from(tap.0));
            packed.series(&series, &axis);
        }
        let kept = self.gathered.kept(&named);
        packed.number(kept.len() as u64);
        for flow in &kept {
            packed.id(flow.flow.0);
            packed.number(u64::from(flow.tap.0));
            packed.number(u64::from(flow.partial));
            packed.series(flow.series, &axis);
        }
        let kept = kept.len();
        let crowded = self.gathered.crowded(MAX_DESTINATIONS);
        packed.number(crowded.len() as u64);
        for (tap, destination, series) in crowded {
            packed.number(u64::from(tap.0));
            packed.text(&destination.to_string());
            packed.series(&series, &axis);
        }
        (packed.bytes, kept)
    }
}

impl<W: Write> Sink for HtmlReport<W> {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.gathered = GatheredSeries::new(bin);
        Ok(())
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.gathered.opened(keys);
        Ok(())
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.gathered.timeline(rows);
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for row in 0..rows.len() {
            let event = event(rows, row);
            self.gathered.event(&event);
            self.moments.add(&event);
        }
        Ok(())
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.counters.add(rows);
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.flows.extend(rows);
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let blocks = self.blocks(run)?;
        Ok(page::write(&blocks, &mut self.out).map_err(Error::Html)?)
    }
}

/// Data that the page's scripts read first.
#[derive(Serialize)]
struct Head {
    /// Origin of all times: ns since the epoch, as text.
    base: String,
    /// Start of the first slot, after that.
    begin: u64,
    /// Width of a slot, in ns.
    width: u64,
    slots: u64,
    /// Names of the series' metrics, and how values become one.
    metrics: Vec<(&'static str, &'static str)>,
    tables: Vec<DescribedTable>,
    /// The counts of `totals`, and what they mean.
    totals: Vec<(&'static str, &'static str)>,
    /// Rows of flows that there were.
    flows_seen: u64,
    /// Flows with a series.
    series: usize,
    /// Events that there were.
    events_seen: u64,
}

/// A table: the meaning of its columns and, for those in the block `tables`, their places.
#[derive(Serialize)]
struct DescribedTable {
    name: &'static str,
    meaning: &'static str,
    /// Absent: its rows are in the document.
    rows: Option<usize>,
    columns: Vec<ColumnPlace>,
}

impl DescribedTable {
    fn new(table: Table) -> Self {
        Self {
            name: table.name,
            meaning: table.row,
            rows: None,
            columns: table.columns.iter().map(ColumnPlace::nowhere).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
