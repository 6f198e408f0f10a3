//! A run over devices: what is analysed, and what came of it.

use std::sync::Arc;

use crossbeam_channel::Receiver;
use roce_model::{RunKey, RunSummary, Sink, SinkError, Wiring};

use crate::clock::RunStart;
use crate::error::{Error, text};
use crate::live::LiveFeed;
use crate::run::{Plan, Tick, run_live};

/// A run over the stream of devices, to its end or to that of a part.
pub struct LiveRequest<'a> {
    /// The stream.
    pub feed: LiveFeed,
    /// Number of threads, width of a bin, thresholds, and the frames that count.
    pub plan: Plan,
    /// Name of the devices in results.
    pub input: &'a str,
    /// Start of the run.
    pub begun: RunStart,
    /// Names of the run in all tables.
    pub key: RunKey,
    /// Options that shaped the run, by name, for its summary.
    pub options: Vec<(String, String)>,
    /// Gives the cables that were found during the run.
    pub wiring: Option<&'a dyn Fn() -> Arc<Wiring>>,
}

/// Result of a run over devices.
pub struct FinishedLiveRun {
    /// The stream, behind the last frame of the run.
    pub feed: LiveFeed,
    /// All that the sinks get at the end: totals, taps, findings.
    pub summary: RunSummary,
    /// Errors that ended devices or files.
    pub errors: Vec<Error>,
}

impl LiveRequest<'_> {
    /// Takes everything to the sinks, which have begun and get the summary from the caller, and tells them what comes from `ticks`.
    ///
    /// # Errors
    /// When a sink fails.
    pub fn run(
        mut self,
        sinks: Vec<&mut dyn Sink>,
        ticks: &Receiver<Tick>,
    ) -> Result<FinishedLiveRun, SinkError> {
        self.plan.match_taps = self.feed.stream.interfaces().len() > 1;
        let (mut done, mut verdicts) = run_live(self.feed, &self.plan, sinks, ticks)?;
        let errors = std::mem::take(&mut done.feed.errors);
        let mut summary = RunSummary {
            key: self.key,
            options: self.options,
            bin: self.plan.options.bin,
            ..done.live_summary(self.begun, self.input, errors.first().map(|error| text(error)))
        };
        if let Some(wiring) = self.wiring {
            verdicts.set_wiring(wiring());
        }
        verdicts.conclude(&mut summary);
        Ok(FinishedLiveRun {
            feed: done.feed,
            summary,
            errors,
        })
    }
}
