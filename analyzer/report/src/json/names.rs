//! The version of the document, and the names of its values that are written and read back.

use roce_model::Cut;

/// Rises when a key changes its meaning; a new key does not raise it, nor does one that was null and has a value now.
pub const SCHEMA_VERSION: u32 = 2;

/// Name of the reason why the bytes of a frame ended too early.
pub(super) fn cut_name(cut: Cut) -> &'static str {
    match cut {
        Cut::Snaplen => "snaplen",
        Cut::Length(_) => "length",
        Cut::Frame => "frame",
        Cut::Depth => "depth",
    }
}

/// The layer whose length ended them.
pub(super) fn cut_by(cut: Cut) -> Option<String> {
    match cut {
        Cut::Length(layer) => Some(layer.to_string()),
        Cut::Snaplen | Cut::Frame | Cut::Depth => None,
    }
}
