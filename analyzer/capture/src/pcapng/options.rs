//! The options at the end of pcapng blocks: code(2) length(2) value, padded to 4, until code 0 or the end.
//!
//! Leaves what options mean to the blocks, but for the flags word of a packet.

use crate::error::Fault;
use crate::frame::Direction;
use crate::walk::{u16_of, u32_of};

/// Bytes that are kept of a text.
const MAX_TEXT: usize = 256;
pub(crate) const COMMENT: u16 = 1;
pub(crate) const SHB_OS: u16 = 3;
pub(crate) const SHB_USERAPPL: u16 = 4;
pub(crate) const IF_NAME: u16 = 2;
pub(crate) const IF_DESCRIPTION: u16 = 3;
pub(crate) const IF_TSRESOL: u16 = 9;
pub(crate) const IF_FCSLEN: u16 = 13;
pub(crate) const IF_TSOFFSET: u16 = 14;
/// Flags of an Enhanced Packet Block or a Packet Block.
pub(crate) const EPB_FLAGS: u16 = 2;
pub(crate) const EPB_DROPCOUNT: u16 = 4;
/// Process and thread that sent or received the packet.
pub(crate) const EPB_PROCESS: u16 = 8;
/// Darwin's block of the process, by its number in the section.
pub(crate) const EPB_DARWIN_PROCESS: u16 = 0x8001;
pub(crate) const PROCESS_NAME: u16 = 2;
/// Start of a process, in ns since the Unix epoch.
pub(crate) const PROCESS_START: u16 = 9;
pub(crate) const ISB_IFDROP: u16 = 5;
pub(crate) const ISB_OSDROP: u16 = 7;

/// Walks the options of a block.
pub(crate) struct Options<'a, const BIG: bool> {
    kind: u32,
    rest: &'a [u8],
}

/// One option.
pub(crate) struct Opt<'a, const BIG: bool> {
    pub(crate) code: u16,
    value: &'a [u8],
}

impl<'a, const BIG: bool> Options<'a, BIG> {
    /// The options in `bytes` of a block of type `kind`.
    pub(crate) fn new(kind: u32, bytes: Option<&'a [u8]>) -> Self {
        Self {
            kind,
            rest: bytes.unwrap_or_default(),
        }
    }
}

impl<'a, const BIG: bool> Iterator for Options<'a, BIG> {
    type Item = Result<Opt<'a, BIG>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&[c0, c1, l0, l1], body) = self.rest.split_first_chunk::<4>()?;
        let (code, length) = (u16_of::<BIG>([c0, c1]), u16_of::<BIG>([l0, l1]));
        self.rest = &[];
        if code == 0 {
            return None;
        }
        let Some((value, rest)) = body.split_at_checked(length.into()) else {
            return Some(Err(Fault::Option {
                kind: self.kind,
                code,
                found: length,
                room: body.len(),
            }));
        };
        let padding = usize::from(length).next_multiple_of(4) - usize::from(length);
        self.rest = rest.get(padding..).unwrap_or_default();
        Some(Ok(Opt { code, value }))
    }
}

impl<const BIG: bool> Opt<'_, BIG> {
    /// The value as text, without the NUL that some writers end it with; `None` when it is empty.
    pub(crate) fn text(&self) -> Option<String> {
        // Names are short; what pretends to be one is cut.
        let value = self.value.get(..MAX_TEXT).unwrap_or(self.value);
        let text = String::from_utf8_lossy(value);
        let text = text.trim_end_matches('\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The value as 8 bits.
    pub(crate) fn byte(&self) -> Option<u8> {
        self.value.first().copied()
    }

    /// The value as 32 bits.
    pub(crate) fn word(&self) -> Option<u32> {
        self.value.first_chunk().map(|bytes| u32_of::<BIG>(*bytes))
    }

    /// The value as 64 bits.
    pub(crate) fn long(&self) -> Option<u64> {
        let bytes = self.value.first_chunk::<8>()?;
        Some(if BIG {
            u64::from_be_bytes(*bytes)
        } else {
            u64::from_le_bytes(*bytes)
        })
    }

    /// The value as 64 bits with a sign.
    pub(crate) fn signed(&self) -> Option<i64> {
        self.long().map(u64::cast_signed)
    }
}

/// Bits 0 and 1 of a packet's flags: 1 inbound, 2 outbound.
pub(crate) fn direction(flags: u32) -> Direction {
    match flags & 3 {
        1 => Direction::Inbound,
        2 => Direction::Outbound,
        _ => Direction::Unknown,
    }
}

/// Bits 5 to 8 of a packet's flags: bytes of FCS, 0 when that is not known.
pub(crate) fn fcs_bytes(flags: u32) -> Option<u8> {
    let bytes = (flags >> 5 & 15).to_le_bytes()[0];
    (bytes != 0).then_some(bytes)
}
