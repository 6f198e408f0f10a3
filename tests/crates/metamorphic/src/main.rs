//! `roce-metamorphic [--seeds N] [--first SEED] [--only TRANSFORMATION]... [--input TEXT] [--captures | --fixed] [--threads N]
//! [--write-open] [-v]`: copies of the project's captures and of random scenarios, and what their verdicts violate.
//! `cargo xtask metamorphic` starts it.

#![expect(clippy::print_stderr, reason = "it is a command")]

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use roce_metamorphic::{
    Cell, CopyOutcome, OpenList, Table, Transformation, cells, hunt, project_sources, root, simulated_sources,
};
use roce_model::{Sink, SinkError};

/// Simulated inputs.
const SEEDS: u64 = 200;
const THREADS: usize = 2;
/// The list of known violations, from the top of the project.
const OPEN: &str = "tests/crates/metamorphic/open.txt";

struct Arguments {
    seeds: std::ops::Range<u64>,
    only: Vec<&'static str>,
    input: Option<String>,
    captures: bool,
    fixed: bool,
    threads: usize,
    write_open: bool,
    keep: Option<PathBuf>,
    verbose: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // The copies that go through standard input are analysed by this program, too.
    if let Some((first, rest)) = arguments.split_first()
        && first == "--analyse"
    {
        return report(analyse(rest));
    }
    let texts: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    report(
        parse(&texts)
            .map_err(SinkError::from)
            .and_then(|arguments| run(&arguments)),
    )
}

fn report(result: Result<ExitCode, SinkError>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn analyse(arguments: &[OsString]) -> Result<ExitCode, SinkError> {
    struct NoOutput;
    impl Sink for NoOutput {}
    roce_analyze::analyse_arguments(arguments.iter().cloned(), &mut NoOutput)
}

fn parse(arguments: &[String]) -> Result<Arguments, String> {
    let (mut first, mut seeds) = (1, SEEDS);
    let mut parsed = Arguments {
        seeds: 0..0,
        only: Vec::new(),
        input: None,
        captures: false,
        fixed: false,
        threads: THREADS,
        write_open: false,
        keep: None,
        verbose: false,
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
            "--only" => {
                let name = value()?;
                let found =
                    Transformation::named(name).ok_or_else(|| format!("no transformation '{name}'"))?;
                parsed.only.push(found.name);
            }
            "--input" => parsed.input = Some(value()?.clone()),
            "--threads" => parsed.threads = usize::try_from(number(value()?)?).unwrap_or(THREADS),
            "--keep" => parsed.keep = Some(PathBuf::from(value()?)),
            "--captures" => parsed.captures = true,
            "--fixed" => parsed.fixed = true,
            "--write-open" => parsed.write_open = true,
            "-v" => parsed.verbose = true,
            _ => return Err(format!("the argument '{argument}' is not understood")),
        }
    }
    parsed.seeds = first..first.saturating_add(seeds);
    Ok(parsed)
}

fn run(arguments: &Arguments) -> Result<ExitCode, SinkError> {
    let mut list = if arguments.fixed {
        cells()?
    } else {
        let mut sources = project_sources()?;
        if !arguments.captures {
            sources.extend(simulated_sources(arguments.seeds.clone()));
        }
        sources.into_iter().map(Cell::whole).collect()
    };
    if let Some(text) = &arguments.input {
        list.retain(|cell| cell.source.name().contains(text.as_str()));
    }
    if !arguments.only.is_empty() {
        for cell in &mut list {
            cell.transformations
                .retain(|transformation| arguments.only.contains(&transformation.name));
        }
    }
    let outcomes = hunt(
        &list,
        arguments.threads,
        std::env::current_exe().ok().as_deref(),
        arguments.keep.as_deref(),
    )?;
    let mut table = Table::new(&outcomes);
    if arguments.verbose {
        table.named = usize::MAX;
    }
    write!(std::io::stdout().lock(), "{table}")?;
    let path = root().join(OPEN);
    let mut open = OpenList::parse(&std::fs::read_to_string(&path).unwrap_or_default());
    let violations: Vec<&CopyOutcome> = outcomes
        .iter()
        .filter(|outcome| !outcome.changes.is_empty())
        .collect();
    if arguments.write_open {
        let has = |transformation: &str, input: &str| {
            let mut violations = violations.iter();
            Transformation::named(transformation).is_none()
                || violations
                    .any(|outcome| outcome.transformation == transformation && outcome.input == input)
        };
        open.retain(has);
        for outcome in &violations {
            open.add(outcome.transformation, &outcome.input);
        }
        std::fs::write(&path, open.text())?;
    }
    let is_known = violations
        .iter()
        .all(|outcome| open.has(outcome.transformation, &outcome.input));
    Ok(if is_known {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
