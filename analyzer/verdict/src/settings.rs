//! Settings of the verdicts, besides rows and events.

use std::sync::Arc;

use roce_model::{Filter, JobLog, Nanos, Wiring};

use crate::steps::LoggedStep;
use crate::thresholds::Thresholds;

/// Settings of the verdicts.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Width of a timeline bin.
    pub bin: Nanos,
    /// Speed of the links, in bit/s, if given.
    pub link_rate: Option<u64>,
    /// Steps in the training script's log, in its order.
    pub training_log: Vec<LoggedStep>,
    /// Thresholds of episodes and findings.
    pub thresholds: Thresholds,
    /// Flows that are shown; verdicts are about all.
    pub shown: Option<Filter>,
    /// Cables, switches and the ports of addresses, as far as somebody named them.
    pub wiring: Arc<Wiring>,
    /// The job's own log, as far as somebody gave it.
    pub job: Arc<JobLog>,
    /// Snapshots have the steps of training jobs. They are searched for in the traffic each time.
    pub steps_in_snapshots: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bin: Nanos(1_000_000),
            link_rate: None,
            training_log: Vec::new(),
            thresholds: Thresholds::default(),
            shown: None,
            wiring: Arc::default(),
            job: Arc::default(),
            steps_in_snapshots: false,
        }
    }
}
