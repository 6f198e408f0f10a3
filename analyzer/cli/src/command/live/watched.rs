//! The screen of a live run: counts of the capture, and the key that ends it. Leaves what is shown to `Screen`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use roce_capture::live::{Counters, Stop};
use roce_model::Span;
use roce_pipeline::time_of_day;
use roce_report::{About, CaptureCounts, Command, RunStanding, Screen};

use crate::output::screen::{self, Stage};
use crate::output::style::style;

/// The screen of a run.
pub(super) fn watched(
    about: About,
    top: usize,
    counters: &Arc<Counters>,
    end: &Stop,
) -> anyhow::Result<Stage> {
    let run = WatchedRun {
        counters: Arc::clone(counters),
        end: end.clone(),
        last: Mutex::new((0, Instant::now())),
    };
    Stage::open(Screen::new(about, style(top)), Arc::new(run))
}

/// A live run that is shown.
struct WatchedRun {
    counters: Arc<Counters>,
    end: Stop,
    /// Number of frames at the last look, and its time.
    last: Mutex<(u64, Instant)>,
}

/// After this time without a frame nothing waits to be analysed.
const SILENCE: Duration = Duration::from_secs(3);

impl screen::ShownRun for WatchedRun {
    fn standing(&self, screen: &Screen) -> RunStanding {
        let counted = counted(&self.counters);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != counted.frames {
            *last = (counted.frames, Instant::now());
        } else if last.1.elapsed() > SILENCE {
            screen.quiet_until(counted.now - Span::SECOND);
        }
        RunStanding {
            counted: Some(counted),
            stopping: self.end.is_requested(),
            ..RunStanding::default()
        }
    }

    fn command(&self, command: Command) {
        // The capture goes on whatever is looked at.
        if command == Command::Quit {
            self.end.stop();
        }
    }

    fn linger(&self) {}
}

/// Counts of the capture at this moment.
pub(super) fn counted(counters: &Counters) -> CaptureCounts {
    CaptureCounts {
        now: time_of_day(),
        frames: counters.frames(),
        overrun: counters.overrun(),
        kernel: counters.kernel(),
    }
}
