//! Link types: what the first byte of a captured frame belongs to.

use core::fmt;

/// A link-layer header type of libpcap's registry (LINKTYPE_...).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: a 4-byte address family in the byte order of the capturing host.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// Raw IP: version 4 or 6 by its first nibble.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: a 4-byte address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture, 16 bytes.
    pub const LINUX_SLL: Self = Self(113);
    /// Reserved for private use; some tools store InfiniBand under it.
    pub const USER0: Self = Self(147);
    /// Endace extensible record format.
    pub const ERF: Self = Self(197);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// InfiniBand, from the local routing header.
    pub const INFINIBAND: Self = Self(247);
    /// Linux "cooked" capture version 2, 20 bytes.
    pub const LINUX_SLL2: Self = Self(276);
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::NULL => "BSD loopback",
            Self::ETHERNET => "Ethernet",
            Self::RAW => "raw IP",
            Self::LOOP => "OpenBSD loopback",
            Self::LINUX_SLL => "Linux cooked",
            Self::USER0 => "USER0",
            Self::ERF => "ERF",
            Self::IPV4 => "raw IPv4",
            Self::IPV6 => "raw IPv6",
            Self::INFINIBAND => "InfiniBand",
            Self::LINUX_SLL2 => "Linux cooked v2",
            Self(other) => return write!(f, "link type {other}"),
        };
        f.write_str(name)
    }
}
