//! Connections: which queue pairs there are, with what numbers, and when they come and go.
//!
//! `manager` has the messages of the connection manager before that.

mod steps;

use std::collections::{HashSet, VecDeque};

use roce_wire::{Ecn, Psn, Qpn};

use crate::Error;
use crate::dcqcn::ReactionPoint;
use crate::engine::events::EndpointId;
use crate::engine::rng::Stream;
use crate::network::topology::{Topology, number};
use crate::record::frame::udp_source_port;
use crate::scenario::{
    Direction, DuplicateAck, FlowTable, Pattern, PsnChoice, QpnChoice, Scenario, ServiceName, SourcePort,
    SourcePortName,
};
use crate::units::Picos;
use crate::workload::account::Account;
use crate::workload::activity::Timeline;
use crate::workload::endpoint::{Endpoint, QueueState};
use crate::workload::gaps::Patience;
use crate::workload::requester::{Limits, Requester};
use crate::workload::responder::Responder;
use crate::workload::traffic::MessageSource;

/// A connection, or a sender and a receiver of datagrams: ends 2 n and 2 n + 1.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The flow table that it comes from; none for training jobs.
    pub table: Option<usize>,
    pub name: String,
    /// The training job and the rank that receives.
    pub rank: Option<(u32, u32)>,
    /// The job with NCCL's messages, and the connection in it.
    pub lane: Option<(u32, u32)>,
    pub sources: Vec<u32>,
    pub opens: Picos,
    pub closes: Option<Picos>,
    /// Number of REQs sent.
    pub requests: u32,
    /// The active side may send.
    pub established: bool,
}

/// Makes connections.
pub(crate) struct Builder<'s> {
    scenario: &'s Scenario,
    pub ends: Vec<Endpoint>,
    pub connections: Vec<Connection>,
    pub sources: Vec<MessageSource>,
    numbers: Stream,
    used: Vec<HashSet<u32>>,
}

/// Time from the end of a queue pair to the reuse of its number.
const REUSE_GAP: Picos = Picos::from_nanos(100_000);

impl<'s> Builder<'s> {
    pub(crate) fn new(scenario: &'s Scenario) -> Self {
        Self {
            scenario,
            ends: Vec::new(),
            connections: Vec::new(),
            sources: Vec::new(),
            numbers: Stream::new(scenario.seed, "numbers", 0),
            used: vec![HashSet::new(); scenario.network.hosts as usize],
        }
    }

    /// All connections of a flow table.
    pub(crate) fn flows(&mut self, topology: &Topology, index: usize) -> Result<(), Error> {
        let Some(table) = self.scenario.flow.get(index) else {
            return Ok(());
        };
        let from = topology.hosts_of(&table.from)?;
        let to = match table.pattern {
            Pattern::Ring => from.clone(),
            _ => topology.hosts_of(&table.to)?,
        };
        let name = table.name.clone().unwrap_or_else(|| format!("flow{index}"));
        for (a, b) in pairs(table.pattern, &from, &to) {
            for _ in 0..table.qps {
                self.flow(topology, table, index, &name, (a, b));
            }
        }
        Ok(())
    }

    fn flow(&mut self, topology: &Topology, table: &FlowTable, index: usize, name: &str, hosts: (u32, u32)) {
        let (a, b) = hosts;
        let qpns = match table.qpn {
            QpnChoice::Random => (self.random_qpn(a), self.random_qpn(b)),
            QpnChoice::Sequential => (self.next_qpn(a), self.next_qpn(b)),
            QpnChoice::Same => {
                let qpn = self.common_qpn(a, b);
                (qpn, qpn)
            }
        };
        let jitter = Picos(self.numbers.below(table.jitter.0.saturating_add(1)));
        let opens = table.begin.plus(jitter);
        let connection = self.connect(
            topology,
            Some(table),
            name,
            hosts,
            qpns,
            table.psn,
            table.source_port,
        );
        self.connections[connection].table = Some(index);
        self.connections[connection].opens = opens;
        self.connections[connection].closes = table.reuse;
        self.feed(table, connection);
        if let Some(reuse) = table.reuse {
            let next = self.connect(
                topology,
                Some(table),
                name,
                hosts,
                qpns,
                table.psn,
                table.source_port,
            );
            self.connections[next].table = Some(index);
            self.connections[next].opens = reuse.plus(REUSE_GAP).max(opens);
            self.feed(table, next);
        }
    }

    /// The traffic sources of a connection.
    fn feed(&mut self, table: &FlowTable, connection: usize) {
        let stop = table.end.unwrap_or(Picos::NEVER);
        let a = number(connection * 2);
        let ends = match table.direction {
            Direction::Forward => vec![a],
            Direction::Both => vec![a, a + 1],
        };
        for end in ends {
            let stream = Stream::new(self.scenario.seed, "traffic", end as usize);
            self.connections[connection]
                .sources
                .push(number(self.sources.len()));
            self.sources.push(MessageSource::new(
                table,
                EndpointId(end),
                self.scenario.nic.mtu,
                stop,
                stream,
            ));
        }
    }

    /// A connection between two hosts. Returns its place.
    #[expect(clippy::too_many_arguments, reason = "each is one choice of the scenario")]
    pub(crate) fn connect(
        &mut self,
        topology: &Topology,
        table: Option<&FlowTable>,
        name: &str,
        (a, b): (u32, u32),
        qpns: (Qpn, Qpn),
        psn: PsnChoice,
        port: SourcePort,
    ) -> usize {
        let ports = match port {
            SourcePort::Named(SourcePortName::Kernel) => {
                let port = udp_source_port(qpns.0, qpns.1);
                (port, port)
            }
            SourcePort::Named(SourcePortName::Random) => (self.random_port(), self.random_port()),
            SourcePort::Fixed(port) => (port, port),
        };
        let psns = match psn {
            PsnChoice::Zero => (0, 0),
            PsnChoice::Random => (self.random_24(), self.random_24()),
        };
        let dscp = table.and_then(|t| t.dscp).unwrap_or(self.scenario.nic.dscp);
        let reverse = table.and_then(|t| t.reverse_dscp).unwrap_or(dscp);
        for (host, qpn, psn, port, dscp) in [
            (a, qpns.0, psns.0, ports.0, dscp),
            (b, qpns.1, psns.1, ports.1, reverse),
        ] {
            let end = self.end(topology, table, host, qpn, psn, port, dscp);
            self.ends.push(end);
        }
        self.connections.push(Connection {
            table: None,
            name: name.to_owned(),
            rank: None,
            lane: None,
            sources: Vec::new(),
            opens: Picos::ZERO,
            closes: None,
            requests: 0,
            established: false,
        });
        self.connections.len() - 1
    }

    #[expect(clippy::too_many_arguments, reason = "each is one number of the end")]
    fn end(
        &self,
        topology: &Topology,
        table: Option<&FlowTable>,
        host: u32,
        qpn: Qpn,
        psn: u32,
        source_port: u16,
        dscp: u8,
    ) -> Endpoint {
        let (nic, dcqcn) = (&self.scenario.nic, &self.scenario.dcqcn);
        let limits = Limits {
            mtu: u64::from(nic.mtu),
            window: nic.window.0,
            reads: nic.outstanding_reads,
            ack_every: nic.ack_every,
            timeout: nic.timeout,
            retries: nic.retries,
            rnr_retries: nic.rnr_retries,
            recovery: nic.recovery,
        };
        let port = topology.hosts[host as usize].port;
        let line = topology.ports[port.index()].rate.bits();
        let reacts = table.and_then(|t| t.react).unwrap_or(dcqcn.react);
        let ecn = table.and_then(|t| t.ecn).unwrap_or(dcqcn.ecn);
        let receives = table.and_then(|t| t.receives);
        let mut requester = Requester::new(limits);
        let mut responder = Responder::new(nic.recovery, nic.ack_coalesce, receives);
        responder.acknowledges_all = nic.duplicate_ack == DuplicateAck::Always;
        if nic.out_of_order {
            let patience = Patience {
                after: nic.ooo_nak_after,
                packets: nic.ooo_nak_packets.map(u64::from),
            };
            requester.in_any_order(patience);
            responder.in_any_order(patience);
        }
        Endpoint {
            host,
            qpn,
            first_psn: Psn::new(psn),
            source_port,
            service: table.map_or(ServiceName::Rc, |t| t.service),
            dscp,
            ecn: if ecn { Ecn::Ect0 } else { Ecn::NotEct },
            requester,
            responder,
            jobs: VecDeque::new(),
            under_way: VecDeque::new(),
            answered: 0,
            reaction: reacts.then(|| ReactionPoint::new(dcqcn.parameters(), line)),
            rate_limit: table.and_then(|t| t.rate_limit),
            held_by_limit: false,
            held_by_dcqcn: false,
            account: Account::default(),
            activities: Timeline::default(),
            queued: QueueState::Idle,
            next_send: Picos::ZERO,
            open: false,
            closed: false,
            timer_armed: false,
            ack_armed: false,
            gap_due: Picos::NEVER,
            identification: 0,
            last_sent: Picos::ZERO,
            busy_since: None,
            fatal: table.and_then(|t| t.fatal),
            dies: table.and_then(|t| t.dies),
        }
    }

    /// A queue pair number that a host does not use yet.
    pub(crate) fn random_qpn(&mut self, host: u32) -> Qpn {
        loop {
            let qpn = self.random_24();
            if qpn >= 0x10 && self.used[host as usize].insert(qpn) {
                return Qpn::new(qpn);
            }
        }
    }

    fn next_qpn(&mut self, host: u32) -> Qpn {
        let used = &mut self.used[host as usize];
        let mut qpn = 0x11;
        while !used.insert(qpn) {
            qpn += 1;
        }
        Qpn::new(qpn)
    }

    fn common_qpn(&mut self, a: u32, b: u32) -> Qpn {
        let mut qpn = 0x11;
        while self.used[a as usize].contains(&qpn) || self.used[b as usize].contains(&qpn) {
            qpn += 1;
        }
        self.used[a as usize].insert(qpn);
        self.used[b as usize].insert(qpn);
        Qpn::new(qpn)
    }

    #[expect(clippy::cast_possible_truncation, reason = "below 2^24")]
    fn random_24(&mut self) -> u32 {
        self.numbers.below(1 << 24) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "below 2^14")]
    fn random_port(&mut self) -> u16 {
        0xc000 | self.numbers.below(1 << 14) as u16
    }
}

/// Pairs of sender and receiver.
pub(crate) fn pairs(pattern: Pattern, from: &[u32], to: &[u32]) -> Vec<(u32, u32)> {
    match pattern {
        Pattern::Cross => from
            .iter()
            .flat_map(|a| to.iter().map(|b| (*a, *b)))
            .filter(|(a, b)| a != b)
            .collect(),
        Pattern::Zip => from
            .iter()
            .copied()
            .zip(to.iter().copied())
            .filter(|(a, b)| a != b)
            .collect(),
        Pattern::Ring => (0..from.len())
            .map(|place| (from[place], from[(place + 1) % from.len()]))
            .filter(|(a, b)| a != b)
            .collect(),
    }
}
