//! SONiC.

use crate::device::{Answers, Question, Reading};

/// Commands.
pub(super) fn questions(_known: &Answers) -> Vec<Question> {
    Vec::new()
}

/// Adds what the answers say.
pub(super) fn read(_answers: &Answers, _reading: &mut Reading) {}
