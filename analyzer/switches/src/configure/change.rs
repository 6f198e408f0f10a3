//! A change that a configuration needs.

use std::collections::HashSet;

use super::step::Step;

/// One difference, and the smallest change that mends it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    /// The name of the check: those of a switch are its findings, those of a host are doctor's.
    pub id: &'static str,
    /// Description of the setting.
    pub text: String,
    /// The change.
    pub step: Step,
}

impl Change {
    /// A change of these lines.
    pub(super) fn new(id: &'static str, text: impl Into<String>, lines: &[&str]) -> Self {
        Self {
            id,
            text: text.into(),
            step: Step {
                comments: Vec::new(),
                commands: lines.iter().map(ToString::to_string).collect(),
            },
        }
    }

    /// Adds a line of comment.
    pub(super) fn comment(mut self, line: &str) -> Self {
        self.step.comments.push(line.to_owned());
        self
    }
}

/// Changes, each once: several interfaces can share a policy.
#[derive(Default)]
pub(super) struct Changes {
    all: Vec<Change>,
    known: HashSet<Change>,
}

impl Changes {
    /// Adds a change, unless it is known.
    pub(super) fn add(&mut self, change: Change) {
        if self.known.insert(change.clone()) {
            self.all.push(change);
        }
    }

    /// All of them, in their order.
    pub(super) fn into_vec(self) -> Vec<Change> {
        self.all
    }
}
