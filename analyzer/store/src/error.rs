//! Everything that can go wrong with an object, with its URL, the offset where there is one, and no secret.

use std::io;

use crate::redact;

/// Why an object cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL is none of an object.
    #[error("{url}: {reason}")]
    Url {
        /// The URL, without its query.
        url: String,
        /// Reason why it is refused.
        reason: &'static str,
    },
    /// The environment does not say how the store is reached.
    #[error(
        "{url}: the store cannot be reached with this environment: {reason}\nhint: docs/continuous.md lists the variables of credentials and regions"
    )]
    Settings {
        /// The URL.
        url: String,
        /// Cause, from the crate.
        reason: String,
    },
    /// There is no such object or bucket.
    #[error("{url}: no such object")]
    Missing {
        /// The URL.
        url: String,
    },
    /// The store refuses.
    #[error(
        "{url}: access is refused: {reason}\nhint: docs/continuous.md lists the rights and the variables of credentials"
    )]
    Refused {
        /// The URL.
        url: String,
        /// Cause, from the store.
        reason: String,
    },
    /// The object was replaced while it was read.
    #[error("{url}: replaced at byte {offset} while it was read")]
    Replaced {
        /// The URL.
        url: String,
        /// Bytes read before.
        offset: u64,
    },
    /// Reading failed, also after several attempts.
    #[error("{url}: cannot be read at byte {offset}: {reason}")]
    Read {
        /// The URL.
        url: String,
        /// Bytes read before.
        offset: u64,
        /// Cause, from the store.
        reason: String,
    },
    /// Writing failed. Nothing of the object is visible.
    #[error("{url}: cannot be written: {reason}")]
    Write {
        /// The URL.
        url: String,
        /// Cause, from the store.
        reason: String,
    },
    /// The file that is to become an object cannot be read, or has another length than it had.
    #[error("{url}: its file cannot be read")]
    File {
        /// The URL.
        url: String,
        /// Cause, from the system.
        source: io::Error,
    },
    /// The system gives no threads for connections.
    #[error("no threads for connections to stores")]
    Threads {
        /// Cause, from the system.
        source: io::Error,
    },
}

impl Error {
    /// True if another attempt can succeed without anybody changing anything.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write { .. })
    }

    /// The error of a read that had `offset` bytes.
    pub(crate) fn reading(url: String, offset: u64, error: &object_store::Error) -> Self {
        match error {
            object_store::Error::Precondition { .. } => Self::Replaced { url, offset },
            _ => Self::common(url, error).unwrap_or_else(|url| Self::Read {
                url,
                offset,
                reason: redact::text_of(error),
            }),
        }
    }

    /// The error of a write.
    pub(crate) fn writing(url: String, error: &object_store::Error) -> Self {
        Self::common(url, error).unwrap_or_else(|url| Self::Write {
            url,
            reason: redact::text_of(error),
        })
    }

    fn common(url: String, error: &object_store::Error) -> Result<Self, String> {
        use object_store::Error as Cause;
        match error {
            Cause::NotFound { .. } => Ok(Self::Missing { url }),
            Cause::PermissionDenied { .. } | Cause::Unauthenticated { .. } => Ok(Self::Refused {
                url,
                reason: redact::text_of(error),
            }),
            Cause::InvalidPath { .. } | Cause::NotSupported { .. } => Ok(Self::Settings {
                url,
                reason: redact::text_of(error),
            }),
            _ => Err(url),
        }
    }
}
