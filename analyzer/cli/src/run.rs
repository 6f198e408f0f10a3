//! A run over captures: from arguments to results.

use std::io::{BufWriter, Write};
#[cfg(not(feature = "parquet"))]
use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{anyhow, bail};
use roce_capture::Merge;
use roce_flow::Options;
use roce_model::{Nanos, RunSummary, Sink, SinkError};
use roce_report::{JsonReport, Style, TerminalReport};

use crate::args::{Analyse, Format};
use crate::duration::Moment;
#[cfg(feature = "parquet")]
use crate::folder::dataset;
use crate::inputs;
use crate::pipeline::{self, Done, Plan};
use crate::progress::Progress;

/// More threads than this bring nothing: one reads for all of them.
const MOST_THREADS: u32 = 8;

/// Analyses captures.
pub(crate) fn run(arguments: &Analyse) -> anyhow::Result<ExitCode> {
    let clock = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started = Nanos(u64::try_from(started.as_nanos()).unwrap_or_default());
    let threads = arguments.threads.unwrap_or_else(default_threads);

    let opened = inputs::open(&arguments.captures, threads > 1);
    let mut errors: Vec<(usize, String)> = Vec::new();
    for (place, error) in opened.failed {
        errors.push((place, told(error)));
    }
    if opened.readers.is_empty() {
        bail!("none of the captures could be read");
    }
    let mut merge = Merge::new(opened.readers);
    let range = time_range(arguments, &mut merge)?;

    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    // The dataset comes first: it is complete whether or not anybody reads standard output to its end.
    if let Some(dir) = &arguments.output {
        sinks.push(dataset(dir, arguments.overwrite, threads > 1)?);
    }
    match arguments.format {
        Format::Text => sinks.push(Box::new(terminal(arguments.top))),
        Format::Json => sinks.push(Box::new(JsonReport::new(BufWriter::new(std::io::stdout())))),
        Format::None => {}
    }

    let options = Options {
        bin: arguments.bin,
        max_flows: arguments.max_flows,
    };
    for sink in &mut sinks {
        sink.begin(options.bin).map_err(sink_error)?;
    }
    let plan = Plan {
        threads,
        options,
        filter: arguments.flow.clone(),
        range,
        lags: arguments.lag.clone(),
    };
    let mut progress = Progress::new();
    let borrowed = sinks
        .iter_mut()
        .map(|sink| &mut **sink as &mut dyn Sink)
        .collect();
    let mut done =
        pipeline::run(merge, &plan, borrowed, |merge| progress.update(merge)).map_err(sink_error)?;
    drop(progress);

    for (reader, error) in std::mem::take(&mut done.errors) {
        let place = opened.places.get(reader).copied().unwrap_or_default();
        errors.push((place, told(error)));
    }
    let inputs = inputs::summaries(
        &arguments.captures,
        &done.merge,
        &opened.places,
        &errors,
        arguments.hash,
    )?;
    if arguments.format != Format::Text {
        // The screen shows them; who reads anything else is told aside.
        for input in &inputs {
            for text in &input.warnings {
                crate::warn(&input.path, text);
            }
        }
    }
    let elapsed = Nanos(u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let summary = RunSummary {
        inputs,
        ..summary(arguments, started, elapsed, done, &opened.places)
    };
    for mut sink in sinks {
        sink.finish(&summary).map_err(sink_error)?;
    }
    Ok(if errors.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}

fn default_threads() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    processors.min(MOST_THREADS)
}

/// Tells an input's error on standard error; gives its text.
fn told(error: roce_capture::Error) -> String {
    let error = anyhow::Error::new(error);
    crate::report(&error);
    format!("{error:#}")
}

fn sink_error(error: SinkError) -> anyhow::Error {
    anyhow!(error)
}

/// The frames to look at, as nanoseconds since the epoch.
fn time_range(arguments: &Analyse, merge: &mut Merge) -> anyhow::Result<std::ops::Range<u64>> {
    let relative = [arguments.from, arguments.to]
        .into_iter()
        .flatten()
        .any(|m| matches!(m, Moment::After(_)));
    let first = if relative {
        merge.first_time().unwrap_or_default()
    } else {
        Nanos::default()
    };
    let from = arguments.from.map_or(0, |moment| moment.resolve(first).0);
    let to = arguments.to.map_or(u64::MAX, |moment| moment.resolve(first).0);
    if from >= to {
        bail!("--from is not before --to: no frame can be in between");
    }
    Ok(from..to)
}

fn terminal(top: usize) -> TerminalReport<impl Write> {
    let style = Style {
        width: width(),
        // The stream would strip what a pipe or NO_COLOR does not want, but not the words about colours.
        color: anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never,
        unicode: unicode(),
        top,
    };
    TerminalReport::new(anstream::stdout(), style)
}

/// Columns of the screen: `COLUMNS` when it is set (POSIX, 8.3), else what the terminal says, else 80.
fn width() -> usize {
    let set = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.trim().parse().ok());
    set.filter(|columns| *columns > 0)
        .unwrap_or_else(|| terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0)))
}

/// Whether the locale's character set is UTF-8, by the first of the variables that is set (POSIX, 8.2).
fn unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb" || term == "linux") {
        return false;
    }
    locale.is_some_and(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(not(feature = "parquet"))]
fn dataset(_: &Path, _: bool, _: bool) -> anyhow::Result<Box<dyn Sink>> {
    bail!("this build cannot write datasets\nhint: build it with the feature `parquet`")
}

/// The summary of a run, but for its inputs.
fn summary(arguments: &Analyse, started: Nanos, elapsed: Nanos, done: Done, places: &[usize]) -> RunSummary {
    let mut totals = done.totals();
    let Done {
        merge,
        decoder,
        conclusion,
        ..
    } = done;
    totals.frames_lost = merge
        .readers()
        .iter()
        .map(|reader| reader.summary().lost_records)
        .fold(0, u64::saturating_add);
    let name = |input: usize| {
        let path = places.get(input).and_then(|place| arguments.captures.get(*place));
        path.map_or_else(String::new, |path| path.display().to_string())
    };
    let mut taps = decoder.taps.rows(name);
    for tap in &mut taps {
        tap.copies = conclusion
            .copies
            .get(tap.tap.0 as usize)
            .copied()
            .unwrap_or_default();
    }
    for (input, reader) in merge.readers().iter().enumerate() {
        let disorder = reader.summary().disorder;
        // A file's own figures stand at the taps of its interfaces: all of them at the first one.
        if let Some(tap) = decoder
            .taps
            .of_input(input)
            .next()
            .and_then(|tap| taps.get_mut(tap.0 as usize))
        {
            tap.out_of_order += disorder.records;
            tap.out_of_order_max_ns = tap.out_of_order_max_ns.max(disorder.max_back_ns);
        }
        for (index, interface) in reader.interfaces().iter().enumerate() {
            let tap = decoder.taps.of_interface(input, index);
            if let Some(tap) = tap.and_then(|tap| taps.get_mut(tap.0 as usize)) {
                tap.frames_lost = tap
                    .frames_lost
                    .saturating_add(interface.dropped.unwrap_or_default());
            }
        }
    }
    RunSummary {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        elapsed,
        bin: arguments.bin,
        options: options(arguments),
        inputs: Vec::new(),
        span: decoder.span,
        totals,
        taps,
        cnp_receivers: conclusion.cnp_receivers,
    }
}

/// The options that shape the results.
fn options(arguments: &Analyse) -> Vec<(String, String)> {
    let mut options = vec![
        ("bin_ns".to_owned(), arguments.bin.0.to_string()),
        ("max_flows".to_owned(), arguments.max_flows.to_string()),
    ];
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            options.push((name.to_owned(), value));
        }
    };
    add("flow", arguments.flow.as_ref().map(ToString::to_string));
    for members in &arguments.lag {
        add("lag", Some(members.join(",")));
    }
    add("from", arguments.from.map(|moment| moment.to_string()));
    add("to", arguments.to.map(|moment| moment.to_string()));
    options
}
