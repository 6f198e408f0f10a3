//! A wheel for `pip install`: the program, its manual pages and completions. Nothing of it is Python, and none is needed when it runs.
//!
//! PyPA's `wheel` packs it. maturin was looked at and not taken: it builds the program itself, with flags of its own, and packs no other files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::facts::{epoch, folder, version};
use super::stage;
use crate::elf::Machine;
use crate::need::{self, PYTHON};
use crate::python;
use crate::workspace::{Workspace, execute, output};

/// Libraries that each system with glibc has for wheels (PEP 600, and auditwheel's policy for manylinux).
const LIBRARIES: [&str; 9] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libgcc_s.so.1",
    "libutil.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// Folders of the archive, and where pip puts their files below its prefix.
const DATA: [(&str, &str); 4] = [
    ("man", "share/man/man1"),
    ("completions/bash", "share/bash-completion/completions"),
    ("completions/fish", "share/fish/vendor_completions.d"),
    ("completions/zsh", "share/zsh/site-functions"),
];

/// Makes the wheel of a program.
pub(super) fn make(workspace: &Workspace, program: &Path, features: Option<&str>) -> Result<PathBuf> {
    need::ensure(&[PYTHON])?;
    let python = python::wheel(workspace)?;
    let version = version(workspace)?;
    let content = stage::stage(workspace, "wheel-content", program, features)?;
    let name = format!("roce_analyze-{version}");
    let root = folder(workspace).join(&name);
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("cannot empty {}", root.display()))?;
    }
    let data = root.join(format!("{name}.data"));
    let packed = data.join("scripts/roce-analyze");
    stage::copy(&content.join("bin/roce-analyze"), &packed)?;
    // Names of functions stay, for messages of a panic; lines and types do not.
    execute(workspace.command("strip").arg("--strip-debug").arg(&packed))?;
    for (from, to) in DATA {
        stage::copy_all(&content.join(from), &data.join("data").join(to), &|_| true)?;
    }
    let info = root.join(format!("{name}.dist-info"));
    for licence in ["LICENSE-MIT", "LICENSE-APACHE", "third-party-licenses.txt"] {
        stage::copy(&content.join(licence), &info.join("licenses").join(licence))?;
    }
    let readme = fs::read_to_string(content.join("README.md")).context("cannot read README.md")?;
    stage::write(&info.join("METADATA"), &metadata(&version, &readme))?;
    let tags = tags(&fs::read(&packed).with_context(|| packed.display().to_string())?)?;
    let tags = tags.iter().map(|tag| format!("Tag: py3-none-{tag}\n"));
    let tags = tags.collect::<Vec<_>>().concat();
    stage::write(
        &info.join("WHEEL"),
        &format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\n{tags}"),
    )?;
    let out = folder(workspace).join("wheels");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot empty {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut pack = workspace.command(&python);
    pack.args(["-m", "wheel", "pack"])
        .arg(&root)
        .arg("--dest-dir")
        .arg(&out)
        .env("SOURCE_DATE_EPOCH", epoch(workspace)?.to_string());
    output(&mut pack)?;
    let mut wheels = fs::read_dir(&out).context("cannot list the wheels")?;
    let wheel = wheels.next().context("no wheel was made")?;
    Ok(wheel.context("cannot list the wheels")?.path())
}

/// Installs the wheel in an environment of its own without a network, uses the program without Python, and removes it.
pub(crate) fn check(workspace: &Workspace, program: &Path) -> Result<()> {
    let wheel = make(workspace, program, None)?;
    let home = folder(workspace).join("wheel-check");
    let python = home.join("bin/python3");
    let mut create = workspace.command("python3");
    execute(create.args(["-m", "venv", "--clear"]).arg(&home))?;
    let pip = |words: &[&str]| {
        let mut pip = workspace.command(&python);
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip.args(words);
        pip
    };
    execute(pip(&["install", "--no-index", "--no-deps"]).arg(&wheel))?;
    let installed = home.join("bin/roce-analyze");
    let mut analyse = workspace.command(&installed);
    // No variable leads to Python, or to this project.
    analyse.env_clear().arg("captures/write_bw_loss.pcap");
    let text = output(&mut analyse)?;
    if !text.contains("loss.network") {
        bail!("the installed program does not find the losses of the sample:\n{text}");
    }
    for (_, place) in DATA {
        let files = fs::read_dir(home.join(place)).with_context(|| format!("{place} was not installed"))?;
        if files.count() == 0 {
            bail!("{place} has no file");
        }
    }
    execute(&mut pip(&["uninstall", "--yes", "roce-analyze"]))?;
    if installed.exists() || home.join("share/man/man1/roce-analyze.1").exists() {
        bail!("pip uninstall leaves files behind");
    }
    println!(
        "{} was installed, used and removed",
        wheel.file_name().unwrap_or_default().to_string_lossy()
    );
    Ok(())
}

/// The metadata of a distribution (core metadata 2.1), with the README as its description.
fn metadata(version: &str, readme: &str) -> String {
    format!(
        "Metadata-Version: 2.1\nName: roce-analyze\nVersion: {version}\n\
         Summary: Per-flow congestion timelines of RoCEv2 traffic, from captures\n\
         License: MIT OR Apache-2.0\nKeywords: RoCE,RDMA,ECN,PFC,DCQCN,pcap\n\
         Classifier: Environment :: Console\nClassifier: Operating System :: POSIX :: Linux\n\
         Classifier: Topic :: System :: Networking :: Monitoring\n\
         Description-Content-Type: text/markdown\n\n{readme}"
    )
}

/// The platforms on which a program runs: of manylinux if it needs only libraries that all of these have, else this one's alone.
fn tags(program: &[u8]) -> Result<Vec<String>> {
    let needs = crate::elf::needs(program)?;
    let machine = match needs.machine {
        Machine::X86_64 => "x86_64",
        Machine::Aarch64 => "aarch64",
    };
    if needs.libraries.is_empty() {
        return Ok(vec![
            format!("manylinux2014_{machine}"),
            format!("manylinux_2_17_{machine}"),
            format!("musllinux_1_1_{machine}"),
        ]);
    }
    let is_known = |library: &String| LIBRARIES.contains(&library.as_str());
    match needs.glibc {
        Some((major, minor)) if needs.libraries.iter().all(is_known) => {
            Ok(vec![format!("manylinux_{major}_{minor}_{machine}")])
        }
        _ => Ok(vec![format!("linux_{machine}")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_xtask_run_where_glibc_is() {
        let program = std::env::current_exe().unwrap();
        let tags = tags(&fs::read(program).unwrap()).unwrap();
        assert_eq!(tags.len(), 1, "{tags:?}");
        assert!(tags[0].starts_with("manylinux_2_"), "{tags:?}");
    }

    #[test]
    fn a_file_that_is_no_program_has_no_tags() {
        assert!(tags(b"#!/bin/sh\n").is_err());
        assert!(tags(b"\x7fELF\x02\x01").is_err());
    }
}
