//! The exit code of a run.

use std::process::ExitCode;

use roce_model::RunSummary;

use crate::options::fail_on::FailOn;
use crate::output::messages;

/// 2 when an input failed, 1 when there is a finding that `fail_on` names, or it names any and no RoCE packet was there to judge: a line on
/// standard error says which.
pub(crate) fn exit_code(all_read: bool, summary: &RunSummary, fail_on: &FailOn) -> ExitCode {
    let mut failed: Vec<String> = summary
        .findings
        .iter()
        .filter(|finding| fail_on.holds(finding.id, finding.severity))
        .map(|finding| format!("{} ({})", finding.id, finding.severity.name()))
        .collect();
    if fail_on.needs_roce() && summary.totals.roce_packets == 0 {
        failed.push("no-roce (no RoCE packet to judge)".to_owned());
    }
    if !failed.is_empty() {
        messages::failed("--fail-on", &failed.join(", "));
    }
    if !all_read {
        ExitCode::from(2)
    } else if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}
