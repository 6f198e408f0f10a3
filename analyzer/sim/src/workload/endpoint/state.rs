//! State of one end of a connection.

use std::collections::VecDeque;

use roce_wire::{Ecn, Psn, Qpn};

use crate::dcqcn::ReactionPoint;
use crate::scenario::ServiceName;
use crate::units::{Picos, Rate};
use crate::workload::account::Account;
use crate::workload::activity::Timeline;
use crate::workload::requester::Requester;
use crate::workload::responder::{Reply, Responder, WaitingRead};

/// True if an end is in its NIC's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QueueState {
    /// It has nothing to send.
    Idle,
    /// It may send now.
    Ready,
    /// It may send later.
    Pacing,
}

/// A packet that the responder has to send, in order: an ACK must not overtake the READ responses before
/// it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job {
    /// READ responses, from the next on.
    Read {
        read: WaitingRead,
        next: u32,
        /// Run of a retransmitted request, by its place in the log.
        run: u32,
    },
    /// An acknowledgement.
    Reply(Reply),
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub host: u32,
    pub qpn: Qpn,
    pub first_psn: Psn,
    pub source_port: u16,
    pub service: ServiceName,
    pub dscp: u8,
    pub ecn: Ecn,
    pub requester: Requester,
    pub responder: Responder,
    pub jobs: VecDeque<Job>,
    /// After the highest READ response ever sent.
    pub answered: u64,
    /// The rate limiter, if this end reacts to CNPs.
    pub reaction: Option<ReactionPoint>,
    /// The rate that its packets are spread to, if the scenario has one.
    pub rate_limit: Option<Rate>,
    /// The rate limit holds it longer than DCQCN does.
    pub held_by_limit: bool,
    /// Its last packet had to wait for DCQCN's limit.
    pub held_by_dcqcn: bool,
    pub account: Account,
    /// Its work at each moment.
    pub activities: Timeline,
    pub queued: QueueState,
    pub next_send: Picos,
    pub open: bool,
    pub closed: bool,
    /// True while a timeout event or an ACK delay event is scheduled.
    pub timer_armed: bool,
    pub ack_armed: bool,
    /// Time of the next look for missing PSNs.
    pub gap_due: Picos,
    /// IP identification of the next packet.
    pub identification: u16,
    pub last_sent: Picos,
    /// Since when it has had something to send.
    pub busy_since: Option<Picos>,
    /// From when on requests are refused for good.
    pub fatal: Option<Picos>,
    /// From when on it answers nothing.
    pub dies: Option<Picos>,
}

impl Endpoint {
    pub(crate) fn priority(&self) -> u8 {
        self.dscp >> 3 & 7
    }
}
