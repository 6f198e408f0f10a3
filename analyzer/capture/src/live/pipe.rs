//! Packets of standard input as a device: what `tcpdump -U -w -` writes while it captures.
//!
//! Reads the classic pcap format alone, which tcpdump writes; files, pcapng and compressed streams are left to the reader of captures.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stdin;

use super::error::Error;

/// The device's name in options.
pub(super) const NAME: &str = "-";
/// Bytes of a file's header and of a record's header.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Bytes read at once.
const READ: usize = 256 << 10;
/// The longest record; a longer one is no record.
const MAX_RECORD: usize = 1 << 20;
/// How long the header is waited for: tcpdump writes it once the device is open, which ssh may have to ask for.
const HEADER_PATIENCE: Duration = Duration::from_mins(1);
/// Magic numbers of microseconds and nanoseconds (draft-ietf-opsawg-pcap).
const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;

/// A packet of the pipe.
pub(super) struct PipedPacket<'a> {
    pub(super) second: u64,
    /// Part of the second, in the stream's unit.
    pub(super) part: u64,
    pub(super) original: u32,
    pub(super) data: &'a [u8],
}

/// Standard input, behind the header of its stream.
pub(super) struct Pipe {
    parser: PacketParser,
    has_ended: bool,
}

/// State of the pipe behind a look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PipeState {
    /// There may be packets.
    Open,
    /// It has ended.
    Ended,
}

impl Pipe {
    /// Waits for the stream's header.
    pub(super) fn open() -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let begun = Instant::now();
        let failed = |reason: &str| Error::Open {
            device: NAME.to_owned(),
            reason: reason.to_owned(),
        };
        while bytes.len() < FILE_HEADER {
            let left = HEADER_PATIENCE.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(failed("no packets came to standard input within a minute"));
            }
            match more(&mut bytes, left.min(Duration::from_secs(1))) {
                Ok(Some(0)) => return Err(failed("standard input has no capture")),
                Ok(_) => {}
                Err(error) => return Err(failed(&error.to_string())),
            }
        }
        let parser = PacketParser::begin(bytes).ok_or_else(|| {
            failed("standard input is no pcap\nhint: tcpdump -i DEVICE -U -w - | roce-analyze live -i -; a whole file: roce-analyze FILE")
        })?;
        Ok(Self {
            parser,
            has_ended: false,
        })
    }

    /// The DLT of the packets.
    pub(super) fn link(&self) -> u16 {
        self.parser.link
    }

    /// Bytes that were kept of each packet at most.
    pub(super) fn snaplen(&self) -> u32 {
        self.parser.snaplen
    }

    /// Nanoseconds of one unit of the part of a second.
    pub(super) fn unit(&self) -> u64 {
        self.parser.unit
    }

    /// Waits for packets, and gives those that are whole to `take`.
    pub(super) fn look(
        &mut self,
        patience: Duration,
        take: impl FnMut(&PipedPacket<'_>),
    ) -> io::Result<PipeState> {
        if !self.has_ended {
            self.has_ended = more(&mut self.parser.bytes, patience)? == Some(0);
        }
        self.parser.packets(take)?;
        Ok(if self.has_ended {
            PipeState::Ended
        } else {
            PipeState::Open
        })
    }
}

/// Reads what is there within `patience`: the number of bytes, 0 at the end; `None`: nothing came.
fn more(bytes: &mut Vec<u8>, patience: Duration) -> io::Result<Option<usize>> {
    let input = stdin();
    let mut waited = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(1),
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    match poll(&mut waited, Some(&patience)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let length = bytes.len();
    bytes.resize(length + READ, 0);
    let read = rustix::io::read(input, bytes.get_mut(length..).unwrap_or_default());
    bytes.truncate(length + read.unwrap_or(0));
    match read {
        Ok(count) => Ok(Some(count)),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Records of a stream whose header was read.
struct PacketParser {
    is_big: bool,
    unit: u64,
    link: u16,
    snaplen: u32,
    /// Bytes that were read and are no whole record yet.
    bytes: Vec<u8>,
}

impl PacketParser {
    /// Takes the header off the first bytes; `None`: they are no pcap.
    fn begin(mut bytes: Vec<u8>) -> Option<Self> {
        let magic: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        let unit_of = |magic| match magic {
            MICROS => Some(1_000),
            NANOS => Some(1),
            _ => None,
        };
        let little = unit_of(u32::from_le_bytes(magic)).map(|unit| (unit, false));
        let (unit, is_big) =
            little.or_else(|| unit_of(u32::from_be_bytes(magic)).map(|unit| (unit, true)))?;
        let snaplen = number(&bytes, 16, is_big)?;
        // The lower 16 bits; those above say how long the frame check sequence is.
        let link = u16::try_from(number(&bytes, 20, is_big)? & 0xffff).ok()?;
        bytes.drain(..FILE_HEADER);
        Some(Self {
            is_big,
            unit,
            link,
            snaplen,
            bytes,
        })
    }

    /// Gives all whole packets to `take`.
    fn packets(&mut self, mut take: impl FnMut(&PipedPacket<'_>)) -> io::Result<()> {
        let mut at = 0;
        while let Some(header) = self.bytes.get(at..at + RECORD_HEADER) {
            let field = |place| number(header, place, self.is_big).unwrap_or(0);
            let (second, part, captured, original) = (field(0), field(4), field(8), field(12));
            let captured = usize::try_from(captured).unwrap_or(usize::MAX);
            if captured > MAX_RECORD {
                return Err(io::Error::other("a packet of standard input is longer than any"));
            }
            let start = at + RECORD_HEADER;
            let Some(data) = self.bytes.get(start..start + captured) else {
                break;
            };
            take(&PipedPacket {
                second: u64::from(second),
                part: u64::from(part),
                original,
                data,
            });
            at = start + captured;
        }
        self.bytes.drain(..at);
        Ok(())
    }
}

fn number(bytes: &[u8], at: usize, is_big: bool) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(if is_big {
        u32::from_be_bytes(four)
    } else {
        u32::from_le_bytes(four)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(magic: u32, is_big: bool) -> Vec<u8> {
        let words = [magic, 0x0002_0004, 0, 0, 192, 1];
        let bytes = |word: u32| {
            if is_big {
                word.to_be_bytes()
            } else {
                word.to_le_bytes()
            }
        };
        words.into_iter().flat_map(bytes).collect()
    }

    fn record(second: u32, part: u32, data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap();
        let words = [second, part, length, length + 900];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.extend(data);
        bytes
    }

    fn taken(parser: &mut PacketParser) -> Vec<(u64, u64, u32, Vec<u8>)> {
        let mut all = Vec::new();
        parser
            .packets(|packet| all.push((packet.second, packet.part, packet.original, packet.data.to_vec())))
            .unwrap();
        all
    }

    #[test]
    fn packets_come_out_whole_however_the_pipe_cuts_them() {
        let mut bytes = header(MICROS, false);
        bytes.extend(record(7, 9, &[1, 2, 3]));
        bytes.extend(record(8, 10, &[4]));
        let (first, rest) = bytes.split_at(FILE_HEADER + RECORD_HEADER + 2);
        let mut parser = PacketParser::begin(first.to_vec()).unwrap();
        assert_eq!((parser.unit, parser.link, parser.snaplen), (1_000, 1, 192));
        assert_eq!(taken(&mut parser), []);
        for byte in rest {
            parser.bytes.push(*byte);
            if parser.bytes.len() == RECORD_HEADER + 3 {
                assert_eq!(taken(&mut parser), [(7, 9, 903, vec![1, 2, 3])]);
            }
        }
        assert_eq!(taken(&mut parser), [(8, 10, 901, vec![4])]);
        assert!(parser.bytes.is_empty());
    }

    #[test]
    fn both_orders_and_units_are_known_and_nothing_else() {
        assert_eq!(
            PacketParser::begin(header(NANOS, true)).map(|parser| (parser.unit, parser.link)),
            Some((1, 1))
        );
        assert!(PacketParser::begin(header(0x0a0d_0d0a, false)).is_none());
        // A record of 16 MB is none.
        let mut parser = PacketParser::begin(header(MICROS, false)).unwrap();
        parser
            .bytes
            .extend([0; 8].into_iter().chain([0, 0, 0, 1]).chain([0; 4]));
        assert!(parser.packets(|_| {}).is_err());
    }
}
