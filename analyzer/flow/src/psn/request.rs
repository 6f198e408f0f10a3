//! A request packet as [`crate::psn::tracker`] needs it, where it is among the PSNs of its flow, and what it is judged to be.

use roce_model::{Span, Time, WriteTarget};
use roce_wire::Psn;

use crate::taps::duplicates::Ids;

/// A jump further ahead than this begins a new epoch instead of a gap.
pub(crate) const LARGEST_GAP: i32 = 1 << 16;
/// A packet this far behind is stale: no sender falls back so far.
pub(crate) const STALE: i32 = 1 << 22;
/// PSNs from 0 on that flows which began there have. Others begin there by chance in one of 64 cases.
const NEAR_ZERO: u64 = 1 << 18;
/// The shortest silence after which a sender may retransmit without a NAK. Adaptive timers start at tens of microseconds.
/// A silence alone proves nothing: see [`crate::psn::acks::Answers::cause`].
pub(super) const SILENCE: Span = Span(50_000);

/// Where an extended PSN count begins, high enough that a fallback from the first packet does not go below zero.
pub(super) const BASE: u64 = 1 << 32;

/// The PSN at a position, which is counted on past 24 bits.
#[expect(clippy::cast_possible_truncation, reason = "the low 24 bits are wanted")]
pub(crate) fn psn_of(position: u64) -> Psn {
    Psn::new(position as u32)
}

/// The part of a flow's request state that every packet touches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// The PSN expected next, counted on past 24 bits; 0 before the first request.
    pub(crate) next: u64,
    /// True if anything but "in order" may come of the next packet: then [`crate::psn::tracker::Tracker::observe`] decides.
    pub(crate) disturbed: bool,
}

impl Requests {
    /// Takes a packet that is in order and nothing special; says whether it was one.
    #[inline]
    pub(crate) fn advance(&mut self, psn: Psn, span: u32) -> bool {
        if self.disturbed || self.next == 0 || psn != self.expected() {
            return false;
        }
        self.next += u64::from(span);
        true
    }

    /// True if the flow may have begun with PSN 0 a while ago, as every connection of some libraries does.
    pub(crate) fn is_near_zero(&self) -> bool {
        self.next < BASE + NEAR_ZERO
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low 24 bits are wanted")]
    pub(crate) fn expected(&self) -> Psn {
        Psn::new(self.next as u32)
    }
}

/// The verdict on a request packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The PSN expected, or the first of the flow.
    InOrder,
    /// Beyond: so many PSNs were jumped over.
    Gap { first: Psn, missing: u32 },
    /// Retransmitted.
    Retransmission { captured_before: bool },
    /// Sent before packets that were captured already, and overtaken by them.
    Late { captured_before: bool },
    /// The network delivered it once more: nobody sent it again.
    Duplicate,
    /// Behind the highest; nothing tells whether it is late or retransmitted.
    Unknown,
    /// Behind the highest: the next packets decide what it is.
    Undecided { captured_before: bool },
    /// So far behind that no sender sends it again.
    Stale,
    /// The PSNs started again: the flow is to start a new epoch and to observe the packet again.
    NewEpoch(&'static str),
}

/// A request, as the tracker needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) packet: RequestPacket,
    /// Where it writes to, if it is the first packet of a WRITE.
    pub(crate) target: Option<WriteTarget>,
    pub(crate) flow: FlowHistory,
    pub(crate) pair: PairHistory,
}

/// The contents of a request's packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RequestPacket {
    pub(crate) psn: Psn,
    /// PSNs that it takes; `None`: a READ whose responses cannot be counted yet.
    pub(crate) span: Option<u32>,
    pub(crate) time: Time,
    pub(crate) bin: u64,
    pub(crate) payload_bytes: u32,
    /// It requests an ACK.
    pub(crate) ack_requested: bool,
    pub(crate) is_read: bool,
    /// A READ or an atomic.
    pub(crate) is_fetch: bool,
    /// Its own length, if it is a READ; 0: not known.
    pub(crate) read_length: u32,
    /// Where the sender counts IP identifications up: that of the packet.
    pub(crate) ids: Option<Ids>,
    /// Its IP identification was not seen with this packet before, and the sender gives each packet another one: it was
    /// retransmitted, and is no copy that the network made.
    pub(crate) has_new_id: bool,
    /// Its IP identification is one that it was seen with, and the sender gives each packet another one: as in a copy that the
    /// network made.
    pub(crate) has_old_id: bool,
    /// It is the first packet of a message, comes after a rest, and by another UDP source port than all packets before it.
    pub(crate) has_other_port: bool,
}

/// The history of its flow before a request, mostly times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FlowHistory {
    /// How long the flow had sent no request.
    pub(crate) silence: Span,
    /// When the oldest request was sent that is not acknowledged; 0: not known.
    pub(crate) waiting_since: Time,
    /// When the oldest request that is not acknowledged was sent, whatever is missing; 0: not known.
    pub(crate) oldest_sent: Time,
    /// Before a READ or an atomic: when an answer came first to something behind what the requester waits for; 0: none did.
    pub(crate) implied_since: Time,
    /// The shortest time that an answer took; 0: not known.
    pub(crate) rtt: Span,
    /// The usual time of an answer; 0: not known.
    pub(crate) usual_rtt: Span,
    /// The sender has just been notified of congestion.
    pub(crate) is_slowed: bool,
    /// The message of the highest PSN had not ended.
    pub(crate) in_message: bool,
    /// Length of the READ before it, of which it is not known how many PSNs it takes; 0: not known.
    pub(crate) read_before: u32,
    /// Before a READ: what is known of its responses.
    pub(crate) again: Again,
    /// Intervals of missing PSNs that the flow may keep.
    pub(crate) max_holes: usize,
}

impl FlowHistory {
    /// The sender's timer runs since `time` at the earliest.
    pub(super) fn wait_from(&mut self, time: Time) {
        self.waiting_since = self.waiting_since.max(time);
    }
}

/// The history of other flows between the same hosts before a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PairHistory {
    /// While the other direction is not known: some receiver between the two hosts has just sent a NAK for this PSN, or one shortly
    /// before.
    pub(crate) is_naked: bool,
    /// While the other direction is not known: some receiver between the two hosts has just sent a NAK for this
    /// very PSN.
    pub(crate) is_naked_exactly: bool,
    /// Some receiver had no buffer a moment ago.
    pub(crate) refused: bool,
    /// Answers to some flow are captured.
    pub(crate) others_are_answered: bool,
    /// The latest NAK for its PSN or one shortly before, of whatever flow: how long before it came, and PSNs between.
    pub(crate) nak_before: Option<(Span, u32)>,
    /// The longest time that senders took to answer a NAK, and how many answers that is the longest of; 0: not known.
    pub(crate) others_answer: Span,
    pub(crate) others_answers: u32,
    /// Another flow had late packets.
    pub(crate) others_late: bool,
}

/// The knowledge about the responses that a repeated READ requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Again {
    /// It is no READ, or none of them was due or captured.
    #[default]
    Nothing,
    /// The first of them is missing.
    Missing,
    /// The first of them was captured.
    Captured,
    /// It begins in the middle of a READ, so that it was retransmitted; nothing is known of the first of them.
    Rest,
    /// The first of them was captured, and the READ begins where one did before: the network may have delivered it twice.
    Whole,
}

/// A new connection of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewConnection {
    /// How that is known.
    pub(crate) reason: &'static str,
    /// Its first PSN, when that was said: packets of the connection before may still be on their way.
    pub(crate) first: Option<Psn>,
}

impl NewConnection {
    pub(super) fn has_begun(self, psn: Psn) -> bool {
        self.first
            .is_none_or(|first| (0..=LARGEST_GAP).contains(&psn.offset_from(first)))
    }
}
