//! A fresh Debian of this machine's release, in which the package is installed, used and purged (`tests/command/packages/chroot.sh`).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::facts::{folder, version};
use super::stage;
use crate::workspace::{Workspace, execute, output, step, succeeds};

/// A capture in which the network lost packets.
const CAPTURE: &str = "captures/write_bw_loss.pcap";

/// The release of Debian that this machine runs: the program is linked with its libraries.
pub(super) fn codename() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_matches('"').to_owned())
    };
    (value("ID=")? == "debian")
        .then(|| value("VERSION_CODENAME="))
        .flatten()
}

/// Checks that namespaces of mounts and processes can be made, and that apt knows where Debian's packages are.
pub(super) fn possible() -> Result<()> {
    let mut unshare = Command::new("unshare");
    if !succeeds(unshare.args([
        "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt",
    ])) {
        bail!("the system lets nobody mount in a namespace");
    }
    if sources()?.is_empty() {
        bail!("apt has no source of Debian's packages");
    }
    Ok(())
}

/// This machine's sources of Debian's packages, in the form of one line each. Those of others are left out.
fn sources() -> Result<String> {
    let mut apt = Command::new("apt-get");
    apt.args([
        "indextargets",
        "--format",
        "$(ORIGIN)|deb $(SITE) $(RELEASE) $(COMPONENT)",
    ]);
    let targets = output(apt.arg("Created-By: Packages"))?;
    Ok(debian(&targets))
}

fn debian(targets: &str) -> String {
    let lines = targets.lines().filter_map(|line| line.strip_prefix("Debian|"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Installs, uses and purges the package.
pub(super) fn check(workspace: &Workspace, package: &Path) -> Result<()> {
    let base = step("a fresh Debian", || base(workspace))?;
    step("install, use, purge", || {
        let root = folder(workspace).join("root");
        remove(workspace, &root)?;
        let shared = root.join("check");
        fs::create_dir_all(&shared).with_context(|| format!("cannot make {}", shared.display()))?;
        // Devices are those of this machine.
        let mut tar = workspace.command("tar");
        execute(
            tar.args(["--exclude=./dev/*", "--numeric-owner", "-xf"])
                .arg(&base)
                .arg("-C")
                .arg(&root),
        )?;
        for (from, to) in [
            (package, "package.deb"),
            (&workspace.root.join(CAPTURE), "loss.pcap"),
            (
                &workspace.root.join("tests/command/packages/chroot.sh"),
                "chroot.sh",
            ),
        ] {
            stage::copy(from, &shared.join(to))?;
        }
        // Proxies and the like.
        let dump = output(workspace.command("apt-config").arg("dump"))?;
        let acquire: Vec<&str> = dump.lines().filter(|line| line.starts_with("Acquire")).collect();
        stage::write(&root.join("etc/apt/apt.conf.d/99host"), &acquire.join("\n"))?;
        let ran = execute(&mut enter(workspace, &root, &version(workspace)?));
        remove(workspace, &root)?;
        ran
    })
}

/// The command that runs the script in the folder, with nothing of this machine's environment. What it mounts and starts ends with it.
fn enter(workspace: &Workspace, root: &Path, version: &str) -> Command {
    let mut unshare = workspace.command("unshare");
    unshare
        .args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-euc"])
        .arg(
            "mount --rbind /dev \"$1/dev\"; mount -t proc proc \"$1/proc\"
             exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
             chroot \"$1\" sh /check/chroot.sh /check/package.deb /check/loss.pcap \"$2\"",
        )
        .arg("sh")
        .arg(root)
        .arg(version)
        .stdin(Stdio::null());
    unshare
}

/// The archive of the fresh system: made once, from this machine's own sources of packages.
fn base(workspace: &Workspace) -> Result<PathBuf> {
    let codename = codename().context("this is no Debian")?;
    let base = folder(workspace).join(format!("debian-{codename}.tar"));
    if base.is_file() {
        return Ok(base);
    }
    let begun = base.with_extension("begun.tar");
    let mut make = workspace.command("mmdebstrap");
    make.args(["--variant=apt", "--quiet", &codename])
        .arg(&begun)
        .arg("-");
    let mut child = make
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot run mmdebstrap")?;
    if let Some(mut input) = child.stdin.take() {
        input
            .write_all(sources()?.as_bytes())
            .context("mmdebstrap takes no sources")?;
    }
    let status = child.wait().context("cannot wait for mmdebstrap")?;
    if !status.success() {
        bail!("mmdebstrap failed: {status}");
    }
    fs::rename(&begun, &base).with_context(|| format!("cannot rename {}", begun.display()))?;
    Ok(base)
}

/// Removes a folder, and nothing that is mounted below it.
fn remove(workspace: &Workspace, folder: &Path) -> Result<()> {
    execute(
        workspace
            .command("rm")
            .args(["-rf", "--one-file-system"])
            .arg(folder),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_others_are_left_out() {
        let targets = "Debian|deb http://a.example/debian bookworm main\n|deb http://b.example x main\nOther|deb http://c.example y main\n";
        assert_eq!(debian(targets), "deb http://a.example/debian bookworm main\n");
    }
}
