//! A run over captures: from arguments to results.

use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use roce_capture::Merge;
use roce_flow::Options;
use roce_model::{Nanos, Recorded, RunSummary, Sink};
use roce_report::{HtmlReport, JsonReport};

use crate::align::{Alignment, Clock, align};
use crate::clock::Begun;
use crate::command::player::Player;
use crate::inputs::{self, Opened};
use crate::options::arguments::{Analyse, Format};
use crate::options::choices::Choices;
use crate::options::duration::Moment;
use crate::output::dataset::dataset;
use crate::output::exit_code::exit_code;
use crate::output::messages::{self, sink_error};
use crate::output::progress::Progress;
use crate::output::style::terminal;
use crate::pipeline;
use crate::pipeline::Plan;
use crate::summary::{Read, summary};

/// Analyses captures.
pub(crate) fn run(arguments: &Analyse) -> anyhow::Result<ExitCode> {
    run_beside(arguments, None)
}

/// Analyses captures, or replays a recorded run; `beside` gets the results, too.
pub(crate) fn run_beside(arguments: &Analyse, beside: Option<&mut dyn Sink>) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "live")]
    if let Some((arguments, recorded)) = crate::command::recorded::recorded(arguments)? {
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
    let plan = choices.plan();
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
                messages::warn(&input.path, text);
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

/// Tells an input's error on standard error; gives its text.
fn told(error: roce_capture::Error) -> String {
    let error = anyhow::Error::new(error);
    messages::report(&error);
    format!("{error:#}")
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
