//! Messages that their receiver asked for: the credits of NCCL's network transport, and the data that came for them.
//!
//! A receiver writes a credit ("clear to send", CTS) into a ring at the sender. The sender writes the data to the
//! address in it. Source: NCCL, `src/transport/net_ib.cc`, `ncclIbPostFifo` and `ncclIbIsend`.

use roce_wire::Address;

use crate::{FlowId, Time};

/// One connection of a communicator: data go one way, credits the other.
#[derive(Clone, PartialEq, Debug)]
pub struct CreditedConnection {
    /// The host that sends the data.
    pub sender: Address,
    /// The host that gives credits.
    pub receiver: Address,
    /// Rank of the sender in the topmost communicator, as each credit's tag says it. None if frames are cut
    /// before it, or credits name several.
    pub sender_rank: Option<u32>,
    /// Rank of the receiver: the tag of the credits that it gets itself on other connections.
    pub receiver_rank: Option<u32>,
    /// Layout of the credits, by the releases of NCCL that have it: `2.24 to 2.28`.
    pub layout: Option<&'static str>,
    /// Flows of the data.
    pub data_flows: Vec<FlowId>,
    /// Flows of the credits.
    pub credit_flows: Vec<FlowId>,
    /// Messages in the order of their credits, without those that are left out.
    pub messages: Vec<CreditedMessage>,
    /// Messages of which a record that decides is missing, or whose credit was before the capture.
    pub left_out: u64,
}

/// A credit, and the data that came for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CreditedMessage {
    /// Number of the credit in its connection. Numbers never restart; a missing number is a message that was left out.
    pub number: u64,
    /// Address of the buffer that the credit offers. It comes again after as many messages as there are buffers.
    pub buffer: u64,
    /// Length of the data, in bytes.
    pub bytes: u64,
    /// The credit, from the receiver to the sender.
    pub credit: Passage,
    /// The first packet of the data.
    pub first: Passage,
    /// The last packet of the data.
    pub last: Passage,
    /// The acknowledgement of the last packet, from the receiver to the sender.
    pub acknowledgement: Passage,
    /// Packets of the data that were sent more than once.
    pub retransmissions: u32,
}

/// One packet on its way, at the taps that saw it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Passage {
    /// When it passed the tap beside the host that sent it.
    pub departure: Option<Time>,
    /// When it passed the tap beside the host that received it.
    pub arrival: Option<Time>,
}
