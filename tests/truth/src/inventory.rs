//! The inventory of a simulated network: its switches, cables and addresses, as `--fabric` reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use roce_sim::{Counters, Truth};
use serde::Deserialize;

/// Who is connected to whom, as the simulator writes it.
#[derive(Deserialize)]
struct Neighbors {
    links: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    a: End,
    b: End,
}

#[derive(Deserialize)]
struct End {
    node: String,
    port: String,
    kind: String,
}

/// The text of the inventory. A host without a connection has no address.
///
/// # Errors
/// When the simulator's answer has another form.
pub(crate) fn text(truth: &Truth, counters: &Counters) -> Result<String, serde_json::Error> {
    let neighbors: Neighbors = serde_json::from_value(counters.neighbors())?;
    let ends = truth.connections.iter().flat_map(|each| [&each.a, &each.b]);
    let addresses: BTreeMap<&str, &str> = ends
        .map(|end| (end.host.as_str(), end.address.as_str()))
        .collect();
    let mut switches: BTreeSet<&str> = BTreeSet::new();
    // Each cable once, at the host or at one of two switches.
    let mut cables: BTreeMap<(bool, &str), Vec<String>> = BTreeMap::new();
    let mut hosts: BTreeMap<&str, &str> = BTreeMap::new();
    for link in &neighbors.links {
        let is_host = |end: &End| end.kind == "host";
        let (own, other) = if is_host(&link.b) {
            (&link.b, &link.a)
        } else {
            (&link.a, &link.b)
        };
        for end in [own, other] {
            if is_host(end) {
                hosts.insert(&end.node, &end.port);
            } else {
                switches.insert(&end.node);
            }
        }
        if is_host(other) {
            continue;
        }
        let cable = format!("\"{}\" = \"{}:{}\"", own.port, other.node, other.port);
        cables.entry((is_host(own), &own.node)).or_default().push(cable);
    }
    let ports = |key: &(bool, &str)| cables.get(key).map_or(String::new(), |own| own.join(", "));
    let mut text = String::new();
    for name in switches {
        let _ = writeln!(
            text,
            "[[switch]]\nname = \"{name}\"\nkind = \"sonic\"\nswitch_ports = {{ {} }}\n",
            ports(&(false, name))
        );
    }
    for (name, port) in hosts {
        let _ = writeln!(
            text,
            "[[host]]\nname = \"{name}\"\nswitch_ports = {{ {} }}",
            ports(&(true, name))
        );
        if let Some(address) = addresses.get(name) {
            let _ = writeln!(text, "addresses = {{ \"{port}\" = \"{address}\" }}");
        }
        text.push('\n');
    }
    Ok(text)
}
