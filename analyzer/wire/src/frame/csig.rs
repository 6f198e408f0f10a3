//! Congestion signaling tag, compact form, 4 bytes from its signal on (draft-ravi-ippm-csig-01, section 4).
//!
//! ```text
//!  0..2     type 0xe000 | flag 0x1000 | value 0x0f80 | locator 0x007f
//!  2..4     EtherType of what follows
//! ```

/// The EtherType that announces a tag. Switches let it be set; this is the one that they begin with.
pub const CSIG: u16 = 0x9900;

/// View of a wide tag: the eight bytes after the EtherType that announces it. The places of its kind and its value are not published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WideCsig<'a>(pub &'a [u8; 8]);

impl WideCsig<'_> {
    /// The first four bytes as they are.
    pub const fn raw(self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    /// EtherType of the next header.
    pub const fn ether_type(&self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }
}

/// View of a tag: the four bytes after the EtherType that announces it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Csig<'a>(pub &'a [u8; 4]);

impl Csig<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    const fn signal(self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// The kind of signal: 0 least available bandwidth, 1 its share of the link, 2 longest delay, 3 longest normalised queue.
    pub const fn kind(self) -> u8 {
        (self.signal() >> 13) as u8
    }

    /// A bit that is reserved, or says that the packet was trimmed, as the network's operator has it.
    pub const fn flag(self) -> bool {
        self.signal() & 0x1000 != 0
    }

    /// The bucket of the value, 5 bits: what it means the operator has set.
    pub const fn value(self) -> u8 {
        (self.signal() >> 7 & 0x1f) as u8
    }

    /// Where the value is from, 7 bits.
    pub const fn locator(self) -> u8 {
        (self.signal() & 0x7f) as u8
    }

    /// EtherType of the next header.
    pub const fn ether_type(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_published_tag() {
        // FBOSS' test header has 99 00 2b 85: type 1, value 0x17, locator 5.
        let tag = Csig(&[0x2b, 0x85, 0x08, 0x00]);
        assert_eq!(
            (tag.kind(), tag.flag(), tag.value(), tag.locator()),
            (1, false, 0x17, 5)
        );
        assert_eq!(tag.ether_type(), 0x0800);
    }
}
