//! Facts that all packages share: version, date, folders, features.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, output};

/// Compression of a package.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Takes a minute, for people who download it.
    Small,
    /// Takes seconds, for a check.
    Quick,
}

/// Has a command of cargo take these features instead of the default ones.
pub(super) fn choose(cargo: &mut Command, features: Option<&str>) {
    if let Some(features) = features {
        cargo.args(["--no-default-features", "--features", features]);
    }
}

/// The version of the workspace: `path+file:///...#roce-analyze@0.2.0` ends with it.
pub(super) fn version(workspace: &Workspace) -> Result<String> {
    let id = output(&mut workspace.cargo(["pkgid", "--offline", "-p", "roce-analyze"]))?;
    let version = id.trim().rsplit(['#', '@']).next().unwrap_or_default();
    if !version.starts_with(|first: char| first.is_ascii_digit()) {
        bail!("cargo pkgid says no version: {id}");
    }
    Ok(version.to_owned())
}

/// Seconds since 1970 that all files of a package get: `SOURCE_DATE_EPOCH`, or the time of the commit.
pub(super) fn epoch(workspace: &Workspace) -> Result<u64> {
    let text = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => output(workspace.command("git").args(["log", "-1", "--format=%ct"]))
            .context("packages need a date\nhint: set SOURCE_DATE_EPOCH where the sources are no checkout")?,
    };
    text.trim()
        .parse()
        .with_context(|| format!("SOURCE_DATE_EPOCH is no number of seconds: {}", text.trim()))
}

/// Folder of everything that is made here.
pub(super) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("package")
}

/// Folder of cargo's own files.
pub(super) fn cargo_home() -> Result<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    home.context("neither CARGO_HOME nor HOME is set")
}
