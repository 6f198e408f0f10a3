//! Geneve header, 8 bytes and options (RFC 8926, 3.4).
//!
//! ```text
//!  0        version 0xc0 | length of the options in words 0x3f
//!  1        control 0x80 | critical options 0x40
//!  2..4     EtherType of what follows: 0x6558 for an Ethernet frame
//!  4..7     network identifier
//!  7        reserved
//! ```

use core::fmt;

/// View of the fixed part of a Geneve header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geneve<'a>(pub &'a [u8; 8]);

impl Geneve<'_> {
    /// Its length in bytes, without options.
    pub const BYTES: usize = 8;

    /// The version: 0.
    pub const fn version(&self) -> u8 {
        self.0[0] >> 6
    }

    /// The length of the options in bytes, 0 to 252.
    pub const fn option_bytes(&self) -> u8 {
        (self.0[0] & 0x3f) * 4
    }

    /// True if it is a control packet, which holds no frame.
    pub const fn is_control(&self) -> bool {
        self.0[1] & 0x80 != 0
    }

    /// EtherType of the next header.
    pub const fn protocol(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// The network identifier, 24 bits.
    pub const fn identifier(&self) -> u32 {
        u32::from_be_bytes([0, self.0[4], self.0[5], self.0[6]])
    }
}

impl fmt::Display for Geneve<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Geneve {} with {} bytes of options",
            self.identifier(),
            self.option_bytes()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_rfc_8926() {
        // Version 0, 3 words of options, critical; Ethernet; identifier 0x00abcd.
        let geneve = Geneve(&[0x03, 0x40, 0x65, 0x58, 0x00, 0xab, 0xcd, 0]);
        assert_eq!(
            (geneve.version(), geneve.option_bytes(), geneve.is_control()),
            (0, 12, false)
        );
        assert_eq!((geneve.protocol(), geneve.identifier()), (0x6558, 0xabcd));
        assert_eq!(Geneve(&[0x3f, 0x80, 0, 0, 0, 0, 0, 0]).option_bytes(), 252);
    }
}
