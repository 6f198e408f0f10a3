//! Totals of flows: in the whole run, and at each tap.

use std::collections::HashMap;

use super::names::Names;
use super::{holes, transmissions};
use crate::engine::log::FlowCount;
use crate::engine::run::Simulation;
use crate::network::packet::Kind;
use crate::network::topology::number;
use crate::truth::{Flow, TapFlow};
use crate::units::Picos;

/// Records of each flow at a tap; connections with the same numbers add up.
pub(super) fn at_tap(
    simulation: &Simulation<'_>,
    names: &Names,
    tap: usize,
    judged: &holes::JudgedHoles,
) -> Vec<TapFlow> {
    let mut flows: Vec<TapFlow> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (flow, seen) in simulation.observer.taps[tap].flows.iter().enumerate() {
        let Some(seen) = seen.as_deref().filter(|seen| seen.packets > 0) else {
            continue;
        };
        let place = *places.entry(&names.flows[flow]).or_insert_with(|| {
            flows.push(TapFlow {
                flow_id: names.flows[flow].clone(),
                first_record: seen.first_record,
                ..TapFlow::default()
            });
            flows.len() - 1
        });
        let total = &mut flows[place];
        total.packets += seen.packets;
        total.data_packets += seen.data;
        total.payload_bytes += seen.payload;
        total.ce += seen.ce;
        total.not_ect += seen.not_ect;
        total.retransmitted_packets += seen.retransmitted;
        total.retransmitted_bytes += seen.retransmitted_bytes;
        total.retransmitted_behind_packets += seen.behind;
        total.retransmitted_behind_bytes += seen.behind_bytes;
        total.naks += seen.naks;
        total.rnr_naks += seen.rnr_naks;
        total.last_record = seen.last_record;
        total.late += seen.late.len() as u64;
        let depths = seen.late.iter().map(|late| late.depth);
        total.late_depth_most = depths.max().unwrap_or(0).max(total.late_depth_most);
        total.duplicates += seen.copies.len() as u64;
        total.response_missing += seen.response_missing;
        total.response_missing_most += seen.response_missing_most;
        let silences = seen.silences.iter();
        total
            .silences
            .extend(silences.map(|(begin, end)| [begin.nanos(), end.nanos()]));
    }
    for retransmitted in &simulation.log.retransmitted {
        if retransmitted.recorded >> tap & 1 != 0
            && let Some(place) = places.get(names.flows[retransmitted.flow as usize].as_str())
        {
            flows[*place]
                .retransmitted_by
                .count(transmissions::cause(simulation, retransmitted));
        }
    }
    for total in &mut flows {
        judged.count(total);
        let cnps = simulation.log.notifications.iter();
        let cnps =
            cnps.filter(|cnp| cnp.recorded >> tap & 1 != 0 && names.flow(cnp.slows.0) == total.flow_id);
        total.cnps = cnps.count() as u64;
    }
    flows
}

/// The totals of all flows.
pub(super) fn flows(simulation: &Simulation<'_>, names: &Names) -> Vec<Flow> {
    let mut flows: Vec<Flow> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, count) in simulation.log.flows.iter().enumerate() {
        let Some((from, to)) = simulation.hosts_of_flow(number(index)) else {
            continue;
        };
        if count.sent == 0 {
            continue;
        }
        let key = &simulation.keys[index];
        let place = *places.entry(&names.flows[index]).or_insert_with(|| {
            flows.push(Flow {
                flow_id: names.flows[index].clone(),
                source: simulation.topology.hosts[from as usize].name.clone(),
                destination: simulation.topology.hosts[to as usize].name.clone(),
                destination_qpn: key.destination_qpn.value(),
                service: key.service.name().to_owned(),
                management: index >= simulation.ends.len(),
                ..Flow::default()
            });
            flows.len() - 1
        });
        add(&mut flows[place], count);
        let own = simulation.ends.get(index);
        flows[place].reacts = own.is_some_and(|own| own.reaction.is_some());
    }
    for retransmitted in &simulation.log.retransmitted {
        if let Some(place) = places.get(names.flows[retransmitted.flow as usize].as_str()) {
            flows[*place]
                .retransmitted_by
                .count(transmissions::cause(simulation, retransmitted));
        }
    }
    for loss in &simulation.log.losses {
        if let Some(place) = places.get(names.flow(loss.flow).as_str()) {
            match loss.kind {
                Kind::Request => flows[*place].requests_lost += 1,
                Kind::ReadRequest => flows[*place].read_requests_lost += 1,
                Kind::ReadResponse => flows[*place].read_responses_lost += 1,
                _ => {}
            }
        }
    }
    for cnp in simulation
        .log
        .notifications
        .iter()
        .filter(|cnp| cnp.received.is_some())
    {
        if let Some(place) = places.get(names.flows[cnp.slows.index()].as_str()) {
            flows[*place].cnps_received += 1;
        }
    }
    flows
}

fn add(flow: &mut Flow, count: &FlowCount) {
    flow.epochs += 1;
    flow.packets_sent += count.sent;
    flow.packets_received += count.received;
    flow.packets_lost += count.lost;
    flow.data_packets += count.data;
    flow.payload_bytes_first += count.first_bytes;
    flow.payload_bytes_retransmitted += count.retransmitted_bytes;
    flow.packets_retransmitted += count.retransmitted_packets;
    flow.not_ect += count.not_ect;
    flow.ce += count.ce;
    flow.ce_paced += count.ce_paced;
    transmissions::limits(&mut flow.limits, &count.waited);
    flow.messages += count.messages;
    let first = count.first.map(Picos::nanos);
    flow.first_time = [flow.first_time, first].into_iter().flatten().min();
    flow.last_time = flow.last_time.max(first.map(|_| count.last.nanos()));
    for (total, part) in [
        (&mut flow.sent_bytes_per_ms, &count.sent_by_ms),
        (&mut flow.received_bytes_per_ms, &count.received_by_ms),
    ] {
        if total.len() < part.len() {
            total.resize(part.len(), 0);
        }
        for (total, part) in total.iter_mut().zip(part) {
            *total += part;
        }
    }
    if let Some(first) = count.first_data {
        let time = count.last_data.since(first).nanos();
        let bits = u128::from(count.first_bytes + count.retransmitted_bytes) * 8_000_000_000;
        let rate = bits.checked_div(u128::from(time)).unwrap_or(0);
        flow.mean_rate_bps = u64::try_from(rate).unwrap_or(u64::MAX);
    }
}
