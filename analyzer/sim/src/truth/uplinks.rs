//! Equal-cost links: which of them each flow took, collisions, and the rate of each flow beside its fair share.

use serde::{Deserialize, Serialize};

/// The ports of one switch among which a hash of each packet's addresses and ports decides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct UplinkGroup {
    /// The switch.
    pub node: String,
    /// Its equal-cost ports.
    pub ports: Vec<Uplink>,
    /// Ports that flows share while another one has half of their bytes or less.
    pub collisions: Vec<Collision>,
}

/// One of several equal-cost ports.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Uplink {
    /// The port: `leaf1->spine1`.
    pub place: String,
    /// Rate of its link, in bit/s.
    pub rate_bps: u64,
    /// Bytes of data frames that took it, without FCS.
    pub bytes: u64,
    /// The flows that took it.
    pub flows: Vec<UplinkFlow>,
}

/// Data of a flow that took one of several equal-cost ports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UplinkFlow {
    /// The flow.
    pub flow_id: String,
    /// Frames.
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// Time of the first one.
    pub begin: u64,
    /// Time of the last one.
    pub end: u64,
}

/// Flows that share a port while another equal-cost port is idle, or has half of its bytes or less.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Collision {
    /// The port that they share.
    pub place: String,
    /// The flows, each with a twentieth of the port's bytes or more.
    pub flows: Vec<String>,
    /// The equal-cost port with the fewest bytes.
    pub other: String,
    /// Bytes of both.
    pub bytes: u64,
    /// Bytes of the other port.
    pub other_bytes: u64,
    /// It costs something: by their links' rates, one of the flows would have a tenth more if all equal-cost ports were one link.
    pub costs: bool,
}

/// The rate of a flow and what it could be, of application data in bit/s. Shares are max-min fair, over the rates of all links on
/// its path, as if all flows sent all the time; an application's or a configured limit counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FairRate {
    /// The flow.
    pub flow_id: String,
    /// The rate that it reached, from its first to its last data packet.
    pub reached_bps: u64,
    /// Its fair share of the links that it took.
    pub path_bps: u64,
    /// Its fair share if equal-cost ports were one link with the rate of all.
    pub fair_bps: u64,
}
