//! Runs a scenario: `simulate SCENARIO.toml -o out.pcapng [--truth truth.json] [--set key=value]...`. The scenario is a
//! file or the name of a demo.

#![expect(clippy::print_stderr, reason = "an example talks to the terminal")]

use std::process::ExitCode;
use std::time::Instant;

use roce_sim::{OutputPlan, Scenario, demos, simulate};

struct Arguments {
    scenario: String,
    output: OutputPlan,
    truth: Option<String>,
    overrides: Vec<(String, String)>,
}

fn arguments() -> Option<Arguments> {
    let mut found = Arguments {
        scenario: String::new(),
        output: OutputPlan::Discard,
        truth: None,
        overrides: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-o" => {
                found.output = OutputPlan::Files {
                    path: arguments.next()?.into(),
                    overwrite: true,
                };
            }
            "--truth" => found.truth = Some(arguments.next()?),
            "--set" => {
                let text = arguments.next()?;
                let (path, value) = text.split_once('=')?;
                found.overrides.push((path.to_owned(), value.to_owned()));
            }
            _ => found.scenario = argument,
        }
    }
    (!found.scenario.is_empty()).then_some(found)
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let toml = match demos::DEMOS.iter().find(|demo| demo.name == arguments.scenario) {
        Some(demo) => demo.toml.to_owned(),
        None => std::fs::read_to_string(&arguments.scenario)?,
    };
    let scenario = Scenario::with_overrides(&toml, &arguments.overrides)?;
    let begin = Instant::now();
    let truth = simulate(&scenario, &arguments.output)?;
    let took = begin.elapsed();
    let sent: u64 = truth.flows.iter().map(|flow| flow.packets_sent).sum();
    let data: u64 = truth.flows.iter().map(|flow| flow.data_packets).sum();
    eprintln!("{}: {took:.2?}", truth.title);
    eprintln!(
        "packets {sent}, data {data}, CE {}, CNPs {}, lost {}, NAKs {}, retransmission runs {}, pauses {}, stalls and other episodes {}",
        truth.ce_marks.len(),
        truth.cnps.len(),
        truth.losses.len(),
        truth.naks.len(),
        truth.retransmission_runs.len(),
        truth.pauses.len(),
        truth.episodes.len(),
    );
    for path in arguments.output.paths(&scenario) {
        eprintln!("{}: {} bytes", path.display(), std::fs::metadata(&path)?.len());
    }
    for tap in &truth.taps {
        let observable = tap.holes.iter().filter(|hole| hole.observable).count();
        eprintln!(
            "tap {}: {} records, {} lost, {} holes ({observable} observable), {} lost downstream",
            tap.name,
            tap.records,
            tap.records_lost,
            tap.holes.len(),
            tap.lost_downstream.len(),
        );
    }
    for finding in &truth.findings {
        eprintln!(
            "{}: {} (seen at {})",
            finding.id,
            finding.why,
            finding.taps.join(", ")
        );
    }
    for step in &truth.steps {
        eprintln!("step {}: {} us", step.step, (step.end - step.begin) / 1_000);
    }
    if let Some(path) = &arguments.truth {
        std::fs::write(path, truth.to_json()?)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!(
            "usage: simulate SCENARIO.toml|DEMO [-o out.pcapng] [--truth truth.json] [--set key=value]..."
        );
        return ExitCode::FAILURE;
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
