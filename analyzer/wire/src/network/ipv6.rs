//! IPv6 header, 40 bytes (RFC 8200, section 3), and its fragment header, 8 bytes (section 4.5).
//!
//! ```text
//!  0..4     version 4 bits | traffic class 8 | flow label 20
//!  4..6     payload length, extension headers included
//!  6        next header
//!  7        hop limit
//!  8..24    source
//! 24..40    destination
//!
//! fragment header:
//!  0        next header
//!  2..4     fragment offset in 8-byte units 0xfff8 | more fragments 0x0001
//!  4..8     identification
//! ```

use core::fmt;

use crate::bytes::part;
use crate::{Address, Ecn};

/// View of an IPv6 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6<'a>(pub &'a [u8; 40]);

/// View of a fragment header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Fragment<'a>(pub &'a [u8; 8]);

impl Ipv6<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 40;

    /// The version: 6.
    #[inline]
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// The traffic class: DSCP and ECN.
    #[inline]
    pub const fn traffic_class(&self) -> u8 {
        self.0[0] << 4 | self.0[1] >> 4
    }

    /// The ECN field.
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_traffic_class(self.traffic_class())
    }

    /// The flow label.
    pub const fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.0[1] & 0x0f, self.0[2], self.0[3]])
    }

    /// The length of everything after this header.
    #[inline]
    pub const fn payload_length(&self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// Protocol number of the next header.
    #[inline]
    pub const fn next_header(&self) -> u8 {
        self.0[6]
    }

    /// The hop limit.
    #[inline]
    pub const fn hop_limit(&self) -> u8 {
        self.0[7]
    }

    /// Source address.
    #[inline]
    pub const fn source(&self) -> Address {
        Address::v6(part::<8, 16, 40>(self.0))
    }

    /// Destination address.
    #[inline]
    pub const fn destination(&self) -> Address {
        Address::v6(part::<24, 16, 40>(self.0))
    }
}

impl Ipv6Fragment<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 8;

    /// Protocol number of the fragmented packet's content.
    pub const fn next_header(&self) -> u8 {
        self.0[0]
    }

    /// The fragment offset in bytes.
    pub const fn fragment_offset(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]]) & 0xfff8
    }

    /// True if more fragments follow.
    pub const fn more_fragments(&self) -> bool {
        self.0[3] & 1 != 0
    }
}

impl fmt::Display for Ipv6<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} > {} next header {}",
            self.source(),
            self.destination(),
            self.next_header()
        )
    }
}

impl fmt::Display for Ipv6Fragment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fragment at {}", self.fragment_offset())?;
        if self.more_fragments() {
            f.write_str(", more follow")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn header_of_scapys_roce_over_ipv6() {
        // scapy's test "RoCE over IPv6" as bytes: 6d e2 1f ac = version 6, traffic class 0xde, flow label 0x21fac.
        let mut bytes = [0; 40];
        bytes[..8].copy_from_slice(&[0x6d, 0xe2, 0x1f, 0xac, 0x00, 0x2c, 0x11, 0xff]);
        bytes[8..12].copy_from_slice(&[0x20, 0x22, 0, 0]);
        bytes[20..24].copy_from_slice(&[0x10, 0x23, 0x20, 0x23]);
        bytes[24..26].copy_from_slice(&[0x20, 0x23]);
        bytes[38..40].copy_from_slice(&[0x10, 0x24]);
        let ip = Ipv6(&bytes);
        assert_eq!(
            (ip.version(), ip.traffic_class(), ip.flow_label()),
            (6, 0xde, 0x2_1fac)
        );
        assert_eq!(
            (ip.payload_length(), ip.next_header(), ip.hop_limit()),
            (44, 17, 255)
        );
        assert_eq!(ip.to_string(), "2022::1023:2023 > 2023::1024 next header 17");
        assert_eq!(ip.ecn(), Ecn::Ect0);
    }

    #[test]
    fn fragment_header_fields() {
        // 0x05a9 = 1448 | 1: offset 1448 bytes (units of 8 in the upper 13 bits), more fragments.
        let fragment = Ipv6Fragment(&[17, 0, 0x05, 0xa9, 0, 0, 0, 9]);
        assert_eq!(
            (
                fragment.next_header(),
                fragment.fragment_offset(),
                fragment.more_fragments()
            ),
            (17, 1448, true)
        );
    }
}
