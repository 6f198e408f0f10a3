//! The state of a run: builds the parts that a scenario describes, and lets events happen until the end.

use roce_model::FlowKey;
use roce_wire::{Qpn, Service};

use crate::Error;
use crate::counters::Counters;
use crate::dcqcn::NotificationPoint;
use crate::engine::events::{EndpointId, Event, Events};
use crate::engine::log::{FlowCount, Log};
use crate::network::host::HostState;
use crate::network::identification::Identifier;
use crate::network::impair::ImpairmentState;
use crate::network::packet::Pool;
use crate::network::pause::Drain;
use crate::network::spray::SprayState;
use crate::network::switch::SwitchState;
use crate::network::topology::{Topology, number};
use crate::record::observer::{Observer, Output};
use crate::scenario::{Scenario, SourcePort};
use crate::units::Picos;
use crate::workload::connect::{Builder, Connection};
use crate::workload::endpoint::Endpoint;
use crate::workload::nccl::{NcclJob, PostedWrite};
use crate::workload::traffic::MessageSource;
use crate::workload::training::Job;

/// Everything there is, at one moment.
pub(crate) struct Simulation<'s> {
    pub scenario: &'s Scenario,
    pub now: Picos,
    pub events: Events<Event>,
    pub pool: Pool,
    pub topology: Topology,
    pub switches: Vec<SwitchState>,
    pub hosts: Vec<HostState>,
    pub ends: Vec<Endpoint>,
    pub connections: Vec<Connection>,
    pub sources: Vec<MessageSource>,
    pub jobs: Vec<Job>,
    /// Jobs with NCCL's messages, by their tables.
    pub nccl: Vec<Option<NcclJob>>,
    /// Writes of their proxy threads.
    pub postings: Vec<PostedWrite>,
    pub impairments: Vec<ImpairmentState>,
    /// The paths between hosts, if there are several.
    pub spray: Option<SprayState>,
    /// The end of the pause that a host keeps up of its own accord, for each of the scenario's tables.
    pub storms: Vec<Option<Picos>>,
    pub observer: Observer,
    pub log: Log,
    /// Readings of all ports' counters.
    pub counters: Counters,
    /// The flows: those of all ends, then those of queue pair 1.
    pub keys: Vec<FlowKey>,
    /// Pairs of hosts that exchange messages of the connection manager; their flows follow those of the ends.
    management: Vec<(u32, u32)>,
}

impl<'s> Simulation<'s> {
    /// Builds everything and plans the first events.
    pub(crate) fn new(scenario: &'s Scenario, outputs: Vec<(String, Output)>) -> Result<Self, Error> {
        let topology = Topology::new(scenario)?;
        let mut builder = Builder::new(scenario);
        for table in 0..scenario.flow.len() {
            builder.flows(&topology, table)?;
        }
        let (jobs, nccl) = train(scenario, &topology, &mut builder)?;
        let mut simulation = Self {
            scenario,
            now: Picos::ZERO,
            events: Events::default(),
            pool: Pool::default(),
            switches: (0..topology.switches.len())
                .map(|place| SwitchState::new(scenario.seed, place))
                .collect(),
            hosts: (0..topology.hosts.len())
                .map(|place| {
                    let dcqcn = &scenario.dcqcn;
                    let notification = NotificationPoint::new(dcqcn.interval(), dcqcn.cnp_scope);
                    HostState::new(notification, Identifier::new(scenario, place))
                })
                .collect(),
            topology,
            ends: builder.ends,
            connections: builder.connections,
            sources: builder.sources,
            jobs,
            nccl,
            postings: Vec::new(),
            impairments: (0..scenario.impairment.len())
                .map(|place| ImpairmentState::new(scenario.seed, place))
                .collect(),
            spray: scenario
                .network
                .spray
                .map(|table| SprayState::new(table, scenario.seed)),
            storms: vec![None; scenario.pause.len()],
            observer: Observer::default(),
            log: Log::default(),
            counters: Counters::default(),
            keys: Vec::new(),
            management: Vec::new(),
        };
        simulation.name_flows();
        let flows = simulation.keys.len();
        simulation.log.flows = vec![FlowCount::default(); flows];
        simulation.observer = Observer::new(scenario, flows, outputs)?;
        simulation.plan()?;
        Ok(simulation)
    }

    fn name_flows(&mut self) {
        for end in 0..number(self.ends.len()) {
            self.keys.push(self.flow_key(EndpointId(end)));
        }
        for connection in 0..self.connections.len() {
            if self.table(connection).is_some_and(|table| table.cm) {
                let (a, b) = (self.ends[connection * 2].host, self.ends[connection * 2 + 1].host);
                for pair in [(a, b), (b, a)] {
                    if !self.management.contains(&pair) {
                        self.management.push(pair);
                    }
                }
            }
        }
        for (from, to) in self.management.clone() {
            self.keys.push(FlowKey {
                source: self.topology.hosts[from as usize].address,
                destination: self.topology.hosts[to as usize].address,
                destination_qpn: Qpn::GENERAL_SERVICES,
                source_qpn: Qpn::GENERAL_SERVICES,
                vlan: self.scenario.network.vlan,
                vni: None,
                service: Service::Ud,
            });
        }
    }

    /// The flow of queue pair 1 from one host to another.
    pub(crate) fn management_flow(&self, from: u32, to: u32) -> u32 {
        let place = self.management.iter().position(|pair| *pair == (from, to));
        place.map_or(u32::MAX, |place| number(self.ends.len() + place))
    }

    /// The host that a flow comes from, and the one that it goes to.
    pub(crate) fn hosts_of_flow(&self, flow: u32) -> Option<(u32, u32)> {
        match self.ends.get(flow as usize) {
            Some(own) => Some((own.host, self.ends[EndpointId(flow).peer().index()].host)),
            None => self
                .management
                .get((flow as usize).checked_sub(self.ends.len())?)
                .copied(),
        }
    }

    fn plan(&mut self) -> Result<(), Error> {
        for place in 0..number(self.connections.len()) {
            let connection = &self.connections[place as usize];
            self.events
                .at(connection.opens, Event::Open { connection: place });
            if let Some(closes) = connection.closes {
                self.events.at(closes, Event::Replace { connection: place });
            }
        }
        for (place, table) in self.scenario.training.iter().enumerate() {
            // A step begins when its queue pairs are open.
            let begin = table.begin.plus(Picos(1));
            self.events.at(begin, Event::Train { job: number(place) });
        }
        for (place, table) in self.scenario.pause.iter().enumerate() {
            self.topology.host(&table.host)?;
            self.events
                .at(table.begin, Event::StormBegin { storm: number(place) });
        }
        for table in &self.scenario.host {
            for host in self.topology.hosts_of(&table.name)? {
                if let (Some(policy), Some(state)) = (table.ip_id, self.hosts.get_mut(host as usize)) {
                    state.identifier.policy = policy;
                }
                if let (Some(rate), Some(state)) = (table.drain, self.hosts.get_mut(host as usize)) {
                    state.drain = Some(Drain {
                        rate,
                        xoff: table.xoff.0,
                        xon: table.xon.0,
                        level: 0,
                        since: Picos::ZERO,
                        pausing: false,
                    });
                }
            }
        }
        Ok(())
    }

    /// Lets everything happen.
    pub(crate) fn go(&mut self) {
        while let Some((time, event)) = self.events.next(self.scenario.duration) {
            self.now = time;
            self.happen(event);
            if self.observer.has_failed() {
                return;
            }
        }
        self.now = self.scenario.duration;
        self.close_accounts();
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { port, packet } => self.arrive(port, packet),
            Event::OutOfPath {
                switch,
                ingress,
                packet,
            } => self.forward(switch, ingress, packet),
            Event::Merge { port, packet } => self.merge(port, packet),
            Event::Sent { port } => self.sent(port),
            Event::PauseOver { port, class } => self.pause_over(port, class),
            Event::PauseRefresh { port, class } => self.refresh_pause(port, class),
            Event::Pace { host } => self.pace(host),
            Event::Timeout { end } => self.timeout(end),
            Event::Gap { end } => {
                self.ends[end.index()].gap_due = Picos::NEVER;
                self.look_for_gaps(end);
            }
            Event::RnrOver { end, wait } => {
                self.ends[end.index()].requester.ready(wait);
                self.kick(end);
            }
            Event::AckDelay { end } => self.release_ack(end),
            Event::Refill { end } => self.refill(end),
            Event::Post { source } => self.post(source),
            Event::Open { connection } => self.open(connection),
            Event::Replace { connection } => self.replace(connection),
            Event::ManagerRetry { connection, sent } => self.ask_again(connection, sent),
            Event::StormBegin { storm } => self.storm_begins(storm),
            Event::StormEnd { storm } => self.storm_ends(storm),
            Event::Drained { host } => self.drained(host),
            Event::Train { job } => self.begin_training(job),
            Event::Collective { job, event } => self.collective(job, event),
            Event::Computed { job, rank } => self.computed(job, rank),
            Event::Read => {
                self.read_counters();
                let next = self.now.plus(self.counters.every());
                if next < self.scenario.duration {
                    self.events.at(next, Event::Read);
                }
            }
        }
    }
}

/// All jobs, and what those with NCCL's messages have besides.
type Jobs = (Vec<Job>, Vec<Option<NcclJob>>);

/// The training jobs of a scenario, with the connections between their ranks.
fn train(scenario: &Scenario, topology: &Topology, builder: &mut Builder<'_>) -> Result<Jobs, Error> {
    let (mut jobs, mut nccl) = (Vec::new(), Vec::new());
    for (index, table) in scenario.training.iter().enumerate() {
        let hosts = topology.hosts_of(&table.ranks)?;
        let distinct: std::collections::BTreeSet<_> = hosts.iter().collect();
        if hosts.len() < 2 || distinct.len() != hosts.len() {
            return Err(Error::Scenario(format!(
                "training.{index}.ranks needs two hosts or more, each once"
            )));
        }
        if table.is_nccl() {
            let each = table.ranks_per_host as usize;
            let hosts: Vec<u32> = hosts
                .iter()
                .flat_map(|host| std::iter::repeat_n(*host, each))
                .collect();
            nccl.push(Some(NcclJob::new(scenario, index, &hosts, topology, builder)?));
            let ends = vec![Vec::new(); hosts.len()];
            jobs.push(Job::new(index, scenario.seed, &hosts, ends));
            continue;
        }
        nccl.push(None);
        let name = table.name.clone().unwrap_or_else(|| format!("training{index}"));
        let mut ends = Vec::new();
        for (rank, host) in hosts.iter().enumerate() {
            let next = (rank + 1) % hosts.len();
            let mut own = Vec::new();
            for _ in 0..table.qps {
                let pair = (*host, hosts[next]);
                let qpns = (builder.random_qpn(pair.0), builder.random_qpn(pair.1));
                let place = builder.connect(
                    topology,
                    None,
                    &name,
                    pair,
                    qpns,
                    table.psn,
                    SourcePort::default(),
                );
                builder.connections[place].rank = Some((number(index), number(next)));
                builder.connections[place].opens = table.begin;
                own.push(EndpointId(number(place * 2)));
            }
            ends.push(own);
        }
        jobs.push(Job::new(index, scenario.seed, &hosts, ends));
    }
    Ok((jobs, nccl))
}
