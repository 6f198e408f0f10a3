//! Counts of the parts of a fleet dataset, for metrics and the end of the run.

use std::sync::atomic::{AtomicU64, Ordering};

/// Parts, and their bytes.
#[derive(Debug, Default)]
pub(in crate::command::live) struct Count {
    parts: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    pub(super) fn add(&self, bytes: u64) {
        self.parts.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn set(&self, parts: u64, bytes: u64) {
        self.parts.store(parts, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Number of parts.
    pub(in crate::command::live) fn parts(&self) -> u64 {
        self.parts.load(Ordering::Relaxed)
    }

    /// Their bytes.
    pub(in crate::command::live) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Numbers of a run's parts by their fate, with the parts that the run found.
#[derive(Debug, Default)]
pub(in crate::command::live) struct PartCounts {
    /// Complete on this machine.
    pub(in crate::command::live) written: Count,
    /// Not written: the disk took none.
    pub(in crate::command::live) failed: Count,
    /// In the store, and gone from this machine.
    pub(in crate::command::live) uploaded: Count,
    /// Removed by `--keep`, and not uploaded.
    pub(in crate::command::live) dropped: Count,
    /// On this machine now.
    pub(in crate::command::live) waiting: Count,
    failures: AtomicU64,
}

impl PartCounts {
    pub(super) fn add_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Attempts to upload that failed.
    pub(in crate::command::live) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}
