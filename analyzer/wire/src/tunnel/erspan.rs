//! ERSPAN headers inside GRE (draft-foschiano-erspan-03; Linux include/net/erspan.h): a mirrored Ethernet frame
//! follows. Type I has no header at all: GRE 0x88be without a sequence number.
//!
//! ```text
//! both:
//!  0..2     version 0xf000 (1 = type II, 2 = type III) | VLAN 0x0fff
//!  2..4     COS 0xe000 | encapsulation or integrity 0x1800 | truncated 0x0400 | session 0x03ff
//! type II:
//!  4..8     reserved 12 bits | port index 20 bits
//! type III:
//!  4..8     timestamp
//!  8..10    security group tag
//! 10..12    P 0x8000 | frame type 0x7c00 | hardware id 0x03f0 | direction 0x0008 | granularity 0x0006 | O 0x0001
//! 12..20    platform-specific, if O is set
//! ```

use core::fmt;

/// View of an ERSPAN type II header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErspanII<'a>(pub &'a [u8; 8]);

/// View of the fixed part of an ERSPAN type III header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErspanIII<'a>(pub &'a [u8; 12]);

const fn session(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low]) & 0x03ff
}

impl ErspanII<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 8;

    /// The version: 1.
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// The VLAN of the mirrored frame, if it was taken off.
    pub const fn vlan(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]]) & 0x0fff
    }

    /// True if the mirror cut the frame.
    pub const fn truncated(&self) -> bool {
        self.0[2] & 0x04 != 0
    }

    /// The session, 10 bits.
    pub const fn session(&self) -> u16 {
        session(self.0[2], self.0[3])
    }

    /// The port index, 20 bits: its meaning is the mirror's own.
    pub const fn index(&self) -> u32 {
        u32::from_be_bytes([0, self.0[5] & 0x0f, self.0[6], self.0[7]])
    }
}

impl ErspanIII<'_> {
    /// Its length in bytes, without the platform-specific part.
    pub const BYTES: usize = 12;
    /// The length of the platform-specific part.
    pub const PLATFORM_BYTES: usize = 8;

    /// The version: 2.
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// The VLAN of the mirrored frame.
    pub const fn vlan(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]]) & 0x0fff
    }

    /// True if the mirror cut the frame.
    pub const fn truncated(&self) -> bool {
        self.0[2] & 0x04 != 0
    }

    /// The session, 10 bits.
    pub const fn session(&self) -> u16 {
        session(self.0[2], self.0[3])
    }

    /// The mirror's timestamp, in units that its granularity field names.
    pub const fn timestamp(&self) -> u32 {
        u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    /// The hardware id, 6 bits: which engine of the mirror took the frame.
    pub const fn hardware(&self) -> u8 {
        (u16::from_be_bytes([self.0[10], self.0[11]]) >> 4 & 0x3f) as u8
    }

    /// The frame type, 5 bits: 0 is an Ethernet frame, 2 an IP packet.
    pub const fn frame_type(&self) -> u8 {
        self.0[10] >> 2 & 0x1f
    }

    /// True if the frame was mirrored at egress.
    pub const fn is_egress(&self) -> bool {
        self.0[11] & 0x08 != 0
    }

    /// The granularity of the timestamp: 0 = 100 us, 1 = 100 ns, 2 = IEEE 1588, 3 = the platform's.
    pub const fn granularity(&self) -> u8 {
        self.0[11] >> 1 & 3
    }

    /// True if the platform-specific part follows.
    pub const fn has_platform(&self) -> bool {
        self.0[11] & 1 != 0
    }

    /// The length of the header, 12 or 20 bytes.
    pub const fn header_bytes(&self) -> usize {
        if self.has_platform() {
            Self::BYTES + Self::PLATFORM_BYTES
        } else {
            Self::BYTES
        }
    }
}

impl fmt::Display for ErspanII<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERSPAN II session {} index {}", self.session(), self.index())
    }
}

impl fmt::Display for ErspanIII<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ERSPAN III session {} timestamp {}",
            self.session(),
            self.timestamp()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_two_by_the_draft() {
        // Version 1, VLAN 0x064; COS 3 = 0x6000, encapsulation 3 = 0x1800, T = 0x0400, session 0x2a5:
        // 0x6000 | 0x1800 | 0x0400 | 0x02a5 = 0x7ea5. Reserved bits set, index 0x12345.
        let erspan = ErspanII(&[0x10, 0x64, 0x7e, 0xa5, 0xff, 0xf1, 0x23, 0x45]);
        assert_eq!(
            (erspan.version(), erspan.vlan(), erspan.truncated()),
            (1, 100, true)
        );
        assert_eq!((erspan.session(), erspan.index()), (0x2a5, 0x1_2345));
        assert!(!ErspanII(&[0x10, 0, 0, 1, 0, 0, 0, 0]).truncated());
    }

    #[test]
    fn type_three_by_the_draft() {
        // P = 0x8000, frame type 2 = 0x0800, hardware id 0x2b << 4 = 0x02b0, egress 0x0008, granularity 1 = 0x0002,
        // O = 0x0001: 0x8000 | 0x0800 | 0x02b0 | 0x000b = 0x8abb.
        let bytes = [0x20, 0, 0x00, 0x07, 0x12, 0x34, 0x56, 0x78, 0, 0, 0x8a, 0xbb];
        let erspan = ErspanIII(&bytes);
        assert_eq!(
            (erspan.version(), erspan.session(), erspan.timestamp()),
            (2, 7, 0x1234_5678)
        );
        assert_eq!(
            (erspan.hardware(), erspan.frame_type(), erspan.granularity()),
            (0x2b, 2, 1)
        );
        assert!(erspan.is_egress() && erspan.has_platform() && !erspan.truncated());
        assert_eq!(erspan.header_bytes(), 20);
    }
}
