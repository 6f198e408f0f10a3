//! The latest packets of a connection by PSN: when and on which path each was sent, and what is known of it.

use roce_model::{TapId, Time};

/// Packets that are remembered at first, and at most: powers of two. Beyond it the oldest is forgotten.
const MIN_PACKETS: usize = 256;
const MAX_PACKETS: usize = 1 << 15;
/// Bits of a word.
const WORD: usize = 64;

/// One sending of a packet.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Transmission {
    pub(super) time: Time,
    pub(super) tap: TapId,
    pub(super) path: u16,
    pub(super) stamp: Option<u16>,
}

/// The knowledge about a PSN.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Slot {
    /// Its position; 0: the slot is free.
    pub(super) position: u64,
    /// Its latest sending, if one was captured.
    pub(super) sent: Option<Transmission>,
    /// The one before.
    pub(super) before: Option<Transmission>,
    pub(super) flags: SlotFlags,
    /// The reason of a NACK since its latest sending.
    pub(super) refused: Option<u8>,
    /// The latest time at which an answer showed it as missing.
    pub(super) missing: Option<Time>,
    pub(super) payload: u32,
}

/// Properties of a PSN, as a set.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct SlotFlags(u16);

impl SlotFlags {
    /// A SACK says that it arrived.
    pub(super) const ARRIVED: Self = Self(1);
    /// It was sent again.
    pub(super) const AGAIN: Self = Self(1 << 1);
    /// A SACK showed a hole here.
    pub(super) const WAS_HOLE: Self = Self(1 << 2);
    /// A SACK showed a hole here since its latest sending.
    pub(super) const IS_HOLE: Self = Self(1 << 3);
    /// Its latest sending was trimmed.
    pub(super) const TRIMMED: Self = Self(1 << 4);
    /// It was sent again after a hole or a silence, and it is not known yet if the sending before was lost.
    pub(super) const UNDECIDED: Self = Self(1 << 5);
    /// Its retransmission was needless.
    pub(super) const SPURIOUS: Self = Self(1 << 6);
    /// A SACK that does not name it acknowledged it, since its latest sending.
    pub(super) const ANSWERED: Self = Self(1 << 7);
    /// It is among those whose loss is likely.
    pub(super) const WAITS: Self = Self(1 << 8);
    /// It was sent more than twice: nothing is known of the first sending.
    pub(super) const OFTEN: Self = Self(1 << 9);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn set(&mut self, other: Self, is_set: bool) {
        self.0 = if is_set {
            self.0 | other.0
        } else {
            self.0 & !other.0
        };
    }
}

/// The latest packets of a connection.
#[derive(Clone, Debug)]
pub(super) struct SentPackets {
    slots: Box<[Slot]>,
    /// Bits of slots that were sent or spoken of and have not arrived.
    pending: Box<[u64]>,
    waiting: usize,
    /// True if there is room for more slots.
    may_grow: bool,
}

impl Default for SentPackets {
    fn default() -> Self {
        Self::with_room(MIN_PACKETS)
    }
}

impl SentPackets {
    fn with_room(packets: usize) -> Self {
        Self {
            slots: vec![Slot::default(); packets].into_boxed_slice(),
            pending: vec![0; packets / WORD].into_boxed_slice(),
            waiting: 0,
            may_grow: true,
        }
    }

    /// Number of slots.
    pub(super) fn room(&self) -> usize {
        self.slots.len()
    }

    /// Says whether it may take more room.
    pub(super) fn allow_growth(&mut self, may_grow: bool) {
        self.may_grow = may_grow;
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low bits are the place")]
    fn place(&self, position: u64) -> usize {
        position as usize & (self.slots.len() - 1)
    }

    /// The knowledge about a position.
    pub(super) fn get(&self, position: u64) -> Option<&Slot> {
        let slot = &self.slots[self.place(position)];
        (slot.position == position).then_some(slot)
    }

    pub(super) fn get_mut(&mut self, position: u64) -> Option<&mut Slot> {
        let place = self.place(position);
        let slot = &mut self.slots[place];
        (slot.position == position).then_some(slot)
    }

    /// The slot of a position, a new one if there is none. `None`: it is older than what has its place.
    pub(super) fn enter(&mut self, position: u64) -> Option<&mut Slot> {
        let mut place = self.place(position);
        let has = self.slots[place].position;
        if has != position {
            if has > position {
                return None;
            }
            // A quarter of the places waits, or a captured packet would be forgotten that twice the places can keep: a lone packet far away does
            // not make it grow.
            let is_used = self.waiting * 4 >= self.slots.len()
                || self.slots[place].sent.is_some() && position - has <= self.slots.len() as u64;
            if self.is_pending(place) && is_used && self.may_grow && self.slots.len() < MAX_PACKETS {
                self.grow();
                place = self.place(position);
            }
            self.waiting += usize::from(!self.is_pending(place));
            self.pending[place / WORD] |= 1 << (place % WORD);
            self.slots[place] = Slot {
                position,
                ..Slot::default()
            };
        }
        Some(&mut self.slots[place])
    }

    fn is_pending(&self, place: usize) -> bool {
        self.pending[place / WORD] >> (place % WORD) & 1 != 0
    }

    /// An answer is about a packet so many behind the highest one: they are remembered from now on, if there is room.
    pub(super) fn reach(&mut self, behind: u64) {
        while self.may_grow && self.slots.len() < MAX_PACKETS && self.slots.len() as u64 <= behind {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let mut larger = Self::with_room(self.slots.len() * 2);
        for (place, slot) in self.slots.iter().enumerate() {
            if slot.position > 0 {
                let at = larger.place(slot.position);
                larger.slots[at] = *slot;
                larger.pending[at / WORD] |= u64::from(self.is_pending(place)) << (at % WORD);
            }
        }
        larger.waiting = self.waiting;
        *self = larger;
    }

    /// Takes a packet from those that wait; says whether it did.
    pub(super) fn settle(&mut self, position: u64) -> bool {
        let place = self.place(position);
        let does = self.slots[place].position == position && self.is_pending(place);
        if does {
            self.pending[place / WORD] &= !(1 << (place % WORD));
            self.waiting -= 1;
        }
        does
    }

    /// Another packet up to a position that waits, from a word of 64 places on.
    pub(super) fn next_waiting(&self, to: u64, word: &mut usize) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        while let Some(bits) = self.pending.get(*word) {
            let mut left = *bits;
            while left != 0 {
                let position = self.slots[*word * WORD + left.trailing_zeros() as usize].position;
                if position <= to {
                    return Some(position);
                }
                left &= left - 1;
            }
            *word += 1;
        }
        None
    }

    /// Those that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Slot> {
        let places = self.slots.iter().enumerate();
        places
            .filter(|(place, _)| self.is_pending(*place))
            .map(|(_, slot)| slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_what_waits_and_not_with_what_is_far() {
        let mut sent = SentPackets::default();
        for position in 1..=5000 {
            assert!(sent.enter(position).is_some());
        }
        assert_eq!((sent.slots.len(), sent.waiting), (8192, 5000));
        let (mut word, mut settled) = (0, 0);
        while let Some(position) = sent.next_waiting(2500, &mut word) {
            assert!(sent.settle(position));
            settled += 1;
        }
        assert_eq!((settled, sent.waiting), (2500, 2500));
        let mut far = SentPackets::default();
        for step in 1..1000 {
            assert!(far.enter(step << 20).is_some());
        }
        assert_eq!((far.slots.len(), far.waiting), (MIN_PACKETS, 1));
        assert!(far.enter(5).is_some() && far.get(1 << 20).is_none());
        // The older of two packets of one place has no room.
        assert!(far.enter(1 << 20).is_none());
        far.reach(1000);
        assert_eq!(far.slots.len(), 1024);
        far.reach(u64::MAX);
        assert_eq!(far.slots.len(), MAX_PACKETS);
    }
}
