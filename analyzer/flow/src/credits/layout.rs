//! Layouts of a credit in NCCL's network transport, by release. Source: NCCL, `src/transport/net_ib.cc` (from 2.29
//! `net_ib/common.h`), `struct ncclIbSendFifo` and `MAX_REQUESTS`; numbers are little-endian, the address comes first.

/// Fields of one element of a credit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Releases that have it.
    pub(super) releases: &'static str,
    /// Bytes of an element.
    pub(super) element: u32,
    /// Bytes from one slot of the ring to the next.
    pub(super) stride: u32,
    /// Slots of the ring.
    pub(super) slots: u32,
    /// Where the number of elements is, or a word that is 1.
    count_at: usize,
    /// Where the rank of the sender is.
    tag_at: Option<usize>,
    /// Where the number of the credit is, which begins with 1.
    number_at: Option<usize>,
    /// Where keys are, and how many: one for each device.
    keys: (usize, usize),
}

/// The length of a buffer, which all layouts have in the same place. Of its eight bytes in late layouts the upper four are 0.
const SIZE_AT: usize = 8;

/// All layouts, with the releases of each.
pub(super) const LAYOUTS: [Layout; 7] = [
    Layout::old("2.3 to 2.7", 24, 128),
    Layout::old("2.8 to 2.11", 32, 8),
    Layout::of_32("2.12 to 2.18", 64),
    Layout::of_32("2.19", 256),
    Layout::of_64("2.20 to 2.23", (12, 2), 20, 32),
    Layout::of_64("2.24 to 2.29", (16, 4), 32, 40),
    Layout::of_64("2.30", (16, 8), 48, 56),
];

/// Place in [`LAYOUTS`] of the one that lost a byte order with 2.29.
const WITH_BOTH_ORDERS: usize = 5;

impl Layout {
    /// One element in a slot, without a number; `ready` is 1.
    const fn old(releases: &'static str, element: u32, slots: u32) -> Self {
        Self {
            releases,
            element,
            stride: element,
            slots,
            count_at: 20,
            tag_at: None,
            number_at: None,
            keys: (16, 1),
        }
    }

    /// Eight elements of 32 bytes in a slot.
    const fn of_32(releases: &'static str, slots: u32) -> Self {
        Self {
            releases,
            element: 32,
            stride: 256,
            slots,
            count_at: 16,
            tag_at: Some(20),
            number_at: Some(24),
            keys: (12, 1),
        }
    }

    /// Eight elements of 64 bytes in a slot; the tag follows the count.
    const fn of_64(releases: &'static str, keys: (usize, usize), count_at: usize, number_at: usize) -> Self {
        Self {
            releases,
            element: 64,
            stride: 512,
            slots: 256,
            count_at,
            tag_at: Some(count_at + 4),
            number_at: Some(number_at),
            keys,
        }
    }

    /// Number of elements of a credit of `length` bytes, if there are credits of this length.
    pub(super) fn elements(&self, length: u32) -> Option<u32> {
        let count = length / self.element;
        let fits = length.is_multiple_of(self.element) && count >= 1 && count * self.element <= self.stride;
        fits.then_some(count)
    }

    /// True unless the captured bytes of a credit contradict the layout.
    pub(super) fn fits(&self, length: u32, payload: &[u8]) -> bool {
        let Some(count) = self.elements(length) else {
            return false;
        };
        let counted = word(payload, self.count_at).is_none_or(|word| word == count);
        counted && self.number(payload).is_none_or(|number| number < MAX_NUMBER)
    }

    /// Number of the credit: 0 for the first one of its connection. Beyond the largest for a credit that says none.
    pub(super) fn number(&self, payload: &[u8]) -> Option<u64> {
        Some(long(payload, self.number_at?)?.wrapping_sub(1))
    }

    /// Rank of the sender of the data, if all elements name one and none was cut.
    pub(super) fn tag(&self, payload: &[u8], length: u32) -> Option<Tag> {
        let at = self.tag_at?;
        let element = self.element as usize;
        let first = word(payload, at)?;
        let mut others =
            (1..self.elements(length)? as usize).map(|other| word(payload, other * element + at));
        let is_one = others.all(|other| other == Some(first));
        Some(if is_one { Tag::Rank(first) } else { Tag::Several })
    }

    /// Length of the buffer, in bytes: an upper bound of the data.
    pub(super) fn size(payload: &[u8]) -> Option<u32> {
        word(payload, SIZE_AT)
    }

    /// Address of the buffer. Of a frame that ends within it, six bytes are enough: programs have no larger addresses (x86-64 and
    /// Arm with four levels of pages).
    pub(super) fn buffer(payload: &[u8]) -> Option<u64> {
        let cut = || {
            let mut bytes = [0; 8];
            bytes[..CUT_ADDRESS].copy_from_slice(payload.get(..CUT_ADDRESS)?);
            Some(u64::from_le_bytes(bytes))
        };
        long(payload, 0).or_else(cut)
    }

    /// The only key of the buffer; None if it was cut, or if there is one for each of several devices.
    pub(super) fn key(&self, payload: &[u8]) -> Option<u32> {
        let (at, count) = self.keys;
        let mut others = (1..count).map(|place| word(payload, at + 4 * place));
        let is_only = others.all(|other| other == Some(0));
        word(payload, at).filter(|_| is_only)
    }
}

/// Bytes of an address that say all of it.
const CUT_ADDRESS: usize = 6;

/// Credits of a connection have smaller numbers: one each microsecond would take nine years.
const MAX_NUMBER: u64 = 1 << 48;

/// Ranks that a credit names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tag {
    /// One rank.
    Rank(u32),
    /// Several: local ranks that share a connection.
    Several,
}

/// Releases of the only layout in a set of them, told apart by the byte order of immediates where that is known.
pub(super) fn releases(layouts: u8, is_big_endian: Option<bool>) -> Option<&'static str> {
    let mut all = (0..LAYOUTS.len()).filter(|place| layouts >> place & 1 != 0);
    let place = all.next()?;
    if all.next().is_some() {
        return None;
    }
    Some(match is_big_endian {
        Some(false) if place == WITH_BOTH_ORDERS => "2.24 to 2.28",
        Some(true) if place == WITH_BOTH_ORDERS => "2.29",
        _ => LAYOUTS[place].releases,
    })
}

fn word(payload: &[u8], at: usize) -> Option<u32> {
    let bytes = payload.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn long(payload: &[u8], at: usize) -> Option<u64> {
    let bytes = payload.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}
