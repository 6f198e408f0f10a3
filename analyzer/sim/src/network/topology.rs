//! Hosts, switches, ports and links of a scenario, their names, and the paths between them.
//!
//! Leaves what happens at a port to `port`, `switch` and `host`.

use std::collections::VecDeque;

use roce_wire::{Address, MacAddress};

use crate::Error;
use crate::engine::events::{PacketId, PortId};
use crate::network::cause::Growth;
pub(crate) use crate::network::class::{CLASSES, LINK_CLASS};
use crate::network::count::PortCount;
use crate::scenario::{Network, Scenario, Topology as Shape};
use crate::units::{Picos, Rate};

/// Owner of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    Host(u32),
    Switch(u32),
}

/// A packet that a port is sending, as far as its switch's buffer is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendingPacket {
    pub ingress: PortId,
    pub priority: u8,
    pub bytes: u64,
}

/// One end of a link: what it sends waits here.
#[derive(Debug)]
pub(crate) struct Port {
    pub node: Node,
    pub peer: PortId,
    pub rate: Rate,
    pub delay: Picos,
    /// Pause frames: before everything else.
    pub control: VecDeque<PacketId>,
    /// Packets that wait to be sent, by priority.
    pub queues: [VecDeque<PacketId>; 8],
    /// Bytes of each queue, with the packet that is being sent.
    pub queued: [u64; 8],
    /// The priority that was served last, of those that take turns.
    pub turn: usize,
    pub busy: bool,
    pub sending: Option<SendingPacket>,
    /// Arrival of the last packet that left one of several paths.
    pub merged: Picos,
    /// Until when it must not send, by class.
    pub paused_until: [Picos; CLASSES],
    /// The pause in the log that is going on, by class.
    pub pause_log: [Option<u32>; CLASSES],
    /// Bytes that came in by this port and still wait in its switch, by class.
    pub held: [u64; CLASSES],
    /// True if this port keeps its neighbour paused, by class.
    pub pausing: [bool; CLASSES],
    /// Impairments of its packets, by their place in the scenario.
    pub impairments: Vec<u32>,
    /// Taps at it.
    pub taps: Vec<u32>,
    /// Why it keeps its neighbour paused, or did so last, by class: a place in the log.
    pub cause: [Option<u32>; CLASSES],
    /// Growth of its queues, by priority.
    pub growth: [Growth; 8],
    /// Counters of the port.
    pub count: PortCount,
}

/// A switch's place in the network.
#[derive(Debug)]
pub(crate) struct SwitchNode {
    pub name: String,
    pub mac: MacAddress,
    /// For each host the ports that lead to it; among several the hash of the packet decides.
    pub routes: Vec<Vec<PortId>>,
    /// All its ports.
    pub ports: Vec<PortId>,
}

/// A host's place in the network.
#[derive(Debug)]
pub(crate) struct HostNode {
    pub name: String,
    pub address: Address,
    pub mac: MacAddress,
    pub port: PortId,
}

/// The network.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    pub ports: Vec<Port>,
    pub hosts: Vec<HostNode>,
    pub switches: Vec<SwitchNode>,
}

impl Topology {
    /// Builds what the scenario describes.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, Error> {
        let network = &scenario.network;
        let mut topology = Self::hosts_alone(network);
        let mut rates = vec![network.rate; topology.hosts.len()];
        for table in &scenario.host {
            for host in topology.hosts_of(&table.name)? {
                if let (Some(rate), Some(place)) = (table.rate, rates.get_mut(host as usize)) {
                    *place = rate;
                }
            }
        }
        match network.topology {
            Shape::Direct => topology.direct(network.rate, network.delay),
            Shape::Leaf => topology.leaves(1, &rates, network.delay),
            Shape::Ring => topology.leaves(network.leaves, &rates, network.delay),
            Shape::LeafSpine => {
                topology.leaves(network.leaves, &rates, network.delay);
                topology.spines(
                    network.spines,
                    network.uplink_rate.unwrap_or(network.rate),
                    network.uplink_delay.unwrap_or(network.delay),
                );
            }
        }
        if network.topology == Shape::Ring {
            topology.ring(
                network.uplink_rate.unwrap_or(network.rate),
                network.uplink_delay.unwrap_or(network.delay),
            );
        }
        for (index, impairment) in scenario.impairment.iter().enumerate() {
            let port = topology.port_towards(&impairment.from, &impairment.to)?;
            topology.ports[port.index()]
                .impairments
                .push(u32::try_from(index).unwrap_or(u32::MAX));
        }
        for (index, tap) in scenario.tap.iter().enumerate() {
            let port = topology.tap_port(&tap.at)?;
            topology.ports[port.index()]
                .taps
                .push(u32::try_from(index).unwrap_or(u32::MAX));
        }
        Ok(topology)
    }

    /// The hosts, without links.
    pub(crate) fn hosts_alone(network: &Network) -> Self {
        let hosts = (1..=network.hosts).map(|number| HostNode {
            name: format!("h{number}"),
            address: address(number, network.ipv6),
            mac: mac(1, number),
            port: PortId(0),
        });
        Self {
            hosts: hosts.collect(),
            ..Self::default()
        }
    }

    /// Two hosts and a cable.
    fn direct(&mut self, rate: Rate, delay: Picos) {
        let (a, b) = self.link(Node::Host(0), Node::Host(1), rate, delay);
        self.hosts[0].port = a;
        if let Some(host) = self.hosts.get_mut(1) {
            host.port = b;
        }
    }

    /// Leaf switches with hosts in blocks.
    fn leaves(&mut self, leaves: u32, rates: &[Rate], delay: Picos) {
        let first = self.add_switches("leaf", leaves);
        let block = self.hosts.len().div_ceil(leaves as usize).max(1);
        for (host, rate) in rates.iter().enumerate() {
            let (host_number, leaf) = (number(host), first + number(host / block));
            let (up, down) = self.link(Node::Host(host_number), Node::Switch(leaf), *rate, delay);
            self.hosts[host].port = up;
            self.switches[leaf as usize].routes[host] = vec![down];
        }
    }

    /// Spine switches above the leaves that are there.
    fn spines(&mut self, spines: u32, rate: Rate, delay: Picos) {
        let leaves = number(self.switches.len());
        let first = self.add_switches("spine", spines);
        for spine in first..first + spines {
            for leaf in 0..leaves {
                let (up, down) = self.link(Node::Switch(leaf), Node::Switch(spine), rate, delay);
                for host in 0..self.hosts.len() {
                    let own = self.leaf_of(host) == leaf;
                    if own {
                        self.switches[spine as usize].routes[host].push(down);
                    } else {
                        self.switches[leaf as usize].routes[host].push(up);
                    }
                }
            }
        }
    }

    /// A link from each leaf to the next, and from the last to the first. Packets for hosts of other leaves go that way round.
    fn ring(&mut self, rate: Rate, delay: Picos) {
        let leaves = number(self.switches.len());
        for leaf in 0..leaves {
            let next = (leaf + 1) % leaves;
            let (forth, _) = self.link(Node::Switch(leaf), Node::Switch(next), rate, delay);
            for host in 0..self.hosts.len() {
                if self.leaf_of(host) != leaf {
                    self.switches[leaf as usize].routes[host].push(forth);
                }
            }
        }
    }

    /// The leaf of a host.
    fn leaf_of(&self, host: usize) -> u32 {
        let peer = self.ports[self.hosts[host].port.index()].peer;
        match self.ports[peer.index()].node {
            Node::Switch(leaf) => leaf,
            Node::Host(_) => 0,
        }
    }

    fn add_switches(&mut self, name: &str, count: u32) -> u32 {
        let first = number(self.switches.len());
        for n in 1..=count {
            self.switches.push(SwitchNode {
                name: format!("{name}{n}"),
                mac: mac(if name == "leaf" { 2 } else { 3 }, n),
                routes: vec![Vec::new(); self.hosts.len()],
                ports: Vec::new(),
            });
        }
        first
    }

    fn link(&mut self, a: Node, b: Node, rate: Rate, delay: Picos) -> (PortId, PortId) {
        let (first, second) = (
            PortId(number(self.ports.len())),
            PortId(number(self.ports.len() + 1)),
        );
        for (node, own, peer) in [(a, first, second), (b, second, first)] {
            self.ports.push(Port {
                node,
                peer,
                rate,
                delay,
                control: VecDeque::new(),
                queues: Default::default(),
                queued: [0; 8],
                turn: 0,
                busy: false,
                sending: None,
                merged: Picos::ZERO,
                paused_until: [Picos::ZERO; CLASSES],
                pause_log: [None; CLASSES],
                held: [0; CLASSES],
                pausing: [false; CLASSES],
                impairments: Vec::new(),
                taps: Vec::new(),
                cause: [None; CLASSES],
                growth: [Growth::default(); 8],
                count: PortCount::default(),
            });
            if let Node::Switch(switch) = node {
                self.switches[switch as usize].ports.push(own);
            }
        }
        (first, second)
    }

    /// The name of a node.
    pub(crate) fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(host) => &self.hosts[host as usize].name,
            Node::Switch(switch) => &self.switches[switch as usize].name,
        }
    }

    /// `leaf1->h3`: a port and what it sends to. Names a link's direction, or the queue before it.
    pub(crate) fn place(&self, port: PortId) -> String {
        let port = &self.ports[port.index()];
        let peer = &self.ports[port.peer.index()];
        format!("{}->{}", self.name(port.node), self.name(peer.node))
    }

    /// The host at the other end of a port, if one is.
    pub(crate) fn host_behind(&self, port: PortId) -> Option<u32> {
        let peer = self.ports[port.index()].peer;
        match self.ports[peer.index()].node {
            Node::Host(host) => Some(host),
            Node::Switch(_) => None,
        }
    }

    /// The MAC address of a port.
    pub(crate) fn mac_of(&self, port: PortId) -> MacAddress {
        match self.ports[port.index()].node {
            Node::Host(host) => self.hosts[host as usize].mac,
            Node::Switch(switch) => self.switches[switch as usize].mac,
        }
    }

    /// The hosts of a list: `h1`, `h1..h4`, `h1, h3`; all for `all`.
    pub(crate) fn hosts_of(&self, list: &str) -> Result<Vec<u32>, Error> {
        if list.trim() == "all" {
            return Ok((0..number(self.hosts.len())).collect());
        }
        let mut hosts = Vec::new();
        for part in list.split(',').map(str::trim) {
            let (begin, end) = match part.split_once("..") {
                Some((begin, end)) => (self.host(begin)?, self.host(end)?),
                None => (self.host(part)?, self.host(part)?),
            };
            hosts.extend(begin..=end);
        }
        Ok(hosts)
    }

    /// The host of a name.
    pub(crate) fn host(&self, name: &str) -> Result<u32, Error> {
        let found = self.hosts.iter().position(|host| host.name == name.trim());
        found.map(number).ok_or_else(|| {
            Error::Scenario(format!(
                "there is no host \"{}\": hosts are h1 to h{}",
                name.trim(),
                self.hosts.len()
            ))
        })
    }

    /// The port of one node that leads to another.
    fn port_towards(&self, from: &str, to: &str) -> Result<PortId, Error> {
        let found = self.ports.iter().position(|port| {
            self.name(port.node) == from && self.name(self.ports[port.peer.index()].node) == to
        });
        found
            .map(|place| PortId(number(place)))
            .ok_or_else(|| Error::Scenario(format!("there is no link from \"{from}\" to \"{to}\"")))
    }

    /// The port of a tap: `h3`, or `leaf1:h3`.
    pub(crate) fn tap_port(&self, at: &str) -> Result<PortId, Error> {
        match at.split_once(':') {
            Some((node, neighbour)) => self.port_towards(node, neighbour),
            None => Ok(self.hosts[self.host(at)? as usize].port),
        }
    }
}

/// A place in a list as the number of a thing.
pub(crate) fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// `10.0.0.1` and on, or `fd00::1` and on.
fn address(number: u32, ipv6: bool) -> Address {
    let [_, b, c, d] = number.to_be_bytes();
    if ipv6 {
        Address::v6([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b, c, d])
    } else {
        Address::v4([10, b, c, d])
    }
}

/// A locally administered MAC address.
fn mac(kind: u8, number: u32) -> MacAddress {
    let [_, b, c, d] = number.to_be_bytes();
    MacAddress([0x02, 0, kind, b, c, d])
}
