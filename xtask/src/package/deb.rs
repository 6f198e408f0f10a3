//! The Debian package, by debhelper, and its check by lintian.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::facts::{Size, epoch, folder, version};
use super::stage;
use crate::workspace::{Workspace, output, step};

/// Lines of debhelper's output that an error repeats.
const SHOWN: usize = 15;

/// Makes the package of a program.
pub(super) fn make(
    workspace: &Workspace,
    program: &Path,
    features: Option<&str>,
    size: Size,
) -> Result<PathBuf> {
    step("package", || {
        let stage = stage::stage(workspace, "deb", program, features)?;
        let debian = stage.join("debian");
        stage::copy_all(&workspace.root.join("packages/debian"), &debian, &|_| true)?;
        for entry in fs::read_dir(stage.join("units")).context("cannot list the units")? {
            let unit = entry.context("cannot list the units")?;
            let name = format!("roce-analyze.{}", unit.file_name().to_string_lossy());
            stage::copy(&unit.path(), &debian.join(name))?;
        }
        let version = format!("{}-1", version(workspace)?);
        stage::write(&debian.join("changelog"), &changelog(workspace, &version)?)?;
        rules(workspace, &stage, size)?;
        let architecture = output(workspace.command("dpkg").arg("--print-architecture"))?;
        Ok(folder(workspace).join(format!("roce-analyze_{version}_{}.deb", architecture.trim())))
    })
}

/// The changelog in Debian's form: its date is that of all files.
fn changelog(workspace: &Workspace, version: &str) -> Result<String> {
    let control = workspace.root.join("packages/debian/control");
    let control =
        fs::read_to_string(&control).with_context(|| format!("cannot read {}", control.display()))?;
    let maintainer = control.lines().find_map(|line| line.strip_prefix("Maintainer: "));
    let maintainer = maintainer.context("packages/debian/control names no maintainer")?;
    let at = format!("@{}", epoch(workspace)?);
    let date = output(
        workspace
            .command("date")
            .env("LC_ALL", "C")
            .args(["-u", "-R", "-d", &at]),
    )?;
    Ok(format!(
        "roce-analyze ({version}) unstable; urgency=medium\n\n  * Release {version}: changelog.gz has the changes.\n\n \
         -- {maintainer}  {}\n",
        date.trim()
    ))
}

/// Has debhelper make the package beside the folder.
fn rules(workspace: &Workspace, stage: &Path, size: Size) -> Result<()> {
    let compression = match size {
        Size::Small => "-Zxz",
        Size::Quick => "-Zgzip -z1",
    };
    let mut rules = workspace.command("debian/rules");
    rules
        .current_dir(stage)
        .arg("binary")
        .env("DEB_COMPRESSION", compression)
        .env("LC_ALL", "C.UTF-8")
        // Set by cargo, for its own children.
        .env_remove("MAKEFLAGS");
    let output = rules.output().context("cannot run debian/rules")?;
    if !output.status.success() {
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let lines: Vec<&str> = text.lines().collect();
        bail!(
            "debhelper fails: {}",
            lines[lines.len().saturating_sub(SHOWN)..].join("\n")
        );
    }
    Ok(())
}

/// Holds the package to Debian's policy.
pub(super) fn lint(workspace: &Workspace, package: &Path) -> Result<()> {
    step("lintian", || {
        let mut lintian = workspace.command("lintian");
        lintian
            .args([
                "--allow-root",
                "--fail-on",
                "error,warning",
                "--show-overrides",
                "--tag-display-limit",
                "0",
            ])
            .arg(package)
            .env("LC_ALL", "C.UTF-8");
        crate::workspace::execute(&mut lintian)
    })
}
