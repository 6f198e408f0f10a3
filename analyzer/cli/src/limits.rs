//! Limits of the system, and an output that is none: what would end a process without a word, or let it end as if all were well.

use std::panic;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use signal_hook::consts::{SIGABRT, SIGXFSZ};
use signal_hook::flag;

use crate::output::messages;

/// Exit code of an error.
const ERROR: i32 = 2;

static IS_OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks whether there is a standard output. Rust's runtime puts `/dev/null` in the place of one that is closed, so that this comes before it.
pub(crate) fn look_at_output() {
    let is_closed = fcntl_getfl(rustix::stdio::stdout()) == Err(Errno::BADF);
    IS_OUTPUT_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// That nothing can be written to the standard output: it was closed from the start, or is open for reading alone. Rust's runtime takes the
/// system's error of such a write (EBADF) for success.
pub(crate) fn no_output() -> Option<anyhow::Error> {
    let is_for_reading = || {
        let flags = fcntl_getfl(rustix::stdio::stdout());
        flags.is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDONLY)
    };
    let state = if IS_OUTPUT_CLOSED.load(Ordering::Relaxed) {
        "is closed"
    } else if is_for_reading() {
        "is open for reading alone"
    } else {
        return None;
    };
    Some(anyhow!(
        "the standard output {state}\nhint: > /dev/null, if nothing is to be printed"
    ))
}

/// From here on a file that reaches its largest size (`ulimit -f`) is an error of the write that reaches it, and memory that is not to be had
/// ends the process as an error, behind the message that Rust's runtime prints. A program that this one starts has the usual signals again.
pub(crate) fn hear() {
    // A system that refuses leaves the signals as they are.
    let _ = flag::register(SIGXFSZ, Arc::default());
    let _ = flag::register_conditional_shutdown(SIGABRT, ERROR, Arc::new(AtomicBool::new(true)));
    hear_of_libraries();
}

/// A server goes on where one of its connections gets no thread.
static IS_SERVER: AtomicBool = AtomicBool::new(false);

/// From here on a thread or descriptor that is not to be had ends what wanted it, and not the process.
#[cfg(feature = "live")]
pub(crate) fn serve() {
    IS_SERVER.store(true, Ordering::Relaxed);
}

/// Libraries panic where the system has no thread for them (polars' pool, connections to stores), or no descriptor (tokio's look for signals).
/// That is no fault of the program.
fn hear_of_libraries() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        let text = panicked.payload_as_str().unwrap_or_default();
        let what = if text.contains("spawn") && text.contains("thread") {
            Some(("thread", "ulimit -u limits them"))
        } else if text.contains("failed to create UnixStream") {
            Some(("descriptor", "ulimit -n limits them"))
        } else {
            None
        };
        if let Some((lacking, hint)) = what.filter(|_| !IS_SERVER.load(Ordering::Relaxed)) {
            messages::report(&anyhow!("the system has no {lacking}: {text}\nhint: {hint}"));
            exit(ERROR);
        }
        report(panicked);
    }));
}
