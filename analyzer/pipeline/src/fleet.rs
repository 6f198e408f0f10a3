//! The rows of one run in a dataset of many runs: the sink that writes them and says so in a manifest line. The order of the steps is left to
//! `roce_parquet::Dataset`.

use std::io::Write;
use std::sync::Arc;

use roce_model::{
    EventColumns, FlowRow, Nanos, RunKey, RunSummary, SampleColumns, Sink, SinkError, TimelineColumns,
};
use roce_parquet::{Dataset, Options, Partition, Storage, UNKNOWN};

use crate::error::Error;
use crate::manifest::Manifest;

/// Table whose file is the commit of a run.
const COMMIT: &str = "run";

/// Writes a run into a dataset of many, and its manifest line to `W`.
pub struct FleetRun<W> {
    storage: Arc<dyn Storage>,
    partition: Partition,
    dataset: Dataset,
    key: RunKey,
    line: W,
}

impl<W: Write> FleetRun<W> {
    /// Begins the run `key`, whose first frame has the time `first`. With `parallel` threads of their own encode the tables.
    ///
    /// # Errors
    /// When the dataset cannot be written.
    pub fn create(
        storage: &Arc<dyn Storage>,
        key: &RunKey,
        first: Option<Nanos>,
        parallel: bool,
        line: W,
    ) -> Result<Self, Error> {
        let options = Options {
            parallel,
            ..Options::default()
        };
        let partition = Partition::new(key, first);
        Ok(Self {
            dataset: Dataset::create_run(storage, &partition, key, &options)?,
            storage: Arc::clone(storage),
            partition,
            key: key.clone(),
            line,
        })
    }

    /// Writes the run whose captures could not be analysed: a row of `run` for each input of `run`, with its error, and no other rows. A run of
    /// this name that is there stays, and nothing is written.
    ///
    /// # Errors
    /// When the dataset or the line cannot be written.
    pub fn write_failed(storage: &Arc<dyn Storage>, run: &RunSummary, mut line: W) -> Result<(), SinkError> {
        if date_of(&**storage, &run.key)?.is_some_and(|date| date != UNKNOWN) {
            return Ok(line.write_all(Manifest::new(run).line().as_bytes())?);
        }
        Self::create(storage, &run.key, None, false, line)?.finish(run)
    }
}

/// The partition of the day in which a run is committed, as `date=` names it; `None` if the dataset has no such run.
///
/// # Errors
/// When the dataset cannot be read.
pub fn date_of(storage: &dyn Storage, key: &RunKey) -> Result<Option<String>, Error> {
    let partition = Partition::new(key, None);
    for folder in storage.list(COMMIT)? {
        let Some(date) = folder.strip_prefix("date=") else {
            continue;
        };
        let (folder, name) = partition.folder_and_name(COMMIT, date);
        if storage.list(&folder)?.contains(&name) {
            return Ok(Some(date.to_owned()));
        }
    }
    Ok(None)
}

impl<W: Write> Sink for FleetRun<W> {
    fn begin(&mut self, bin: Nanos) -> Result<(), SinkError> {
        self.dataset.begin(bin)
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.dataset.timeline(rows)
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        self.dataset.events(rows)
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.dataset.samples(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.dataset.flows_closed(rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.dataset.complete(run)?;
        if self.partition.date().is_some() {
            // The row of an earlier run that could not read the capture.
            let failed = Partition::new(&self.key, None);
            self.storage.remove(&failed.file(COMMIT))?;
        }
        self.dataset.publish()?;
        let sizes = self.dataset.sizes();
        let manifest = Manifest {
            date: self.partition.date().map(str::to_owned),
            rows: sizes
                .iter()
                .map(|size| (size.table.to_owned(), size.rows))
                .collect(),
            written_bytes: sizes.iter().map(|size| size.bytes).fold(0, u64::saturating_add),
            ..Manifest::new(run)
        };
        self.line.write_all(manifest.line().as_bytes())?;
        Ok(self.line.flush()?)
    }
}
