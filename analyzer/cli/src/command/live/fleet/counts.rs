//! Counts of the parts of a fleet dataset, for metrics and the end of the run.

use std::sync::atomic::{AtomicU64, Ordering};

use roce_metrics::{self as metric, Exposition};
use roce_model::value_of;

/// Parts, and their bytes.
#[derive(Debug, Default)]
pub(super) struct Count {
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
    pub(super) fn parts(&self) -> u64 {
        self.parts.load(Ordering::Relaxed)
    }

    /// Their bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Numbers of a run's parts by their fate, with the parts that the run found.
#[derive(Debug, Default)]
pub(super) struct PartCounts {
    /// Complete on this machine.
    pub(super) written: Count,
    /// Not written: the disk took none.
    pub(super) failed: Count,
    /// In the store, and gone from this machine.
    pub(super) uploaded: Count,
    /// Removed by `--keep`, and not uploaded.
    pub(super) dropped: Count,
    /// On this machine now.
    pub(super) waiting: Count,
    failures: AtomicU64,
}

impl PartCounts {
    pub(super) fn add_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Attempts to upload that failed.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Publishes the numbers of parts by their fate.
    pub(super) fn publish(&self, into: &mut Exposition) {
        for (became, count) in [
            ("written", &self.written),
            ("failed", &self.failed),
            ("uploaded", &self.uploaded),
            ("dropped", &self.dropped),
        ] {
            let label = [("became", became.into())];
            into.own(metric::LIVE_PARTS, &label, value_of(count.parts()));
            into.own(metric::LIVE_PART_BYTES, &label, value_of(count.bytes()));
        }
        into.own(metric::LIVE_PARTS_WAITING, &[], value_of(self.waiting.parts()));
        into.own(
            metric::LIVE_PARTS_WAITING_BYTES,
            &[],
            value_of(self.waiting.bytes()),
        );
        into.own(metric::LIVE_UPLOAD_FAILURES, &[], value_of(self.failures()));
    }
}
