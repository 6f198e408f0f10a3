//! BSD loopback header, 4 bytes (LINKTYPE_NULL and LINKTYPE_LOOP of libpcap's registry).
//!
//! ```text
//!  0..4     address family: of the capturing host's byte order (NULL) or of the network's (LOOP)
//! ```

use core::fmt;

/// View of a loopback header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loopback<'a>(pub &'a [u8; 4]);

impl Loopback<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The address family. Families are small, so the byte order shows: two bytes of the four are zero.
    pub const fn family(&self) -> u32 {
        let family = u32::from_be_bytes(*self.0);
        if family > 0xffff {
            family.swap_bytes()
        } else {
            family
        }
    }

    /// True if IP follows: AF_INET is 2 everywhere, AF_INET6 is 10 on Linux and 24, 28 or 30 on the BSDs.
    pub const fn is_ip(&self) -> bool {
        matches!(self.family(), 2 | 10 | 24 | 28 | 30)
    }
}

impl fmt::Display for Loopback<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loopback family {}", self.family())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_in_either_byte_order() {
        assert_eq!(Loopback(&[2, 0, 0, 0]).family(), 2);
        assert_eq!(Loopback(&[0, 0, 0, 30]).family(), 30);
        assert!(Loopback(&[0, 0, 0, 30]).is_ip() && !Loopback(&[7, 0, 0, 0]).is_ip());
    }
}
