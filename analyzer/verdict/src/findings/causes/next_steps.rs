//! Next steps that name what a run knows. Rules say what to do, with words in braces for whom; here these become hosts, classes and ports.

use std::collections::BTreeSet;

use roce_model::{Address, FindingRow, FlowId};

use super::super::super::numbers::some;
use super::super::rule::Context;
use super::subjects::{Side, Subjects};

/// Hosts and ports that a next step names; of more it says how many.
const NAMED: usize = 2;

/// A word in braces, and what stands there where a run does not know it.
const WORDS: [(&str, &str); 5] = [
    ("{senders}", "the senders"),
    ("{receivers}", "the receivers"),
    ("{pausers}", "the hosts that pause"),
    ("{class}", "the class of RoCE"),
    ("{ports}", "the switch port to the destination"),
];

/// Puts the hosts, classes and ports of a run into the next step of a finding.
pub(super) fn fill(finding: &mut FindingRow, subjects: &Subjects, context: &Context<'_>) {
    if !finding.next_step.contains('{') {
        return;
    }
    let mut text = finding.next_step.to_string();
    for (word, unknown) in WORDS {
        if text.contains(word) {
            let known = match word {
                "{senders}" => hosts(&subjects.ranked_hosts(Side::Source)),
                "{receivers}" => hosts(&subjects.ranked_hosts(Side::Destination)),
                "{pausers}" => {
                    let pausers = subjects.pausers.iter();
                    hosts(&pausers.map(|host| (*host, None)).collect::<Vec<_>>())
                }
                "{class}" => class(subjects, context),
                _ => ports(subjects, context),
            };
            text = text.replace(word, known.as_deref().unwrap_or(unknown));
        }
    }
    finding.next_step = text.into();
}

/// Names of hosts, the first ones of many; `None` for none.
fn hosts(hosts: &[(Address, Option<u32>)]) -> Option<String> {
    let name = |(host, rank): &(Address, Option<u32>)| match rank {
        Some(rank) => format!("{host} (rank {rank})"),
        None => host.to_string(),
    };
    let named: Vec<String> = hosts.iter().map(name).collect();
    (!named.is_empty()).then(|| some(&named, NAMED, named.len()))
}

/// The one class of all flows: their DSCP, and the priority of their tags. `None` where they have several, or none.
fn class(subjects: &Subjects, context: &Context<'_>) -> Option<String> {
    let flows: BTreeSet<FlowId> = subjects.flows.keys().copied().collect();
    let parties = context.directory.flows();
    let mut classes = parties
        .filter(|(_, flow, party)| flows.contains(flow) && party.data_packets > 0)
        .map(|(_, _, party)| (party.dscp, party.pcp));
    let (dscp, pcp) = classes.next()?;
    let dscp = dscp.filter(|_| classes.all(|other| other == (dscp, pcp)))?;
    Some(match pcp {
        Some(priority) => format!("DSCP {dscp} (priority {priority})"),
        None => format!("DSCP {dscp}"),
    })
}

/// The switch ports to the destinations of flows, by name where an inventory has their cables.
fn ports(subjects: &Subjects, context: &Context<'_>) -> Option<String> {
    let mut there: BTreeSet<Address> = subjects.flows.values().map(|flow| flow.destination).collect();
    there.extend(subjects.destinations.keys());
    let named: Vec<String> = there
        .iter()
        .map(|host| match switch_port(*host, context) {
            Some(port) => format!("{port} to {host}"),
            None => host.to_string(),
        })
        .collect();
    let list = some(&named, NAMED, named.len());
    let has_names = named.first().is_some_and(|name| name.contains(" to "));
    match (named.len(), has_names) {
        (0, _) => None,
        (_, true) => Some(list),
        (1, false) => Some(format!("the switch port to {list}")),
        (_, false) => Some(format!("the switch ports to {list}")),
    }
}

/// The port of a switch that a host's cable goes to, as inventories write it.
fn switch_port(host: Address, context: &Context<'_>) -> Option<String> {
    let wiring = context.wiring;
    let (_, own) = wiring.addresses.iter().find(|(address, _)| *address == host)?;
    let cables = wiring.cables.iter();
    let mut ends = cables.flat_map(|cable| [(&cable.a, &cable.b), (&cable.b, &cable.a)]);
    let (_, other) = ends.find(|(end, other)| *end == own && wiring.switches.contains(&other.node))?;
    Some(format!("{}:{}", other.node, other.object))
}
