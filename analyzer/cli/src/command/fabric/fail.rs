//! Findings about devices, and the exit code that they make.

use roce_fabric::device::Reading;
use roce_fabric::inventory::Cluster;
use roce_model::Severity;

/// A verdict over the readings of a device.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Finding {
    pub(super) id: &'static str,
    pub(super) severity: Severity,
    pub(super) summary: String,
    pub(super) next_step: String,
}

/// Findings from one reading, or from two.
pub(super) fn judged(_before: Option<&Reading>, _now: &Reading, _cluster: &Cluster) -> Vec<Finding> {
    Vec::new()
}

/// The findings that fail a run: of a severity or worse, or by their id whatever their severity is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct DeviceFailOn {
    severity: Option<Severity>,
    ids: Vec<String>,
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
                None if name.contains('.') => found.ids.push(name.to_owned()),
                None => {
                    return Err(format!(
                        "'{name}' is neither info, warning, critical nor a finding such as switch.mmu_drops"
                    ));
                }
            }
        }
        Ok(found)
    }

    /// Names of the findings that fail the run.
    pub(super) fn failed(&self, findings: &[&Finding]) -> Vec<String> {
        let fails = |finding: &&&Finding| {
            self.severity.is_some_and(|severity| finding.severity >= severity)
                || self.ids.iter().any(|id| id == finding.id)
        };
        let failed = findings.iter().filter(fails);
        failed
            .map(|finding| format!("{} ({})", finding.id, finding.severity.name()))
            .collect()
    }
}
