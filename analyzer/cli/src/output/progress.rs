//! A progress bar on standard error, for inputs that take over a second.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use roce_capture::Merge;

/// Duration of the run after which it is shown.
const AFTER: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(100);

/// Progress of reading.
pub(crate) struct Progress {
    started: Instant,
    shown: Option<ProgressBar>,
    looked: Instant,
    enabled: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            shown: None,
            looked: now,
            enabled: std::io::stderr().is_terminal(),
        }
    }

    /// Called now and then; cheap.
    pub(crate) fn update(&mut self, merge: &Merge) {
        if !self.enabled {
            return;
        }
        let now = Instant::now();
        if now - self.looked < EVERY || now - self.started < AFTER {
            return;
        }
        self.looked = now;
        let mut done = 0;
        let mut total = Some(0);
        for progress in merge.readers().iter().map(roce_capture::Reader::progress) {
            done += progress.bytes;
            total = total.zip(progress.total).map(|(sum, size)| sum + size);
        }
        let bar = self.shown.get_or_insert_with(|| bar(total));
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

/// A bar of bytes on standard error, if that is a terminal.
pub(crate) fn bar(total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => "{bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} ETA {eta}",
        None => "{spinner} {bytes} {binary_bytes_per_sec} {elapsed}",
    };
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
