//! The type of every rule: of findings in captures, of findings about devices, and of checks of a host.
//!
//! A rule is data: its texts, its worst severity, and what judges by it. Tables of rules are beside what they judge; those about counters
//! are in [`counters`], because hosts, switches and alerts share them.

pub mod counters;

use roce_model::Severity;

/// Packets that a rule about captures needs. A capture without them does not show if the rule holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Needs {
    /// Any part of the packets: each one that is there is a sign, and shares are those of all, within their bounds.
    Any,
    /// The first and last packets of messages, all answers and all CNPs.
    Ends,
    /// Every packet: holes, order, repeats, silence or absence is the sign.
    Every,
}

/// One rule, with the texts that `explain` shows. A text that a rule does not need is empty.
///
/// `Run` is what judges by it; `()` where a tally of its own does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule<Run = ()> {
    /// Its id: `loss.network`, `pfc.enabled`, `switch.mmu_drops`.
    pub id: &'static str,
    /// The finding, or the question that a check answers, in a few words.
    pub title: &'static str,
    /// Its meaning when it fires: why it matters.
    pub meaning: &'static str,
    /// How it is computed: which values give which severity.
    pub method: &'static str,
    /// Where a host's values are read.
    pub read: &'static str,
    /// How the fault shows.
    pub symptom: &'static str,
    /// Other rules whose fault shows alike.
    pub alternatives: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// The names of its thresholds.
    pub thresholds: &'static [&'static str],
    /// The worst severity that it gives, as a rule.
    pub severity: Severity,
    /// When the severity is another one.
    pub otherwise: &'static str,
    /// The next thing to look at or to change. Empty where the evidence of each finding says it.
    pub next: &'static str,
    /// The evidence that earns each confidence.
    pub confidence: &'static str,
    /// Packets that it concludes from, which a thin capture may lack.
    pub needs: Needs,
    /// Function that judges by the rule.
    pub run: Run,
}

impl<Run> Rule<Run> {
    /// A rule without texts, for tables to begin with.
    pub const fn judged_by(run: Run) -> Self {
        Self {
            id: "",
            title: "",
            meaning: "",
            method: "",
            read: "",
            symptom: "",
            alternatives: "",
            source: "",
            thresholds: &[],
            severity: Severity::Info,
            otherwise: "",
            next: "",
            confidence: "",
            needs: Needs::Every,
            run,
        }
    }

    /// The rule without what judges by it.
    pub const fn texts(&self) -> Rule {
        Rule {
            id: self.id,
            title: self.title,
            meaning: self.meaning,
            method: self.method,
            read: self.read,
            symptom: self.symptom,
            alternatives: self.alternatives,
            source: self.source,
            thresholds: self.thresholds,
            severity: self.severity,
            otherwise: self.otherwise,
            next: self.next,
            confidence: self.confidence,
            needs: self.needs,
            run: (),
        }
    }
}

impl Rule {
    /// A rule without texts, which a tally of its own judges by.
    pub const TALLIED: Self = Self::judged_by(());
}
