//! MPLS label stack entry, 4 bytes (RFC 3032, 2.1).
//!
//! ```text
//!  0..4     label 20 bits | traffic class 3 | bottom of stack 1 | TTL 8
//! ```

use core::fmt;

/// View of a label stack entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mpls<'a>(pub &'a [u8; 4]);

impl Mpls<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The label.
    pub const fn label(&self) -> u32 {
        u32::from_be_bytes(*self.0) >> 12
    }

    /// The traffic class (RFC 5462).
    pub const fn traffic_class(&self) -> u8 {
        self.0[2] >> 1 & 7
    }

    /// True if it is the last entry.
    pub const fn is_bottom(&self) -> bool {
        self.0[2] & 1 != 0
    }

    /// The time to live.
    pub const fn ttl(&self) -> u8 {
        self.0[3]
    }
}

impl fmt::Display for Mpls<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MPLS label {}", self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_rfc_3032() {
        // Label 0x12345, traffic class 5, bottom: 0x12345 << 12 | 5 << 9 | 1 << 8 | 64 = 0x12345b40.
        let mpls = Mpls(&[0x12, 0x34, 0x5b, 0x40]);
        assert_eq!(
            (mpls.label(), mpls.traffic_class(), mpls.is_bottom(), mpls.ttl()),
            (0x1_2345, 5, true, 64)
        );
    }
}
