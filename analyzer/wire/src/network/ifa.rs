//! In-band flow analyzer 2.0 (draft-kumar-ippm-ifa-08): a header behind IP, UDP, and the metadata of the hops in front of the BTH.
//!
//! ```text
//! header, 4 bytes:
//!  0        version 0xf0 (2) | name space 0x0f
//!  1        protocol of the next header
//!  2        flags: MF 0x10 | TS 0x08, the metadata are behind the payload | I 0x04, in band and no copy | TA 0x02 | C 0x01
//!  3        longest stack, in words
//! metadata header, 4 bytes:
//!  0        requested metadata
//!  1        action
//!  2        hop limit
//!  3        length of the stack, in words of 4 bytes; the latest hop is first
//! ```

use crate::bytes::part;

/// View of one hop of the stack in the layout of Broadcom's switches:
///
/// ```text
///  0..4     name space 0xf0000000 | device 0x0fffff00 | TTL 0xff
///  4..8     port speed 0xf0000000 | congestion 0x0c000000 | queue 0x03f00000 | seconds 0x000fffff
///  8..12    egress port, ingress port
///  12..16   time of arrival, in ns | 16..20 time in the device, in ns | 20..24 bytes in the queue | 24..32 cells
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IfaHop<'a>(pub &'a [u8; 32]);

impl IfaHop<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 32;

    const fn word<const AT: usize>(self) -> u32 {
        u32::from_be_bytes(part::<AT, 4, 32>(self.0))
    }

    /// Number of the device, 20 bits.
    pub const fn device(&self) -> u32 {
        self.word::<0>() >> 8 & 0x000f_ffff
    }

    /// TTL of the packet there.
    pub const fn ttl(&self) -> u8 {
        self.0[3]
    }

    /// 0: the queue was not congested.
    pub const fn congestion(&self) -> u8 {
        self.0[4] >> 2 & 3
    }

    /// Number of the queue, 6 bits.
    pub const fn queue(&self) -> u8 {
        (self.word::<4>() >> 20 & 0x3f) as u8
    }

    /// Port by which the packet leaves.
    pub const fn egress(&self) -> u16 {
        u16::from_be_bytes(part::<8, 2, 32>(self.0))
    }

    /// Port by which the packet came.
    pub const fn ingress(&self) -> u16 {
        u16::from_be_bytes(part::<10, 2, 32>(self.0))
    }

    /// Time in the device, in ns.
    pub const fn residence_ns(&self) -> u32 {
        self.word::<16>()
    }

    /// Bytes that waited in the queue.
    pub const fn queued_bytes(&self) -> u32 {
        self.word::<20>()
    }
}

/// The protocol number that switches use.
pub const PROTOCOL: u8 = 253;

/// View of an IFA header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ifa<'a>(pub &'a [u8; 4]);

/// View of a metadata header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IfaMetadata<'a>(pub &'a [u8; 4]);

impl Ifa<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The version: 2.
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// Protocol number of the next header.
    pub const fn next_header(&self) -> u8 {
        self.0[1]
    }

    /// True if the metadata are behind the payload.
    pub const fn has_tail(&self) -> bool {
        self.0[2] & 0x08 != 0
    }

    /// True of the packet itself; false of a copy that carries the metadata beside it.
    pub const fn is_in_band(&self) -> bool {
        self.0[2] & 0x04 != 0
    }

    /// True if there are fragments of metadata or a checksum, whose layout is not known.
    pub const fn has_unknown_layout(&self) -> bool {
        self.0[2] & 0x11 != 0
    }
}

impl IfaMetadata<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// Length of the stack behind it, in bytes.
    pub const fn stack_bytes(&self) -> usize {
        self.0[3] as usize * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_headers() {
        // 0x2f: version 2, name space 15; 17: UDP; 0x04: in band. 24 words: three hops of 32 bytes.
        let header = Ifa(&[0x2f, 17, 0x04, 0xff]);
        assert_eq!((header.version(), header.next_header()), (2, 17));
        assert!(header.is_in_band() && !header.has_tail() && !header.has_unknown_layout());
        assert!(!Ifa(&[0x2f, 17, 0x08, 0xff]).is_in_band());
        assert_eq!(IfaMetadata(&[0xff, 0, 250, 24]).stack_bytes(), 96);
    }
}
