//! Outcomes of `doctor` as metrics.

use std::collections::BTreeMap;
use std::path::PathBuf;

use roce_hosts::doctor::{self, Host, Plan, Status};
use roce_metrics::{CHECK_STATUS, Exposition, Label};
use roce_probe::{SnapshotOptions, recorded_snapshot, running_snapshot};

use super::host::HostArguments;

/// Label of readings of checks.
pub(super) const COLLECTOR: Label<'static> = ("collector", std::borrow::Cow::Borrowed("doctor"));

/// The object of checks that judge limits of the process that runs them: those of an exporter say nothing about those of a job.
const PROCESS: &str = "process";
/// Checks with answers that depend on the rights of the process that runs them.
const OF_RIGHTS: [&str; 1] = ["rdma.nodes"];

/// A host whose checks are run.
pub(super) struct CheckedHost {
    recorded: Option<PathBuf>,
    interfaces: Vec<String>,
}

impl CheckedHost {
    pub(super) fn new(arguments: &HostArguments) -> Self {
        Self {
            recorded: arguments.read.clone(),
            interfaces: arguments.interface.clone(),
        }
    }

    /// Runs the checks and adds their outcomes. False: nothing could be read.
    pub(super) fn add(&self, into: &mut Exposition) -> bool {
        let host = if let Some(folder) = &self.recorded {
            recorded_snapshot(folder, "host")
        } else {
            let options = SnapshotOptions {
                interfaces: &self.interfaces,
                process: None,
            };
            running_snapshot(&options, &roce_probe::most_speed)
        };
        let Ok(host) = host else { return false };
        outcomes(&host, into);
        true
    }
}

/// The outcomes of all checks that concern this host; the worst where a check has several for one object.
fn outcomes(host: &Host, into: &mut Exposition) {
    let mut all: BTreeMap<(&str, String), Status> = BTreeMap::new();
    for judgement in doctor::judge(host, &Plan::default(), &[]) {
        let is_fleet = judgement.group == "fleet" || judgement.id == "mtu.peers";
        let outcome = judgement.outcome;
        let is_own = outcome.object == PROCESS || OF_RIGHTS.contains(&judgement.id);
        if is_fleet || is_own || outcome.status == Status::NotApplicable {
            continue;
        }
        let worst = all
            .entry((judgement.id, outcome.object))
            .or_insert(outcome.status);
        *worst = outcome.status.max(*worst);
    }
    for ((check, object), status) in all {
        let labels = [
            ("check", check.into()),
            ("object", object.into()),
            ("status", status.name().into()),
        ];
        into.own(CHECK_STATUS, &labels, 1.0);
    }
}
