//! Generic routing encapsulation, 4 bytes and optional fields (RFC 2784, and RFC 2890 for key and sequence).
//!
//! ```text
//!  0..2     checksum 0x8000 | routing 0x4000 (RFC 1701) | key 0x2000 | sequence 0x1000 | version 0x0007
//!  2..4     EtherType of what follows
//!           checksum and offset, 4 bytes, if either of the first two bits is set
//!           key, 4 bytes
//!           sequence number, 4 bytes
//! ```

use core::fmt;

/// EtherType of ERSPAN types I and II.
pub const ERSPAN: u16 = 0x88be;
/// EtherType of ERSPAN type III.
pub const ERSPAN_III: u16 = 0x22eb;

/// View of the fixed part of a GRE header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gre<'a>(pub &'a [u8; 4]);

impl Gre<'_> {
    /// Its length in bytes, without the optional fields.
    pub const BYTES: usize = 4;

    /// True if a checksum follows.
    pub const fn has_checksum(&self) -> bool {
        self.0[0] & 0x80 != 0
    }

    /// True if source routes follow (RFC 1701): their length is not in this header.
    pub const fn has_routing(&self) -> bool {
        self.0[0] & 0x40 != 0
    }

    /// True if a key follows.
    pub const fn has_key(&self) -> bool {
        self.0[0] & 0x20 != 0
    }

    /// True if a sequence number follows.
    pub const fn has_sequence(&self) -> bool {
        self.0[0] & 0x10 != 0
    }

    /// The version: 0; 1 is PPTP's.
    pub const fn version(&self) -> u8 {
        self.0[1] & 7
    }

    /// EtherType of the next header.
    pub const fn protocol(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Offset of the key, in bytes from the start of the header.
    pub const fn key_offset(&self) -> usize {
        Self::BYTES
            + if self.has_checksum() || self.has_routing() {
                4
            } else {
                0
            }
    }

    /// Offset of the sequence number, in bytes from the start of the header.
    pub const fn sequence_offset(&self) -> usize {
        self.key_offset() + if self.has_key() { 4 } else { 0 }
    }

    /// The length of the header with its optional fields, in bytes, 4 to 16.
    pub const fn header_bytes(&self) -> usize {
        self.sequence_offset() + if self.has_sequence() { 4 } else { 0 }
    }
}

impl fmt::Display for Gre<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GRE 0x{:04x}", self.protocol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_by_rfc_2890() {
        let erspan = Gre(&[0x10, 0, 0x88, 0xbe]);
        assert!(erspan.has_sequence() && !erspan.has_key() && !erspan.has_checksum());
        assert_eq!(
            (erspan.sequence_offset(), erspan.header_bytes(), erspan.protocol()),
            (4, 8, ERSPAN)
        );
        let all = Gre(&[0xb0, 0, 0x65, 0x58]);
        assert_eq!(
            (
                all.key_offset(),
                all.sequence_offset(),
                all.header_bytes(),
                all.version()
            ),
            (8, 12, 16, 0)
        );
        assert_eq!(Gre(&[0, 0, 8, 0]).header_bytes(), 4);
    }
}
