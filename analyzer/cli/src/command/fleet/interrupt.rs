//! Ctrl-C while hosts capture: the first ends the captures, the second also the collection. Where nothing captures the first ends it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context as _, anyhow};
use tokio::sync::oneshot;

use crate::command::watch::Signals;
use crate::output::messages;

/// How often the run was interrupted.
#[derive(Debug, Default)]
pub(super) struct Interrupts {
    count: AtomicU32,
    /// A signal came while files were fetched.
    ends_all: AtomicBool,
    /// Files are fetched: no host captures any more.
    collects: AtomicBool,
}

impl Interrupts {
    /// Captures are to end.
    pub(super) fn ends_captures(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Nothing more is to be fetched.
    pub(super) fn ends_all(&self) -> bool {
        self.ends_all.load(Ordering::Relaxed) || self.count.load(Ordering::Relaxed) > 1
    }

    /// From here on files are fetched.
    pub(super) fn collects(&self) {
        self.collects.store(true, Ordering::Relaxed);
    }

    /// A signal has come. True: nothing more is to be fetched.
    pub(super) fn take(&self) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed);
        if self.collects.load(Ordering::Relaxed) {
            self.ends_all.store(true, Ordering::Relaxed);
        }
        self.ends_all()
    }

    /// Runs `work` on a thread of its own while signals are counted.
    ///
    /// # Errors
    /// Those of `work`, and when signals cannot be waited for.
    pub(super) fn over<T: Send>(&self, work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
        over_signals(work, || {
            messages::plain(if self.take() {
                "interrupted: nothing more is collected; `roce-analyze fleet collect DIR` goes on"
            } else {
                "interrupted: captures end, and are collected; once more ends the collection, too"
            });
        })
    }
}

/// Runs `work` on a thread of its own, and `on_signal` for each Ctrl-C and SIGTERM meanwhile.
///
/// # Errors
/// Those of `work`, and when signals cannot be waited for.
pub(in crate::command) fn over_signals<T: Send>(
    work: impl FnOnce() -> anyhow::Result<T> + Send,
    on_signal: impl Fn(),
) -> anyhow::Result<T> {
    let (runtime, mut signals) = Signals::take()?;
    let (ended, mut has_ended) = oneshot::channel::<()>();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .spawn_scoped(scope, move || {
                let result = work();
                // The waiting side exists until the message comes.
                let _ = ended.send(());
                result
            })
            .context("no thread for the run")?;
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = signals.next() => on_signal(),
                    _ = &mut has_ended => return,
                }
            }
        });
        thread
            .join()
            .map_err(|_| anyhow!("a thread of the run panicked"))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_signal_ends_a_collection_and_two_a_capture_with_it() {
        let capture = Interrupts::default();
        assert!(!capture.take(), "what was captured is collected");
        assert!(capture.ends_captures() && !capture.ends_all());
        assert!(capture.take());
        let collection = Interrupts::default();
        collection.collects();
        assert!(collection.take());
        // The first ended the captures, the next one comes while their files are fetched.
        let both = Interrupts::default();
        both.take();
        both.collects();
        assert!(!both.ends_all());
        assert!(both.take());
    }
}
