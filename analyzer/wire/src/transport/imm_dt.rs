//! Immediate data, 4 bytes (IBTA 9.3.6).
//!
//! ```text
//!  0..4     data for the receiver's completion
//! ```

use core::fmt;

/// View of immediate data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImmDt<'a>(pub &'a [u8; 4]);

impl ImmDt<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The data, read in network byte order.
    pub const fn data(&self) -> u32 {
        u32::from_be_bytes(*self.0)
    }
}

impl fmt::Display for ImmDt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "immediate 0x{:08x}", self.data())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_byte_order() {
        assert_eq!(ImmDt(&[1, 2, 3, 4]).data(), 0x0102_0304);
    }
}
