//! The player of a replay: paces the frames of captures, and shows the run while it goes on.

use std::sync::Arc;

use crossbeam_channel::Receiver;
use roce_capture::Merge;
use roce_model::{Nanos, Sink, SinkError, Span};
use roce_pipeline::{Done, MergedInputs, Pace, PacedFrames, Plan, Tick, run_live};
use roce_report::{About, CaptureCounts, Command as ScreenCommand, LiveReport, RunStanding, Screen};
use roce_verdict::Verdicts;

use crate::options::settings::RunSettings;
use crate::output::messages;
use crate::output::screen::{self, Stage};
use crate::output::style::{style, terminal};

/// A replay, as the run over its captures needs to know it.
pub(crate) struct Player {
    pub(crate) pace: Arc<Pace>,
    pub(crate) ticks: Receiver<Tick>,
    pub(crate) interval: Nanos,
    /// The replay waits for keys.
    pub(crate) begins_paused: bool,
    /// The length of the captures is known, and the width of bins follows from it.
    pub(crate) has_span: bool,
    /// Title and span of the screen, when one is wanted.
    pub(crate) screen: Option<(String, Option<Span>)>,
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
    ) -> Result<(Done<MergedInputs>, Verdicts), SinkError> {
        // Time outside of the range is not waited for.
        let from = Nanos(plan.range.start);
        let feed = PacedFrames::new(
            plan.source(merge),
            Arc::clone(&self.pace),
            from,
            // Lines come when their frames have come; only the screen knows the position and hides what is later.
            if self.screen.is_some() {
                lead(plan.options.bin)
            } else {
                Nanos(0)
            },
        );
        let (done, verdicts) = run_live(feed, plan, sinks, &self.ticks)?;
        if done.feed.ended_early {
            let (last, _) = self.pace.handed();
            let after = last.since(done.span().map_or(last, |span| span.first));
            messages::warn(
                "the replay",
                &format!("it was ended {after} after its first frame, and the results are about that part"),
            );
        }
        Ok((done.map_feed(|paced| paced.source), verdicts))
    }

    /// Sinks that show the run while it goes on, and its results at the end.
    ///
    /// # Errors
    /// When the terminal cannot be had.
    pub(crate) fn text(&self, settings: &RunSettings) -> anyhow::Result<Vec<Box<dyn Sink>>> {
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
            Box::new(terminal(settings.top, settings.full)),
        ])
    }
}

/// A replay on the screen.
struct ShownReplay {
    pace: Arc<Pace>,
    span: Option<Span>,
}

/// Frames are emitted this long before their time: rows of bins can change for less.
fn lead(bin: Nanos) -> Nanos {
    Nanos((4 * bin.0).max(10_000_000).min(128 * bin.0) + bin.0)
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
