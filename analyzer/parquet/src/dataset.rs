//! The sink: a writer for each table, and the rules of when files appear and disappear. How a table is written is
//! left to `table`.

use std::path::Path;

use roce_files::Directory;
use roce_model::{
    CollectiveColumns, Columns, EpisodeColumns, EventColumns, FindingColumns, FlowColumns, FlowRow,
    HopColumns, RunColumns, RunKey, RunRow, RunSummary, SampleColumns, Sink, SinkError, StepColumns,
    TapColumns, TimelineColumns, VantageColumns, WaitColumns,
};

use crate::error::Error;
use crate::names::TABLES;
use crate::options::Options;
use crate::table::{TableWriter, is_part, is_unfinished};

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
    waits: TableWriter,
    collectives: TableWriter,
    samples: TableWriter,
    run: TableWriter,
}

impl Writers {
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
            &mut self.waits,
            &mut self.collectives,
            &mut self.samples,
            &mut self.run,
        ]
    }
}

/// Writes every table of a run to a folder. Files appear at [`Sink::finish`]; dropped before, it leaves none but the closed parts of a
/// live run.
pub struct Dataset {
    dir: Directory,
    /// None once finished.
    writers: Option<Writers>,
    flows: FlowColumns,
}

impl Dataset {
    /// Begins the dataset of the run `key` in `dir`, which is made if need be. What an interrupted run left there is removed.
    ///
    /// # Errors
    /// When `dir` holds a dataset and `options.overwrite` is not set, files cannot be made, or a table's folder is a link.
    pub fn create(dir: &Path, key: &RunKey, options: &Options) -> Result<Self, Error> {
        let dir = &Directory::named(dir, options.access())?;
        for table in TABLES {
            let Some(folder) = dir.find(table)? else { continue };
            let names = folder.names()?;
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
        let writers = Writers {
            flows: TableWriter::create(dir, &FlowColumns::TABLE, key, options)?,
            timeline: TableWriter::create(dir, &TimelineColumns::TABLE, key, options)?,
            events: TableWriter::create(dir, &EventColumns::TABLE, key, options)?,
            episodes: TableWriter::create(dir, &EpisodeColumns::TABLE, key, options)?,
            findings: TableWriter::create(dir, &FindingColumns::TABLE, key, options)?,
            steps: TableWriter::create(dir, &StepColumns::TABLE, key, options)?,
            taps: TableWriter::create(dir, &TapColumns::TABLE, key, options)?,
            vantages: TableWriter::create(dir, &VantageColumns::TABLE, key, options)?,
            hops: TableWriter::create(dir, &HopColumns::TABLE, key, options)?,
            waits: TableWriter::create(dir, &WaitColumns::TABLE, key, options)?,
            collectives: TableWriter::create(dir, &CollectiveColumns::TABLE, key, options)?,
            samples: TableWriter::create(dir, &SampleColumns::TABLE, key, options)?,
            run: TableWriter::create(dir, &RunColumns::TABLE, key, options)?,
        };
        Ok(Self {
            dir: dir.clone(),
            writers: Some(writers),
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
            dir: self.dir.path().to_path_buf(),
        })
    }

    /// The folder, for what is put beside the tables.
    pub const fn directory(&self) -> &Directory {
        &self.dir
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
        append::<WaitColumns>(&mut writers.waits, &run.waits)?;
        append::<CollectiveColumns>(&mut writers.collectives, &run.collectives)?;
        append::<RunColumns>(&mut writers.run, &inputs)?;
        for table in writers.all() {
            table.complete()?;
            table.sync()?;
        }
        Ok(())
    }

    /// Gives every complete table its name. Only renames are left by now, so that a full disk or a kill before leaves the older dataset whole.
    ///
    /// # Errors
    /// When a name cannot be given, or the dataset is finished.
    pub fn publish(&mut self) -> Result<(), Error> {
        for table in self.writers()?.all() {
            table.publish()?;
        }
        self.writers = None;
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
