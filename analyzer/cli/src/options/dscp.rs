//! Map of DSCPs to priorities, as an argument.

use std::fmt;

use roce_model::PRIORITY_OF_DSCP;

/// The priority, 0 to 7, of each DSCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DscpMap(pub(crate) [u8; 64]);

impl Default for DscpMap {
    /// DSCP >> 3.
    fn default() -> Self {
        Self(PRIORITY_OF_DSCP)
    }
}

impl DscpMap {
    /// Parses `26=3,48=6` or `24-31=3,48=6`: what is not named keeps DSCP >> 3; the last of several wins.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut map = Self::default();
        for part in text.split(',') {
            let part = part.trim();
            let wrong = || format!("'{part}' is not a DSCP and its priority such as 26=3 or 24-31=3");
            let (dscps, priority) = part.split_once('=').ok_or_else(wrong)?;
            let (first, last) = dscps.split_once('-').unwrap_or((dscps, dscps));
            let number = |text: &str| text.trim().parse::<u8>().map_err(|_| wrong());
            let (first, last, priority) = (number(first)?, number(last)?, number(priority)?);
            if last > 63 || first > last {
                return Err(format!("'{part}': DSCPs are 0 to 63, the lower one first"));
            }
            if priority > 7 {
                return Err(format!("'{part}': priorities are 0 to 7"));
            }
            for named in map
                .0
                .iter_mut()
                .take(usize::from(last) + 1)
                .skip(usize::from(first))
            {
                *named = priority;
            }
        }
        Ok(map)
    }
}

impl fmt::Display for DscpMap {
    /// Entries that differ from DSCP >> 3, in a form that parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default().0;
        let differing = (0..)
            .zip(self.0)
            .zip(default)
            .filter(|((_, own), usual)| own != usual);
        for (place, ((dscp, priority), _)) in differing.enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{dscp}={priority}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_of_dscps() {
        let map = DscpMap::parse("24-31=5, 26=3,48=6").unwrap();
        assert_eq!((map.0[24], map.0[26], map.0[31], map.0[48]), (5, 3, 5, 6));
        // Not named: 8 >> 3 = 1, 46 >> 3 = 5, 63 >> 3 = 7.
        assert_eq!((map.0[8], map.0[46], map.0[63]), (1, 5, 7));
        assert_eq!(DscpMap::parse(&map.to_string()), Ok(map));
        assert_eq!(DscpMap::default().to_string(), "");
    }

    #[test]
    fn what_is_none() {
        for wrong in ["", "26", "26=8", "64=1", "31-24=3", "a=3", "26=3,", "26=3=4"] {
            assert!(DscpMap::parse(wrong).is_err(), "{wrong}");
        }
    }
}
