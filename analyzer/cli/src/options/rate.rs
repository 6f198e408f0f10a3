//! Speeds of links, as arguments.

use std::fmt;

/// A speed in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate(pub(crate) u64);

impl Rate {
    /// Parses `100Gbps`, `25G`, `2.5 Gbit/s`: decimal units of bits. A number alone could be anything, and is refused.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not the speed of a link such as 25G, 100Gbps or 400 Gbit/s");
        let trimmed = text.trim();
        let digits = trimmed
            .find(|letter: char| !(letter.is_ascii_digit() || letter == '.'))
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let mut letters = unit.trim_start().chars();
        let scale = match letters.next() {
            Some('k' | 'K') => 1e3,
            Some('m' | 'M') => 1e6,
            Some('g' | 'G') => 1e9,
            Some('t' | 'T') => 1e12,
            _ => return Err(wrong()),
        };
        match letters.as_str() {
            "" | "b" | "bps" | "b/s" | "bit" | "bit/s" | "bits/s" => {}
            bytes if bytes.starts_with('B') => {
                return Err(format!(
                    "'{text}' is in bytes: the speed of a link is in bits, such as 100Gbps"
                ));
            }
            _ => return Err(wrong()),
        }
        let rate = (number * scale).round();
        if !(1e3..=1e14).contains(&rate) {
            return Err("the speed of a link is 1 kbit/s to 100 Tbit/s".to_owned());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1e3 and 1e14"
        )]
        Ok(Self(rate as u64))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_of_links() {
        for (text, rate) in [
            ("100Gbps", 100_000_000_000),
            ("25G", 25_000_000_000),
            ("2.5 Gbit/s", 2_500_000_000),
            ("400Gb/s", 400_000_000_000),
            ("40g", 40_000_000_000),
            (" 1T ", 1_000_000_000_000),
            ("10kbps", 10_000),
        ] {
            assert_eq!(Rate::parse(text), Ok(Rate(rate)), "{text}");
        }
    }

    #[test]
    fn what_is_none() {
        for wrong in [
            "",
            "100",
            "G",
            "-1G",
            "1..2G",
            "100GBps",
            "100GB/s",
            "10 parsec",
            "1e9G",
            "0G",
            "999T",
            "100Gibps",
        ] {
            assert!(Rate::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Rate::parse("100GB/s").unwrap_err().contains("in bytes"));
    }
}
