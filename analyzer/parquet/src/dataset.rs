//! The sink: a writer for each table, and the rules of when files appear and disappear. How a table is written is
//! left to `table`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use roce_files::Directory;
use roce_model::{
    CollectiveColumns, CollectiveWaitColumns, Columns, CreditColumns, EndColumns, EpisodeColumns,
    EventColumns, FindingColumns, FlowColumns, FlowRow, HopColumns, HopTimelineColumns, InbandHopColumns,
    MrcConnectionColumns, MrcPathColumns, RunColumns, RunKey, RunRow, RunSummary, SampleColumns, Sink,
    SinkError, StepColumns, Table, TapColumns, TimelineColumns, UetTrafficColumns, VantageColumns,
    WaitColumns,
};

use crate::error::Error;
use crate::names::TABLES;
use crate::options::Options;
use crate::partition::Partition;
use crate::storage::Storage;
use crate::table::{TableWriter, Target, is_part, is_unfinished};

/// Rows that are turned into columns at once.
const BATCH: usize = 4096;

struct Writers {
    flows: TableWriter,
    timeline: TableWriter,
    events: TableWriter,
    episodes: TableWriter,
    findings: TableWriter,
    steps: TableWriter,
    taps: TableWriter,
    vantages: TableWriter,
    hops: TableWriter,
    hop_timeline: TableWriter,
    ends: TableWriter,
    waits: TableWriter,
    collectives: TableWriter,
    credits: TableWriter,
    collective_waits: TableWriter,
    mrc_connections: TableWriter,
    mrc_paths: TableWriter,
    uet_traffic: TableWriter,
    hops_inband: TableWriter,
    samples: TableWriter,
    run: TableWriter,
}

impl Writers {
    /// Begins all tables; `target` is the place of one of them.
    fn create(
        key: &RunKey,
        options: &Options,
        target: impl Fn(&Table) -> Result<Target, Error>,
    ) -> Result<Self, Error> {
        let create = |table: Table| TableWriter::create(target(&table)?, &table, key, options);
        Ok(Self {
            flows: create(FlowColumns::TABLE)?,
            timeline: create(TimelineColumns::TABLE)?,
            events: create(EventColumns::TABLE)?,
            episodes: create(EpisodeColumns::TABLE)?,
            findings: create(FindingColumns::TABLE)?,
            steps: create(StepColumns::TABLE)?,
            taps: create(TapColumns::TABLE)?,
            vantages: create(VantageColumns::TABLE)?,
            hops: create(HopColumns::TABLE)?,
            hop_timeline: create(HopTimelineColumns::TABLE)?,
            ends: create(EndColumns::TABLE)?,
            waits: create(WaitColumns::TABLE)?,
            collectives: create(CollectiveColumns::TABLE)?,
            credits: create(CreditColumns::TABLE)?,
            collective_waits: create(CollectiveWaitColumns::TABLE)?,
            mrc_connections: create(MrcConnectionColumns::TABLE)?,
            mrc_paths: create(MrcPathColumns::TABLE)?,
            uet_traffic: create(UetTrafficColumns::TABLE)?,
            hops_inband: create(InbandHopColumns::TABLE)?,
            samples: create(SampleColumns::TABLE)?,
            run: create(RunColumns::TABLE)?,
        })
    }

    fn all(&mut self) -> [&mut TableWriter; TABLES.len()] {
        [
            &mut self.flows,
            &mut self.timeline,
            &mut self.events,
            &mut self.episodes,
            &mut self.findings,
            &mut self.steps,
            &mut self.taps,
            &mut self.vantages,
            &mut self.hops,
            &mut self.hop_timeline,
            &mut self.ends,
            &mut self.waits,
            &mut self.collectives,
            &mut self.credits,
            &mut self.collective_waits,
            &mut self.mrc_connections,
            &mut self.mrc_paths,
            &mut self.uet_traffic,
            &mut self.hops_inband,
            &mut self.samples,
            &mut self.run,
        ]
    }
}

/// Writes every table of a run to a folder. Files appear at [`Sink::finish`]; dropped before, it leaves none but the closed parts of a
/// live run.
pub struct Dataset {
    /// Its folder or file, for messages.
    shown: PathBuf,
    /// None once finished.
    writers: Option<Writers>,
    /// Once published.
    sizes: Vec<TableSize>,
    flows: FlowColumns,
}

/// Rows and bytes that a run wrote to one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableSize {
    /// The table.
    pub table: &'static str,
    /// Its rows.
    pub rows: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

impl Dataset {
    /// Begins the dataset of the run `key` in `dir`, which is made if need be. What an interrupted run left there is removed.
    ///
    /// # Errors
    /// When `dir` holds a dataset and `options.overwrite` is not set, files cannot be made, a table's folder is a link, or has a file that
    /// no run has made.
    pub fn create(dir: &Path, key: &RunKey, options: &Options) -> Result<Self, Error> {
        Self::create_in(&Directory::named(dir, options.access())?, key, options)
    }

    /// As [`create`](Self::create), in an open folder.
    ///
    /// # Errors
    /// As there.
    pub fn create_in(dir: &Directory, key: &RunKey, options: &Options) -> Result<Self, Error> {
        for table in TABLES {
            let Some(folder) = dir.find(table)? else { continue };
            let names = folder.names()?;
            // Queries read the files that `TABLE/*.parquet` finds.
            let is_foreign = |name: &&String| name.strip_suffix(".parquet").is_some() && !is_part(name);
            if let Some(found) = names.iter().filter(is_foreign).min() {
                return Err(Error::Foreign {
                    dir: dir.path().to_path_buf(),
                    found: folder.path_of(found),
                });
            }
            if !options.overwrite
                && let Some(found) = names.iter().filter(|name| is_part(name)).max()
            {
                return Err(Error::Exists {
                    dir: dir.path().to_path_buf(),
                    found: folder.path_of(found),
                });
            }
            // The first parts of a live run appear beside what is there: an older dataset must be gone by then.
            for name in &names {
                if is_unfinished(name) || options.live && is_part(name) {
                    folder.remove(name)?;
                }
            }
        }
        let writers = Writers::create(key, options, |table| {
            let folder = dir.below(table.name, options.access())?;
            Ok(Target::Parts(folder))
        })?;
        Ok(Self {
            shown: dir.path().to_path_buf(),
            writers: Some(writers),
            sizes: Vec::new(),
            flows: FlowColumns::default(),
        })
    }

    /// Begins the rows of the run `key` in a dataset of many runs, at their place `partition`. A run that has the place is replaced once this
    /// one is complete: [`publish`](Self::publish) has the order of the steps.
    ///
    /// # Errors
    /// When a level of compression is given that there is not. Files are made once there are rows.
    pub fn create_run(
        storage: &Arc<dyn Storage>,
        partition: &Partition,
        key: &RunKey,
        options: &Options,
    ) -> Result<Self, Error> {
        let target = |_: &Table| Ok(Target::Run(Arc::clone(storage), partition.clone()));
        Ok(Self {
            shown: storage.shown(&partition.file(RunColumns::TABLE.name)),
            writers: Some(Writers::create(key, options, target)?),
            sizes: Vec::new(),
            flows: FlowColumns::default(),
        })
    }

    /// Closes the parts that have rows; each has its name then, and others begin.
    ///
    /// # Errors
    /// When files cannot be written, or the dataset is finished.
    pub fn next_parts(&mut self) -> Result<(), Error> {
        for table in self.writers()?.all() {
            table.next_part()?;
        }
        Ok(())
    }

    fn writers(&mut self) -> Result<&mut Writers, Error> {
        self.writers.as_mut().ok_or_else(|| Error::Finished {
            dir: self.shown.clone(),
        })
    }

    /// Rows and bytes of each table that was published with rows, in the order of [`TABLES`].
    pub fn sizes(&self) -> &[TableSize] {
        &self.sizes
    }

    /// Writes the rest of every table. No file has its name yet, but the closed parts of a live run.
    ///
    /// # Errors
    /// When files cannot be written, or the dataset is finished.
    pub fn complete(&mut self, run: &RunSummary) -> Result<(), Error> {
        let inputs: Vec<RunRow> = run_rows(run).collect();
        let writers = self.writers()?;
        append::<EpisodeColumns>(&mut writers.episodes, &run.episodes)?;
        append::<FindingColumns>(&mut writers.findings, &run.findings)?;
        append::<StepColumns>(&mut writers.steps, &run.steps)?;
        append::<TapColumns>(&mut writers.taps, &run.taps)?;
        append::<VantageColumns>(&mut writers.vantages, &run.vantages)?;
        append::<HopColumns>(&mut writers.hops, &run.hops)?;
        append::<HopTimelineColumns>(&mut writers.hop_timeline, &run.hop_timeline)?;
        append::<EndColumns>(&mut writers.ends, &run.ends)?;
        append::<WaitColumns>(&mut writers.waits, &run.waits)?;
        append::<CollectiveColumns>(&mut writers.collectives, &run.collectives)?;
        append::<CreditColumns>(&mut writers.credits, &run.credits)?;
        append::<CollectiveWaitColumns>(&mut writers.collective_waits, &run.collective_waits)?;
        append::<MrcConnectionColumns>(&mut writers.mrc_connections, &run.mrc_connections)?;
        append::<MrcPathColumns>(&mut writers.mrc_paths, &run.mrc_paths)?;
        append::<UetTrafficColumns>(&mut writers.uet_traffic, &run.uet_traffic)?;
        append::<InbandHopColumns>(&mut writers.hops_inband, &run.hops_inband)?;
        append::<RunColumns>(&mut writers.run, &inputs)?;
        for table in writers.all() {
            table.complete()?;
            table.sync()?;
        }
        Ok(())
    }

    /// Gives every complete table its name. Only renames are left by now, so that a full disk or a kill before leaves the older dataset whole.
    ///
    /// In a dataset of many runs the table `run` is the commit. Its file of an older run of this name is removed first, then all other tables get
    /// their files, and `run` comes last. A reader that takes only runs with a row in `run` never sees tables of two versions of one.
    ///
    /// # Errors
    /// When a name cannot be given, or the dataset is finished.
    pub fn publish(&mut self) -> Result<(), Error> {
        let writers = self.writers()?;
        writers.run.remove()?;
        let mut sizes = Vec::new();
        for table in writers.all() {
            table.publish()?;
            let size = table.size();
            if size.rows > 0 {
                sizes.push(TableSize {
                    table: table.name(),
                    rows: size.rows,
                    bytes: size.bytes,
                });
            }
        }
        self.writers = None;
        self.sizes = sizes;
        Ok(())
    }
}

impl Sink for Dataset {
    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        Ok(self.writers()?.timeline.append(rows)?)
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        Ok(self.writers()?.events.append(rows)?)
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        Ok(self.writers()?.samples.append(rows)?)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for batch in rows.chunks(BATCH) {
            let mut flows = std::mem::take(&mut self.flows);
            flows.clear();
            flows.extend(batch);
            self.writers()?.flows.append(&flows)?;
            self.flows = flows;
        }
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.complete(run)?;
        Ok(self.publish()?)
    }
}

/// Adds the rows of a table that is whole only at the end.
fn append<C: Columns>(table: &mut TableWriter, rows: &[C::Row]) -> Result<(), Error> {
    let mut columns = C::default();
    for batch in rows.chunks(BATCH) {
        columns.clear();
        columns.extend(batch);
        table.append(&columns)?;
    }
    Ok(())
}

/// The rows of the table `run`: one for each input, with the counts of the whole run beside it.
pub(crate) fn run_rows(run: &RunSummary) -> impl Iterator<Item = RunRow> {
    let options: Vec<String> = run
        .options
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let whole = RunRow {
        version: run.version.clone().into(),
        started: run.started,
        elapsed_ns: run.elapsed.0,
        options: options.join(" ").into(),
        frames: run.totals.frames,
        frames_lost: run.totals.frames_lost,
        copies: run.totals.copies,
        roce_packets: run.totals.roce_packets,
        undecodable: run.totals.undecodable,
        evicted: run.totals.evicted,
        ..RunRow::default()
    };
    run.inputs.iter().map(move |input| RunRow {
        input: input.input.clone().into(),
        format: input.format.clone().into(),
        bytes: input.bytes,
        sha256: input.sha256.clone().map(Into::into),
        input_frames: input.frames,
        first_time: input.first_time,
        last_time: input.last_time,
        truncated: input.truncated,
        error: input.error.clone().map(Into::into),
        ..whole.clone()
    })
}
