//! The player of a replay: paces the frames of captures, and shows the run while it goes on.

use std::sync::Arc;

use crossbeam_channel::Receiver;
use roce_model::{Period, Sink, Span};
use roce_pipeline::{Pace, Replay, Tick};
use roce_report::{About, CaptureCounts, Command as ScreenCommand, LiveReport, RunStanding, Screen};

use crate::command::analyse::Player;
use crate::options::settings::RunSettings;
use crate::output::screen::{self, Stage};
use crate::output::style::{style, terminal};

/// A replay: its pace, and where it is shown.
pub(crate) struct ReplayPlayer {
    pub(crate) pace: Arc<Pace>,
    pub(crate) ticks: Receiver<Tick>,
    pub(crate) interval: Span,
    /// The replay waits for keys.
    pub(crate) begins_paused: bool,
    /// The length of the captures is known, and the width of bins follows from it.
    pub(crate) has_span: bool,
    /// Title and span of the screen, when one is wanted.
    pub(crate) screen: Option<(String, Option<Period>)>,
}

impl Player for ReplayPlayer {
    fn has_span(&self) -> bool {
        self.has_span
    }

    fn pacing(&self, bin: Span) -> Replay {
        Replay {
            pace: Arc::clone(&self.pace),
            // Lines come when their frames have come; only the screen knows the position and hides what is later.
            lead: if self.screen.is_some() { lead(bin) } else { Span(0) },
            ticks: self.ticks.clone(),
        }
    }

    fn text(&self, settings: &RunSettings) -> anyhow::Result<Vec<Box<dyn Sink>>> {
        let style = style(settings.top);
        let Some((what, span)) = &self.screen else {
            let pace = Arc::clone(&self.pace);
            let counted = move || {
                let (handed, frames) = pace.handed();
                // The position, not how far it has read ahead; before the first frame there is none.
                let now = pace.position().map_or(handed, |position| position.min(handed));
                CaptureCounts {
                    now,
                    frames,
                    ..CaptureCounts::default()
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
            lead: lead(settings.bin),
            has_host: false,
        };
        let shown = ShownReplay {
            pace: Arc::clone(&self.pace),
            span: *span,
        };
        let screen = Screen::new(about, style);
        if self.begins_paused {
            screen.pause();
        }
        let stage = Stage::open(screen, Arc::new(shown))?;
        Ok(vec![
            Box::new(stage),
            Box::new(terminal(settings.top, settings.shape.full)),
        ])
    }
}

/// A replay on the screen.
struct ShownReplay {
    pace: Arc<Pace>,
    span: Option<Period>,
}

/// Frames are emitted this long before their time: rows of bins can change for less.
fn lead(bin: Span) -> Span {
    Span((4 * bin.0).max(10_000_000).min(128 * bin.0) + bin.0)
}

impl screen::ShownRun for ShownReplay {
    fn standing(&self, _: &Screen) -> RunStanding {
        RunStanding {
            span: self.span,
            position: self.pace.position(),
            speed: Some(self.pace.speed().to_string()),
            stopping: self.pace.is_stopped(),
            ..RunStanding::default()
        }
    }

    fn command(&self, command: ScreenCommand) {
        match command {
            ScreenCommand::Quit => self.pace.stop(),
            ScreenCommand::Pause(paused) => self.pace.pause(paused),
            ScreenCommand::Until(time) => self.pace.go_on_until(time),
            ScreenCommand::Faster => self.pace.faster(),
            ScreenCommand::Slower => self.pace.slower(),
        }
    }

    fn linger(&self) {
        self.pace.stopped();
    }
}
