//! The output folder: the Parquet dataset, and the JSON document and the HTML page beside it.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use roce_model::{EventColumns, FlowKey, FlowRow, Nanos, RunSummary, Sink, SinkError, TimelineColumns};
use roce_parquet::{Dataset, Options};
use roce_report::{HtmlReport, JsonReport};

use crate::error::Error;

/// The name of the JSON document in the folder.
pub const DOCUMENT: &str = "run.json";
/// The name of the HTML page there.
pub const PAGE: &str = "report.html";

/// Bytes that are handed to the system at a time: a document of many flows is long.
const ROOM: usize = 1 << 18;

/// What goes into the output folder.
pub struct Folder {
    dataset: Dataset,
    /// Of a live run.
    parts: Option<Parts>,
    json: JsonReport<BufWriter<File>>,
    document: Whole,
    html: HtmlReport<BufWriter<File>>,
    page: Whole,
}

impl Folder {
    /// Begins the results of captures in `dir`; with `parallel` the tables are written by threads of their own.
    ///
    /// # Errors
    /// When the folder holds results already and they are not to be replaced, or its files cannot be made.
    pub fn create(dir: &Path, overwrite: bool, parallel: bool) -> Result<Self, Error> {
        let options = Options {
            overwrite,
            parallel,
            ..Options::default()
        };
        Self::begin(dir, &options, None)
    }

    /// Begins the results of a live run in `dir`: a part is closed at the first interval after so long.
    ///
    /// # Errors
    /// As those of captures.
    pub fn create_live(dir: &Path, overwrite: bool, parts: Duration) -> Result<Self, Error> {
        let options = Options {
            overwrite,
            live: true,
            ..Options::default()
        };
        let parts = Parts {
            every: parts,
            begun: Instant::now(),
        };
        Self::begin(dir, &options, Some(parts))
    }

    fn begin(dir: &Path, options: &Options, parts: Option<Parts>) -> Result<Self, Error> {
        let dataset = Dataset::create(dir, options)?;
        let (json, document) = Whole::create(&dir.join(DOCUMENT))?;
        let (html, page) = Whole::create(&dir.join(PAGE))?;
        Ok(Self {
            dataset,
            parts,
            json: JsonReport::new(json),
            document,
            html: HtmlReport::new(html),
            page,
        })
    }
}

/// A file that appears whole: until then it has another name.
pub struct Whole {
    path: PathBuf,
    unfinished: PathBuf,
}

impl Whole {
    /// Begins it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path) -> Result<(BufWriter<File>, Self), Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let whole = Self {
            path: path.to_owned(),
            unfinished: path.with_file_name(format!(".{name}.tmp")),
        };
        let file = File::create(&whole.unfinished).map_err(Error::io(&whole.unfinished, "cannot be made"))?;
        Ok((BufWriter::with_capacity(ROOM, file), whole))
    }

    /// Gives it its name, when writing it went well.
    ///
    /// # Errors
    /// When it did not, or the name cannot be given.
    pub fn finish(&self, written: Result<(), SinkError>) -> Result<(), SinkError> {
        written
            .and_then(|()| Ok(std::fs::rename(&self.unfinished, &self.path)?))
            .map_err(|error| format!("{}: cannot be written: {error}", self.path.display()).into())
    }
}

impl Drop for Whole {
    /// What is unfinished goes; what is finished has its name already.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.unfinished);
    }
}

/// When parts are closed.
struct Parts {
    every: Duration,
    begun: Instant,
}

impl Sink for Folder {
    fn begin(&mut self, bin: Nanos) -> Result<(), SinkError> {
        self.dataset.begin(bin)?;
        self.html.begin(bin)
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.html.flows_opened(keys)
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
        self.dataset.timeline(rows)?;
        self.html.timeline(rows)
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        self.dataset.events(rows)?;
        self.html.events(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.dataset.flows_closed(rows)?;
        self.json.flows_closed(rows)?;
        self.html.flows_closed(rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.dataset.finish(run)?;
        let written = self.json.finish(run);
        self.document.finish(written)?;
        let written = self.html.finish(run);
        self.page.finish(written)
    }
}
