//! The rights that the probe needs, and how it gives them up.

use std::fmt;
use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::ProbeError;

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
    /// Capabilities that this process lacks for capturing with the probe; `None` when it has all.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn find() -> Result<Option<Self>, ProbeError> {
        let sets = own()?;
        // CAP_SYS_ADMIN includes BPF and PERFMON, as in the kernel.
        let mut effective = sets.effective;
        if effective.contains(CapabilitySet::SYS_ADMIN) {
            effective |= CapabilitySet::BPF | CapabilitySet::PERFMON;
        }
        Ok(Self::from_set(effective, &program()))
    }

    fn from_set(effective: CapabilitySet, program: &str) -> Option<Self> {
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

/// Gives up what the calling thread does not need any more, for good. Threads have capabilities each for itself: those that
/// run already keep theirs, those started afterwards begin without.
///
/// `keep_net_admin`: filters are to be removed at the end.
pub(crate) fn drop_all(keep_net_admin: bool) -> Result<(), ProbeError> {
    let kept = if keep_net_admin {
        own()?.permitted & CapabilitySet::NET_ADMIN
    } else {
        CapabilitySet::empty()
    };
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(|source| ProbeError::System {
        what: "give up capabilities",
        source: source.into(),
    })
}

fn own() -> Result<CapabilitySets, ProbeError> {
    capabilities(None).map_err(|source: rustix::io::Errno| ProbeError::System {
        what: "ask for this process's capabilities",
        source: io::Error::from(source),
    })
}

fn program() -> String {
    std::env::current_exe().map_or_else(|_| "PROGRAM".to_owned(), |path| path.display().to_string())
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
