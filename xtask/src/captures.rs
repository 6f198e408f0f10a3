//! `cargo xtask captures`: the captures of the demos, from their scenarios.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace::{Workspace, execute, no_arguments};

pub(crate) const ABOUT: &str = "make captures/demos/ again from the demos' scenarios";

/// Folder of the captures.
const FOLDER: &str = "captures/demos";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    no_arguments("captures", arguments)?;
    let folder = workspace.root.join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    // Without Parquet: it is not needed, and takes minutes to build.
    let package = [
        "--quiet",
        "--locked",
        "--package",
        "roce-analyze",
        "--no-default-features",
        "--features",
        "sim",
    ];
    let mut demo = workspace.cargo(["run"]);
    demo.args(package)
        .args(["--", "demo", "--write-captures"])
        .arg(&folder);
    execute(&mut demo)?;
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
        files += 1;
        bytes += entry.metadata().map_or(0, |data| data.len());
    }
    println!("{FOLDER}: {files} files, {} kB", bytes / 1000);
    Ok(())
}
