//! Steps of a run: counts of ports.

use super::PortCount;
use crate::engine::events::PortId;
use crate::engine::run::Simulation;
use crate::network::topology::Node;

impl Simulation<'_> {
    /// The counters of a port now, with the pauses that go on.
    pub(crate) fn counts_of(&self, id: PortId) -> PortCount {
        let port = &self.topology.ports[id.index()];
        let mut count = port.count.clone();
        for (class, open) in port.pause_log.iter().enumerate() {
            let open = open.and_then(|place| self.log.pauses.get(place as usize));
            if let Some(pause) = open {
                count.paused[class] = count.paused[class].plus(self.now.since(pause.begin));
            }
        }
        count
    }

    /// Counts something at the NIC of a host.
    pub(crate) fn count_at(&mut self, host: u32, count: impl FnOnce(&mut PortCount)) {
        let port = self.topology.hosts[host as usize].port;
        count(&mut self.topology.ports[port.index()].count);
    }

    /// True if a port is a host's.
    pub(crate) fn is_host_port(&self, id: PortId) -> bool {
        matches!(self.topology.ports[id.index()].node, Node::Host(_))
    }
}
