//! Times, rates and sizes of a scenario, read from text as people write them: `10ms`, `100Gbps`, `4KiB`.
//!
//! Time inside the simulation is a whole number of picoseconds, so that one byte at 400 Gb/s (20 ps) is exact.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Visitor};

/// Picoseconds: since the begin of the simulation, or a length of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Picos(pub u64);

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(pub u64);

/// A time between two bounds: `"0us..10ms"`, or one time alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeRange {
    /// The shortest.
    pub from: Picos,
    /// The longest.
    pub to: Picos,
}

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Size(pub u64);

impl Picos {
    /// The begin of the simulation.
    pub const ZERO: Self = Self(0);
    /// Later than everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos.saturating_mul(1_000))
    }

    /// In whole nanoseconds, rounded down.
    pub const fn nanos(self) -> u64 {
        self.0 / 1_000
    }

    /// This much later.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Time from `earlier` to this; zero when that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// This time multiplied by `factor`.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// In seconds.
    #[expect(clippy::cast_precision_loss, reason = "2^53 ps are more than two hours")]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// From seconds; negative ones are zero.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, as wanted"
    )]
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e12) as u64)
    }
}

impl Rate {
    /// Duration of `bytes` at this rate, rounded up to a picosecond.
    pub const fn time_of(self, bytes: u64) -> Picos {
        if self.0 == 0 {
            return Picos::NEVER;
        }
        let bits = bytes as u128 * 8;
        let time = (bits * 1_000_000_000_000).div_ceil(self.0 as u128);
        if time > u64::MAX as u128 {
            Picos::NEVER
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "compared in the line before")]
            Picos(time as u64)
        }
    }

    /// Whole bytes that pass in `time`.
    pub const fn bytes_in(self, time: Picos) -> u64 {
        let bytes = self.0 as u128 * time.0 as u128 / 8_000_000_000_000;
        if bytes > u64::MAX as u128 {
            u64::MAX
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "compared in the line before")]
            {
                bytes as u64
            }
        }
    }

    /// Bits per second, as a floating point number.
    #[expect(clippy::cast_precision_loss, reason = "2^53 bit/s are 9 Pbit/s")]
    pub fn bits(self) -> f64 {
        self.0 as f64
    }
}

/// Splits `text` into a number and what follows it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim()))
}

/// `number` of `scale`, as a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers are not negative, and the cast saturates"
)]
fn scaled(number: f64, scale: f64) -> u64 {
    (number * scale).round() as u64
}

/// A quantity that is read from text.
trait Quantity: Sized {
    const EXPECTED: &'static str;
    fn read(text: &str) -> Option<Self>;
    /// Meaning of a bare whole number, if it is allowed.
    fn bare(number: u64) -> Option<Self>;
}

impl Quantity for Picos {
    const EXPECTED: &'static str = "a time such as \"10ms\", \"2us\", \"500ns\" or \"1s\"";

    fn read(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let scale = match unit {
            "s" => 1e12,
            "ms" => 1e9,
            "us" | "µs" => 1e6,
            "ns" => 1e3,
            "ps" => 1.0,
            _ => return None,
        };
        Some(Self(scaled(number, scale)))
    }

    fn bare(number: u64) -> Option<Self> {
        (number == 0).then_some(Self::ZERO)
    }
}

impl Quantity for TimeRange {
    const EXPECTED: &'static str = "a range of times such as \"0us..10ms\", or one time";

    fn read(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let (from, to) = (Picos::read(from)?, Picos::read(to)?);
        (from <= to).then_some(Self { from, to })
    }

    fn bare(number: u64) -> Option<Self> {
        (number == 0).then(Self::default)
    }
}

impl Quantity for Rate {
    const EXPECTED: &'static str = "a rate such as \"100Gbps\", \"40Mbps\" or \"2.5Gbit/s\"";

    fn read(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let scale = match unit
            .trim_end_matches("bps")
            .trim_end_matches("bit/s")
            .trim_end_matches("b/s")
        {
            prefix if prefix.len() == unit.len() => return None,
            "" => 1.0,
            "k" | "K" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            _ => return None,
        };
        let rate = scaled(number, scale);
        (rate > 0).then_some(Self(rate))
    }

    fn bare(_: u64) -> Option<Self> {
        None
    }
}

impl Quantity for Size {
    const EXPECTED: &'static str = "a size such as \"4KiB\", \"12MB\" or a number of bytes";

    fn read(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let scale = match unit {
            "" | "B" => 1.0,
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            "GiB" => 1024.0 * 1024.0 * 1024.0,
            _ => return None,
        };
        Some(Self(scaled(number, scale)))
    }

    fn bare(number: u64) -> Option<Self> {
        Some(Self(number))
    }
}

struct Reads<Q>(std::marker::PhantomData<Q>);

impl<Q: Quantity> Visitor<'_> for Reads<Q> {
    type Value = Q;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Q::EXPECTED)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Q, E> {
        Q::read(text).ok_or_else(|| E::custom(format!("\"{text}\" is not {}", Q::EXPECTED)))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Q, E> {
        Q::bare(number).ok_or_else(|| E::custom(format!("{number} has no unit: give {}", Q::EXPECTED)))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Q, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::custom(format!("{number} is not {}", Q::EXPECTED))),
        }
    }
}

macro_rules! deserialize {
    ($($quantity:ty),*) => {$(
        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Reads::<Self>(std::marker::PhantomData))
            }
        }

        impl std::str::FromStr for $quantity {
            type Err = serde::de::value::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::read(text)
                    .ok_or_else(|| Self::Err::custom(format!("\"{text}\" is not {}", Self::EXPECTED)))
            }
        }
    )*};
}

deserialize!(Picos, TimeRange, Rate, Size);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_with_its_unit() {
        assert_eq!("10ms".parse::<Picos>().unwrap(), Picos(10_000_000_000));
        assert_eq!("2 us".parse::<Picos>().unwrap(), Picos(2_000_000));
        assert_eq!("1.5ns".parse::<Picos>().unwrap(), Picos(1_500));
        assert_eq!("100Gbps".parse::<Rate>().unwrap(), Rate(100_000_000_000));
        assert_eq!("2.5Gbit/s".parse::<Rate>().unwrap(), Rate(2_500_000_000));
        assert_eq!("4KiB".parse::<Size>().unwrap(), Size(4096));
        assert_eq!("1_000".parse::<Size>().unwrap(), Size(1000));
    }

    #[test]
    fn ranges_have_two_ends_in_order() {
        let range = |from, to| TimeRange {
            from: Picos::from_nanos(from),
            to: Picos::from_nanos(to),
        };
        assert_eq!(
            "1us..10ms".parse::<TimeRange>().unwrap(),
            range(1_000, 10_000_000)
        );
        assert_eq!("5us".parse::<TimeRange>().unwrap(), range(5_000, 5_000));
        for bad in ["2us..1us", "1us..", "..", "1..2"] {
            assert!(bad.parse::<TimeRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for bad in ["10", "ms", "10 parsecs", "", "-1ms"] {
            assert!(bad.parse::<Picos>().is_err(), "{bad}");
        }
        for bad in ["100", "100G", "0Gbps", "100Gbyte"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
        let error = "7 apples".parse::<Size>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"7 apples\" is not a size such as \"4KiB\", \"12MB\" or a number of bytes"
        );
    }

    #[test]
    fn transmission_times_are_exact() {
        // 4,096 bytes are 32,768 bits: at 100 Gb/s (10 ps a bit) 327.68 ns.
        assert_eq!(Rate(100_000_000_000).time_of(4096), Picos(327_680));
        // One byte at 400 Gb/s: 8 bits of 2.5 ps.
        assert_eq!(Rate(400_000_000_000).time_of(1), Picos(20));
        assert_eq!(Rate(100_000_000_000).bytes_in(Picos(327_680)), 4096);
    }
}
