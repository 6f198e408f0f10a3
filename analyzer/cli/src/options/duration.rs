//! Lengths of time and moments, as arguments.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use roce_model::{Span, Time};

/// A length of time such as `100us`, `1.5s`, `2h`: what jiff's friendly format takes, with a decimal fraction.
pub(crate) fn parse_duration(text: &str) -> Result<Span, String> {
    let duration: SignedDuration = text
        .trim()
        .parse()
        .map_err(|_| format!("'{text}' is not a duration such as 100us, 1ms or 1.5s"))?;
    u64::try_from(duration.as_nanos())
        .map(Span)
        .map_err(|_| "a duration is not negative".to_owned())
}

/// A moment: absolute, or after the first frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// At this time.
    At(Time),
    /// Time after the first frame of the run.
    After(Span),
}

impl Moment {
    /// Parses `2026-11-21T10:00:00.5Z`, or `+1.5s`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(after) = text.trim().strip_prefix('+') {
            return parse_duration(after).map(Self::After);
        }
        let time: Timestamp = text.trim().parse().map_err(|_| {
            format!("'{text}' is neither a time such as 2026-11-21T10:00:00.5Z nor +DURATION such as +1.5s")
        })?;
        u64::try_from(time.as_nanosecond())
            .map(|ns| Self::At(Time(ns)))
            .map_err(|_| "a time before 1970".to_owned())
    }

    /// The moment in a run whose first frame is at `first`.
    pub(crate) fn resolve(self, first: Time) -> Time {
        match self {
            Self::At(time) => time,
            Self::After(after) => first + after,
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(time) => match Timestamp::from_nanosecond(i128::from(time.0)) {
                Ok(time) => time.fmt(f),
                Err(_) => write!(f, "{} ns", time.0),
            },
            Self::After(after) => write!(f, "+{}ns", after.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ns) in [
            ("100us", 100_000),
            ("1ms", 1_000_000),
            ("1.5s", 1_500_000_000),
            ("2h", 7_200_000_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Span(ns)), "{text}");
        }
        for wrong in ["", "5", "ms", "-1s", "1 parsec"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments() {
        assert_eq!(
            Moment::parse("+2s").unwrap().resolve(Time(5)),
            Time(2_000_000_005)
        );
        // 2001-09-09T01:46:40Z is 10^9 seconds after the epoch.
        let time = Moment::parse("2001-09-09T01:46:40.25Z").unwrap();
        assert_eq!(time, Moment::At(Time(1_000_000_000_250_000_000)));
        assert_eq!(time.resolve(Time(7)), Time(1_000_000_000_250_000_000));
        assert!(Moment::parse("yesterday").is_err());
    }
}
