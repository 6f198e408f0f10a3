//! Least privilege: a run first uses the rights that it needs, then gives them up for good, so that a
//! hostile packet finds nothing to take. `ARCHITECTURE.md` has the order of a start, and the table of
//! remaining rights in each mode.

#[cfg(debug_assertions)]
mod attempts;
#[cfg(feature = "live")]
mod files;
#[cfg(feature = "live")]
mod rights;
mod syscalls;
#[cfg(feature = "live")]
mod user;

#[cfg(debug_assertions)]
pub(crate) use attempts::report as attempt;
#[cfg(feature = "live")]
pub(crate) use files::confine;
#[cfg(feature = "live")]
pub(crate) use rights::{give_up, lower, may_capture, raise};
pub(crate) use syscalls::{Needs, filter};
#[cfg(feature = "live")]
pub(crate) use user::{Identity, Outputs};

/// Restricts a run that only reads files and writes results: no new programs, no sockets, no rights that it does not have already.
/// It takes about half a millisecond. Where the kernel has no such filters, the run has no more rights than its user.
pub(crate) fn offline() {
    // Nothing is said then: these runs are as safe as any other program of that user.
    let _ = filter(Needs::default());
    #[cfg(debug_assertions)]
    attempt();
}
