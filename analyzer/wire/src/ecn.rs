//! The ECN field: the low two bits of the IPv4 TOS byte or the IPv6 traffic class (RFC 3168, section 5).

use core::fmt;

/// A value of the ECN field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not take part in ECN: a congested switch can only drop the packet.
    NotEct = 0,
    /// ECN-capable transport, codepoint 01.
    Ect1 = 1,
    /// ECN-capable transport, codepoint 10: what RoCE NICs send.
    Ect0 = 2,
    /// Congestion experienced: a switch has marked the packet.
    Ce = 3,
}

impl Ecn {
    /// The field of a TOS or traffic class byte.
    #[inline]
    pub const fn from_traffic_class(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

impl fmt::Display for Ecn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotEct => "Not-ECT",
            Self::Ect1 => "ECT(1)",
            Self::Ect0 => "ECT(0)",
            Self::Ce => "CE",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_are_those_of_rfc_3168() {
        // TOS 106 = 0b011010_10: DSCP 26, ECT(0).
        assert_eq!(Ecn::from_traffic_class(106), Ecn::Ect0);
        assert_eq!(Ecn::from_traffic_class(0b11), Ecn::Ce);
        assert_eq!(Ecn::from_traffic_class(0b01), Ecn::Ect1);
        assert_eq!(Ecn::from_traffic_class(0xfc), Ecn::NotEct);
    }
}
