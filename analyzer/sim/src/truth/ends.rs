//! How connections ended, as their requesters know it.

use serde::{Deserialize, Serialize};

/// How a connection ended for the side that sent requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A fatal NAK came.
    Refused,
    /// RNR NAKs came without progress until its count of retries was used up.
    RnrExhausted,
    /// The timer expired until its count of retries was used up, and the peer had never answered.
    NeverAnswered,
    /// The timer expired until its count of retries was used up, after answers of the peer.
    RetriesUnanswered,
    /// Something was outstanding at the end of the run, was not sent again, and had waited for more than 4.096 us x 2^18.
    Silent,
    /// Nothing was outstanding at the end of the run.
    Closed,
    /// Something was outstanding at the end of the run, or when the queue pair was destroyed.
    Unfinished,
}

impl Outcome {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::RnrExhausted => "rnr-exhausted",
            Self::NeverAnswered => "never-answered",
            Self::RetriesUnanswered => "retries-unanswered",
            Self::Silent => "silent",
            Self::Closed => "closed",
            Self::Unfinished => "unfinished",
        }
    }

    /// True if the connection carries nothing any more.
    pub fn has_failed(self) -> bool {
        !matches!(self, Self::Closed | Self::Unfinished)
    }
}

/// The end of a reliable connection, for one of its sides that sent requests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConnectionEnd {
    /// The connection: [`Connection::id`](super::Connection::id).
    pub connection: u32,
    /// The flow of the requests.
    pub flow_id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Time at which it had sent its last request, or READ response.
    pub last_sent: u64,
    /// PSN of the oldest request that was never acknowledged.
    pub psn: Option<u32>,
    /// How often that was sent again.
    pub repeats: u16,
}
