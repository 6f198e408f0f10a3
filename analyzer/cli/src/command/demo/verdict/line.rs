//! One line of the last table: a fact, what is true, and what the analysis says.

use roce_spelling::count;

/// True if the analysis says what happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Agreement {
    /// It does.
    Same,
    /// It says what the taps can show of it.
    AsSeen,
    /// It does not.
    Differs,
}

/// One line: what it is about, what is true, what the analysis says, and whether that is the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VerdictLine {
    pub(crate) about: String,
    pub(crate) truth: String,
    pub(crate) verdict: String,
    pub(crate) agreement: Agreement,
}

impl Agreement {
    pub(super) fn from_bool(agrees: bool) -> Self {
        if agrees { Self::Same } else { Self::Differs }
    }

    /// Agreement in full, or as far as can be seen.
    pub(super) fn as_seen(same: bool, agrees: bool) -> Self {
        match (same, agrees) {
            (true, _) => Self::Same,
            (false, true) => Self::AsSeen,
            (false, false) => Self::Differs,
        }
    }
}

/// A line with two counts.
pub(super) fn line(about: &str, truth: u64, verdict: u64) -> Option<VerdictLine> {
    (truth > 0 || verdict > 0).then(|| VerdictLine {
        about: about.to_owned(),
        truth: count(truth),
        verdict: count(verdict),
        agreement: Agreement::from_bool(truth == verdict),
    })
}
