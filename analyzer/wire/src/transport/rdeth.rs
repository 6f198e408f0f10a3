//! Reliable datagram extended transport header, 4 bytes (IBTA 9.3.1).
//!
//! ```text
//!  0        reserved
//!  1..4     end-to-end context
//! ```

use core::fmt;

/// View of a reliable datagram extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rdeth<'a>(pub &'a [u8; 4]);

impl Rdeth<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The end-to-end context, 24 bits.
    pub const fn context(&self) -> u32 {
        u32::from_be_bytes([0, self.0[1], self.0[2], self.0[3]])
    }
}

impl fmt::Display for Rdeth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "end-to-end context {}", self.context())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_24_bits() {
        assert_eq!(Rdeth(&[0xff, 0, 1, 2]).context(), 0x102);
    }
}
