//! The usual metrics about this process: CPU time, memory, open files, start.

use std::time::{Duration, SystemTime};

use roce_metrics::{BUILD_INFO, Exposition, PROCESS_CPU, PROCESS_FDS, PROCESS_MEMORY, PROCESS_START};
use roce_model::value_of;
use rustix::time::{ClockId, clock_gettime};

/// This process.
pub(super) struct Process {
    started: Duration,
}

impl Process {
    /// To be made at the start.
    pub(super) fn new() -> Self {
        Self {
            started: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default(),
        }
    }

    /// Adds its metrics of this moment.
    pub(super) fn add(&self, into: &mut Exposition) {
        into.own(BUILD_INFO, &[("version", env!("CARGO_PKG_VERSION").into())], 1.0);
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let nanos =
            u64::try_from(cpu.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(cpu.tv_nsec).unwrap_or(0);
        into.own(PROCESS_CPU, &[], value_of(nanos) / 1e9);
        // `VmRSS:     1234 kB` (Linux Documentation/filesystems/proc.rst).
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = resident.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        if let Some(kibibytes) = kibibytes {
            into.own(PROCESS_MEMORY, &[], value_of(kibibytes * 1024));
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            into.own(PROCESS_FDS, &[], value_of(open.count() as u64));
        }
        into.own(PROCESS_START, &[], self.started.as_secs_f64());
    }
}
