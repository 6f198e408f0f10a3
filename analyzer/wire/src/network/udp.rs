//! UDP header, 8 bytes (RFC 768).
//!
//! ```text
//!  0..2     source port
//!  2..4     destination port
//!  4..6     length, this header included
//!  6..8     checksum
//! ```

use core::fmt;

use crate::Qpn;

/// The destination port of RoCEv2 (IBTA A17.3.2.2, which leaves the number to IANA).
pub const ROCE_V2: u16 = 4791;
/// The destination port that OCP-MRC-1.0, 7.5.5.2, prints for MRC. Devices may use that of RoCEv2 as well.
pub const MRC: u16 = 4971;
/// The destination port of UET, as Wireshark and xdp2 have it.
pub const UET: u16 = 4793;
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

/// The UDP source port that both directions of a connection use whose flow label is 0: Linux' `rdma_calc_flow_label` and
/// `rdma_flow_label_to_udp_sport` (include/rdma/ib_verbs.h), the same in rdma-core's providers; rxe and mlx5 use it.
pub const fn source_port(one: Qpn, other: Qpn) -> u16 {
    let mut v = one.value() as u64 * other.value() as u64;
    v ^= v >> 20;
    v ^= v >> 40;
    #[expect(clippy::cast_possible_truncation, reason = "14 bits")]
    let folded = ((v & 0x3fff) ^ ((v & 0xf_c000) >> 14)) as u16;
    0xc000 | folded
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

    #[test]
    fn ports_of_the_formula() {
        // Captured: three runs of Soft-RoCE (Linux 6.1), both ends with the same QPN, and the UDP source
        // ports of their packets.
        for (qpn, port) in [(0x11, 0xc121), (0x15, 0xc1b9), (0x18, 0xc240)] {
            assert_eq!(source_port(Qpn::new(qpn), Qpn::new(qpn)), port);
        }
        // 0x123456 * 0x654321 = 0x7336bf94116; shifted right by 20 bits 0x7336bf, XOR: 0x7336b8a77a9; its bits from 40
        // up, 0x7, XOR: 0x7336b8a77ae; the low 20 bits 0xa77ae; 0x37ae ^ (0xa77ae >> 14 = 0x29) = 0x3787.
        assert_eq!(source_port(Qpn::new(0x12_3456), Qpn::new(0x65_4321)), 0xf787);
        assert_eq!(
            source_port(Qpn::new(3), Qpn::new(70_000)),
            source_port(Qpn::new(70_000), Qpn::new(3))
        );
    }
}
