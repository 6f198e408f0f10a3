//! A recorded live run again: the recording in place of its folder, and what the run was told. And `replay`: captures and recordings
//! on the live screen, as fast as they were captured, or slower, or step by step.

mod feed;
mod pace;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, Parser};
use crossbeam_channel::{Receiver, bounded};
use roce_capture::{Merge, Options, Reader};
use roce_flow::Verdicts;
use roce_model::{Nanos, Recorded, Sink, SinkError, Span};
use roce_report::{About, Command as Asked, Counted, LiveReport, Screen, Standing};

use crate::args::{Analyse, Arguments, Command};
use crate::choices::Choices;
use crate::duration::Moment;
use crate::pipeline::{self, Done, Plan, Source, Tick};
use crate::run::{self, Begun};
use crate::screen::{self, Stage};
use crate::watch::{Signals, WAITING_TICKS, Watch};
use feed::Paced;
use pace::{Pace, Speed};

#[derive(Args, Debug)]
#[command(
    after_help = "Intervals and rates are those of the packets' own times, however fast they are replayed. A simulated capture is short: \
--speed 0.01x shows it. SIGINT and SIGTERM end the replay, a second one at once."
)]
pub(crate) struct Replay {
    /// Seconds of the capture in a second: 1x, 0.1x, 10x, or max
    #[arg(long, value_name = "SPEED", default_value = "1x", value_parser = Speed::parse)]
    speed: Speed,

    /// How long what is shown together is [default: a sixtieth of the whole, at most 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    interval: Option<Nanos>,

    /// Lines instead of the screen; so it is also where there is no terminal
    #[arg(long)]
    no_tui: bool,

    #[command(flatten)]
    analyse: Analyse,
}

fn parse_interval(text: &str) -> Result<Nanos, String> {
    crate::args::parse_bin(text)
}

/// A replay, as the run over its captures needs to know it.
pub(crate) struct Player {
    pace: Arc<Pace>,
    ticks: Receiver<Tick>,
    interval: Nanos,
    /// When the screen is wanted: what is known of the whole.
    screen: Option<(String, Option<Span>)>,
}

/// How fast lines come when the replay is not paced.
const LINES: Duration = Duration::from_millis(100);
/// A replay is shown in so many intervals, about.
const INTERVALS: u64 = 60;

/// Replays captures.
pub(crate) fn replay(arguments: &Replay) -> anyhow::Result<ExitCode> {
    if let Some(id) = &arguments.analyse.explain {
        return crate::explain(id, &arguments.analyse);
    }
    let begun = Begun::now();
    let (analyse, live) = match recorded(&arguments.analyse)? {
        Some((analyse, recorded)) => (analyse, Some(recorded)),
        None => (arguments.analyse.clone(), None),
    };
    let span = span(&analyse);
    let interval = arguments
        .interval
        .unwrap_or_else(|| span.map_or(Nanos(Nanos::SECOND), |span| interval(span.length())));
    let wanted = screen::is_wanted(arguments.no_tui, analyse.format);
    let signals = Signals::take(wanted)?;
    let pace = Arc::new(Pace::new(arguments.speed));
    let (ticker, ticks) = bounded(WAITING_TICKS);
    let player = Player {
        pace: Arc::clone(&pace),
        ticks,
        interval,
        screen: wanted.then(|| (name(&analyse, live.as_ref()), span)),
    };
    let lines = match arguments.speed {
        Speed::Times(times) => Duration::from_nanos(interval.0).div_f64(times).max(LINES),
        Speed::Max => LINES,
    };
    let watch = Watch {
        interval: (!wanted).then(|| Nanos(u64::try_from(lines.as_nanos()).unwrap_or(u64::MAX))),
        limit: None,
        looks: wanted,
    };
    watch.over(signals, &|| pace.stop(), &|| (), &ticker, || {
        run::replay(&analyse, live.as_ref(), &player, begun)
    })
}

/// What a replay is called: its input, or the first of them.
fn name(analyse: &Analyse, live: Option<&Recorded>) -> String {
    let first = analyse.captures.first().map(|path| path.display().to_string());
    let first = live
        .map(|recorded| recorded.input.clone())
        .or(first)
        .unwrap_or_default();
    match analyse.captures.len() {
        0 | 1 => first,
        several => format!("{first} and {} more", several - 1),
    }
}

/// A round length of which about so many make the whole.
fn interval(whole: Nanos) -> Nanos {
    let wanted = (whole.0 / INTERVALS).clamp(1_000, Nanos::SECOND);
    let power = 10u64.pow(wanted.ilog10());
    let round = [5, 2, 1]
        .map(|digit| digit * power)
        .into_iter()
        .find(|round| *round <= wanted);
    Nanos(round.unwrap_or(power))
}

/// Frames and bytes that are looked at for the span of a replay, in all.
const MOST_FRAMES: u64 = 1 << 25;

/// The first and last time of what is replayed, as far as that can be seen beforehand: not of standard input, nor of very many frames.
fn span(analyse: &Analyse) -> Option<Span> {
    let mut span: Option<Span> = None;
    let mut frames = 0;
    for path in &analyse.captures {
        if !path.is_file() {
            return None;
        }
        // What cannot be read is told when it is analysed.
        let Ok(mut reader) = Reader::open(path, &Options::default()) else {
            continue;
        };
        while let Ok(Some(batch)) = reader.next_batch() {
            frames += batch.frames().len() as u64;
            if frames > MOST_FRAMES {
                return None;
            }
            for frame in batch.frames() {
                span.get_or_insert(Span::at(frame.time)).include(frame.time);
            }
        }
    }
    let span = span?;
    let moment = |moment: Option<Moment>| moment.map(|moment| moment.resolve(span.first));
    Some(Span {
        first: moment(analyse.from).map_or(span.first, |from| from.max(span.first)),
        last: moment(analyse.to).map_or(span.last, |to| to.min(span.last)),
    })
}

impl Player {
    /// Takes all frames of files to the sinks at their pace.
    ///
    /// # Errors
    /// When a sink fails.
    pub(crate) fn run(
        &self,
        merge: Merge,
        plan: &Plan,
        sinks: Vec<&mut dyn Sink>,
    ) -> Result<(Done<Source>, Verdicts), SinkError> {
        // What is not looked at is not waited for.
        let from = Nanos(plan.range.start);
        let feed = Paced::new(
            Source::new(merge),
            Arc::clone(&self.pace),
            from,
            lead(plan.options.bin),
        );
        let (done, verdicts) = pipeline::run_live(feed, plan, sinks, &self.ticks)?;
        if done.feed.ended_early {
            let (last, _) = self.pace.handed();
            let after = last.since(done.decoder.span.map_or(last, |span| span.first));
            crate::warn(
                "the replay",
                &format!("it was ended {after} after its first frame, and what follows is of so much"),
            );
        }
        let done = Done {
            feed: done.feed.source,
            decoder: done.decoder,
            conclusion: done.conclusion,
        };
        Ok((done, verdicts))
    }

    /// Who shows the run while it goes on, and what it came to at its end.
    ///
    /// # Errors
    /// When the terminal cannot be had.
    pub(crate) fn text(&self, choices: &Choices) -> anyhow::Result<Vec<Box<dyn Sink>>> {
        let style = run::style(choices.top);
        let Some((what, span)) = &self.screen else {
            let pace = Arc::clone(&self.pace);
            let counted = move || {
                let (now, frames) = pace.handed();
                Counted {
                    now,
                    frames,
                    ..Counted::default()
                }
            };
            return Ok(vec![Box::new(LiveReport::new(
                anstream::stdout(),
                style,
                counted,
            ))]);
        };
        let about = About {
            what: what.clone(),
            paced: true,
            interval: self.interval,
            lead: lead(choices.bin),
            has_host: false,
        };
        let shown = Shown {
            pace: Arc::clone(&self.pace),
            span: *span,
        };
        let stage = Stage::open(Screen::new(about, style), Arc::new(shown))?;
        Ok(vec![Box::new(stage), Box::new(run::terminal(choices.top))])
    }
}

/// A replay on the screen.
struct Shown {
    pace: Arc<Pace>,
    span: Option<Span>,
}

/// By so much frames are handed on before their time: rows of bins can change for less.
fn lead(bin: Nanos) -> Nanos {
    Nanos((4 * bin.0).max(10_000_000).min(128 * bin.0) + bin.0)
}

impl screen::Shown for Shown {
    fn standing(&self, _: &Screen) -> Standing {
        Standing {
            span: self.span,
            position: self.pace.position(),
            speed: Some(self.pace.speed().to_string()),
            stopping: self.pace.is_stopped(),
            ..Standing::default()
        }
    }

    fn command(&self, asked: Asked) {
        match asked {
            Asked::Quit => self.pace.stop(),
            Asked::Pause(paused) => self.pace.pause(paused),
            Asked::Until(time) => self.pace.go_on_until(time),
            Asked::Faster => self.pace.faster(),
            Asked::Slower => self.pace.slower(),
        }
    }

    fn linger(&self) {
        self.pace.stopped();
    }
}

/// The run that is to be replayed, when the only argument is the folder of a recorded one: with the options that it had, where
/// the command line says nothing else; and what is recorded of it.
///
/// # Errors
/// When the recording cannot be read.
pub(crate) fn recorded(arguments: &Analyse) -> anyhow::Result<Option<(Analyse, Recorded)>> {
    let [dir] = arguments.captures.as_slice() else {
        return Ok(None);
    };
    let path = dir.join(Recorded::FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let recorded = head(&path)?;
    let told = std::iter::once("roce-analyze").chain(recorded.arguments.iter().map(String::as_str));
    let told = Arguments::try_parse_from(told)
        .map_err(|error| anyhow!("{}: its command line is not understood: {error}", path.display()))?;
    let Some(Command::Live(live)) = told.command else {
        return Err(anyhow!("{}: not the recording of a live run", path.display()));
    };
    let replayed = Analyse {
        captures: vec![path],
        shape: arguments.shape.clone().or(live.shape),
        ..arguments.clone()
    };
    Ok(Some((replayed, recorded)))
}

/// What stands before the first frame.
fn head(path: &Path) -> anyhow::Result<Recorded> {
    let mut reader = Reader::open(path, &Options::default())?;
    let unreadable = || format!("{}: not a recording of this version", path.display());
    let batch = reader.next_batch()?.with_context(unreadable)?;
    let note = batch.notes().iter().find(|note| note.kind == Recorded::BLOCK);
    note.and_then(|note| Recorded::decode(batch.note(note)))
        .with_context(unreadable)
}
