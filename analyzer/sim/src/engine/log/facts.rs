//! The single facts of a run.

use std::collections::BTreeSet;

use crate::engine::events::{EndpointId, PortId};
use crate::network::packet::Kind;
use crate::units::Picos;
use crate::workload::account::WaitTotals;
use crate::workload::requester::Trigger;

/// Why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The queue or the buffer had no room.
    TailDrop,
    /// No room although the port's headroom was kept for it.
    Headroom,
    /// The link lost it.
    Random,
    /// It came with a wrong ICRC; the receiver dropped it.
    Icrc,
    /// Its port was paused for so long that the watchdog drops what comes.
    Watchdog,
}

/// A packet that was lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub time: Picos,
    pub flow: u32,
    pub kind: Kind,
    pub seq: u64,
    pub span: u32,
    pub psn: u32,
    pub attempt: u16,
    /// It begins a message: of a READ response, none came before it in the same answer.
    pub begins: bool,
    /// It ends a message.
    pub ends: bool,
    pub port: PortId,
    pub reason: Reason,
    /// Taps that it had passed, and those that had recorded it.
    pub passed: u64,
    pub recorded: u64,
    /// The NAK that named it.
    pub nak: Option<u32>,
}

/// A packet that others overtook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayedPacket {
    pub flow: u32,
    pub seq: u64,
    pub recorded: u64,
    pub nak: Option<u32>,
}

/// A duplicate that the network made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duplicate {
    /// Arrival at the other end of the link that made it.
    pub time: Picos,
    pub flow: u32,
    pub kind: Kind,
    pub psn: u32,
    pub port: PortId,
    pub recorded: u64,
}

/// A packet that a queue marked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub time: Picos,
    pub flow: u32,
    pub kind: Kind,
    pub psn: u32,
    pub port: PortId,
    /// Taps that recorded the packet with its mark.
    pub recorded: u64,
}

/// A NAK or RNR NAK that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub time: Picos,
    /// The flow whose request it refuses.
    pub flow: u32,
    pub kind: Kind,
    pub seq: u64,
    pub psn: u32,
    pub received: Option<Picos>,
    pub recorded: u64,
}

/// A congestion notification that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification {
    pub time: Picos,
    pub received: Option<Picos>,
    /// The end that must slow down: its flow.
    pub slows: EndpointId,
    pub after_nak: bool,
    pub recorded: u64,
    /// Effect on the rate limit of the end.
    pub effect: Option<Effect>,
}

/// Effect of a congestion notification.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effect {
    pub cut: bool,
    /// The limit in bit/s.
    pub before: f64,
    pub after: f64,
    /// The last packet had waited for the limit.
    pub binding: bool,
}

/// A retransmitted request or READ response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetransmittedPacket {
    pub time: Picos,
    pub flow: u32,
    pub kind: Kind,
    pub seq: u64,
    pub span: u32,
    pub psn: u32,
    pub attempt: u16,
    /// Its run; of a READ response that of the request.
    pub run: u32,
    pub recorded: u64,
}

/// Packets retransmitted in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedRun {
    pub flow: u32,
    pub begin: Picos,
    pub end: Picos,
    pub seq: u64,
    pub psn: u32,
    pub packets: u64,
    pub bytes: u64,
    pub trigger: Trigger,
    /// Time at which the flow had sent the last packet before.
    pub silent_since: Picos,
}

/// A time in which a port was not allowed to send a class.
#[derive(Clone, Debug)]
pub(crate) struct PortPause {
    pub port: PortId,
    pub class: u8,
    pub begin: Picos,
    pub end: Option<Picos>,
    /// Why the neighbour sent the pause: a place in the log.
    pub cause: Option<u32>,
    /// Flows whose data waited at the port.
    pub waiting: BTreeSet<u32>,
}

/// A flow that sent nothing although it had something to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    pub flow: u32,
    pub begin: Picos,
    pub end: Picos,
    pub trigger: Option<Trigger>,
    pub paused: bool,
}

/// One step of a training job at one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankStep {
    pub job: u32,
    pub step: u32,
    pub rank: u32,
    pub compute: Picos,
    pub begin: Picos,
    pub end: Option<Picos>,
}

/// Data of a flow that took one of several equal-cost ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UplinkShare {
    pub packets: u64,
    pub bytes: u64,
    pub first: Picos,
    pub last: Picos,
}

/// Counts of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowCount {
    pub sent: u64,
    pub received: u64,
    pub lost: u64,
    pub data: u64,
    pub first_bytes: u64,
    pub retransmitted_packets: u64,
    pub retransmitted_bytes: u64,
    pub ce: u64,
    /// Marked data packets that brought no CNP because of the pacing interval.
    pub ce_paced: u64,
    pub not_ect: u64,
    pub messages: u64,
    pub first: Option<Picos>,
    pub last: Picos,
    pub last_data: Picos,
    pub first_data: Option<Picos>,
    /// Payload bytes sent and received in each millisecond.
    pub sent_by_ms: Vec<u64>,
    pub received_by_ms: Vec<u64>,
    /// Event that the sender waited for.
    pub waited: WaitTotals,
}
