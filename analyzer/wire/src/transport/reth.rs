//! RDMA extended transport header, 16 bytes (IBTA 9.3.3).
//!
//! ```text
//!  0..8     virtual address
//!  8..12    remote key
//! 12..16    length of the whole message
//! ```

use core::fmt;

use crate::bytes::part;

/// View of an RDMA extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reth<'a>(pub &'a [u8; 16]);

impl Reth<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 16;

    /// The address in the responder's memory.
    pub const fn virtual_address(&self) -> u64 {
        u64::from_be_bytes(part::<0, 8, 16>(self.0))
    }

    /// The key that allows the access.
    pub const fn remote_key(&self) -> u32 {
        u32::from_be_bytes(part::<8, 4, 16>(self.0))
    }

    /// The length of the whole message, in bytes.
    pub const fn dma_length(&self) -> u32 {
        u32::from_be_bytes(part::<12, 4, 16>(self.0))
    }
}

impl fmt::Display for Reth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes at 0x{:x} key 0x{:x}",
            self.dma_length(),
            self.virtual_address(),
            self.remote_key()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_of_a_read_request() {
        // PcapPlusPlus' InfiniBandPacket.dat: 00 00 7f ee 26 0f b0 00, 00 00 02 b8, 00 01 00 00.
        let reth = Reth(&[
            0, 0, 0x7f, 0xee, 0x26, 0x0f, 0xb0, 0, 0, 0, 0x02, 0xb8, 0, 1, 0, 0,
        ]);
        assert_eq!(reth.virtual_address(), 0x7fee_260f_b000);
        assert_eq!((reth.remote_key(), reth.dma_length()), (0x2b8, 65_536));
    }
}
