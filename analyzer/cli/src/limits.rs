//! Limits of the system that end a process without a word, unless it wants to hear of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGABRT, SIGXFSZ};
use signal_hook::flag;

/// Exit code of an error.
const ERROR: i32 = 2;

/// From here on a file that reaches its largest size (`ulimit -f`) is an error of the write that reaches it, and memory that is not to be had
/// ends the process as an error, behind the message that Rust's runtime prints. A program that this one starts has the usual signals again.
pub(crate) fn hear() {
    // A system that refuses leaves the signals as they are.
    let _ = flag::register(SIGXFSZ, Arc::default());
    let _ = flag::register_conditional_shutdown(SIGABRT, ERROR, Arc::new(AtomicBool::new(true)));
}
