//! Linux "cooked" capture header, 16 bytes (LINKTYPE_LINUX_SLL of libpcap's registry).
//!
//! ```text
//!  0..2     packet type: 0 to us, 1 broadcast, 2 multicast, 3 to somebody else, 4 sent by us
//!  2..4     ARPHRD type of the device
//!  4..6     length of the address
//!  6..14    address of the sender
//! 14..16    protocol: an EtherType for most devices
//! ```

use core::fmt;

/// View of a cooked header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinuxSll<'a>(pub &'a [u8; 16]);

impl LinuxSll<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 16;

    /// To whom: see the table above.
    pub const fn packet_type(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// The kind of device.
    #[inline]
    pub const fn device_type(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Next header, from the device's protocol field.
    #[inline]
    pub const fn protocol(&self) -> u16 {
        u16::from_be_bytes([self.0[14], self.0[15]])
    }
}

/// True if the protocol field of a device of this ARPHRD type is an EtherType. The registry names the exceptions:
/// netlink (824), IPGRE (778, a GRE protocol type, which is one too), Frame Relay (770), 802.11 (801 to 803).
#[inline]
pub const fn has_ether_type(device_type: u16) -> bool {
    !matches!(device_type, 770 | 801..=803 | 824)
}

impl fmt::Display for LinuxSll<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cooked packet type {} protocol 0x{:04x}",
            self.packet_type(),
            self.protocol()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_the_registry() {
        // Sent by us (4), ARPHRD_ETHER (1), a 6-byte address and two bytes of padding, IPv4.
        let bytes = [0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 0x0a, 0, 0, 0x08, 0];
        let sll = LinuxSll(&bytes);
        assert_eq!(
            (sll.packet_type(), sll.device_type(), sll.protocol()),
            (4, 1, 0x0800)
        );
        assert!(has_ether_type(1) && !has_ether_type(824));
    }
}
