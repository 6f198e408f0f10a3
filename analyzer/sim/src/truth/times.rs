//! Where the time of a flow went: its life at a tap, divided by what its sender did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state of a flow's sender: its work, or the reason for which it did not send. Where several hold, the first one counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeState {
    /// It sent nothing until its retransmission timer expired.
    Timeout,
    /// An RNR NAK forbade to send.
    Rnr,
    /// It had something to send, and the priority of its port was paused by PFC, or its port by 802.3x.
    Paused,
    /// It sent PSNs that it had sent before.
    Recovering,
    /// It sent at a rate that DCQCN had lowered, below seven eighths of its port's.
    Slowed,
    /// As much was outstanding as may be, by the window, by the number of READs, or by the messages that the application keeps open.
    Window,
    /// Everything was sent, and an answer came later than in a network without queues.
    Network,
    /// It sent as fast as its port, its share of the port, or its configured rate allows.
    Sending,
    /// Nothing was outstanding, and its receiver was waited for.
    Receiver,
    /// Nothing was outstanding, and its own host was waited for: it computed, or waited for data of a third one.
    Sender,
    /// It had nothing to send.
    Idle,
    /// Nothing tells.
    Unknown,
}

impl TimeState {
    /// All of them, in the order in which they win.
    pub const ALL: [Self; 12] = [
        Self::Timeout,
        Self::Rnr,
        Self::Paused,
        Self::Recovering,
        Self::Slowed,
        Self::Window,
        Self::Network,
        Self::Sending,
        Self::Receiver,
        Self::Sender,
        Self::Idle,
        Self::Unknown,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Rnr => "rnr",
            Self::Paused => "paused",
            Self::Recovering => "recovering",
            Self::Slowed => "slowed",
            Self::Window => "window",
            Self::Network => "network",
            Self::Sending => "sending",
            Self::Receiver => "receiver",
            Self::Sender => "sender",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }
}

/// The life of a flow at a tap, divided by what its sender did. Only flows that send requests have one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowTimes {
    /// The tap.
    pub tap: String,
    /// The flow.
    pub flow_id: String,
    /// Time of its first record, CNPs not counted.
    pub first_time: u64,
    /// Time of its last record.
    pub last_time: u64,
    /// Nanoseconds in each state. The sum is `last_time - first_time`.
    pub states: BTreeMap<TimeState, u64>,
    /// The parts of `states` that the definitions leave open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenTime>,
}

/// A part of a state that may as well be called otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenTime {
    /// The state that it is counted in.
    pub state: TimeState,
    /// The other states that fit.
    pub also: Vec<TimeState>,
    /// Its length.
    pub ns: u64,
}
