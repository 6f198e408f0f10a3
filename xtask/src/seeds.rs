//! `cargo xtask seeds`: what runs for long, in simulated time, one world for each seed (`analyzer/model/src/seeds.rs`).

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, execute};

pub(crate) const ABOUT: &str =
    "live runs, fleets, the endpoint and uploads in simulated time; 10,000 seeds of each by default";
pub(crate) const ARGUMENTS: &str = "[NAME] [--seeds N] [--first SEED]";

/// Seeds of a night.
const SEEDS: u64 = 10_000;

/// Worlds of one kind.
struct WorldKind {
    name: &'static str,
    package: &'static str,
    /// The test that runs them, and features that it needs.
    test: &'static [&'static str],
}

const WORLDS: [WorldKind; 4] = [
    WorldKind {
        name: "live",
        package: "roce-pipeline",
        test: &["--features", "live", "live::tests"],
    },
    WorldKind {
        name: "fleet",
        package: "roce-analyze",
        test: &["command::fleet::tests"],
    },
    WorldKind {
        name: "endpoint",
        package: "roce-endpoint",
        test: &["server::simulated"],
    },
    WorldKind {
        name: "uploads",
        package: "roce-analyze",
        test: &["upload::tests"],
    },
];

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (mut seeds, mut first, mut only) = (SEEDS, 0, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let number = match argument.as_str() {
            "--seeds" => &mut seeds,
            "--first" => &mut first,
            name if WORLDS.iter().any(|world| world.name == name) => {
                only = Some(name);
                continue;
            }
            other => bail!("'{other}' is not understood\nhint: {ARGUMENTS}"),
        };
        let text = arguments
            .next()
            .with_context(|| format!("{argument} needs a number"))?;
        *number = text
            .parse()
            .with_context(|| format!("'{text}' is not a number"))?;
    }
    for world in WORLDS
        .iter()
        .filter(|world| only.is_none_or(|name| world.name == name))
    {
        let mut cargo = workspace.cargo(["test", "--quiet", "--locked", "--lib", "--package", world.package]);
        cargo.args(world.test);
        cargo.env("ROCE_SEEDS", seeds.to_string());
        cargo.env("ROCE_FIRST_SEED", first.to_string());
        execute(&mut cargo)?;
        println!("{}: {seeds} seeds from {first} on hold.", world.name);
    }
    Ok(())
}
