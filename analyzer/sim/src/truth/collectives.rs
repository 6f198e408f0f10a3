//! Collectives of jobs with NCCL's messages: each message from its credit to its ACK, each step with its cost and what was injected.

use serde::{Deserialize, Serialize};

/// A job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Collective {
    /// Its name.
    pub job: String,
    /// The host of each rank.
    pub hosts: Vec<String>,
    /// Connections: data one way, credits the other.
    pub lanes: Vec<Lane>,
    /// Steps that all ranks have ended.
    pub steps: Vec<CollectiveStep>,
    /// Messages, by their lane and number.
    pub messages: Vec<Message>,
}

/// A connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lane {
    /// Its number.
    pub lane: u32,
    /// Ranks that send: one, or several of a host.
    pub senders: Vec<u32>,
    /// The rank that receives.
    pub receiver: u32,
    /// The channel.
    pub channel: u32,
    /// Credits that it has at once.
    pub credits: u64,
    /// Queue pairs of the sender, and those of the receiver.
    pub sender_qpns: Vec<u32>,
    /// The peer of each of the sender's queue pairs.
    pub receiver_qpns: Vec<u32>,
    /// Flows of the data.
    pub data_flows: Vec<String>,
    /// The flow of the credits, in which ACKs of the data are, too.
    pub credit_flow: String,
}

/// A message and its credit. Times of packets are when the first bit leaves the port and when the last bit has come.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The lane.
    pub lane: u32,
    /// Its number in the lane, from 0.
    pub number: u64,
    /// The step.
    pub step: u32,
    /// Bytes of data of all senders together.
    pub bytes: u64,
    /// The address in the ring that its credit is written to.
    pub ring_address: u64,
    /// The address in its credit.
    pub buffer_address: u64,
    /// The proxy thread posted the credit.
    pub credit_posted: Option<u64>,
    /// The credit left.
    pub credit_out: Option<u64>,
    /// The credit came.
    pub credit_in: Option<u64>,
    /// The sender's GPU had filled the buffer.
    pub filled: Option<u64>,
    /// The first packet left.
    pub first_out: Option<u64>,
    /// The last packet left, for the last time.
    pub last_out: Option<u64>,
    /// The first packet came.
    pub first_in: Option<u64>,
    /// All packets have come.
    pub last_in: Option<u64>,
    /// The last ACK came.
    pub acknowledged: Option<u64>,
    /// The receiver's GPU had used the buffer.
    pub used: Option<u64>,
}

/// A step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CollectiveStep {
    /// Its number, from 0.
    pub step: u32,
    /// The start of the kernel of each rank.
    pub kernel_start: Vec<u64>,
    /// The end of the kernel of each rank.
    pub kernel_end: Vec<u64>,
    /// From the last end of the step before, or the begin of the job, to its own last end.
    pub length_ns: u64,
    /// Its length less that of the run with the same seed and without injections.
    pub cost_ns: i64,
    /// Everything injected that was at work in it.
    pub roots: Vec<InjectedRoot>,
}

/// Something that makes a step longer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct InjectedRoot {
    /// `rank.late`, `receiver.late` or `network.late`.
    pub kind: String,
    /// The rank.
    pub rank: Option<u32>,
    /// Its host, or the host of the link.
    pub host: String,
    /// `gpu`, `host` or `receiver`; of a link the port before it, as losses name it.
    pub place: String,
}
