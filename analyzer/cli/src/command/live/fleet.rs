//! `live --layout fleet`: a run that goes on for weeks becomes parts of a fleet dataset. Each part is a run of its own, with all tables, so that
//! memory does not grow and a reader needs nothing but the parts that are there.
//!
//! Between two parts no frame is dropped that the devices' queue can hold. Each part begins with an empty analysis; docs/continuous.md
//! describes the edges. Parts lie in a folder of this machine (`spool`), at most `--keep` of them, and go from there to a store (`upload`).

mod counts;
mod spool;
mod upload;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use roce_files::{Access, Directory};
use roce_model::{
    EventColumns, FlowKey, FlowRow, RunKey, RunSummary, SampleColumns, Sink, SinkError, Span, Time,
    TimelineColumns,
};
use roce_parquet::{FolderStorage, Storage};
use roce_pipeline::fleet::{FleetRun, Scope};
use roce_pipeline::{FinishedLiveRun, LiveRequest, RunStart};
use rustix::fs::{FlockOperation, flock};

use super::parts::{OpenParts, PartPublisher, PartStream, Parts, RunAround};
use crate::objects::{Destination, Whose, local};
use crate::options::arguments::Layout;
use crate::options::duration::parse_duration;
use crate::options::format::Format;
use crate::options::size::parse_size;
use crate::output::exit_code::exit_code;
use crate::output::messages::{self, sink_error};
use counts::PartCounts;
use spool::Spool;
use upload::Uploader;

/// In front of messages about parts.
const ABOUT: &str = "parts";
/// Folder of parts that wait, where no option and no service manager names another.
const SPOOL: &str = "/var/lib/roce-analyze";
/// File that keeps a second run out of the folder.
const LOCK: &str = ".roce-analyze.lock";
/// The shortest part.
const MIN_PART: Span = Span::SECOND;

// Options of continuous runs. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(super) struct FleetArguments {
    /// Layout of the dataset in DIR: with "fleet" the run becomes parts of a dataset of many runs and hosts, each a run of its own; DIR can be a
    /// place in a store then, such as s3://BUCKET/DATASET
    #[arg(long, value_enum, default_value = "run", requires = "output")]
    layout: Layout,

    /// Length of the parts of --layout fleet
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_part)]
    every: Span,

    /// Keep at most this much of --layout fleet on this machine, such as 10GB: beyond it the oldest parts are dropped, and counted
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    keep: Option<u64>,

    /// Folder of parts that wait for their upload [default: that of the service, $STATE_DIRECTORY, else /var/lib/roce-analyze]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,

    /// Time for the last uploads at the end; what is left stays, and the next run uploads it
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = parse_duration)]
    upload_wait: Span,
}

fn parse_part(text: &str) -> Result<Span, String> {
    let time = parse_duration(text)?;
    if time < MIN_PART {
        return Err("1s is the least".to_owned());
    }
    Ok(time)
}

/// Options that decide whether there are parts, and where they go.
pub(super) struct Request<'a> {
    /// `-o`: a folder, or a place in a store.
    pub(super) output: Option<&'a Path>,
    pub(super) format: Format,
    pub(super) record: bool,
    pub(super) no_sandbox: bool,
    pub(super) user: Option<&'a str>,
}

/// A run in parts, before it has rights given up.
struct Fleet {
    /// The folder on this machine.
    folder: PathBuf,
    to: Option<Destination>,
    every: Duration,
    keep: Option<u64>,
    wait: Duration,
    /// True if manifest lines go to standard output.
    has_lines: bool,
    counts: Arc<PartCounts>,
}

impl FleetArguments {
    /// Starts the process that uploads, if parts go to a store. `None` for a run that is one whole.
    ///
    /// # Errors
    /// The options do not fit together, or the system gives no process.
    pub(super) fn start(&self, request: &Request<'_>) -> anyhow::Result<Option<Box<dyn Parts>>> {
        let (output, format) = (request.output, request.format);
        let url = output.and_then(Path::to_str).filter(|text| text.contains("://"));
        let Some(output) = output.filter(|_| self.layout == Layout::Fleet) else {
            if let Some(url) = url.filter(|url| !url.starts_with("file://")) {
                bail!("{url}: a live run writes to a store in parts alone\nhint: add --layout fleet");
            }
            return Ok(None);
        };
        if request.record {
            bail!(
                "--record keeps one run whole, and --layout fleet makes parts\nhint: -w FILE --rotate 1GB keeps packets, too"
            );
        }
        if format != Format::Text && format != Format::None {
            bail!(
                "--layout fleet writes manifest lines to standard output, and no other format\nhint: omit --format"
            );
        }
        let mut folder = output.to_owned();
        local(&mut folder);
        let to = match folder.to_str().filter(|text| text.contains("://")) {
            None => None,
            Some(url) => {
                let whose = if request.no_sandbox {
                    Whose::Unconfined
                } else {
                    Whose::Lower(request.user)
                };
                let to = Destination::start(url, whose)?;
                folder = self.spool.clone().unwrap_or_else(default_spool);
                Some(to)
            }
        };
        Ok(Some(Box::new(Fleet {
            folder,
            to,
            every: Duration::from_nanos(self.every.0),
            keep: self.keep,
            wait: Duration::from_nanos(self.upload_wait.0),
            has_lines: format == Format::Text,
            counts: Arc::default(),
        })))
    }
}

/// The folder that the service manager made for this service, or the usual one. systemd separates several by colons (systemd.exec(5)).
fn default_spool() -> PathBuf {
    let named = std::env::var("STATE_DIRECTORY").ok();
    let first = named.as_deref().and_then(|folders| folders.split(':').next());
    PathBuf::from(first.filter(|folder| !folder.is_empty()).unwrap_or(SPOOL))
}

impl Fleet {
    fn lines(&self) -> Lines {
        Lines(self.has_lines)
    }
}

impl Parts for Fleet {
    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    fn open(self: Box<Self>, key: &RunKey) -> anyhow::Result<Box<dyn OpenParts>> {
        let root = Directory::named(&self.folder, Access::Private)?;
        let lock = if self.to.is_some() {
            let (lock, _) = root.append(LOCK, Access::Private)?;
            let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive);
            let taken = "another run uploads from this folder\nhint: --spool names another one";
            locked.with_context(|| format!("{}: {taken}", self.folder.display()))?;
            Some(lock)
        } else {
            None
        };
        let spool = Spool::open(root, key, &self.counts)?;
        if lock.is_some() {
            spool.clean()?;
        }
        let storage: Arc<dyn Storage> = Arc::new(FolderStorage::open(&self.folder, Access::Private)?);
        Ok(Box::new(OpenFleet {
            spool: Arc::new(spool),
            storage,
            _lock: lock,
            fleet: *self,
        }))
    }
}

/// A run in parts whose folder is open.
struct OpenFleet {
    fleet: Fleet,
    spool: Arc<Spool>,
    storage: Arc<dyn Storage>,
    /// Held as long as the run.
    _lock: Option<File>,
}

/// Results of one part, which may not be written: a full disk costs the part and not the run.
struct PartSink {
    to: Option<Box<dyn Sink>>,
    error: Option<SinkError>,
}

impl PartSink {
    fn new(to: Result<Box<dyn Sink>, SinkError>) -> Self {
        match to {
            Ok(to) => Self {
                to: Some(to),
                error: None,
            },
            Err(error) => Self {
                to: None,
                error: Some(error),
            },
        }
    }

    fn with(&mut self, take: impl FnOnce(&mut dyn Sink) -> Result<(), SinkError>) {
        let Some(to) = &mut self.to else { return };
        if let Err(error) = take(&mut **to) {
            // Dropped, it removes what it has written.
            self.to = None;
            self.error = Some(error);
        }
    }
}

impl Sink for PartSink {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.with(|to| to.begin(bin));
        Ok(())
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.with(|to| to.flows_opened(keys));
        Ok(())
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.with(|to| to.timeline(rows));
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        self.with(|to| to.events(rows));
        Ok(())
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.with(|to| to.samples(rows));
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.with(|to| to.flows_closed(rows));
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.with(|to| to.finish(run));
        Ok(())
    }
}

impl OpenParts for OpenFleet {
    fn publisher(&self) -> PartPublisher {
        let counts = Arc::clone(&self.fleet.counts);
        Box::new(move |into| counts.publish(into))
    }

    fn run(self: Box<Self>, stream: PartStream, around: RunAround<'_>) -> anyhow::Result<ExitCode> {
        let RunAround {
            names,
            settings,
            ticks,
            mut metrics,
            end,
        } = around;
        let uploader = self.fleet.to.clone().map(|to| {
            let (spool, counts) = (Arc::clone(&self.spool), Arc::clone(&self.fleet.counts));
            Uploader::start(spool, to, counts, end.clone())
        });
        let uploader = uploader.transpose()?;
        // Parts that earlier runs left count, too.
        self.bound();
        if let Some(uploader) = &uploader {
            uploader.note();
        }
        if let Some(metrics) = &mut metrics {
            metrics.begin(settings.bin).map_err(sink_error)?;
        }
        let PartStream {
            mut feed,
            fabric,
            input,
            seed,
        } = stream;
        let has_metrics = metrics.is_some();
        let wiring = fabric.as_ref().map(|fabric| || fabric.wiring());
        let mut is_whole = true;
        let summary = loop {
            let begun = RunStart::now();
            let key = names.key_of_devices(&input, &settings.echo, begun.time());
            feed.begin_part(Instant::now() + self.fleet.every);
            let written = FleetRun::create(
                &self.storage,
                &key,
                Some(begun.time()),
                Scope::default(),
                false,
                self.fleet.lines(),
            );
            let written = written.map(|run| Box::new(run) as Box<dyn Sink>);
            let mut part = PartSink::new(written.map_err(SinkError::from));
            part.begin(settings.bin).map_err(sink_error)?;
            let mut sinks: Vec<&mut dyn Sink> = vec![&mut part];
            if let Some(metrics) = &mut metrics {
                sinks.push(&mut **metrics);
            }
            let request = LiveRequest {
                feed,
                plan: settings.live_plan(seed, has_metrics),
                input: &input,
                begun,
                key: key.clone(),
                options: settings.echo.clone(),
                wiring: wiring.as_ref().map(|wiring| wiring as _),
            };
            let FinishedLiveRun {
                feed: rest,
                summary,
                errors,
            } = request.run(sinks, ticks).map_err(sink_error)?;
            is_whole &= errors.is_empty();
            for error in errors {
                messages::report(&error.into());
            }
            part.finish(&summary).map_err(sink_error)?;
            let lost = summary.totals.frames_lost;
            if lost > 0 {
                messages::warn(&input, &format!("{lost} frames were lost in part {}", key.run_id));
            }
            self.close(part, &key, begun.time());
            if let Some(uploader) = &uploader {
                uploader.note();
            }
            feed = rest;
            if feed.has_ended() {
                break summary;
            }
        };
        if let Some(metrics) = &mut metrics {
            metrics.finish(&summary).map_err(sink_error)?;
        }
        if let Some(fabric) = fabric {
            fabric.end();
        }
        if let Some(uploader) = uploader {
            uploader.end(self.fleet.wait);
        }
        self.say();
        Ok(exit_code(is_whole, &summary, &settings.fail_on))
    }
}

impl OpenFleet {
    /// Counts a part that has ended, and drops the oldest ones that have no room beside it.
    fn close(&self, part: PartSink, key: &RunKey, first: Time) {
        let counts = &self.fleet.counts;
        if let Some(error) = part.error {
            counts.failed.add(0);
            let error = sink_error(error);
            messages::warn(ABOUT, &format!("part {} is not written: {error:#}", key.run_id));
        } else if let Err(error) = self.spool.add(key, first) {
            messages::warn(ABOUT, &format!("{:#}", anyhow::Error::new(error)));
        }
        self.bound();
    }

    /// Drops the oldest parts beyond `--keep`, and says so.
    fn bound(&self) {
        match self.spool.bound(self.fleet.keep) {
            Ok(dropped) if dropped.is_empty() => {}
            Ok(dropped) => {
                let bytes: u64 = dropped.iter().map(|part| part.bytes).sum();
                let missed = if self.fleet.to.is_some() {
                    ", and were not uploaded"
                } else {
                    ""
                };
                messages::warn(
                    ABOUT,
                    &format!(
                        "the oldest {} parts ({bytes} bytes) were dropped by --keep{missed}",
                        dropped.len()
                    ),
                );
            }
            Err(error) => messages::warn(ABOUT, &format!("{:#}", anyhow::Error::new(error))),
        }
    }

    /// Says at the end what became of the parts.
    fn say(&self) {
        let Fleet {
            counts, to, folder, ..
        } = &self.fleet;
        let Some(to) = to else {
            messages::wrote(&format!(
                "{} parts in {}",
                counts.written.parts(),
                folder.display()
            ));
            return;
        };
        messages::wrote(&format!(
            "{} parts, {} bytes in {to}",
            counts.uploaded.parts(),
            counts.uploaded.bytes()
        ));
        if counts.waiting.parts() > 0 {
            messages::warn(
                ABOUT,
                &format!(
                    "{} parts ({} bytes) wait in {}: the next run uploads them",
                    counts.waiting.parts(),
                    counts.waiting.bytes(),
                    folder.display()
                ),
            );
        }
    }
}

/// Manifest lines on standard output. Nobody has to read them.
struct Lines(bool);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 {
            // A reader that has gone costs no part.
            let _ = std::io::stdout().write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.0 {
            let _ = std::io::stdout().flush();
        }
        Ok(())
    }
}
