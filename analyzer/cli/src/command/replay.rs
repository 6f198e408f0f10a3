//! `replay`: captures and recordings on the live screen, as fast as they were captured, or slower, or step by step.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use crossbeam_channel::bounded;
use roce_capture::{Options, Reader};
use roce_model::{Period, Span};
use roce_pipeline::{Pace, RunStart, Speed};

use crate::command::analyse;
use crate::command::invocation::{Invocation, Places, Rights, RunCommand};
use crate::command::player::ReplayPlayer;
use crate::command::request::FoundCaptures;
use crate::command::watch::{Looks, Signals, WAITING_TICKS, Watch};
use crate::options::arguments::{Analyse, RunOptions, parse_bin};
use crate::options::duration::Moment;
use crate::output::screen;

/// Replay captures, or a recorded live run, on the live screen
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze replay a.pcap                 a capture as it was, on the screen
  roce-analyze replay a.pcap --speed 0.01x   a hundred times slower
  roce-analyze replay a.pcap --no-tui        a line for each interval

Intervals and rates are those of the packets' own times, at every speed. On the screen, + and - change the speed, the space \
bar pauses, and the arrow keys step. SIGINT or SIGTERM ends the replay; a second one ends it at once.")]
pub(crate) struct Replay {
    /// Capture time per second: 1x, 0.1x, 10x, or max [default: 1x; on the screen, short captures take about 30 seconds]
    #[arg(long, value_name = "SPEED", value_parser = Speed::parse)]
    speed: Option<Speed>,

    /// Start paused: on the screen the right arrow key shows one more interval
    #[arg(long, conflicts_with = "no_tui")]
    step: bool,

    /// Capture time of one line, or of one column of the screen [default: a sixtieth of the whole, at most 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    interval: Option<Span>,

    /// Print status lines instead of the full-screen view (the default without a terminal)
    #[arg(long)]
    no_tui: bool,

    #[command(flatten)]
    pub(crate) analyse: Analyse,
}

fn parse_interval(text: &str) -> Result<Span, String> {
    parse_bin(text)
}

/// Period of lines when the replay is not paced.
const LINES: Duration = Duration::from_millis(100);
/// About the number of intervals of a replay.
const INTERVALS: u64 = 60;

impl RunCommand for Replay {
    const RIGHTS: Rights = Rights::Files;

    fn places(&mut self) -> Places<'_> {
        Places {
            captures: self.analyse.run.captures.iter_mut().collect(),
            results: None,
        }
    }

    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        replay(self)
    }
}

/// Replays captures.
fn replay(arguments: &Replay) -> anyhow::Result<ExitCode> {
    let begun = RunStart::now();
    let found = FoundCaptures::find(&arguments.analyse.run)?;
    let span = span(&found.options);
    let interval = arguments
        .interval
        .unwrap_or_else(|| span.map_or(Span(Span::SECOND.0), |span| interval(span.length())));
    let wanted = screen::is_wanted(arguments.no_tui, arguments.analyse.format);
    if arguments.step && !wanted {
        bail!(
            "--step needs the screen\nhint: it is there when standard input and output are a terminal, with --format text"
        );
    }
    let signals = Signals::take()?;
    let speed = arguments.speed.unwrap_or_else(|| {
        let span = span.filter(|_| wanted);
        span.map_or(Speed::Times(1.0), |span| watchable(span.length()))
    });
    let pace = Arc::new(Pace::new(speed));
    pace.pause(arguments.step);
    let (ticker, ticks) = bounded(WAITING_TICKS);
    let player = ReplayPlayer {
        pace: Arc::clone(&pace),
        ticks,
        interval,
        begins_paused: arguments.step,
        has_span: span.is_some() && found.recorded.is_none(),
        screen: wanted.then(|| (name(&found), span)),
    };
    let lines = match speed {
        Speed::Times(times) => Duration::from_nanos(interval.0).div_f64(times).max(LINES),
        Speed::Max => LINES,
    };
    let watch = Watch {
        interval: (!wanted).then(|| Span(u64::try_from(lines.as_nanos()).unwrap_or(u64::MAX))),
        limit: None,
        looks: if wanted { Looks::Screen } else { Looks::None },
    };
    watch.over(signals, &|| pace.stop(), &|| (), &ticker, || {
        analyse::replay(&arguments.analyse, found, &player, begun)
    })
}

/// Title of a replay: its input, or the first of them.
fn name(found: &FoundCaptures) -> String {
    let first = found
        .options
        .captures
        .first()
        .map(|path| path.display().to_string());
    let recorded = found.recorded.as_ref();
    let first = recorded
        .map(|recorded| recorded.input.clone())
        .or(first)
        .unwrap_or_default();
    match found.options.captures.len() {
        0 | 1 => first,
        several => format!("{first} and {} more", several - 1),
    }
}

/// A speed at which the eye can follow: at most 1x, and captures that would be over sooner take `WATCHED` to twice that.
fn watchable(whole: Span) -> Speed {
    const WATCHED: f64 = 20.0;
    let times = whole.seconds() / WATCHED;
    if times >= 1.0 || times <= 0.0 {
        return Speed::Times(1.0);
    }
    // Rounded down to 1, 2 or 5 times a power of ten.
    let power = 10f64.powf(times.log10().floor());
    let round = [5.0, 2.0, 1.0].into_iter().find(|digit| digit * power <= times);
    Speed::Times((round.unwrap_or(1.0) * power).max(1e-6))
}

/// A round length that divides the whole into about `INTERVALS`.
fn interval(whole: Span) -> Span {
    let wanted = (whole.0 / INTERVALS).clamp(1_000, Span::SECOND.0);
    let power = 10u64.pow(wanted.ilog10());
    let round = [5, 2, 1]
        .map(|digit| digit * power)
        .into_iter()
        .find(|round| *round <= wanted);
    Span(round.unwrap_or(power))
}

/// Frames and bytes that are looked at for the span of a replay, in all.
const MAX_FRAMES: u64 = 1 << 25;

/// The first and last time of the replay, if they can be read beforehand: not from standard input, nor
/// for very many frames.
fn span(options: &RunOptions) -> Option<Period> {
    let mut span: Option<Period> = None;
    let mut frames = 0;
    for path in &options.captures {
        if !path.is_file() {
            return None;
        }
        // An unreadable file is reported when it is analysed.
        let Ok(mut reader) = Reader::open(path, &Options::default()) else {
            continue;
        };
        while let Ok(Some(batch)) = reader.next_batch() {
            frames += batch.frames().len() as u64;
            if frames > MAX_FRAMES {
                return None;
            }
            for frame in batch.frames() {
                span.get_or_insert(Period::at(frame.time)).include(frame.time);
            }
        }
    }
    let span = span?;
    let moment = |moment: Option<Moment>| moment.map(|moment| moment.resolve(span.first));
    Some(Period {
        first: moment(options.from).map_or(span.first, |from| from.max(span.first)),
        last: moment(options.to).map_or(span.last, |to| to.min(span.last)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_captures_are_replayed_slowly() {
        // A run of 3 ms takes 30 s at 0.0001x: 3e-3 / 20 = 1.5e-4, rounded down.
        for (nanos, speed) in [
            (3_000_000, 1e-4),
            (844_000_000, 0.02),
            (20_000_000_000, 1.0),
            (3_600_000_000_000, 1.0),
            (0, 1.0),
        ] {
            let Speed::Times(times) = watchable(Span(nanos)) else {
                panic!("{nanos}")
            };
            assert!((times / speed - 1.0).abs() < 1e-9, "{nanos}: {times}");
        }
    }
}
