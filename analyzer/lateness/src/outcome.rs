//! Who was late in a job, and what that cost.

use roce_model::{CollectiveWaitRow, Confidence, Time, WaitReason};
use roce_wire::Address;

/// A rank of a job, or a host's port where nothing distinguishes its ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct JobRank {
    /// Address of its port.
    pub host: Address,
    /// Rank in the topmost communicator, where credits or a log name it.
    pub number: Option<u32>,
}

/// Part of a rank that began late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LateStart {
    /// Its receives were posted in time: data of its GPU came late.
    Gpu,
    /// Its receives were posted late, too: its host was late.
    Host,
    /// Receives are posted when a rank begins, or their credits are not captured: nothing distinguishes the two.
    Unclear,
}

/// Kind and place of a late thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LateKind {
    /// A rank began collectives late.
    Start(JobRank, LateStart),
    /// A rank sent late, although it had its credits and its input.
    Sender(JobRank),
    /// A rank gave credits late, although it had used its buffers.
    Receiver(JobRank),
    /// A rank was late in more than one of these.
    Rank(JobRank),
    /// Packets between two hosts were slow, in one direction or both.
    Way(Address, Address),
    /// Packets from and to a host's port were slow.
    Port(Address),
    /// Seen from one side alone: the data of a rank came late. The cause is there or before it.
    Before(JobRank),
    /// Seen from one side alone: the credits of a rank came late. The cause is there or behind it.
    Behind(JobRank),
}

/// A late thing that a job waited for.
#[derive(Clone, PartialEq, Debug)]
pub struct LateRoot {
    /// Its kind and place.
    pub kind: LateKind,
    /// Time by which the job would have ended earlier.
    pub cost_ns: u64,
    /// Part of the job's time in the capture.
    pub share: f64,
    /// Median length by which the collectives that it made longer would have been shorter.
    pub typical_ns: u64,
    /// Number of collectives that it made longer.
    pub collectives: u32,
    /// Start of the first of them.
    pub first_time: Time,
    /// End of the last of them.
    pub last_time: Time,
    /// Messages of its ways that were retransmitted.
    pub retransmitted_messages: u64,
    /// Confidence in it.
    pub confidence: Confidence,
}

/// A rank that waited for another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankWait {
    /// The rank that waited.
    pub rank: JobRank,
    /// The rank that it waited for.
    pub waits_for: JobRank,
    /// Why.
    pub reason: WaitReason,
    /// For how long, over all collectives.
    pub wait_ns: u64,
}

/// Lateness in one job: connections whose messages are counted together.
#[derive(Clone, PartialEq, Debug)]
pub struct JobLateness {
    /// Its ranks.
    pub ranks: Vec<JobRank>,
    /// Those of them that have a tap beside them.
    pub captured: Vec<JobRank>,
    /// Number of collectives. 0 if nothing shows where one ends and the next begins.
    pub collectives: u32,
    /// First packet of its messages.
    pub first_time: Time,
    /// Last packet of its messages.
    pub last_time: Time,
    /// Messages, without those that are left out.
    pub messages: u64,
    /// Messages that are left out, since a record of them is missing.
    pub left_out: u64,
    /// Collectives of which so many messages are left out that nothing is said about them.
    pub unclear_collectives: u32,
    /// True if every connection of the job is captured at one end, at least.
    pub is_whole: bool,
    /// Roots in the order of their price.
    pub roots: Vec<LateRoot>,
    /// Who waited for whom, the longest waits first.
    pub waits: Vec<RankWait>,
    /// Each rank in each collective.
    pub rows: Vec<CollectiveWaitRow>,
}

/// Where the time of one connection went.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ConnectionTimes {
    /// Time in which a credit was there and the sender sent nothing, in nanoseconds.
    pub sender_late_ns: u64,
    /// Time in which no credit was there, in nanoseconds.
    pub receiver_late_ns: u64,
    /// Time by which messages were under way for longer than is usual, and that they waited behind others of the port,
    /// in nanoseconds.
    pub network_late_ns: u64,
    /// Time in which messages were under way, in nanoseconds.
    pub transfer_ns: u64,
    /// Time between two collectives, in nanoseconds.
    pub rest_ns: u64,
    /// Time around messages that are left out, in nanoseconds.
    pub unknown_ns: u64,
}

/// Lateness in all jobs of a capture.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lateness {
    /// The jobs.
    pub jobs: Vec<JobLateness>,
    /// Where the time of each connection went, in the order of the input.
    pub connections: Vec<ConnectionTimes>,
}
