//! `cargo xtask seeds`: live runs in simulated time, one world for each seed (`analyzer/pipeline/src/live/tests.rs`).

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, execute};

pub(crate) const ABOUT: &str =
    "live runs in simulated time: every packet counted once, every run ends; 10,000 seeds by default";
pub(crate) const ARGUMENTS: &str = "[--seeds N] [--first SEED]";

/// Seeds of a night.
const SEEDS: u64 = 10_000;

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (mut seeds, mut first) = (SEEDS, 0);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let number = match argument.as_str() {
            "--seeds" => &mut seeds,
            "--first" => &mut first,
            other => bail!("'{other}' is not understood\nhint: {ARGUMENTS}"),
        };
        let text = arguments
            .next()
            .with_context(|| format!("{argument} needs a number"))?;
        *number = text
            .parse()
            .with_context(|| format!("'{text}' is not a number"))?;
    }
    let mut cargo = workspace.cargo(["test", "--quiet", "--locked", "--package", "roce-pipeline"]);
    cargo.args(["--features", "live", "--lib", "live::tests"]);
    cargo.env("ROCE_SEEDS", seeds.to_string());
    cargo.env("ROCE_FIRST_SEED", first.to_string());
    execute(&mut cargo)?;
    println!("{seeds} seeds from {first} on: every packet was counted once, and every run ended.");
    Ok(())
}
