//! The capabilities that the probe needs, and the text about those that are missing.

use std::fmt;

use rustix::thread::CapabilitySet;

/// Needed capabilities, with their names and purposes.
const NEEDED: [(CapabilitySet, &str, &str); 4] = [
    (CapabilitySet::NET_RAW, "cap_net_raw", "capturing packets"),
    (CapabilitySet::BPF, "cap_bpf", "loading the kernel programs"),
    (
        CapabilitySet::PERFMON,
        "cap_perfmon",
        "reading the kernel's structures and attaching probes",
    ),
    (
        CapabilitySet::NET_ADMIN,
        "cap_net_admin",
        "attaching the classifier to interfaces",
    ),
];

/// The capabilities that this process lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingCapabilities {
    names: Vec<(&'static str, &'static str)>,
    program: String,
}

impl MissingCapabilities {
    pub(crate) fn from_set(effective: CapabilitySet, program: &str) -> Option<Self> {
        let names: Vec<_> = NEEDED
            .iter()
            .filter(|(capability, ..)| !effective.contains(*capability))
            .map(|(_, name, what)| (*name, *what))
            .collect();
        (!names.is_empty()).then(|| Self {
            names,
            program: program.to_owned(),
        })
    }

    /// Their names, as `setcap` writes them.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().map(|(name, _)| *name)
    }
}

impl fmt::Display for MissingCapabilities {
    /// Missing capabilities, their purposes, and the line that grants them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this process lacks capabilities: ")?;
        for (index, (name, what)) in self.names.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{name} ({what})")?;
        }
        let all: Vec<&str> = NEEDED.iter().map(|(_, name, _)| *name).collect();
        write!(
            f,
            "\nhint: run as root, or grant it once with `sudo setcap {}+ep {}`",
            all.join(","),
            self.program
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_missing_is_named_with_the_way_to_grant_it() {
        let most = CapabilitySet::NET_RAW | CapabilitySet::BPF | CapabilitySet::NET_ADMIN;
        let missing = MissingCapabilities::from_set(most, "/usr/bin/x").unwrap();
        assert_eq!(missing.names().collect::<Vec<_>>(), ["cap_perfmon"]);
        let text = missing.to_string();
        assert!(
            text.contains("lacks capabilities: cap_perfmon (reading"),
            "{text}"
        );
        assert!(
            text.ends_with("`sudo setcap cap_net_raw,cap_bpf,cap_perfmon,cap_net_admin+ep /usr/bin/x`"),
            "{text}"
        );
        assert_eq!(
            MissingCapabilities::from_set(most | CapabilitySet::PERFMON, "x"),
            None
        );
    }
}
