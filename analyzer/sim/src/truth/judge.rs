//! Derives the truth of a run from its log and from the records of the taps.
//!
//! Here: names for numbers, connections, flows and single packets. Holes, episodes and findings have files of their own.

mod collectives;
mod ends;
mod episodes;
mod findings;
mod flows;
mod holes;
pub(crate) mod mrc;
mod names;
mod packets;
mod pairs;
mod times;
mod transmissions;
mod uplinks;
mod waits;

use std::collections::HashMap;

use crate::engine::events::EndpointId;
use crate::engine::run::Simulation;
use crate::network::topology::{Node, number};
use crate::record::observer;
use crate::scenario::TapTable;
use crate::truth::{ClockStep, Connection, ConnectionAtTap, End, Queue, RankStep, Step, Tap, Truth};
use crate::units::Picos;
use crate::workload::endpoint::service;
use names::Names;
use pairs::{is_paired, tells_losses};

/// The truth of a simulation that has come to its end; `files` are the names of its captures, `calm` is the run without what makes
/// collectives late.
pub(crate) fn truth(simulation: &Simulation<'_>, files: &[String], calm: Option<&Simulation<'_>>) -> Truth {
    let names = Names::new(simulation);
    let scenario = simulation.scenario;
    let taps = taps(simulation, &names, files);
    let mut truth = Truth {
        schema_version: Truth::SCHEMA_VERSION,
        title: scenario.title.clone(),
        seed: scenario.seed,
        start_ns: scenario.start * 1_000_000_000,
        duration_ns: scenario.duration.nanos(),
        connections: connections(simulation, &names),
        flows: flows::flows(simulation, &names),
        losses: packets::losses(simulation, &names),
        duplicates: packets::duplicates(simulation, &names),
        ce_marks: packets::marks(simulation, &names),
        cnps: packets::cnps(simulation, &names),
        naks: packets::naks(simulation, &names),
        retransmissions: transmissions::retransmissions(simulation, &names),
        retransmission_runs: packets::runs(simulation, &names),
        pauses: packets::pauses(simulation, &names),
        pause_roots: Vec::new(),
        uplinks: Vec::new(),
        fair_rates: Vec::new(),
        ends: ends::ends(simulation, &names),
        times: times::times(simulation, &names),
        episodes: Vec::new(),
        findings: Vec::new(),
        steps: steps(simulation),
        collectives: collectives::collectives(simulation, &names, calm),
        mrc: Vec::new(),
        in_flight: simulation.pool.live_packets(),
        queues: queues(simulation),
        taps,
    };
    truth.pause_roots = waits::pause_roots(simulation, &names, &truth.pauses);
    (truth.uplinks, truth.fair_rates) = uplinks::uplinks(simulation, &names, &truth.flows);
    truth.episodes = episodes::episodes(simulation, &names, &truth);
    truth.findings = findings::findings(simulation, &truth);
    truth
}

/// Steps of a tap's clock.
fn clock_steps(table: &TapTable) -> Vec<ClockStep> {
    let step = table.clock_step_at.map(|at| ClockStep {
        time: at.nanos(),
        by_ns: table.clock_step_ns,
    });
    step.into_iter().collect()
}

fn taps(simulation: &Simulation<'_>, names: &Names, files: &[String]) -> Vec<Tap> {
    let scenario = simulation.scenario;
    let groups = observer::files(scenario);
    let mut taps = Vec::new();
    for (place, table) in scenario.tap.iter().enumerate() {
        let (Some(state), Ok(port)) = (
            simulation.observer.taps.get(place),
            simulation.topology.tap_port(&table.at),
        ) else {
            continue;
        };
        let file = groups.iter().position(|(_, members)| members.contains(&place));
        let interface = file.and_then(|file| groups[file].1.iter().position(|member| *member == place));
        let port = &simulation.topology.ports[port.index()];
        let judged = holes::judge(simulation, names, place);
        taps.push(Tap {
            name: names.taps[place].clone(),
            node: simulation.topology.name(port.node).to_owned(),
            neighbour: simulation
                .topology
                .name(simulation.topology.ports[port.peer.index()].node)
                .to_owned(),
            at_host: matches!(port.node, Node::Host(_)),
            file: file.and_then(|file| files.get(file)).cloned().unwrap_or_default(),
            interface: number(interface.unwrap_or(0)),
            clock_offset_ns: table.clock_offset_ns,
            clock_drift_ppb: table.clock_drift_ppb,
            clock_steps: clock_steps(table),
            snaplen: table.snaplen,
            records: state.records,
            records_lost: state.lost,
            copies: state.copies,
            told_by_record: tells_losses(table),
            pause_records: state.pause_records,
            flows: flows::at_tap(simulation, names, place, &judged),
            holes: judged.holes,
            lost_downstream: judged.downstream,
            capture_losses: packets::capture_losses(simulation, names, place),
            late: transmissions::late(simulation, names, place),
            duplicates: transmissions::duplicates(simulation, names, place),
        });
    }
    taps
}

fn connections(simulation: &Simulation<'_>, names: &Names) -> Vec<Connection> {
    let mut connections = Vec::new();
    for (place, connection) in simulation.connections.iter().enumerate() {
        let a = EndpointId(number(place * 2));
        let table = simulation.table(place);
        let taps = 0..simulation.observer.taps.len();
        let taps = taps.map(|tap| connection_at_tap(simulation, names, tap, a));
        connections.push(Connection {
            id: number(place),
            name: connection.name.clone(),
            service: service(simulation.ends[a.index()].service).name().to_owned(),
            cm: table.is_some_and(|table| table.cm),
            a: end(simulation, names, a),
            b: end(simulation, names, a.peer()),
            begin: connection.opens.nanos(),
            end: connection.closes.map(Picos::nanos),
            taps: taps.collect(),
        });
    }
    connections
}

/// Records of the connection whose first end is `a` at a tap.
fn connection_at_tap(
    simulation: &Simulation<'_>,
    names: &Names,
    tap: usize,
    a: EndpointId,
) -> ConnectionAtTap {
    let seen = |end: EndpointId| {
        let seen = simulation.observer.taps[tap].flows[end.index()].as_deref();
        seen.map_or((0, 0), |seen| (seen.packets, seen.answers))
    };
    let ((a_packets, a_answers), (b_packets, b_answers)) = (seen(a), seen(a.peer()));
    let answers = a_answers + b_answers;
    ConnectionAtTap {
        tap: names.taps[tap].clone(),
        a_packets,
        b_packets,
        answers,
        observable: is_paired(simulation, tap, a.0, Picos::NEVER),
    }
}

fn end(simulation: &Simulation<'_>, names: &Names, end: EndpointId) -> End {
    let own = &simulation.ends[end.index()];
    let host = &simulation.topology.hosts[own.host as usize];
    End {
        host: host.name.clone(),
        address: host.address.to_string(),
        qpn: own.qpn.value(),
        first_psn: own.first_psn.value(),
        source_port: own.source_port,
        dscp: own.dscp,
        flow_id: names.flow(end.0),
    }
}

fn steps(simulation: &Simulation<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut places: HashMap<(u32, u32), usize> = HashMap::new();
    for entry in &simulation.log.steps {
        let Some(end) = entry.end else { continue };
        let hosts = simulation.jobs[entry.job as usize].hosts();
        let place = *places.entry((entry.job, entry.step)).or_insert_with(|| {
            let table = simulation.scenario.training.get(entry.job as usize);
            let name = table.and_then(|table| table.name.clone());
            steps.push(Step {
                job: name.unwrap_or_else(|| format!("training{}", entry.job)),
                step: entry.step,
                begin: u64::MAX,
                end: 0,
                ranks: Vec::new(),
            });
            steps.len() - 1
        });
        let step = &mut steps[place];
        step.begin = step.begin.min(entry.begin.nanos());
        step.end = step.end.max(end.nanos());
        let host = hosts.get(entry.rank as usize).copied().unwrap_or(0);
        step.ranks.push(RankStep {
            rank: entry.rank,
            host: simulation.topology.hosts[host as usize].name.clone(),
            compute: entry.compute.nanos(),
            begin: entry.begin.nanos(),
            end: end.nanos(),
        });
    }
    // Steps that not all ranks have ended are not over.
    steps.retain(|step| {
        let job = places.iter().find(|((_, number), _)| *number == step.step);
        job.is_some_and(|((job, _), _)| step.ranks.len() == simulation.jobs[*job as usize].hosts().len())
    });
    for step in &mut steps {
        step.ranks.sort_by_key(|rank| rank.rank);
    }
    steps
}

fn queues(simulation: &Simulation<'_>) -> Vec<Queue> {
    let mut deepest: Vec<_> = simulation.log.deepest.iter().collect();
    deepest.sort();
    deepest
        .into_iter()
        .map(|((port, priority), bytes)| Queue {
            place: simulation.topology.place(*port),
            priority: *priority,
            most_bytes: *bytes,
        })
        .collect()
}
