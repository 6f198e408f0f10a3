//! Classes of traffic: the usual priority of each DSCP, and what the owners of a network expect of its RoCE traffic.

use core::fmt;

/// The priority that adapters and switches give a DSCP unless configured otherwise: its upper three bits (the class selectors of RFC 2474,
/// 4.2.2).
pub const PRIORITY_OF_DSCP: [u8; 64] = {
    let mut priorities = [0; 64];
    let mut dscp = 0u8;
    while dscp < 64 {
        priorities[dscp as usize] = dscp >> 3;
        dscp += 1;
    }
    priorities
};

/// Path MTUs that a queue pair can have, in bytes (enum `ib_mtu` in Linux include/rdma/ib_verbs.h).
pub const PATH_MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

/// Classes and path MTU that RoCE traffic is expected to have. What is `None` is not stated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expectation {
    /// DSCP of data, 0 to 63.
    pub dscp: Option<u8>,
    /// Priority of data, 0 to 7: of its VLAN tag, else of its DSCP.
    pub priority: Option<u8>,
    /// Path MTU, in bytes: one of [`PATH_MTUS`].
    pub mtu: Option<u32>,
    /// DSCP of CNPs, 0 to 63.
    pub cnp_dscp: Option<u8>,
    /// Priority of CNPs, 0 to 7, as that of data.
    pub cnp_priority: Option<u8>,
}

impl Expectation {
    /// Names of what can be expected, as options and inventories have them.
    pub const KEYS: [&str; 5] = ["dscp", "priority", "mtu", "cnp-dscp", "cnp-priority"];

    /// True if nothing is expected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// States a value by the name of its key; the last of several wins.
    ///
    /// # Errors
    /// A sentence, if there is no such key, or if the key cannot have this value.
    pub fn state(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = |most: u8| match value.parse::<u8>() {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => Err(format!("{key} {value} is not from 0 to {most}")),
        };
        match key.replace('_', "-").as_str() {
            "dscp" => self.dscp = number(63)?,
            "priority" => self.priority = number(7)?,
            "cnp-dscp" => self.cnp_dscp = number(63)?,
            "cnp-priority" => self.cnp_priority = number(7)?,
            "mtu" => self.mtu = Some(path_mtu(value)?),
            _ => return Err(format!("'{key}' is none of {}", Self::KEYS.join(", "))),
        }
        Ok(())
    }

    /// This expectation; what it does not state is that of `base`.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        Self {
            dscp: self.dscp.or(base.dscp),
            priority: self.priority.or(base.priority),
            mtu: self.mtu.or(base.mtu),
            cnp_dscp: self.cnp_dscp.or(base.cnp_dscp),
            cnp_priority: self.cnp_priority.or(base.cnp_priority),
        }
    }
}

impl fmt::Display for Expectation {
    /// What is expected, in the form of the option: `dscp=26,priority=3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = [
            self.dscp.map(u32::from),
            self.priority.map(u32::from),
            self.mtu,
            self.cnp_dscp.map(u32::from),
            self.cnp_priority.map(u32::from),
        ];
        let stated = Self::KEYS.iter().zip(values);
        let mut comma = "";
        for (key, value) in stated.filter_map(|(key, value)| value.map(|value| (key, value))) {
            write!(f, "{comma}{key}={value}")?;
            comma = ",";
        }
        Ok(())
    }
}

/// Headers between the IP packet and the payload that an adapter leaves room for, in bytes: IPv6 40, UDP 8, BTH 12, RETH 16, immediate 4,
/// ICRC 4.
const HEADERS: u32 = 84;

fn path_mtu(text: &str) -> Result<u32, String> {
    let all = "256, 512, 1024, 2048 or 4096";
    let number: u32 = text
        .parse()
        .map_err(|_| format!("mtu {text} is not a path MTU: {all}"))?;
    if PATH_MTUS.contains(&number) {
        return Ok(number);
    }
    let fits = PATH_MTUS
        .iter()
        .rfind(|mtu| number.saturating_sub(HEADERS) >= **mtu);
    let hint = fits.map_or_else(String::new, |mtu| {
        format!("; an interface with an MTU of {number} allows {mtu}")
    });
    Err(format!("mtu {number} is not a path MTU: {all}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(all: &[(&str, &str)]) -> Result<Expectation, String> {
        let mut expectation = Expectation::default();
        for (key, value) in all {
            expectation.state(key, value)?;
        }
        Ok(expectation)
    }

    #[test]
    fn what_is_expected() {
        let all = [
            ("cnp_dscp", "48"),
            ("dscp", "26"),
            ("mtu", "4096"),
            ("cnp-priority", "6"),
        ];
        let one = stated(&all).unwrap();
        assert_eq!(one.to_string(), "dscp=26,mtu=4096,cnp-dscp=48,cnp-priority=6");
        let two = stated(&[("dscp", "24"), ("priority", "3")]).unwrap();
        assert_eq!(
            two.over(one).to_string(),
            "dscp=24,priority=3,mtu=4096,cnp-dscp=48,cnp-priority=6"
        );
        assert!(Expectation::default().is_empty() && !two.is_empty());
    }

    #[test]
    fn what_cannot_be_expected() {
        let wrong = |key, value| stated(&[(key, value)]).unwrap_err();
        assert_eq!(wrong("dscp", "64"), "dscp 64 is not from 0 to 63");
        assert_eq!(wrong("priority", "low"), "priority low is not from 0 to 7");
        assert_eq!(
            wrong("tc", "106"),
            "'tc' is none of dscp, priority, mtu, cnp-dscp, cnp-priority"
        );
        // 9000 - 84 = 8916 holds 4096, 1500 - 84 = 1416 holds 1024.
        assert_eq!(
            wrong("mtu", "9000"),
            "mtu 9000 is not a path MTU: 256, 512, 1024, 2048 or 4096; an interface with an MTU of 9000 allows 4096"
        );
        assert!(wrong("mtu", "1500").ends_with("an interface with an MTU of 1500 allows 1024"));
        assert_eq!(
            wrong("mtu", "100"),
            "mtu 100 is not a path MTU: 256, 512, 1024, 2048 or 4096"
        );
    }

    #[test]
    fn the_usual_priorities() {
        // 26 = 0b011_010, 48 = 0b110_000.
        assert_eq!(
            (PRIORITY_OF_DSCP[26], PRIORITY_OF_DSCP[48], PRIORITY_OF_DSCP[63]),
            (3, 6, 7)
        );
    }
}
