//! Names and hashes in documents.

/// Longest name that is kept.
const MAX_NAME_CHARS: usize = 128;

/// A name of a document as it is kept: without what steers a terminal, and not too long.
pub(super) fn name(text: &str) -> String {
    roce_model::text::clean(text)
        .chars()
        .take(MAX_NAME_CHARS)
        .collect()
}

/// A hash of a communicator: `0x7f8c496ae9f661`, or without the prefix.
pub(super) fn hash(text: &str) -> Option<u64> {
    let digits = text.trim().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).ok()
}
