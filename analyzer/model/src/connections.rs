//! Facts of connections that rules need beside the rows of their flows: how the connection manager made them, and how programs answer each
//! other's SENDs over them.

use roce_wire::management::cm::RejectReason;
use roce_wire::management::cm_req::ServiceId;
use roce_wire::{Address, Qpn};

use crate::{FlowId, TapId, Time};

/// The outcome of an attempt to make a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AttemptResult {
    /// Nothing was captured that answers it.
    #[default]
    Unanswered,
    /// A REP came.
    Connected,
    /// A REJ came, with this reason (IBTA 12.6.7.2).
    Rejected(RejectReason),
}

/// An attempt of the connection manager to make a connection: a REQ with its repeats, and its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionAttempt {
    /// The tap.
    pub tap: TapId,
    /// Who asks.
    pub source: Address,
    /// Who is asked.
    pub destination: Address,
    /// The queue pair of who asks.
    pub qpn: Qpn,
    /// The service that is asked for; `None`: the REQ was captured too short.
    pub service: Option<ServiceId>,
    /// REQs of it, with the repeats.
    pub requests: u32,
    /// The first REQ.
    pub first_time: Time,
    /// The last REQ.
    pub last_time: Time,
    /// The answer, or the last REQ.
    pub end_time: Time,
    /// How it was answered.
    pub result: AttemptResult,
}

/// Programs of the two ends of a connection that answer each other's SENDs, seen from the flow that asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProgramExchange {
    /// The tap.
    pub tap: TapId,
    /// The flow that asks.
    pub flow_id: FlowId,
    /// Who asks.
    pub source: Address,
    /// Who answers.
    pub destination: Address,
    /// The queue pair that is asked.
    pub qpn: Qpn,
    /// The queue pair that asks.
    pub own_qpn: Qpn,
    /// Its SENDs.
    pub asked: u64,
    /// Those of them that were answered before the next.
    pub answered: u64,
    /// Median time from a SEND to the message that answers it, in ns.
    pub answer_p50_ns: Option<u64>,
    /// The longest such time, in ns.
    pub answer_max_ns: Option<u64>,
    /// SENDs without an answer at the end, the program's, not the adapter's.
    pub pending: u32,
    /// The most SENDs that waited at once.
    pub most_pending: u32,
    /// When the oldest of those without an answer was sent.
    pub pending_time: Time,
    /// How long the adapter of the other end took to acknowledge the last SEND, in ns. `None`: it did not.
    pub acknowledged_ns: Option<u64>,
    /// Until when an answer could have been captured: the end of the connection, of its epoch, or of the capture.
    pub until: Time,
    /// True if the connection was closed in order (DREQ).
    pub is_closed: bool,
}
