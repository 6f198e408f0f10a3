//! Readings over time: from the start to the end of a time or of a command, and as a dataset of samples.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
#[cfg(not(feature = "parquet"))]
use roce_model::RunKey;
use roce_model::{InputSummary, RunSummary, SampleColumns, Sink, Span, Time};
use roce_pipeline::RunStart;
use roce_report::JsonFlows;

use crate::command::watch::Signals;
use crate::options::names::Names;
#[cfg(feature = "parquet")]
use crate::output::dataset::{dataset, written};
use crate::output::messages::{self, sink_error};

/// How often the end of the command is looked for.
pub(in crate::command) const LOOK: Duration = Duration::from_millis(20);

/// Where readings are written, too.
#[derive(Args, Debug)]
pub(in crate::command) struct Destination {
    /// Write every reading to DIR, too: a Parquet dataset with the table `samples`, run.json and report.html
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::command) output: Option<PathBuf>,

    /// Replace the dataset in DIR
    #[arg(long, requires = "output")]
    overwrite: bool,

    #[command(flatten)]
    pub(in crate::command) names: Names,
}

impl Destination {
    /// Begins the dataset, if one is wanted.
    pub(in crate::command) fn begin(&self, about: About) -> anyhow::Result<Option<KeptSamples>> {
        let dir = self.output.as_deref();
        dir.map(|dir| KeptSamples::begin(dir, about, self)).transpose()
    }
}

/// Facts of a dataset of readings.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct About {
    /// Name of the readings among the inputs of a run.
    pub(in crate::command) input: &'static str,
    /// Kind of the readings.
    pub(in crate::command) format: &'static str,
    /// Time between two readings.
    pub(in crate::command) interval: Span,
}

/// The dataset of `-o`.
pub(in crate::command) struct KeptSamples {
    #[cfg(feature = "parquet")]
    dir: PathBuf,
    sink: Box<dyn Sink>,
    run: RunSummary,
    begun: RunStart,
}

impl KeptSamples {
    fn begin(dir: &Path, about: About, to: &Destination) -> anyhow::Result<Self> {
        let begun = RunStart::now();
        let options = vec![("interval_ns".to_owned(), about.interval.0.to_string())];
        let key = to.names.key_of_devices(about.input, &options, begun.time());
        let mut sink = dataset(dir, &key, to.overwrite, false, JsonFlows::default())?;
        sink.begin(about.interval).map_err(sink_error)?;
        let input = InputSummary {
            input: about.input.to_owned(),
            format: about.format.to_owned(),
            ..InputSummary::default()
        };
        let run = RunSummary {
            key,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: begun.time(),
            bin: about.interval,
            options,
            inputs: vec![input],
            ..RunSummary::default()
        };
        Ok(Self {
            #[cfg(feature = "parquet")]
            dir: dir.to_path_buf(),
            sink,
            run,
            begun,
        })
    }

    /// Adds the rows of one reading.
    pub(in crate::command) fn add(&mut self, time: Time, rows: &SampleColumns) -> anyhow::Result<()> {
        for input in &mut self.run.inputs {
            input.first_time = input.first_time.or(Some(time));
            input.last_time = Some(time);
        }
        self.sink.samples(rows).map_err(sink_error)
    }

    /// Ends the dataset, and says where it is.
    pub(in crate::command) fn finish(mut self) -> anyhow::Result<()> {
        self.run.elapsed = self.begun.elapsed();
        self.sink.finish(&self.run).map_err(sink_error)?;
        #[cfg(feature = "parquet")]
        messages::wrote(&written(&self.dir));
        Ok(())
    }
}

/// When readings are made.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct Pace<'a> {
    /// From the first reading to the last; `None`: until the command ends, without one a second.
    pub(in crate::command) duration: Option<Span>,
    /// Time between two readings.
    pub(in crate::command) interval: Duration,
    /// Time between two looks at what came by itself.
    pub(in crate::command) look: Duration,
    /// The command that runs meanwhile; empty: none.
    pub(in crate::command) run: &'a [OsString],
}

#[cfg(not(feature = "parquet"))]
fn dataset(_: &Path, _: &RunKey, _: bool, _: bool, _: JsonFlows) -> anyhow::Result<Box<dyn Sink>> {
    Err(messages::no_datasets())
}

/// How a series of readings ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct End {
    status: Option<ExitStatus>,
    has_command: bool,
}

impl End {
    /// The exit code of the command.
    pub(in crate::command) fn code(&self) -> ExitCode {
        code_of(self.status)
    }

    /// A remark on a command that goes on.
    pub(in crate::command) fn note(&self) -> Option<&'static str> {
        (self.has_command && self.status.is_none())
            .then_some("the command still runs: --duration ended before it")
    }
}

/// The exit code of a command; of one that a signal ended, 128 and the signal's number, as shells have it.
pub(in crate::command) fn code_of(status: Option<ExitStatus>) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let Some(status) = status else {
        return ExitCode::SUCCESS;
    };
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}

/// Calls `look` at the start, each `pace.look`, and at the end; with true where a reading is due.
pub(in crate::command) fn paced(
    pace: &Pace<'_>,
    mut look: impl FnMut(bool) -> anyhow::Result<()>,
) -> anyhow::Result<End> {
    // From here on a signal ends the waiting, and the last reading is shown.
    let (runtime, mut signals) = Signals::take()?;
    look(true)?;
    let mut child = begun(pace.run)?;
    let duration = match (pace.duration, &child) {
        (Some(duration), _) => Duration::from_nanos(duration.0),
        (None, Some(_)) => Duration::MAX,
        (None, None) => Duration::from_secs(1),
    };
    let start = Instant::now();
    let mut last = start;
    let mut status = None;
    loop {
        let left = duration.saturating_sub(start.elapsed());
        let step = left.min(pace.interval.saturating_sub(last.elapsed()));
        let step = step.min(if child.is_some() { LOOK } else { pace.look });
        let is_signalled = runtime.block_on(async {
            tokio::select! {
                _ = signals.next() => true,
                () = tokio::time::sleep(step) => false,
            }
        });
        if let Some(child) = &mut child {
            status = child.try_wait().context("the command cannot be waited for")?;
        }
        // A signal from the terminal reaches the command, too: it decides when to end.
        let ends = status.is_some() || is_signalled && child.is_none() || start.elapsed() >= duration;
        let is_due = ends || last.elapsed() >= pace.interval;
        if is_due {
            last = Instant::now();
        }
        look(is_due)?;
        if ends {
            return Ok(End {
                status,
                has_command: child.is_some(),
            });
        }
    }
}

/// The command, started; `None` when there is none.
pub(in crate::command) fn begun(command: &[OsString]) -> anyhow::Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program).args(arguments).spawn();
    child
        .map(Some)
        .with_context(|| format!("{}: cannot be started", program.display()))
}
