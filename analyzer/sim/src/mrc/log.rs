//! Log of a run of MRC: each transmission of a packet and its fate.

use crate::mrc::receiver::Sack;
use crate::record::frame::MrcWrite;
use crate::truth::MrcCause;
use crate::units::Picos;

/// Result of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It was still on its way at the end.
    InFlight,
    /// It arrived whole.
    Arrived(Picos),
    /// It arrived trimmed.
    Trimmed(Picos),
    /// It was lost, and where.
    Lost(Picos, Place),
}

/// Place of a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// On its path, without a trace.
    Path,
    /// A queue in the fabric was full.
    Fabric,
    /// The queue before the receiver's port was full.
    LastHop,
    /// The receiver's port was down.
    Port,
}

/// One transmission of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub pair: u32,
    /// The packet's number, from 0.
    pub index: u64,
    pub attempt: u16,
    /// EV, and the path that it selects.
    pub ev: u32,
    pub plane: u32,
    pub path: u32,
    pub time: Picos,
    pub cause: Option<MrcCause>,
    /// Reason of a trim.
    pub trim: Option<u8>,
    /// A queue marked it.
    pub marked: bool,
    /// The path's receivers ask that a marked path is left.
    pub always_skip: bool,
    pub write: MrcWrite,
    pub fate: Fate,
    /// The NACK for it reached the sender.
    pub nacked: bool,
    /// Taps that recorded its sending, and its arrival: one bit each.
    pub sent_seen: u64,
    pub came_seen: u64,
}

/// A SACK that its sender heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardSack {
    pub pair: u32,
    /// When its receiver made it.
    pub made: Picos,
    pub sack: Sack,
}

/// Further facts about a queue pair.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PairLog {
    pub sacks: u64,
    pub penalised: u64,
    /// Time at which its sender gave up.
    pub failed: Option<Picos>,
    pub messages: u64,
}

/// An EV that a sender left for its losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeftPath {
    pub pair: u32,
    pub ev: u32,
    pub plane: u32,
    pub path: u32,
    pub time: Picos,
}
