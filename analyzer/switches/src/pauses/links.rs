//! Connections: which adapters are at which port of a switch, by the inventory, LLDP or MAC addresses.

use std::collections::{BTreeMap, BTreeSet};

use super::row::Level;
use crate::inventory::Inventory;

/// Hexadecimal digits of a MAC address.
const MAC_DIGITS: usize = 12;

/// A cable by LLDP.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Cable {
    pub(super) node: String,
    pub(super) interface: String,
    pub(super) neighbor: String,
    pub(super) port: String,
}

/// An adapter or port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PausePlace {
    pub(super) level: Level,
    pub(super) node: String,
    pub(super) object: String,
}

impl PausePlace {
    /// `node object`.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.node, self.object)
    }
}

/// The digits of a MAC address, whatever is between them.
pub(super) fn digits_of(mac: &str) -> Option<String> {
    let is_form = |glyph: char| glyph.is_ascii_hexdigit() || matches!(glyph, ':' | '.' | '-');
    if !mac.chars().all(is_form) {
        return None;
    }
    let digits: String = mac.chars().filter(char::is_ascii_hexdigit).collect();
    (digits.len() == MAC_DIGITS).then(|| digits.to_ascii_lowercase())
}

/// The name of an interface in one form: `Eth1/1/1` and `ethernet1/1/1` are `Ethernet1/1/1`.
fn one_form(interface: &str) -> String {
    let low = interface.to_ascii_lowercase();
    match low.strip_prefix("eth") {
        Some(rest) if rest.starts_with(|first: char| first.is_ascii_digit()) && rest.contains('/') => {
            format!("ethernet{rest}")
        }
        _ => low,
    }
}

/// The name of a node without its domain.
fn short(node: &str) -> String {
    let name = node.split('.').next().unwrap_or(node);
    name.to_ascii_lowercase()
}

/// The places that have rows, found by any spelling of their names.
pub(super) struct Places {
    by_name: BTreeMap<(String, String), PausePlace>,
}

impl Places {
    pub(super) fn new(places: impl Iterator<Item = PausePlace>) -> Self {
        let key = |place: &PausePlace| (short(&place.node), one_form(&place.object));
        Self {
            by_name: places.map(|place| (key(&place), place)).collect(),
        }
    }

    fn find(&self, node: &str, object: &str) -> Option<&PausePlace> {
        self.by_name.get(&(short(node), one_form(object)))
    }
}

/// The adapters of each port of a switch.
pub(super) type Links = BTreeMap<PausePlace, BTreeSet<PausePlace>>;

/// The connections between places that have rows.
pub(super) fn links(
    places: &Places,
    inventory: &Inventory,
    cables: &BTreeSet<Cable>,
    addresses: &BTreeMap<String, (String, String)>,
) -> Links {
    let mut links = Links::new();
    let mut join = |port: Option<&PausePlace>, adapter: Option<&PausePlace>| {
        if let (Some(port), Some(adapter)) = (port, adapter)
            && port.level == Level::SwitchPort
            && port != adapter
        {
            links.entry(port.clone()).or_default().insert(adapter.clone());
        }
    };
    let named = |port: &str| {
        port.split_once(':')
            .and_then(|(switch, port)| places.find(switch, port))
    };
    for host in &inventory.hosts {
        for (interface, port) in &host.switch_ports {
            join(named(port), places.find(&host.name, interface));
        }
    }
    for hypervisor in &inventory.hypervisors {
        for (vmnic, port) in &hypervisor.switch_ports {
            join(named(port), places.find(&hypervisor.name, vmnic));
        }
    }
    for cable in cables {
        let port = places.find(&cable.node, &cable.interface);
        let by_address = || {
            let (node, object) = addresses.get(&digits_of(&cable.port)?)?;
            places.find(node, object)
        };
        join(
            port,
            places.find(&cable.neighbor, &cable.port).or_else(by_address),
        );
    }
    behind_hypervisors(places, inventory, &mut links);
    links
}

/// Adds adapters of virtual machines whose port the inventory does not name, where their hypervisor has one connected adapter alone.
fn behind_hypervisors(places: &Places, inventory: &Inventory, links: &mut Links) {
    let mut ports_of: BTreeMap<String, BTreeSet<PausePlace>> = BTreeMap::new();
    for (port, adapters) in &*links {
        for adapter in adapters
            .iter()
            .filter(|adapter| adapter.level == Level::Hypervisor)
        {
            ports_of
                .entry(adapter.node.clone())
                .or_default()
                .insert(port.clone());
        }
    }
    for host in inventory.hosts.iter().filter(|host| host.switch_ports.is_empty()) {
        let ports = host.hypervisor.as_ref().and_then(|name| ports_of.get(name));
        let Some(port) = ports
            .filter(|ports| ports.len() == 1)
            .and_then(|ports| ports.first())
        else {
            continue;
        };
        let own = places.by_name.values();
        let own = own.filter(|place| place.level == Level::Server && place.node == host.name);
        links.entry(port.clone()).or_default().extend(own.cloned());
    }
}
