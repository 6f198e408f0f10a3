//! Linux "cooked" capture header version 2, 20 bytes (LINKTYPE_LINUX_SLL2 of libpcap's registry).
//!
//! ```text
//!  0..2     protocol: an EtherType for most devices
//!  2..4     reserved
//!  4..8     interface index
//!  8..10    ARPHRD type of the device
//! 10        packet type
//! 11        length of the address
//! 12..20    address of the sender
//! ```

use core::fmt;

/// View of a cooked header, version 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinuxSll2<'a>(pub &'a [u8; 20]);

impl LinuxSll2<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 20;

    /// Next header, from the device's protocol field.
    #[inline]
    pub const fn protocol(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// The index of the interface on the capturing host.
    pub const fn interface(&self) -> u32 {
        u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    /// The kind of device.
    #[inline]
    pub const fn device_type(&self) -> u16 {
        u16::from_be_bytes([self.0[8], self.0[9]])
    }

    /// To whom: as in version 1.
    pub const fn packet_type(&self) -> u8 {
        self.0[10]
    }
}

impl fmt::Display for LinuxSll2<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cooked interface {} protocol 0x{:04x}",
            self.interface(),
            self.protocol()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_the_registry() {
        // IPv6, interface 7, ARPHRD_ETHER, sent by us (4), a 6-byte address.
        let bytes = [
            0x86, 0xdd, 0, 0, 0, 0, 0, 7, 0, 1, 4, 6, 2, 0, 0, 0, 0, 0x0a, 0, 0,
        ];
        let sll = LinuxSll2(&bytes);
        assert_eq!(
            (
                sll.protocol(),
                sll.interface(),
                sll.device_type(),
                sll.packet_type()
            ),
            (0x86dd, 7, 1, 4)
        );
    }
}
