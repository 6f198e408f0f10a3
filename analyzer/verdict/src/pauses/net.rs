//! How ports are connected, and which flows pass a cable: shortest ways between the switches that hosts are attached to.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use roce_model::{Address, Wiring};

use super::flows::{FlowFacts, Flows};
use super::ports::{NodeNumber, PortNumber, Ports};
use super::readings::Readings;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Cables that are known, at most.
const MAX_CABLES: usize = 1 << 15;
/// Addresses that are known, at most.
const MAX_ADDRESSES: usize = 1 << 16;
/// Switches whose distances to all others are kept, at most: some 30 MB.
const MAX_ROWS: usize = 256;

/// A cable in one direction, by the ports at its ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Direction {
    pub(in super::super) from: PortNumber,
    pub(in super::super) to: PortNumber,
}

/// Result of the question whether a flow passes a cable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in super::super) enum Passes {
    No,
    /// On one of several ways of equal length.
    Possibly,
    /// On the only way.
    Surely,
}

/// Distance to each switch in hops, and the number of ways of that length.
type Ways = Map<NodeNumber, (u32, f64)>;

/// Cables, switches and addresses by number.
#[derive(Debug, Default)]
pub(in super::super) struct Net {
    peers: Map<PortNumber, PortNumber>,
    switches: HashSet<NodeNumber, foldhash::fast::RandomState>,
    attached: Map<Address, PortNumber>,
    /// The lowest address of each port.
    addresses: Map<PortNumber, Address>,
    /// Cables between switches: by switch, the neighbour and the own port.
    between: BTreeMap<NodeNumber, Vec<(NodeNumber, PortNumber)>>,
    /// Cabled ports by node.
    cabled: Map<NodeNumber, Vec<PortNumber>>,
    groups: Vec<Vec<PortNumber>>,
    ways: RefCell<Map<NodeNumber, Ways>>,
}

impl Net {
    /// The connections of `wiring`; their ports become known to `readings`.
    pub(super) fn new(wiring: &Wiring, readings: &mut Readings) -> Self {
        let mut net = Self::default();
        for name in &wiring.switches {
            net.switches.extend(readings.ports.add_node(name));
        }
        for cable in wiring.cables.iter().take(MAX_CABLES) {
            let ports = &mut readings.ports;
            let a = ports.add(&cable.a.node, &cable.a.object);
            let b = ports.add(&cable.b.node, &cable.b.object);
            let (Some(a), Some(b)) = (a, b) else { continue };
            // A port has one cable: the first one named.
            if a == b || net.peers.contains_key(&a) || net.peers.contains_key(&b) {
                continue;
            }
            net.peers.extend([(a, b), (b, a)]);
            for port in [a, b] {
                if let Some(node) = ports.node_of(port) {
                    net.cabled.entry(node).or_default().push(port);
                }
            }
        }
        for number in 0..readings.ports.nodes() {
            let node = u32::try_from(number).map(NodeNumber);
            net.switches
                .extend(node.ok().filter(|node| readings.is_switch(*node)));
        }
        let mut cables: Vec<(PortNumber, PortNumber)> = net.peers.iter().map(|(a, b)| (*a, *b)).collect();
        cables.sort_unstable();
        for (a, b) in cables {
            let (Some(own), Some(other)) = (readings.ports.node_of(a), readings.ports.node_of(b)) else {
                continue;
            };
            if own != other && net.switches.contains(&own) && net.switches.contains(&other) {
                net.between.entry(own).or_default().push((other, a));
            }
        }
        for (address, port) in wiring.addresses.iter().take(MAX_ADDRESSES) {
            let Some(number) = readings.ports.add(&port.node, &port.object) else {
                continue;
            };
            let number = net.cabled_port(&readings.ports, number);
            if *net.attached.entry(*address).or_insert(number) == number {
                let lowest = net.addresses.entry(number).or_insert(*address);
                *lowest = (*lowest).min(*address);
            }
        }
        for group in &wiring.groups {
            let ports = group
                .iter()
                .filter_map(|port| readings.ports.add(&port.node, &port.object));
            net.groups.push(ports.collect());
        }
        net
    }

    /// The port itself, or the only cabled one of a host: adapters count under names of their own (`mlx5_0:1` beside `ens1f0np0`).
    pub(super) fn cabled_port(&self, ports: &Ports, port: PortNumber) -> PortNumber {
        if self.peers.contains_key(&port) {
            return port;
        }
        let Some(node) = ports.node_of(port).filter(|node| !self.switches.contains(node)) else {
            return port;
        };
        match self.cabled.get(&node).map(Vec::as_slice) {
            Some([only]) => *only,
            _ => port,
        }
    }

    /// The other end of a port's cable.
    pub(in super::super) fn peer(&self, port: PortNumber) -> Option<PortNumber> {
        self.peers.get(&port).copied()
    }

    /// The port of a host's address.
    pub(in super::super) fn attached(&self, address: Address) -> Option<PortNumber> {
        self.attached.get(&address).copied()
    }

    /// The address of a port, if it is that of one.
    pub(super) fn address_of(&self, port: PortNumber) -> Option<Address> {
        self.addresses.get(&port).copied()
    }

    pub(super) fn is_switch(&self, ports: &Ports, port: PortNumber) -> bool {
        ports
            .node_of(port)
            .is_some_and(|node| self.switches.contains(&node))
    }

    /// The switch that an address is attached to, and its port there.
    pub(in super::super) fn leaf_of(
        &self,
        ports: &Ports,
        address: Address,
    ) -> Option<(NodeNumber, PortNumber)> {
        let port = self.peer(self.attached(address)?)?;
        let node = ports.node_of(port)?;
        self.switches.contains(&node).then_some((node, port))
    }

    /// Distance and number of ways between two switches.
    fn way(&self, from: NodeNumber, to: NodeNumber) -> Option<(u32, f64)> {
        let mut rows = self.ways.borrow_mut();
        if let Some(row) = rows.get(&from) {
            return row.get(&to).copied();
        }
        let row = self.ways_from(from);
        let found = row.get(&to).copied();
        if rows.len() < MAX_ROWS {
            rows.insert(from, row);
        }
        found
    }

    /// Breadth first; each cable between two switches is a way of its own.
    fn ways_from(&self, from: NodeNumber) -> Ways {
        let mut ways = Ways::default();
        ways.insert(from, (0, 1.0));
        let mut waiting = VecDeque::from([from]);
        while let Some(node) = waiting.pop_front() {
            let (distance, count) = ways.get(&node).copied().unwrap_or_default();
            for (next, _) in self.between.get(&node).into_iter().flatten() {
                match ways.get_mut(next) {
                    Some((known, ways)) if *known == distance + 1 => *ways += count,
                    Some(_) => {}
                    None => {
                        ways.insert(*next, (distance + 1, count));
                        waiting.push_back(*next);
                    }
                }
            }
        }
        ways
    }

    /// True if packets from `source` to `destination` pass a cable in this direction.
    pub(in super::super) fn passes(
        &self,
        ports: &Ports,
        cable: Direction,
        source: Address,
        destination: Address,
    ) -> Passes {
        if self.attached(source) == Some(cable.from) || self.attached(destination) == Some(cable.to) {
            return Passes::Surely;
        }
        let (Some((first, _)), Some((last, _)), Some(from), Some(to)) = (
            self.leaf_of(ports, source),
            self.leaf_of(ports, destination),
            ports.node_of(cable.from),
            ports.node_of(cable.to),
        ) else {
            return Passes::No;
        };
        if !self.switches.contains(&from) || !self.switches.contains(&to) {
            return Passes::No;
        }
        let (Some(before), Some(behind), Some(whole)) =
            (self.way(first, from), self.way(last, to), self.way(first, last))
        else {
            return Passes::No;
        };
        if before.0.saturating_add(behind.0).saturating_add(1) != whole.0 {
            return Passes::No;
        }
        let share = before.1 * behind.1 / whole.1;
        if share > 0.999_999 {
            Passes::Surely
        } else {
            Passes::Possibly
        }
    }

    /// True if packets from one address to another pass the cable from one port to another.
    pub(in super::super) fn passes_cable(
        &self,
        ports: &Ports,
        (from, to): (PortNumber, PortNumber),
        (source, destination): (Address, Address),
    ) -> Passes {
        self.passes(ports, Direction { from, to }, source, destination)
    }

    /// Number of flows with a noticeable part of the bytes that leave a switch by one of these ports.
    pub(in super::super) fn flows_over(&self, ports: &Ports, group: &[PortNumber], flows: &Flows) -> u64 {
        let is_over = |flow: &FlowFacts| {
            group.iter().any(|port| {
                let peer = self.peer(*port);
                peer.is_some_and(|peer| {
                    let ends = (flow.source, flow.destination);
                    self.passes_cable(ports, (*port, peer), ends) != Passes::No
                })
            })
        };
        let over: Vec<u64> = flows
            .counted()
            .filter(|(_, flow)| is_over(flow))
            .map(|(_, flow)| flow.wire_bytes)
            .collect();
        let all = over.iter().copied().fold(0, u64::saturating_add);
        over.iter()
            .filter(|bytes| bytes.saturating_mul(100) >= all)
            .count() as u64
    }

    /// Ports by which packets from a switch to an address leave it, on shortest ways. Empty: not known.
    pub(in super::super) fn exits(
        &self,
        ports: &Ports,
        switch: NodeNumber,
        destination: Address,
    ) -> Vec<PortNumber> {
        let Some((last, port)) = self.leaf_of(ports, destination) else {
            return Vec::new();
        };
        if last == switch {
            return vec![port];
        }
        let Some((whole, _)) = self.way(last, switch) else {
            return Vec::new();
        };
        let next = self.between.get(&switch).into_iter().flatten();
        let nearer = |neighbor: &NodeNumber| {
            self.way(last, *neighbor)
                .is_some_and(|(distance, _)| distance + 1 == whole)
        };
        next.filter(|(neighbor, _)| nearer(neighbor))
            .map(|(_, port)| *port)
            .collect()
    }

    /// Groups of ports of one switch over which it spreads what it sends: those that the inventory names, parallel cables to one switch,
    /// and the uplinks of a switch with hosts to switches without hosts that have the same neighbours.
    pub(in super::super) fn groups(&self, ports: &Ports) -> Vec<Vec<PortNumber>> {
        let mut groups = self.groups.clone();
        let named: HashSet<PortNumber> = groups.iter().flatten().copied().collect();
        let has_hosts = |node: &NodeNumber| {
            let cabled = self.cabled.get(node).into_iter().flatten();
            cabled
                .filter_map(|port| self.peer(*port))
                .any(|peer| !self.is_switch(ports, peer))
        };
        let neighbors: BTreeMap<NodeNumber, Vec<NodeNumber>> = self
            .between
            .iter()
            .map(|(node, next)| {
                let mut all: Vec<NodeNumber> = next.iter().map(|(neighbor, _)| *neighbor).collect();
                all.sort_unstable();
                all.dedup();
                (*node, all)
            })
            .collect();
        // Switches with the same neighbours have one number.
        let mut tiers: BTreeMap<&[NodeNumber], usize> = BTreeMap::new();
        let mut tier_of: Map<NodeNumber, usize> = Map::default();
        for (node, all) in &neighbors {
            if !has_hosts(node) {
                let next = tiers.len();
                tier_of.insert(*node, *tiers.entry(all.as_slice()).or_insert(next));
            }
        }
        for (node, next) in &self.between {
            let is_leaf = has_hosts(node);
            let mut by: BTreeMap<(Option<usize>, Option<NodeNumber>), Vec<PortNumber>> = BTreeMap::new();
            for (neighbor, port) in next.iter().filter(|(_, port)| !named.contains(port)) {
                let tier = tier_of.get(neighbor).copied().filter(|_| is_leaf);
                let alone = tier.is_none().then_some(*neighbor);
                by.entry((tier, alone)).or_default().push(*port);
            }
            groups.extend(by.into_values());
        }
        groups.retain(|group| group.len() > 1);
        groups
    }
}
