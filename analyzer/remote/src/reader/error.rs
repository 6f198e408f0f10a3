//! Mistakes of an inventory or of this host, by which a device cannot be read at all.

/// Why a device cannot be read at all: a mistake of the inventory or of this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// The transport `files` without a folder.
    #[error("transport \"files\" needs files = \"DIR\"")]
    NoFolder,
    /// NX-API cannot be used as the inventory has it.
    #[error("NX-API: {0}")]
    Nxapi(String),
    /// Metrics cannot be pushed as the options have it.
    #[error("--push: {0}")]
    Push(String),
}
