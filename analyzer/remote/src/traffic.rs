//! Runs of traffic between hosts: started, watched, stopped and collected over [`Machine`](crate::Machine)s.
//!
//! Each process on a host has a session of its own, writes its pid, log and exit code below a private folder, has the run's id in its
//! environment, and ends by `timeout` even when this program is gone. Only processes with the id in their environment are ended.

mod clocks;
mod collect;
mod facts;
mod parallel;
mod record;
mod script;
mod start;
mod status;
mod stop;

pub use collect::{Log, clean, collect, counters, discard};
pub use facts::HostFacts;
pub use parallel::{Machines, machines};
pub use record::{HostRecord, RunRecord, RunRecords, StreamRecord, is_run_id};
pub use start::{Preflight, Refusal, Setup, StartedRun, preflight, start};
pub use status::{HostStatus, Rate, RunStatus, StreamState, StreamStatus, status};
pub use stop::{StoppedHost, stop};

#[cfg(test)]
mod tests;
