//! The scenario without what makes its collectives late: the run to which costs are compared.

use super::Scenario;

impl Scenario {
    /// The scenario without late ranks and receivers, slower links, impairments and pauses of hosts, and without taps. `None` if no job
    /// has NCCL's messages, or nothing makes one late.
    pub(crate) fn without_injections(&self) -> Option<Self> {
        if !self.training.iter().any(super::Training::is_nccl) {
            return None;
        }
        let is_slowed = !self.impairment.is_empty()
            || !self.pause.is_empty()
            || self
                .host
                .iter()
                .any(|host| host.rate.is_some() || host.drain.is_some())
            || self
                .training
                .iter()
                .any(|job| !job.late.is_empty() || !job.receiver.is_empty());
        if !is_slowed {
            return None;
        }
        let mut calm = self.clone();
        calm.tap.clear();
        calm.impairment.clear();
        calm.pause.clear();
        for host in &mut calm.host {
            (host.rate, host.drain) = (None, None);
        }
        for job in &mut calm.training {
            job.late.clear();
            job.receiver.clear();
        }
        Some(calm)
    }
}
