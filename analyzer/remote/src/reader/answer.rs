//! The outcome of a question, and its bounds.

use roce_switches::device::Reason;

/// Bytes of one answer: a thousand ports with 4 KB each are a quarter of it.
pub(crate) const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// A question without an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnansweredQuestion {
    /// Why.
    pub(crate) reason: Reason,
    /// The device's or the system's words for it, in one line.
    pub(crate) text: String,
    /// The device's whole text, where it gave one.
    pub(crate) answer: Option<String>,
}

impl UnansweredQuestion {
    pub(crate) fn new(reason: Reason, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            reason,
            text,
            answer: None,
        }
    }

    /// An answer that is longer than allowed.
    pub(crate) fn too_long() -> Self {
        let text = format!("the answer has more than {} MiB", MAX_ANSWER_BYTES >> 20);
        Self::new(Reason::Parse, text)
    }
}

/// The answer to a question, or why there is none.
pub(crate) type Outcome = Result<String, UnansweredQuestion>;
