//! 802.1Q and 802.1ad tag, 4 bytes from its control field on (IEEE 802.1Q, 9.6).
//!
//! ```text
//!  0..2     PCP 0xe000 | DEI 0x1000 | VID 0x0fff
//!  2..4     EtherType of what follows
//! ```

use core::fmt;

use crate::VlanTag;

/// View of a tag: the four bytes after the EtherType that announces it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vlan<'a>(pub &'a [u8; 4]);

impl Vlan<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The control field.
    #[inline]
    pub const fn tag(&self) -> VlanTag {
        VlanTag(u16::from_be_bytes([self.0[0], self.0[1]]))
    }

    /// EtherType of the next header.
    #[inline]
    pub const fn ether_type(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }
}

/// True if an EtherType announces a tag: 0x8100 or 0x88a8.
#[inline]
pub const fn is_tag(ether_type: u16) -> bool {
    matches!(ether_type, super::ethernet::VLAN | super::ethernet::SERVICE_VLAN)
}

impl fmt::Display for Vlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tag = self.tag();
        write!(f, "VLAN {} priority {}", tag.id(), tag.priority())?;
        if tag.drop_eligible() {
            f.write_str(" DEI")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn bits_of_the_control_field() {
        // 0xb064 = 101 1 000001100100: priority 5, DEI, VLAN 100.
        let vlan = Vlan(&[0xb0, 0x64, 0x08, 0x00]);
        assert_eq!(vlan.to_string(), "VLAN 100 priority 5 DEI");
        assert_eq!(vlan.ether_type(), 0x0800);
        assert!(is_tag(0x8100) && is_tag(0x88a8) && !is_tag(0x0800));
    }
}
