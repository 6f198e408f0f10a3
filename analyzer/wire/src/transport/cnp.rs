//! Bytes behind the BTH of a congestion notification packet: 16 reserved bytes, zero (IBTA A17.9.3).
//!
//! ```text
//!  0..16    reserved
//! ```

use core::fmt;

/// View of the reserved bytes of a congestion notification packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cnp<'a>(pub &'a [u8; 16]);

impl Cnp<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 16;

    /// True if they are zero, as they should be.
    pub const fn is_zero(&self) -> bool {
        u128::from_ne_bytes(*self.0) == 0
    }
}

impl fmt::Display for Cnp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_zero() {
            "16 zero bytes"
        } else {
            "reserved bytes in use"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_or_not() {
        assert!(Cnp(&[0; 16]).is_zero());
        assert!(!Cnp(&[1; 16]).is_zero());
    }
}
