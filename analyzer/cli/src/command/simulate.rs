//! `simulate`: a scenario becomes captures and their truth. What happens in it is left to the simulator.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Args;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use roce_files::{Access, FilePlace, read_text};
use roce_model::text::clean;
use roce_sim::units::Picos;
use roce_sim::{Counters, OutputPlan, Scenario, demos};

use crate::command::invocation::{Invocation, RunCommand};

/// Maximum size of a scenario: larger files are refused.
const MAX_SCENARIO_BYTES: u64 = 1 << 20;

/// Simulate a scenario: write its capture, and the truth about it
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze simulate incast -o incast.pcapng --truth truth.json
      the capture of a demo, and what happened in it
  roce-analyze simulate my.toml -o my.pcapng --set switch.kmin=100KB
      a scenario of your own, with one value changed
  roce-analyze simulate incast --counters counters
      the counters of its switches and hosts")]
pub(crate) struct Simulate {
    /// A scenario: a TOML file, or the name of a demo
    #[arg(add = ArgValueCandidates::new(candidates))]
    pub(crate) scenario: PathBuf,

    /// Write the capture to FILE; with several taps, each has a file with its name before the extension (FILE-TAP.pcapng)
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["truth", "counters"])]
    pub(crate) output: Option<PathBuf>,

    /// Write the truth as JSON: what happened, and what each tap could see; '-' is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,

    /// Write the counters of all ports into DIR: samples.jsonl, neighbors.json, fabric.toml, and a recorded SONiC switch for each switch
    #[arg(long, value_name = "DIR")]
    pub(crate) counters: Option<PathBuf>,

    /// Replace existing files
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Time between two readings of the counters
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = parse_time, requires = "counters")]
    pub(crate) counters_every: Picos,

    /// Replace a value of the scenario, such as switch.kmin=100KB or flow.0.message=1MiB (can be repeated)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override)]
    pub(crate) set: Vec<(String, String)>,
}

/// The names of the demos, for completions.
fn candidates() -> Vec<CompletionCandidate> {
    demos::DEMOS.iter().map(|demo| demo.name.into()).collect()
}

fn parse_time(text: &str) -> Result<Picos, String> {
    match text.parse::<Picos>() {
        Ok(Picos::ZERO) => Err("a time above 0 is expected, such as 1ms".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_override(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("a key and a value are expected, such as switch.kmin=100KB".to_owned()),
    }
}

impl RunCommand for Simulate {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        simulate(self)
    }
}

/// Simulates, and names the files that it wrote on standard output.
fn simulate(arguments: &Simulate) -> anyhow::Result<ExitCode> {
    let text = text(&arguments.scenario)?;
    let scenario = Scenario::with_overrides(&text, &arguments.set)
        .with_context(|| arguments.scenario.display().to_string())?;
    let plan = arguments
        .output
        .clone()
        .map_or(OutputPlan::Discard, |path| OutputPlan::Files {
            path,
            overwrite: arguments.overwrite,
        });
    // A name that is taken is refused before anything is simulated.
    let truth_place = match &arguments.truth {
        Some(path) if path != Path::new("-") => Some(FilePlace::named(path)?),
        _ => None,
    };
    if let Some(place) = &truth_place {
        place.refuse_taken(arguments.overwrite)?;
    }
    let mut written = plan.paths(&scenario);
    let truth = match &arguments.counters {
        None => roce_sim::simulate(&scenario, &plan)?,
        Some(dir) => {
            let every = arguments.counters_every;
            let (truth, counters) = roce_sim::simulate_with_counters(&scenario, &plan, every)?;
            counters.write(dir, &truth, arguments.overwrite)?;
            written.extend(
                [Counters::SAMPLES, Counters::NEIGHBORS, Counters::INVENTORY].map(|name| dir.join(name)),
            );
            truth
        }
    };
    let mut out = Vec::new();
    if let Some(path) = &arguments.truth {
        let json = truth.to_json().context("the truth cannot be written as JSON")?;
        if let Some(place) = &truth_place {
            let mut file = place.begin(arguments.overwrite, Access::Umask)?;
            writeln!(file, "{json}").with_context(|| format!("{}: cannot be written", path.display()))?;
            file.finish()?;
            written.push(path.clone());
        } else {
            written.clear();
            out.extend_from_slice(json.as_bytes());
            out.push(b'\n');
        }
    }
    for path in written {
        writeln!(out, "{}", clean(&path.to_string_lossy()))?;
    }
    let mut stdout = std::io::stdout();
    stdout.write_all(&out)?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The text of a scenario: of a file, or of the demo with that name when there is no such file.
fn text(path: &Path) -> anyhow::Result<String> {
    let demo = demos::DEMOS.iter().find(|demo| Path::new(demo.name) == path);
    if let Some(demo) = demo.filter(|_| !path.exists()) {
        return Ok(demo.toml.to_owned());
    }
    read_text(path, MAX_SCENARIO_BYTES).map_err(|error| {
        let names: Vec<&str> = demos::DEMOS.iter().map(|demo| demo.name).collect();
        let path = path.display();
        if error.is_not_found() {
            anyhow!(
                "{path}: neither a file nor a demo; hint: the demos are {}",
                names.join(", ")
            )
        } else {
            anyhow!(error).context(format!("{path}: the scenario cannot be read"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_set_by_path() {
        let parsed = |text| parse_override(text).ok();
        let pair = |key: &str, value: &str| Some((key.to_owned(), value.to_owned()));
        assert_eq!(parsed("switch.kmin=100KB"), pair("switch.kmin", "100KB"));
        assert_eq!(parsed("title = a = b"), pair("title", "a = b"));
        assert_eq!((parsed("switch"), parsed("=1")), (None, None));
    }

    #[test]
    fn every_demo_is_a_scenario() {
        for demo in demos::DEMOS {
            let text = text(Path::new(demo.name)).unwrap();
            assert!(Scenario::parse(&text).is_ok(), "{}", demo.name);
        }
    }
}
