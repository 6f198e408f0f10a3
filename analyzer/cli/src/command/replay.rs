//! `replay`: captures and recordings on the live screen, as fast as they were captured, or slower, or step by step.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crossbeam_channel::bounded;
use roce_capture::{Options, Reader};
use roce_model::{Nanos, Recorded, Span};
use roce_pipeline::{Pace, RunStart, Speed};

use crate::command::analyse;
use crate::command::explain;
use crate::command::player::Player;
use crate::command::recorded::recorded;
use crate::command::watch::{Signals, WAITING_TICKS, Watch};
use crate::options::arguments::{Analyse, parse_bin};
use crate::options::duration::Moment;
use crate::output::screen;

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
    parse_bin(text)
}

/// How fast lines come when the replay is not paced.
const LINES: Duration = Duration::from_millis(100);
/// A replay is shown in so many intervals, about.
const INTERVALS: u64 = 60;

/// Replays captures.
pub(crate) fn replay(arguments: &Replay) -> anyhow::Result<ExitCode> {
    if let Some(id) = &arguments.analyse.explain {
        return explain::print(id, &arguments.analyse);
    }
    let begun = RunStart::now();
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
        analyse::replay(&analyse, live.as_ref(), &player, begun)
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
const MAX_FRAMES: u64 = 1 << 25;

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
            if frames > MAX_FRAMES {
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
