//! Contents of packages: the program, its manual pages and completions, units, examples, documents and licences, in one folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::facts::{epoch, folder, version};
use super::licences;
use crate::workspace::{Workspace, execute, output};

/// Shells whose completions are packed, and the name of the script of each.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "roce-analyze"),
    ("fish", "roce-analyze.fish"),
    ("zsh", "_roce-analyze"),
];

/// Makes the folder `name` with everything that packages have in common.
pub(super) fn stage(
    workspace: &Workspace,
    name: &str,
    program: &Path,
    features: Option<&str>,
) -> Result<PathBuf> {
    let stage = folder(workspace).join(name);
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| format!("cannot empty {}", stage.display()))?;
    }
    let program = program
        .canonicalize()
        .with_context(|| format!("{}: no program", program.display()))?;
    copy(&program, &stage.join("bin/roce-analyze"))?;
    make_folder(&stage.join("man"))?;
    execute(
        workspace
            .command(&program)
            .args(["man", "-o"])
            .arg(stage.join("man")),
    )?;
    for (shell, file) in SHELLS {
        let script = output(workspace.command(&program).args(["completions", shell]))?;
        write(&stage.join("completions").join(shell).join(file), &script)?;
    }
    for (from, to) in [
        ("systemd", "units"),
        ("default", "default"),
        ("examples", "examples"),
    ] {
        copy_all(
            &workspace.root.join("packages").join(from),
            &stage.join(to),
            &|_| true,
        )?;
    }
    let is_page = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
    copy_all(&workspace.root.join("docs"), &stage.join("docs"), &is_page)?;
    for name in [
        "README.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ] {
        copy(&workspace.root.join(name), &stage.join(name))?;
    }
    write(
        &stage.join("third-party-licenses.txt"),
        &licences::texts(workspace, features)?,
    )?;
    Ok(stage)
}

/// Makes the archive that needs no package manager: `tar -xf` and a copy install it.
pub(super) fn archive(workspace: &Workspace, program: &Path, features: Option<&str>) -> Result<PathBuf> {
    let host = output(workspace.command("rustc").arg("-vV"))?;
    let target = host.lines().find_map(|line| line.strip_prefix("host: "));
    let target = std::env::var("PACKAGE_TARGET").ok().or(target.map(str::to_owned));
    let target = target.context("rustc does not say its host")?;
    let name = format!("roce-analyze-{}-{target}", version(workspace)?);
    stage(workspace, &name, program, features)?;
    let archive = folder(workspace).join(format!("{name}.tar.gz"));
    let mut tar = workspace.command("tar");
    tar.current_dir(folder(workspace))
        .args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mode=u=rwX,go=rX",
            "--format=gnu",
        ])
        .arg(format!("--mtime=@{}", epoch(workspace)?))
        // No name and no time in its head.
        .args(["--use-compress-program=gzip -9 -n", "-cf"])
        .arg(&archive)
        .arg(&name);
    execute(&mut tar)?;
    Ok(archive)
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Writes a file, below folders that it makes.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    make_folder(path.parent().unwrap_or(path))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies a file with its mode, below folders that it makes.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    make_folder(to.parent().unwrap_or(to))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Copies the files of a folder that `wanted` chooses, and those of the folders below it.
pub(super) fn copy_all(from: &Path, to: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let path = entry
            .with_context(|| format!("cannot list {}", from.display()))?
            .path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_all(&path, &target, wanted)?;
        } else if wanted(&path) {
            copy(&path, &target)?;
        }
    }
    Ok(())
}
