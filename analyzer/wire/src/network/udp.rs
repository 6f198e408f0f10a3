//! UDP header, 8 bytes (RFC 768).
//!
//! ```text
//!  0..2     source port
//!  2..4     destination port
//!  4..6     length, this header included
//!  6..8     checksum
//! ```

use core::fmt;

/// The destination port of RoCEv2 (IBTA A17.5.2, IANA).
pub const ROCE_V2: u16 = 4791;
/// The destination port of VXLAN (RFC 7348).
pub const VXLAN: u16 = 4789;
/// The destination port of Geneve (RFC 8926).
pub const GENEVE: u16 = 6081;

/// View of a UDP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Udp<'a>(pub &'a [u8; 8]);

impl Udp<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 8;

    /// The source port: with RoCEv2 entropy for ECMP, no address.
    #[inline]
    pub const fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// The destination port.
    #[inline]
    pub const fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// The length of header and payload; 0 in captures on a sender that leaves segmentation to its NIC.
    #[inline]
    pub const fn length(&self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// The checksum: 0 as a rule with RoCEv2, which has its ICRC.
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }
}

impl fmt::Display for Udp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "UDP {} > {} length {}",
            self.source_port(),
            self.destination_port(),
            self.length()
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
        // 00 00 12 b7 00 28 00 00 (scapy's test suite): ports 0 and 0x12b7 = 4791, 40 bytes.
        let udp = Udp(&[0, 0, 0x12, 0xb7, 0, 0x28, 0, 0]);
        assert_eq!(udp.to_string(), "UDP 0 > 4791 length 40");
        assert_eq!(udp.checksum(), 0);
    }
}
