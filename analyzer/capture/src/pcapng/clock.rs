//! The time stamps of a pcapng interface: ticks of `if_tsresol` after `if_tsoffset`, to ns since the epoch.
//!
//! Leaves reading the options to the block that carries them.

/// `if_tsresol` where an interface has none: 10^-6 s.
pub(crate) const MICROSECONDS: u8 = 6;
const SECOND: u64 = 1_000_000_000;

/// Conversion of an interface's ticks to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    unit: Unit,
    /// Seconds added to every stamp.
    offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Nanoseconds of a tick, without an offset: nearly every interface.
    Plain(u64),
    /// Nanoseconds of a tick.
    Time(u64),
    /// Ticks of a nanosecond; 0 if they exceed a `u64`.
    PerNano(u64),
    /// A tick is 2^-n s.
    Binary(u32),
}

impl Clock {
    /// The clock of an interface with this `if_tsresol`, and `if_tsoffset` in seconds.
    pub(crate) fn new(resolution: u8, offset: i64) -> Self {
        let exponent = u32::from(resolution & 0x7f);
        let unit = if resolution & 0x80 != 0 {
            Unit::Binary(exponent)
        } else if let Some(digits) = 9_u32.checked_sub(exponent) {
            let ns = 10_u64.pow(digits);
            if offset == 0 {
                Unit::Plain(ns)
            } else {
                Unit::Time(ns)
            }
        } else {
            Unit::PerNano(10_u64.checked_pow(exponent - 9).unwrap_or(0))
        };
        Self { unit, offset }
    }

    /// The ns of one tick, rounded up: 1 also for finer ticks.
    pub(crate) fn quantum_ns(self) -> u64 {
        match self.unit {
            Unit::Plain(ns) | Unit::Time(ns) => ns,
            Unit::PerNano(_) => 1,
            Unit::Binary(exponent) => SECOND.div_ceil(1_u64.checked_shl(exponent).unwrap_or(u64::MAX)),
        }
    }

    /// The ns of one tick, where that is all there is to it.
    #[inline]
    pub(crate) fn plain(&self) -> Option<u64> {
        match self.unit {
            Unit::Plain(ns) => Some(ns),
            _ => None,
        }
    }

    /// The time of a stamp in ns since the epoch, rounded down; beyond what 64 bits hold, their end.
    #[inline]
    pub(crate) fn nanos(self, ticks: u64) -> u64 {
        match self.unit {
            Unit::Plain(ns) => ticks.saturating_mul(ns),
            _ => self.odd(ticks),
        }
    }

    #[cold]
    fn odd(self, ticks: u64) -> u64 {
        let wide = u128::from(ticks);
        // 64 bits of ticks times 30 bits of a second stay far below 127 bits.
        let since = match self.unit {
            Unit::Plain(ns) | Unit::Time(ns) => wide * u128::from(ns),
            Unit::PerNano(0) => 0,
            Unit::PerNano(ticks_per_ns) => wide / u128::from(ticks_per_ns),
            Unit::Binary(exponent) => (wide * u128::from(SECOND)) >> exponent,
        };
        let offset = i128::from(self.offset) * i128::from(SECOND);
        let total = offset.saturating_add_unsigned(since);
        u64::try_from(total.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_resolutions() {
        assert_eq!(Clock::new(MICROSECONDS, 0).nanos(1_500_000), 1_500_000_000);
        assert_eq!(Clock::new(9, 0).nanos(7), 7);
        // 10^-0: whole seconds.
        assert_eq!(Clock::new(0, 0).nanos(3), 3_000_000_000);
        // 10^-12: 1234 ps are 1 ns.
        assert_eq!(Clock::new(12, 0).nanos(1_234), 1);
        // 10^-127 is finer than anything 64 bits could fill to one ns.
        assert_eq!(Clock::new(127, 0).nanos(u64::MAX), 0);
        let quanta: Vec<u64> = [0, 3, 6, 9, 12].map(|n| Clock::new(n, 0).quantum_ns()).to_vec();
        assert_eq!(quanta, [1_000_000_000, 1_000_000, 1_000, 1, 1]);
    }

    #[test]
    fn binary_resolutions() {
        // 2^-10 s: 1536 ticks are 1.5 s. 1e9 / 1024 = 976562.5.
        assert_eq!(Clock::new(0x80 | 0x0a, 0).nanos(1_536), 1_500_000_000);
        assert_eq!(Clock::new(0x80 | 0x0a, 0).quantum_ns(), 976_563);
        // 2^-32 s: half a second is 2^31 ticks.
        assert_eq!(
            Clock::new(0x80 | 0x20, 0).nanos((5 << 32) | (1 << 31)),
            5_500_000_000
        );
        // 2^-64 and finer: never one second; 2^63 ticks of 2^-64 s are half of one.
        assert_eq!(Clock::new(0x80 | 0x40, 0).nanos(1 << 63), 500_000_000);
        assert_eq!(Clock::new(0xff, 0).nanos(u64::MAX), 0);
        assert_eq!(Clock::new(0xff, 0).quantum_ns(), 1);
    }

    #[test]
    fn offsets_are_whole_seconds_and_saturate() {
        assert_eq!(Clock::new(6, 100).nanos(1), 100_000_001_000);
        assert_eq!(Clock::new(6, -1).nanos(1_500_000), 500_000_000);
        assert_eq!(Clock::new(6, -2).nanos(1_500_000), 0);
        assert_eq!(Clock::new(6, i64::MAX).nanos(u64::MAX), u64::MAX);
        assert_eq!(Clock::new(0, 0).nanos(u64::MAX), u64::MAX);
        // Whole seconds: 2^64 - 1 of them after -2^63 s are too many, 2^63 of them are the epoch.
        assert_eq!(Clock::new(0x80, i64::MIN).nanos(u64::MAX), u64::MAX);
        assert_eq!(Clock::new(0x80, i64::MIN).nanos(1 << 63), 0);
    }
}
