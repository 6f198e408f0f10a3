//! Errors of writing a report, and of reading one back.

/// Why a report could not be written or read. Where it was going or came from is known to who made it, and said there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text could not be written.
    #[error("cannot write the text report")]
    Text(#[source] std::io::Error),
    /// The JSON document could not be written.
    #[error("cannot write the JSON document")]
    Json(#[source] std::io::Error),
    /// The page could not be written.
    #[error("cannot write the HTML page")]
    Html(#[source] std::io::Error),
    /// The trace could not be written.
    #[error("cannot write the trace")]
    Trace(#[source] std::io::Error),
    /// The input is no JSON document of a run.
    #[error("not the JSON document of a run")]
    NoDocument(#[source] serde_json::Error),
    /// The document is of another version of the schema, in which keys may mean something else.
    #[error(
        "results of schema version {version} cannot be read, only of {}; hint: analyse the capture again",
        crate::json::SCHEMA_VERSION
    )]
    Schema {
        /// Its version.
        version: u64,
    },
    /// A key is missing, or holds something else than in this version.
    #[error("{key} is missing, or differs from this version's; hint: analyse the capture again")]
    Key {
        /// The key, with the keys above it.
        key: String,
    },
}

impl Error {
    pub(crate) fn key(key: &str) -> Self {
        Self::Key { key: key.to_owned() }
    }
}
