//! Global routing header, 40 bytes (IBTA 8.3): laid out as an IPv6 header.
//!
//! ```text
//!  0..4     version 6 | traffic class 8 bits | flow label 20
//!  4..6     payload length: from the first byte after this header to the end of the ICRC
//!  6        next header: 0x1b = a BTH follows
//!  7        hop limit
//!  8..24    source GID
//! 24..40    destination GID
//! ```

use core::fmt;

use super::ipv6::Ipv6;
use crate::Address;

/// View of a global routing header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grh<'a>(pub &'a [u8; 40]);

impl Grh<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 40;
    /// The next header value of IBA transport.
    pub const IBA_TRANSPORT: u8 = 0x1b;

    /// The version: 6.
    pub const fn version(&self) -> u8 {
        Ipv6(self.0).version()
    }

    /// The traffic class.
    pub const fn traffic_class(&self) -> u8 {
        Ipv6(self.0).traffic_class()
    }

    /// The flow label.
    pub const fn flow_label(&self) -> u32 {
        Ipv6(self.0).flow_label()
    }

    /// The length of everything after this header, the ICRC included.
    pub const fn payload_length(&self) -> u16 {
        Ipv6(self.0).payload_length()
    }

    /// Protocol number of the next header.
    pub const fn next_header(&self) -> u8 {
        self.0[6]
    }

    /// The hop limit.
    pub const fn hop_limit(&self) -> u8 {
        self.0[7]
    }

    /// The source GID.
    pub const fn source(&self) -> Address {
        Ipv6(self.0).source()
    }

    /// The destination GID.
    pub const fn destination(&self) -> Address {
        Ipv6(self.0).destination()
    }
}

impl fmt::Display for Grh<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GID {} > {}", self.source(), self.destination())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn header_of_a_rocev1_write() {
        // scapy's test "RoCE v1 RC RDMA WRITE ONLY": 60 20 00 00 = version 6, traffic class 0x02; 0x28 = 40 bytes
        // follow; next header 0x1b; hop limit 64; both GIDs are ::ffff:15.0.0.2 there, the destination is made .3 here.
        let mut bytes = [0; 40];
        bytes[..8].copy_from_slice(&[0x60, 0x20, 0, 0, 0, 0x28, 0x1b, 0x40]);
        bytes[18..24].copy_from_slice(&[0xff, 0xff, 0x0f, 0, 0, 2]);
        bytes[34..40].copy_from_slice(&[0xff, 0xff, 0x0f, 0, 0, 3]);
        let grh = Grh(&bytes);
        assert_eq!(
            (grh.version(), grh.traffic_class(), grh.payload_length()),
            (6, 2, 40)
        );
        assert_eq!(
            (grh.next_header(), grh.hop_limit(), grh.flow_label()),
            (Grh::IBA_TRANSPORT, 64, 0)
        );
        assert_eq!(grh.to_string(), "GID 15.0.0.2 > 15.0.0.3");
    }
}
