//! Messages and steps of jobs with NCCL's messages.

use std::collections::BTreeMap;

use super::names::Names;
use crate::engine::log::RankStep;
use crate::engine::run::Simulation;
use crate::network::topology::{Node, number};
use crate::scenario::{LatePlace, Training};
use crate::truth::{Collective, CollectiveStep, InjectedRoot, Lane, Message};
use crate::units::Picos;
use crate::workload::nccl::NcclJob;

/// All jobs; `calm` is the run without injections, if there are some.
pub(super) fn collectives(
    simulation: &Simulation<'_>,
    names: &Names,
    calm: Option<&Simulation<'_>>,
) -> Vec<Collective> {
    let jobs = simulation.nccl.iter().flatten();
    jobs.map(|job| {
        let table = &simulation.scenario.training[job.table];
        let name = table.name.clone();
        let host = |rank: &crate::workload::nccl::Rank| host_name(simulation, rank.host);
        Collective {
            job: name.unwrap_or_else(|| format!("training{}", job.table)),
            hosts: job.ranks.iter().map(host).collect(),
            lanes: lanes(simulation, names, job),
            steps: steps(simulation, job, table, calm),
            messages: messages(simulation, job),
        }
    })
    .collect()
}

fn host_name(simulation: &Simulation<'_>, host: u32) -> String {
    simulation.topology.hosts[host as usize].name.clone()
}

fn lanes(simulation: &Simulation<'_>, names: &Names, job: &NcclJob) -> Vec<Lane> {
    let lanes = job.lanes.iter().zip(0..);
    lanes
        .map(|(lane, place)| {
            let qpn = |end: &crate::engine::events::EndpointId| simulation.ends[end.index()].qpn.value();
            let first = lane.ends.first();
            Lane {
                lane: place,
                senders: lane.senders.clone(),
                receiver: lane.receiver,
                channel: lane.channel,
                credits: lane.buffers,
                sender_qpns: lane.ends.iter().map(qpn).collect(),
                receiver_qpns: lane.ends.iter().map(|end| qpn(&end.peer())).collect(),
                data_flows: lane.ends.iter().map(|end| names.flow(end.0)).collect(),
                credit_flow: first.map(|end| names.flow(end.peer().0)).unwrap_or_default(),
            }
        })
        .collect()
}

fn messages(simulation: &Simulation<'_>, job: &NcclJob) -> Vec<Message> {
    let own = simulation.log.messages.iter();
    let own = own.filter(|times| times.job as usize == job.table);
    let nanos = |time: Option<Picos>| time.map(Picos::nanos);
    let mut messages: Vec<_> = own
        .filter_map(|times| {
            let lane = job.lanes.get(times.lane as usize)?;
            Some(Message {
                lane: times.lane,
                number: times.number,
                step: lane.step(times.number),
                bytes: lane.length(times.number) * lane.senders.len() as u64,
                ring_address: lane.memory.credit_place(times.number).0,
                buffer_address: lane.memory.credits(times.number).address,
                credit_posted: nanos(times.credit_posted),
                credit_out: nanos(times.credit_out),
                credit_in: nanos(times.credit_in),
                filled: nanos(times.filled),
                first_out: nanos(times.first_out),
                last_out: nanos(times.last_out),
                first_in: nanos(times.first_in),
                last_in: nanos(times.last_in),
                acknowledged: nanos(times.acknowledged),
                used: nanos(times.used),
            })
        })
        .collect();
    messages.sort_by_key(|message| (message.lane, message.number));
    messages
}

/// Kernels of the steps that all ranks have ended: their starts and ends by rank.
fn kernels(simulation: &Simulation<'_>, job: &NcclJob) -> BTreeMap<u32, Vec<(u32, Picos, Picos)>> {
    let mut steps: BTreeMap<u32, Vec<(u32, Picos, Picos)>> = BTreeMap::new();
    let own = |step: &&RankStep| step.job as usize == job.table;
    for entry in simulation.log.steps.iter().filter(own) {
        if let Some(end) = entry.end {
            let step = steps.entry(entry.step).or_default();
            step.push((entry.rank, entry.begin, end));
        }
    }
    steps.retain(|_, ranks| ranks.len() == job.ranks.len());
    for ranks in steps.values_mut() {
        ranks.sort_unstable();
    }
    steps
}

/// The length of each step.
fn lengths(kernels: &BTreeMap<u32, Vec<(u32, Picos, Picos)>>, begin: Picos) -> BTreeMap<u32, u64> {
    let mut before = begin;
    let mut lengths = BTreeMap::new();
    for (step, ranks) in kernels {
        let end = ranks.iter().map(|(_, _, end)| *end).max().unwrap_or(before);
        lengths.insert(*step, end.nanos() - before.nanos());
        before = end;
    }
    lengths
}

fn steps(
    simulation: &Simulation<'_>,
    job: &NcclJob,
    table: &Training,
    calm: Option<&Simulation<'_>>,
) -> Vec<CollectiveStep> {
    let own = kernels(simulation, job);
    let ours = lengths(&own, table.begin);
    let other = calm.and_then(|calm| {
        let job = calm.nccl.get(job.table)?.as_ref()?;
        Some(lengths(&kernels(calm, job), table.begin))
    });
    let mut before = table.begin;
    own.iter()
        .map(|(step, ranks)| {
            let end = ranks.iter().map(|(_, _, end)| *end).max().unwrap_or(before);
            let length = ours.get(step).copied().unwrap_or(0);
            let calm = other
                .as_ref()
                .map_or(Some(length), |other| other.get(step).copied());
            let cost = calm.map_or(0, |calm| length.cast_signed() - calm.cast_signed());
            let roots = roots(simulation, job, table, *step, (before, end));
            before = end;
            CollectiveStep {
                step: *step,
                kernel_start: ranks.iter().map(|(_, start, _)| start.nanos()).collect(),
                kernel_end: ranks.iter().map(|(_, _, end)| end.nanos()).collect(),
                length_ns: length,
                cost_ns: cost,
                roots,
            }
        })
        .collect()
}

/// Everything injected that is at work in a step.
fn roots(
    simulation: &Simulation<'_>,
    job: &NcclJob,
    table: &Training,
    step: u32,
    (begin, end): (Picos, Picos),
) -> Vec<InjectedRoot> {
    let of_rank = |kind: &str, rank: u32, place: &str| InjectedRoot {
        kind: kind.to_owned(),
        rank: Some(rank),
        host: job
            .ranks
            .get(rank as usize)
            .map(|rank| host_name(simulation, rank.host))
            .unwrap_or_default(),
        place: place.to_owned(),
    };
    let mut roots = Vec::new();
    for late in table.late.iter().filter(|late| late.is_in(step)) {
        let place = match late.place {
            LatePlace::Gpu => "gpu",
            LatePlace::Host => "host",
        };
        roots.push(of_rank("rank.late", late.rank, place));
    }
    for late in table.receiver.iter().filter(|late| late.is_in(step)) {
        roots.push(of_rank("receiver.late", late.rank, "receiver"));
    }
    roots.extend(links(simulation, job, (begin, end)));
    roots.sort();
    roots.dedup();
    roots
}

/// Links of the job that are slower than others, and those that lost packets of it in a time.
fn links(simulation: &Simulation<'_>, job: &NcclJob, (begin, end): (Picos, Picos)) -> Vec<InjectedRoot> {
    let scenario = simulation.scenario;
    let topology = &simulation.topology;
    let of_port = |port: crate::engine::events::PortId| {
        let own = &topology.ports[port.index()];
        let ends = [topology.ports[own.peer.index()].node, own.node];
        let host = ends.into_iter().find(|node| matches!(node, Node::Host(_)));
        InjectedRoot {
            kind: "network.late".to_owned(),
            rank: None,
            host: host
                .map(|node| topology.name(node).to_owned())
                .unwrap_or_default(),
            place: topology.place(port),
        }
    };
    let mut roots = Vec::new();
    for (host, node) in topology.hosts.iter().enumerate() {
        let slow = topology.ports[node.port.index()].rate < scenario.network.rate;
        let paused = scenario.pause.iter().any(|pause| pause.host == node.name);
        if (slow || paused) && job.ranks.iter().any(|rank| rank.host == number(host)) {
            roots.push(of_port(node.port));
        }
    }
    for loss in &simulation.log.losses {
        let is_ours = |flow: u32| {
            let connection = simulation.connections.get(flow as usize / 2);
            let lane = connection.and_then(|connection| connection.lane);
            lane.is_some_and(|(table, _)| table as usize == job.table)
        };
        if (begin..end).contains(&loss.time) && is_ours(loss.flow) {
            roots.push(of_port(loss.port));
        }
    }
    roots
}
