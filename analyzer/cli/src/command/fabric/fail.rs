//! `--fail-on` of commands about devices: which findings make a run exit with 1.

use roce_fabric::findings::{DeviceFinding, rule_of, rules};
use roce_model::Severity;

use crate::options::nearest::nearest;

/// The findings that fail a run: of a severity or worse, or by their id whatever their severity is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct DeviceFailOn {
    severity: Option<Severity>,
    ids: Vec<&'static str>,
}

impl DeviceFailOn {
    /// Parses `warning`, `switch.mmu_drops`, or several of them with commas.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut found = Self::default();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match Severity::named(name) {
                Some(Severity::Ok) => return Err("'ok' fails nothing: info, warning or critical".to_owned()),
                // The lower one includes the higher one.
                Some(severity) => {
                    found.severity = Some(found.severity.map_or(severity, |known| known.min(severity)));
                }
                None => match rule_of(name) {
                    Some(rule) => found.ids.push(rule.id),
                    None => {
                        let hint = nearest(name, rules().map(|rule| rule.id))
                            .map_or_else(String::new, |name| format!("; hint: did you mean '{name}'?"));
                        return Err(format!(
                            "'{name}' is neither info, warning, critical nor a finding{hint}"
                        ));
                    }
                },
            }
        }
        Ok(found)
    }

    /// Names of the findings that fail the run.
    pub(super) fn failed(&self, findings: &[&DeviceFinding]) -> Vec<String> {
        let fails = |finding: &&&DeviceFinding| {
            self.severity.is_some_and(|severity| finding.severity >= severity)
                || self.ids.contains(&finding.id)
        };
        let failed = findings.iter().filter(fails);
        failed
            .map(|finding| {
                let place = [finding.node.as_str(), &finding.object].join(" ");
                format!(
                    "{} ({}) {}",
                    finding.id,
                    finding.severity.name(),
                    place.trim_end()
                )
            })
            .collect()
    }
}
