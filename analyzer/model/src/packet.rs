//! Decoded packets on their way to the analysis, in batches.

use roce_wire::{Pause, Psn, Qpn, Roce};

use crate::{Nanos, TapId};

/// One RoCE packet as one tap saw it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Packet {
    /// When it was captured.
    pub time: Nanos,
    /// Where it was captured.
    pub tap: TapId,
    /// Its frame's length on the wire, in bytes, without FCS.
    pub wire_bytes: u32,
    /// A hash of what the links change and a sender repeats: link addresses, interface, direction and TTL.
    /// Two sightings of one packet differ in it; a packet sent twice does not.
    pub path: u16,
    /// Whether a header was cut by the snaplen.
    pub cut: bool,
    /// Whether its ICRC was checked, and was right.
    pub icrc: Option<bool>,
    /// What it says.
    pub roce: Roce,
}

/// A pause frame in the stream: it comes before the packet at `before`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PauseFrame {
    /// The index in [`PacketBatch::packets`] that it precedes.
    pub before: usize,
    /// When it was captured.
    pub time: Nanos,
    /// Where.
    pub tap: TapId,
    /// What it says.
    pub pause: Pause,
}

/// A connection manager's message, carried by the packet at `packet`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Management {
    /// The index in [`PacketBatch::packets`] of the packet that carried it.
    pub packet: usize,
    /// Which message: REQ, REP, RTU, REJ, DREQ, DREP, MRA.
    pub name: &'static str,
    /// REQ and REP: the sender's queue pair of the connection.
    pub local_qpn: Option<Qpn>,
    /// REQ and REP: the PSN with which the sender's requests begin.
    pub starting_psn: Option<Psn>,
}

/// The capture, or the mirror in front of it, says that records are missing here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostRecords {
    /// The index in [`PacketBatch::packets`] before which they are missing.
    pub before: usize,
    /// When the next record was captured.
    pub time: Nanos,
    /// Where.
    pub tap: TapId,
    /// How many; 0 when another part of the run reports them.
    pub records: u64,
    /// The sequence numbers of a mirror session say so, not the capture.
    pub by_mirror: bool,
}

/// Some hundred packets in time order, with what happened between them.
#[derive(Clone, Default, Debug)]
pub struct PacketBatch {
    /// The packets.
    pub packets: Vec<Packet>,
    /// Pause frames between them, by position.
    pub pauses: Vec<PauseFrame>,
    /// Connection manager messages among them, by position.
    pub management: Vec<Management>,
    /// Losses of the capture between them, by position.
    pub lost: Vec<LostRecords>,
}

impl PacketBatch {
    /// Empties it, keeping its room.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.pauses.clear();
        self.management.clear();
        self.lost.clear();
    }
}
