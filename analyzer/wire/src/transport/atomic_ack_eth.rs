//! Atomic acknowledge extended transport header, 8 bytes (IBTA 9.3; Linux drivers/infiniband/sw/rxe/rxe_hdr.h).
//!
//! ```text
//!  0..8     what the memory held before the operation
//! ```

use core::fmt;

/// View of an atomic acknowledge extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicAckEth<'a>(pub &'a [u8; 8]);

impl AtomicAckEth<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 8;

    /// Value of the memory before the operation.
    pub const fn original(&self) -> u64 {
        u64::from_be_bytes(*self.0)
    }
}

impl fmt::Display for AtomicAckEth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "original 0x{:x}", self.original())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_byte_order() {
        assert_eq!(AtomicAckEth(&[0, 0, 0, 0, 0, 0, 1, 2]).original(), 0x102);
    }
}
