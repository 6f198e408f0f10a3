//! Packets behind the highest one, until later packets decide whether they were late, retransmitted, or delivered twice.

use roce_model::Nanos;
use roce_wire::Psn;

use crate::psn::cause::Cause;
use crate::psn::causes::Circumstances;
use crate::psn::holes::Hole;
use crate::psn::request::{Again, Request};

/// Consecutive packets behind the highest one that are not judged yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PendingPackets {
    pub(super) first: u64,
    pub(super) next: u64,
    /// The first packet.
    pub(super) begin: Request,
    /// When the last of them came.
    pub(super) time: Nanos,
    /// Why the sender would have sent the first of them again.
    pub(super) cause: Option<Cause>,
    /// Circumstances before the first of the packets.
    pub(super) before: Circumstances,
    /// How long before the first packet the NAK came that it seems to answer.
    pub(super) since_nak: Option<Nanos>,
    /// The receiver waited for a PSN before the first of them, so that it did not take them.
    pub(super) waits_before: bool,
    /// They were captured before; otherwise they fill a hole.
    pub(super) repeats: bool,
    /// The parts of holes that they filled.
    pub(super) filled: Vec<Hole>,
    /// PSNs between them that did not come.
    pub(super) skipped: (u64, u64),
    /// How far behind the highest PSN the first one came, in PSNs.
    pub(super) depth: u64,
    /// Where they stand in the timeline: bin, packets, payload bytes.
    pub(super) parts: Vec<(u64, u32, u64)>,
}

impl PendingPackets {
    pub(super) fn new(at: u64, request: &Request, depth: u64, repeats: bool) -> Self {
        Self {
            first: at,
            next: at,
            begin: *request,
            time: request.time,
            cause: None,
            before: Circumstances::default(),
            since_nak: None,
            waits_before: false,
            repeats,
            filled: Vec::new(),
            skipped: (0, 0),
            depth,
            parts: Vec::new(),
        }
    }

    /// Adds a packet, which takes the PSNs from `at` up to `next`.
    pub(super) fn add(&mut self, at: u64, next: u64, request: &Request, filled: Vec<Hole>) {
        if at > self.next {
            self.skipped = (self.next, at);
        }
        self.depth += self.first.saturating_sub(at);
        self.first = self.first.min(at);
        self.next = self.next.max(next);
        self.time = request.time;
        for part in filled {
            match self.filled.last_mut() {
                Some(last) if last.end == part.first && last.joins(&part) => last.end = part.end,
                _ => self.filled.push(part),
            }
        }
        match self.parts.last_mut() {
            Some((bin, packets, bytes)) if *bin == request.bin => {
                *packets += 1;
                *bytes += u64::from(request.payload_bytes);
            }
            _ => self
                .parts
                .push((request.bin, 1, u64::from(request.payload_bytes))),
        }
    }

    pub(super) fn packets(&self) -> u64 {
        self.parts.iter().map(|(_, packets, _)| u64::from(*packets)).sum()
    }
}

/// The verdict on packets behind the highest one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BehindVerdict {
    /// Retransmitted.
    Retransmitted,
    /// Overtaken on their way.
    Late,
    /// Delivered twice by the network.
    Duplicate,
    /// One of these; the packets do not tell which.
    Unknown,
}

/// The decision about pending packets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) judged: BehindVerdict,
    /// They had been captured before.
    pub(crate) captured_before: bool,
    /// The knowledge about responses to the first, if it is a READ.
    pub(crate) again: Again,
    /// The sender seems to have sent them again for a NAK.
    pub(crate) by_nak: bool,
    /// PSN of the first.
    pub(crate) psn: Psn,
    /// When the first came.
    pub(crate) time: Nanos,
    /// Where they stand in the timeline: bin, packets, payload bytes.
    pub(crate) parts: Vec<(u64, u32, u64)>,
}
