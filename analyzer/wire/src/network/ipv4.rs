//! IPv4 header, 20 bytes and options (RFC 791, 3.1; the TOS byte as of RFC 2474 and RFC 3168).
//!
//! ```text
//!  0        version 4 | header length in words
//!  1        DSCP 0xfc | ECN 0x03
//!  2..4     total length
//!  4..6     identification
//!  6..8     DF 0x4000 | MF 0x2000 | fragment offset in 8-byte units 0x1fff
//!  8        TTL
//!  9        protocol
//! 10..12    header checksum
//! 12..16    source
//! 16..20    destination
//! ```

use core::fmt;

use crate::{Address, Ecn};

/// View of the fixed part of an IPv4 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4<'a>(pub &'a [u8; 20]);

impl Ipv4<'_> {
    /// Its length in bytes, without options.
    pub const BYTES: usize = 20;

    /// The version: 4.
    #[inline]
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// The length in bytes that the header claims for itself, options included: 20 to 60 if it is right.
    #[inline]
    pub const fn header_bytes(&self) -> u8 {
        (self.0[0] & 0x0f) * 4
    }

    /// The TOS byte: DSCP and ECN.
    #[inline]
    pub const fn traffic_class(&self) -> u8 {
        self.0[1]
    }

    /// The ECN field.
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_traffic_class(self.0[1])
    }

    /// The length of header and payload; 0 in captures on a sender that leaves segmentation to its NIC.
    #[inline]
    pub const fn total_length(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// The identification.
    #[inline]
    pub const fn identification(&self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// The fragment offset in bytes.
    #[inline]
    pub const fn fragment_offset(&self) -> u16 {
        (u16::from_be_bytes([self.0[6], self.0[7]]) & 0x1fff) << 3
    }

    /// True if more fragments follow.
    #[inline]
    pub const fn more_fragments(&self) -> bool {
        self.0[6] & 0x20 != 0
    }

    /// True if it is one of several fragments.
    #[inline]
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }

    /// The time to live.
    #[inline]
    pub const fn ttl(&self) -> u8 {
        self.0[8]
    }

    /// The protocol of the payload.
    #[inline]
    pub const fn protocol(&self) -> u8 {
        self.0[9]
    }

    /// Source address.
    #[inline]
    pub const fn source(&self) -> Address {
        let b = self.0;
        Address::v4([b[12], b[13], b[14], b[15]])
    }

    /// Destination address.
    #[inline]
    pub const fn destination(&self) -> Address {
        let b = self.0;
        Address::v4([b[16], b[17], b[18], b[19]])
    }
}

impl fmt::Display for Ipv4<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} > {} protocol {}",
            self.source(),
            self.destination(),
            self.protocol()
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn header_of_a_connectx4_cnp() {
        // From scapy's test suite: 45 c2 00 3c 71 8c 40 00 40 11 91 61, 10.0.17.1 > 10.0.18.1.
        // TOS 0xc2 = 110000_10: DSCP 48, ECT(0). 0x4000 = DF.
        let bytes = [
            0x45, 0xc2, 0, 0x3c, 0x71, 0x8c, 0x40, 0, 0x40, 0x11, 0x91, 0x61, 10, 0, 0x11, 1, 10, 0, 0x12, 1,
        ];
        let ip = Ipv4(&bytes);
        assert_eq!((ip.version(), ip.header_bytes(), ip.total_length()), (4, 20, 60));
        assert_eq!(
            (ip.ecn(), ip.traffic_class() >> 2, ip.identification()),
            (Ecn::Ect0, 48, 0x718c)
        );
        assert_eq!((ip.ttl(), ip.is_fragment()), (64, false));
        assert_eq!(ip.to_string(), "10.0.17.1 > 10.0.18.1 protocol 17");
    }

    #[test]
    fn fragments() {
        let mut bytes = [0; 20];
        bytes[6] = 0x20;
        assert!(Ipv4(&bytes).is_fragment() && Ipv4(&bytes).more_fragments());
        // Offset field 0x00b9 = 185 units of 8 bytes: 1480.
        (bytes[6], bytes[7]) = (0, 0xb9);
        assert!(Ipv4(&bytes).is_fragment());
        assert_eq!(Ipv4(&bytes).fragment_offset(), 1480);
    }
}
