//! Packet sequence numbers and queue pair numbers: 24 bits on the wire, modular where they count.

use core::fmt;

/// A packet sequence number: 24 bits, modular (IBTA 9.7.1).
///
/// `Psn` has no `Ord`: order is relative. Use [`Psn::offset_from`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Psn(u32);

impl Psn {
    /// Number of distinct PSNs.
    pub const COUNT: u32 = 1 << 24;
    const MASK: u32 = Self::COUNT - 1;

    /// The low 24 bits of `value`.
    #[inline]
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MASK)
    }

    /// The number, below 2^24.
    #[inline]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The PSN `steps` further on.
    #[inline]
    #[must_use]
    pub const fn plus(self, steps: u32) -> Self {
        Self::new(self.0.wrapping_add(steps))
    }

    /// Distance of `self` after `other`, in -2^23 .. 2^23. A PSN is before another when the difference
    /// is within half the number space (`psn_compare` of Linux drivers/infiniband/sw/rxe/rxe_verbs.h).
    #[inline]
    #[expect(
        clippy::cast_possible_wrap,
        reason = "the shift moves the 24-bit sign bit to the 32-bit one"
    )]
    pub const fn offset_from(self, other: Self) -> i32 {
        ((self.0.wrapping_sub(other.0) << 8) as i32) >> 8
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A queue pair number: 24 bits. 0 and 1 are the management queue pairs (Linux include/rdma/ib_mad.h).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Qpn(u32);

impl Qpn {
    /// The general services queue pair, which carries the connection manager's messages.
    pub const GENERAL_SERVICES: Self = Self(1);

    /// The low 24 bits of `value`.
    #[inline]
    pub const fn new(value: u32) -> Self {
        Self(value & 0x00ff_ffff)
    }

    /// The number, below 2^24.
    #[inline]
    pub const fn value(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psn_order_is_modular() {
        // 0xffffff + 1 wraps to 0, so 0 lies one after 0xffffff.
        assert_eq!(Psn::new(0).offset_from(Psn::new(0x00ff_ffff)), 1);
        assert_eq!(Psn::new(0x00ff_ffff).offset_from(Psn::new(0)), -1);
        assert_eq!(Psn::new(0x00ff_ffff).plus(1), Psn::new(0));
        assert_eq!(Psn::new(5).offset_from(Psn::new(2)), 3);
        // Exactly half the space away counts as behind: -2^23.
        assert_eq!(Psn::new(1 << 23).offset_from(Psn::new(0)), -(1 << 23));
    }

    #[test]
    fn numbers_keep_24_bits() {
        assert_eq!(Psn::new(0xab00_0001).value(), 1);
        assert_eq!(Qpn::new(0xff12_3456).value(), 0x12_3456);
    }
}
