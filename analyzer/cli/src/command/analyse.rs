//! A run over captures: from arguments to results.

mod fleet;

use std::io::BufWriter;
use std::process::ExitCode;

use anyhow::bail;
use roce_model::{Nanos, RecordingStart, RunKey, RunSummary, Sink};
use roce_pipeline::{AnalysedRun, Captures, KnownClock, MovedSamples, RunStart, StoredSamples, as_live};
use roce_report::{HtmlReport, JsonReport, TraceForm};

use crate::command::invocation::{Invocation, Rights, RunCommand};
use crate::command::merged;
use crate::command::player::Player;
use crate::objects::ObjectRun;
use crate::options::arguments::{Analyse, Layout};
use crate::options::duration::Moment;
use crate::options::format::Format;
use crate::options::settings::RunSettings;
use crate::output::chosen::ChosenFlows;
use crate::output::common::Common;
use crate::output::dataset::{dataset, fleet_run, written};
use crate::output::exit_code::exit_code;
use crate::output::messages::{self, sink_error};
use crate::output::progress::Progress;
use crate::output::style::terminal;
use crate::output::trace::trace;

impl RunCommand for Analyse {
    const RIGHTS: Rights = Rights::Files;

    fn objects(&mut self) -> anyhow::Result<ObjectRun> {
        let objects = ObjectRun::prepare(&mut self.captures, &mut self.output, self.overwrite)?;
        self.is_output_elsewhere = objects.has_objects();
        Ok(objects)
    }

    fn run(&self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let code = run_beside(self, None)?;
        invocation.objects.finish(self.shape.quiet)?;
        Ok(code)
    }
}

/// Analyses captures, or replays a recorded run; `beside` gets the results, too.
pub(crate) fn run_beside(arguments: &Analyse, beside: Option<&mut dyn Sink>) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "live")]
    if let Some((arguments, recorded)) = crate::command::recorded::recorded(arguments)? {
        return analyse(
            &arguments,
            Some(&recorded),
            beside,
            None,
            RunStart::now(),
            KnownOfCaptures::default(),
        );
    }
    #[cfg(not(feature = "live"))]
    if let Some(dir) = arguments
        .captures
        .iter()
        .find(|dir| dir.join(RecordingStart::FILE).is_file())
    {
        bail!(
            "{}: a recorded live run, and this roce-analyze was built without live runs\nhint: build it with `--features live`, or give it {}, \
             whose packets it can read",
            dir.display(),
            RecordingStart::FILE
        );
    }
    #[cfg(feature = "probe")]
    if let Some(joined) = crate::command::joined::joined(arguments)? {
        let known = KnownOfCaptures {
            clocks: &joined.clocks,
            names: &joined.names,
        };
        return analyse(&joined.arguments, None, beside, None, RunStart::now(), known);
    }
    analyse(
        arguments,
        None,
        beside,
        None,
        RunStart::now(),
        KnownOfCaptures::default(),
    )
}

/// Facts about the captures of a fleet run that are not in the captures.
#[derive(Clone, Copy, Default)]
struct KnownOfCaptures<'a> {
    clocks: &'a [Option<KnownClock>],
    names: &'a [String],
}

/// Analyses captures, or a recorded run, at the pace of `player`.
#[cfg(feature = "live")]
pub(crate) fn replay(
    arguments: &Analyse,
    live: Option<&RecordingStart>,
    player: &Player,
    begun: RunStart,
) -> anyhow::Result<ExitCode> {
    analyse(
        arguments,
        live,
        None,
        Some(player),
        begun,
        KnownOfCaptures::default(),
    )
}

/// Analyses captures; the only input of a `live` run that was recorded is called as it was then.
fn analyse(
    arguments: &Analyse,
    live: Option<&RecordingStart>,
    beside: Option<&mut dyn Sink>,
    player: Option<&Player>,
    begun: RunStart,
    known: KnownOfCaptures<'_>,
) -> anyhow::Result<ExitCode> {
    let is_fleet = arguments.layout == Layout::Fleet;
    if is_fleet {
        fleet::check(arguments)?;
    }
    // The runs of a fleet have bins of one width, whatever the lengths of their captures.
    let fits_bin = !is_fleet && live.is_none() && player.is_none_or(|player| player.has_span);
    let settings = RunSettings::from_captures(arguments, fits_bin)?;
    let key = arguments.names.key_of_captures(
        &arguments.captures,
        arguments.capture.as_deref(),
        live.map(|recorded| recorded.input.as_str()),
        &settings.echo,
        begun.time(),
    );
    let ended = analyse_as(
        arguments,
        live,
        beside,
        player,
        begun,
        known,
        settings,
        key.clone(),
    );
    if is_fleet && let Err(error) = &ended {
        fleet::line(&key, error)?;
    }
    ended
}

/// Analyses captures as the run `key`.
#[expect(
    clippy::too_many_arguments,
    reason = "the one function in which a run's parts come together"
)]
fn analyse_as(
    arguments: &Analyse,
    live: Option<&RecordingStart>,
    mut beside: Option<&mut dyn Sink>,
    player: Option<&Player>,
    begun: RunStart,
    known: KnownOfCaptures<'_>,
    settings: RunSettings,
    key: RunKey,
) -> anyhow::Result<ExitCode> {
    let threads = settings.threads;
    let mut traces = merged::traces(&arguments.merge, arguments.max_input)?;
    note_log(arguments, &settings);
    let mut captures = Captures::open_known(
        &arguments.captures,
        threads,
        !arguments.no_align,
        arguments.max_input,
        known.clocks,
    );
    for error in captures.errors() {
        messages::error(error);
    }
    if captures.is_empty() {
        if arguments.layout == Layout::Fleet {
            return fleet::unreadable(arguments, key, &captures, begun, settings.echo);
        }
        bail!("none of the captures could be read");
    }
    let range = time_range(arguments, &mut captures)?;
    let others = other_samples(arguments)?;

    let first = match arguments.layout {
        Layout::Fleet => captures.first_time(),
        Layout::Run => None,
    };
    let mut sinks = sinks(arguments, &key, &settings, player, first)?;
    for sink in &mut sinks {
        sink.begin(settings.bin).map_err(sink_error)?;
    }
    if let Some(sink) = &mut beside {
        sink.begin(settings.bin).map_err(sink_error)?;
    }
    if let Some(traces) = &mut traces {
        traces.begin(settings.bin).map_err(sink_error)?;
    }
    let mut plan = settings.plan();
    if let Some(recorded) = live {
        plan.options.seed = recorded.seed;
    }
    plan.range = range.clone();
    let mut takers = borrowed(&mut sinks, &mut beside);
    if let Some(traces) = &mut traces {
        takers.push(traces);
    }
    let analysed = captures.run(plan, takers, |merge, plan, sinks| {
        if let Some(player) = player {
            player.run(merge, plan, sinks)
        } else {
            let mut progress = Progress::new();
            roce_pipeline::run(merge, plan, sinks, |merge| progress.update(merge))
        }
    });
    let mut analysed = analysed.map_err(sink_error)?;
    for error in analysed.errors() {
        messages::error(error);
    }
    join(
        &others,
        &mut analysed,
        &range,
        &mut borrowed(&mut sinks, &mut beside),
    )?;
    let mut inputs = analysed.inputs(arguments.hash)?;
    if let (Some(recorded), [input]) = (live, inputs.as_mut_slice()) {
        as_live(input, &recorded.input);
    }
    for (input, name) in inputs.iter_mut().zip(known.names) {
        input.input.clone_from(name);
    }
    if let (Some(capture), [input]) = (&arguments.capture, inputs.as_mut_slice()) {
        input.input.clone_from(capture);
    }
    let mut is_whole = analysed.is_whole();
    let mut summary = RunSummary {
        key,
        ..analysed.summary(begun, inputs, settings.echo)
    };
    if let Some(traces) = &mut traces {
        is_whole &= merged::conclude(traces, &mut summary, &settings.thresholds);
    }
    note_window(&range, &mut summary);
    if arguments.format != Format::Text {
        say_warnings(&summary);
    }
    for mut sink in sinks {
        sink.finish(&summary).map_err(sink_error)?;
    }
    if let Some(sink) = beside {
        sink.finish(&summary).map_err(sink_error)?;
    }
    let is_noted =
        !arguments.shape.quiet && !arguments.is_output_elsewhere && arguments.layout == Layout::Run;
    if let Some(dir) = arguments.output.as_deref().filter(|_| is_noted) {
        messages::wrote(&written(dir));
    }
    Ok(exit_code(is_whole, &summary, &settings.fail_on))
}

/// Says on standard error what the terminal's summary has of its inputs.
fn say_warnings(summary: &RunSummary) {
    for input in &summary.inputs {
        for text in &input.warnings {
            messages::warn(&input.input, text);
        }
    }
}

/// Says of each capture that none of its frames lies in the time that was asked for.
fn note_window(range: &std::ops::Range<u64>, summary: &mut RunSummary) {
    if *range == (0..u64::MAX) || summary.totals.frames > 0 {
        return;
    }
    for input in summary.inputs.iter_mut().filter(|input| input.frames > 0) {
        let text = format!("none of its {} frames lies between --from and --to", input.frames);
        input.warnings.push(text);
    }
}

/// Says what the job's log gave.
fn note_log(arguments: &Analyse, settings: &RunSettings) {
    if let Some(about) = &settings.about_log {
        if about.is_useless {
            messages::warn(&about.name, &about.text);
        } else if !arguments.shape.quiet {
            messages::note(&about.name, &about.text);
        }
    }
}

/// Samples of other runs that are joined.
///
/// # Errors
/// A folder has none, or its recording is analysed itself, with its samples.
fn other_samples(arguments: &Analyse) -> anyhow::Result<Vec<StoredSamples>> {
    let found = arguments.samples.iter().map(|dir| {
        let recording = dir.join(RecordingStart::FILE).canonicalize().ok();
        let mut captures = arguments.captures.iter();
        if recording.is_some() && captures.any(|capture| capture.canonicalize().ok() == recording) {
            bail!(
                "{}: the samples of a recording that is analysed are in the results already\nhint: omit --samples for this folder",
                dir.display()
            );
        }
        Ok(StoredSamples::find(dir)?)
    });
    found.collect()
}

/// Gives the sinks and the verdicts the samples of other runs, on the clock of the captures.
fn join(
    others: &[StoredSamples],
    analysed: &mut AnalysedRun,
    range: &std::ops::Range<u64>,
    sinks: &mut [&mut dyn Sink],
) -> anyhow::Result<()> {
    for samples in others {
        let clock = analysed.clock_in(samples.dir());
        if clock.is_none() && analysed.is_corrected() {
            messages::warn(
                &samples.dir().display().to_string(),
                "the clocks of the captures differ, and no capture lies in this folder: its samples keep their times",
            );
        }
        let moved = MovedSamples {
            range: range.clone(),
            correction: clock.flatten(),
        };
        let mut all: Vec<&mut dyn Sink> = Vec::with_capacity(sinks.len() + 1);
        for sink in sinks.iter_mut() {
            all.push(&mut **sink);
        }
        all.push(analysed);
        samples.replay(&moved, &mut all).map_err(sink_error)?;
    }
    Ok(())
}

/// All sinks of a run, and the one beside them.
fn borrowed<'a>(
    sinks: &'a mut [Box<dyn Sink>],
    beside: &'a mut Option<&mut dyn Sink>,
) -> Vec<&'a mut dyn Sink> {
    let mut borrowed: Vec<&mut dyn Sink> = Vec::new();
    for sink in sinks {
        borrowed.push(&mut **sink);
    }
    if let Some(sink) = beside {
        borrowed.push(&mut **sink);
    }
    borrowed
}

/// Sinks that get the results.
fn sinks(
    arguments: &Analyse,
    key: &RunKey,
    settings: &RunSettings,
    player: Option<&Player>,
    first: Option<Nanos>,
) -> anyhow::Result<Vec<Box<dyn Sink>>> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    if let (Layout::Fleet, Some(dir)) = (arguments.layout, &arguments.output) {
        if arguments.captures.len() > 1 {
            sinks.push(Box::new(Common::default()));
        }
        // The manifest line of this sink says that all is done.
        sinks.push(fleet_run(
            dir,
            key,
            first,
            &arguments.scope,
            settings.threads > 1,
        )?);
        return Ok(sinks);
    }
    // The dataset comes first: it is complete whether or not anybody reads standard output to its end.
    if let Some(dir) = &arguments.output {
        let flows = settings.json_flows;
        sinks.push(dataset(
            dir,
            key,
            arguments.overwrite,
            settings.threads > 1,
            flows,
        )?);
    }
    if arguments.captures.len() > 1 {
        sinks.push(Box::new(Common::default()));
    }
    // The terminal's summary says it by itself.
    if settings.flow.is_some() && arguments.format != Format::Text {
        sinks.push(Box::new(ChosenFlows::default()));
    }
    match arguments.format {
        Format::Text => match player {
            Some(player) => sinks.extend(player.text(settings)?),
            None => sinks.push(Box::new(terminal(settings.top, settings.full))),
        },
        Format::Json => sinks.push(Box::new(JsonReport::new(
            BufWriter::new(std::io::stdout()),
            settings.json_flows,
        ))),
        Format::Html => sinks.push(Box::new(HtmlReport::new(BufWriter::new(std::io::stdout())))),
        Format::Perfetto => sinks.push(trace(TraceForm::Perfetto)?),
        Format::Chrome => sinks.push(trace(TraceForm::Chrome)?),
        _ => {}
    }
    Ok(sinks)
}

/// The frames to look at, as nanoseconds since the epoch.
pub(crate) fn time_range(
    arguments: &Analyse,
    captures: &mut Captures,
) -> anyhow::Result<std::ops::Range<u64>> {
    let relative = [arguments.from, arguments.to]
        .into_iter()
        .flatten()
        .any(|m| matches!(m, Moment::After(_)));
    let first = if relative {
        captures.first_time().unwrap_or_default()
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
