//! Invalidate extended transport header, 4 bytes (IBTA 9.3.7).
//!
//! ```text
//!  0..4     the remote key to invalidate
//! ```

use core::fmt;

/// View of an invalidate extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ieth<'a>(pub &'a [u8; 4]);

impl Ieth<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The key that the receiver is to invalidate.
    pub const fn remote_key(&self) -> u32 {
        u32::from_be_bytes(*self.0)
    }
}

impl fmt::Display for Ieth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalidate key 0x{:x}", self.remote_key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_byte_order() {
        assert_eq!(Ieth(&[0, 0, 2, 0xb8]).remote_key(), 0x2b8);
    }
}
