//! The rows of one run in a dataset of many runs: the sink that writes them and says so in a manifest line. The order of the steps is left to
//! `roce_parquet::Dataset`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use roce_model::{
    Address, EventColumns, FlowId, FlowRow, RunKey, RunSummary, SampleColumns, Sink, SinkError, Span, Time,
    TimelineColumns,
};
use roce_parquet::{Dataset, Options, Partition, Storage, UNKNOWN, compacted_runs};

use crate::error::Error;
use crate::manifest::Manifest;

pub mod groups;
pub mod shared;

/// Flows whose hops are chosen by destination, at most: 16 MB.
const MAX_CHOSEN_FLOWS: usize = 1 << 20;

/// Table whose file is the commit of a run.
const COMMIT: &str = "run";

/// Rows of a run that are written.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Names of tables; empty: all. `run` is always among them.
    pub tables: Vec<String>,
    /// Hops of flows to this address alone.
    pub hops_to: Option<Address>,
    /// The day of the run, YYYY-MM-DD, in place of that of the first frame.
    pub day: Option<String>,
}

impl Scope {
    fn has(&self, table: &str) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|name| name == table)
    }
}

/// Writes a run into a dataset of many, and its manifest line to `W`.
pub struct FleetRun<W> {
    scope: Scope,
    /// Flows to `scope.hops_to`.
    chosen: HashSet<FlowId>,
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
        first: Option<Time>,
        scope: Scope,
        parallel: bool,
        line: W,
    ) -> Result<Self, Error> {
        let options = Options {
            parallel,
            ..Options::default()
        };
        let partition = Partition::new(key, first);
        let partition = match &scope.day {
            Some(day) => partition.with_date(day),
            None => partition,
        };
        Ok(Self {
            scope,
            chosen: HashSet::new(),
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
        Self::create(storage, &run.key, None, Scope::default(), false, line)?.finish(run)
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

/// Names of the runs that are committed in a dataset, those that only have an error left out.
#[derive(Debug, Default)]
pub struct CommittedRuns {
    /// Folder of the host and name of the file.
    files: HashSet<(String, String)>,
    /// Identifiers of runs in parts.
    compacted: HashSet<String>,
}

impl CommittedRuns {
    /// Reads them. Runs in parts are known if the dataset is a folder.
    ///
    /// # Errors
    /// When the dataset cannot be read.
    pub fn read(storage: &dyn Storage) -> Result<Self, Error> {
        let mut committed = Self::default();
        for date in storage.list(COMMIT)? {
            let Some(day) = date.strip_prefix("date=").filter(|day| *day != UNKNOWN) else {
                continue;
            };
            for host in storage.list(&format!("{COMMIT}/{date}"))? {
                if !host.starts_with("host=") {
                    continue;
                }
                let names = storage.list(&format!("{COMMIT}/{date}/{host}"))?;
                committed
                    .files
                    .extend(names.into_iter().map(|name| (host.clone(), name)));
            }
            if let Some(folder) = storage.folder() {
                committed.compacted.extend(compacted_runs(folder, day)?);
            }
        }
        Ok(committed)
    }

    /// True if the dataset has the run.
    pub fn has(&self, key: &RunKey) -> bool {
        let (folder, name) = Partition::new(key, None).folder_and_name("", UNKNOWN);
        let host = folder.rsplit('/').next().unwrap_or_default().to_owned();
        self.compacted.contains(&key.run_id) || self.files.contains(&(host, name))
    }
}

impl<W: Write> Sink for FleetRun<W> {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.dataset.begin(bin)
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        if self.scope.has("timeline") {
            self.dataset.timeline(rows)?;
        }
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        if self.scope.has("events") {
            self.dataset.events(rows)?;
        }
        Ok(())
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        if self.scope.has("samples") {
            self.dataset.samples(rows)?;
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        if let Some(address) = self.scope.hops_to {
            let chosen = rows.iter().filter(|row| row.destination == address);
            self.chosen.extend(chosen.map(|row| row.flow_id));
            if self.chosen.len() > MAX_CHOSEN_FLOWS {
                return Err(format!("more than {MAX_CHOSEN_FLOWS} flows to {address}").into());
            }
        }
        if self.scope.has("flows") {
            self.dataset.flows_closed(rows)?;
        }
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.dataset.complete(&self.scoped(run))?;
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

impl<W> FleetRun<W> {
    /// The summary with the rows that are written.
    fn scoped<'a>(&self, run: &'a RunSummary) -> Cow<'a, RunSummary> {
        if self.scope.tables.is_empty() && self.scope.hops_to.is_none() {
            return Cow::Borrowed(run);
        }
        let mut run = run.clone();
        let all = self.scope.hops_to.is_none();
        run.hops.retain(|row| all || self.chosen.contains(&row.flow_id));
        run.hop_timeline
            .retain(|row| all || self.chosen.contains(&row.flow_id));
        let scope = &self.scope;
        clear(scope, "episodes", &mut run.episodes);
        clear(scope, "findings", &mut run.findings);
        clear(scope, "steps", &mut run.steps);
        clear(scope, "taps", &mut run.taps);
        clear(scope, "vantages", &mut run.vantages);
        clear(scope, "hops", &mut run.hops);
        clear(scope, "hop_timeline", &mut run.hop_timeline);
        clear(scope, "waits", &mut run.waits);
        clear(scope, "credits", &mut run.credits);
        clear(scope, "collective_waits", &mut run.collective_waits);
        clear(scope, "mrc_connections", &mut run.mrc_connections);
        clear(scope, "mrc_paths", &mut run.mrc_paths);
        clear(scope, "hops_inband", &mut run.hops_inband);
        clear(scope, "uet_traffic", &mut run.uet_traffic);
        Cow::Owned(run)
    }
}

/// Removes the rows of a table that is not written.
fn clear<T>(scope: &Scope, table: &str, rows: &mut Vec<T>) {
    if !scope.has(table) {
        rows.clear();
    }
}
