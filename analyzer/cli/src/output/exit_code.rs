//! The exit code of a run.

use std::process::ExitCode;

use roce_model::{RunSummary, Severity};

/// 2 when an input failed, 1 when a finding is at or over the limit.
pub(crate) fn exit_code(all_read: bool, summary: &RunSummary, limit: Option<Severity>) -> ExitCode {
    let worst = summary.findings.iter().map(|finding| finding.severity).max();
    if !all_read {
        ExitCode::from(2)
    } else if limit.is_some_and(|limit| worst >= Some(limit)) {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    }
}
