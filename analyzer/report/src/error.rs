//! What a report fails with.

/// Why a report could not be written. Where it was going is known to who made it, and said there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text could not be written.
    #[error("cannot write the text report")]
    Text(#[source] std::io::Error),
    /// The JSON document could not be written.
    #[error("cannot write the JSON document")]
    Json(#[source] std::io::Error),
}
