//! `cargo xtask truth`: how often the analysis is right, over random simulated scenarios whose truth is known. The
//! scenarios, the comparison and the table are in `tests/crates/truth`; here it is built and started.

use anyhow::Result;

use crate::workspace::{Workspace, execute};

pub(crate) const ABOUT: &str = "simulate random scenarios, compare the analysis with what happened";
pub(crate) const ARGUMENTS: &str = "[--seeds N | --nightly] [--first SEED] [--seed SEED] [--family NAME] [--threads N] [--causes] [--lateness] [--mrc] [--by-family] [--thin lose:N|keep:N|every:N] [-v] [-o DIR]";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut cargo = workspace.cargo(["run", "--quiet", "--release", "--package", "roce-truth", "--"]);
    execute(cargo.args(arguments))
}
