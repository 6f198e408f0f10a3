//! Groups of equal-cost ports, collisions on them, and max-min fair shares.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::names::Names;
use crate::engine::events::{EndpointId, PortId};
use crate::engine::run::Simulation;
use crate::network::topology::{Node, number};
use crate::truth::{Collision, FairRate, Flow, Uplink, UplinkFlow, UplinkGroup};

/// A flow with less than a twentieth of a port's bytes takes no part in a collision.
const SMALL: u64 = 20;
/// A flow that would have more than a tenth more pays for a collision.
const COST: f64 = 1.1;
/// Headers of a middle packet of a message on Ethernet and IPv4, with FCS, preamble and gap: 14 + 20 + 8 + 12 + 4 + 4 + 20.
const OVERHEAD: f64 = 82.0;

/// A link or several that are taken as one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Link {
    Port(PortId),
    /// All equal-cost ports of a switch.
    Group(u32),
    /// All ports that lead to a switch from those above it.
    Into(u32),
}

/// Max-min fair rates: the shares of all flows grow together; a flow stops when a link of its or its own limit is reached.
fn max_min(flows: &[(Vec<Link>, f64)], capacity: &HashMap<Link, f64>) -> Vec<f64> {
    let mut rates = vec![0.0; flows.len()];
    let mut open: BTreeSet<usize> = (0..flows.len()).collect();
    let mut left = capacity.clone();
    while !open.is_empty() {
        let mut count: HashMap<Link, f64> = HashMap::new();
        for flow in &open {
            for link in &flows[*flow].0 {
                *count.entry(*link).or_default() += 1.0;
            }
        }
        let links = count
            .iter()
            .map(|(link, count)| left.get(link).copied().unwrap_or(0.0) / count);
        let limits = open.iter().map(|flow| flows[*flow].1 - rates[*flow]);
        let step = links.chain(limits).fold(f64::INFINITY, f64::min).max(0.0);
        if !step.is_finite() {
            break;
        }
        for (link, count) in &count {
            *left.entry(*link).or_default() -= step * count;
        }
        let full: BTreeSet<Link> = count
            .keys()
            .filter(|link| left[link] <= capacity.get(link).copied().unwrap_or(0.0) * 1e-9)
            .copied()
            .collect();
        for flow in &open {
            rates[*flow] += step;
        }
        let before = open.len();
        open.retain(|flow| {
            let (links, limit) = &flows[*flow];
            rates[*flow] < limit * (1.0 - 1e-9) && !links.iter().any(|link| full.contains(link))
        });
        if open.len() == before {
            break;
        }
    }
    rates
}

/// The limit of a flow beside the network's: its application, or a configured rate. In bit/s on the line.
fn demand(simulation: &Simulation<'_>, flow: u32, line: f64) -> f64 {
    let Some(table) = simulation.table(EndpointId(flow).connection()) else {
        return f64::INFINITY;
    };
    let mut least = f64::INFINITY;
    if let Some(pace) = table.pace {
        least = least.min(pace.bits() * line);
    }
    if let Some(limit) = table.rate_limit {
        least = least.min(limit.bits());
    }
    if let Some(interval) = table.interval {
        let bits = roce_model::value_of(table.message.0.saturating_mul(8 * u64::from(table.burst)));
        least = least.min(bits / interval.seconds().max(1e-12) * line);
    }
    least
}

/// The links of a flow: those that its data took, and those with each group as one.
fn links(simulation: &Simulation<'_>, flow: u32, from: u32, to: u32) -> (Vec<Link>, Vec<Link>) {
    let topology = &simulation.topology;
    let first = topology.hosts[from as usize].port;
    let mut at = topology.ports[first.index()].peer;
    let (mut took, mut pooled) = (vec![Link::Port(first)], vec![Link::Port(first)]);
    let mut was_group = false;
    for _ in 0..=topology.switches.len() {
        let Node::Switch(switch) = topology.ports[at.index()].node else {
            break;
        };
        let routes = topology.switches[switch as usize].routes.get(to as usize);
        let egress = match routes.map(Vec::as_slice) {
            Some([one]) => *one,
            Some([_, ..]) => {
                let own = topology.switches[switch as usize].ports.iter();
                let used = own.filter_map(|port| {
                    let data = simulation.log.uplinks.get(&(*port, flow))?;
                    Some((data.bytes, *port))
                });
                let Some((_, most)) = used.max() else { break };
                pooled.push(Link::Group(switch));
                was_group = true;
                took.push(Link::Port(most));
                at = topology.ports[most.index()].peer;
                continue;
            }
            _ => break,
        };
        took.push(Link::Port(egress));
        let next = topology.ports[egress.index()].peer;
        pooled.push(match topology.ports[next.index()].node {
            Node::Switch(below) if was_group => Link::Into(below),
            _ => Link::Port(egress),
        });
        at = next;
    }
    (took, pooled)
}

/// The rates of all links, and of groups of them.
fn capacities(simulation: &Simulation<'_>, groups: &BTreeMap<u32, Vec<PortId>>) -> HashMap<Link, f64> {
    let topology = &simulation.topology;
    let mut capacity = HashMap::new();
    for (place, port) in topology.ports.iter().enumerate() {
        capacity.insert(Link::Port(PortId(number(place))), port.rate.bits());
    }
    for (switch, ports) in groups {
        for port in ports {
            let port = &topology.ports[port.index()];
            *capacity.entry(Link::Group(*switch)).or_default() += port.rate.bits();
            *capacity.entry(Link::Into(*switch)).or_default() += port.rate.bits();
        }
    }
    capacity
}

/// Equal-cost ports, by switch.
fn groups(simulation: &Simulation<'_>) -> BTreeMap<u32, Vec<PortId>> {
    let switches = simulation.topology.switches.iter().enumerate();
    let groups = switches.filter_map(|(place, switch)| {
        let several = switch.routes.iter().find(|ways| ways.len() > 1)?;
        Some((number(place), several.clone()))
    });
    groups.collect()
}

/// Rates of all flows with data, by their number: fair shares of the links that they took, and of groups.
fn shares(simulation: &Simulation<'_>, groups: &BTreeMap<u32, Vec<PortId>>) -> BTreeMap<u32, (f64, f64)> {
    let mut numbers = Vec::new();
    let (mut took, mut pooled) = (Vec::new(), Vec::new());
    let line = 1.0 + OVERHEAD / f64::from(simulation.scenario.nic.mtu.max(1));
    for flow in 0..number(simulation.ends.len()) {
        let is_used = simulation.log.flows[flow as usize].first_bytes > 0;
        let Some((from, to)) = simulation.hosts_of_flow(flow).filter(|_| is_used) else {
            continue;
        };
        let limit = demand(simulation, flow, line);
        let (own, all) = links(simulation, flow, from, to);
        numbers.push(flow);
        took.push((own, limit));
        pooled.push((all, limit));
    }
    let capacity = capacities(simulation, groups);
    let paths = max_min(&took, &capacity);
    let fair = max_min(&pooled, &capacity);
    let rates = paths.into_iter().zip(fair);
    let rates = rates.map(|(path, fair)| (path / line, fair / line));
    numbers.into_iter().zip(rates).collect()
}

/// Groups of equal-cost ports, and the rates of all flows. Both are empty where each packet chooses its path, or there is one alone.
pub(super) fn uplinks(
    simulation: &Simulation<'_>,
    names: &Names,
    flows: &[Flow],
) -> (Vec<UplinkGroup>, Vec<FairRate>) {
    let groups = groups(simulation);
    if groups.is_empty() || simulation.spray.is_some() {
        return (Vec::new(), Vec::new());
    }
    let shares = shares(simulation, &groups);
    let rows = groups.iter().map(|(switch, ports)| {
        let ports: Vec<(Uplink, Vec<u32>)> = ports
            .iter()
            .map(|port| uplink(simulation, names, *port))
            .collect();
        UplinkGroup {
            node: simulation.topology.name(Node::Switch(*switch)).to_owned(),
            collisions: collisions(&ports, names, &shares),
            ports: ports.into_iter().map(|(port, _)| port).collect(),
        }
    });
    let rates = shares.iter().map(|(flow, (path, fair))| {
        let flow_id = names.flow(*flow);
        let reached = flows.iter().find(|row| row.flow_id == flow_id);
        FairRate {
            reached_bps: reached.map_or(0, |row| row.mean_rate_bps),
            flow_id,
            path_bps: whole(*path),
            fair_bps: whole(*fair),
        }
    });
    (rows.collect(), rates.collect())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive, and the cast saturates"
)]
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}

/// An equal-cost port, and the numbers of its flows that take part in collisions.
fn uplink(simulation: &Simulation<'_>, names: &Names, port: PortId) -> (Uplink, Vec<u32>) {
    let own = simulation.log.uplinks.range((port, 0)..=(port, u32::MAX));
    let bytes: u64 = own.clone().map(|(_, data)| data.bytes).sum();
    let large = own.clone().filter(|(_, data)| data.bytes * SMALL >= bytes);
    let large = large.map(|((_, flow), _)| *flow).collect();
    let flows = own.map(|((_, flow), data)| UplinkFlow {
        flow_id: names.flow(*flow),
        packets: data.packets,
        bytes: data.bytes,
        begin: data.first.nanos(),
        end: data.last.nanos(),
    });
    let uplink = Uplink {
        place: simulation.topology.place(port),
        rate_bps: simulation.topology.ports[port.index()].rate.0,
        bytes,
        flows: flows.collect(),
    };
    (uplink, large)
}

fn collisions(
    ports: &[(Uplink, Vec<u32>)],
    names: &Names,
    shares: &BTreeMap<u32, (f64, f64)>,
) -> Vec<Collision> {
    let Some((least, _)) = ports.iter().min_by_key(|(port, _)| port.bytes) else {
        return Vec::new();
    };
    let crowded = ports
        .iter()
        .filter(|(port, flows)| flows.len() > 1 && least.bytes * 2 <= port.bytes);
    let rows = crowded.map(|(port, flows)| Collision {
        place: port.place.clone(),
        flows: flows.iter().map(|flow| names.flow(*flow)).collect(),
        other: least.place.clone(),
        bytes: port.bytes,
        other_bytes: least.bytes,
        costs: flows.iter().any(|flow| {
            let share = shares.get(flow);
            share.is_some_and(|(path, fair)| *fair > path * COST)
        }),
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_link_of_each_flow_decides() {
        // Bertsekas and Gallager, Data Networks, section 6.5.2: a long flow over links of 10 and 30 with one flow more on each.
        let (a, b) = (Link::Port(PortId(0)), Link::Port(PortId(1)));
        let capacity = HashMap::from([(a, 10.0), (b, 30.0)]);
        let all = f64::INFINITY;
        let rates = max_min(&[(vec![a, b], all), (vec![a], all), (vec![b], all)], &capacity);
        assert_eq!(rates, [5.0, 5.0, 25.0]);
        // A flow that wants 2 leaves 8 to the other one.
        let rates = max_min(&[(vec![a], 2.0), (vec![a], all)], &capacity);
        assert_eq!(rates, [2.0, 8.0]);
    }
}
