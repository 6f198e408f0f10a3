//! The output folder: the Parquet dataset, and the JSON document beside it.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context;
use roce_model::{EventColumns, FlowRow, Nanos, RunSummary, Sink, SinkError, TimelineColumns};
use roce_parquet::{Dataset, Options};
use roce_report::JsonReport;

/// Begins the results in `dir`.
pub(crate) fn dataset(dir: &Path, overwrite: bool, parallel: bool) -> anyhow::Result<Box<dyn Sink>> {
    let dataset = Dataset::create(
        dir,
        &Options {
            overwrite,
            parallel,
            ..Options::default()
        },
    )?;
    let (path, unfinished) = (dir.join("run.json"), dir.join(".run.json.tmp"));
    let file =
        File::create(&unfinished).with_context(|| format!("{}: cannot be made", unfinished.display()))?;
    let json = JsonReport::new(BufWriter::new(file));
    Ok(Box::new(Folder {
        dataset,
        json,
        path,
        unfinished,
    }))
}

/// What goes into the output folder. The document, too, appears whole.
struct Folder {
    dataset: Dataset,
    json: JsonReport<BufWriter<File>>,
    path: PathBuf,
    unfinished: PathBuf,
}

impl Sink for Folder {
    fn begin(&mut self, bin: Nanos) -> Result<(), SinkError> {
        self.dataset.begin(bin)
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
