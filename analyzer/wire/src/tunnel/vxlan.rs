//! VXLAN header, 8 bytes (RFC 7348, section 5): an Ethernet frame follows.
//!
//! ```text
//!  0        flags: 0x08 = the network identifier is valid
//!  1..4     reserved
//!  4..7     network identifier
//!  7        reserved
//! ```

use core::fmt;

/// View of a VXLAN header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vxlan<'a>(pub &'a [u8; 8]);

impl Vxlan<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 8;

    /// True if the network identifier is valid.
    pub const fn has_identifier(&self) -> bool {
        self.0[0] & 0x08 != 0
    }

    /// The network identifier, 24 bits.
    pub const fn identifier(&self) -> u32 {
        u32::from_be_bytes([0, self.0[4], self.0[5], self.0[6]])
    }
}

impl fmt::Display for Vxlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VXLAN {}", self.identifier())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_rfc_7348() {
        let vxlan = Vxlan(&[0x08, 0, 0, 0, 0x01, 0x02, 0x03, 0xff]);
        assert!(vxlan.has_identifier());
        assert_eq!(vxlan.identifier(), 0x01_0203);
    }
}
