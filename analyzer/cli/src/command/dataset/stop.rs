//! Ctrl-C and SIGTERM while a command works on threads: a flag that they see.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::command::fleet::interrupt::over_signals;
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
    over_signals(work, || {
        if !stops.swap(true, Ordering::Relaxed) {
            messages::plain(message);
        }
    })
}
