//! Errors that keep the probe from working.

use std::io;
use std::path::PathBuf;

use crate::missing_capabilities::MissingCapabilities;

/// Why the probe could not be opened, or a source not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of /sys/kernel/btf is not what it should be.
    #[error("{} is not BTF", path.display())]
    Btf {
        /// The file.
        path: PathBuf,
    },
    /// The programs are built for other processors.
    #[error(
        "the probe has no kernel programs for {architecture}\nhint: `cargo xtask build-ebpf` on such a machine makes them"
    )]
    Architecture {
        /// This processor's architecture.
        architecture: &'static str,
    },
    /// Rights are missing.
    #[error("{0}")]
    Capabilities(MissingCapabilities),
    /// The kernel does not take the programs.
    #[error("the kernel does not load the probe's programs")]
    Load(#[source] Box<aya::EbpfError>),
    /// The object is not the one that this code belongs to.
    #[error("the probe's object has no {name}\nhint: `cargo xtask build-ebpf --check`")]
    Object {
        /// A map or program.
        name: &'static str,
    },
    /// The kernel does not take one program.
    #[error("the kernel does not load the program {name}")]
    Program {
        /// Name of the program.
        name: &'static str,
        /// Why.
        source: Box<aya::programs::ProgramError>,
    },
    /// A map does not work.
    #[error("cannot use the map {name}")]
    Map {
        /// Name of the map.
        name: &'static str,
        /// Why.
        source: aya::maps::MapError,
    },
    /// The classifier cannot be attached.
    #[error("cannot watch the interface {interface}")]
    Interface {
        /// Name of the interface.
        interface: String,
        /// Why.
        source: Box<aya::programs::ProgramError>,
    },
    /// A call of the system failed.
    #[error("cannot {what}")]
    System {
        /// The attempted action.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}
