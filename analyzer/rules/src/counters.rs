//! Rules about counters: what grew between two readings, and how the growths of several counters relate.
//!
//! `host counters`, `doctor` and `fabric counters` judge by this one table; the alerts of `metrics` say the same in Prometheus' language.
//! A total of one reading has an unknown start: it is a note at most. A counter that was reset has no growth.
//! How findings are shown and which readings are compared is left to others.

mod failures;
mod growth;
mod links;
mod losses;
mod notices;
mod pauses;
mod ports;
mod restart;
mod restarted;
mod sign;
mod twins;

use roce_model::{Counter, Evidence, Fact, Severity};
use roce_spelling::decimal;

pub use growth::{CounterReading, Growths, LinkFacts};
pub use notices::{IGNORED_SHARE, MIN_IGNORED};
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

impl CounterFinding {
    /// The numbers in words: `paused seconds 2.17, frames 300`.
    pub fn evidence_words(&self) -> String {
        let facts = self.evidence.0.iter().map(|(name, fact)| {
            let value = match fact {
                Fact::Count(count) => roce_spelling::count(*count),
                Fact::Number(number) => decimal(*number),
                Fact::Text(text) => text.clone(),
            };
            format!("{} {value}", name.replace('_', " "))
        });
        facts.collect::<Vec<_>>().join(", ")
    }
}

/// All rules, in the order in which they are shown.
pub fn rules() -> impl Iterator<Item = &'static CounterRule> {
    [
        restarted::RULES,
        pauses::RULES,
        notices::RULES,
        losses::RULES,
        ports::RULES,
        links::RULES,
        failures::RULES,
        twins::RULES,
    ]
    .into_iter()
    .flatten()
}

/// Findings of all rules, in the order of the table. Growths since a restart are totals of a life: they give notes alone.
pub fn judge(growths: &Growths<'_>) -> Vec<CounterFinding> {
    let found = rules().map(|rule| (rule, (rule.run.judge)(growths)));
    found
        .flat_map(|(rule, signs)| {
            signs.into_iter().map(|sign| CounterFinding {
                id: rule.id,
                severity: if growths.is_since_restart() {
                    sign.severity.min(Severity::Info)
                } else {
                    sign.severity
                },
                object: sign.object,
                text: sign.text,
                evidence: sign.evidence,
                next: rule.next,
                confidence: rule.confidence,
            })
        })
        .collect()
}

/// Rules about pauses and what ends them.
const OF_PAUSES: [&str; 4] = [
    "counters.paused",
    "counters.pausing",
    "counters.watchdog",
    "counters.pause_storm",
];

/// True of counters that the rules about pauses need.
pub fn is_of_pauses(counter: Counter) -> bool {
    pauses::is_needed(counter)
        || matches!(
            counter,
            Counter::SwitchUptime
                | Counter::SwitchInterfaceRate
                | Counter::HypervisorNicRate
                | Counter::SwitchWatchdogShutdowns
                | Counter::SwitchWatchdogRestores
                | Counter::SwitchWatchdogDroppedPackets
                | Counter::PauseStormEvents
        )
}

/// Findings about pauses that state their price: a share of time, a watchdog that fired, a storm. A note that frames came is left out.
pub fn judge_pauses(growths: &Growths<'_>) -> Vec<CounterFinding> {
    let mut all = judge(growths);
    all.retain(|found| {
        let is_time = |(name, fact): &(&str, Fact)| *name == "paused_seconds" && *fact != Fact::Number(0.0);
        let is_event = found.id == "counters.watchdog" || found.id == "counters.pause_storm";
        let has_price = is_event || found.severity > Severity::Info || found.evidence.0.iter().any(is_time);
        OF_PAUSES.contains(&found.id) && has_price
    });
    all
}

#[cfg(test)]
mod tests;
