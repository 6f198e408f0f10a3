//! `cargo xtask prometheus`: what `roce-analyze metrics` prints, in Prometheus itself.
//!
//! The checks are `tests/prometheus/check.py`: promtool over rules, configuration and scrapes, and a Prometheus that scrapes hosts made of
//! files and a live run. Everything that they write is in the target folder.

use std::path::Path;

use anyhow::Result;

use crate::need::{self, PROMETHEUS, PYTHON};
use crate::workspace::{Profile, Workspace, execute, no_arguments, step};

pub(crate) const ABOUT: &str = "rules, dashboards and scrapes in promtool and a real Prometheus";

/// The checks.
const CHECK: &str = "tests/prometheus/check.py";
/// What is sent to the live run.
const CAPTURE: &str = "captures/demos/incast-h7.pcapng";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    no_arguments("prometheus", arguments)?;
    possible()?;
    step("build", || {
        execute(&mut workspace.cargo(["build", "--quiet", "--locked", "--package", "roce-analyze"]))
    })?;
    step("metrics, in Prometheus", || {
        check(workspace, &workspace.program(Profile::Dev, "roce-analyze"))
    })
}

/// Sees to it that everything is there that the checks need.
pub(crate) fn possible() -> Result<()> {
    need::ensure(&[PROMETHEUS, PYTHON])
}

/// Checks what this program prints and serves.
pub(crate) fn check(workspace: &Workspace, program: &Path) -> Result<()> {
    let mut python = workspace.command("python3");
    python
        .arg(CHECK)
        .arg(program)
        .arg(workspace.target.join("prometheus"))
        .arg(CAPTURE);
    execute(&mut python)
}
