//! A requester that takes READ responses and acknowledgements in any order.
//!
//! An acknowledgement says that the responder has executed everything before it; READ responses may
//! still be on their way. A READ whose responses are missing for too long is requested again for these
//! PSNs alone.

use std::collections::BTreeSet;

use super::any_order_state::AnyOrder;
use super::{OutgoingPacket, Requester, Trigger};
use crate::scenario::{Operation, Recovery};
use crate::units::Picos;
use crate::workload::gaps::{Gaps, Patience};

impl Requester {
    /// From now on READ responses and acknowledgements may come in any order.
    pub(crate) fn in_any_order(&mut self, patience: Patience) {
        self.limits.recovery = Recovery::Selective;
        self.any_order = Some(AnyOrder {
            gaps: Gaps::new(patience),
            got: BTreeSet::new(),
            acked: 0,
        });
    }

    pub(super) fn acknowledged_in_any_order(&mut self, seq: u64, now: Picos) -> Vec<u32> {
        let seq = seq.min(self.top);
        self.pass(seq, now);
        if let Some(state) = &mut self.any_order {
            state.acked = state.acked.max(seq);
        }
        self.progress(now)
    }

    pub(super) fn response_in_any_order(&mut self, seq: u64, first: u64, now: Picos) -> Vec<u32> {
        self.pass(seq, now);
        if let Some(state) = &mut self.any_order {
            state.gaps.arrived(seq, 1, now);
            state.got.insert(seq);
            // Requests before the READ are acknowledged by its response.
            state.acked = state.acked.max(first);
        }
        self.progress(now)
    }

    /// Responses of all READs before `seq` should be there: what is not is missing.
    fn pass(&mut self, seq: u64, now: Picos) {
        let Some(state) = &mut self.any_order else { return };
        let from = state.gaps.highest().max(self.oldest);
        if from >= seq {
            return;
        }
        let after = self.messages.partition_point(|message| message.end() <= from);
        let reads = self
            .messages
            .iter()
            .skip(after)
            .take_while(|message| message.first < seq)
            .filter(|message| message.operation == Operation::Read);
        let missing = reads.flat_map(|read| read.first.max(from)..read.end().min(seq));
        let got = &state.got;
        state
            .gaps
            .passed(missing.filter(|seq| !got.contains(seq)), seq, now);
    }

    /// Advances over everything that is done.
    fn progress(&mut self, now: Picos) -> Vec<u32> {
        let Some(state) = &mut self.any_order else {
            return Vec::new();
        };
        let mut next = self.oldest;
        for message in &self.messages {
            if message.operation == Operation::Read {
                while next < message.end() && state.got.contains(&next) {
                    next += 1;
                }
            } else {
                next = next.max(state.acked.min(message.end()));
            }
            if next < message.end() {
                break;
            }
        }
        if next > self.oldest {
            state.got = state.got.split_off(&next);
            state.gaps.forget(next);
        }
        self.advance(next, now)
    }

    /// READ responses that have been missing for too long are requested again.
    pub(crate) fn overdue(&mut self, now: Picos) {
        let Some(state) = self.any_order.as_mut().filter(|_| self.failure.is_none()) else {
            return;
        };
        let mut requested = 0;
        while let Some(seq) = state.gaps.lost(now) {
            // One request covers all that is missing in a row.
            if seq >= requested {
                self.again.push_back((seq, Trigger::ImpliedNak));
                let after = self.messages.partition_point(|message| message.end() <= seq);
                let end = self.messages.get(after).map_or(seq + 1, super::Message::end);
                requested = (seq..end).find(|seq| state.got.contains(seq)).unwrap_or(end);
            }
        }
    }

    /// Time at which the next READ response may count as lost.
    pub(crate) fn due(&self) -> Option<Picos> {
        self.any_order.as_ref()?.gaps.due()
    }

    /// Shortens a READ that is requested again to the responses that are missing in a row.
    pub(super) fn shorten(&self, packet: &mut OutgoingPacket) {
        let Some(state) = self
            .any_order
            .as_ref()
            .filter(|_| packet.operation == Operation::Read)
        else {
            return;
        };
        let end = packet.seq + u64::from(packet.span);
        if let Some(got) = state.got.range(packet.seq..end).next() {
            packet.span = u32::try_from(got - packet.seq).unwrap_or(packet.span);
            packet.bytes = packet.bytes.min(u64::from(packet.span) * self.limits.mtu);
        }
    }
}
