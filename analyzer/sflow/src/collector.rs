//! All agents whose datagrams arrive, within bounds.

use std::collections::BTreeMap;
use std::net::IpAddr;

use roce_model::{Period, Time};
use roce_wire::Address;

use crate::agent::Agent;
use crate::datagram::{AgentAddress, Datagram, Fault};
use crate::summary::{AgentKey, SampleSummary};

/// Agents that are kept. Datagrams of further ones are left out, and counted.
const MAX_AGENTS: usize = 1_024;
/// Ways through all agents, each from one interface to another: 25 MB. Samples of further ones are left out, and counted.
const MAX_WAYS: usize = 65_536;

/// Datagrams become estimates.
#[derive(Clone, Debug)]
pub struct SampleCollector {
    agents: BTreeMap<AgentKey, Agent>,
    ways_left: usize,
    period: Option<Period>,
    datagrams: u64,
    broken: u64,
    left_out: u64,
}

impl Default for SampleCollector {
    fn default() -> Self {
        Self {
            agents: BTreeMap::new(),
            ways_left: MAX_WAYS,
            period: None,
            datagrams: 0,
            broken: 0,
            left_out: 0,
        }
    }
}

impl SampleCollector {
    /// Adds a datagram that `sender` sent and that arrived at `time`.
    ///
    /// # Errors
    /// The first place that is not as the specification has it. What could be read is added.
    pub fn add(&mut self, time: Time, sender: IpAddr, bytes: &[u8]) -> Result<(), Fault> {
        self.datagrams += 1;
        let datagram = Datagram::parse(bytes).inspect_err(|_| self.broken += 1)?;
        self.period.get_or_insert(Period::at(time)).include(time);
        let address = match datagram.agent {
            AgentAddress::Ip(address) => address,
            AgentAddress::Unknown => sender,
        };
        let key = AgentKey {
            address: Address::from(address),
            sub_agent: datagram.sub_agent,
        };
        if self.agents.len() >= MAX_AGENTS && !self.agents.contains_key(&key) {
            self.left_out += 1;
            return Ok(());
        }
        self.agents
            .entry(key)
            .or_default()
            .add(&datagram, &mut self.ways_left)
    }

    /// Datagrams, with those that are not as the specification has them.
    pub fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// The estimates, with `top` pairs of hosts of each agent and of all.
    pub fn summary(&self, top: usize) -> SampleSummary {
        let agents = self.agents.iter().enumerate();
        let agents: Vec<_> = agents
            .map(|(number, (key, agent))| agent.summary(*key, number, top))
            .collect();
        let mut pairs = BTreeMap::new();
        for talker in agents.iter().flat_map(|agent| &agent.talkers) {
            let most = pairs
                .entry((talker.source, talker.destination))
                .or_insert(*talker);
            if talker.packets.value > most.packets.value {
                *most = *talker;
            }
        }
        let mut talkers: Vec<_> = pairs.into_values().collect();
        talkers.sort_by(|one, other| other.packets.value.total_cmp(&one.packets.value));
        talkers.truncate(top);
        SampleSummary {
            period: self.period,
            datagrams: self.datagrams,
            broken_datagrams: self.broken,
            left_out: self.left_out,
            agents,
            talkers,
        }
    }
}
