//! The classifier on interfaces. Where the kernel has them (TCX, from Linux 6.6 on), links attach it and
//! die with the process. Elsewhere named filters do, so that one that a killed process left can be found
//! and removed.

use std::io;
use std::path::Path;

use aya::Ebpf;
use aya::programs::links::LinkOrder;
use aya::programs::tc::{NlOptions, TcAttachOptions, TcError};
use aya::programs::{ProgramError, SchedClassifier, TcAttachType, tc};
use aya::util::KernelVersion;

use crate::ProbeError;
use crate::clsact::Clsact;

/// The programs, which are also the filters' names, and where they go.
const CLASSIFIERS: [(&str, TcAttachType); 2] = [
    ("roce_ingress", TcAttachType::Ingress),
    ("roce_egress", TcAttachType::Egress),
];

/// True if the kernel has links for classifiers.
pub(crate) fn has_links() -> bool {
    KernelVersion::current().is_ok_and(|running| running >= KernelVersion::new(6, 6, 0))
}

/// Loads the two programs.
pub(crate) fn load(ebpf: &mut Ebpf) -> Result<(), ProbeError> {
    for (name, _) in CLASSIFIERS {
        let refused = |source: ProgramError| ProbeError::Program {
            name,
            source: Box::new(source),
        };
        program(ebpf, name)?.load().map_err(refused)?;
    }
    Ok(())
}

/// Attaches both to an interface. What has to be undone by hand at the end is returned.
pub(crate) fn attach(ebpf: &mut Ebpf, interface: &str, links: bool) -> Result<Option<Clsact>, ProbeError> {
    let refused = |source: ProgramError| ProbeError::Interface {
        interface: interface.to_owned(),
        source: Box::new(source),
    };
    let made = if links {
        None
    } else {
        // Filters left by a killed process would count every packet a second time.
        remove_filters(interface)?;
        Clsact::make(interface)?
    };
    for (name, direction) in CLASSIFIERS {
        let options = if links {
            TcAttachOptions::TcxOrder(LinkOrder::default())
        } else {
            TcAttachOptions::Netlink(NlOptions::default())
        };
        let attached = program(ebpf, name)?.attach_with_options(interface, direction, options);
        attached.map_err(refused)?;
    }
    Ok(made)
}

/// One of the classifiers.
pub(crate) fn program<'a>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut SchedClassifier, ProbeError> {
    let program = ebpf.program_mut(name).ok_or(ProbeError::Object { name })?;
    program
        .try_into()
        .map_err(|source: ProgramError| ProbeError::Program {
            name,
            source: Box::new(source),
        })
}

/// Filters that [`cleanup`] found and removed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CleanedInterfaces {
    /// Interfaces from which filters were removed.
    pub interfaces: Vec<String>,
}

/// Removes filters that a killed process left on any interface of this network namespace; also those of one that still runs: the
/// kernel does not say whose they are. Links need no such care: they die with their process. An empty clsact qdisc stays: who
/// made it is not known any more.
///
/// # Errors
/// The interfaces cannot be listed, or a filter that was found cannot be removed (CAP_NET_ADMIN).
pub fn cleanup() -> Result<CleanedInterfaces, ProbeError> {
    let folder = Path::new("/sys/class/net");
    let failed = |source: io::Error| ProbeError::File {
        path: folder.to_owned(),
        source,
    };
    let mut cleaned = CleanedInterfaces::default();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let Ok(interface) = entry.map_err(failed)?.file_name().into_string() else {
            continue;
        };
        if remove_filters(&interface)? {
            cleaned.interfaces.push(interface);
        }
    }
    Ok(cleaned)
}

/// Removes the filters of an interface, whichever process attached them; true if there were any.
///
/// # Errors
/// One that was found cannot be removed (CAP_NET_ADMIN).
pub fn remove_filters(interface: &str) -> Result<bool, ProbeError> {
    let mut found = false;
    for (name, direction) in CLASSIFIERS {
        match tc::qdisc_detach_program(interface, direction, name) {
            Ok(()) => found = true,
            Err(error) if nothing_there(&error) => {}
            Err(error) => {
                return Err(ProbeError::Interface {
                    interface: interface.to_owned(),
                    source: Box::new(error.into()),
                });
            }
        }
    }
    Ok(found)
}

/// No filter of that name, no qdisc that could have one, or an interface that has gone meanwhile.
fn nothing_there(error: &TcError) -> bool {
    match error {
        TcError::IoError(error) => {
            matches!(error.kind(), io::ErrorKind::NotFound) || error.raw_os_error() == Some(19)
        }
        TcError::NetlinkError(error) => {
            let code = error.raw_os_error();
            // EINVAL: there is no qdisc; ENOENT, ENODEV.
            matches!(code, Some(22 | 2 | 19))
        }
        _ => false,
    }
}
