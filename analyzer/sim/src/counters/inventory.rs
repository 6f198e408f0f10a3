//! The inventory of a simulated network: its switches, cables and addresses, as `--inventory` reads them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Counters, Port};
use crate::Truth;

/// One switch or host of the inventory.
#[derive(Default)]
struct Entry<'a> {
    is_host: bool,
    /// Its port and the neighbour's node and port.
    cables: Vec<(&'a str, &'a str, &'a str)>,
}

impl Counters {
    /// The text of the inventory, in TOML. Ports have their names in samples. Each cable is in it once: at the host, or at the switch
    /// whose port comes first. A host without a connection has no address.
    pub fn inventory(&self, truth: &Truth) -> String {
        let ends = truth.connections.iter().flat_map(|each| [&each.a, &each.b]);
        let addresses: BTreeMap<&str, &str> = ends
            .map(|end| (end.host.as_str(), end.address.as_str()))
            .collect();
        let mut entries: BTreeMap<&str, Entry<'_>> = BTreeMap::new();
        for (place, port) in self.ports.iter().enumerate() {
            let peer = &self.ports[port.peer];
            let entry = entries.entry(&port.node).or_default();
            entry.is_host = port.is_host;
            if names_cable(place, port, peer) {
                entry.cables.push((&port.name, &peer.node, &peer.name));
            }
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        for (name, entry) in entries.iter().filter(|(_, entry)| !entry.is_host) {
            let _ = writeln!(text, "[[switch]]\nname = \"{name}\"\nkind = \"sonic\"");
            write_cables(&mut text, &entry.cables);
            text.push('\n');
        }
        for (name, entry) in entries.iter().filter(|(_, entry)| entry.is_host) {
            let _ = writeln!(text, "[[host]]\nname = \"{name}\"");
            write_cables(&mut text, &entry.cables);
            if let (Some(address), Some((port, ..))) = (addresses.get(name), entry.cables.first()) {
                let _ = writeln!(text, "addresses = {{ \"{port}\" = \"{address}\" }}");
            }
            text.push('\n');
        }
        text
    }
}

/// True if the cable between two ports is written at the first one.
fn names_cable(place: usize, port: &Port, peer: &Port) -> bool {
    if port.is_host {
        !peer.is_host || place < port.peer
    } else {
        !peer.is_host && place < port.peer
    }
}

fn write_cables(text: &mut String, cables: &[(&str, &str, &str)]) {
    if cables.is_empty() {
        return;
    }
    let cables: Vec<String> = cables
        .iter()
        .map(|(port, node, other)| format!("\"{port}\" = \"{node}:{other}\""))
        .collect();
    let _ = writeln!(text, "switch_ports = {{ {} }}", cables.join(", "));
}
