//! Ctrl-C and SIGTERM while a command works on threads: a flag that they see.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use tokio::sync::oneshot;

use crate::command::watch::Signals;
use crate::output::messages;

/// Runs `work` on a thread of its own. The first signal sets `stops` and says `message`; later ones are no news.
///
/// # Errors
/// Those of `work`, and when signals cannot be waited for.
pub(super) fn until_signal<T: Send>(
    stops: &AtomicBool,
    message: &str,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
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
                    _ = signals.next() => {
                        if !stops.swap(true, Ordering::Relaxed) {
                            messages::plain(message);
                        }
                    }
                    _ = &mut has_ended => return,
                }
            }
        });
        thread
            .join()
            .map_err(|_| anyhow!("a thread of the command panicked"))?
    })
}
