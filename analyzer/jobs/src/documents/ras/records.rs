//! Records of RAS's answers.

/// State of a rank, as RAS knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RasRankState {
    /// It answered.
    #[default]
    Answered,
    /// Its data are missing: it did not answer.
    Missing,
    /// RAS has given up on it after 60 s.
    Dead,
    /// It answered with an error.
    Failed,
}

/// Count of an operation that a rank has launched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RasCount {
    /// The operation; of text without its name `collective`.
    pub operation: String,
    /// Number of launches.
    pub launched: u64,
}

/// A rank of a communicator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RasRank {
    /// Its number in the communicator.
    pub rank: u32,
    /// Address or name of its host on the management network.
    pub host: Option<String>,
    /// Number of its process.
    pub process: Option<u32>,
    /// Its state.
    pub state: RasRankState,
    /// Counts of launches; empty where they are not listed.
    pub counts: Vec<RasCount>,
}

/// A communicator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RasCommunicator {
    /// Its hash.
    pub hash: u64,
    /// Number of its ranks. Text does not say it for each.
    pub size: Option<u32>,
    /// Ranks that are listed; text lists outliers only.
    pub ranks: Vec<RasRank>,
    /// Largest count of each operation.
    pub highest: Vec<RasCount>,
}

/// A process, without its rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RasProcess {
    /// Address or name of its host.
    pub host: String,
    /// Its number.
    pub process: u32,
    /// True if it is considered dead, and not only missing.
    pub is_dead: bool,
}

/// One answer to STATUS.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RasStatus {
    /// Local time in seconds since 1970, zone unknown.
    pub local_seconds: Option<i64>,
    /// Communicators.
    pub communicators: Vec<RasCommunicator>,
    /// Processes that did not answer, where text names no rank.
    pub absent: Vec<RasProcess>,
}

/// One event of MONITOR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RasEvent {
    /// Local time in seconds since 1970, zone unknown.
    pub local_seconds: Option<i64>,
    /// Its name: `PEER_DEAD`.
    pub name: String,
    /// The process that it is about.
    pub host: Option<String>,
    /// Number of this process.
    pub process: Option<u32>,
}

/// Answers and events of one file, in its order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RasAnswers {
    /// Answers to STATUS.
    pub statuses: Vec<RasStatus>,
    /// Events.
    pub events: Vec<RasEvent>,
    /// Answers and events that found no room.
    pub left_out: u64,
}

/// Operations of a communicator that are kept: NCCL counts five.
const MAX_OPERATIONS: usize = 64;

impl RasCommunicator {
    /// Notes a count of some rank.
    pub(super) fn note(&mut self, operation: &str, launched: u64) {
        let has_room = self.highest.len() < MAX_OPERATIONS;
        match self.highest.iter_mut().find(|count| count.operation == operation) {
            Some(count) => count.launched = count.launched.max(launched),
            None if has_room => self.highest.push(RasCount {
                operation: operation.to_owned(),
                launched,
            }),
            None => {}
        }
    }
}
