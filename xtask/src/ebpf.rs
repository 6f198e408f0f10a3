//! `cargo xtask build-ebpf`: the kernel programs, from `ebpf/` to the object that the probe embeds.
//!
//! They need a compiler with the sources of its standard library and a linker for BPF. Looked for in this order: the folder that
//! `EBPF_TOOLCHAIN` names, rustup's nightly with rust-src, and what `ebpf/toolchain-debian.sh` makes of Debian's packages.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::elf;
use crate::workspace::{Workspace, execute, on_path, output, succeeds};

pub(crate) const ABOUT: &str =
    "build the kernel programs; --check: the committed object is what the sources give";
pub(crate) const ARGUMENTS: &str = "[--check]";

const TARGET: &str = "bpfel-unknown-none";
/// The processor whose registers the probes read.
const ARCHITECTURE: &str = "x86_64";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let check_only = match arguments {
        [] => false,
        [option] if option == "--check" => true,
        _ => bail!("the arguments are not understood\nhint: cargo xtask build-ebpf {ARGUMENTS}"),
    };
    let toolchain = match Toolchain::find(workspace)? {
        Some(toolchain) => toolchain,
        None => Toolchain::make(workspace)?,
    };
    if check_only {
        return check(workspace, &toolchain);
    }
    let built = build(workspace, &toolchain)?;
    let object = object(workspace);
    fs::write(&object, &built).with_context(|| format!("cannot write {}", object.display()))?;
    let versions = toolchain.versions()?;
    let beside = versions_file(workspace);
    fs::write(&beside, &versions).with_context(|| format!("cannot write {}", beside.display()))?;
    println!(
        "{}: {} bytes, with\n{versions}",
        workspace.shown(&object),
        built.len()
    );
    Ok(())
}

/// Holds that the committed object is what the sources give.
pub(crate) fn check(workspace: &Workspace, toolchain: &Toolchain) -> Result<()> {
    let built = build(workspace, toolchain)?;
    let (object, beside) = (object(workspace), versions_file(workspace));
    let committed = fs::read(&object).with_context(|| format!("cannot read {}", object.display()))?;
    let recorded =
        fs::read_to_string(&beside).with_context(|| format!("cannot read {}", beside.display()))?;
    if toolchain.versions()? == recorded {
        let (ours, theirs) = (elf::sections(&built)?, elf::sections(&committed)?);
        let names = ours.keys().chain(theirs.keys());
        let differ: Vec<&str> = names
            .filter(|name| ours.get(*name) != theirs.get(*name))
            .map(String::as_str)
            .collect();
        if !differ.is_empty() {
            bail!(
                "{} is not what the sources give: {} differ\nhint: run `cargo xtask build-ebpf`",
                workspace.shown(&object),
                differ.join(", ")
            );
        }
        println!(
            "   {} is what the sources give: {} sections and their relocations are equal",
            workspace.shown(&object),
            ours.len()
        );
        return Ok(());
    }
    println!("   another compiler or linker than the recorded one: whether the object works alike");
    let fresh = workspace.target.join("ebpf").join("fresh.o");
    fs::write(&fresh, &built).with_context(|| format!("cannot write {}", fresh.display()))?;
    let mut test = workspace.cargo([
        "test",
        "--quiet",
        "--package",
        "roce-probe",
        "--test",
        "kernel",
        "captures",
    ]);
    execute(test.env("ROCE_PROBE_OBJECT", &fresh))
}

fn object(workspace: &Workspace) -> PathBuf {
    workspace.root.join(format!("ebpf/object/roce-{ARCHITECTURE}.o"))
}

fn versions_file(workspace: &Workspace) -> PathBuf {
    workspace
        .root
        .join(format!("ebpf/object/roce-{ARCHITECTURE}.txt"))
}

/// The object's bytes.
fn build(workspace: &Workspace, toolchain: &Toolchain) -> Result<Vec<u8>> {
    let target = workspace.target.join("ebpf");
    let mut cargo = toolchain.command("cargo");
    cargo
        .current_dir(workspace.root.join("ebpf"))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--release",
            "-Z",
            "build-std=core",
            "--target",
            TARGET,
        ])
        // A released compiler lets nobody build its standard library; it can all the same.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", &target)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            format!("--cfg=bpf_target_arch=\"{ARCHITECTURE}\""),
        )
        .env("PATH", toolchain.path()?);
    execute(&mut cargo)?;
    let built = target.join(TARGET).join("release").join("roce");
    fs::read(&built).with_context(|| format!("cannot read {}", built.display()))
}

/// A compiler that can build its own core, and a linker.
pub(crate) enum Toolchain {
    /// A folder with bin/rustc, bin/cargo and bin/bpf-linker.
    Folder(PathBuf),
    /// rustup's nightly; the folder has bpf-linker.
    Nightly(PathBuf),
}

impl Toolchain {
    /// One that is there.
    pub(crate) fn find(workspace: &Workspace) -> Result<Option<Self>> {
        if let Some(folder) = std::env::var_os("EBPF_TOOLCHAIN") {
            let folder = PathBuf::from(folder);
            if !folder.join("bin/bpf-linker").is_file() {
                bail!(
                    "EBPF_TOOLCHAIN names {}, which has no bin/bpf-linker",
                    folder.display()
                );
            }
            return Ok(Some(Self::Folder(folder)));
        }
        if has_sources()
            && let Some(linker) = workspace.tool("bpf-linker")
        {
            let folder = linker.parent().map(Path::to_owned).unwrap_or_default();
            return Ok(Some(Self::Nightly(folder)));
        }
        let made = made(workspace);
        Ok(made
            .join("bin/bpf-linker")
            .is_file()
            .then_some(Self::Folder(made)))
    }

    /// Makes one.
    fn make(workspace: &Workspace) -> Result<Self> {
        if has_sources() {
            let linker = workspace.install("bpf-linker", "0.13.0")?;
            let folder = linker.parent().map(Path::to_owned).unwrap_or_default();
            return Ok(Self::Nightly(folder));
        }
        if on_path("apt-get").is_none() {
            bail!(
                "there is no compiler for BPF\nhint: `rustup toolchain install nightly --component rust-src`, then this again"
            );
        }
        let folder = made(workspace);
        println!(
            "making a compiler for BPF of Debian's packages in {} (once)",
            workspace.shown(&folder)
        );
        execute(
            workspace
                .command("bash")
                .arg("ebpf/toolchain-debian.sh")
                .arg(&folder),
        )?;
        Ok(Self::Folder(folder))
    }

    fn command(&self, program: &str) -> Command {
        match self {
            Self::Folder(folder) => {
                let mut command = Command::new(folder.join("bin").join(program));
                // Unpacked, not installed: it does not find its own libraries.
                command
                    .env("RUSTC", folder.join("bin/rustc"))
                    .env("LD_LIBRARY_PATH", folder.join("lib"));
                command
            }
            Self::Nightly(_) => {
                let mut command = Command::new("rustup");
                command.args(["run", "nightly", program]);
                // Set by the cargo that runs this chore.
                command
                    .env_remove("RUSTC")
                    .env_remove("CARGO")
                    .env_remove("RUSTUP_TOOLCHAIN");
                command
            }
        }
    }

    fn linkers(&self) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.join("bin"),
            Self::Nightly(folder) => folder.clone(),
        }
    }

    /// The search path with the linker in front.
    fn path(&self) -> Result<OsString> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.linkers()).chain(std::env::split_paths(&path));
        std::env::join_paths(all).context("the search path cannot be extended")
    }

    /// Versions that are recorded beside the object.
    fn versions(&self) -> Result<String> {
        let rustc = output(self.command("rustc").arg("-vV"))?;
        let wanted = |line: &&str| {
            ["rustc ", "release: ", "LLVM version: "]
                .iter()
                .any(|begin| line.starts_with(begin))
        };
        let lines: Vec<&str> = rustc.lines().filter(wanted).collect();
        let linker = output(Command::new(self.linkers().join("bpf-linker")).arg("--version"))?;
        Ok(format!("{}\n{}\n", lines.join("\n"), linker.trim()))
    }
}

/// Folder of a compiler that is built here.
fn made(workspace: &Workspace) -> PathBuf {
    workspace.target.join("ebpf-toolchain")
}

/// True if rustup has a nightly with the sources of the standard library.
fn has_sources() -> bool {
    let mut rustc = Command::new("rustup");
    rustc.args(["run", "nightly", "rustc", "--print", "sysroot"]);
    let sysroot = rustc.output().ok().filter(|output| output.status.success());
    sysroot.is_some_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout);
        Path::new(sysroot.trim())
            .join("lib/rustlib/src/rust/library/core")
            .is_dir()
    }) && succeeds(Command::new("rustup").arg("--version"))
}
