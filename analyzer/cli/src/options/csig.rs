//! EtherTypes of CSIG tags, as an argument.

use std::fmt;

/// EtherTypes below it are lengths (IEEE 802.3).
const MIN_TYPE: u16 = 0x0600;

/// The EtherTypes of compact and of wide tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CsigTypes {
    pub(crate) compact: u16,
    pub(crate) wide: Option<u16>,
}

impl CsigTypes {
    /// Parses `0x9900` or `0x9900,0x9901`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (compact, wide) = match text.split_once(',') {
            Some((compact, wide)) => (compact, Some(wide)),
            None => (text, None),
        };
        let types = Self {
            compact: ether_type(compact)?,
            wide: wide.map(ether_type).transpose()?,
        };
        if types.wide == Some(types.compact) {
            return Err("the two types are equal".to_owned());
        }
        Ok(types)
    }
}

/// An EtherType that no header has whose place it would take.
fn ether_type(text: &str) -> Result<u16, String> {
    const KNOWN: [u16; 7] = [0x0800, 0x86dd, 0x8100, 0x88a8, 0x8915, 0x8847, 0x8808];
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
    number
        .filter(|number| *number >= MIN_TYPE && !KNOWN.contains(number))
        .ok_or_else(|| format!("{text:?} is no EtherType for tags: expected one such as 0x9900"))
}

impl fmt::Display for CsigTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.compact)?;
        self.wide.map_or(Ok(()), |wide| write!(f, ",{wide:#06x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_written() {
        for text in ["0x9900", "0x9900,0x9a01"] {
            assert_eq!(CsigTypes::parse(text).unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "9900",
            "0x800",
            "0x0800",
            "0x5ff",
            "0x9900,",
            "0x9900,0x9900",
            "0x19900",
        ] {
            assert!(CsigTypes::parse(wrong).is_err(), "{wrong}");
        }
    }
}
