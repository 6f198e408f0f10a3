//! The truth of single transmissions: duplicated, late, retransmitted and lost ones, and the limits of a
//! flow.

use serde::{Deserialize, Serialize};

use super::{PacketKind, TriggerKind};

/// A packet that the network delivered a second time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Duplicate {
    /// Arrival of the second one at the end of the link that made it.
    pub time: u64,
    /// The flow.
    pub flow_id: String,
    /// The PSN.
    pub psn: u32,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// The link: `leaf1->h3`.
    pub place: String,
    /// Taps that recorded the second one.
    pub recorded_by: Vec<String>,
}

/// A duplicate of the network that a tap recorded. Where the tap had not recorded the packet itself, and its PSN was still
/// missing, it is no duplicate there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DuplicateAtTap {
    /// The flow.
    pub flow_id: String,
    /// The PSN.
    pub psn: u32,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Time of its record.
    pub time: u64,
}

/// A packet that a tap recorded after packets of its flow that had been sent later. Retransmissions and
/// duplicates are not late.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Late {
    /// The flow.
    pub flow_id: String,
    /// The PSN.
    pub psn: u32,
    /// A request, a READ response, an ACK or a NAK; each kind is compared with its own alone.
    pub kind: PacketKind,
    /// Time of its record.
    pub time: u64,
    /// PSNs between it and the highest one recorded before; for an ACK or NAK, between the PSNs that
    /// they cover.
    pub depth: u64,
    /// Time since the first packet beyond it was recorded, in nanoseconds; for an ACK or NAK, since the
    /// one that covers most.
    pub behind_ns: u64,
}

/// A retransmitted request or READ response.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Retransmission {
    /// Time of the retransmission.
    pub time: u64,
    /// The flow.
    pub flow_id: String,
    /// The PSN.
    pub psn: u32,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Number of transmissions before this one; READ responses: 1.
    pub attempt: u16,
    /// Reason why the sender fell back. For a READ response: the reason of its request's retransmission;
    /// none when the network duplicated the request.
    pub cause: Option<TriggerKind>,
    /// The place of its run in `retransmission_runs`. READ responses: that of their request.
    pub run: Option<u32>,
    /// Taps that recorded it.
    pub recorded_by: Vec<String>,
}

/// Place of a loss, as seen from a tap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossSide {
    /// Before it came to the tap.
    Before,
    /// Behind the tap: it had passed.
    Behind,
}

/// Evidence of a loss in the records of a tap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// A NAK that names the PSN was recorded.
    Nak,
    /// A READ request that begins with the PSN was recorded again, because later responses had come.
    ImpliedNak,
    /// The packet was recorded again as the first of a run by timeout.
    Timeout,
    /// No evidence of its own. It was retransmitted within a run that began at an earlier PSN, or not at
    /// all, or no record shows it.
    None,
}

/// Class that a tap can give a lost transmission. Taps that its flow does not pass are left out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LossAtTap {
    /// The tap.
    pub tap: String,
    /// Before the tap or behind it.
    pub side: LossSide,
    /// Recorded evidence.
    pub evidence: Evidence,
    /// It was retransmitted in a run that had begun at an earlier PSN, and would have been in any case.
    pub in_retransmission_window: bool,
    /// True if the tap's records alone prove the loss of this transmission. A NAK and an implied NAK do, if both directions
    /// can be paired, unless the packet had passed and the paths behind the tap may only have delayed it. A timeout does
    /// where the first transmission left a hole at the tap; behind the tap it may be the ACK that was lost. Of READ responses it
    /// does where one before in the same answer arrived: otherwise the request may have been lost. So may that of a READ which had been
    /// retransmitted, whatever shows it.
    pub decidable: bool,
}

/// Time that a sender waited for each limit, in nanoseconds of the run. The sum is the length of the
/// run, for each connection of the flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Limits {
    /// For its application: it had nothing to send.
    pub demand_ns: u64,
    /// For acknowledgements: its window was full, too many READs were outstanding, or an RNR NAK forbade to send.
    pub blocked_ns: u64,
    /// For DCQCN's reaction point: the binding limit.
    pub dcqcn_ns: u64,
    /// For its configured `rate_limit`.
    pub rate_limit_ns: u64,
    /// For the port: its share of it, and while its own packet before leaves.
    pub port_ns: u64,
    /// For the end of a pause.
    pub paused_ns: u64,
    /// `dcqcn_ns` in each millisecond of the run.
    pub dcqcn_ns_per_ms: Vec<u64>,
    /// `port_ns` in each millisecond of the run.
    pub port_ns_per_ms: Vec<u64>,
}
