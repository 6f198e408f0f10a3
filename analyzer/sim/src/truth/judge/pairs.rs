//! The two directions of a connection at a tap, and what a tap's records show of them.

use crate::engine::events::EndpointId;
use crate::engine::run::Simulation;
use crate::network::topology::number;
use crate::record::frame::udp_source_port;
use crate::scenario::{LossReportName, MirrorName, TapTable};
use crate::truth::Truth;
use crate::units::Picos;

/// True if a tap's records tell where others are missing: their own counts do, and the sequence numbers of ERSPAN.
pub(super) fn tells_losses(table: &TapTable) -> bool {
    let numbered = matches!(table.mirror, Some(MirrorName::Erspan2 | MirrorName::Erspan3));
    numbered || table.loss_report == LossReportName::Packets
}

/// True if a tap cuts the RETH of WRITE and READ requests: it ends after 36 bytes of UDP, BTH and RETH behind the headers of
/// IP and Ethernet. What a mirror puts before them comes on top.
pub(super) fn cuts_reth(simulation: &Simulation<'_>, table: &TapTable) -> bool {
    let network = &simulation.scenario.network;
    let ethernet = if network.vlan.is_some() { 18 } else { 14 };
    let ip = if network.ipv6 { 40 } else { 20 };
    table.snaplen > 0 && table.mirror.is_none() && table.snaplen < ethernet + ip + 8 + 12 + 16
}

/// Answers that a tap must have recorded before the two directions of a flow's connection are known to belong together.
fn answers_wanted(simulation: &Simulation<'_>, flow: u32) -> u64 {
    let end = EndpointId(flow);
    let (one, other) = (
        &simulation.ends[end.index()],
        &simulation.ends[end.peer().index()],
    );
    let port = udp_source_port(one.qpn, other.qpn);
    if (one.source_port, other.source_port) == (port, port) {
        Truth::ANSWERS_BY_PORT
    } else {
        Truth::ANSWERS_BY_PSN
    }
}

/// True if the other direction of a flow can be found from what a tap has recorded by `time`.
pub(super) fn is_paired(simulation: &Simulation<'_>, tap: usize, flow: u32, time: Picos) -> bool {
    if flow as usize >= simulation.ends.len() {
        return false;
    }
    let flows = &simulation.observer.taps[tap].flows;
    let seen = [flow, flow ^ 1].map(|flow| flows[flow as usize].as_deref());
    let [Some(one), Some(other)] = seen.map(|seen| seen.filter(|seen| seen.packets > 0)) else {
        return false;
    };
    let answers = one.first_answers.iter().chain(&other.first_answers);
    answers.filter(|answer| **answer <= time).count() as u64 >= answers_wanted(simulation, flow)
}

/// True if no answer to a flow ever passed a tap, although the tap records what the same two hosts answer to another flow.
pub(super) fn is_never_answered(simulation: &Simulation<'_>, tap: usize, flow: u32) -> bool {
    let Some((from, to)) = hosts_of(simulation, flow) else {
        return false;
    };
    let observed = &simulation.observer.taps[tap];
    let recorded = |flow: u32| {
        let seen = observed.flows.get(flow as usize).and_then(Option::as_deref);
        seen.is_some_and(|seen| seen.packets > 0)
    };
    let answered = |other: u32| {
        hosts_of(simulation, other) == Some((from, to)) && is_paired(simulation, tap, other, Picos::NEVER)
    };
    recorded(flow)
        && !recorded(flow ^ 1)
        && observed.missed.iter().all(|missed| missed.flow != flow ^ 1)
        && (0..number(simulation.ends.len())).any(answered)
}

/// The hosts of a flow: the sender and the receiver.
pub(super) fn hosts_of(simulation: &Simulation<'_>, flow: u32) -> Option<(u32, u32)> {
    let own = simulation.ends.get(flow as usize)?;
    let peer = simulation.ends.get((flow ^ 1) as usize)?;
    Some((own.host, peer.host))
}

/// Times at which a flow starts again at a tap whose records show where others are missing: there is a
/// jump, and records are missing before it.
pub(super) fn restarts(simulation: &Simulation<'_>, tap: usize, flow: u32) -> impl Iterator<Item = Picos> {
    let tells = simulation.scenario.tap.get(tap).is_some_and(tells_losses);
    let observed = &simulation.observer.taps[tap];
    let seen = observed.flows[flow as usize].as_deref().filter(|_| tells);
    let jumps = seen.into_iter().flat_map(|seen| seen.holes.values());
    // In the order of time, as they passed.
    jumps.filter_map(|jump| {
        let next = observed
            .missed
            .partition_point(|missed| missed.time <= jump.since);
        let missed = observed.missed.get(next)?;
        (missed.time <= jump.time).then_some(jump.time)
    })
}
