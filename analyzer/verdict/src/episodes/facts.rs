//! Facts of pauses and stalls besides their time.

use roce_model::{Address, EventRow, FlowId, MacAddress, Span};

/// Facts of a pause besides its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct PauseFacts {
    pub(in super::super) priority: u8,
    /// Source of its frames.
    pub(in super::super) source: Option<MacAddress>,
    /// Pauses that it is made of.
    pub(in super::super) intervals: u64,
    /// Frames, where they are all that is known.
    pub(in super::super) frames: u64,
    /// Their total duration. `None`: needs the link's speed.
    pub(in super::super) total_ns: Option<u64>,
    /// The longest; without the link's speed a bound.
    pub(in super::super) longest_ns: u64,
}

/// The packet that ended a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum SilenceEnd {
    /// The next packet of a message that was under way.
    NextPacket,
    /// The answer to requests that were outstanding.
    Answer,
    /// A retransmission.
    Retransmission,
}

impl SilenceEnd {
    /// The end of the silence of an event.
    pub(super) fn new(event: &EventRow) -> Self {
        match event.detail.as_deref() {
            Some("ended by an answer") => Self::Answer,
            Some("ended by a retransmission") => Self::Retransmission,
            _ => Self::NextPacket,
        }
    }
}

/// Facts of a stall besides its time and its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct StallFacts {
    /// The flow that was silent for the longest time, and for how long.
    pub(in super::super) flow: FlowId,
    pub(in super::super) longest: Span,
    /// The flows' destination, when it is known.
    pub(in super::super) destination: Option<Address>,
    /// True if a run of retransmissions by timeout ended the longest one.
    pub(in super::super) by_timeout: bool,
    /// The packet that ended the longest one.
    pub(in super::super) ended_by: SilenceEnd,
}
