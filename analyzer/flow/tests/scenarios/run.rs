//! Runs a scenario through the public interface of the crate, with one and several shards, with equal results.

use std::collections::BTreeMap;

use roce_flow::{Analysis, Collector, Conclusion, Options};
use roce_model::{
    Between, Cell, Columns, Data, EventColumns, FlowColumns, FlowRow, LostRecords, PacketBatch, Sink,
    SinkError, TimelineColumns,
};
use roce_verdict::Settings;

use crate::parse::Item;

/// A row as text, by column.
pub(crate) type Row = BTreeMap<&'static str, String>;

/// All that came of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    pub(crate) flows: Vec<Row>,
    pub(crate) timeline: Vec<Row>,
    pub(crate) events: Vec<Row>,
    pub(crate) conclusion: Conclusion,
    pub(crate) summary: roce_model::RunSummary,
}

impl Results {
    /// In an order that does not depend on how the run was cut up.
    pub(crate) fn sort(&mut self) {
        self.flows.sort();
        self.timeline.sort();
        self.events.sort();
    }
}

impl Sink for Results {
    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.timeline.extend(rows_of(rows));
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        self.events.extend(rows_of(rows));
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.flows.extend(rows.iter().map(row_of::<FlowColumns>));
        Ok(())
    }
}

/// One row of a table.
pub(crate) fn row_of<C: Columns>(of: &C::Row) -> Row {
    let mut row = Row::new();
    C::cells(of, |column, cell| {
        row.insert(column.name, text(cell));
    });
    row
}

fn text(cell: Cell<'_>) -> String {
    match cell {
        Cell::Null => "null".into(),
        Cell::U32(value) => value.to_string(),
        Cell::U64(value) => value.to_string(),
        Cell::F64(value) => format!("{value:.3}"),
        Cell::Bool(value) => value.to_string(),
        Cell::Text(value) => value.into(),
        Cell::Time(value) => value.0.to_string(),
        Cell::Id(value) => value.to_string(),
        Cell::Address(value) => value.to_string(),
        Cell::Names(value) => value.to_string(),
        Cell::Evidence(value) => value.to_string(),
    }
}

fn rows_of<C: Columns>(columns: &C) -> Vec<Row> {
    let mut rows = vec![Row::new(); columns.len()];
    columns.for_each(|column, data| {
        let cells: Vec<Cell<'_>> = match data {
            Data::U32(values) => values
                .iter()
                .map(|v| v.map_or(Cell::Null, |v| Cell::U32(*v)))
                .collect(),
            Data::U64(values) => values
                .iter()
                .map(|v| v.map_or(Cell::Null, |v| Cell::U64(*v)))
                .collect(),
            Data::F64(values) => values
                .iter()
                .map(|v| v.map_or(Cell::Null, |v| Cell::F64(*v)))
                .collect(),
            Data::Bool(values) => values
                .iter()
                .map(|v| v.map_or(Cell::Null, |v| Cell::Bool(*v)))
                .collect(),
            Data::Text(values) => values
                .iter()
                .map(|v| v.map_or(Cell::Null, |v| Cell::Text(v)))
                .collect(),
            Data::Time(values) | Data::Id(values) => values
                .iter()
                .map(|v| v.map_or(Cell::Null, |v| Cell::U64(*v)))
                .collect(),
            Data::Address(values) => values
                .iter()
                .map(|v| v.map_or(Cell::Null, |v| Cell::Address(*v)))
                .collect(),
        };
        for (row, cell) in rows.iter_mut().zip(cells) {
            let is_id = matches!(data, Data::Id(_));
            let cell = match cell {
                Cell::U64(id) if is_id => format!("{id:016x}"),
                cell => text(cell),
            };
            row.insert(column.name, cell);
        }
    });
    rows
}

/// How a scenario's packets reach the analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkDirection {
    OneBatch,
    OneByOne,
    TwoParts,
}

/// Runs `items`.
pub(crate) fn run(items: &[Item], options: Options, way: LinkDirection) -> Results {
    let parts = if way == LinkDirection::TwoParts { 2 } else { 1 };
    let mut results = Results::default();
    let settings = Settings {
        bin: options.bin,
        link_rate: options.link_rate,
        ..Settings::default()
    };
    let mut collector = Collector::new(parts, settings, vec![&mut results]);
    let mut analyses: Vec<Analysis> = (0..parts).map(|_| Analysis::new(options)).collect();
    if way == LinkDirection::OneBatch {
        let mut batch = PacketBatch::default();
        for item in items {
            add(&mut batch, item);
        }
        analyses[0].push(&batch);
    } else {
        for item in items {
            for (part, analysis) in analyses.iter_mut().enumerate() {
                let mut batch = PacketBatch::default();
                if let Some(item) = share(item, part, parts) {
                    add(&mut batch, &item);
                }
                analysis.push(&batch);
                // As every part sees every frame, each knows how far time has come.
                analysis.advance_to(item.time());
                if analysis.has_output() || parts > 1 {
                    collector.push(part, analysis.take_output()).unwrap();
                }
            }
        }
    }
    let mut conclusion = Conclusion::default();
    for (part, analysis) in analyses.into_iter().enumerate() {
        let (output, concluded) = analysis.finish();
        collector.push(part, output).unwrap();
        conclusion.add(&[concluded]);
    }
    collector.finish().unwrap().conclude(&mut results.summary);
    results.conclusion = conclusion;
    results
}

/// Share of the shard `part` in an item: a pair of hosts has one shard; items that concern all are reported by the first.
fn share(item: &Item, part: usize, parts: usize) -> Option<Item> {
    match item {
        Item::Packet(packet) | Item::Management(packet, _) => {
            let last = |address: &roce_wire::Address| usize::from(address.octets()[15]);
            let pair = last(&packet.roce.source) + last(&packet.roce.destination);
            (pair % parts == part).then_some(*item)
        }
        Item::Lost(lost) if part > 0 => Some(Item::Lost(LostRecords { records: 0, ..*lost })),
        Item::Pause(frame) if part > 0 => Some(Item::Pause(roce_model::PauseFrame {
            reported: false,
            ..*frame
        })),
        item => Some(*item),
    }
}

fn add(batch: &mut PacketBatch, item: &Item) {
    let before = batch.packets.len();
    match item {
        Item::Packet(packet) => batch.packets.push(*packet),
        Item::Management(packet, message) => {
            batch.between.push(Between::Management(roce_model::Management {
                packet: before,
                ..*message
            }));
            batch.packets.push(*packet);
        }
        Item::Lost(lost) => batch.between.push(Between::Lost(LostRecords { before, ..*lost })),
        Item::Link(link) => batch
            .between
            .push(Between::Link(roce_model::LinkAddresses { before, ..*link })),
        Item::Pause(pause) => batch
            .between
            .push(Between::Pause(roce_model::PauseFrame { before, ..*pause })),
    }
}
