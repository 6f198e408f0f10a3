//! The output folder: the Parquet dataset, and the JSON document beside it.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use roce_model::{EventColumns, FlowRow, Nanos, RunSummary, Sink, SinkError, TimelineColumns};
use roce_parquet::{Dataset, Options};
use roce_report::JsonReport;

/// The name of the JSON document in the folder.
pub(crate) const DOCUMENT: &str = "run.json";

/// Begins the results in `dir`.
pub(crate) fn dataset(dir: &Path, overwrite: bool, parallel: bool) -> anyhow::Result<Box<dyn Sink>> {
    let options = Options {
        overwrite,
        parallel,
        ..Options::default()
    };
    Ok(Box::new(Folder::begin(dir, &options, None)?))
}

/// Begins the results of a live run in `dir`: a part is closed at the first interval after so long.
#[cfg(feature = "live")]
pub(crate) fn live_dataset(
    dir: &Path,
    overwrite: bool,
    parts: Duration,
) -> anyhow::Result<Box<dyn Sink + Send>> {
    let options = Options {
        overwrite,
        live: true,
        ..Options::default()
    };
    let parts = Parts {
        every: parts,
        begun: Instant::now(),
    };
    Ok(Box::new(Folder::begin(dir, &options, Some(parts))?))
}

impl Folder {
    fn begin(dir: &Path, options: &Options, parts: Option<Parts>) -> anyhow::Result<Self> {
        let dataset = Dataset::create(dir, options)?;
        let (path, unfinished) = (dir.join(DOCUMENT), dir.join(format!(".{DOCUMENT}.tmp")));
        let file =
            File::create(&unfinished).with_context(|| format!("{}: cannot be made", unfinished.display()))?;
        let json = JsonReport::new(BufWriter::new(file));
        Ok(Self {
            dataset,
            parts,
            json,
            path,
            unfinished,
        })
    }
}

/// What goes into the output folder. The document, too, appears whole.
struct Folder {
    dataset: Dataset,
    /// Of a live run.
    parts: Option<Parts>,
    json: JsonReport<BufWriter<File>>,
    path: PathBuf,
    unfinished: PathBuf,
}

/// When parts are closed.
struct Parts {
    every: Duration,
    begun: Instant,
}

impl Sink for Folder {
    fn begin(&mut self, bin: Nanos) -> Result<(), SinkError> {
        self.dataset.begin(bin)
    }

    fn interval(&mut self) -> Result<(), SinkError> {
        if let Some(parts) = &mut self.parts
            && parts.begun.elapsed() >= parts.every
        {
            parts.begun = Instant::now();
            self.dataset.next_parts()?;
        }
        Ok(())
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.dataset.timeline(rows)
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        self.dataset.events(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.dataset.flows_closed(rows)?;
        self.json.flows_closed(rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.dataset.finish(run)?;
        self.json
            .finish(run)
            .and_then(|()| Ok(std::fs::rename(&self.unfinished, &self.path)?))
            .map_err(|error| format!("{}: cannot be written: {error}", self.path.display()).into())
    }
}

impl Drop for Folder {
    /// An unfinished document goes; a finished one has its name already.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.unfinished);
    }
}
