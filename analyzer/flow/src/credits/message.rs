//! One credit at one tap, and the data that came for it there.

use roce_model::Time;
use roce_wire::Psn;

/// Flows whose pieces of one message are told apart. Of more, a later message may be taken for a piece.
const MAX_CARRIERS: usize = 4;

/// A credit and its data as one tap saw them. A time of 0: it was not seen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TapMessage {
    pub(super) number: u64,
    /// PSN of the credit in its flow, which it has at each tap.
    pub(super) psn: Psn,
    pub(super) buffer: u64,
    /// Length of the buffer, in bytes; None if it was cut.
    pub(super) size: Option<u32>,
    pub(super) key: Option<u32>,
    /// Elements of the credit.
    pub(super) elements: u32,
    /// Bytes of the data.
    pub(super) bytes: u64,
    pub(super) credit: TapTimes,
    pub(super) first: TapTimes,
    pub(super) last: TapTimes,
    /// When the last part's acknowledgement came.
    pub(super) acknowledgement: Time,
    /// Pieces of the data, each on a queue pair of its own: how many have begun, ended, ended with an immediate, and were acknowledged.
    pub(super) begun: u8,
    pub(super) ended: u8,
    pub(super) closed: u8,
    pub(super) acknowledged: u8,
    pub(super) retransmissions: u32,
    /// Flows that have carried a piece, from 1.
    carriers: [u32; MAX_CARRIERS],
    /// Its data wait for an acknowledgement whose flow is known.
    pub(super) is_pending: bool,
}

/// When a packet passed a tap.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct TapTimes {
    /// For the first time.
    pub(super) first: Time,
    /// For the last time.
    pub(super) latest: Time,
    /// The first one seen was sent again: an earlier one was lost before the tap, or by the capture.
    pub(super) is_again: bool,
}

impl TapTimes {
    /// Seen at `time`.
    pub(super) const fn at(time: Time, is_again: bool) -> Self {
        Self {
            first: time,
            latest: time,
            is_again,
        }
    }

    pub(super) const fn is_seen(&self) -> bool {
        self.first.0 != 0
    }

    /// When it left its sender, if the tap stands there: a first one that was missed is not replaced by a later one.
    pub(super) fn departure(&self) -> Option<Time> {
        (self.is_seen() && !self.is_again).then_some(self.first)
    }
}

impl TapMessage {
    /// A credit without data.
    pub(super) const fn new(number: u64, psn: Psn) -> Self {
        const UNSEEN: TapTimes = TapTimes::at(Time(0), false);
        Self {
            number,
            psn,
            buffer: 0,
            size: None,
            key: None,
            elements: 1,
            bytes: 0,
            credit: UNSEEN,
            first: UNSEEN,
            last: UNSEEN,
            acknowledgement: Time(0),
            begun: 0,
            ended: 0,
            closed: 0,
            acknowledged: 0,
            retransmissions: 0,
            carriers: [0; MAX_CARRIERS],
            is_pending: false,
        }
    }

    /// True if data of `length` bytes may go to `address` by this credit.
    pub(super) fn takes(&self, address: u64, key: u32, length: u32) -> bool {
        let offset = address.wrapping_sub(self.buffer);
        let is_inside = match self.size {
            Some(size) => offset.saturating_add(u64::from(length)) <= u64::from(size),
            None => offset == 0,
        };
        is_inside && self.key.is_none_or(|own| own == key)
    }

    /// A flow carries a piece of it; `false` if it has carried one before, so that this one is for a later credit that is missing.
    pub(super) fn carry(&mut self, flow: u32) -> bool {
        if self.elements == 1 && self.carriers.contains(&(flow + 1)) {
            return false;
        }
        if let Some(free) = self.carriers.iter_mut().find(|carrier| **carrier == 0) {
            *free = flow + 1;
        }
        true
    }

    /// When anything of it was seen last.
    pub(super) fn latest(&self) -> Time {
        let sightings = [self.credit, self.first, self.last].map(|sighting| sighting.latest);
        sightings.into_iter().fold(self.acknowledgement, Time::max)
    }
}
