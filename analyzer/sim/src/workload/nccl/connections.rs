//! Queue pairs and memory of a job's connections.

use std::collections::{HashMap, VecDeque};

use super::layout::LaneMemory;
use super::program::{Program, buffers};
use super::{Lane, LastTimes, NcclJob, Part, Rank, Worker};
use crate::Error;
use crate::engine::events::EndpointId;
use crate::engine::rng::Stream;
use crate::network::topology::{Topology, number};
use crate::record::frame::Credits;
use crate::scenario::{PsnChoice, Scenario, SourcePort};
use crate::workload::connect::Builder;

/// Numbers of connections for which memory has addresses at each host.
const MAX_LANES: usize = 1 << 13;
/// Operations of all GPUs in a step.
const MAX_OPERATIONS: u64 = 1 << 21;

impl NcclJob {
    /// The job of a table, whose rank n is on `hosts[n]`, with its connections.
    pub(crate) fn new(
        scenario: &Scenario,
        table_number: usize,
        hosts: &[u32],
        topology: &Topology,
        builder: &mut Builder<'_>,
    ) -> Result<Self, Error> {
        let table = scenario
            .training
            .get(table_number)
            .ok_or_else(|| Error::Scenario(format!("no training.{table_number}")))?;
        let wrong = |text: String| Err(Error::Scenario(format!("training.{table_number}: {text}")));
        let ranks = number(hosts.len());
        let late = table.late.iter().map(|late| late.rank);
        let mut named = late.chain(table.receiver.iter().map(|late| late.rank));
        if let Some(rank) = named.find(|rank| *rank >= ranks) {
            return wrong(format!("there is no rank {rank}: there are {ranks}, from 0"));
        }
        if Program::operations(table, ranks) > MAX_OPERATIONS {
            return wrong(format!(
                "there can be {MAX_OPERATIONS} slices of all ranks in a step"
            ));
        }
        let program = Program::new(table, ranks);
        if program.lanes.len() > MAX_LANES {
            return wrong(format!(
                "{} connections: there can be {MAX_LANES}",
                program.lanes.len()
            ));
        }
        let stream = |name: &str, place: usize| Stream::new(scenario.seed, name, table_number << 20 | place);
        let name = table
            .name
            .clone()
            .unwrap_or_else(|| format!("training{table_number}"));
        let mut sending: HashMap<u32, u64> = HashMap::new();
        let mut receiving: HashMap<u32, u64> = HashMap::new();
        let mut lanes = Vec::new();
        for ((place, plan), lengths) in program.lanes.iter().enumerate().zip(program.lengths()) {
            let at = |rank: u32| hosts.get(rank as usize).copied().unwrap_or(0);
            let pair = (at(plan.senders.first().copied().unwrap_or(0)), at(plan.receiver));
            let mut ends = Vec::new();
            for _ in 0..table.qps {
                let qpns = (builder.random_qpn(pair.0), builder.random_qpn(pair.1));
                let psn = PsnChoice::Zero;
                let port = SourcePort::default();
                let connection = builder.connect(topology, None, &name, pair, qpns, psn, port);
                builder.connections[connection].lane = Some((number(table_number), number(place)));
                builder.connections[connection].opens = table.begin;
                ends.push(EndpointId(number(connection * 2)));
            }
            let counts = (
                next(sending.entry(pair.0).or_default()),
                next(receiving.entry(pair.1).or_default()),
            );
            let offset = Stream::new(scenario.seed, "host memory", pair.0 as usize).below(1 << 12);
            let senders = &plan.senders[..plan.senders.len().min(Credits::MAX)];
            lanes.push(Lane {
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
                sender_stream: stream("nccl sender", place),
                receiver_stream: stream("nccl receiver", place),
            });
        }
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
            table: table_number,
            ranks: ranks.collect(),
            lanes,
            workers,
        })
    }
}

/// Counts one more; gives the number before.
fn next(count: &mut u64) -> u64 {
    *count += 1;
    *count - 1
}
