//! Selects the traffic of some processes, by the owners of queue pairs that hosts reported.

use std::collections::HashSet;

use roce_flow::QueuePairs;
use roce_model::{FlowKey, HostEvent, Process};
use roce_wire::Roce;

/// Bytes of a command's name that the kernel keeps (TASK_COMM_LEN, less the zero at its end).
const COMM: usize = 15;

/// Conditions for processes, one of which must match.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Processes {
    /// Process numbers.
    pub pid: Vec<u32>,
    /// Commands.
    pub comm: Vec<String>,
    /// Cgroups, by their number.
    pub cgroup: Vec<u64>,
}

impl Processes {
    /// True if nothing was chosen, so that everything counts.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Selection of queue pairs, if any process was chosen.
    pub(crate) fn chosen(&self) -> Option<Box<ChosenProcesses>> {
        (!self.is_empty()).then(|| {
            Box::new(ChosenProcesses {
                processes: self.clone(),
                queue_pairs: QueuePairs::default(),
            })
        })
    }

    fn include(&self, process: &Process) -> bool {
        let kept =
            |comm: &String| comm.as_bytes().get(..COMM).unwrap_or(comm.as_bytes()) == process.comm.as_bytes();
        self.pid.contains(&process.pid) || self.cgroup.contains(&process.cgroup) || self.comm.iter().any(kept)
    }
}

/// Flows whose processes the captures have named.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedFlows(HashSet<FlowKey, foldhash::fast::RandomState>);

impl NamedFlows {
    /// Flows that are kept. When there are more, all are named again.
    const MAX_NAMED_FLOWS: usize = 1 << 16;

    /// True if the flow's process has not been named.
    pub(crate) fn is_new(&mut self, flow: FlowKey) -> bool {
        if self.0.len() >= Self::MAX_NAMED_FLOWS {
            self.0.clear();
        }
        self.0.insert(flow)
    }
}

/// The chosen processes, and the hosts' reports.
#[derive(Clone, Debug)]
pub(crate) struct ChosenProcesses {
    processes: Processes,
    queue_pairs: QueuePairs,
}

impl ChosenProcesses {
    /// Takes note of an event: whether it is theirs, or nobody's (of a port, say).
    pub(crate) fn takes(&mut self, event: &HostEvent) -> bool {
        self.queue_pairs.take(event);
        event
            .process
            .as_ref()
            .is_none_or(|process| self.processes.include(process))
    }

    /// A capture names the process of a flow's packets.
    pub(crate) fn named(&mut self, flow: &FlowKey, process: &Process) {
        self.queue_pairs.named(flow, process);
    }

    /// True if a packet is of a connection of theirs.
    pub(crate) fn has(&self, packet: &Roce) -> bool {
        self.queue_pairs
            .processes(&FlowKey::from_packet(packet))
            .any(|process| self.processes.include(process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, comm: &str, cgroup: u64) -> Process {
        Process {
            pid,
            comm: comm.into(),
            cgroup,
            claims: false,
        }
    }

    #[test]
    fn one_of_the_options_has_to_hold() {
        let processes = Processes {
            pid: vec![7],
            // The kernel keeps the first 15 bytes of this name.
            comm: vec!["nccl_all_reduce_perf".to_owned()],
            cgroup: vec![90],
        };
        assert!(processes.include(&process(7, "a", 0)));
        assert!(processes.include(&process(8, "nccl_all_reduce", 0)));
        assert!(processes.include(&process(8, "a", 90)));
        assert!(!processes.include(&process(8, "nccl_all", 91)));
        assert!(Processes::default().chosen().is_none());
    }
}
