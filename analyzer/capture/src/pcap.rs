//! pcap files: the file header and the walk over the records.
//!
//! ```text
//! file header, 24 bytes               record header, 16 bytes (24 when modified)
//! magic(4) major(2) minor(2)          seconds(4) us or ns(4)
//! zone(4) accuracy(4) snaplen(4)      captured(4) original(4)
//! FCS words(4 bits) 0 f 0.. link(16)  [interface(4) protocol(2) type(1) pad(1)]
//! ```
//! draft-ietf-opsawg-pcap, sections 4 and 5; the modified format is that of libpcap's `pcap_sf_patched_pkthdr`.
//! Leaves where the bytes come from to `blocks`, and pcapng to `pcapng`.

use roce_model::Time;
use roce_wire::LinkType;

use crate::error::Fault;
use crate::frame::{Direction, Frame, Interface, place};
use crate::frames::FrameMaker;
use crate::magic::{MICROS, MODIFIED, NANOS, begins_capture};
use crate::summary::Container;
use crate::walk::{FoundFrames, Skimmer, Stop, WalkEnd, captured_limit, u16_of, u32_of};

/// Bytes of the file header.
pub(crate) const HEADER: usize = 24;

/// Walks the records of one pcap file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pcap {
    big: bool,
    modified: bool,
    /// Nanoseconds in one unit of the fraction of a second.
    fraction_ns: u64,
    limit: u32,
    fcs_bytes: u8,
}

/// Container of a file, and true if its numbers are big endian, from its first four bytes.
pub(crate) fn recognise(magic: [u8; 4]) -> Option<(Container, bool)> {
    let container = |magic| match magic {
        MICROS => Some(Container::Pcap),
        NANOS => Some(Container::PcapNanos),
        MODIFIED => Some(Container::PcapModified),
        _ => None,
    };
    let little = container(u32::from_le_bytes(magic)).map(|container| (container, false));
    little.or_else(|| container(u32::from_be_bytes(magic)).map(|container| (container, true)))
}

impl Pcap {
    /// Reads the file header, whose magic was recognised.
    pub(crate) fn new(
        header: &[u8; HEADER],
        container: Container,
        big: bool,
    ) -> Result<(Self, Interface), Fault> {
        if big {
            Self::read::<true>(header, container)
        } else {
            Self::read::<false>(header, container)
        }
    }

    fn read<const BIG: bool>(
        header: &[u8; HEADER],
        container: Container,
    ) -> Result<(Self, Interface), Fault> {
        // Magic, version, two words that nobody fills, snaplen, link type.
        let [_, _, _, _, m0, m1, n0, n1, rest @ ..] = *header;
        let [_, _, _, _, _, _, _, _, s0, s1, s2, s3, l0, l1, l2, l3] = rest;
        let (major, minor) = (u16_of::<BIG>([m0, m1]), u16_of::<BIG>([n0, n1]));
        // Up to 2.2 the two lengths were in the other order (libpcap's sf-pcap.c); 2.3 mixed both.
        if major != 2 || minor < 4 {
            return Err(Fault::Version {
                format: "pcap",
                major,
                minor,
                expected: "2.4",
            });
        }
        let snaplen = u32_of::<BIG>([s0, s1, s2, s3]);
        let word = u32_of::<BIG>([l0, l1, l2, l3]);
        let fraction_ns = if container == Container::PcapNanos {
            1
        } else {
            1_000
        };
        // The f bit says that the upper four bits hold the length of the FCS in words of 16 bits: 30 at most.
        let fcs_bytes = if word & 0x0400_0000 == 0 {
            0
        } else {
            (word >> 28) as u8 * 2
        };
        let interface = Interface {
            link: LinkType((word & 0xffff) as u16),
            name: None,
            description: None,
            snaplen,
            fcs_bytes,
            quantum_ns: fraction_ns,
            dropped: None,
            section: 0,
        };
        let walker = Self {
            big: BIG,
            modified: container == Container::PcapModified,
            fraction_ns,
            limit: captured_limit(snaplen),
            fcs_bytes,
        };
        Ok((walker, interface))
    }

    /// Bytes of a record's header.
    pub(crate) fn record_header(&self) -> usize {
        if self.modified { 24 } else { 16 }
    }

    /// Walks the records of `data[from..]`, or skims them.
    pub(crate) fn walk(&self, data: &[u8], from: usize, found: &mut FoundFrames) -> WalkEnd {
        if found.skims {
            return self.skim(data, from, found);
        }
        let (frames, times) = (&mut found.frames, &mut found.times);
        self.each(data, from, |frame| {
            times.note(frame.time.0);
            frames.push(frame);
        })
    }

    fn skim(&self, data: &[u8], from: usize, found: &mut FoundFrames) -> WalkEnd {
        let mut skimmer = Skimmer::begin(found);
        let walked = self.each(data, from, |frame| skimmer.record(frame.time));
        skimmer.end(from..walked.at, found);
        walked
    }

    #[inline]
    fn each(&self, data: &[u8], from: usize, take: impl FnMut(Frame)) -> WalkEnd {
        // The inner loop exists once for each kind of record, so that it decides nothing twice.
        match (self.big, self.modified) {
            (false, false) => self.records::<false, 16>(data, from, take),
            (true, false) => self.records::<true, 16>(data, from, take),
            (false, true) => self.records::<false, 24>(data, from, take),
            (true, true) => self.records::<true, 24>(data, from, take),
        }
    }

    /// The fault of a record without bytes, or with more than the limit.
    #[cold]
    fn length_fault(&self, head: &[u8], captured: u32) -> Option<Fault> {
        if begins_capture(head) {
            return Some(Fault::AnotherCapture);
        }
        (captured > self.limit).then_some(Fault::CapturedLength {
            found: captured,
            limit: self.limit,
        })
    }

    fn records<const BIG: bool, const HEAD: usize>(
        &self,
        data: &[u8],
        from: usize,
        mut take: impl FnMut(Frame),
    ) -> WalkEnd {
        let mut rest = data.get(from..).unwrap_or_default();
        let stop = loop {
            let Some((head, body)) = rest.split_first_chunk::<HEAD>() else {
                break Stop::Need(HEAD);
            };
            let word = |at: usize| u32_of::<BIG>([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let captured = word(8);
            // None, or more than the limit.
            if captured.wrapping_sub(1) >= self.limit
                && let Some(fault) = self.length_fault(head, captured)
            {
                break Stop::Fault(fault);
            }
            let Some((_, next)) = body.split_at_checked(captured as usize) else {
                break Stop::Need(HEAD + captured as usize);
            };
            // At most 2^32 s and 2^32 us: below 2^63 ns.
            let time = u64::from(word(0)) * 1_000_000_000 + u64::from(word(4)) * self.fraction_ns;
            take(Frame {
                time: Time(time),
                offset: place(data.len() - body.len()),
                captured,
                original: word(12),
                interface: 0,
                fcs_bytes: self.fcs_bytes,
                direction: Direction::Unknown,
                process: 0,
            });
            rest = next;
        };
        WalkEnd {
            at: data.len() - rest.len(),
            stop,
        }
    }
}

impl FrameMaker for Pcap {
    fn make(&self, data: &[u8], from: usize, frames: &mut Vec<Frame>) {
        self.each(data, from, |frame| frames.push(frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{ByteOrder, PcapOptions, PcapWriter};

    fn walk(file: &[u8]) -> (Interface, FoundFrames, WalkEnd) {
        let (container, big) = recognise(*file.first_chunk().unwrap()).unwrap();
        let (pcap, interface) = Pcap::new(file.first_chunk().unwrap(), container, big).unwrap();
        let mut found = FoundFrames::default();
        let walked = pcap.walk(file, HEADER, &mut found);
        (interface, found, walked)
    }

    #[test]
    fn both_orders_of_all_magics() {
        assert_eq!(
            recognise([0xd4, 0xc3, 0xb2, 0xa1]),
            Some((Container::Pcap, false))
        );
        assert_eq!(
            recognise([0xa1, 0xb2, 0x3c, 0x4d]),
            Some((Container::PcapNanos, true))
        );
        assert_eq!(
            recognise([0x34, 0xcd, 0xb2, 0xa1]),
            Some((Container::PcapModified, false))
        );
        assert_eq!(recognise([0xa1, 0xb2, 0xc3, 0xd5]), None);
        for container in [Container::Pcap, Container::PcapNanos, Container::PcapModified] {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let options = PcapOptions {
                    container,
                    order,
                    ..PcapOptions::default()
                };
                let mut writer = PcapWriter::new(Vec::new(), options).unwrap();
                writer.write(Time(1_000_002_003), 9, b"abc").unwrap();
                writer.write(Time(4_000_000_000), 0, b"").unwrap();
                let file = writer.finish().unwrap();
                // 24 + 2 * 16 + 3, and 2 * 8 more when modified.
                let modified = container == Container::PcapModified;
                assert_eq!(file.len(), if modified { 75 } else { 59 });
                let (interface, found, walked) = walk(&file);
                assert_eq!(walked.at, file.len());
                let micros = container != Container::PcapNanos;
                assert_eq!(interface.quantum_ns, if micros { 1_000 } else { 1 });
                let frame = found.frames[0];
                assert_eq!(
                    frame.time,
                    Time(if micros { 1_000_002_000 } else { 1_000_002_003 })
                );
                assert_eq!(&file[frame.offset as usize..][..frame.captured as usize], b"abc");
                assert_eq!(frame.original, 9);
                assert_eq!(found.frames[1].time, Time(4_000_000_000));
            }
        }
    }

    #[test]
    fn the_link_type_is_16_bits_and_the_fcs_stands_above() {
        let header = |order: fn(u32) -> [u8; 4], word: u32| {
            let mut header = [0; HEADER];
            header[..4].copy_from_slice(&order(MICROS));
            header[4..8].copy_from_slice(&order(if order(1)[0] == 0 {
                2 << 16 | 4
            } else {
                4 << 16 | 2
            }));
            header[16..20].copy_from_slice(&order(65_535));
            header[20..].copy_from_slice(&order(word));
            header
        };
        for order in [u32::to_le_bytes, u32::to_be_bytes] {
            // Two words of 16 bits, and the bit that says so.
            for (word, fcs_bytes) in [(0x2400_0001, 4), (0x2000_0001, 0), (0xf7ff_0001, 30), (1, 0)] {
                let (interface, ..) = walk(&header(order, word));
                assert_eq!(interface.link, LinkType::ETHERNET);
                assert_eq!((interface.fcs_bytes, interface.snaplen), (fcs_bytes, 65_535));
            }
        }
    }

    #[test]
    fn old_versions_are_refused() {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&MICROS.to_le_bytes());
        header[4] = 2;
        header[6] = 2;
        let fault = Pcap::new(&header, Container::Pcap, false).unwrap_err();
        assert_eq!(fault.to_string(), "pcap version 2.2; expected 2.4");
    }

    #[test]
    fn a_record_that_is_too_long_stops_the_walk() {
        let options = PcapOptions {
            snaplen: 96,
            ..PcapOptions::default()
        };
        let mut writer = PcapWriter::new(Vec::new(), options).unwrap();
        writer.write(Time(0), 3, b"abc").unwrap();
        let mut file = writer.finish().unwrap();
        file.extend([0; 8]);
        file.extend((USUAL + 1).to_le_bytes());
        file.extend([0; 4]);
        let (_, found, walked) = walk(&file);
        assert_eq!(found.frames.len(), 1);
        // 24 + 16 + 3.
        assert_eq!(walked.at, 43);
        let expected = Fault::CapturedLength {
            found: USUAL + 1,
            limit: USUAL,
        };
        assert!(matches!(walked.stop, Stop::Fault(fault) if fault == expected));
    }

    /// 256 KiB, as in libpcap.
    const USUAL: u32 = 262_144;
}
