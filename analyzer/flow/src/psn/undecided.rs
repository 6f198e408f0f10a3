//! Packets behind the highest one, until later packets decide whether they were late, retransmitted, or delivered twice.

use std::collections::VecDeque;

use roce_model::{Span, Time};
use roce_wire::Psn;

use crate::psn::cause::Cause;
use crate::psn::causes::Circumstances;
use crate::psn::holes::Hole;
use crate::psn::request::{Again, Request};

/// Answers to NAKs that wait at once: as many as a receiver names while one answer is in flight, each by a packet that it gets.
const MAX_WAITING_ANSWERS: usize = 64;

/// The packets of a flow that are not judged yet.
#[derive(Clone, Debug, Default)]
pub(super) struct UndecidedPackets {
    /// Packets behind the highest one that the next packet decides.
    pending: Option<Box<PendingPackets>>,
    /// Packets that seem to answer a NAK, as long as they may turn out to be late: one entry for each NAK, in the order of capture.
    waiting: VecDeque<PendingPackets>,
    /// NAKs named packets that were only late, as their second coming showed.
    named_late: bool,
}

impl UndecidedPackets {
    /// True if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_none() && self.waiting.is_empty()
    }

    /// Those that the next packet decides.
    pub(super) fn pending(&self) -> Option<&PendingPackets> {
        self.pending.as_deref()
    }

    /// Those that the next packet decides, to add one.
    pub(super) fn pending_mut(&mut self) -> Option<&mut PendingPackets> {
        self.pending.as_deref_mut()
    }

    /// The next packet is to decide about these.
    pub(super) fn set_pending(&mut self, pending: PendingPackets) {
        self.pending = Some(Box::new(pending));
    }

    /// Those that the next packet decides, which has come.
    pub(super) fn take_pending(&mut self) -> Option<PendingPackets> {
        self.pending.take().map(|pending| *pending)
    }

    /// These seem to answer a NAK: what comes once more shows whether they were late. Gives those that there is no room for, the oldest.
    pub(super) fn wait(&mut self, answer: PendingPackets) -> Option<PendingPackets> {
        let oldest = (self.waiting.len() == MAX_WAITING_ANSWERS).then(|| self.waiting.pop_front());
        self.waiting.push_back(answer);
        oldest.flatten()
    }

    /// True if `at` is one of those that seem to answer a NAK.
    pub(super) fn waits_with(&self, at: u64) -> bool {
        self.waiting.iter().any(|waiting| waiting.contains(at))
    }

    /// The latest of those that seem to answer a NAK, `at` among them.
    pub(super) fn take_waiting_with(&mut self, at: u64) -> Option<PendingPackets> {
        let place = self.waiting.iter().rposition(|waiting| waiting.contains(at))?;
        self.waiting.remove(place)
    }

    /// Those that have waited longest.
    pub(super) fn take_oldest(&mut self) -> Option<PendingPackets> {
        self.waiting.pop_front()
    }

    /// Those that have waited longest, if the last of them came `longest` before `time` or earlier.
    pub(super) fn take_overdue(&mut self, time: Time, longest: Span) -> Option<PendingPackets> {
        let oldest = self.waiting.front()?;
        let is_over = time.since(oldest.time) >= longest;
        is_over.then(|| self.waiting.pop_front()).flatten()
    }

    /// A NAK named packets that were late.
    pub(super) fn note_named_late(&mut self) {
        self.named_late = true;
    }

    /// True if NAKs named packets that were only late.
    pub(super) fn are_late_named(&self) -> bool {
        self.named_late
    }
}

/// Consecutive packets behind the highest one that are not judged yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PendingPackets {
    pub(super) first: u64,
    pub(super) next: u64,
    /// The first packet.
    pub(super) begin: Request,
    /// When the last of them came.
    pub(super) time: Time,
    /// Why the sender would have sent the first of them again.
    pub(super) cause: Option<Cause>,
    /// Circumstances before the first of the packets.
    pub(super) before: Circumstances,
    /// How long before the first packet the NAK came that it seems to answer.
    pub(super) since_nak: Option<Span>,
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
            time: request.packet.time,
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
        self.time = request.packet.time;
        for part in filled {
            match self.filled.last_mut() {
                Some(last) if last.end == part.first && last.joins(&part) => last.end = part.end,
                _ => self.filled.push(part),
            }
        }
        match self.parts.last_mut() {
            Some((bin, packets, bytes)) if *bin == request.packet.bin => {
                *packets += 1;
                *bytes += u64::from(request.packet.payload_bytes);
            }
            _ => self
                .parts
                .push((request.packet.bin, 1, u64::from(request.packet.payload_bytes))),
        }
    }

    /// True if `at` is one of them.
    pub(super) fn contains(&self, at: u64) -> bool {
        (self.first..self.next).contains(&at)
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
    pub(crate) time: Time,
    /// Where they stand in the timeline: bin, packets, payload bytes.
    pub(crate) parts: Vec<(u64, u32, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(at: u64, time: u64) -> PendingPackets {
        let mut request = Request::default();
        request.packet.time = Time(time);
        let mut pending = PendingPackets::new(at, &request, 0, false);
        pending.add(at, at + 1, &request, Vec::new());
        pending
    }

    #[test]
    fn the_latest_answer_with_a_packet_is_taken_first() {
        let mut undecided = UndecidedPackets::default();
        for time in [1_000, 2_000] {
            assert_eq!(undecided.wait(pending(7, time)), None);
        }
        let taken =
            |undecided: &mut UndecidedPackets| undecided.take_waiting_with(7).map(|answer| answer.time);
        assert_eq!(taken(&mut undecided), Some(Time(2_000)));
        assert_eq!(taken(&mut undecided), Some(Time(1_000)));
        assert!(undecided.is_empty() && !undecided.waits_with(7));
    }

    #[test]
    fn answers_that_wait_are_bounded_by_number_and_time() {
        let mut undecided = UndecidedPackets::default();
        for at in 0..64 {
            assert_eq!(undecided.wait(pending(at, 1_000 + at)), None);
        }
        let displaced = undecided.wait(pending(64, 1_064));
        assert_eq!(displaced.map(|answer| answer.first), Some(0));
        let overdue = |undecided: &mut UndecidedPackets| undecided.take_overdue(Time(2_001), Span(1_000));
        assert_eq!(overdue(&mut undecided).map(|answer| answer.first), Some(1));
        assert_eq!(
            overdue(&mut undecided),
            None,
            "the next one came a nanosecond later"
        );
    }
}
