//! `cargo xtask prometheus`: what `roce-analyze metrics` prints, in Prometheus itself.
//!
//! The checks are `tests/independent/prometheus/check.py`: promtool over rules, configuration and scrapes, and a Prometheus that scrapes hosts made of
//! files and a live run. Everything that they write is in the target folder. With `--write`, main panels of the dashboards are drawn for the
//! documents (`tests/independent/prometheus/draw.py`), from that Prometheus' answers.

use std::path::Path;

use anyhow::{Result, bail};

use crate::need::{self, PROMETHEUS, PYTHON};
use crate::workspace::{Profile, Workspace, execute, step};

pub(crate) const ABOUT: &str = "rules, dashboards and scrapes in promtool and a real Prometheus";
pub(crate) const ARGUMENTS: &str = "[--write]";

/// The checks.
const CHECK: &str = "tests/independent/prometheus/check.py";
/// Pictures of dashboards.
const PICTURES: &str = "docs/images";
/// Capture that is sent to the live run.
const CAPTURE: &str = "captures/demos/incast-h7.pcapng";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let pictures = match arguments {
        [] => None,
        [option] if option == "--write" => Some(workspace.root.join(PICTURES)),
        _ => bail!("`cargo xtask prometheus` takes {ARGUMENTS}"),
    };
    possible()?;
    step("build", || {
        execute(&mut workspace.cargo(["build", "--quiet", "--locked", "--package", "roce-analyze"]))
    })?;
    step("metrics, in Prometheus", || {
        let program = workspace.program(Profile::Dev, "roce-analyze");
        check(workspace, &program, pictures.as_deref())
    })
}

/// Sees to it that everything is there that the checks need.
pub(crate) fn possible() -> Result<()> {
    need::ensure(&[PROMETHEUS, PYTHON])
}

/// Checks what this program prints and serves, and draws dashboards into the folder `pictures`.
pub(crate) fn check(workspace: &Workspace, program: &Path, pictures: Option<&Path>) -> Result<()> {
    let mut python = workspace.command("python3");
    python
        .arg(CHECK)
        .arg(program)
        .arg(workspace.target.join("prometheus"))
        .arg(CAPTURE)
        .args(pictures);
    execute(&mut python)
}

/// Requests of OTLP from and to OpenTelemetry's own classes. The program was built by the tests of the command line.
pub(crate) fn otlp(workspace: &Workspace, python: &Path) -> Result<()> {
    execute(
        workspace
            .command(python)
            .arg("tests/independent/otlp/check.py")
            .arg(workspace.program(Profile::Dev, "roce-analyze"))
            .arg(workspace.target.join("otlp-check")),
    )
}
