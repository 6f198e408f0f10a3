//! A host's capture, and the state that the threads of a run share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use roce_remote::fleet::script;

use crate::command::fleet::interrupt::Interrupts;
use crate::command::fleet::prepare::Ready;
use crate::command::fleet::targets::Target;

/// A capture on a host.
pub(super) struct Job<'a> {
    /// Its place among the hosts.
    pub(super) at: usize,
    pub(super) target: &'a Target,
    pub(super) ready: &'a Ready,
    pub(super) capture: script::Capture,
    /// Planned start, by this machine's clock.
    pub(super) start_ns: i64,
}

/// State that the threads of a run share.
pub(super) struct Control<'a> {
    pub(super) interrupts: &'a Interrupts,
    /// Captures are to end: the command has ended.
    pub(super) is_over: AtomicBool,
    /// Hosts that capture, or have.
    pub(super) capturing: AtomicUsize,
    /// Hosts whose capture has ended.
    pub(super) ended: AtomicUsize,
}

impl<'a> Control<'a> {
    pub(super) fn new(interrupts: &'a Interrupts) -> Self {
        Self {
            interrupts,
            is_over: AtomicBool::new(false),
            capturing: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        }
    }

    /// True if captures are to end.
    pub(super) fn ends_captures(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.interrupts.ends_captures()
    }
}
