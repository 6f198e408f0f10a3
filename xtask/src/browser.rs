//! `cargo xtask browser`: whether reports show what runs say, and do what they offer, in a browser.
//!
//! The checks are `tests/browser/*.mjs`: node runs them, with playwright-core and the system's chromium,
//! over the reports of four demos and of a real capture. Expected values come from the runs' documents
//! and, by `tests/browser/expected.py`, from their datasets. npm's packages and all results are in the
//! target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::need::{self, CHROMIUM, NODE};
use crate::python::reader;
use crate::workspace::{Profile, Workspace, execute, no_arguments, on_path, step};

pub(crate) const ABOUT: &str = "open reports in a browser: their numbers, use and looks";

/// Folder of the checks.
const CHECKS: &str = "tests/browser";

/// The pages of `reports/`, and the arguments that make them.
pub(crate) const PAGES: [(&str, &[&str]); 1] = [(
    "incast",
    &[
        "--host-name",
        "h2",
        "--bin",
        "100us",
        "--link-rate",
        "25G",
        "captures/demos/incast-h2.pcapng",
        "captures/demos/incast-h7.pcapng",
    ],
)];

/// The reports that are opened: their names in the checks, and what makes them. First those that everybody can open.
const REPORTS: [(&str, &[&str]); 6] = [
    PAGES[0],
    ("lossy", &["--bin", "100us", "captures/demos/lossy.pcapng"]),
    (
        "pause-storm",
        &[
            "--bin",
            "100us",
            "--link-rate",
            "25G",
            "captures/demos/pause-storm-leaf1-h1.pcapng",
            "captures/demos/pause-storm-leaf1-h3.pcapng",
        ],
    ),
    (
        "training",
        &[
            "--bin",
            "100us",
            "captures/demos/training-h1.pcapng",
            "captures/demos/training-h3.pcapng",
        ],
    ),
    ("write_bw_loss", &["--bin", "10ms", "captures/write_bw_loss.pcap"]),
    (
        "counters",
        &[
            "--bin",
            "10ms",
            "captures/write_bw_loss.pcap",
            "--samples",
            "TARGET/tmp/counters",
        ],
    ),
];
/// Stands for the target folder in the arguments: a test of the command line leaves a recording there.
const TARGET: &str = "TARGET";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    no_arguments("browser", arguments)?;
    let python = reader(workspace)?;
    let browser = Browser::find(workspace)?;
    step("build, and pages with markup", || {
        let package = ["test", "--quiet", "--locked", "--package", "roce-analyze"];
        let tests = ["--test", "integration", "is_no_markup"];
        execute(workspace.cargo(package).args(tests))
    })?;
    step("reports, in a browser", || browser.check(workspace, &python))
}

/// A browser, and what drives it.
pub(crate) struct Browser {
    chromium: PathBuf,
    /// Folder of npm's packages and of reports.
    folder: PathBuf,
}

impl Browser {
    /// Sees to it that everything is there that checks in a browser need.
    pub(crate) fn find(workspace: &Workspace) -> Result<Self> {
        need::ensure(&[CHROMIUM, NODE])?;
        let chromium = on_path("chromium").context("no chromium")?;
        let folder = workspace.target.join("browser");
        packages(workspace, &folder).context("npm has no playwright-core")?;
        Ok(Self { chromium, folder })
    }

    /// Makes the reports with the program that the tests have built, and checks them and the pages that the tests have kept.
    pub(crate) fn check(&self, workspace: &Workspace, python: &Path) -> Result<()> {
        self.make(workspace)?;
        let mut expected = workspace.command(python);
        expected.arg(format!("{CHECKS}/expected.py")).arg(&self.folder);
        execute(expected.args(REPORTS.map(|(name, _)| name)))?;
        execute(&mut self.node(workspace, "main.mjs"))
    }

    /// Dataset of two hosts, below the folder of the checks.
    pub(crate) const TWO_HOSTS: &str = "hosts";

    /// Checks the page of two hosts that a VM has recorded, and takes pictures of it.
    pub(crate) fn check_two_hosts(&self, workspace: &Workspace, python: &Path) -> Result<()> {
        let mut expected = workspace.command(python);
        expected.arg(format!("{CHECKS}/expected.py")).arg(&self.folder);
        execute(expected.arg(Self::TWO_HOSTS))?;
        execute(&mut self.node(workspace, "hosts.mjs"))
    }

    /// Takes the pictures of the documents, and in the target folder those of all reports, in every width and colour.
    pub(crate) fn photograph(&self, workspace: &Workspace) -> Result<()> {
        execute(&mut workspace.cargo(["build", "--quiet", "--locked", "--package", "roce-analyze"]))?;
        self.make(workspace)?;
        execute(
            self.node(workspace, "screenshots.mjs")
                .arg(workspace.root.join("reports"))
                .arg(workspace.root.join("docs/images")),
        )?;
        println!(
            "all reports: {}",
            workspace.shown(&self.folder.join("screenshots"))
        );
        Ok(())
    }

    fn make(&self, workspace: &Workspace) -> Result<()> {
        for (name, arguments) in REPORTS {
            let mut analyze = workspace.command(workspace.program(Profile::Dev, "roce-analyze"));
            let target = workspace.target.display().to_string();
            analyze
                .args(arguments.iter().map(|argument| argument.replace(TARGET, &target)))
                .args(["--format", "none", "--overwrite", "--output"]);
            execute(analyze.arg(self.folder.join(name)))?;
        }
        Ok(())
    }

    fn node(&self, workspace: &Workspace, script: &str) -> Command {
        let mut node = workspace.command("node");
        node.env("CHROMIUM", &self.chromium)
            .args(["--test-reporter", "spec"])
            .arg(format!("{CHECKS}/{script}"))
            .arg(&self.folder);
        node
    }
}

/// Installs what the lock file says into `folder`, unless it is there.
fn packages(workspace: &Workspace, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let installed = folder.join("node_modules/.package-lock.json").is_file();
    let mut same = installed;
    for name in ["package.json", "package-lock.json"] {
        let (from, to) = (workspace.root.join(CHECKS).join(name), folder.join(name));
        let wanted = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        same &= fs::read(&to).is_ok_and(|there| there == wanted);
        fs::write(&to, wanted).with_context(|| format!("cannot write {}", to.display()))?;
    }
    if same {
        return Ok(());
    }
    println!(
        "installing playwright-core into {} (once)",
        workspace.shown(folder)
    );
    let mut npm = workspace.command("npm");
    npm.current_dir(folder).args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--cache",
        "npm-cache",
    ]);
    execute(npm.args(["--loglevel", "error", "--fetch-retries", "1"]))
}
