//! The kernel programs in a kernel: over every capture, over real interfaces, with few rights, and gone without a trace.
//!
//! They need root and a kernel that takes the programs; elsewhere each says aloud why it is skipped, and `cargo xtask test` counts
//! that. With `ROCE_PROBE_MUST_RUN` in the environment a refusal is a failure.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod captures;
mod namespaces;
mod rights;
mod traces;
mod uprobes;
mod veth;

use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use roce_probe::{Options, Probe};

/// Held by every test with an open probe; what counts open probes waits for all of them.
static PROBES: RwLock<()> = RwLock::new(());

/// An open probe of a test.
struct Open {
    probe: Probe,
    _held: RwLockReadGuard<'static, ()>,
}

impl Deref for Open {
    type Target = Probe;

    fn deref(&self) -> &Probe {
        &self.probe
    }
}

impl DerefMut for Open {
    fn deref_mut(&mut self) -> &mut Probe {
        &mut self.probe
    }
}

/// Says that a test did not run. Not by `println!`, which the test harness keeps to itself.
fn skip(test: &str, reason: &str) {
    assert!(
        std::env::var_os("ROCE_PROBE_MUST_RUN").is_none(),
        "{test}: {reason}"
    );
    let reason = reason.lines().next().unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "SKIPPED: probe, {test}: {reason}");
}

/// Options of most tests: the classifier alone. `ROCE_PROBE_OBJECT` names other kernel programs than the
/// built-in ones.
fn classifier() -> Options {
    Options {
        host_events: false,
        object: std::env::var_os("ROCE_PROBE_OBJECT").map(PathBuf::from),
        ..Options::default()
    }
}

/// The open probe, or word that there can be none here.
fn open(test: &str, options: &Options) -> Option<Open> {
    let held = PROBES.read().unwrap_or_else(PoisonError::into_inner);
    match Probe::open(options) {
        Ok((probe, _)) => Some(Open { probe, _held: held }),
        Err(error) => {
            skip(test, &error.to_string());
            None
        }
    }
}
