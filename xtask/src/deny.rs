//! `cargo xtask deny`: licences, bans and sources of the dependencies, and advisories where they can be fetched.

use std::path::Path;

use anyhow::Result;

use crate::workspace::{Workspace, execute, no_arguments, succeeds};

pub(crate) const ABOUT: &str = "check the dependencies: licences, bans, sources, advisories";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    no_arguments("deny", arguments)?;
    let program = workspace.install("cargo-deny", "^0.20")?;
    check(workspace, &program)
}

/// Runs cargo-deny.
pub(crate) fn check(workspace: &Workspace, program: &Path) -> Result<()> {
    let deny = |arguments: &[&str]| {
        let mut command = workspace.command(program);
        command.arg("--workspace").args(arguments);
        command
    };
    execute(&mut deny(&[
        "--log-level",
        "error",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))?;
    if succeeds(&mut deny(&["fetch", "db"])) {
        execute(&mut deny(&["check", "advisories"]))
    } else {
        println!("   advisories: SKIPPED, their database cannot be fetched from here");
        Ok(())
    }
}
