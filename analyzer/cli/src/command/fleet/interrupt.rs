//! Ctrl-C while hosts capture: the first ends the captures, the second also the collection.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::anyhow;
use tokio::sync::oneshot;

use crate::command::watch::Signals;
use crate::output::messages;

/// How often the run was interrupted.
#[derive(Debug, Default)]
pub(super) struct Interrupts(AtomicU32);

impl Interrupts {
    /// Captures are to end.
    pub(super) fn ends_captures(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Nothing more is to be fetched.
    pub(super) fn ends_all(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }

    /// Runs `work` on a thread of its own while signals are counted.
    ///
    /// # Errors
    /// Those of `work`, and when signals cannot be waited for.
    pub(super) fn over<T: Send>(&self, work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
        over_signals(work, || {
            let before = self.0.fetch_add(1, Ordering::Relaxed);
            messages::plain(if before == 0 {
                "interrupted: captures end, and are collected; once more ends the collection, too"
            } else {
                "interrupted: nothing more is collected; `roce-analyze fleet collect DIR` goes on"
            });
        })
    }
}

/// Runs `work` on a thread of its own, and `on_signal` for each Ctrl-C and SIGTERM meanwhile.
///
/// # Errors
/// Those of `work`, and when signals cannot be waited for.
pub(super) fn over_signals<T: Send>(
    work: impl FnOnce() -> anyhow::Result<T> + Send,
    on_signal: impl Fn(),
) -> anyhow::Result<T> {
    let (runtime, mut signals) = Signals::take(false)?;
    let (ended, mut has_ended) = oneshot::channel::<()>();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let result = work();
            // The waiting side exists until the message comes.
            let _ = ended.send(());
            result
        });
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
