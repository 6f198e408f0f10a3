//! `host counters`: counters of RDMA devices and their network interfaces, before and after, and as a dataset of samples.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use roce_model::{Columns, InputSummary, Nanos, RunSummary, Sample, SampleColumns, SampleSeries, Sink};
use roce_pipeline::{RunStart, time_of_day};
use roce_probe::{HostReader, interface_of};
use roce_report::JsonFlows;
use roce_report::samples::{self, SampleSummary};

use crate::command::watch::Signals;
use crate::options::arguments::Format;
use crate::options::duration::parse_duration;
use crate::options::names::Names;
use crate::output::dataset::{dataset, written};
use crate::output::messages::{self, sink_error};
use crate::output::style::style;

/// The longest text of counters.
const MAX_TEXT_BYTES: u64 = 8 << 20;
/// How often the end of the command is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Read the counters of RDMA devices and their network interfaces twice, and show what moved
///
/// Shows each counter before and after, its change and its rate: ECN marks, CNPs, sequence errors, timeouts, drops, PFC and 802.3x
/// pause by one name for all drivers, in base units (bytes, seconds). Counters that wrap or are reset are recognised. Needs no rights.
#[derive(Args, Debug)]
pub(crate) struct Counters {
    /// How long to wait between the first reading and the last [default: 1s; with a command, until it ends]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Nanos>,

    /// Read every so often in between, so that no wrap and no reset is missed
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Nanos,

    /// Another network interface to read; those of RDMA devices are always read
    #[arg(short, long, value_name = "NAME")]
    interface: Vec<String>,

    /// Show all counters, also those that did not move
    #[arg(long)]
    all: bool,

    /// Counters of each queue pair, too, where they are bound to counters (`rdma statistic qp set`)
    #[arg(long = "qp-counters", conflicts_with = "read")]
    queue_pairs: bool,

    /// Read a recorded host below DIR (its /sys in DIR/sys, statistics in DIR/commands/ethtool_-S_IF.txt), or a text of
    /// `rdma statistic show` or `ethtool -S`; given twice: before and after
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["duration", "interface", "run"])]
    read: Vec<PathBuf>,

    /// Write every reading to DIR, too: a Parquet dataset with the table `samples`, run.json and report.html
    #[arg(short, long, value_name = "DIR", conflicts_with = "read")]
    output: Option<PathBuf>,

    /// Replace the dataset in DIR
    #[arg(long, requires = "output")]
    overwrite: bool,

    #[command(flatten)]
    names: Names,

    /// Format of standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Run this command between the two readings; its exit code becomes that of roce-analyze
    #[arg(last = true, value_name = "COMMAND")]
    run: Vec<OsString>,
}

/// Reads, waits, reads again, and shows the difference.
pub(crate) fn counters(arguments: &Counters) -> anyhow::Result<ExitCode> {
    let mut readings = Readings::default();
    let code = match arguments.read.as_slice() {
        [] => running(arguments, &mut readings)?,
        [_] | [_, _] => {
            recorded(&arguments.read, &mut readings)?;
            ExitCode::SUCCESS
        }
        _ => bail!(
            "--read is given {} times\nhint: once for one reading, twice for before and after",
            arguments.read.len()
        ),
    };
    let all = arguments.all || arguments.read.len() == 1;
    match arguments.format {
        Format::Text => {
            samples::text(&readings.summary, all, &style(0), &mut anstream::stdout())?;
            for note in &readings.notes {
                messages::note("counters", note);
            }
        }
        Format::Json => {
            let notes: Vec<&str> = readings.notes.iter().map(String::as_str).collect();
            samples::json(&readings.summary, &notes, &mut std::io::stdout())?;
        }
        Format::Html => bail!("there is no page about counters\nhint: --format text or json"),
        Format::None => {}
    }
    if let Some(kept) = readings.kept {
        kept.finish(arguments)?;
    }
    Ok(code)
}

/// Everything read, folded into one line for each counter.
#[derive(Default)]
struct Readings {
    series: SampleSeries,
    summary: SampleSummary,
    notes: Vec<String>,
    kept: Option<Kept>,
}

/// The dataset of `-o`.
struct Kept {
    sink: Box<dyn Sink>,
    run: RunSummary,
    begun: RunStart,
}

/// Name of the readings among the inputs of a run.
const INPUT: &str = "host counters";

impl Kept {
    /// Begins the dataset in `dir`.
    fn begin(dir: &Path, arguments: &Counters) -> anyhow::Result<Self> {
        let begun = RunStart::now();
        let options = vec![("interval_ns".to_owned(), arguments.interval.0.to_string())];
        let key = arguments.names.of_devices(INPUT, &options, begun.time());
        let mut sink = dataset(dir, &key, arguments.overwrite, false, JsonFlows::default())?;
        sink.begin(arguments.interval).map_err(sink_error)?;
        let input = InputSummary {
            input: INPUT.to_owned(),
            format: "counters".to_owned(),
            ..InputSummary::default()
        };
        let run = RunSummary {
            key,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: begun.time(),
            bin: arguments.interval,
            options,
            inputs: vec![input],
            ..RunSummary::default()
        };
        Ok(Self { sink, run, begun })
    }

    /// Adds the rows of one reading.
    fn add(&mut self, time: Nanos, rows: &SampleColumns) -> anyhow::Result<()> {
        for input in &mut self.run.inputs {
            input.first_time = input.first_time.or(Some(time));
            input.last_time = Some(time);
        }
        self.sink.samples(rows).map_err(sink_error)
    }

    fn finish(mut self, arguments: &Counters) -> anyhow::Result<()> {
        self.run.elapsed = self.begun.elapsed();
        self.sink.finish(&self.run).map_err(sink_error)?;
        if let Some(dir) = &arguments.output {
            messages::wrote(&written(dir));
        }
        Ok(())
    }
}

impl Readings {
    fn read(&mut self, reader: &mut HostReader, time: Nanos) -> anyhow::Result<()> {
        let mut samples = Vec::new();
        reader.read(time, &mut samples);
        self.add(time, &samples, |object| reader.max_per_second(object))
    }

    /// Adds a reading. `max_per_second` is the highest rate at which an object counts.
    fn add(
        &mut self,
        time: Nanos,
        samples: &[Sample],
        max_per_second: impl Fn(&str) -> Option<f64>,
    ) -> anyhow::Result<()> {
        let mut rows = SampleColumns::default();
        for sample in samples {
            let row = self.series.row(sample, max_per_second(&sample.object));
            self.summary.add(&row);
            rows.push(&row);
        }
        match &mut self.kept {
            Some(kept) => kept.add(time, &rows),
            None => Ok(()),
        }
    }
}

/// One recorded host, or two recordings of one.
fn recorded(folders: &[PathBuf], readings: &mut Readings) -> anyhow::Result<()> {
    let node = folders.first().and_then(|folder| folder.file_name());
    let node = node.unwrap_or_default().to_string_lossy().into_owned();
    // A host whose texts were saved is not named by the first file.
    let mut texts = HostReader::recorded(Path::new("/nonexistent"), "");
    for folder in folders {
        if folder.is_file() {
            let text = roce_files::read_text(folder, MAX_TEXT_BYTES)?;
            let mut samples = Vec::new();
            if !texts.read_text(Nanos(0), &text, &interface_of(folder), &mut samples) {
                bail!(
                    "{}: no counters in this text\nhint: the text of `rdma statistic show` or `ethtool -S IF`, in a file that is called IF.txt",
                    folder.display()
                );
            }
            readings.add(Nanos(0), &samples, |_| None)?;
            continue;
        }
        if !Path::is_dir(&folder.join("sys")) {
            bail!(
                "{}: not a recorded host\nhint: the folder has the files of /sys below sys, and texts in commands",
                folder.display()
            );
        }
        let mut reader = HostReader::recorded(folder, &node);
        // Nobody says when the recordings were made: there are changes, and no rates.
        readings.read(&mut reader, Nanos(0))?;
        readings.notes.extend(reader.notes().map(str::to_owned));
    }
    readings.notes.sort();
    readings.notes.dedup();
    Ok(())
}

/// This host: at the start, each interval, and at the end.
fn running(arguments: &Counters, readings: &mut Readings) -> anyhow::Result<ExitCode> {
    let mut reader = HostReader::new(&arguments.interface);
    if arguments.queue_pairs {
        reader = reader.with_queue_pairs();
    }
    if let Some(name) = &arguments.names.host {
        reader = reader.named(name);
    }
    let kept = arguments.output.as_deref();
    readings.kept = kept.map(|dir| Kept::begin(dir, arguments)).transpose()?;
    // From here on a signal ends the waiting, and the last reading is shown.
    let (runtime, mut signals) = Signals::take(false)?;
    readings.read(&mut reader, time_of_day())?;
    let mut child = begun(&arguments.run)?;
    let duration = match (arguments.duration, &child) {
        (Some(duration), _) => Duration::from_nanos(duration.0),
        (None, Some(_)) => Duration::MAX,
        (None, None) => Duration::from_secs(1),
    };
    let interval = Duration::from_nanos(arguments.interval.0).max(LOOK);
    let start = Instant::now();
    let mut last = start;
    let mut status = None;
    loop {
        let left = duration.saturating_sub(start.elapsed());
        let step = left.min(interval.saturating_sub(last.elapsed()));
        let step = if child.is_some() { step.min(LOOK) } else { step };
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
        if ends || last.elapsed() >= interval {
            last = Instant::now();
            readings.read(&mut reader, time_of_day())?;
        }
        if ends {
            break;
        }
    }
    readings.notes.extend(reader.notes().map(str::to_owned));
    if let Some(lifespan) = reader.lifespan().filter(|lifespan| *lifespan > interval) {
        readings.notes.push(format!(
            "the driver renews its counters every {} ms: an interval of {} ms shows some values twice",
            lifespan.as_millis(),
            interval.as_millis()
        ));
    }
    if let Some(status) = status {
        return Ok(code_of(status));
    }
    if child.is_some() {
        readings
            .notes
            .push("the command still runs: --duration ended before it".to_owned());
    }
    Ok(ExitCode::SUCCESS)
}

/// The command, started; `None` when there is none.
fn begun(command: &[OsString]) -> anyhow::Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program).args(arguments).spawn();
    child
        .map(Some)
        .with_context(|| format!("{}: cannot be started", program.display()))
}

/// A command's exit code; of one that a signal ended, 128 and the signal's number, as shells have it.
fn code_of(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}
