//! Who waited for whom: flows that pauses stopped, the chain of paused ports, and its root.

use serde::{Deserialize, Serialize};

/// Kind of the root of pauses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseRootKind {
    /// More came in for a port than its link carries.
    Contention,
    /// A host takes packets more slowly than its link brings them.
    SlowReceiver,
    /// A host sends pauses of its own accord.
    PauseStorm,
    /// Paused ports wait for each other in a circle.
    Deadlock,
}

impl PauseRootKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contention => "contention",
            Self::SlowReceiver => "slow_receiver",
            Self::PauseStorm => "pause_storm",
            Self::Deadlock => "deadlock",
        }
    }
}

/// A flow that waited because of pauses with one root, in one stretch of time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PauseRoot {
    /// The flow that waited.
    pub flow_id: String,
    /// Begin of the first pause.
    pub begin: u64,
    /// End of the last pause.
    pub end: u64,
    /// Time in which the flow's port was paused in between.
    pub paused_ns: u64,
    /// Number of pauses.
    pub pauses: u64,
    /// The paused ports, from the one where the flow waited to the one next to the root.
    pub chain: Vec<PausedPort>,
    /// Kind of the root.
    pub kind: PauseRootKind,
    /// The root: the port whose queue is full (`leaf2->h5`), the port of the host that sends the pauses (`h5->leaf2`), or of a
    /// deadlock the first of its ports by name.
    pub root: String,
    /// Ports of the circle (deadlock).
    #[serde(default)]
    pub circle: Vec<String>,
    /// Contention: the flows whose bytes were in the root's queue when its pauses began, the largest first. Shares sum up to 1.
    pub shares: Vec<FlowShare>,
    /// The flow is among those that the root's queue holds or the root's host receives. Otherwise it is a victim.
    pub contributes: bool,
    /// Other roots that held the same pauses up for a tenth of their time or more.
    #[serde(default)]
    pub also: Vec<OtherRoot>,
}

/// A port that was not allowed to send.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PausedPort {
    /// The port: `leaf1->spine1`.
    pub place: String,
    /// Taps that recorded its pauses.
    pub recorded_by: Vec<String>,
}

/// The part of a queue that one flow had.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowShare {
    /// The flow.
    pub flow_id: String,
    /// Its share of the queue's bytes, 0 to 1.
    pub share: f64,
}

/// Another root of pauses.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct OtherRoot {
    /// Its kind.
    pub kind: PauseRootKind,
    /// Its port, as in [`PauseRoot::root`].
    pub root: String,
}
