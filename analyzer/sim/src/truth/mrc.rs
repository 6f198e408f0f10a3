//! The truth of MRC's connections: what was lost, trimmed and sent again, on which path and why.

use serde::{Deserialize, Serialize};

/// Cause of a retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MrcCause {
    /// A NACK, with its reason.
    Nack(u8),
    /// A SACK that showed a hole, beyond the reordering guard.
    Hole,
    /// The local ACK timeout.
    Timeout,
}

/// One direction of data between two queue pairs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MrcConnection {
    /// The name of its flow table.
    pub name: String,
    /// The side that sends data.
    pub requestor: MrcEnd,
    /// The other one.
    pub responder: MrcEnd,
    /// UDP destination port.
    pub udp_port: u16,
    /// PSN of the first packet.
    pub first_psn: u32,
    /// Packets sent for the first time.
    pub packets: u64,
    /// Messages that the sender knows to be complete.
    pub messages: u64,
    /// SACKs sent.
    pub sacks: u64,
    /// Transmissions that did not arrive, in the order of sending.
    pub losses: Vec<MrcLoss>,
    /// Transmissions that arrived trimmed, in the order of sending.
    pub trims: Vec<MrcTrim>,
    /// Transmissions that were not the first of their packet, in the order of sending.
    pub retransmissions: Vec<MrcRetransmission>,
    /// EVs that the sender left, in the order of time.
    pub left: Vec<MrcLeftPath>,
    /// Time at which the sender gave up.
    pub failed: Option<u64>,
}

/// An end of a connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MrcEnd {
    /// The host.
    pub host: String,
    /// Its address.
    pub address: String,
    /// Its queue pair.
    pub qpn: u32,
}

/// A path, as packets name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct MrcPathName {
    /// EV; 16 bits with IPv4.
    pub ev: u32,
    /// UDP source port of its packets.
    pub udp_source_port: u16,
    /// Flow label of its packets; 0 with IPv4.
    pub flow_label: u32,
    /// Plane, from 0.
    pub plane: u32,
    /// Number of the path on its plane, from 0.
    pub path: u32,
}

/// A transmission that did not arrive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MrcLoss {
    /// Time of sending.
    pub time: u64,
    /// PSN.
    pub psn: u32,
    /// Number of transmissions before.
    pub attempt: u16,
    /// Its path.
    pub path: MrcPathName,
    /// Place: `path`, `fabric`, `last-hop`, `port`.
    pub place: String,
    /// Taps that recorded its sending.
    pub sent_seen: Vec<String>,
    /// True if it was sent again, and the sender heard that this arrived.
    pub repaired: bool,
    /// True if the packets at the sender show that it was lost: when the receiver made a SACK that the sender heard, and in which the packet is
    /// missing, this transmission was older than any packet of its EV ever was on its arrival. Where no packet of the EV arrived, nobody knows
    /// how long its path takes: it may have been late.
    pub shown: bool,
}

/// A transmission that arrived trimmed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MrcTrim {
    /// Time of sending.
    pub time: u64,
    /// PSN.
    pub psn: u32,
    /// Number of transmissions before.
    pub attempt: u16,
    /// Its path.
    pub path: MrcPathName,
    /// Reason: 1 in the fabric, 2 at the last hop.
    pub reason: u8,
    /// Taps that recorded its sending.
    pub sent_seen: Vec<String>,
    /// Taps that recorded its arrival.
    pub came_seen: Vec<String>,
    /// True if the NACK for it reached the sender.
    pub nacked: bool,
}

/// A transmission that was not the first of its packet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MrcRetransmission {
    /// Time of sending.
    pub time: u64,
    /// PSN.
    pub psn: u32,
    /// Number of transmissions before.
    pub attempt: u16,
    /// Its path.
    pub path: MrcPathName,
    /// Why.
    pub cause: MrcCause,
    /// False if a transmission before it arrived whole, sooner or later.
    pub needed: bool,
    /// Taps that recorded it where it was sent.
    pub sent_seen: Vec<String>,
}

/// An EV that a sender left.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MrcLeftPath {
    /// When.
    pub time: u64,
    /// The path.
    pub path: MrcPathName,
}
