//! Messages, the packets made of them, and why packets are sent again.

use crate::scenario::{Operation, Recovery};
use crate::units::Time;

/// Why packets were sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trigger {
    Nak,
    ImpliedNak,
    Rnr,
    Timeout,
}

/// A message that was posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// Its first PSN.
    pub first: u64,
    pub packets: u32,
    pub bytes: u64,
    pub operation: Operation,
    /// The traffic source that posted it, to be told when it is done.
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
pub(crate) struct Outgoing {
    pub seq: u64,
    /// PSNs that it takes.
    pub span: u32,
    pub operation: Operation,
    /// Its payload; of a READ the length that it asks for.
    pub bytes: u64,
    /// Of the whole message.
    pub message_bytes: u64,
    /// Place of its data in the message.
    pub offset: u64,
    pub index: u32,
    pub packets: u32,
    pub ack_request: bool,
    pub attempt: u16,
    /// It is the first of a resend run.
    pub begins_run: Option<Trigger>,
}

/// What the NIC allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub mtu: u64,
    pub window: u64,
    pub reads: u32,
    pub ack_every: u32,
    pub timeout: Time,
    pub retries: u32,
    pub recovery: Recovery,
}
