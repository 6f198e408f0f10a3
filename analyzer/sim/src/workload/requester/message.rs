//! Messages, their packets, and causes of retransmissions.

use crate::scenario::{Operation, Recovery};
use crate::units::Picos;

/// Cause of a retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trigger {
    Nak,
    ImpliedNak,
    Rnr,
    Timeout,
}

/// Why a requester has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// Its timer expired too often.
    Retries,
    /// Too many RNR NAKs in a row.
    RnrRetries,
    /// A fatal NAK.
    Refused,
    /// Its queue pair was destroyed.
    Destroyed,
}

/// A message that was posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// Its first PSN.
    pub first: u64,
    pub packets: u32,
    pub bytes: u64,
    pub operation: Operation,
    /// The traffic source that posted it and learns when it is done.
    pub source: u32,
}

impl Message {
    /// After its last PSN.
    pub(super) fn end(&self) -> u64 {
        self.first + u64::from(self.packets)
    }
}

/// A packet to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OutgoingPacket {
    pub seq: u64,
    /// PSNs that it takes.
    pub span: u32,
    pub operation: Operation,
    /// Length of its payload, or of the requested data of a READ.
    pub bytes: u64,
    /// Payload bytes of the whole message.
    pub message_bytes: u64,
    /// Place of its data in the message.
    pub offset: u64,
    pub index: u32,
    pub packets: u32,
    pub ack_request: bool,
    pub attempt: u16,
    /// Cause of the run of retransmissions that it starts.
    pub begins_run: Option<Trigger>,
}

/// Limits of the NIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub mtu: u64,
    pub window: u64,
    pub reads: u32,
    pub ack_every: u32,
    pub timeout: Picos,
    pub retries: u32,
    /// RNR NAKs in a row that it bears; `None`: any number.
    pub rnr_retries: Option<u32>,
    pub recovery: Recovery,
}
