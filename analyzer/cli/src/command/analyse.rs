//! A run over captures: from arguments to results.

#[cfg(feature = "parquet")]
mod fleet;
#[cfg(feature = "parquet")]
mod results;
#[cfg(feature = "live")]
mod switch_samples;

use std::io::BufWriter;
use std::process::ExitCode;

use roce_model::{Sink, Span};
use roce_pipeline::{Replay, RunStart};
use roce_report::{HtmlReport, JsonReport, TraceForm};

use crate::command::invocation::{Invocation, Places, ResultPlace, Rights, RunCommand, is_elsewhere};
use crate::command::request::{FoundCaptures, PreparedRun};
use crate::options::arguments::{Analyse, Layout};
use crate::options::format::Format;
use crate::options::settings::RunSettings;
use crate::output::chosen::ChosenFlows;
use crate::output::common::Common;
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

    fn places(&mut self) -> Places<'_> {
        self.is_output_elsewhere = self.output.as_deref().is_some_and(is_elsewhere);
        Places {
            captures: self.run.captures.iter_mut().collect(),
            results: self.output.as_mut().map(|path| ResultPlace {
                path,
                overwrite: self.overwrite,
                quiet: self.run.shape.quiet,
            }),
        }
    }

    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        run(self, None)
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
    let is_fleet = arguments.layout != Layout::Run;
    #[cfg(feature = "parquet")]
    if is_fleet {
        fleet::check(arguments)?;
    }
    // The runs of a fleet have bins of one width, whatever the lengths of their captures.
    let fits_bin = !is_fleet && player.is_none_or(Player::has_span);
    let prepared = PreparedRun::new(found, fits_bin, begun)?;
    let ended = run_into_sinks(arguments, &prepared, beside, player);
    #[cfg(feature = "parquet")]
    if is_fleet && let Err(error) = &ended {
        fleet::line(&prepared.key, error)?;
    }
    ended
}

/// Opens the captures of a prepared run, makes its sinks, and runs.
fn run_into_sinks(
    arguments: &Analyse,
    prepared: &PreparedRun,
    beside: Option<&mut dyn Sink>,
    player: Option<&dyn Player>,
) -> anyhow::Result<ExitCode> {
    let pace = player.map(|player| player.pacing(prepared.settings.bin));
    let mut open = prepared.open(pace)?;
    #[cfg(feature = "parquet")]
    if arguments.layout == Layout::Fleet && open.is_empty() {
        return fleet::unreadable(arguments, prepared, &open);
    }
    #[cfg(feature = "parquet")]
    let first = open.first_time();
    prepared.narrow(&mut open)?;
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    if prepared.options.captures.len() > 1 {
        sinks.push(Box::new(Common::default()));
    }
    // Results come before the text: they are complete whether or not anybody reads standard output to its end.
    #[cfg(feature = "parquet")]
    sinks.extend(results::sink(arguments, prepared, first)?);
    #[cfg(feature = "live")]
    sinks.push(Box::new(switch_samples::SwitchSamples::new(
        &prepared.options.captures,
    )));
    if arguments.layout == Layout::Run {
        sinks.extend(printers(arguments, prepared, player)?);
    }
    let mut takers: Vec<&mut dyn Sink> = Vec::new();
    for sink in &mut sinks {
        takers.push(&mut **sink);
    }
    if let Some(sink) = beside {
        takers.push(sink);
    }
    let progress = player.is_none().then(Progress::new);
    let warns = arguments.format != Format::Text;
    let code = prepared.run(open, takers, warns, progress)?;
    #[cfg(feature = "parquet")]
    results::note(arguments);
    Ok(code)
}

/// Sinks that write to standard output.
fn printers(
    arguments: &Analyse,
    prepared: &PreparedRun,
    player: Option<&dyn Player>,
) -> anyhow::Result<Vec<Box<dyn Sink>>> {
    let settings = &prepared.settings;
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
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
