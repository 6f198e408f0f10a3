//! Captures that hold only some of the packets that passed their taps.

use core::fmt;
use core::str::FromStr;

/// Packets that a thin capture holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturePart {
    /// One packet in this number, at random or every N-th; 2 or more.
    OneIn(u32),
    /// The first and last packets of messages, answers and CNPs: no Middle.
    Ends,
}

impl FromStr for CapturePart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("1:").unwrap_or(text).parse();
        match (text, number) {
            ("ends", _) => Ok(Self::Ends),
            (_, Ok(number @ 2..)) => Ok(Self::OneIn(number)),
            _ => Err("expected N of 1 in N packets, 2 or more, or 'ends' for a mirror of first and last packets and answers".to_owned()),
        }
    }
}

impl fmt::Display for CapturePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneIn(number) => write!(f, "{number}"),
            Self::Ends => f.write_str("ends"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_or_the_ends_of_messages() {
        assert_eq!("10".parse(), Ok(CapturePart::OneIn(10)));
        assert_eq!("1:4096".parse(), Ok(CapturePart::OneIn(4_096)));
        assert_eq!("ends".parse(), Ok(CapturePart::Ends));
        for wrong in ["", "0", "1", "1:1", "-3", "4294967296", "end"] {
            assert!(wrong.parse::<CapturePart>().is_err(), "{wrong}");
        }
    }
}
