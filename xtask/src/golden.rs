//! `cargo xtask golden`: the expected counts of every capture, by tshark and a script that is not our code.

use anyhow::Result;

use crate::need::{self, TSHARK};
use crate::workspace::{Workspace, execute};

pub(crate) const ABOUT: &str = "make tests/data/golden/ again from the captures (needs tshark)";
pub(crate) const ARGUMENTS: &str = "[--check] [--out DIR CAPTURE...]";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    need::ensure(&[TSHARK])?;
    execute(
        workspace
            .command("python3")
            .arg("tests/data/golden/make.py")
            .args(arguments),
    )
}
