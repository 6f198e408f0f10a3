//! Ports as numbers: names of nodes and of their parts, each kept once.

use std::collections::HashMap;

use roce_model::text::{clean, port_name};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Ports that are known, at most: three times those of a fabric of 10,000.
pub(super) const MAX_PORTS: usize = 1 << 15;
/// Nodes that are known, at most.
pub(super) const MAX_NODES: usize = 1 << 13;
/// Characters of a name that count.
const MAX_NAME: usize = 128;

/// The number of a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in super::super) struct PortNumber(pub(super) u32);

/// The number of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in super::super) struct NodeNumber(pub(super) u32);

/// Names of nodes and ports.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Ports {
    nodes: Vec<String>,
    node_numbers: Map<String, u32>,
    all: Vec<(NodeNumber, String)>,
    /// By node.
    port_numbers: Vec<Map<String, u32>>,
}

/// The part of a name that counts.
fn cut(name: &str) -> &str {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => name.get(..end).unwrap_or(name),
        None => name,
    }
}

impl Ports {
    /// The number of a node, which is added if there is room.
    pub(super) fn add_node(&mut self, name: &str) -> Option<NodeNumber> {
        let name = cut(name);
        if let Some(number) = self.node_numbers.get(name) {
            return Some(NodeNumber(*number));
        }
        let number = u32::try_from(self.nodes.len()).ok()?;
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        self.node_numbers.insert(name.to_owned(), number);
        self.nodes.push(name.to_owned());
        self.port_numbers.push(Map::default());
        Some(NodeNumber(number))
    }

    /// The number of a port, which is added if there is room.
    pub(super) fn add(&mut self, node: &str, object: &str) -> Option<PortNumber> {
        let node = self.add_node(node)?;
        let object = cut(object);
        let known = self.port_numbers.get_mut(node.0 as usize)?;
        if let Some(number) = known.get(object) {
            return Some(PortNumber(*number));
        }
        let number = u32::try_from(self.all.len()).ok()?;
        if self.all.len() >= MAX_PORTS {
            return None;
        }
        known.insert(object.to_owned(), number);
        self.all.push((node, object.to_owned()));
        Some(PortNumber(number))
    }

    pub(in super::super) fn node_of(&self, port: PortNumber) -> Option<NodeNumber> {
        self.all.get(port.0 as usize).map(|(node, _)| *node)
    }

    /// Name of the port's node, for people.
    pub(in super::super) fn node_name(&self, port: PortNumber) -> String {
        let node = self
            .node_of(port)
            .and_then(|node| self.nodes.get(node.0 as usize));
        node.map_or_else(String::new, |name| clean(name).to_string())
    }

    /// Name of the port within its node, for people.
    pub(in super::super) fn object_name(&self, port: PortNumber) -> String {
        let object = self.all.get(port.0 as usize);
        object.map_or_else(String::new, |(_, name)| clean(name).to_string())
    }

    /// Both names in one, for people.
    pub(in super::super) fn name(&self, port: PortNumber) -> String {
        port_name(&self.node_name(port), &self.object_name(port))
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }
}
