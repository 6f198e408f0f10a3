//! Instants, lengths of time, and periods.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// An instant: nanoseconds since the Unix epoch.
///
/// An instant and a length make an instant, and the distance of two instants is a length: nothing else can be added or subtracted.
/// All arithmetic saturates, as stamps and lengths come from files that may say anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Span(pub u64);

impl Time {
    /// Time from `earlier` to `self`; zero when that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Time between both, whichever comes first.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Span {
        Span(self.0.abs_diff(other.0))
    }

    /// Seconds since the Unix epoch.
    pub fn seconds(self) -> f64 {
        Span(self.0).seconds()
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// The length in seconds.
    #[expect(
        clippy::cast_precision_loss,
        reason = "for display and rates: 2^53 ns are 104 days"
    )]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Sub for Time {
    type Output = Span;

    /// As [`Time::since`]: zero when `earlier` is later.
    #[inline]
    fn sub(self, earlier: Self) -> Span {
        self.since(earlier)
    }
}

impl Add<Span> for Time {
    type Output = Self;

    #[inline]
    fn add(self, length: Span) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, length: Span) {
        *self = *self + length;
    }
}

impl Sub<Span> for Time {
    type Output = Self;

    #[inline]
    fn sub(self, length: Span) -> Self {
        Self(self.0.saturating_sub(length.0))
    }
}

impl Add for Span {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Span {
    type Output = Self;

    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Self;

    /// # Panics
    /// `divisor` is zero.
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(lengths: I) -> Self {
        lengths.fold(Self::ZERO, Add::add)
    }
}

/// From the first to the last of something, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Period {
    /// The first moment.
    pub first: Time,
    /// The last moment.
    pub last: Time,
}

impl Period {
    /// Only this moment.
    pub const fn at(time: Time) -> Self {
        Self {
            first: time,
            last: time,
        }
    }

    /// Grows to include `time`.
    #[inline]
    pub fn include(&mut self, time: Time) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }

    /// Length of the period.
    pub const fn length(self) -> Span {
        self.last.since(self.first)
    }
}

impl fmt::Display for Span {
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
        assert_eq!(Span(0).to_string(), "0 ns");
        assert_eq!(Span(1_500).to_string(), "1.50 us");
        assert_eq!(Span(67_108_864).to_string(), "67.1 ms");
        assert_eq!(Span(1_920_000_000).to_string(), "1.92 s");
        assert_eq!(Span(125_000_000_000).to_string(), "125 s");
    }

    #[test]
    fn periods_grow_both_ways() {
        let mut period = Period::at(Time(5));
        period.include(Time(9));
        period.include(Time(2));
        assert_eq!(
            (period.first, period.last, period.length()),
            (Time(2), Time(9), Span(7))
        );
    }

    #[test]
    fn instants_and_lengths_are_added_and_subtracted_up_to_their_bounds() {
        let (early, late) = (Time(5), Time(9));
        assert_eq!(
            (late - early, early - late, early.abs_diff(late)),
            (Span(4), Span::ZERO, Span(4))
        );
        assert_eq!(
            (early + Span(4), late - Span(4), early - Span(6)),
            (late, early, Time(0))
        );
        assert_eq!(Time(u64::MAX) + Span::SECOND, Time(u64::MAX));
        assert_eq!(
            (Span(7) + Span(2), Span(7) - Span(2), Span(2) - Span(7)),
            (Span(9), Span(5), Span::ZERO)
        );
        assert_eq!(
            (Span(7) * 2, Span(7) / 2, Span(u64::MAX) * 2),
            (Span(14), Span(3), Span(u64::MAX))
        );
        assert_eq!(
            [Span(1), Span(2), Span(u64::MAX)].into_iter().sum::<Span>(),
            Span(u64::MAX)
        );
    }
}
