//! The address of an end of a RoCE flow: an IPv4 or IPv6 address, a GID, or a LID, in 16 bytes.

use core::fmt;
use core::net::{AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// An address in 16 bytes, as GIDs are. An IPv4 address has its IPv4-mapped form (`::ffff:a.b.c.d`, as
/// in RoCE GIDs, IBTA A17.4.1.1). A LID is in the discard-only prefix `100::/64` (RFC 6666), which no
/// host owns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address([u8; 16]);

const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
const LID: [u8; 14] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

impl Address {
    /// An IPv4 address.
    #[inline]
    pub const fn v4(a: [u8; 4]) -> Self {
        Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a[0], a[1], a[2], a[3]])
    }

    /// An IPv6 address or a GID, in network byte order.
    #[inline]
    pub const fn v6(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The local identifier of an InfiniBand port (native InfiniBand packets without a GRH).
    pub const fn lid(lid: u16) -> Self {
        let [high, low] = lid.to_be_bytes();
        Self([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low])
    }

    /// The 16 bytes.
    #[inline]
    pub const fn octets(&self) -> &[u8; 16] {
        &self.0
    }

    /// The LID, when it is one.
    pub fn as_lid(&self) -> Option<u16> {
        self.0
            .starts_with(&LID)
            .then(|| u16::from_be_bytes([self.0[14], self.0[15]]))
    }

    /// The IP address (IPv4 out of its mapped form), when it is not a LID.
    pub fn as_ip(&self) -> Option<IpAddr> {
        if self.as_lid().is_some() {
            return None;
        }
        if self.0.starts_with(&MAPPED) {
            return Some(Ipv4Addr::new(self.0[12], self.0[13], self.0[14], self.0[15]).into());
        }
        Some(Ipv6Addr::from(self.0).into())
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self::v4(ip.octets()),
            IpAddr::V6(ip) => Self::v6(ip.octets()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.as_lid(), self.as_ip()) {
            (Some(lid), _) => write!(f, "lid:{lid}"),
            (None, Some(ip)) => ip.fmt(f),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Address {
    type Err = AddrParseError;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        match text.strip_prefix("lid:").and_then(|lid| lid.parse().ok()) {
            Some(lid) => Ok(Self::lid(lid)),
            None => text.parse::<IpAddr>().map(Self::from),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn three_kinds_are_told_apart() {
        assert_eq!(format!("{}", Address::v4([10, 77, 0, 1])), "10.77.0.1");
        let gid = Address::v6([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(format!("{gid}"), "fe80::1");
        assert_eq!(format!("{}", Address::lid(17)), "lid:17");
        assert_eq!(format!("{}", Address::lid(0)), "lid:0");
        assert_eq!(Address::lid(0xbeef).as_lid(), Some(0xbeef));
        assert_eq!(gid.as_lid(), None);
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["10.77.0.1", "fe80::1", "lid:17", "lid:65535", "::"] {
            assert_eq!(format!("{}", text.parse::<Address>().unwrap()), text);
        }
        for text in ["", "lid:", "lid:65536", "10.0.0", "fe80::1%eth0"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
