//! `--fail-on`: which findings make a run exit with 1, and that a run which shows nothing does.

use roce_model::{FindingRow, Severity};
use roce_verdict::RULES;

use crate::options::nearest::nearest;

/// The severities that a run can fail on, the worst last.
const SEVERITIES: [Severity; 3] = [Severity::Info, Severity::Warning, Severity::Critical];

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

impl FailOn {
    /// Parses `warning`, `loss.network`, or several of them with commas.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut found = Self::default();
        for name in text.split(',').map(str::trim) {
            if let Some(severity) = SEVERITIES.iter().find(|severity| severity.name() == name) {
                // The lower one includes the higher one.
                found.severity = Some(found.severity.map_or(*severity, |known| known.min(*severity)));
            } else if name == NO_ROCE {
                found.no_roce = true;
            } else if let Some(rule) = RULES.iter().find(|rule| rule.id == name) {
                found.ids.push(rule.id);
            } else {
                let hint = nearest(name, names()).map_or_else(String::new, |name| {
                    format!("; hint: did you mean '{name}'? `--explain list` has all findings")
                });
                return Err(format!(
                    "'{name}' is neither info, warning, critical, no-roce nor a finding{hint}"
                ));
            }
        }
        Ok(found)
    }

    /// True if a run without any RoCE packet fails: whoever asks for findings of some kind gets no answer from it.
    pub(crate) fn needs_roce(&self) -> bool {
        self.no_roce || self.severity.is_some() || !self.ids.is_empty()
    }

    /// True if a finding fails the run.
    pub(crate) fn holds(&self, finding: &FindingRow) -> bool {
        self.severity.is_some_and(|severity| finding.severity >= severity) || self.ids.contains(&finding.id)
    }
}

/// Severities and ids.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let severities = SEVERITIES.iter().map(|severity| severity.name());
    severities
        .chain([NO_ROCE])
        .chain(RULES.iter().map(|rule| rule.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &'static str, severity: Severity) -> FindingRow {
        FindingRow {
            id,
            severity,
            ..FindingRow::default()
        }
    }

    #[test]
    fn severities_and_ids_are_accepted_together() {
        let fails = |text: &str, id, severity| FailOn::parse(text).unwrap().holds(&finding(id, severity));
        assert!(fails("warning", "rnr", Severity::Warning) && fails("warning", "rnr", Severity::Critical));
        assert!(!fails("warning", "stall", Severity::Info));
        assert!(fails("loss.network", "loss.network", Severity::Info));
        assert!(!fails("loss.network", "rnr", Severity::Critical));
        assert!(fails("critical, rnr", "rnr", Severity::Warning));
        // Of two severities the lower one includes the other.
        assert!(fails("critical,info", "stall", Severity::Info));
        assert!(fails("info,critical", "stall", Severity::Info));
    }

    #[test]
    fn whoever_asks_for_findings_needs_packets() {
        assert!(FailOn::parse("no-roce").unwrap().needs_roce());
        assert!(FailOn::parse("rnr").unwrap().needs_roce() && FailOn::parse("warning").unwrap().needs_roce());
        assert!(!FailOn::default().needs_roce());
        let only = FailOn::parse("no-roce").unwrap();
        assert!(!only.holds(&finding("rnr", Severity::Critical)));
    }

    #[test]
    fn unknown_names_get_the_nearest_one() {
        assert_eq!(
            FailOn::parse("loss.netwrk").unwrap_err(),
            "'loss.netwrk' is neither info, warning, critical, no-roce nor a finding; hint: did you mean 'loss.network'? \
             `--explain list` has all findings"
        );
        assert!(FailOn::parse("ok").is_err() && FailOn::parse("warning,").is_err());
    }
}
