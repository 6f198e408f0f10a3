//! Local routing header, 8 bytes (IBTA 7.7).
//!
//! ```text
//!  0        virtual lane 0xf0 | link version 0x0f
//!  1        service level 0xf0 | reserved | link next header 0x03
//!  2..4     destination LID
//!  4..6     reserved 5 bits | packet length 11 bits: in 4-byte words, from this header up to the VCRC
//!  6..8     source LID
//! ```

use core::fmt;

/// View of a local routing header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lrh<'a>(pub &'a [u8; 8]);

/// Kind of the header after a local routing header (IBTA 7.7; `IB_LNH_RAW` and the next ones of Linux
/// include/rdma/ib_pack.h).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkNextHeader {
    /// Raw: an EtherType header.
    RawEtherType,
    /// Raw: an IPv6 header.
    RawIpv6,
    /// A BTH.
    Local,
    /// A GRH, then a BTH.
    Global,
}

impl Lrh<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 8;
    /// The virtual lane of subnet management.
    pub const MANAGEMENT_LANE: u8 = 15;

    /// The virtual lane.
    pub const fn virtual_lane(&self) -> u8 {
        self.0[0] >> 4
    }

    /// The link version: 0.
    pub const fn link_version(&self) -> u8 {
        self.0[0] & 0x0f
    }

    /// The service level.
    pub const fn service_level(&self) -> u8 {
        self.0[1] >> 4
    }

    /// Kind of the next header.
    pub const fn next_header(&self) -> LinkNextHeader {
        match self.0[1] & 3 {
            0 => LinkNextHeader::RawEtherType,
            1 => LinkNextHeader::RawIpv6,
            2 => LinkNextHeader::Local,
            _ => LinkNextHeader::Global,
        }
    }

    /// The destination LID.
    pub const fn destination(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// The length in bytes, from the first byte of this header to the end of the ICRC.
    pub const fn packet_bytes(&self) -> u16 {
        (u16::from_be_bytes([self.0[4], self.0[5]]) & 0x07ff) * 4
    }

    /// The source LID.
    pub const fn source(&self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }
}

impl fmt::Display for Lrh<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "LID {} > {} VL {}",
            self.source(),
            self.destination(),
            self.virtual_lane()
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn fields_by_ibta_7_7() {
        // VL 3, SL 5, LNH 2; DLID 0x0102; 0x0011 = 17 words, 68 bytes; SLID 0x0304. Reserved bits set.
        let bytes = [0x30, 0x52, 0x01, 0x02, 0xf8, 0x11, 0x03, 0x04];
        let lrh = Lrh(&bytes);
        assert_eq!(
            (lrh.virtual_lane(), lrh.service_level(), lrh.link_version()),
            (3, 5, 0)
        );
        assert_eq!(lrh.next_header(), LinkNextHeader::Local);
        assert_eq!(lrh.packet_bytes(), 68);
        assert_eq!(lrh.to_string(), "LID 772 > 258 VL 3");
    }
}
