//! Packets that filled holes, until the next packets tell whether they were late or sent again.

use roce_model::Nanos;
use roce_wire::Psn;

use super::{Request, Trigger};
use crate::holes::{Fate, Hole};

/// Packets that filled holes and are not judged yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undecided {
    pub(super) first: u64,
    pub(super) next: u64,
    /// The first packet.
    pub(super) begin: Request,
    /// Why the sender would have fallen back.
    pub(super) trigger: Trigger,
    /// How long before the first packet the NAK came that it seems to answer.
    pub(super) since_asked: Option<Nanos>,
    /// The sender fell back, when nothing else tells.
    pub(super) silent: bool,
    /// If they were sent again: what became of the first of them.
    pub(super) fate: Fate,
    /// New packets followed, which did not tell what they were.
    pub(super) passed: bool,
    /// What they filled.
    pub(super) filled: Vec<Hole>,
    /// Where they stand in the timeline: bin, packets, payload bytes.
    pub(super) parts: Vec<(u64, u32, u64)>,
}

impl Undecided {
    /// One more packet, which ends before `next`.
    pub(super) fn add(&mut self, next: u64, request: &Request, filled: Vec<Hole>) {
        self.next = next;
        for part in filled {
            match self.filled.last_mut() {
                Some(last) if last.end == part.first && last.joins(&part) => last.end = part.end,
                Some(last) if last.first == part.end && last.joins(&part) => last.first = part.first,
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
}

/// What became of undecided packets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    /// Sent again; otherwise late.
    pub(crate) resent: bool,
    /// PSN of the first.
    pub(crate) psn: Psn,
    /// When the first came.
    pub(crate) time: Nanos,
    /// Where they stand in the timeline: bin, packets, payload bytes.
    pub(crate) parts: Vec<(u64, u32, u64)>,
}
