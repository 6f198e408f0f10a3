//! `roce-truth [--seeds N] [--first SEED] [--seed SEED] [-v] [-o DIR]`: the table over random scenarios, or one of them
//! in detail. `cargo xtask truth` starts it.

#![expect(clippy::print_stderr, reason = "it is a command")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use roce_model::SinkError;
use roce_truth::{CATEGORIES, Case, Table};

/// Scenarios of a table.
const SEEDS: u64 = 240;

struct Arguments {
    seeds: std::ops::Range<u64>,
    verbose: bool,
    output: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = parse(&arguments)
        .map_err(SinkError::from)
        .and_then(|arguments| run(&arguments));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Arguments, String> {
    let (mut first, mut seeds) = (1, SEEDS);
    let mut parsed = Arguments {
        seeds: 0..0,
        verbose: false,
        output: None,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or_else(|| format!("{argument} needs a value"))
        };
        let number = |text: &String| text.parse::<u64>().map_err(|_| format!("'{text}' is no number"));
        match argument.as_str() {
            "--seeds" => seeds = number(value()?)?,
            "--first" => first = number(value()?)?,
            "--seed" => (first, seeds) = (number(value()?)?, 1),
            "-v" => parsed.verbose = true,
            "-o" => parsed.output = Some(PathBuf::from(value()?)),
            _ => return Err(format!("the argument '{argument}' is not understood")),
        }
    }
    parsed.seeds = first..first.saturating_add(seeds);
    Ok(parsed)
}

fn run(arguments: &Arguments) -> Result<(), SinkError> {
    let mut table = Table::default();
    let mut out = std::io::stdout().lock();
    for seed in arguments.seeds.clone() {
        let temporary = tempfile::tempdir()?;
        let folder = match &arguments.output {
            Some(folder) => {
                std::fs::create_dir_all(folder)?;
                folder.as_path()
            }
            None => temporary.path(),
        };
        let case = Case::run(seed, folder).map_err(|error| format!("seed {seed}: {error}"))?;
        if arguments.output.is_some() {
            std::fs::write(folder.join(format!("{seed}.toml")), &case.scenario.toml)?;
            std::fs::write(folder.join(format!("{seed}.json")), case.truth.to_json()?)?;
        }
        let scores = table.add(&case);
        if arguments.verbose {
            for (category, score) in CATEGORIES.iter().zip(scores) {
                for note in &score.notes {
                    writeln!(out, "{seed}: {}: {note}", category.name)?;
                }
            }
        }
    }
    write!(out, "{table}")?;
    Ok(())
}
