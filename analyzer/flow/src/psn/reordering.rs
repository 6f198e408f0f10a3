//! A flow's own reordering: how far, and for how long, its packets were overtaken.

use roce_model::{Span, Time};

use crate::psn::holes::Hole;

/// The reordering of one flow, learned from its late packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reordering {
    /// Late packets.
    packets: u64,
    /// PSNs by which the latest one was behind the highest.
    depth: u64,
    /// The longest time from a gap to the packet that filled it.
    time: Span,
    /// The longest time from a gap to the packet itself, which came behind its retransmission.
    time_behind: Span,
}

/// A flow with so many late packets is reordered by its way through the network, not by a mishap.
const MANY_LATE: u64 = 8;

impl Reordering {
    /// A packet came late, `depth` PSNs behind the highest; `filled`: the parts of holes that it filled.
    pub(super) fn note(&mut self, depth: u64, filled: &[Hole], time: Time) {
        self.packets += 1;
        self.depth = self.depth.max(depth);
        for hole in filled {
            self.time = self.time.max(time.since(hole.time));
        }
    }

    /// A packet came `time` after its gap showed, behind its retransmission.
    pub(super) fn note_behind_retransmission(&mut self, time: Span) {
        self.time_behind = self.time_behind.max(time);
    }

    /// The longest time after its gap at which a packet came, before its retransmission or behind it; 0: none was late.
    pub(super) fn latest(&self) -> Span {
        self.time.max(self.time_behind)
    }

    /// The greatest distance behind the highest PSN, in PSNs; `None`: no packet was late.
    pub(crate) fn depth(&self) -> Option<u64> {
        (self.packets > 0).then_some(self.depth)
    }

    /// The longest time from a gap to the late packet that filled it.
    pub(crate) fn time(&self) -> Option<Span> {
        (self.packets > 0).then_some(self.time)
    }

    /// The longest time by which a packet of this flow was late; 0: none was.
    pub(super) fn bound(&self) -> Span {
        self.time
    }

    /// True if some packet was late.
    pub(super) fn is_seen(&self) -> bool {
        self.packets > 0
    }

    /// True if late packets are the rule.
    pub(super) fn is_usual(&self) -> bool {
        self.packets >= MANY_LATE
    }
}
