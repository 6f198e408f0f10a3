//! A datagram of sFlow version 5, as <https://sflow.org/sflow_version_5.txt> describes it in XDR (RFC 4506).
//!
//! Each sample and each record has its length in front, so that unknown ones are stepped over and a broken one does not hide the next.
//! Nothing is copied. A count in the datagram is only the end of a loop whose every step takes 8 bytes, so the time is linear in the bytes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The version that is read.
const VERSION: u32 = 5;
/// Formats of samples that sflow.org defines (its enterprise is 0): flow, counters, both expanded, and a discarded packet.
const FLOW: u32 = 1;
const COUNTERS: u32 = 2;
const EXPANDED_FLOW: u32 = 3;
const EXPANDED_COUNTERS: u32 = 4;
const DISCARDED: u32 = 5;
/// Format of the record with the first bytes of a packet.
const RAW_HEADER: u32 = 1;

/// A place of a datagram that is not as the specification has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Offset in the datagram, in bytes.
    pub offset: usize,
    /// Bytes that were expected there.
    pub expected: u32,
    /// Bytes that were there.
    pub had: usize,
    /// Name of what was expected.
    pub what: &'static str,
    /// The number that is there, where another one was expected.
    pub found: Option<u32>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            offset,
            expected,
            had,
            what,
            found,
        } = self;
        if let Some(found) = found {
            return write!(
                f,
                "byte {offset} of the datagram: {what} expected, {found} is there"
            );
        }
        write!(
            f,
            "byte {offset} of the datagram: {what} of {expected} bytes expected, {had} are there"
        )
    }
}

/// Bytes that are read from their beginning, and where in the datagram they are.
#[derive(Clone, Copy, Debug)]
struct Bytes<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, length: u32, what: &'static str) -> Result<Bytes<'a>, Fault> {
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((taken, rest)) = self.rest.split_at_checked(wanted) else {
            return Err(Fault {
                offset: self.offset,
                expected: length,
                had: self.rest.len(),
                what,
                found: None,
            });
        };
        let offset = self.offset;
        (self.rest, self.offset) = (rest, offset + wanted);
        Ok(Bytes { rest: taken, offset })
    }

    fn number(&mut self, what: &'static str) -> Result<u32, Fault> {
        let taken = self.take(4, what)?;
        Ok(taken
            .rest
            .first_chunk()
            .map_or(0, |bytes| u32::from_be_bytes(*bytes)))
    }

    /// Bytes of a variable length, which fill up to a multiple of four. The filling may be absent at the end.
    fn opaque(&mut self, what: &'static str) -> Result<Bytes<'a>, Fault> {
        let length = self.number(what)?;
        let taken = self.take(length, what)?;
        let filling = taken.rest.len().wrapping_neg() & 3;
        self.rest = self.rest.get(filling..).unwrap_or_default();
        self.offset += filling;
        Ok(taken)
    }
}

/// Address of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentAddress {
    /// The agent does not say it.
    Unknown,
    /// IPv4 or IPv6.
    Ip(IpAddr),
}

/// A datagram: who sent it, and the bytes of its samples.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Address of the agent, mostly a switch.
    pub agent: AgentAddress,
    /// Number of the part of the agent that numbers its datagrams by itself, such as a line card.
    pub sub_agent: u32,
    /// Number of the datagram: one more for each.
    pub sequence: u32,
    /// Time since the agent started, in milliseconds.
    pub uptime_ms: u32,
    /// Samples that it claims to have.
    pub claimed: u32,
    body: Bytes<'a>,
}

impl<'a> Datagram<'a> {
    /// Reads the beginning of a datagram.
    ///
    /// # Errors
    /// If it is of another version, or shorter than its beginning.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Fault> {
        let mut bytes = Bytes {
            rest: bytes,
            offset: 0,
        };
        let wrong = |offset, what| Fault {
            offset,
            expected: 4,
            had: 0,
            what,
            found: None,
        };
        let version = bytes.number("a version")?;
        if version != VERSION {
            return Err(Fault {
                found: Some(version),
                ..wrong(0, "version 5")
            });
        }
        let agent = match bytes.number("the kind of an address")? {
            0 => AgentAddress::Unknown,
            1 => AgentAddress::Ip(Ipv4Addr::from_bits(bytes.number("an IPv4 address")?).into()),
            2 => {
                let taken = bytes.take(16, "an IPv6 address")?;
                let octets = taken.rest.first_chunk().copied().unwrap_or([0; 16]);
                AgentAddress::Ip(Ipv6Addr::from(octets).into())
            }
            _ => return Err(wrong(4, "a known kind of address")),
        };
        Ok(Self {
            agent,
            sub_agent: bytes.number("a sub-agent")?,
            sequence: bytes.number("a sequence number")?,
            uptime_ms: bytes.number("an uptime")?,
            claimed: bytes.number("a count of samples")?,
            body: bytes,
        })
    }

    /// Its samples.
    pub fn samples(&self) -> Samples<'a> {
        Samples {
            left: self.claimed,
            body: self.body,
        }
    }
}

/// Samples of a datagram, in its order. It ends behind the first one whose length does not fit.
#[derive(Clone, Debug)]
pub struct Samples<'a> {
    left: u32,
    body: Bytes<'a>,
}

impl<'a> Iterator for Samples<'a> {
    type Item = Sample<'a>;

    fn next(&mut self) -> Option<Sample<'a>> {
        self.left = self.left.checked_sub(1)?;
        let sample = (|| {
            let format = self.body.number("the format of a sample")?;
            Ok((format, self.body.opaque("a sample")?))
        })();
        match sample {
            Ok((format, bytes)) => Some(Sample::new(format, bytes)),
            Err(fault) => {
                self.left = 0;
                Some(Sample::Broken(fault))
            }
        }
    }
}

/// A sample.
#[derive(Clone, Copy, Debug)]
pub enum Sample<'a> {
    /// Sample of a packet.
    Flow(FlowSample<'a>),
    /// Sample of an interface's counters, which are not read here.
    Counters,
    /// Note of a packet that the switch discarded (sFlow Dropped Packet Notification). It is none of 1 in N.
    Discarded,
    /// Sample of a format that is not known: enterprise in the upper 20 bits, number in the lower 12.
    Unknown(u32),
    /// It is not as the specification has it.
    Broken(Fault),
}

impl<'a> Sample<'a> {
    fn new(format: u32, bytes: Bytes<'a>) -> Self {
        match format {
            FLOW => FlowSample::parse(bytes, false).map_or_else(Self::Broken, Self::Flow),
            EXPANDED_FLOW => FlowSample::parse(bytes, true).map_or_else(Self::Broken, Self::Flow),
            COUNTERS | EXPANDED_COUNTERS => Self::Counters,
            DISCARDED => Self::Discarded,
            other => Self::Unknown(other),
        }
    }
}

/// Place in an agent where packets are sampled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DataSource {
    /// 0: an interface by its ifIndex; 1: a VLAN; 2: a physical entity.
    pub kind: u32,
    /// Its number.
    pub index: u32,
}

/// Interface of an agent by which a packet came or went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Port {
    /// Its ifIndex.
    Interface(u32),
    /// Not known.
    Unknown,
    /// The agent itself.
    Internal,
    /// It went by so many interfaces; 0: by an unknown number of them.
    Several(u32),
    /// It was discarded, for a reason by its number.
    Discarded(u32),
}

impl Port {
    /// The two forms differ in where the kind stands, and in the number of the agent itself.
    const fn new(kind: u32, value: u32, internal: u32) -> Self {
        match (kind, value) {
            (0, 0) => Self::Unknown,
            (0, value) if value == internal => Self::Internal,
            (0, index) => Self::Interface(index),
            (1, reason) => Self::Discarded(reason),
            (2, count) => Self::Several(count),
            _ => Self::Unknown,
        }
    }

    const fn from_compact(word: u32) -> Self {
        Self::new(word >> 30, word & 0x3fff_ffff, 0x3fff_ffff)
    }
}

/// A sampled packet: where and how it was sampled, and the bytes of its records.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample<'a> {
    /// Number of the sample: one more for each of its source.
    pub sequence: u32,
    /// Place where it was sampled.
    pub source: DataSource,
    /// N of 1 in N.
    pub rate: u32,
    /// Packets that could have been sampled, since the start.
    pub pool: u32,
    /// Times that a packet was to be sampled and the means for it were missing, since the start.
    pub drops: u32,
    /// Interface by which it came.
    pub input: Port,
    /// Interface by which it went.
    pub output: Port,
    records: u32,
    body: Bytes<'a>,
}

impl<'a> FlowSample<'a> {
    fn parse(mut bytes: Bytes<'a>, is_expanded: bool) -> Result<Self, Fault> {
        let mut number = || bytes.number("the beginning of a flow sample");
        let sequence = number()?;
        let first = number()?;
        let source = if is_expanded {
            DataSource {
                kind: first,
                index: number()?,
            }
        } else {
            DataSource {
                kind: first >> 24,
                index: first & 0x00ff_ffff,
            }
        };
        let (rate, pool, drops) = (number()?, number()?, number()?);
        let mut port = || {
            let first = number()?;
            Ok(if is_expanded {
                Port::new(first, number()?, u32::MAX)
            } else {
                Port::from_compact(first)
            })
        };
        let (input, output) = (port()?, port()?);
        Ok(Self {
            sequence,
            source,
            rate,
            pool,
            drops,
            input,
            output,
            records: number()?,
            body: bytes,
        })
    }

    /// The first bytes of the packet; `None` where no record has them.
    ///
    /// # Errors
    /// If a record is longer than the sample.
    pub fn header(&self) -> Result<Option<PacketHeader<'a>>, Fault> {
        let mut body = self.body;
        for _ in 0..self.records {
            let format = body.number("the format of a record")?;
            let mut record = body.opaque("a record")?;
            if format == RAW_HEADER {
                return Ok(Some(PacketHeader {
                    protocol: record.number("a header's protocol")?,
                    frame_bytes: record.number("a frame's length")?,
                    stripped: record.number("the number of removed bytes")?,
                    bytes: record.opaque("a header")?.rest,
                }));
            }
        }
        Ok(None)
    }
}

/// The first bytes of a sampled packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketHeader<'a> {
    /// Its first header: 1 Ethernet, 11 IPv4, 12 IPv6; others by the specification.
    pub protocol: u32,
    /// Bytes of the frame on the wire, its FCS included.
    pub frame_bytes: u32,
    /// Bytes that were removed before these were taken; of Ethernet at least the FCS.
    pub stripped: u32,
    /// The bytes.
    pub bytes: &'a [u8],
}
