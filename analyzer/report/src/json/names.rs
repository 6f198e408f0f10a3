//! The version of the document, and the names of its values that are written and read back.

use roce_model::CutLimit;

/// Rises when a key changes its meaning; a new key does not raise it, nor does one that was null and has a value now.
pub const SCHEMA_VERSION: u32 = 2;

/// Name of the reason why the bytes of a frame ended too early.
pub(super) fn cut_name(cut: CutLimit) -> &'static str {
    match cut {
        CutLimit::Snaplen => "snaplen",
        CutLimit::Length(_) => "length",
        CutLimit::Frame => "frame",
        CutLimit::Depth => "depth",
    }
}

/// The layer whose length ended them.
pub(super) fn cut_by(cut: CutLimit) -> Option<String> {
    match cut {
        CutLimit::Length(layer) => Some(layer.to_string()),
        CutLimit::Snaplen | CutLimit::Frame | CutLimit::Depth => None,
    }
}
