//! Rules about counters: what grew between two readings, and how the growths of several counters relate.
//!
//! `host counters`, `doctor` and `fabric counters` judge by this one table; the alerts of `metrics` say the same in Prometheus' language.
//! A total of one reading has an unknown start: it is a note at most. A counter that was reset has no growth.
//! How findings are shown and which readings are compared is left to others.

mod growth;
mod losses;
mod notices;
mod pauses;
mod ports;
mod sign;
mod twins;

use roce_model::{Evidence, Severity};

pub use growth::{CounterReading, Growths, LinkFacts};
pub use sign::{CounterRule, CounterRun};

/// A finding about counters.
#[derive(Clone, PartialEq, Debug)]
pub struct CounterFinding {
    /// The rule's name.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The port, interface or adapter; empty: the whole device.
    pub object: String,
    /// The finding in words, with its price.
    pub text: String,
    /// The numbers that it was concluded from.
    pub evidence: Evidence,
    /// The next thing to look at or to change.
    pub next: &'static str,
    /// How sure it is: `certain` or `likely`.
    pub confidence: &'static str,
}

/// All rules, in the order in which they are shown.
pub fn rules() -> impl Iterator<Item = &'static CounterRule> {
    [
        pauses::RULES,
        notices::RULES,
        losses::RULES,
        ports::RULES,
        twins::RULES,
    ]
    .into_iter()
    .flatten()
}

/// Findings of all rules, in the order of the table.
pub fn judge(growths: &Growths<'_>) -> Vec<CounterFinding> {
    let found = rules().map(|rule| (rule, (rule.run.judge)(growths)));
    found
        .flat_map(|(rule, signs)| {
            signs.into_iter().map(|sign| CounterFinding {
                id: rule.id,
                severity: sign.severity,
                object: sign.object,
                text: sign.text,
                evidence: sign.evidence,
                next: rule.next,
                confidence: rule.confidence,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
