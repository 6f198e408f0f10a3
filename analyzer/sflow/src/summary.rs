//! Results: estimates by agent and interface, and what is known of the samples themselves.

use std::fmt;

use roce_model::Period;
use roce_wire::{Address, Opcode};

use crate::datagram::Port;
use crate::interval::Estimate;

/// Address and part of an agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AgentKey {
    /// Its address; where it does not say it, that of the datagrams' sender.
    pub address: Address,
    /// Number of the part that numbers its datagrams by itself.
    pub sub_agent: u32,
}

impl fmt::Display for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        if self.sub_agent > 0 {
            write!(f, " sub-agent {}", self.sub_agent)?;
        }
        Ok(())
    }
}

/// Share of a class of packets in a larger one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ShareEstimate {
    /// Samples of the class.
    pub samples: u64,
    /// Samples of the larger one.
    pub of_samples: u64,
    /// The share, from 0 to 1; `None`: there is no sample of the larger one.
    pub share: Option<Estimate>,
}

/// Estimates about the packets of one place.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Estimates {
    /// Samples.
    pub samples: u64,
    /// Packets.
    pub packets: Estimate,
    /// Their bytes on the wire, FCS included.
    pub bytes: Estimate,
    /// RoCE among all packets.
    pub roce: ShareEstimate,
    /// Ultra Ethernet Transport among all packets.
    pub uet: ShareEstimate,
    /// CE marks among RoCE packets with data.
    pub marked: ShareEstimate,
    /// Not-ECT among RoCE packets with data: no switch can mark them.
    pub not_capable: ShareEstimate,
    /// CNPs among RoCE packets.
    pub cnps: ShareEstimate,
}

/// Place at an agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// All of it.
    All,
    /// Packets that came by an interface.
    Input(Port),
    /// Packets that went by an interface.
    Output(Port),
}

/// Share of an opcode in the RoCE packets of an agent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OpcodeShare {
    /// The opcode.
    pub opcode: Opcode,
    /// Its share.
    pub share: ShareEstimate,
}

/// Share of a pair of hosts in the RoCE packets of an agent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TalkerShare {
    /// Sender.
    pub source: Address,
    /// Receiver.
    pub destination: Address,
    /// Number of the agent in [`SampleSummary::agents`].
    pub agent: usize,
    /// Its share. The bounds include what the table of pairs may have mistaken.
    pub share: ShareEstimate,
    /// Its packets, by the share and the RoCE packets of the agent.
    pub packets: Estimate,
    /// Bytes on the wire that its samples stand for; `None`: some of its samples may be of other pairs.
    pub bytes: Option<f64>,
}

/// Counts of datagrams and samples of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SampleCounts {
    /// Datagrams, copies left out.
    pub datagrams: u64,
    /// Datagrams that are missing by their numbers.
    pub lost_datagrams: u64,
    /// Datagrams that came behind later ones.
    pub late_datagrams: u64,
    /// Datagrams that were here already.
    pub copies: u64,
    /// Times that the agent began to count again.
    pub restarts: u64,
    /// Samples of packets that were made and did not arrive, by their numbers.
    pub missing_samples: u64,
    /// Samples that the agent could not make.
    pub dropped_samples: u64,
    /// Samples of packets without the bytes of their first header, or of a link that is not known.
    pub without_header: u64,
    /// Samples of interfaces' counters, which are stepped over.
    pub counters: u64,
    /// Notes of discarded packets, which are stepped over.
    pub discarded: u64,
    /// Samples of unknown formats, which are stepped over.
    pub unknown: u64,
    /// Samples and datagrams that are not as the specification has them.
    pub broken: u64,
    /// Samples for which a table had no room.
    pub left_out: u64,
    /// Sources of samples.
    pub sources: u64,
    /// Sources whose count of packets, `sample_pool`, gives the totals.
    pub sources_by_pool: u64,
    /// Sources whose count of packets does not fit their samples, so that the rate gives the totals.
    pub sources_without_pool: u64,
    /// The lowest and the highest N of 1 in N.
    pub lowest_rate: u32,
    /// As above.
    pub highest_rate: u32,
    /// Times that the N of a source changed.
    pub rate_changes: u64,
}

/// Results of one agent.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentSummary {
    /// Who it is.
    pub key: AgentKey,
    /// Counts of what it sent.
    pub counts: SampleCounts,
    /// Packets are sampled as they come and as they go: all and each interface that they came by have the former alone.
    pub has_both_directions: bool,
    /// Estimates of all of it, of each input and of each output.
    pub places: Vec<(Place, Estimates)>,
    /// Opcodes, the most frequent first.
    pub opcodes: Vec<OpcodeShare>,
    /// The busiest pairs of hosts, the busiest first.
    pub talkers: Vec<TalkerShare>,
}

/// Results of all datagrams.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SampleSummary {
    /// Time from the first datagram to the last.
    pub period: Option<Period>,
    /// Datagrams, with those that are not as the specification has them.
    pub datagrams: u64,
    /// Datagrams whose beginning is not as the specification has it.
    pub broken_datagrams: u64,
    /// Datagrams of agents for which the table had no room.
    pub left_out: u64,
    /// Agents, by their addresses.
    pub agents: Vec<AgentSummary>,
    /// The busiest pairs of hosts, each by the agent that saw most of it.
    pub talkers: Vec<TalkerShare>,
}
