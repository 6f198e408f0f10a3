//! Python with the packages that read datasets independently of polars, each set in an environment below the target folder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::need::{self, JAVA, PYTHON};
use crate::workspace::{Workspace, execute, succeeds};

/// Spark, DuckDB and others, pinned.
const REQUIREMENTS: &str = "tests/independent/requirements.txt";

/// Reader of datasets that is independent of polars.
const READER: &str = "duckdb>=1.3,<3";

/// A python that has the reader, in an environment of its own.
pub(crate) fn reader(workspace: &Workspace) -> Result<PathBuf> {
    let environment = workspace.target.join("python");
    let python = environment.join("bin").join("python3");
    let module = READER.split(['>', '<', '=']).next().unwrap_or(READER);
    let import = format!("import {module}");
    if succeeds(Command::new(&python).args(["-c", &import])) {
        return Ok(python);
    }
    need::ensure(&[PYTHON])?;
    println!(
        "installing {module} into {} (once)",
        workspace.shown(&environment)
    );
    execute(
        workspace
            .command("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        READER,
    ];
    execute(workspace.command(&python).args(pip)).context("no independent reader")?;
    Ok(python)
}

/// A python that has the engines, in an environment of its own (1.5 GB, once).
pub(crate) fn engines(workspace: &Workspace) -> Result<PathBuf> {
    need::ensure(&[PYTHON, JAVA])?;
    let environment = workspace.target.join("engines");
    let python = environment.join("bin").join("python3");
    let pinned = workspace.root.join(REQUIREMENTS);
    let pinned = fs::read_to_string(&pinned).with_context(|| format!("cannot read {}", pinned.display()))?;
    let installed = environment.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == pinned) {
        return Ok(python);
    }
    println!(
        "installing {REQUIREMENTS} into {} (once)",
        workspace.shown(&environment)
    );
    execute(
        workspace
            .command("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        REQUIREMENTS,
    ];
    execute(workspace.command(&python).args(pip)).context("the engines cannot be installed")?;
    fs::write(&installed, pinned).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(python)
}
