//! Tracks and slices, of which a trace consists, and texts that are fit to be shown.

use roce_model::text::clean;
use roce_model::{Evidence, Time};

/// Characters of a name or a text in a trace.
const MAX_TEXT: usize = 512;

/// A line of the trace, or a process: a group of lines.
#[derive(Clone, Debug)]
pub(super) struct Track {
    /// Its number, by which events name it.
    pub(super) number: u64,
    /// Its process.
    pub(super) pid: u32,
    /// Its name, after that of the track that it belongs to. Empty for a process.
    pub(super) name: String,
}

/// A slice of time on a track, or an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice<'a> {
    pub(super) start: Time,
    /// Absent: an instant.
    pub(super) end: Option<Time>,
    pub(super) name: &'a str,
    pub(super) category: &'static str,
    pub(super) facts: &'a Evidence,
    /// Arrows that begin here.
    pub(super) out: &'a [u64],
    /// Arrows that end here.
    pub(super) into: &'a [u64],
}

/// A text from outside as a trace shows it: nothing in it steers a viewer, and it is not too long.
pub(super) fn bounded(text: &str) -> String {
    let text = clean(text);
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}
