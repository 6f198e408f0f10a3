//! Queue pairs and memory of a job's connections.

use std::collections::{HashMap, VecDeque};

use super::layout::LaneMemory;
use super::program::{PlannedLane, Program, buffers};
use super::{Lane, LastTimes, NcclJob, Part, Rank, Worker};
use crate::Error;
use crate::engine::events::EndpointId;
use crate::engine::rng::Stream;
use crate::network::topology::{Topology, number};
use crate::record::frame::Credits;
use crate::scenario::{PsnChoice, Scenario, SourcePort, Training};
use crate::workload::connect::Builder;

/// Numbers of connections for which memory has addresses at each host.
const MAX_LANES: usize = 1 << 13;
/// Operations of all GPUs in a step.
const MAX_OPERATIONS: u64 = 1 << 21;

impl NcclJob {
    /// The job of a table, whose rank n is on `hosts[n]`, with its connections.
    pub(crate) fn new(
        scenario: &Scenario,
        number_of_table: usize,
        hosts: &[u32],
        topology: &Topology,
        builder: &mut Builder<'_>,
    ) -> Result<Self, Error> {
        let table = scenario
            .training
            .get(number_of_table)
            .ok_or_else(|| Error::Scenario(format!("no training.{number_of_table}")))?;
        let program = program(table, number(hosts.len()))
            .map_err(|text| Error::Scenario(format!("training.{number_of_table}: {text}")))?;
        let mut wiring = Wiring {
            scenario,
            table,
            job: number_of_table,
            hosts,
            sending: HashMap::new(),
            receiving: HashMap::new(),
        };
        let lanes = program.lanes.iter().enumerate().zip(program.lengths());
        let lanes =
            lanes.map(|((place, plan), lengths)| wiring.lane(place, plan, lengths, topology, builder));
        let lanes = lanes.collect();
        let stream = |name: &str, place: usize| wiring.stream(name, place);
        let workers = program.workers.into_iter().enumerate();
        let workers = workers.map(|(place, (rank, ops))| Worker {
            rank,
            ops,
            next: 0,
            busy: false,
            stream: stream("nccl worker", place),
        });
        let workers: Vec<Worker> = workers.collect();
        let mut of_ranks = vec![Vec::new(); hosts.len()];
        for (worker, place) in workers.iter().zip(0..) {
            if let Some(own) = of_ranks.get_mut(worker.rank as usize) {
                own.push(place);
            }
        }
        let ranks = hosts.iter().zip(of_ranks).enumerate();
        let ranks = ranks.map(|(place, (host, workers))| Rank {
            host: *host,
            workers,
            step: 0,
            runs: false,
            working: 0,
            entry: 0,
            stream: stream("nccl rank", place),
        });
        Ok(Self {
            table: number_of_table,
            ranks: ranks.collect(),
            lanes,
            workers,
        })
    }
}

/// The program of a table, if there can be one.
fn program(table: &Training, ranks: u32) -> Result<Program, String> {
    let late = table.late.iter().map(|late| late.rank);
    let mut named = late.chain(table.receiver.iter().map(|late| late.rank));
    if let Some(rank) = named.find(|rank| *rank >= ranks) {
        return Err(format!("there is no rank {rank}: there are {ranks}, from 0"));
    }
    if Program::operations(table, ranks) > MAX_OPERATIONS {
        return Err(format!(
            "there can be {MAX_OPERATIONS} slices of all ranks in a step"
        ));
    }
    let program = Program::new(table, ranks);
    let lanes = program.lanes.len();
    if lanes > MAX_LANES {
        return Err(format!("{lanes} connections: there can be {MAX_LANES}"));
    }
    Ok(program)
}

/// Makes the connections of a job.
struct Wiring<'a> {
    scenario: &'a Scenario,
    table: &'a Training,
    job: usize,
    hosts: &'a [u32],
    /// Connections that each host sends and receives in so far.
    sending: HashMap<u32, u64>,
    receiving: HashMap<u32, u64>,
}

impl Wiring<'_> {
    fn stream(&self, name: &str, place: usize) -> Stream {
        Stream::new(self.scenario.seed, name, self.job << 20 | place)
    }

    fn lane(
        &mut self,
        place: usize,
        plan: &PlannedLane,
        lengths: Vec<u64>,
        topology: &Topology,
        builder: &mut Builder<'_>,
    ) -> Lane {
        let table = self.table;
        let at = |rank: Option<&u32>| {
            let host = rank.and_then(|rank| self.hosts.get(*rank as usize));
            host.copied().unwrap_or(0)
        };
        let pair = (at(plan.senders.first()), at(Some(&plan.receiver)));
        let name = table.name.clone();
        let name = name.unwrap_or_else(|| format!("training{}", self.job));
        let mut ends = Vec::new();
        for _ in 0..table.qps {
            let qpns = (builder.random_qpn(pair.0), builder.random_qpn(pair.1));
            let psn = PsnChoice::Zero;
            let port = SourcePort::default();
            let connection = builder.connect(topology, None, &name, pair, qpns, psn, port);
            builder.connections[connection].lane = Some((number(self.job), number(place)));
            builder.connections[connection].opens = table.begin;
            if let Some(dscp) = table.credit_dscp {
                builder.ends[connection * 2 + 1].dscp = dscp;
            }
            ends.push(EndpointId(number(connection * 2)));
        }
        let counts = (
            next(self.sending.entry(pair.0).or_default()),
            next(self.receiving.entry(pair.1).or_default()),
        );
        let offset = Stream::new(self.scenario.seed, "host memory", pair.0 as usize).below(1 << 12);
        let senders = &plan.senders[..plan.senders.len().min(Credits::MAX)];
        Lane {
            senders: plan.senders.clone(),
            receiver: plan.receiver,
            channel: plan.channel,
            memory: LaneMemory::new(table, buffers(table), senders, counts, offset),
            buffers: buffers(table),
            lengths,
            parts: vec![Part::default(); plan.senders.len()],
            ends,
            allowed: 0,
            credits_planned: 0,
            credited: 0,
            credits: 0,
            sends_planned: 0,
            sent: 0,
            done: 0,
            received: 0,
            unacknowledged: VecDeque::new(),
            missing: VecDeque::new(),
            log: Vec::new(),
            last: LastTimes::default(),
            sender_stream: self.stream("nccl sender", place),
            receiver_stream: self.stream("nccl receiver", place),
        }
    }
}

/// Counts one more; gives the number before.
fn next(count: &mut u64) -> u64 {
    *count += 1;
    *count - 1
}
