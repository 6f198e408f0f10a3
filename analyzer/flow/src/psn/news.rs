//! Decisions about a flow's packets, until the analysis takes them.

use crate::psn::run::EndedRun;
use crate::psn::seldom::Seldom;
use crate::psn::undecided::Decision;

/// Decisions and ended runs that were not reported yet.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct News {
    decisions: Seldom<Decision>,
    runs: Seldom<EndedRun>,
}

impl News {
    /// True if there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.decisions.is_empty()
    }

    pub(super) fn decided(&mut self, decision: Decision) {
        self.decisions.push(decision);
    }

    pub(super) fn ended(&mut self, run: EndedRun) {
        self.runs.push(run);
    }

    /// The latest decision.
    pub(super) fn take_decision(&mut self) -> Option<Decision> {
        self.decisions.pop()
    }

    /// The run that ended last.
    pub(super) fn take_run(&mut self) -> Option<EndedRun> {
        self.runs.pop()
    }
}
