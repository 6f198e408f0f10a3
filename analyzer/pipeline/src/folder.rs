//! The output folder: the Parquet dataset, and the JSON document and the HTML page beside it.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use roce_files::{Access, Directory, UnfinishedFile};
use roce_model::{
    EventColumns, FlowKey, FlowRow, RunKey, RunSummary, SampleColumns, Sink, SinkError, Span, TimelineColumns,
};
use roce_parquet::{Dataset, Options};
use roce_report::{HtmlReport, JsonFlows, JsonReport};

use crate::error::Error;
pub use crate::names::DOCUMENT;

/// The name of the HTML page there.
pub const PAGE: &str = "report.html";

/// Bytes that are handed to the system at a time: a document of many flows is long.
const ROOM: usize = 1 << 18;

/// Contents of the output folder.
pub struct Folder {
    directory: Directory,
    dataset: Dataset,
    /// Captures in parts of a live run.
    parts: Option<Parts>,
    /// Threads may be used.
    parallel: bool,
    json: JsonReport<BufWriter<File>>,
    document: UnfinishedFile,
    html: HtmlReport<BufWriter<File>>,
    page: UnfinishedFile,
}

impl Folder {
    /// Begins the results of the run `key` over captures in `dir`; with `parallel` threads of their own encode the tables and write the page. The
    /// document has the rows of `flows`.
    ///
    /// # Errors
    /// When the folder holds results already and they are not to be replaced, or its files cannot be made.
    pub fn create(
        dir: &Path,
        key: &RunKey,
        overwrite: bool,
        parallel: bool,
        flows: JsonFlows,
    ) -> Result<Self, Error> {
        let options = Options {
            overwrite,
            parallel,
            ..Options::default()
        };
        Self::begin(dir, key, &options, flows, None)
    }

    /// Starts the results of the live run `key` in `dir`: a part is closed at the first interval after `parts`. The document has the
    /// rows of `flows`.
    ///
    /// # Errors
    /// As those of captures.
    pub fn create_live(
        dir: &Path,
        key: &RunKey,
        overwrite: bool,
        parts: Duration,
        flows: JsonFlows,
    ) -> Result<Self, Error> {
        let options = Options {
            overwrite,
            live: true,
            ..Options::default()
        };
        let parts = Parts {
            every: parts,
            begun: Instant::now(),
        };
        Self::begin(dir, key, &options, flows, Some(parts))
    }

    fn begin(
        dir: &Path,
        key: &RunKey,
        options: &Options,
        flows: JsonFlows,
        parts: Option<Parts>,
    ) -> Result<Self, Error> {
        let access = match parts {
            Some(_) => Access::Private,
            None => Access::Umask,
        };
        let folder = Directory::named(dir, access)?;
        if !options.overwrite {
            refuse_taken(&folder)?;
        }
        let dataset = Dataset::create_in(&folder, key, options)?;
        if parts.is_some() {
            // The older tables are gone. Without its document a folder counts as unfinished, whatever happens to this run.
            folder.remove(DOCUMENT)?;
            folder.remove(PAGE)?;
        }
        let (json, document) = folder.begin(DOCUMENT, access)?;
        let (html, page) = folder.begin(PAGE, access)?;
        Ok(Self {
            directory: folder,
            dataset,
            parts,
            parallel: options.parallel,
            json: JsonReport::new(BufWriter::with_capacity(ROOM, json), flows),
            document,
            html: HtmlReport::new(BufWriter::with_capacity(ROOM, html)),
            page,
        })
    }
}

/// Refuses a folder with a document or a page: they are of another run, or somebody else's.
fn refuse_taken(folder: &Directory) -> Result<(), Error> {
    match [DOCUMENT, PAGE].into_iter().find(|name| folder.has(name)) {
        Some(found) => Err(Error::Dataset(roce_parquet::Error::Exists {
            dir: folder.path().to_path_buf(),
            found: folder.path_of(found),
        })),
        None => Ok(()),
    }
}

impl Folder {
    /// Writes the rest of every file, the page beside the others where threads may be used.
    fn complete(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let Self {
            dataset,
            json,
            document,
            html,
            page,
            ..
        } = self;
        let mut tables = || -> Result<(), SinkError> {
            dataset.complete(run)?;
            written(document, json.finish(run))
        };
        let mut page = || written(page, html.finish(run));
        if !self.parallel {
            tables()?;
            return page();
        }
        thread::scope(|scope| {
            let page = thread::Builder::new().spawn_scoped(scope, page);
            let page = page.map_err(|error| format!("no thread for {PAGE}: {error}\nhint: --threads 1"))?;
            let tables = tables();
            let page = page
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            tables.and(page)
        })
    }
}

/// The error of a file that could not be written, with its name.
fn written(file: &UnfinishedFile, written: Result<(), SinkError>) -> Result<(), SinkError> {
    written.map_err(|error| {
        let reason = crate::error::text(&*error);
        format!("{}: cannot be written: {reason}", file.path().display()).into()
    })
}

/// Times at which parts are closed.
struct Parts {
    every: Duration,
    begun: Instant,
}

impl Sink for Folder {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
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

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.dataset.samples(rows)?;
        self.json.samples(rows)?;
        self.html.samples(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.dataset.flows_closed(rows)?;
        written(&self.document, self.json.flows_closed(rows))?;
        self.html.flows_closed(rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.complete(run)?;
        self.document.sync()?;
        self.page.sync()?;
        // Everything is written; renames are left. A folder without its document counts as unfinished: no reader takes tables of two runs
        // for one, if this one is killed in between.
        self.directory.remove(DOCUMENT)?;
        self.dataset.publish()?;
        self.page.publish()?;
        // The last one: where it is, everything is.
        Ok(self.document.publish()?)
    }
}
