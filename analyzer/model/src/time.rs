//! Points in time.

use std::fmt;

/// Nanoseconds since the Unix epoch (or, where it says so, a length of time in nanoseconds).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Nanoseconds of a second.
    pub const SECOND: u64 = 1_000_000_000;

    /// Time from `earlier` to `self`; zero when that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The time in seconds.
    #[expect(
        clippy::cast_precision_loss,
        reason = "for display and rates: 2^53 ns are 104 days"
    )]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// From the first to the last of something, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Period {
    /// The first moment.
    pub first: Nanos,
    /// The last moment.
    pub last: Nanos,
}

impl Period {
    /// Only this moment.
    pub const fn at(time: Nanos) -> Self {
        Self {
            first: time,
            last: time,
        }
    }

    /// Grows to include `time`.
    #[inline]
    pub fn include(&mut self, time: Nanos) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }

    /// Length of the period.
    pub const fn length(self) -> Nanos {
        self.last.since(self.first)
    }
}

impl fmt::Display for Nanos {
    /// A length of time, in the unit that reads best: `1.92 s`, `350 us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = match self.0 {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..1_000_000 => ("us", 1e3),
            1_000_000..1_000_000_000 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        let value = self.seconds() * 1e9 / scale;
        let decimals = if value < 10.0 {
            2
        } else {
            usize::from(value < 100.0)
        };
        write!(f, "{value:.decimals$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_in_their_unit() {
        assert_eq!(Nanos(0).to_string(), "0 ns");
        assert_eq!(Nanos(1_500).to_string(), "1.50 us");
        assert_eq!(Nanos(67_108_864).to_string(), "67.1 ms");
        assert_eq!(Nanos(1_920_000_000).to_string(), "1.92 s");
        assert_eq!(Nanos(125_000_000_000).to_string(), "125 s");
    }

    #[test]
    fn periods_grow_both_ways() {
        let mut period = Period::at(Nanos(5));
        period.include(Nanos(9));
        period.include(Nanos(2));
        assert_eq!(
            (period.first, period.last, period.length()),
            (Nanos(2), Nanos(9), Nanos(7))
        );
    }
}
