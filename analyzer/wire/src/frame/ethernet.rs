//! Ethernet II header, 14 bytes (IEEE 802.3, 3.1.1).
//!
//! ```text
//!  0..6     destination
//!  6..12    source
//! 12..14    EtherType (a length when below 0x0600)
//! ```

use core::fmt;

use crate::MacAddress;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of an 802.1Q customer tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of an 802.1ad service tag.
pub const SERVICE_VLAN: u16 = 0x88a8;
/// EtherType of RoCEv1 (IBTA A16).
pub const ROCE_V1: u16 = 0x8915;
/// EtherType of MAC control: pause and PFC.
pub const MAC_CONTROL: u16 = 0x8808;
/// EtherType of unicast MPLS (RFC 3032).
pub const MPLS: u16 = 0x8847;
/// EtherType of MPLS with upstream-assigned labels, once multicast (RFC 5332).
pub const MPLS_UPSTREAM: u16 = 0x8848;
/// EtherType, in GRE and Geneve, of a bridged Ethernet frame (RFC 1701, RFC 8926).
pub const BRIDGED_ETHERNET: u16 = 0x6558;

/// View of an Ethernet II header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ethernet<'a>(pub &'a [u8; 14]);

impl Ethernet<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 14;

    /// To whom.
    pub const fn destination(&self) -> MacAddress {
        let b = self.0;
        MacAddress([b[0], b[1], b[2], b[3], b[4], b[5]])
    }

    /// From whom.
    pub const fn source(&self) -> MacAddress {
        let b = self.0;
        MacAddress([b[6], b[7], b[8], b[9], b[10], b[11]])
    }

    /// EtherType of the next header.
    #[inline]
    pub const fn ether_type(&self) -> u16 {
        u16::from_be_bytes([self.0[12], self.0[13]])
    }
}

impl fmt::Display for Ethernet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} > {} type 0x{:04x}",
            self.source(),
            self.destination(),
            self.ether_type()
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
        // First 14 bytes of the ConnectX-4 Lx CNP of scapy's test suite.
        let bytes = [
            0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08, 0x00,
        ];
        let text = Ethernet(&bytes).to_string();
        assert_eq!(text, "7c:fe:90:64:3b:32 > e4:1d:2d:ab:2b:c2 type 0x0800");
    }
}
