//! A run over captures: from arguments to results.

mod fleet;

use std::io::BufWriter;
use std::process::ExitCode;

use roce_model::{Sink, Span, Time};
use roce_pipeline::{Replay, RunStart};
use roce_report::{HtmlReport, JsonReport, TraceForm};

use crate::command::invocation::{Invocation, Rights, RunCommand};
use crate::command::request::{FoundCaptures, PreparedRun};
use crate::objects::ObjectRun;
use crate::options::arguments::{Analyse, Layout};
use crate::options::format::Format;
use crate::options::settings::RunSettings;
use crate::output::chosen::ChosenFlows;
use crate::output::common::Common;
use crate::output::dataset::{dataset, fleet_run, written};
use crate::output::messages;
use crate::output::progress::Progress;
use crate::output::style::terminal;
use crate::output::trace::trace;

/// A replay, as the run over its captures needs to know it.
pub(crate) trait Player {
    /// True if the length of the captures is known, and the width of bins follows from it.
    fn has_span(&self) -> bool;

    /// Pace of a run with bins of this width.
    fn pacing(&self, bin: Span) -> Replay;

    /// Sinks that show the run while it goes on, and its results at the end.
    ///
    /// # Errors
    /// When the terminal cannot be had.
    fn text(&self, settings: &RunSettings) -> anyhow::Result<Vec<Box<dyn Sink>>>;
}

impl RunCommand for Analyse {
    const RIGHTS: Rights = Rights::Files;

    fn objects(&mut self) -> anyhow::Result<ObjectRun> {
        let objects = ObjectRun::prepare(&mut self.run.captures, &mut self.output, self.overwrite)?;
        self.is_output_elsewhere = objects.has_objects();
        Ok(objects)
    }

    fn run(&self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let code = run(self, None)?;
        invocation.objects.finish(self.run.shape.quiet)?;
        Ok(code)
    }
}

/// Analyses captures, or replays a recorded run; `beside` gets the results, too.
pub(crate) fn run(arguments: &Analyse, beside: Option<&mut dyn Sink>) -> anyhow::Result<ExitCode> {
    let found = FoundCaptures::find(&arguments.run)?;
    analyse(arguments, found, beside, None, RunStart::now())
}

/// Analyses captures, or a recorded run, at the pace of `player`.
#[cfg(feature = "live")]
pub(crate) fn replay(
    arguments: &Analyse,
    found: FoundCaptures,
    player: &dyn Player,
    begun: RunStart,
) -> anyhow::Result<ExitCode> {
    analyse(arguments, found, None, Some(player), begun)
}

/// Analyses captures, and prints and writes what `arguments` want of the results.
fn analyse(
    arguments: &Analyse,
    found: FoundCaptures,
    beside: Option<&mut dyn Sink>,
    player: Option<&dyn Player>,
    begun: RunStart,
) -> anyhow::Result<ExitCode> {
    let is_fleet = arguments.layout == Layout::Fleet;
    if is_fleet {
        fleet::check(arguments)?;
    }
    // The runs of a fleet have bins of one width, whatever the lengths of their captures.
    let fits_bin = !is_fleet && player.is_none_or(Player::has_span);
    let prepared = PreparedRun::new(found, fits_bin, begun)?;
    let ended = print_run(arguments, &prepared, beside, player);
    if is_fleet && let Err(error) = &ended {
        fleet::line(&prepared.key, error)?;
    }
    ended
}

/// Runs what is prepared.
fn print_run(
    arguments: &Analyse,
    prepared: &PreparedRun,
    beside: Option<&mut dyn Sink>,
    player: Option<&dyn Player>,
) -> anyhow::Result<ExitCode> {
    let pace = player.map(|player| player.pacing(prepared.settings.bin));
    let mut open = prepared.open(pace)?;
    let first = match arguments.layout {
        Layout::Fleet if open.is_empty() => return fleet::unreadable(arguments, prepared, &open),
        Layout::Fleet => open.first_time(),
        Layout::Run => None,
    };
    prepared.narrow(&mut open)?;
    let mut sinks = sinks(arguments, prepared, player, first)?;
    let mut takers: Vec<&mut dyn Sink> = Vec::new();
    for sink in &mut sinks {
        takers.push(&mut **sink);
    }
    if let Some(sink) = beside {
        takers.push(sink);
    }
    let progress = player.is_none().then(Progress::new);
    let is_told = arguments.format != Format::Text;
    let code = prepared.run(open, takers, is_told, progress)?;
    let is_noted =
        !prepared.options.shape.quiet && !arguments.is_output_elsewhere && arguments.layout == Layout::Run;
    if let Some(dir) = arguments.output.as_deref().filter(|_| is_noted) {
        messages::wrote(&written(dir));
    }
    Ok(code)
}

/// Sinks that get the results.
fn sinks(
    arguments: &Analyse,
    prepared: &PreparedRun,
    player: Option<&dyn Player>,
    first: Option<Time>,
) -> anyhow::Result<Vec<Box<dyn Sink>>> {
    let (key, settings) = (&prepared.key, &prepared.settings);
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    if let (Layout::Fleet, Some(dir)) = (arguments.layout, &arguments.output) {
        if prepared.options.captures.len() > 1 {
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
    if prepared.options.captures.len() > 1 {
        sinks.push(Box::new(Common::default()));
    }
    // The terminal's summary says it by itself.
    if settings.shape.flow.is_some() && arguments.format != Format::Text {
        sinks.push(Box::new(ChosenFlows::default()));
    }
    match arguments.format {
        Format::Text => match player {
            Some(player) => sinks.extend(player.text(settings)?),
            None => sinks.push(Box::new(terminal(settings.top, settings.shape.full))),
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
