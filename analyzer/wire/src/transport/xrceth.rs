//! XRC extended transport header, 4 bytes (IBTA annex A14).
//!
//! ```text
//!  0        reserved
//!  1..4     the shared receive queue that the message is for
//! ```

use core::fmt;

/// View of an XRC extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Xrceth<'a>(pub &'a [u8; 4]);

impl Xrceth<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The shared receive queue, 24 bits.
    pub const fn receive_queue(&self) -> u32 {
        u32::from_be_bytes([0, self.0[1], self.0[2], self.0[3]])
    }
}

impl fmt::Display for Xrceth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shared receive queue {}", self.receive_queue())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_24_bits() {
        assert_eq!(Xrceth(&[0xff, 0, 0, 9]).receive_queue(), 9);
    }
}
