//! `roce-truth [--seeds N | --nightly] [--first SEED] [--seed SEED] [--family NAME] [--threads N] [--causes] [--lateness] [--mrc] [--by-family] [--thin lose:N|keep:N|every:N] [-v] [-o DIR]`: the
//! table over random scenarios, or one of them in detail. With `--nightly` there are 5,000, and a floor that is not reached is a
//! failure. With `--causes` seeds are dealt to families of one cause each, with `--lateness` to
//! jobs that wait for a rank or a link, with `--mrc` to those of MRC. `--thin` takes records out of healthy captures: a false warning is a failure. `cargo xtask truth` starts it.

#![expect(clippy::print_stderr, reason = "it is a command")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use roce_model::SinkError;
use roce_truth::{
    CAUSES, FAMILIES, Family, LATENESS, MRC, Reach, RecordThinning, Table, cause_of, family_of, lateness_of,
    mrc_of, run_all, run_thinned,
};

/// Scenarios of a table.
const SEEDS: u64 = 600;
/// Scenarios of a nightly table.
const NIGHTLY_SEEDS: u64 = 5_000;
const THREADS: usize = 2;

struct Arguments {
    seeds: std::ops::Range<u64>,
    family: Option<&'static Family>,
    threads: usize,
    by_family: bool,
    /// The family of a seed.
    deal: fn(u64) -> &'static Family,
    /// Floors have to be reached.
    must_reach: bool,
    verbose: bool,
    thinning: Option<RecordThinning>,
    output: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = parse(&arguments)
        .map_err(SinkError::from)
        .and_then(|arguments| run(&arguments));
    match result {
        Ok(code) => code,
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
        family: None,
        threads: THREADS,
        by_family: false,
        deal: family_of,
        must_reach: false,
        verbose: false,
        thinning: None,
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
            "--threads" => parsed.threads = usize::try_from(number(value()?)?).unwrap_or(THREADS),
            "--family" => {
                let name = value()?;
                let names = || {
                    [FAMILIES, CAUSES, LATENESS, MRC]
                        .concat()
                        .iter()
                        .map(|family| family.name)
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                let family = Family::named(name).ok_or_else(|| format!("no family '{name}': {}", names()))?;
                parsed.family = Some(family);
            }
            "--thin" => parsed.thinning = Some(RecordThinning::parse(value()?)?),
            "--causes" => parsed.deal = cause_of,
            "--lateness" => parsed.deal = lateness_of,
            "--mrc" => parsed.deal = mrc_of,
            "--by-family" => parsed.by_family = true,
            "--nightly" => (seeds, parsed.must_reach) = (NIGHTLY_SEEDS, true),
            "-v" => parsed.verbose = true,
            "-o" => parsed.output = Some(PathBuf::from(value()?)),
            _ => return Err(format!("the argument '{argument}' is not understood")),
        }
    }
    parsed.seeds = first..first.saturating_add(seeds);
    Ok(parsed)
}

fn run(arguments: &Arguments) -> Result<ExitCode, SinkError> {
    let family = |seed| arguments.family.unwrap_or_else(|| (arguments.deal)(seed));
    let list: Vec<_> = arguments.seeds.clone().map(|seed| (family(seed), seed)).collect();
    let outcomes = match arguments.thinning {
        Some(thinning) => run_thinned(&list, arguments.threads, thinning),
        None => run_all(&list, arguments.threads, arguments.output.as_deref()),
    };
    let mut table = Table::default();
    table.by_family = arguments.by_family;
    let mut out = std::io::stdout().lock();
    for outcome in &outcomes {
        table.add(outcome);
        if let (true, Ok(scores)) = (arguments.verbose, &outcome.scores) {
            for (class, score) in scores.iter() {
                for note in &score.notes {
                    writeln!(out, "{} {}: {class}: {note}", outcome.family, outcome.seed)?;
                }
            }
        }
    }
    write!(out, "{table}")?;
    let is_calm = arguments.thinning.is_none() || table.all_healthy_are_calm();
    let is_reached = is_calm && (!arguments.must_reach || Reach::all_are_reached(table.scores()));
    Ok(if table.failed().is_empty() && is_reached {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
