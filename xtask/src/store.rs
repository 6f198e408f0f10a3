//! The step `store` of `cargo xtask test`: object stores and parts of fleet datasets against an S3 (moto), in a network namespace, and the
//! manifests that run the program on every node.
//!
//! The checks are `tests/independent/store/check.py` and `tests/independent/store/manifests.py`. Everything that they write is in the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::python;
use crate::workspace::{Profile, Workspace, execute, succeeds};

/// The checks of stores, and of manifests.
const CHECK: &str = "tests/independent/store/check.py";
const MANIFESTS: &str = "tests/independent/store/manifests.py";
/// Capture that is stored, and sent to live runs.
const CAPTURE: &str = "captures/demos/incast-h7.pcapng";

/// Sees to it that everything is there that the checks need: a Python with an S3.
pub(crate) fn possible(workspace: &Workspace) -> Result<PathBuf> {
    let name = format!("roce-store-try-{}", std::process::id());
    let namespace = |action: &str| {
        let mut ip = Command::new("ip");
        ip.args(["netns", action, &name]);
        ip
    };
    if !succeeds(&mut namespace("add")) {
        bail!("no network namespace can be made: it takes root and `ip` (iproute2)");
    }
    execute(&mut namespace("del"))?;
    python::store(workspace)
}

/// Checks with this Python the program that the tests built, and the manifests.
pub(crate) fn check(workspace: &Workspace, python: &Path) -> Result<()> {
    let program = workspace.program(Profile::Dev, "roce-analyze");
    execute(workspace.command(python).arg(MANIFESTS).arg(&program))?;
    let mut check = workspace.command(python);
    check
        .arg(CHECK)
        .arg(program)
        .arg(workspace.target.join("store-check"))
        .arg(CAPTURE);
    execute(&mut check)
}
