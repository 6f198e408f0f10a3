//! A run over captures: from arguments to results.

use std::io::{BufWriter, Write};
#[cfg(not(feature = "parquet"))]
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{anyhow, bail};
use roce_capture::{Interface, Merge, Summary};
use roce_flow::{Conclusion, LoggedStep, Options, Settings};
use roce_model::{Nanos, Recorded, RunSummary, Severity, Sink, SinkError, TapRow, Totals};
use roce_report::{HtmlReport, JsonReport, Style, TerminalReport};

use crate::align::{Alignment, Clock, align};
use crate::args::{Analyse, Format};
use crate::choices::Choices;
use crate::decode::Decoder;
use crate::duration::Moment;
#[cfg(feature = "parquet")]
use crate::folder::dataset;
use crate::inputs::{self, Opened};
use crate::pipeline::{self, Plan};
use crate::progress::Progress;
use crate::replay::Player;
use crate::taps::Taps;

/// Analyses captures.
pub(crate) fn run(arguments: &Analyse) -> anyhow::Result<ExitCode> {
    run_beside(arguments, None)
}

/// Analyses captures, or replays a recorded run; `beside` gets the results, too.
pub(crate) fn run_beside(arguments: &Analyse, beside: Option<&mut dyn Sink>) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "live")]
    if let Some((arguments, recorded)) = crate::replay::recorded(arguments)? {
        return analyse(&arguments, Some(&recorded), beside, None, Begun::now());
    }
    #[cfg(not(feature = "live"))]
    if let Some(dir) = arguments
        .captures
        .iter()
        .find(|dir| dir.join(Recorded::FILE).is_file())
    {
        bail!(
            "{}: a recorded live run, and this roce-analyze was built without live runs\nhint: build it with `--features live`, or give it {}, \
             whose packets it can read",
            dir.display(),
            Recorded::FILE
        );
    }
    analyse(arguments, None, beside, None, Begun::now())
}

/// Analyses captures, or a recorded run, at the pace of `player`.
#[cfg(feature = "live")]
pub(crate) fn replay(
    arguments: &Analyse,
    live: Option<&Recorded>,
    player: &Player,
    begun: Begun,
) -> anyhow::Result<ExitCode> {
    analyse(arguments, live, None, Some(player), begun)
}

/// Analyses captures; the only input of a `live` run that was recorded is called as it was then.
fn analyse(
    arguments: &Analyse,
    live: Option<&Recorded>,
    mut beside: Option<&mut dyn Sink>,
    player: Option<&Player>,
    begun: Begun,
) -> anyhow::Result<ExitCode> {
    let choices = Choices::of_captures(arguments, live.is_none() && player.is_none())?;
    let threads = choices.threads;

    let mut opened = inputs::open(&arguments.captures, threads > 1);
    let mut errors: Vec<(usize, String)> = Vec::new();
    for (place, error) in std::mem::take(&mut opened.failed) {
        errors.push((place, told(error)));
    }
    if opened.readers.is_empty() {
        bail!("none of the captures could be read");
    }
    let alignment = align_clocks(arguments, &mut opened, threads);
    let mut merge = Merge::new(opened.readers);
    let range = time_range(arguments, &mut merge)?;

    let mut sinks = sinks(arguments, &choices, player)?;
    for sink in &mut sinks {
        sink.begin(choices.bin).map_err(sink_error)?;
    }
    if let Some(sink) = &mut beside {
        sink.begin(choices.bin).map_err(sink_error)?;
    }
    let plan = plan(&choices);
    let seed = live.map(|recorded| recorded.seed);
    let plan = Plan {
        options: Options { seed, ..plan.options },
        range,
        match_taps: alignment.shared,
        apart: Arc::new(alignment.apart.clone()),
        ..plan
    };
    let mut borrowed: Vec<&mut dyn Sink> = sinks
        .iter_mut()
        .map(|sink| &mut **sink as &mut dyn Sink)
        .collect();
    if let Some(sink) = &mut beside {
        borrowed.push(&mut **sink);
    }
    let (mut done, verdicts) = if let Some(player) = player {
        player.run(merge, &plan, borrowed)
    } else {
        let mut progress = Progress::new();
        pipeline::run(merge, &plan, borrowed, |merge| progress.update(merge))
    }
    .map_err(sink_error)?;

    for (reader, error) in std::mem::take(&mut done.feed.errors) {
        let place = opened.places.get(reader).copied().unwrap_or_default();
        errors.push((place, told(error)));
    }
    let mut inputs = inputs::summaries(
        &arguments.captures,
        &done.feed.merge,
        &opened.places,
        &errors,
        &alignment.warnings,
        arguments.hash,
    )?;
    if let (Some(recorded), [input]) = (live, inputs.as_mut_slice()) {
        inputs::as_live(input, &recorded.input);
    }
    if arguments.format != Format::Text {
        // The screen shows them; who reads anything else is told aside.
        for input in &inputs {
            for text in &input.warnings {
                crate::warn(&input.path, text);
            }
        }
    }
    let paths: Vec<String> = inputs.iter().map(|input| input.path.clone()).collect();
    let name = |input: usize| {
        let path = opened.places.get(input).and_then(|place| paths.get(*place));
        path.cloned().unwrap_or_default()
    };
    let readers = done.feed.merge.readers().iter();
    let read: Vec<Read<'_>> = readers
        .map(|reader| Read {
            summary: reader.summary(),
            interfaces: reader.interfaces(),
        })
        .collect();
    let mut summary = RunSummary {
        inputs,
        options: choices.echo,
        ..summary(
            begun,
            done.totals(),
            &read,
            &done.decoder,
            &done.conclusion,
            name,
            &alignment,
        )
    };
    summary.bin = choices.bin;
    verdicts.conclude(&mut summary);
    for mut sink in sinks {
        sink.finish(&summary).map_err(sink_error)?;
    }
    if let Some(sink) = beside {
        sink.finish(&summary).map_err(sink_error)?;
    }
    Ok(exit_code(errors.is_empty(), &summary, choices.fail_on))
}

/// Who gets the results.
fn sinks(
    arguments: &Analyse,
    choices: &Choices,
    player: Option<&Player>,
) -> anyhow::Result<Vec<Box<dyn Sink>>> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    // The dataset comes first: it is complete whether or not anybody reads standard output to its end.
    if let Some(dir) = &arguments.output {
        sinks.push(dataset(dir, arguments.overwrite, choices.threads > 1)?);
    }
    match arguments.format {
        Format::Text => match player {
            Some(player) => sinks.extend(player.text(choices)?),
            None => sinks.push(Box::new(terminal(choices.top))),
        },
        Format::Json => sinks.push(Box::new(JsonReport::new(BufWriter::new(std::io::stdout())))),
        Format::Html => sinks.push(Box::new(HtmlReport::new(BufWriter::new(std::io::stdout())))),
        Format::None => {}
    }
    Ok(sinks)
}

/// When a run began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    started: Nanos,
    /// `None` where the environment says when, so that results can be made again byte by byte.
    clock: Option<Instant>,
}

impl Begun {
    /// It begins now, or when `SOURCE_DATE_EPOCH` says, in seconds since the epoch (reproducible-builds.org).
    pub(crate) fn now() -> Self {
        let told = std::env::var("SOURCE_DATE_EPOCH").ok();
        match told.and_then(|seconds| seconds.trim().parse::<u64>().ok()) {
            Some(seconds) => Self {
                started: Nanos(seconds.saturating_mul(Nanos::SECOND)),
                clock: None,
            },
            None => Self {
                started: time_of_day(),
                clock: Some(Instant::now()),
            },
        }
    }

    /// How long it has been going on; nothing where it is to give the same bytes again.
    fn elapsed(self) -> Nanos {
        let elapsed = self.clock.map_or(0, |clock| clock.elapsed().as_nanos());
        Nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }
}

/// The time of day.
pub(crate) fn time_of_day() -> Nanos {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(now.as_nanos()).unwrap_or_default())
}

/// 2 when an input failed, 1 when a finding is at or over the limit.
pub(crate) fn exit_code(all_read: bool, summary: &RunSummary, limit: Option<Severity>) -> ExitCode {
    let worst = summary.findings.iter().map(|finding| finding.severity).max();
    if !all_read {
        ExitCode::from(2)
    } else if limit.is_some_and(|limit| worst >= Some(limit)) {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    }
}

/// Finds how the inputs' clocks stand to each other, and has their times corrected.
fn align_clocks(arguments: &Analyse, opened: &mut Opened, threads: u32) -> Alignment {
    let paths: Vec<&PathBuf> = opened
        .places
        .iter()
        .filter_map(|place| arguments.captures.get(*place))
        .collect();
    if arguments.no_align {
        return Alignment::none(paths.len());
    }
    let alignment = align(&paths, threads);
    for (reader, clock) in opened.readers.iter_mut().zip(&alignment.clocks) {
        if let Some(clock) = clock.filter(Clock::is_off) {
            reader.correct(clock.correction);
        }
    }
    alignment
}

/// What is to be done with all frames of one input.
pub(crate) fn plan(choices: &Choices) -> Plan {
    let options = options(choices);
    Plan {
        threads: choices.threads,
        options,
        settings: Settings {
            bin: options.bin,
            link_rate: options.link_rate,
            training_log: choices.logged.iter().copied().map(LoggedStep::from).collect(),
            thresholds: choices.thresholds.clone(),
            shown: choices.flow.clone(),
        },
        filter: choices.only_flow.clone(),
        processes: choices.processes.clone(),
        range: 0..u64::MAX,
        lags: choices.lag.clone(),
        match_taps: false,
        apart: Arc::default(),
    }
}

/// What the analysis is to do.
fn options(choices: &Choices) -> Options {
    Options {
        bin: choices.bin,
        max_flows: choices.max_flows,
        link_rate: choices.link_rate.map(|rate| rate.0),
        dcqcn: choices
            .dcqcn
            .as_ref()
            .map_or(Options::default().dcqcn, |reaction| reaction.parameters),
        dcqcn_stated: choices.dcqcn.is_some(),
        priority_of_dscp: choices.dscp_map.0,
        seed: None,
    }
}

/// Tells an input's error on standard error; gives its text.
fn told(error: roce_capture::Error) -> String {
    let error = anyhow::Error::new(error);
    crate::report(&error);
    format!("{error:#}")
}

pub(crate) fn sink_error(error: SinkError) -> anyhow::Error {
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

/// The text of a run at its end.
pub(crate) fn terminal(top: usize) -> TerminalReport<impl Write> {
    TerminalReport::new(anstream::stdout(), style(top))
}

/// How text on standard output looks.
pub(crate) fn style(top: usize) -> Style {
    Style {
        width: width(),
        // The stream would strip what a pipe or NO_COLOR does not want, but not the words about colours.
        color: anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never,
        unicode: unicode(),
        top,
    }
}

/// Columns of the screen: `COLUMNS` when it is set (POSIX, 8.3), else what the terminal says, else 80.
pub(crate) fn width() -> usize {
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

/// What was read of one input.
pub(crate) struct Read<'a> {
    /// Its frames, times and losses.
    pub(crate) summary: &'a Summary,
    /// Its interfaces.
    pub(crate) interfaces: &'a [Interface],
}

/// The summary of a run, but for its inputs, options and bins. `name` is that of an input.
pub(crate) fn summary(
    begun: Begun,
    mut totals: Totals,
    inputs: &[Read<'_>],
    decoder: &Decoder,
    conclusion: &Conclusion,
    name: impl Fn(usize) -> String,
    alignment: &Alignment,
) -> RunSummary {
    totals.frames_lost = inputs
        .iter()
        .map(|input| input.summary.lost_records)
        .fold(0, u64::saturating_add);
    let mut taps = decoder.taps.rows(name);
    for tap in &mut taps {
        let of = |counts: &[u64]| counts.get(tap.tap.0 as usize).copied().unwrap_or_default();
        (tap.copies, tap.matched_packets) = (of(&conclusion.copies), of(&conclusion.matched));
        let input = decoder.taps.first_input(tap.tap);
        if let Some(clock) = input.and_then(|input| alignment.clocks.get(input).copied().flatten()) {
            note_clock(tap, &clock, &decoder.taps);
        }
    }
    for (input, read) in inputs.iter().enumerate() {
        let disorder = read.summary.disorder;
        // A file's own figures stand at the taps of its interfaces: all of them at the first one.
        if let Some(tap) = decoder
            .taps
            .of_input(input)
            .next()
            .and_then(|tap| taps.get_mut(tap.0 as usize))
        {
            tap.out_of_order += disorder.records;
            tap.out_of_order_max_ns = tap.out_of_order_max_ns.max(disorder.max_back_ns);
            let sorting = read.summary.sorting;
            tap.sorted_frames += sorting.frames;
            tap.sorted_first_time = match (tap.sorted_first_time, sorting.first) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            tap.sorted_max_ns = tap.sorted_max_ns.max(sorting.furthest_ns);
            tap.sorted_too_late += sorting.too_late;
        }
        for (index, interface) in read.interfaces.iter().enumerate() {
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
        started: begun.started,
        elapsed: begun.elapsed(),
        span: decoder.span,
        totals,
        taps,
        cnp_receivers: conclusion.cnp_receivers.clone(),
        hops: conclusion.hops.clone(),
        ..RunSummary::default()
    }
}

/// Says at a tap how its clock was found to stand.
fn note_clock(tap: &mut TapRow, clock: &Clock, taps: &Taps) {
    let first = tap.first_time.unwrap_or(clock.correction.at);
    tap.clock_reference = taps.of_input(clock.reference).next();
    // Of its corrected time the offset is taken as of its own: the drift over the offset is far less than a nanosecond.
    tap.clock_offset_ns = Some(
        clock.correction.ahead_at(first) + clock.correction.faster_ppb * 1e-9 * clock.correction.ahead_ns,
    );
    tap.clock_drift_ppb = clock
        .uncertainty_ns
        .is_some()
        .then_some(clock.correction.faster_ppb);
    tap.clock_uncertainty_ns = clock.uncertainty_ns;
}
