//! Base transport header, 12 bytes (IBTA 9.2).
//!
//! ```text
//!  0        opcode
//!  1        SE 0x80 | MigReq 0x40 | PadCnt 0x30 | TVer 0x0f
//!  2..4     P_Key
//!  4        FECN 0x80 | BECN 0x40 | reserved
//!  5..8     destination QPN
//!  8        AckReq 0x80 | reserved
//!  9..12    PSN
//! ```

use core::fmt;

use crate::{Opcode, Psn, Qpn};

/// A base transport header, by value: 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Bth(pub [u8; 12]);

impl Bth {
    /// Its length in bytes.
    pub const BYTES: usize = 12;

    /// The operation.
    #[inline]
    pub const fn opcode(&self) -> Opcode {
        Opcode(self.0[0])
    }

    /// Solicited event: the receiver's completion handler is to be called.
    pub const fn solicited(&self) -> bool {
        self.0[1] & 0x80 != 0
    }

    /// Migration state of the sender (automatic path migration).
    pub const fn migration_request(&self) -> bool {
        self.0[1] & 0x40 != 0
    }

    /// Bytes of padding after the payload, 0 to 3.
    #[inline]
    pub const fn pad_count(&self) -> u8 {
        self.0[1] >> 4 & 3
    }

    /// Transport header version: 0.
    pub const fn transport_version(&self) -> u8 {
        self.0[1] & 0x0f
    }

    /// The partition key.
    pub const fn partition_key(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Forward explicit congestion notification (InfiniBand).
    pub const fn fecn(&self) -> bool {
        self.0[4] & 0x80 != 0
    }

    /// Backward explicit congestion notification: set in a CNP.
    pub const fn becn(&self) -> bool {
        self.0[4] & 0x40 != 0
    }

    /// The queue pair that the packet is for.
    #[inline]
    pub const fn destination_qpn(&self) -> Qpn {
        // One load of four bytes; the number keeps its 24 bits.
        Qpn::new(u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]]))
    }

    /// True if the receiver has to acknowledge (the AckReq bit, IBTA 9.2.4).
    #[inline]
    pub const fn ack_request(&self) -> bool {
        self.0[8] & 0x80 != 0
    }

    /// The packet sequence number.
    #[inline]
    pub const fn psn(&self) -> Psn {
        Psn::new(u32::from_be_bytes([self.0[8], self.0[9], self.0[10], self.0[11]]))
    }
}

impl fmt::Display for Bth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} to QP {} PSN {}",
            self.opcode(),
            self.destination_qpn(),
            self.psn()
        )?;
        for (set, name) in [
            (self.ack_request(), " AckReq"),
            (self.solicited(), " SE"),
            (self.fecn(), " FECN"),
            (self.becn(), " BECN"),
        ] {
            if set {
                f.write_str(name)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Bth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bth({self})")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn fields_of_a_connectx4_cnp() {
        // The BTH of the ConnectX-4 Lx CNP of scapy's test suite (test/contrib/roce.uts).
        let bth = Bth([0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0, 0, 0, 0]);
        assert_eq!(bth.opcode(), Opcode::CNP);
        assert_eq!(bth.partition_key(), 0xffff);
        assert!(bth.becn() && !bth.fecn() && !bth.ack_request());
        assert_eq!(bth.destination_qpn(), Qpn::new(0x118));
        assert_eq!(bth.to_string(), "CNP to QP 0x118 PSN 0 BECN");
    }

    #[test]
    fn fields_of_a_uc_send_only() {
        // scapy "RoCE layer": 24 60 ff ff 00 00 00 d3 00 cf 17 10, pad count 2, QPN 211, PSN 13571856.
        let bth = Bth([
            0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10,
        ]);
        assert_eq!(bth.opcode().to_string(), "UC SEND Only");
        assert_eq!(bth.pad_count(), 2);
        assert!(bth.migration_request() && !bth.solicited());
        assert_eq!(bth.destination_qpn().value(), 211);
        assert_eq!(bth.psn().value(), 13_571_856);
        assert_eq!(bth.transport_version(), 0);
    }
}
