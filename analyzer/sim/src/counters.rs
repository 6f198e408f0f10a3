//! Readings of the counters of all hosts and switches of a run, as rows of the table `samples`.
//!
//! The port of a switch is called as taps call it (`leaf1:h1`), that of a host by the host's name. Bytes are those of frames with
//! their FCS (RFC 3635); pause frames are counted apart. A switch's queue has the number of its priority.
//! Leaves counting to `network::count`, files to `write` and `sonic`, and cables to `inventory`.

mod host;
mod inventory;
mod rows;
mod sonic;
mod steps;
mod switch;
mod write;

use roce_model::{Counter, Sample, SampleSource, Time};

use crate::Error;
use crate::network::count::PortCount;
use crate::network::topology::{Node, Topology};
use crate::scenario::Scenario;
use crate::units::{Picos, Rate};

/// Readings of single ports that are kept: some 200 MB.
const MAX_PORT_READINGS: u64 = 200_000;

/// A port: its names, and its neighbour.
#[derive(Clone, Debug)]
struct Port {
    /// The host or switch that it belongs to.
    node: String,
    is_host: bool,
    /// Its name in samples.
    name: String,
    /// Place of its neighbour among the ports.
    peer: usize,
    rate: Rate,
    /// Its name in a recorded SONiC switch: `Ethernet0`, `Ethernet4`, ...
    sonic: String,
}

/// Counters of all ports at one time.
#[derive(Clone, Debug)]
struct PortReading {
    time: Time,
    counts: Vec<PortCount>,
    /// Bytes of each port's egress queues.
    depths: Vec<[u64; 8]>,
}

/// All readings of a run.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    start: u64,
    every: Picos,
    ports: Vec<Port>,
    readings: Vec<PortReading>,
    /// Priorities that are lossless, mark, or had traffic.
    priorities: Vec<u8>,
}

/// Sum of a counter over its priorities.
fn sum(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

impl Counters {
    /// No readings yet of the ports of a network.
    ///
    /// # Errors
    /// When there would be too many.
    pub(crate) fn new(scenario: &Scenario, topology: &Topology, every: Option<Picos>) -> Result<Self, Error> {
        let Some(every) = every else {
            return Ok(Self::default());
        };
        let readings = scenario.duration.0 / every.0.max(1) + 2;
        if every == Picos::ZERO || readings.saturating_mul(topology.ports.len() as u64) > MAX_PORT_READINGS {
            return Err(Error::Scenario(format!(
                "{readings} readings of {} ports: there can be {MAX_PORT_READINGS} in all\nhint: give more time between two",
                topology.ports.len()
            )));
        }
        let mut priorities = scenario.switch.ecn_priorities.clone();
        priorities.extend(&scenario.switch.pause_priorities);
        Ok(Self {
            start: scenario.start.saturating_mul(1_000_000_000),
            every,
            ports: (0..topology.ports.len())
                .map(|place| Port::new(topology, place))
                .collect(),
            readings: Vec::new(),
            priorities,
        })
    }

    /// Time between two readings.
    pub(crate) fn every(&self) -> Picos {
        self.every
    }

    /// Priorities in use, each once, in order.
    fn priorities(&self) -> Vec<u8> {
        let mut used = self.priorities.clone();
        let last = self.readings.last();
        for count in last.iter().flat_map(|reading| &reading.counts) {
            used.extend((0..8).filter(|queue| {
                let queue = usize::from(*queue);
                count.sent[queue].packets + count.received[queue].packets > 0
            }));
        }
        used.sort_unstable();
        used.dedup();
        used
    }
}

impl Port {
    fn new(topology: &Topology, place: usize) -> Self {
        let port = &topology.ports[place];
        let peer = &topology.ports[port.peer.index()];
        let (node, neighbour) = (topology.name(port.node), topology.name(peer.node));
        let is_host = matches!(port.node, Node::Host(_));
        // The front panel of a switch of four lanes a port.
        let lane = match port.node {
            Node::Host(_) => 0,
            Node::Switch(switch) => {
                let mut own = topology.switches[switch as usize].ports.iter();
                own.position(|own| own.index() == place).unwrap_or(0) * 4
            }
        };
        Self {
            node: node.to_owned(),
            is_host,
            name: if is_host {
                node.to_owned()
            } else {
                format!("{node}:{neighbour}")
            },
            peer: port.peer.index(),
            rate: port.rate,
            sonic: format!("Ethernet{lane}"),
        }
    }
}

/// Samples of one reading.
#[derive(Default)]
struct Samples {
    all: Vec<Sample>,
    begun: Option<Sample>,
}

impl Samples {
    /// Begins the counters of this port.
    fn begin(&mut self, port: &Port, time: Time) {
        self.begun = Some(Sample {
            time,
            source: if port.is_host {
                SampleSource::Host
            } else {
                SampleSource::Switch
            },
            node: port.node.as_str().into(),
            object: port.name.as_str().into(),
            counter: Counter::SwitchUp,
            priority: None,
            queue: None,
            details: Vec::new(),
            value: 0.0,
            bits: 64,
        });
    }

    /// Adds a number of the port.
    fn push(&mut self, counter: Counter, value: f64) -> Option<&mut Sample> {
        let sample = Sample {
            counter,
            value,
            ..self.begun.clone()?
        };
        self.all.push(sample);
        self.all.last_mut()
    }

    /// Adds a count of the port and a priority.
    fn of_priority(&mut self, counter: Counter, priority: u8, value: f64, details: &[&'static str]) {
        if let Some(sample) = self.push(counter, value) {
            sample.priority = Some(priority);
            sample.details = details.iter().map(|text| (*text).into()).collect();
        }
    }
}
