//! `--fail-on`: what makes a run exit with 1. One grammar for all commands: terms with commas between them, each the name of a finding, check or
//! severity, or a condition `QUANTITY<BOUND`, with one of the comparisons `<`, `<=`, `>` and `>=`.

#[cfg(feature = "live")]
use roce_hosts::doctor;
use roce_model::Severity;
#[cfg(feature = "live")]
use roce_rules::counters;
#[cfg(feature = "live")]
use roce_switches::findings;
use roce_verdict::RULES;

use crate::options::nearest::nearest;

/// The severities that a run can fail on, the worst last.
const SEVERITIES: [Severity; 3] = [Severity::Info, Severity::Warning, Severity::Critical];

/// A term of `--fail-on`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Term<'a> {
    /// A severity, a finding, a check.
    Name(&'a str),
    /// A value beyond a bound fails the run.
    Condition {
        /// The compared quantity.
        quantity: &'a str,
        /// `<`, `<=`, `>` or `>=`.
        comparison: &'static str,
        /// The bound, with its unit.
        bound: &'a str,
    },
}

/// Comparisons; the longer ones first.
const COMPARISONS: [&str; 4] = ["<=", ">=", "<", ">"];

/// The terms of a text.
pub(crate) fn terms(text: &str) -> impl Iterator<Item = Term<'_>> {
    text.split(',').map(str::trim).map(|term| {
        let condition = COMPARISONS.into_iter().find_map(|comparison| {
            let (quantity, bound) = term.split_once(comparison)?;
            Some(Term::Condition {
                quantity: quantity.trim(),
                comparison,
                bound: bound.trim(),
            })
        });
        condition.unwrap_or(Term::Name(term))
    })
}

/// The findings that fail a run: of a severity or worse, or by their id whatever their severity is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct FailOn {
    severity: Option<Severity>,
    ids: Vec<&'static str>,
    /// [`NO_ROCE`] was named.
    no_roce: bool,
}

/// Names a run that had no RoCE packet to judge.
const NO_ROCE: &str = "no-roce";

/// Rules whose ids `--fail-on` may name, and the end of the sentence about a name that is none of them.
struct NamedRules {
    ids: Vec<&'static str>,
    no_roce: bool,
    noun: &'static str,
    hint: &'static str,
}

impl FailOn {
    /// Parses `warning`, `loss.network`, or several of them with commas, for findings in captures.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::among(
            text,
            &NamedRules {
                ids: RULES.iter().map(|rule| rule.id).collect(),
                no_roce: true,
                noun: "no-roce nor a finding",
                hint: " `explain list` has all findings",
            },
        )
    }

    /// Parses such a text for findings about devices: `warning`, `switch.mmu_drops`.
    #[cfg(feature = "live")]
    pub(crate) fn parse_devices(text: &str) -> Result<Self, String> {
        Self::among(
            text,
            &NamedRules {
                ids: findings::rules()
                    .map(|rule| rule.id)
                    .chain(counters::rules().map(|rule| rule.id))
                    .collect(),
                no_roce: false,
                noun: "critical nor a finding",
                hint: "",
            },
        )
    }

    /// Parses such a text for checks of a host: `warning`, `pfc.enabled`.
    #[cfg(feature = "live")]
    pub(crate) fn parse_checks(text: &str) -> Result<Self, String> {
        Self::among(
            text,
            &NamedRules {
                ids: doctor::checks().map(|check| check.id).collect(),
                no_roce: false,
                noun: "critical nor a check",
                hint: "",
            },
        )
    }

    fn among(text: &str, rules: &NamedRules) -> Result<Self, String> {
        let mut chosen = Self::default();
        for term in terms(text) {
            let Term::Name(name) = term else {
                return Err("a condition is not for this command: it takes severities and names".to_owned());
            };
            if let Some(severity) = SEVERITIES.iter().find(|severity| severity.name() == name) {
                // The lower one includes the higher one.
                chosen.severity = Some(chosen.severity.map_or(*severity, |known| known.min(*severity)));
            } else if rules.no_roce && name == NO_ROCE {
                chosen.no_roce = true;
            } else if let Some(id) = rules.ids.iter().find(|id| **id == name) {
                chosen.ids.push(id);
            } else {
                let known = names_of(rules);
                let hint = nearest(name, known.into_iter()).map_or_else(String::new, |near| {
                    format!("; hint: did you mean '{near}'?{}", rules.hint)
                });
                let critical = if rules.no_roce { "critical, " } else { "" };
                return Err(format!(
                    "'{name}' is neither info, warning, {critical}{}{hint}",
                    rules.noun
                ));
            }
        }
        Ok(chosen)
    }

    /// True if a run without any RoCE packet fails: whoever asks for findings of some kind gets no answer from it.
    pub(crate) fn needs_roce(&self) -> bool {
        self.no_roce || self.severity.is_some() || !self.ids.is_empty()
    }

    /// True if a finding fails the run.
    pub(crate) fn holds(&self, id: &str, severity: Severity) -> bool {
        self.severity.is_some_and(|least| severity >= least) || self.ids.contains(&id)
    }

    /// True if a check that ended so fails the run. Every check has an outcome, so one that is named fails by a warning or worse.
    #[cfg(feature = "live")]
    pub(crate) fn holds_check(&self, id: &str, severity: Severity) -> bool {
        let is_reached = self.severity.is_some_and(|least| severity >= least);
        is_reached || severity >= Severity::Warning && self.ids.contains(&id)
    }
}

fn names_of(rules: &NamedRules) -> Vec<&'static str> {
    let severities = SEVERITIES.iter().map(|severity| severity.name());
    let no_roce = rules.no_roce.then_some(NO_ROCE);
    severities
        .chain(no_roce)
        .chain(rules.ids.iter().copied())
        .collect()
}

/// Severities and ids of findings in captures.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let severities = SEVERITIES.iter().map(|severity| severity.name());
    severities
        .chain([NO_ROCE])
        .chain(RULES.iter().map(|rule| rule.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_a_name_or_a_condition() {
        let condition = |quantity, comparison, bound| Term::Condition {
            quantity,
            comparison,
            bound,
        };
        let found: Vec<Term<'_>> = terms("warning, ports<4,nccl.busbw <= 80GiB/s").collect();
        let expected = [
            Term::Name("warning"),
            condition("ports", "<", "4"),
            condition("nccl.busbw", "<=", "80GiB/s"),
        ];
        assert_eq!(found, expected);
        assert!(FailOn::parse("rnr>1").is_err());
    }

    #[test]
    fn severities_and_ids_are_accepted_together() {
        let fails = |text: &str, id, severity| FailOn::parse(text).unwrap().holds(id, severity);
        assert!(fails("warning", "rnr", Severity::Warning) && fails("warning", "rnr", Severity::Critical));
        assert!(!fails("warning", "stall", Severity::Info));
        assert!(fails("loss.network", "loss.network", Severity::Info));
        assert!(!fails("loss.network", "rnr", Severity::Critical));
        assert!(fails("critical, rnr", "rnr", Severity::Warning));
        // The lower one of two severities includes the other.
        assert!(fails("critical,info", "stall", Severity::Info));
        assert!(fails("info,critical", "stall", Severity::Info));
    }

    #[test]
    fn whoever_asks_for_findings_needs_packets() {
        assert!(FailOn::parse("no-roce").unwrap().needs_roce());
        assert!(FailOn::parse("rnr").unwrap().needs_roce() && FailOn::parse("warning").unwrap().needs_roce());
        assert!(!FailOn::default().needs_roce());
        let only = FailOn::parse("no-roce").unwrap();
        assert!(!only.holds("rnr", Severity::Critical));
    }

    #[test]
    fn unknown_names_get_the_nearest_one() {
        assert_eq!(
            FailOn::parse("loss.netwrk").unwrap_err(),
            "'loss.netwrk' is neither info, warning, critical, no-roce nor a finding; hint: did you mean 'loss.network'? \
             `explain list` has all findings"
        );
        assert!(FailOn::parse("ok").is_err() && FailOn::parse("warning,").is_err());
    }

    #[cfg(feature = "live")]
    #[test]
    fn devices_and_checks_have_ids_of_their_own() {
        let drops = FailOn::parse_devices("critical,switch.mmu_drops").unwrap();
        assert!(drops.holds("switch.mmu_drops", Severity::Info) && drops.holds("other", Severity::Critical));
        for (parsed, text) in [
            (
                FailOn::parse_devices("switch.mmu_drop"),
                "'switch.mmu_drop' is neither info, warning, critical nor a finding; hint: did you mean 'switch.mmu_drops'?",
            ),
            (
                FailOn::parse_checks("pfc.enable"),
                "'pfc.enable' is neither info, warning, critical nor a check; hint: did you mean 'pfc.enabled'?",
            ),
        ] {
            assert_eq!(parsed.unwrap_err(), text);
        }
        assert!(FailOn::parse_devices("no-roce").is_err() && FailOn::parse_checks("no-roce").is_err());
    }
}
