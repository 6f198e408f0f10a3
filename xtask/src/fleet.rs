//! The test of a fleet: captures of ten hosts on a real Spark cluster on loopback, with answers of two engines, and an S3 (`spark/tests`).

use std::path::Path;

use anyhow::Result;

use crate::workspace::{Profile, Workspace, execute};

/// Runs the test by a python that has the engines; that of `store` has an S3.
pub(crate) fn check(workspace: &Workspace, python: &Path, store: &Path) -> Result<()> {
    // Built by the tests of the command line.
    let program = workspace.program(Profile::Dev, "roce-analyze");
    let mut test = workspace.command(python);
    test.arg("spark/tests/fleet.py")
        .arg(program)
        .arg(workspace.target.join("fleet"))
        .arg(store);
    execute(&mut test)
}
