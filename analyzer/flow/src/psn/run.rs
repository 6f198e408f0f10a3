//! One run of packets retransmitted, and the way to recover that runs show.

use roce_model::Time;
use roce_wire::Psn;

use crate::psn::cause::{Cause, Trigger};
use crate::psn::causes::Circumstances;
use crate::psn::request::psn_of;

/// How a sender recovers from a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Recovery {
    /// It sends everything again from the lost packet on.
    GoBackN,
    /// It sends what was lost: the receiver keeps what comes out of order.
    Selective,
    /// The receiver takes packets in any order, and no NAK follows on reordering.
    OutOfOrder,
}

impl Recovery {
    /// The word in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::GoBackN => "go_back_n",
            Self::Selective => "selective",
            Self::OutOfOrder => "out_of_order",
        }
    }
}

/// A run that has ended, and what was captured before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EndedRun {
    /// The PSN that the sender fell back to.
    pub(crate) first: Psn,
    /// When.
    pub(crate) begin: Time,
    /// Packets in it.
    pub(crate) packets: u64,
    pub(crate) before: Circumstances,
    /// Why, as far as that showed at once.
    pub(crate) seeming: Trigger,
}

/// A run of packets retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetransmittedRun {
    /// The PSN that the sender fell back to.
    pub(super) first: Psn,
    /// When.
    pub(super) begin: Time,
    /// Packets in it.
    pub(super) packets: u64,
    /// Why, as far as that shows at once.
    pub(super) trigger: Trigger,
    /// Nothing but that explains it: no reordering takes as long.
    pub(super) certain: bool,
    pub(super) start: u64,
    pub(super) next: u64,
    /// It repeats what had been captured.
    pub(super) repeats: bool,
    /// It fills holes.
    pub(super) fills: bool,
    /// It did not show these PSNs, from the first up to the second, although it repeats what follows: the first of such.
    pub(super) skipped: (u64, u64),
    /// It showed, without a break, all up to a packet that requests an ACK.
    pub(super) ack_requested: bool,
}

impl RetransmittedRun {
    /// A run without packets that begins at `at`.
    pub(super) fn new(at: u64, begin: Time, cause: Option<Cause>) -> Self {
        Self {
            first: psn_of(at),
            begin,
            packets: 0,
            trigger: cause.map_or(Trigger::Unknown, |cause| cause.trigger),
            certain: cause.is_some_and(|cause| cause.certain),
            start: at,
            next: at,
            repeats: false,
            fills: false,
            skipped: (0, 0),
            ack_requested: false,
        }
    }
}
