//! pcapng files: the walk over the blocks of all sections.
//!
//! ```text
//! block: type(4) length(4) body.. padding length(4)      SHB  magic(4) major(2) minor(2) section length(8) options
//! EPB  interface(4) time(8) captured(4) original(4) data options     IDB  link(2) reserved(2) snaplen(4) options
//! PB   interface(2) drops(2) time(8) captured(4) original(4) data options      SPB  original(4) data
//! ISB  interface(4) time(8) options
//! ```
//! draft-ietf-opsawg-pcapng, section 4 (the Packet Block: its appendix). Blocks of local use are notes, every other
//! block is skipped.
//! Leaves options, time units and processes to the files beside it, and where the bytes come from to `blocks`.
//!
//! A crate was looked for and not taken: pcap-parser makes a value with a vector of options for each
//! block. Here the usual block is read in place without an allocation, and a fault has its offset in the
//! file.

mod clock;
pub(crate) mod options;
mod packets;
mod plain;
mod processes;

use std::sync::Arc;

use roce_wire::LinkType;

use crate::error::Fault;
use crate::frame::{Interface, LostFrames, Note, place};
use crate::magic::begins_pcap;
pub(crate) use crate::magic::{BYTE_ORDER, SECTION};
use crate::walk::{FoundFrames, Stop, WalkEnd, captured_limit, u16_of, u32_of};
use clock::Clock;
use options::Options;
use plain::InterfaceState;
pub(crate) use plain::{ENHANCED, PlainPackets};
use processes::SectionProcesses;

/// The shortest one.
pub(crate) const SECTION_BYTES: usize = 28;
pub(crate) const INTERFACE: u32 = 1;
pub(crate) const PACKET: u32 = 2;
pub(crate) const SIMPLE: u32 = 3;
pub(crate) const STATISTICS: u32 = 5;
/// Set in the types of blocks of local use (section 10.1).
const LOCAL: u32 = 1 << 31;

/// Interfaces that a file may describe, all sections together.
pub(crate) const MAX_INTERFACES: usize = 16_384;

/// The longest block that is held in memory: a frame of the largest snaplen and as much of options.
const MAX_BLOCK: u32 = 32 << 20;
/// Longer blocks that are of no interest are not held in memory to be skipped.
const MAX_HELD: u32 = 64 << 10;
/// Type, length, and the length again.
const AROUND: u32 = 12;

/// The end of a long block that is skipped, still to be checked.
#[derive(Clone, Copy, Debug)]
struct Trailer {
    kind: u32,
    length: u32,
    offset: u64,
}

/// Walks the blocks of one pcapng file.
#[derive(Debug, Default)]
pub(crate) struct Pcapng {
    plain: PlainPackets,
    /// Number of this section, from 1 on.
    section: u32,
    processes: SectionProcesses,
    trailer: Option<Trailer>,
}

/// Why the walk over a section's blocks ended.
enum SectionEnd {
    Stop(Stop),
    NewOrder,
}

impl From<Fault> for SectionEnd {
    fn from(fault: Fault) -> Self {
        Self::Stop(Stop::Fault(fault))
    }
}

/// One whole block, in the parts that every kind has.
struct Block<'a> {
    kind: u32,
    body: &'a [u8],
    /// Start of the body in the batch's data.
    place: usize,
}

/// True if the magic of a section says that its numbers are in the byte order that is assumed, false if in the other one.
fn is_in_order<const BIG: bool>(magic: [u8; 4]) -> Result<bool, Fault> {
    match u32_of::<BIG>(magic) {
        BYTE_ORDER => Ok(true),
        found if found == BYTE_ORDER.swap_bytes() => Ok(false),
        _ => Err(Fault::ByteOrder {
            found: u32::from_be_bytes(magic),
        }),
    }
}

/// The least and the greatest length of a block of this kind.
#[inline]
fn lengths_of(kind: u32) -> (u32, u32) {
    match kind {
        SECTION => (AROUND + 16, MAX_BLOCK),
        INTERFACE => (AROUND + 8, MAX_BLOCK),
        PACKET | ENHANCED => (AROUND + 20, MAX_BLOCK),
        SIMPLE => (AROUND + 4, MAX_BLOCK),
        STATISTICS => (AROUND + 12, MAX_BLOCK),
        _ => (AROUND, u32::MAX - 3),
    }
}

/// Checks the length of a block, with which `rest` begins: where it is none, another capture may begin.
#[inline]
fn check_length(rest: &[u8], kind: u32, length: u32, least: u32, most: u32) -> Result<(), Fault> {
    let fits = (least..=most).contains(&length);
    if (!fits || kind & LOCAL != 0) && begins_pcap(rest) {
        return Err(Fault::AnotherCapture);
    }
    if !fits {
        return Err(Fault::BlockLength {
            kind,
            found: length,
            least,
            most,
        });
    }
    Ok(())
}

/// Checks the length at a block's end against that at its begin.
#[inline]
fn check_trailer(kind: u32, found: u32, expected: u32) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    Err(Fault::Trailer {
        kind,
        found,
        expected,
    })
}

impl Pcapng {
    /// Reads the plain packets of the section that goes on.
    pub(crate) fn plain(&self) -> &PlainPackets {
        &self.plain
    }

    /// Offset and length of a skipped block whose end has not been seen.
    pub(crate) fn unfinished(&self) -> Option<(u64, u64)> {
        self.trailer
            .map(|trailer| (trailer.offset, u64::from(trailer.length).next_multiple_of(4)))
    }

    /// Walks the blocks of `data[from..]`, whose first byte has the offset `offset` in the file.
    pub(crate) fn walk(&mut self, data: &[u8], from: usize, offset: u64, found: &mut FoundFrames) -> WalkEnd {
        let mut at = from;
        loop {
            let left = if self.plain.big {
                self.blocks::<true>(data, &mut at, from, offset, found)
            } else {
                self.blocks::<false>(data, &mut at, from, offset, found)
            };
            if let SectionEnd::Stop(stop) = left {
                return WalkEnd { at, stop };
            }
        }
    }

    /// Walks blocks while the byte order stays.
    fn blocks<const BIG: bool>(
        &mut self,
        data: &[u8],
        at: &mut usize,
        from: usize,
        offset: u64,
        found: &mut FoundFrames,
    ) -> SectionEnd {
        loop {
            if let Some(Trailer { kind, length, .. }) = self.trailer {
                let Some(end) = data.get(*at..).and_then(<[u8]>::first_chunk::<4>) else {
                    return SectionEnd::Stop(Stop::Need(4));
                };
                self.trailer = None;
                if let Err(fault) = check_trailer(kind, u32_of::<BIG>(*end), length) {
                    return fault.into();
                }
                *at += 4;
                continue;
            }
            *at = self.plain.walk::<BIG>(data, *at, found);
            let rest = data.get(*at..).unwrap_or_default();
            let Some(head) = rest.first_chunk::<12>() else {
                return SectionEnd::Stop(Stop::Need(12));
            };
            let [t0, t1, t2, t3, l0, l1, l2, l3, m0, m1, m2, m3] = *head;
            let (kind, length) = (u32_of::<BIG>([t0, t1, t2, t3]), u32_of::<BIG>([l0, l1, l2, l3]));
            if kind == SECTION {
                match is_in_order::<BIG>([m0, m1, m2, m3]) {
                    Ok(true) => {}
                    Ok(false) => {
                        self.plain.make_skimmed(data, found);
                        self.plain.big = !BIG;
                        return SectionEnd::NewOrder;
                    }
                    Err(fault) => return fault.into(),
                }
            }
            let (least, most) = lengths_of(kind);
            if let Err(fault) = check_length(rest, kind, length, least, most) {
                return fault.into();
            }
            // Some writers forget the padding in the length (libpcap's sf-pcapng.c allows for it).
            let whole = length.next_multiple_of(4) as usize;
            let Some((body, end)) = rest.get(8..whole).and_then(<[u8]>::split_last_chunk::<4>) else {
                if whole <= MAX_HELD as usize || most == MAX_BLOCK {
                    return SectionEnd::Stop(Stop::Need(whole));
                }
                self.trailer = Some(Trailer {
                    kind,
                    length,
                    offset: offset + (*at - from) as u64,
                });
                return SectionEnd::Stop(Stop::Skip(whole as u64 - 4));
            };
            self.plain.make_skimmed(data, found);
            let block = Block {
                kind,
                body,
                place: *at + 8,
            };
            let taken = check_trailer(kind, u32_of::<BIG>(*end), length)
                .and_then(|()| self.block::<BIG>(&block, found));
            if let Err(fault) = taken {
                return fault.into();
            }
            *at += whole;
        }
    }

    /// Takes a whole block.
    #[inline]
    fn block<const BIG: bool>(&mut self, block: &Block<'_>, found: &mut FoundFrames) -> Result<(), Fault> {
        match block.kind {
            ENHANCED => self.enhanced::<BIG>(block, found),
            SECTION => self.section::<BIG>(block, found),
            INTERFACE => self.interface::<BIG>(block, found),
            PACKET => self.packet::<BIG>(block, found),
            SIMPLE => self.simple::<BIG>(block, found),
            STATISTICS => self.statistics::<BIG>(block, found),
            kind => {
                if processes::CUSTOM.contains(&kind) {
                    self.processes.custom::<BIG>(block.body, found);
                } else if kind == processes::DARWIN {
                    self.processes.darwin::<BIG>(block.body, found);
                }
                block.note(found);
                Ok(())
            }
        }
    }

    fn section<const BIG: bool>(&mut self, block: &Block<'_>, found: &FoundFrames) -> Result<(), Fault> {
        let (major, minor) = (block.half::<BIG>(4), block.half::<BIG>(6));
        // Minor 2 differs in nothing that is read here (some writers use it; the specification says so).
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(Fault::Version {
                format: "pcapng",
                major,
                minor,
                expected: "1.0",
            });
        }
        self.plain.base = found.interfaces.len();
        self.section = self.section.saturating_add(1);
        self.plain.sources = Arc::default();
        self.processes = SectionProcesses::default();
        Ok(())
    }

    fn interface<const BIG: bool>(
        &mut self,
        block: &Block<'_>,
        found: &mut FoundFrames,
    ) -> Result<(), Fault> {
        let snaplen = block.word::<BIG>(4);
        let (mut resolution, mut offset, mut fcs_bytes) = (clock::MICROSECONDS, 0, 0);
        let (mut name, mut description) = (None, None);
        for option in Options::<BIG>::new(block.kind, block.body.get(8..)) {
            let option = option?;
            match option.code {
                options::IF_NAME => name = option.text(),
                options::IF_DESCRIPTION => description = option.text(),
                options::IF_TSRESOL => resolution = option.byte().unwrap_or(resolution),
                options::IF_TSOFFSET => offset = option.signed().unwrap_or(offset),
                options::IF_FCSLEN => fcs_bytes = option.byte().map_or(fcs_bytes, fcs_length),
                _ => {}
            }
        }
        if found.interfaces.len() >= MAX_INTERFACES {
            return Err(Fault::TooManyInterfaces {
                limit: MAX_INTERFACES,
            });
        }
        let clock = Clock::new(resolution, offset);
        found.interfaces.push(Interface {
            link: LinkType(block.half::<BIG>(0)),
            name,
            description,
            snaplen,
            fcs_bytes,
            quantum_ns: clock.quantum_ns(),
            dropped: None,
            section: self.section,
        });
        let limit = captured_limit(snaplen);
        Arc::make_mut(&mut self.plain.sources).push(InterfaceState {
            clock,
            limit,
            snaplen,
            fcs_bytes,
            dropped: 0,
        });
        Ok(())
    }

    /// Statistics count from the start of the capture: what they say beyond what is known was lost by now.
    fn statistics<const BIG: bool>(
        &mut self,
        block: &Block<'_>,
        found: &mut FoundFrames,
    ) -> Result<(), Fault> {
        let number = block.word::<BIG>(0);
        let source = self.source(block.kind, number)?;
        let (mut interface, mut system) = (None, None);
        for option in Options::<BIG>::new(block.kind, block.body.get(12..)) {
            let option = option?;
            match option.code {
                options::ISB_IFDROP => interface = option.long(),
                options::ISB_OSDROP => system = option.long(),
                _ => {}
            }
        }
        if interface.is_some() || system.is_some() {
            let total = interface.unwrap_or(0).saturating_add(system.unwrap_or(0));
            self.lose(number, total.saturating_sub(source.dropped), found);
        }
        Ok(())
    }

    /// The interface `number` of this section.
    #[inline]
    fn source(&self, kind: u32, number: u32) -> Result<InterfaceState, Fault> {
        let known = place(self.plain.sources.len());
        self.plain
            .sources
            .get(number as usize)
            .copied()
            .ok_or(Fault::Interface {
                kind,
                found: number,
                known,
            })
    }

    /// Notes that an interface lost records (also none: then it is known that it lost none).
    #[cold]
    fn lose(&mut self, number: u32, records: u64, found: &mut FoundFrames) {
        let interface = self.plain.base + number as usize;
        let Some(source) = Arc::make_mut(&mut self.plain.sources).get_mut(number as usize) else {
            return;
        };
        source.dropped = source.dropped.saturating_add(records);
        if let Some(interface) = found.interfaces.get_mut(interface) {
            interface.dropped = Some(source.dropped);
        }
        if records > 0 {
            let before = place(found.frames.len());
            found.lost.push(LostFrames {
                before,
                interface: place(interface),
                records,
            });
        }
    }
}

impl Block<'_> {
    /// Takes note of a block of local use.
    fn note(&self, found: &mut FoundFrames) {
        if self.kind & LOCAL != 0 {
            found.notes.push(Note {
                before: place(found.frames.len()),
                kind: self.kind,
                offset: place(self.place),
                length: place(self.body.len()),
            });
        }
    }

    /// The number of 32 bits at `at` of the body.
    #[inline]
    fn word<const BIG: bool>(&self, at: usize) -> u32 {
        let bytes = self.body.get(at..).and_then(<[u8]>::first_chunk::<4>);
        bytes.map_or(0, |bytes| u32_of::<BIG>(*bytes))
    }

    /// The number of 16 bits at `at` of the body.
    #[inline]
    fn half<const BIG: bool>(&self, at: usize) -> u16 {
        let bytes = self.body.get(at..).and_then(<[u8]>::first_chunk::<2>);
        bytes.map_or(0, |bytes| u16_of::<BIG>(*bytes))
    }
}

/// Bytes of FCS in `if_fcslen`. The specification counts bits, but some writers (and its own example, 4) count
/// bytes: below 8 it cannot be bits.
fn fcs_length(value: u8) -> u8 {
    if value < 8 { value } else { value / 8 }
}

#[cfg(test)]
mod tests;
