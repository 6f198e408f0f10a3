//! Errors of requests.

/// A request that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OtlpError {
    /// Bytes that are no message of protobuf.
    #[error("byte {offset}: {expected} expected")]
    Protobuf {
        /// Place in the request.
        offset: usize,
        /// Words for the content that the format has there.
        expected: &'static str,
    },
    /// Text that is no JSON, or not of this form.
    #[error("{0}")]
    Json(String),
    /// A text with more objects than a request has.
    #[error("more than {limit} JSON objects")]
    TooManyObjects {
        /// The limit.
        limit: usize,
    },
}
