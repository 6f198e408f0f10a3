//! In-band flow analyzer 2.0 (draft-kumar-ippm-ifa-08): a header behind IP, UDP, and the metadata of the hops in front of the BTH.
//!
//! ```text
//! header, 4 bytes:
//!  0        version 0xf0 (2) | name space 0x0f
//!  1        protocol of the next header
//!  2        flags: MF 0x10 | TS 0x08, the metadata are behind the payload | I 0x04, in band and no copy | TA 0x02 | C 0x01
//!  3        longest stack, in words
//! metadata header, 4 bytes:
//!  0        requested metadata
//!  1        action
//!  2        hop limit
//!  3        length of the stack, in words of 4 bytes; the latest hop is first
//! ```

/// The protocol number that switches use.
pub const PROTOCOL: u8 = 253;

/// View of an IFA header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ifa<'a>(pub &'a [u8; 4]);

/// View of a metadata header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IfaMetadata<'a>(pub &'a [u8; 4]);

impl Ifa<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The version: 2.
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// Protocol number of the next header.
    pub const fn next_header(&self) -> u8 {
        self.0[1]
    }

    /// True if the metadata are behind the payload.
    pub const fn has_tail(&self) -> bool {
        self.0[2] & 0x08 != 0
    }

    /// True of the packet itself; false of a copy that carries the metadata beside it.
    pub const fn is_in_band(&self) -> bool {
        self.0[2] & 0x04 != 0
    }

    /// True if there are fragments of metadata or a checksum, whose layout is not known.
    pub const fn has_unknown_layout(&self) -> bool {
        self.0[2] & 0x11 != 0
    }
}

impl IfaMetadata<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// Length of the stack behind it, in bytes.
    pub const fn stack_bytes(&self) -> usize {
        self.0[3] as usize * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_headers() {
        // 0x2f: version 2, name space 15; 17: UDP; 0x04: in band. 24 words: three hops of 32 bytes.
        let header = Ifa(&[0x2f, 17, 0x04, 0xff]);
        assert_eq!((header.version(), header.next_header()), (2, 17));
        assert!(header.is_in_band() && !header.has_tail() && !header.has_unknown_layout());
        assert!(!Ifa(&[0x2f, 17, 0x08, 0xff]).is_in_band());
        assert_eq!(IfaMetadata(&[0xff, 0, 250, 24]).stack_bytes(), 96);
    }
}
