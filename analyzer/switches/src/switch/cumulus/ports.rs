//! The kernel's files of ports (`/sys/class/net`), the release, and lldpd's JSON.

use roce_model::{Counter, value_of};
use serde_json::{Map, Value};

use super::super::answer::{count, json_text};
use super::super::port::{Port, PortPlace};
use crate::device::{Neighbor, Reading};
use crate::switch::interface::{Interface, counted};

/// Neighbours of one switch.
const MAX_NEIGHBORS: usize = 4_096;
/// Mbit/s as bytes/s.
const MEGABIT: f64 = 125_000.0;

/// Adds `PATH:VALUE` lines. A port without a link has no speed: the kernel says -1.
pub(super) fn files(text: &str, reading: &mut Reading) {
    for line in text.lines() {
        let Some((name, file, value)) = line
            .trim()
            .strip_prefix("/sys/class/net/")
            .and_then(|rest| rest.split_once('/'))
            .and_then(|(name, rest)| {
                let (file, value) = rest.split_once(':')?;
                Some((name, file, count(value)?))
            })
        else {
            continue;
        };
        let (counter, unit) = match file {
            "carrier" => (Counter::SwitchInterfaceUp, 1.0),
            "speed" => (Counter::SwitchInterfaceRate, MEGABIT),
            "mtu" => (Counter::SwitchInterfaceMtu, 1.0),
            "statistics/rx_bytes" => (Counter::SwitchInterfaceReceivedBytes, 1.0),
            "statistics/tx_bytes" => (Counter::SwitchInterfaceTransmittedBytes, 1.0),
            _ => continue,
        };
        if let Some(mut port) = Port::new(reading, name) {
            port.put(counter, PortPlace::default(), Some(value_of(value) * unit));
        }
    }
}

/// Adds the version in `/etc/lsb-release`.
pub(super) fn release(text: &str, reading: &mut Reading) {
    let version = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("DISTRIB_RELEASE="));
    if let Some(version) = version {
        version
            .trim_matches('"')
            .clone_into(&mut reading.description.version);
    }
}

/// Adds lldpd's neighbours. `interface` is an object by name, or a list of such objects; so is `chassis` by the neighbour's name.
pub(super) fn neighbors(document: &Map<String, Value>, reading: &mut Reading) {
    let Some(interfaces) = document.get("lldp").and_then(|lldp| lldp.get("interface")) else {
        return;
    };
    let objects: Vec<&Value> = match interfaces {
        Value::Array(list) => list.iter().collect(),
        other => vec![other],
    };
    for (name, entry) in objects.into_iter().filter_map(Value::as_object).flatten() {
        let Some(Interface { name: interface, .. }) = counted(name) else {
            continue;
        };
        let chassis = entry.get("chassis").and_then(Value::as_object);
        // A neighbour without a name has its identifier alone.
        let node = chassis
            .and_then(|chassis| chassis.iter().next())
            .map(|(name, value)| match name.as_str() {
                "id" => json_text(value, "value"),
                _ => name.clone(),
            })
            .unwrap_or_default();
        let port = entry
            .get("port")
            .and_then(|port| port.get("id"))
            .map(|id| json_text(id, "value"))
            .unwrap_or_default();
        if !node.is_empty() && reading.neighbors.len() < MAX_NEIGHBORS {
            reading.neighbors.push(Neighbor {
                interface,
                node,
                port,
            });
        }
    }
}
