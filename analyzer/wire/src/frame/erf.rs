//! Extensible record format header, 16 bytes (Endace, "ERF types reference guide").
//!
//! ```text
//!  0..8     timestamp, little-endian, 32.32 bits of seconds
//!  8        type, 0x80 = an extension header follows
//!  9        flags
//! 10..12    record length, this header included
//! 12..14    loss counter or color
//! 14..16    wire length
//! 16..      extension headers of 8 bytes, while their first byte has 0x80
//!           Ethernet records: 2 bytes (offset, padding), so that IP is aligned
//! ```

use core::fmt;

/// View of an ERF record header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Erf<'a>(pub &'a [u8; 16]);

/// Content of a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErfKind {
    /// Ethernet, after two bytes of padding (types 2, 11, 16, 20).
    Ethernet,
    /// InfiniBand from the LRH on (type 21).
    Infiniband,
    /// Raw IP (types 22 and 23).
    Ip,
    /// Something else.
    Other,
}

impl Erf<'_> {
    /// Its length in bytes, without extension headers.
    pub const BYTES: usize = 16;
    /// The length of an extension header.
    pub const EXTENSION_BYTES: usize = 8;
    /// Bytes between the header of an Ethernet record and its frame.
    pub const ETHERNET_PADDING: usize = 2;

    /// The type, without the extension bit.
    pub const fn record_type(&self) -> u8 {
        self.0[8] & 0x7f
    }

    /// Content of the record.
    pub const fn kind(&self) -> ErfKind {
        match self.record_type() {
            2 | 11 | 16 | 20 => ErfKind::Ethernet,
            21 => ErfKind::Infiniband,
            22 | 23 => ErfKind::Ip,
            _ => ErfKind::Other,
        }
    }

    /// True if an extension header follows.
    pub const fn has_extension(&self) -> bool {
        self.0[8] & 0x80 != 0
    }

    /// The length of the whole record in bytes.
    pub const fn record_length(&self) -> u16 {
        u16::from_be_bytes([self.0[10], self.0[11]])
    }

    /// The length of the packet on the wire, in bytes.
    pub const fn wire_length(&self) -> u16 {
        u16::from_be_bytes([self.0[14], self.0[15]])
    }
}

impl fmt::Display for Erf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ERF type {} wire length {}",
            self.record_type(),
            self.wire_length()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_the_guide() {
        // Type 21 with an extension header, record of 0x0040 bytes, 0x0120 on the wire.
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 0x95, 4, 0, 0x40, 0, 0, 1, 0x20];
        let erf = Erf(&bytes);
        assert_eq!(erf.kind(), ErfKind::Infiniband);
        assert!(erf.has_extension());
        assert_eq!((erf.record_length(), erf.wire_length()), (64, 288));
    }
}
