//! `cargo xtask demo`: from a fresh clone to what happened in a capture.

use anyhow::Result;

use crate::need::{self, C_COMPILER, LIBPCAP};
use crate::workspace::{Profile, Workspace, execute, no_arguments, step};

pub(crate) const ABOUT: &str = "build, analyse a sample capture, write its dataset and report";

/// The sample: CE marks and CNPs.
const SAMPLE: &str = "captures/send_bw_ce_synthetic_cnp.pcap";

/// Captures and their datasets are all that the demo needs. The installed program has more commands, and is built for speed.
const FEATURES: &str = "jemalloc,parquet";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    no_arguments("demo", arguments)?;
    need::ensure(&[C_COMPILER, LIBPCAP])?;
    step("build (the first time takes some minutes)", || {
        let mut build = workspace.cargo([
            "build",
            "--profile",
            "demo",
            "--locked",
            "--package",
            "roce-analyze",
        ]);
        execute(build.args(["--no-default-features", "--features", FEATURES]))
    })?;

    let program = workspace.program(Profile::Demo, "roce-analyze");
    let dataset = workspace.target.join("demo-results");
    let (shown_program, shown_dataset) = (workspace.shown(&program), workspace.shown(&dataset));
    println!("\n$ {shown_program} {SAMPLE} --output {shown_dataset} --overwrite\n");
    execute(
        workspace
            .command(&program)
            .args([SAMPLE, "--overwrite", "--output"])
            .arg(&dataset),
    )?;

    println!(
        "\nThe dataset is in {shown_dataset}: Parquet, a folder for each table (columns: docs/schema.md)."
    );
    println!("More samples, and what to look for in them: captures/README.md");
    println!("A capture of your own: {shown_program} CAPTURE...");
    println!("The whole program, built for speed: cargo install --locked --path analyzer/cli");
    println!(
        "The report, for a browser: {}",
        workspace.shown(&dataset.join("report.html"))
    );
    Ok(())
}
