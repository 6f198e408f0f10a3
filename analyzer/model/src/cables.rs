//! Cables between ports of hosts, hypervisors and switches, and the ports of addresses, as an inventory or LLDP names them.

use std::collections::BTreeSet;

use roce_wire::Address;

/// A port: a network interface of a host, an adapter of a hypervisor, an interface of a switch. Both names are those of the table
/// `samples`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Port {
    /// Name of the host, hypervisor or switch: `samples.node`.
    pub node: String,
    /// The part of it: `samples.object`.
    pub object: String,
}

impl Port {
    /// The port `object` of `node`.
    pub fn new(node: impl Into<String>, object: impl Into<String>) -> Self {
        Self {
            node: node.into(),
            object: object.into(),
        }
    }
}

/// A cable: its two ends, in any order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cable {
    /// One end.
    pub a: Port,
    /// The other end.
    pub b: Port,
}

/// Everything that is known of how machines are connected. An empty one knows nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wiring {
    /// Cables.
    pub cables: Vec<Cable>,
    /// Names of switches. Only they forward packets between their ports.
    pub switches: BTreeSet<String>,
    /// Addresses in packets, each with the port that sends and receives them.
    pub addresses: Vec<(Address, Port)>,
    /// Ports of one switch that the inventory names as alternatives of equal cost.
    pub groups: Vec<Vec<Port>>,
}

impl Wiring {
    /// True if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.cables.is_empty() && self.addresses.is_empty() && self.groups.is_empty()
    }
}
