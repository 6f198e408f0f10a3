//! The rights that the probe needs, and how it gives them up.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::error::ProbeError;
use crate::missing_capabilities::MissingCapabilities;

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
