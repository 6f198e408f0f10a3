//! The results of an earlier run, from the folder that `-o` wrote: they go to a sink as those of a run do.

use std::collections::HashSet;
use std::io::BufReader;
use std::iter::Peekable;
use std::path::Path;

use roce_model::{
    Columns, EventColumns, FlowColumns, FlowId, FlowKey, FlowRow, RunSummary, SampleColumns, Sink, SinkError,
    Time, TimelineColumns,
};
use roce_parquet::{Rows, TABLES};
use roce_report::json;

use crate::error::Error;
use crate::names::DOCUMENT;

/// Flows that are opened once each: 16 MB. A flow beyond them is opened once for each of its rows.
const MAX_OPENED: usize = 1 << 20;

/// True if a folder holds results, or what an interrupted run left of them.
pub fn is_dataset(dir: &Path) -> bool {
    dir.join(DOCUMENT).is_file() || TABLES.iter().any(|table| dir.join(table).is_dir())
}

/// Gives `sink` what the run gave that wrote its results to `dir`: the same rows, those of one bin together, and the same summary. Only
/// that all flows are opened before the first of them and closed after the last. In memory are one row group of each
/// table, the summary, and the ids of at most a million flows.
///
/// # Errors
/// When the folder holds no whole results, a file of them cannot be read or is of another version, or the sink fails.
pub fn replay(dir: &Path, sink: &mut dyn Sink) -> Result<(), SinkError> {
    let run = summary(dir)?;
    sink.begin(run.bin)?;
    let mut opened = HashSet::new();
    for rows in Rows::<FlowColumns>::open(dir)? {
        let keys = new_keys(dir, &rows?, &mut opened)?;
        sink.flows_opened(&keys)?;
    }
    drop(opened);
    let mut timeline = Table::<TimelineColumns>::open(dir, |row| row.time)?;
    let mut events = Table::<EventColumns>::open(dir, |row| row.time)?;
    let width = run.bin.0.max(1);
    while let Some(first) = [timeline.next_time()?, events.next_time()?]
        .into_iter()
        .flatten()
        .min()
    {
        let end = Time((first.0 / width).saturating_add(1).saturating_mul(width));
        timeline.take_before(end)?;
        if !timeline.taken.is_empty() {
            sink.timeline(&timeline.taken)?;
        }
        events.take_before(end)?;
        if !events.taken.is_empty() {
            sink.events(&events.taken)?;
        }
    }
    samples(dir, sink)?;
    for rows in Rows::<FlowColumns>::open(dir)? {
        sink.flows_closed(&rows?)?;
    }
    sink.finish(&run)
}

/// Gives `sink` the samples in a dataset, in batches. One of an older version of the program has none.
///
/// # Errors
/// When a file of them cannot be read, or the sink fails.
fn samples(dir: &Path, sink: &mut dyn Sink) -> Result<(), SinkError> {
    let rows = match Rows::<SampleColumns>::open(dir) {
        Err(roce_parquet::Error::NoTable { .. }) => return Ok(()),
        rows => rows?,
    };
    let mut columns = SampleColumns::default();
    for rows in rows {
        columns.clear();
        columns.extend(&rows?);
        sink.samples(&columns)?;
    }
    Ok(())
}

/// The summary of the run that wrote `dir`.
fn summary(dir: &Path) -> Result<RunSummary, Error> {
    let path = dir.join(DOCUMENT);
    if !path.is_file() {
        let dir = dir.to_path_buf();
        return Err(if is_dataset(&dir) {
            Error::Unfinished { dir }
        } else {
            Error::NoResults { dir }
        });
    }
    let file = roce_files::open_regular(&path)?;
    json::read(BufReader::new(file)).map_err(|source| Error::Document { path, source })
}

/// Identities of the flows in `rows`, without those in `opened`.
fn new_keys(dir: &Path, rows: &[FlowRow], opened: &mut HashSet<FlowId>) -> Result<Vec<FlowKey>, Error> {
    let new = rows.iter().filter(|row| {
        let has_room = opened.len() < MAX_OPENED;
        !opened.contains(&row.flow_id) && (!has_room || opened.insert(row.flow_id))
    });
    new.map(|row| {
        row.key().ok_or_else(|| Error::OtherFlow {
            dir: dir.to_path_buf(),
            flow: row.flow_id,
        })
    })
    .collect()
}

/// A table's rows on their way to a sink, which takes them bin by bin.
struct Table<C: Columns> {
    source: Rows<C>,
    rows: Peekable<std::vec::IntoIter<C::Row>>,
    time: fn(&C::Row) -> Time,
    /// Rows that were taken last.
    taken: C,
}

impl<C: Columns> Table<C> {
    fn open(dir: &Path, time: fn(&C::Row) -> Time) -> Result<Self, Error> {
        Ok(Self {
            source: Rows::open(dir)?,
            rows: Vec::new().into_iter().peekable(),
            time,
            taken: C::default(),
        })
    }

    /// The time of the next row.
    fn next_time(&mut self) -> Result<Option<Time>, Error> {
        while self.rows.peek().is_none() {
            match self.source.next() {
                Some(rows) => self.rows = rows?.into_iter().peekable(),
                None => return Ok(None),
            }
        }
        Ok(self.rows.peek().map(self.time))
    }

    /// Takes the rows up to the first one that is not before `end`.
    fn take_before(&mut self, end: Time) -> Result<(), Error> {
        self.taken.clear();
        while self.next_time()?.is_some_and(|time| time < end) {
            if let Some(row) = self.rows.next() {
                self.taken.push(&row);
            }
        }
        Ok(())
    }
}
