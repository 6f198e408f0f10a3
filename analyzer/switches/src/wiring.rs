//! Cables and addresses of an inventory, for the verdicts, and the cables that switches report by LLDP.

use std::collections::BTreeMap;

use roce_model::{Address, Cable, Port, Wiring};

use crate::device::Neighbor;
use crate::inventory::{HostTarget, Inventory};
use crate::switch::interface::canonical;

impl Inventory {
    /// Cables, switches, addresses and groups of equal cost that the inventory names.
    ///
    /// A host on a hypervisor that has no cables of its own is at the hypervisor's only adapter with a cable: without that it is at no port.
    pub fn wiring(&self) -> Wiring {
        let mut wiring = Wiring {
            switches: self.switches.iter().map(|switch| switch.name.clone()).collect(),
            ..Wiring::default()
        };
        let nodes = self
            .hosts
            .iter()
            .map(|host| (&host.name, &host.switch_ports))
            .chain(
                self.hypervisors
                    .iter()
                    .map(|node| (&node.name, &node.switch_ports)),
            )
            .chain(self.switches.iter().map(|node| (&node.name, &node.switch_ports)));
        for (node, ports) in nodes {
            wiring.cables.extend(self.cables(node, ports));
        }
        for host in &self.hosts {
            let addresses = host.addresses.iter().filter_map(|(interface, address)| {
                Some((address_of(address)?, self.port_of(host, interface)))
            });
            wiring.addresses.extend(addresses);
            // The address of a host that has one interface is that of this interface.
            if let (Some(address), true) = (address_of(host.address()), host.addresses.is_empty()) {
                let interface = match (host.switch_ports.len(), host.interfaces.as_slice()) {
                    (1, _) => host.switch_ports.keys().next(),
                    (0, [only]) => Some(only),
                    _ => None,
                };
                if let Some(interface) = interface {
                    wiring.addresses.push((address, self.port_of(host, interface)));
                }
            }
        }
        for switch in &self.switches {
            let groups = switch.equal_cost.iter();
            wiring.groups.extend(groups.map(|group| {
                let ports = group.iter();
                ports.map(|object| self.port(&switch.name, object)).collect()
            }));
        }
        wiring
    }

    /// The port of a host's interface, or the adapter of its hypervisor.
    fn port_of(&self, host: &HostTarget, interface: &str) -> Port {
        let hypervisor = host
            .hypervisor
            .as_deref()
            .filter(|_| host.switch_ports.is_empty())
            .and_then(|name| self.hypervisor(name));
        match hypervisor {
            Some(node) if node.switch_ports.len() == 1 => {
                let adapter = node.switch_ports.keys().next().cloned();
                Port::new(&*node.name, adapter.unwrap_or_default())
            }
            _ => Port::new(&*host.name, interface),
        }
    }

    /// A port. Samples have one spelling of a switch's interface, inventories and neighbours have any: `Eth1/1/1` is `Ethernet1/1/1`.
    fn port(&self, node: &str, object: &str) -> Port {
        if self.switch(node).is_some() {
            Port::new(node, canonical(object))
        } else {
            Port::new(node, object)
        }
    }

    /// Cables from the ports of a node to the ports of switches: `leaf1:Ethernet1/1/1`.
    fn cables<'a>(
        &'a self,
        node: &'a str,
        ports: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = Cable> + 'a {
        ports.iter().filter_map(move |(interface, port)| {
            let (switch, other) = port.split_once(':')?;
            Some(Cable {
                a: self.port(node, interface),
                b: self.port(switch, other),
            })
        })
    }

    /// The name of a node in the inventory's spelling: names of hosts do not depend on case (RFC 4343).
    fn node(&self, name: &str) -> Option<&str> {
        let hosts = self.hosts.iter().map(|node| &node.name);
        let switches = self.switches.iter().map(|node| &node.name);
        let hypervisors = self.hypervisors.iter().map(|node| &node.name);
        let mut all = hosts.chain(switches).chain(hypervisors).map(String::as_str);
        all.find(|known| known.eq_ignore_ascii_case(name))
    }

    /// Adds the cables that a device reports by LLDP and that lead to another node of the inventory. Those that the inventory names come
    /// first: a port has one cable.
    pub fn add_neighbors(&self, wiring: &mut Wiring, node: &str, neighbors: &[Neighbor]) {
        for neighbor in neighbors {
            // Some systems report their name with its domain.
            let name = neighbor.node.as_str();
            let short = name.split('.').next().unwrap_or(name);
            let Some(other) = [name, short].into_iter().find_map(|name| self.node(name)) else {
                continue;
            };
            wiring.cables.push(Cable {
                a: self.port(node, &neighbor.interface),
                b: self.port(other, &neighbor.port),
            });
        }
    }
}

/// An IP address as packets have it.
fn address_of(text: &str) -> Option<Address> {
    match text.parse().ok()? {
        std::net::IpAddr::V4(address) => Some(Address::v4(address.octets())),
        std::net::IpAddr::V6(address) => Some(Address::v6(address.octets())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[[host]]
name = "h1"
address = "10.0.0.1"
switch_ports = { ens1 = "leaf1:Ethernet1/1" }

[[host]]
name = "h2"
address = "h2.example.net"
switch_ports = { ens1 = "leaf1:Ethernet1/2", ens2 = "leaf1:Ethernet1/3" }
addresses = { ens1 = "10.0.0.2", ens2 = "2001:db8::2" }

[[host]]
name = "vm3"
hypervisor = "esxi1"
addresses = { ens1 = "10.0.0.3" }

[[hypervisor]]
name = "esxi1"
switch_ports = { vmnic5 = "leaf1:Ethernet1/4" }

[[switch]]
name = "leaf1"
kind = "nexus"
switch_ports = { "Ethernet1/49" = "spine1:Ethernet1/1" }
equal_cost = [["Ethernet1/49", "Ethernet1/50"]]

[[switch]]
name = "spine1"
kind = "nexus"
"#;

    #[test]
    fn an_inventory_names_cables_and_addresses() {
        let inventory = Inventory::parse(TEXT).unwrap();
        let mut wiring = inventory.wiring();
        assert_eq!(wiring.cables.len(), 5);
        assert_eq!(wiring.switches.len(), 2);
        let of = |address: Address| {
            let mut all = wiring.addresses.iter();
            all.find(|(known, _)| *known == address)
                .map(|(_, port)| port.clone())
        };
        assert_eq!(of(Address::v4([10, 0, 0, 1])), Some(Port::new("h1", "ens1")));
        assert_eq!(of(Address::v4([10, 0, 0, 2])), Some(Port::new("h2", "ens1")));
        assert_eq!(of(Address::v4([10, 0, 0, 3])), Some(Port::new("esxi1", "vmnic5")));
        assert_eq!(
            wiring.groups,
            [[
                Port::new("leaf1", "Ethernet1/49"),
                Port::new("leaf1", "Ethernet1/50")
            ]]
        );
        let neighbor = |node: &str| Neighbor {
            interface: "Ethernet1/50".into(),
            node: node.into(),
            port: "Ethernet1/2".into(),
        };
        let neighbors = [neighbor("spine1.example.net"), neighbor("printer")];
        inventory.add_neighbors(&mut wiring, "leaf1", &neighbors);
        assert_eq!(
            wiring.cables.last(),
            Some(&Cable {
                a: Port::new("leaf1", "Ethernet1/50"),
                b: Port::new("spine1", "Ethernet1/2"),
            })
        );
        assert_eq!(wiring.cables.len(), 6);
        let error = Inventory::parse("[[host]]\nname = \"h1\"\naddresses = { ens1 = \"h1\" }\n").unwrap_err();
        assert_eq!(
            (error.line, error.text.as_str()),
            (1, "ens1: 'h1' is not an IP address")
        );
    }

    // Samples have the names that `switch::interface` makes: a cable of another spelling would join nothing.
    #[test]
    fn every_spelling_of_a_port_is_the_port_of_the_samples() {
        let text = r#"
[[host]]
name = "gpu1"
switch_ports = { eth1 = "leaf1:Eth1/1/1" }

[[switch]]
name = "leaf1"
kind = "nexus"
switch_ports = { "eth1/1/49" = "spine1:Po7" }
equal_cost = [["Eth1/1/49", "ethernet1/1/50"]]

[[switch]]
name = "spine1"
kind = "nexus"
"#;
        let inventory = Inventory::parse(text).unwrap();
        let mut wiring = inventory.wiring();
        let neighbor = Neighbor {
            interface: "Ethernet1/1/50".into(),
            node: "SPINE1.example.net".into(),
            port: "Eth1/2".into(),
        };
        inventory.add_neighbors(&mut wiring, "leaf1", &[neighbor]);
        let ends: Vec<String> = wiring
            .cables
            .iter()
            .flat_map(|cable| [&cable.a, &cable.b])
            .map(|port| format!("{} {}", port.node, port.object))
            .collect();
        assert_eq!(
            ends,
            [
                // The name of a host's interface is its kernel's.
                "gpu1 eth1",
                "leaf1 Ethernet1/1/1",
                "leaf1 Ethernet1/1/49",
                "spine1 port-channel7",
                "leaf1 Ethernet1/1/50",
                "spine1 Ethernet1/2",
            ]
        );
        assert_eq!(
            wiring.groups,
            [[
                Port::new("leaf1", "Ethernet1/1/49"),
                Port::new("leaf1", "Ethernet1/1/50")
            ]]
        );
    }
}
