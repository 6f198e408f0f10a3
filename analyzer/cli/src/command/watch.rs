//! The main thread of a run: it waits for signals and timers, until the analysis has ended.

use std::time::Duration;

use anyhow::{Context, anyhow};
use crossbeam_channel::Sender;
use roce_model::Span;
use roce_pipeline::Tick;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep};

use crate::output::{messages, screen};

/// Ticks that wait for the analysis, at most; one that finds no room is left out.
pub(crate) const WAITING_TICKS: usize = 4;

/// The signals that end a run.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// From here on a signal ends the run instead of the process. Returns the runtime in which signals
    /// are waited for, too. The hangup of a terminal counts as well, unless it was ignored at the start: a user who lets the process outlive
    /// its terminal (nohup) wants it to continue.
    ///
    /// # Errors
    /// When the system does not let signals and timers be waited for.
    pub(crate) fn take() -> anyhow::Result<(Runtime, Self)> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .context("signals and timers cannot be waited for")?;
        let inside = runtime.enter();
        let signals = Self::new().context("signals cannot be waited for")?;
        drop(inside);
        Ok((runtime, signals))
    }

    fn new() -> std::io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let is_wanted = !ignores(&status, SignalKind::hangup());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: is_wanted.then(|| signal(SignalKind::hangup())).transpose()?,
        })
    }

    /// The next of them: the exit code of who is ended by it at once.
    pub(crate) async fn next(&mut self) -> i32 {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = hangup => SignalKind::hangup(),
        };
        128 + kind.as_raw_value()
    }
}

/// True if a process ignores a signal, by its `/proc/PID/status` (proc(5), `SigIgn`).
fn ignores(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}

/// Events that end the wait.
pub(crate) struct Watch {
    /// Period after which the sinks learn that an interval has passed.
    pub(crate) interval: Option<Span>,
    /// After this time the run is to end.
    pub(crate) limit: Option<Span>,
    /// Who looks at the run while it goes on: the sinks get its progress.
    pub(crate) looks: Looks,
}

/// Who looks at a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Looks {
    /// Nobody.
    None,
    /// A person at the screen.
    Screen,
    /// Metrics alone: a snapshot is enough, as often as the screen has one.
    Metrics,
}

/// Signals so soon after the one that ended the run are the same wish: `timeout` and terminals send two at once.
const SAME_WISH: Duration = Duration::from_secs(1);

/// Looks between two snapshots.
const SNAPSHOT_LOOKS: u64 = 10;

impl Watch {
    /// Runs `analyse` on a thread of its own, and waits until it has ended: what it came to. `stop` and `at_once` as for signals.
    ///
    /// # Errors
    /// Those of `analyse`, and when it can have no thread.
    pub(crate) fn over<T: Send>(
        &self,
        (runtime, signals): (Runtime, Signals),
        stop: &dyn Fn(),
        at_once: &dyn Fn(),
        ticker: &Sender<Tick>,
        analyse: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        let (ended, has_ended) = oneshot::channel();
        std::thread::scope(|scope| {
            let analysis = std::thread::Builder::new()
                .name("analysis".to_owned())
                .spawn_scoped(scope, move || {
                    let result = analyse();
                    // The waiting side exists until the message comes.
                    let _ = ended.send(());
                    result
                })
                .context("no thread for the analysis")?;
            runtime.block_on(self.until_ended(signals, stop, at_once, ticker, has_ended));
            analysis
                .join()
                .map_err(|_| anyhow!("the analysing thread panicked"))?
        })
    }

    /// Waits until the run has ended. `stop` tells it to, as the first signal does; another one, later than [`SAME_WISH`], ends the
    /// process, after `at_once`.
    async fn until_ended(
        &self,
        mut signals: Signals,
        stop: &dyn Fn(),
        at_once: &dyn Fn(),
        ticker: &Sender<Tick>,
        mut has_ended: oneshot::Receiver<()>,
    ) {
        let mut intervals = self.interval.map(|every| timer(Duration::from_nanos(every.0)));
        let (mut looks, snapshots) = match self.looks {
            Looks::None => (None, 1),
            Looks::Screen => (Some(timer(screen::FRAME)), SNAPSHOT_LOOKS),
            Looks::Metrics => (Some(timer(screen::FRAME * 10)), 1),
        };
        let mut looked: u64 = 0;
        let limit = self
            .limit
            .map_or(Duration::MAX, |time| Duration::from_nanos(time.0));
        let mut limit = std::pin::pin!(sleep(limit));
        let mut stopping = false;
        let mut heard: Option<Instant> = None;
        let mut slow = std::pin::pin!(sleep(Duration::MAX));
        let mut said = false;
        loop {
            tokio::select! {
                // One that finds too many waiting is left out.
                () = next(&mut intervals), if !stopping => drop(ticker.try_send(Tick::Interval)),
                () = next(&mut looks) => {
                    looked += 1;
                    let snapshot = looked.is_multiple_of(snapshots);
                    let _ = ticker.try_send(Tick::Look { snapshot });
                }
                () = &mut limit, if !stopping => {
                    stopping = true;
                    stop();
                }
                code = signals.next() => match heard {
                    None => {
                        heard = Some(Instant::now());
                        slow.as_mut().reset(Instant::now() + SAME_WISH);
                        if !std::mem::replace(&mut stopping, true) {
                            stop();
                        }
                    }
                    Some(first) if first.elapsed() < SAME_WISH => say_once(&mut said),
                    Some(_) => {
                        screen::leave();
                        at_once();
                        messages::warn("signal", "given up at the second signal: results are not complete");
                        std::process::exit(code);
                    }
                },
                // Who has waited for so long learns that the first one was heard.
                () = &mut slow, if heard.is_some() && !said => say_once(&mut said),
                _ = &mut has_ended => return,
            }
        }
    }
}

/// Tells who sent a signal, once, that it was heard. A screen keeps messages for its end.
fn say_once(said: &mut bool) {
    if !std::mem::replace(said, true) {
        messages::note("signal", "stopping, writing results; again to give up");
    }
}

fn timer(every: Duration) -> Interval {
    let mut timer = interval_at(Instant::now() + every, every);
    timer.set_missed_tick_behavior(MissedTickBehavior::Skip);
    timer
}

async fn next(timer: &mut Option<Interval>) {
    match timer {
        Some(timer) => drop(timer.tick().await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hangup_stays_ignored() {
        // SIGHUP is number 1, the lowest bit; SIGPIPE is 13, which Rust's runtime ignores.
        for (mask, expected) in [
            ("0000000000001001", true),
            ("0000000000001000", false),
            ("", false),
        ] {
            let status = format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t1\n");
            assert_eq!(ignores(&status, SignalKind::hangup()), expected, "{mask}");
        }
    }
}
