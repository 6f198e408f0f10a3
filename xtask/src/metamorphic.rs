//! `cargo xtask metamorphic`: copies of captures that must not change a verdict, and those that may only weaken it. The
//! transformations, the comparison and the table are in `tests/crates/metamorphic`; here it is built and started.

use anyhow::Result;

use crate::workspace::{Workspace, execute};

pub(crate) const ABOUT: &str =
    "transform captures, compare the verdicts on the copies with those on the captures";
pub(crate) const ARGUMENTS: &str = "[--seeds N] [--first SEED] [--only TRANSFORMATION]... [--input TEXT] [--captures | --fixed] [--threads N] [--write-open] [--keep DIR] [-v]";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut cargo = workspace.cargo([
        "run",
        "--quiet",
        "--release",
        "--package",
        "roce-metamorphic",
        "--",
    ]);
    execute(cargo.args(arguments))
}
