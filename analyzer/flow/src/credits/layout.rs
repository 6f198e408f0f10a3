//! Layouts of a credit in NCCL's network transport, by release, and in those that follow it. Numbers are little-endian, the address comes
//! first. Sources: NCCL, `src/transport/net_ib.cc` (from 2.29 `net_ib/common.h`), `struct ncclIbSendFifo` and `MAX_REQUESTS`;
//! amd-anp, `src/net_ib.cc`; RCCL, `net_ib_cast`, `struct ncclIbSendFifoCtsInline` and `IbCastPostFifo`.

/// Field of an element: its first byte, and its length in bytes.
type Field = (usize, usize);

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
    /// The length of a buffer. Of its eight bytes in late layouts the upper four are 0.
    size_at: usize,
    /// The number of elements, or a word that is 1.
    count: Field,
    /// The rank of the sender.
    tag: Option<Field>,
    /// The number of the credit, which begins with 1. A short one begins again with 0.
    number: Option<Field>,
    /// Where keys are, and how many: one for each device.
    keys: (usize, usize),
}

/// A set of layouts, a bit for each.
pub(super) type LayoutSet = u16;

/// All layouts, with the releases of each.
pub(super) const LAYOUTS: [Layout; 9] = [
    Layout::old("2.3 to 2.7", 24, 128),
    Layout::old("2.8 to 2.11", 32, 8),
    Layout::of_32("2.12 to 2.18", 64),
    Layout::of_32("2.19", 256),
    Layout::of_64("2.20 to 2.23", (12, 2), 20, 32),
    Layout::of_64("2.24 to 2.29", (16, 4), 32, 40),
    Layout::of_64("2.30", (16, 8), 48, 56),
    Layout::packed("amd-anp", 24, 256, (17, 2), (19, 4)),
    Layout::packed("RCCL with inline credits", 64, 512, (19, 2), (21, 4)),
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
            size_at: 8,
            count: (20, 4),
            tag: None,
            number: None,
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
            size_at: 8,
            count: (16, 4),
            tag: Some((20, 4)),
            number: Some((24, 8)),
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
            size_at: 8,
            count: (count_at, 4),
            tag: Some((count_at + 4, 4)),
            number: Some((number_at, 8)),
            keys,
        }
    }

    /// An element without padding: the key is before the length of the buffer, the count has one byte.
    const fn packed(releases: &'static str, element: u32, stride: u32, tag: Field, number: Field) -> Self {
        Self {
            releases,
            element,
            stride,
            slots: 256,
            size_at: 12,
            count: (16, 1),
            tag: Some(tag),
            number: Some(number),
            keys: (8, 1),
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
        let counted = field(payload, self.count).is_none_or(|word| word == u64::from(count));
        counted && self.number(payload).is_none_or(|number| number < MAX_NUMBER)
    }

    /// Number of the credit: 0 for the first one of its connection. Beyond the largest for a credit that says none.
    pub(super) fn number(&self, payload: &[u8]) -> Option<u64> {
        Some(field(payload, self.number?)?.wrapping_sub(1))
    }

    /// How far a credit is ahead of the one with the number `newest`; negative if it is older.
    pub(super) fn ahead(&self, payload: &[u8], newest: u64) -> Option<i64> {
        let unused = 64 - 8 * u32::try_from(self.number?.1).unwrap_or(8);
        let ahead = self.number(payload)?.wrapping_sub(newest);
        Some((ahead << unused).cast_signed() >> unused)
    }

    /// Rank of the sender of the data, if all elements name one and none was cut.
    pub(super) fn tag(&self, payload: &[u8], length: u32) -> Option<Tag> {
        let (at, bytes) = self.tag?;
        let element = self.element as usize;
        let first = field(payload, (at, bytes))?;
        let mut others =
            (1..self.elements(length)? as usize).map(|other| field(payload, (other * element + at, bytes)));
        let is_one = others.all(|other| other == Some(first));
        let rank = u32::try_from(first).ok()?;
        Some(if is_one { Tag::Rank(rank) } else { Tag::Several })
    }

    /// Length of the buffer, in bytes: an upper bound of the data.
    pub(super) fn size(&self, payload: &[u8]) -> Option<u32> {
        word(payload, self.size_at)
    }

    /// Address of the buffer. Of a frame that ends within it, six bytes are enough: programs have no larger addresses (x86-64 and
    /// Arm with four levels of pages).
    pub(super) fn buffer(payload: &[u8]) -> Option<u64> {
        field(payload, (0, 8)).or_else(|| field(payload, (0, CUT_ADDRESS)))
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
pub(super) fn releases(layouts: LayoutSet, is_big_endian: Option<bool>) -> Option<&'static str> {
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
    u32::try_from(field(payload, (at, 4))?).ok()
}

/// A number of up to eight bytes.
fn field(payload: &[u8], (at, bytes): Field) -> Option<u64> {
    let mut number = [0; 8];
    number
        .get_mut(..bytes)?
        .copy_from_slice(payload.get(at..at + bytes)?);
    Some(u64::from_le_bytes(number))
}
