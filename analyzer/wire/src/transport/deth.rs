//! Datagram extended transport header, 8 bytes (IBTA 9.3.2).
//!
//! ```text
//!  0..4     queue key
//!  4        reserved
//!  5..8     the sender's queue pair
//! ```

use core::fmt;

use crate::Qpn;

/// View of a datagram extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deth<'a>(pub &'a [u8; 8]);

impl Deth<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 8;

    /// The queue key that the receiver checks.
    pub const fn queue_key(&self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    /// The sender's queue pair.
    pub const fn source_qpn(&self) -> Qpn {
        Qpn::new(u32::from_be_bytes([0, self.0[5], self.0[6], self.0[7]]))
    }
}

impl fmt::Display for Deth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "from QP {} queue key 0x{:x}",
            self.source_qpn(),
            self.queue_key()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_management_datagram() {
        // QP1's queue key is 0x80010000 (`GSI_QKEY` of Linux rxe_hdr.h); the reserved byte does not count.
        let deth = Deth(&[0x80, 0x01, 0, 0, 0xff, 0, 0, 1]);
        assert_eq!(
            (deth.queue_key(), deth.source_qpn()),
            (0x8001_0000, Qpn::GENERAL_SERVICES)
        );
    }
}
