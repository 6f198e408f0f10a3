//! A change that a configuration needs.

use std::collections::HashSet;

use super::step::Step;

/// Names of changes that are no findings, with their meaning.
pub const CHANGE_MEANINGS: &[(&str, &str)] = &[
    (
        "switch.ecn_threshold",
        "`--set` has other thresholds of ECN than the configuration.",
    ),
    (
        "switch.mtu",
        "The MTU of an interface is smaller than the cluster's: longer packets are dropped there.",
    ),
    (
        "switch.not_lossless",
        "The group or priority of RoCE data is not lossless: it is dropped where PFC has to pause the sender.",
    ),
    (
        "switch.pfc_off",
        "PFC is off at an interface: it pauses nobody, and its neighbour does not listen.",
    ),
];

/// True of a name that `explain` knows.
fn is_explained(id: &str) -> bool {
    let findings = crate::findings::rules().map(|rule| rule.id);
    let checks = roce_hosts::doctor::checks().map(|check| check.id);
    let changes = CHANGE_MEANINGS.iter().map(|(name, _)| *name);
    findings.chain(checks).chain(changes).any(|name| name == id)
}

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
        debug_assert!(is_explained(id), "{id} has no meaning");
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
