//! Whose queue pairs there are: timers and interrupts run in whatever process they interrupt, so that the one that made the
//! queue pair is remembered.

use std::collections::HashMap;
use std::sync::Arc;

use roce_model::{HostChange, Process, Qpn};

/// Queue pairs that are remembered; beyond that, new ones are not.
const MAX_QUEUE_PAIRS: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Owners(HashMap<(Arc<str>, Qpn), Process>);

impl Owners {
    /// The process behind a change; `running` is the one that ran when it was reported.
    pub(crate) fn process(
        &mut self,
        device: Option<&str>,
        change: &HostChange,
        running: Process,
    ) -> Option<Process> {
        let key = |qpn: &Qpn| (Arc::from(device.unwrap_or_default()), *qpn);
        match change {
            HostChange::Created { qpn, .. } => {
                if self.0.len() < MAX_QUEUE_PAIRS {
                    self.0.insert(key(qpn), running.clone());
                }
                Some(running)
            }
            HostChange::Destroyed { qpn } => {
                let claims = running.claims;
                let owner = self.0.remove(&key(qpn)).unwrap_or(running);
                Some(Process { claims, ..owner })
            }
            HostChange::Modified { .. } => Some(running),
            other => {
                let mut process = self.0.get(&key(&other.qpn()?)).cloned()?;
                // Whose the queue pair is may be a claim; the event is not.
                process.claims = running.claims;
                Some(process)
            }
        }
    }
}
