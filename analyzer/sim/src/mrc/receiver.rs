//! The receiver of a queue pair: which packets arrived, when it answers, and with what.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::SackBase;

/// A selective acknowledgement, by packets' numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sack {
    /// All packets below it arrived.
    pub below: u64,
    /// The number of the bitmap's first packet.
    pub base: u64,
    pub bitmap: u64,
    /// The packet that caused it; none for the answer to a probe.
    pub trigger: Option<u64>,
    pub out_of_order: u16,
    /// Bytes that arrived, in units of 256.
    pub received: u32,
}

impl Sack {
    /// True if it says that a packet had not arrived: the first one behind the cumulative PSN, and those of the bitmap below one that
    /// arrived. The answer to a probe also says it of those above.
    pub(crate) fn misses(&self, index: u64) -> bool {
        let bit = index.checked_sub(self.base).filter(|bit| *bit < WINDOW);
        let said = bit.is_some_and(|bit| {
            let from_it = self.bitmap >> bit;
            from_it & 1 == 0 && (from_it != 0 || self.trigger.is_none())
        });
        index == self.below || index > self.below && said
    }
}

/// A packet that arrives whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub index: u64,
    pub bytes: u64,
    pub marked: bool,
    pub retransmission: bool,
    pub ack_request: bool,
}

/// The receiver of a queue pair.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    below: u64,
    above: BTreeSet<u64>,
    /// Bytes since the last SACK.
    since: u64,
    received: u64,
    /// Ends of messages that have begun to arrive, in order, with their numbers.
    ends: BTreeMap<u64, u32>,
}

/// The bits of a SACK.
const WINDOW: u64 = 64;
/// Bytes of headers that count with each packet.
const HEADERS: u64 = 40;

impl Receiver {
    /// A packet arrives. Returns a SACK if it causes one, and the last message that is complete now, with its last packet.
    pub(crate) fn arrive(
        &mut self,
        arrival: &Arrival,
        sack_bytes: u64,
        base: SackBase,
    ) -> (Option<Sack>, Option<(u64, u32)>) {
        let index = arrival.index;
        if index >= self.below && self.above.insert(index) {
            self.received += arrival.bytes + HEADERS;
        }
        while self.above.remove(&self.below) {
            self.below += 1;
        }
        let mut done = None;
        while let Some(entry) = self.ends.first_entry() {
            if *entry.key() >= self.below {
                break;
            }
            done = Some(entry.remove_entry());
        }
        self.since += arrival.bytes;
        let answers =
            arrival.marked || arrival.retransmission || arrival.ack_request || self.since >= sack_bytes;
        if answers {
            self.since = 0;
        }
        (answers.then(|| self.sack(Some(index), base)), done)
    }

    /// The end of a message, as its first packet says.
    pub(crate) fn ends_at(&mut self, index: u64, message: u32) {
        if index >= self.below {
            self.ends.insert(index, message);
        }
    }

    /// The SACK of this moment.
    pub(crate) fn sack(&self, trigger: Option<u64>, base: SackBase) -> Sack {
        let about = match base {
            SackBase::Cumulative => self.below,
            SackBase::Trigger => trigger
                .or_else(|| self.above.last().copied())
                .unwrap_or(self.below),
        };
        let base = self.below + about.saturating_sub(self.below) / WINDOW * WINDOW;
        let bits = self.above.range(base..base + WINDOW);
        Sack {
            below: self.below,
            base,
            bitmap: bits.fold(0, |bits, index| bits | 1 << (index - base)),
            trigger,
            out_of_order: u16::try_from(self.above.len()).unwrap_or(u16::MAX),
            received: u32::try_from(self.received.div_ceil(256) & 0xff_ffff).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(index: u64) -> Arrival {
        Arrival {
            index,
            bytes: 1_024,
            marked: false,
            retransmission: false,
            ack_request: false,
        }
    }

    #[test]
    fn sacks_come_after_bytes_marks_requests_and_retransmissions() {
        let mut receiver = Receiver::default();
        let mut answers = |arrival: Arrival| {
            let (sack, _) = receiver.arrive(&arrival, 4_096, SackBase::Trigger);
            sack.is_some()
        };
        let four = [0, 1, 2, 3].map(|index| answers(arrival(index)));
        assert_eq!(four, [false, false, false, true]);
        let marked = Arrival {
            marked: true,
            ..arrival(4)
        };
        let requested = Arrival {
            ack_request: true,
            ..arrival(5)
        };
        let again = Arrival {
            retransmission: true,
            ..arrival(6)
        };
        assert!(answers(marked) && answers(requested) && answers(again));
        assert!(!answers(arrival(7)));
    }

    #[test]
    fn bits_are_those_of_the_trigger() {
        let mut receiver = Receiver::default();
        for index in [0, 1, 3, 70, 71] {
            receiver.arrive(&arrival(index), 4_096, SackBase::Trigger);
        }
        // 0 and 1 arrived: the bitmaps begin at 2 and at 66.
        let sack = receiver.sack(Some(71), SackBase::Trigger);
        assert_eq!((sack.below, sack.base, sack.bitmap), (2, 66, 0b11_0000));
        let sack = receiver.sack(Some(71), SackBase::Cumulative);
        assert_eq!((sack.base, sack.bitmap), (2, 0b10));
        assert_eq!(sack.out_of_order, 3);
    }

    #[test]
    fn messages_are_complete_in_order() {
        let mut receiver = Receiver::default();
        receiver.ends_at(1, 1);
        receiver.ends_at(3, 2);
        let done: Vec<_> = [2, 3, 1, 0]
            .into_iter()
            .map(|index| receiver.arrive(&arrival(index), 4_096, SackBase::Trigger).1)
            .collect();
        assert_eq!(done, [None, None, None, Some((3, 2))]);
    }
}
