//! Steps of a run: readings of counters.

use roce_model::Time;

use super::PortReading;
use crate::engine::events::PortId;
use crate::engine::run::Simulation;
use crate::network::topology::number;

impl Simulation<'_> {
    /// Reads the counters of all ports.
    pub(crate) fn read_counters(&mut self) {
        let ports = 0..number(self.topology.ports.len());
        let counts = ports.map(|port| self.counts_of(PortId(port))).collect();
        let depths = self.topology.ports.iter().map(|port| port.queued).collect();
        let time = Time(self.counters.start + self.now.nanos());
        self.counters.readings.push(PortReading { time, counts, depths });
    }
}
