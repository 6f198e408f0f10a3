//! `cargo xtask attack`: hostile inputs of many kinds at n, 2n and 4n items, and what the program takes for them.
//!
//! Each kind is analysed into JSON, text and, where the program can, a dataset, on one thread. Time is that of the processor in user
//! mode, so that other programs disturb little; memory is the peak of the resident set. Time must not grow faster than the
//! items, memory not beyond the kind's bound. A run that exceeds a limit of time is repeated, and its fastest time counts.

mod frames;
mod kinds;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::need::{self, C_COMPILER, LIBPCAP, TIME};
use crate::workspace::{Profile, Workspace, execute, line, step, succeeds};
use kinds::{Form, Kind, Memory};

pub(crate) const ABOUT: &str = "hostile inputs at n, 2n, 4n: time and memory must grow no faster";
pub(crate) const ARGUMENTS: &str = "[--items N] [--only TEXT]... [--bin PROGRAM]";

/// Items of most kinds, n.
const ITEMS: u64 = 50_000;
/// Items of the quick form, a part of `cargo xtask test`.
const QUICK_ITEMS: u64 = 1_000;
/// Maximum growth of the time from n to 4n. Linear is 4, quadratic 16; the rest is noise, caches and sorting.
const MAX_GROWTH: f64 = 7.0;
/// Times at n below this are not compared: the clock has steps of 0.01 s, and what starts and ends a run is a large part of it.
const MIN_SECONDS: f64 = 0.1;
/// Maximum time of an item, at 4n, in microseconds, in runs of at least [`MIN_LONG_SECONDS`].
const MAX_ITEM_MICROSECONDS: f64 = 500.0;
/// Shorter runs of few items are mostly start and end, and those of a build without optimisation are slow.
const MIN_LONG_SECONDS: f64 = 5.0;
/// Runs of one input whose time exceeds a limit.
const ATTEMPTS: usize = 3;
/// Maximum memory of [`Memory::PerItem`] without items, in MB.
const BASE_MEGABYTES: u64 = 128;

struct Options {
    items: u64,
    /// Kinds with one of these texts in their name; empty for all.
    only: Vec<String>,
    program: Option<PathBuf>,
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
struct RunCost {
    seconds: f64,
    megabytes: f64,
}

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    need::ensure(&[TIME])?;
    let program = if let Some(program) = &options.program {
        fs::canonicalize(program).with_context(|| program.display().to_string())?
    } else {
        need::ensure(&[C_COMPILER, LIBPCAP])?;
        let build = ["build", "--release", "--locked", "--package", "roce-analyze"];
        step("build", || execute(&mut workspace.cargo(build)))?;
        workspace.program(Profile::Release, "roce-analyze")
    };
    let chosen = AttackChoice {
        only: &options.only,
        outputs: usize::MAX,
    };
    attack(workspace, &program, options.items, &chosen)
}

/// The quick form: few items, each kind in one of the outputs, by the program of the tests.
pub(crate) fn quick(workspace: &Workspace) -> Result<()> {
    let program = workspace.program(Profile::Dev, "roce-analyze");
    attack(
        workspace,
        &program,
        QUICK_ITEMS,
        &AttackChoice {
            only: &[],
            outputs: 1,
        },
    )
}

/// Kinds of inputs, all of them.
fn all_kinds() -> impl Iterator<Item = &'static Kind> {
    kinds::KINDS
        .iter()
        .chain(kinds::transports::KINDS)
        .chain(kinds::texts::KINDS)
        .chain(kinds::containers::KINDS)
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        items: ITEMS,
        only: Vec::new(),
        program: None,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let value = arguments
            .next()
            .with_context(|| format!("{argument} needs a value\nhint: {ARGUMENTS}"))?;
        match argument.as_str() {
            "--items" => {
                options.items = value
                    .parse()
                    .ok()
                    .filter(|items| (1_000..=10_000_000).contains(items))
                    .with_context(|| format!("--items: '{value}' is no number from 1000 to 10000000"))?;
            }
            "--only" => options.only.push(value.clone()),
            "--bin" => options.program = Some(value.into()),
            other => bail!("'{other}' is not understood\nhint: {ARGUMENTS}"),
        }
    }
    Ok(options)
}

/// Selection of kinds and outputs.
struct AttackChoice<'a> {
    /// Kinds with one of these texts in their name; empty for all.
    only: &'a [String],
    /// Outputs of a kind: the first one of each kind is the next one of all.
    outputs: usize,
}

fn attack(workspace: &Workspace, program: &Path, items: u64, chosen: &AttackChoice<'_>) -> Result<()> {
    let folder = workspace.target.join("attack");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let small = workspace.root.join("captures").join("rping.pcap");
    let mut outputs = vec!["json", "text"];
    let mut dataset = Command::new(program);
    dataset
        .arg(&small)
        .args(["--format", "none", "--overwrite", "-o"]);
    if succeeds(dataset.arg(folder.join("dataset"))) {
        outputs.push("dataset");
    }
    println!("| kind | output | n | s at n | 2n | 4n | growth | us/item | MB at n | 2n | 4n | MB allowed |");
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut faults = Vec::new();
    let is_chosen = |kind: &&Kind| {
        chosen.only.is_empty() || chosen.only.iter().any(|text| kind.name.contains(text.as_str()))
    };
    for (number, kind) in all_kinds().filter(is_chosen).enumerate() {
        let n = (items * kind.per_thousand / 1_000).max(1);
        let mut sizes = Vec::new();
        for items in [n, 2 * n, 4 * n] {
            sizes.push((
                items,
                write(kind, items, &folder).with_context(|| kind.name.to_owned())?,
            ));
        }
        for output in outputs
            .iter()
            .cycle()
            .skip(number)
            .take(outputs.len().min(chosen.outputs))
        {
            let runs: Vec<(u64, Vec<PathBuf>)> = sizes
                .iter()
                .map(|(items, inputs)| (*items, arguments(kind, inputs, output, &folder, &small)))
                .collect();
            let found = match fastest(&folder, program, &runs) {
                Ok(taken) => {
                    println!("{}", row(kind, output, &taken));
                    time_fault(&taken)
                        .into_iter()
                        .chain(memory_fault(kind, &taken))
                        .collect()
                }
                Err(error) => vec![format!("{error:#}")],
            };
            let named = found
                .iter()
                .map(|fault| format!("{}, {output}: {fault} ({})", kind.name, kind.about));
            faults.extend(named);
        }
        for file in sizes.iter().flat_map(|(_, inputs)| inputs) {
            fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
    }
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    if faults.is_empty() {
        println!("\nNo kind grows faster than its items, and none takes more memory than allowed.");
        return Ok(());
    }
    bail!("{}", faults.join("\n       "))
}

/// Costs of the runs of one kind and output, each with its number of items. Where the times are a fault, it is
/// the fastest of several.
fn fastest(folder: &Path, program: &Path, runs: &[(u64, Vec<PathBuf>)]) -> Result<Vec<(u64, RunCost)>> {
    let mut taken = Vec::new();
    for (items, arguments) in runs {
        taken.push((*items, measure(folder, program, arguments)?));
    }
    for _ in 1..ATTEMPTS {
        if time_fault(&taken).is_none() {
            break;
        }
        for ((_, one), (_, arguments)) in taken.iter_mut().zip(runs) {
            one.seconds = one.seconds.min(measure(folder, program, arguments)?.seconds);
        }
    }
    Ok(taken)
}

/// Writes the inputs of a kind.
fn write(kind: &Kind, items: u64, folder: &Path) -> Result<Vec<PathBuf>> {
    let (ending, content) = match &kind.form {
        Form::Capture(content) | Form::Compressed(_, content) | Form::Twice(content) => ("pcap", content),
        Form::File("--config", content) => ("toml", content),
        Form::File(_, content) => ("log", content),
    };
    let path = folder.join(format!("{}-{items}.{ending}", kind.name));
    let failed = || format!("cannot write {}", path.display());
    let mut out = BufWriter::new(File::create(&path).with_context(failed)?);
    content(items, &mut out).with_context(failed)?;
    out.flush().with_context(failed)?;
    drop(out);
    match kind.form {
        Form::Compressed(ending, _) => {
            let program = if ending == "gz" { "gzip" } else { "zstd" };
            execute(Command::new(program).arg("-fqk").arg(&path))?;
            fs::remove_file(&path).with_context(failed)?;
            Ok(vec![path.with_extension(format!("pcap.{ending}"))])
        }
        Form::Twice(_) => {
            let second = path.with_extension("second.pcap");
            fs::copy(&path, &second).with_context(|| format!("cannot write {}", second.display()))?;
            Ok(vec![path, second])
        }
        Form::Capture(_) | Form::File(..) => Ok(vec![path]),
    }
}

fn arguments(kind: &Kind, inputs: &[PathBuf], output: &str, folder: &Path, small: &Path) -> Vec<PathBuf> {
    let mut arguments: Vec<PathBuf> = match kind.form {
        Form::File(option, _) => vec![small.to_owned(), option.into()],
        _ => Vec::new(),
    };
    arguments.extend(inputs.iter().cloned());
    arguments.extend(["--threads", "1", "--format"].map(PathBuf::from));
    if output == "dataset" {
        arguments.extend(["none", "--overwrite", "--output"].map(PathBuf::from));
        arguments.push(folder.join("dataset"));
    } else {
        arguments.push(output.into());
    }
    arguments
}

/// One run: seconds in user mode, and the peak of its memory. An error of the program (exit code 2) is a result.
fn measure(folder: &Path, program: &Path, arguments: &[PathBuf]) -> Result<RunCost> {
    let report = folder.join("time.txt");
    let mut command = Command::new("/usr/bin/time");
    command.args(["-q", "-f", "%U %M", "-o"]).arg(&report);
    command
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let done = command
        .output()
        .with_context(|| format!("cannot run `{}`", line(&command)))?;
    // Both end with the exit code of errors.
    let errors = String::from_utf8_lossy(&done.stderr);
    let is_crash = ["has overflowed its stack", "memory allocation of "]
        .iter()
        .any(|text| errors.contains(text));
    if is_crash || !matches!(done.status.code(), Some(0 | 2)) {
        bail!("`{}` failed: {}\n{}", line(&command), done.status, errors);
    }
    let text = fs::read_to_string(&report).with_context(|| format!("cannot read {}", report.display()))?;
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    let (Some(Ok(seconds)), Some(Ok(kilobytes))) = (numbers.next(), numbers.next()) else {
        bail!("{}: '{text}' is not what was requested", report.display());
    };
    Ok(RunCost {
        seconds,
        megabytes: kilobytes * 1024.0 / 1e6,
    })
}

/// How many times longer the last one took than the first one.
fn growth(taken: &[(u64, RunCost)]) -> Option<f64> {
    let ((_, first), (_, last)) = (taken.first()?, taken.last()?);
    (first.seconds >= MIN_SECONDS).then(|| last.seconds / first.seconds)
}

fn microseconds(taken: &[(u64, RunCost)]) -> f64 {
    taken
        .last()
        .map_or(0.0, |(items, last)| last.seconds * 1e6 / float(*items))
}

#[expect(clippy::cast_precision_loss, reason = "a few million")]
fn float(number: u64) -> f64 {
    number as f64
}

fn time_fault(taken: &[(u64, RunCost)]) -> Option<String> {
    if let Some(growth) = growth(taken).filter(|growth| *growth > MAX_GROWTH) {
        return Some(format!("4 times the items take {growth:.1} times as long"));
    }
    let each = microseconds(taken);
    let is_long = taken
        .last()
        .is_some_and(|(_, last)| last.seconds >= MIN_LONG_SECONDS);
    (is_long && each > MAX_ITEM_MICROSECONDS).then(|| format!("an item takes {each:.0} us"))
}

fn allowed(memory: Memory, items: u64) -> u64 {
    match memory {
        Memory::Fixed(megabytes) => megabytes,
        Memory::PerItem(bytes) => BASE_MEGABYTES + bytes * items / 1_000_000,
    }
}

fn memory_fault(kind: &Kind, taken: &[(u64, RunCost)]) -> Option<String> {
    taken.iter().find_map(|(items, one)| {
        let allowed = allowed(kind.memory, *items);
        (one.megabytes > float(allowed)).then(|| {
            format!(
                "{items} items take {:.0} MB, allowed are {allowed}",
                one.megabytes
            )
        })
    })
}

fn row(kind: &Kind, output: &str, taken: &[(u64, RunCost)]) -> String {
    let all = |text: fn(&RunCost) -> String| {
        let texts: Vec<String> = taken.iter().map(|(_, one)| text(one)).collect();
        texts.join(" | ")
    };
    let first = taken.first().map_or(0, |(items, _)| *items);
    let last = taken.last().map_or(0, |(items, _)| *items);
    format!(
        "| {} | {output} | {first} | {} | {} | {:.2} | {} | {} |",
        kind.name,
        all(|one| format!("{:.2}", one.seconds)),
        growth(taken).map_or("-".to_owned(), |growth| format!("{growth:.1}")),
        microseconds(taken),
        all(|one| format!("{:.0}", one.megabytes)),
        allowed(kind.memory, last),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(seconds: [f64; 3]) -> Vec<(u64, RunCost)> {
        let of = |(n, seconds)| {
            let one = RunCost {
                seconds,
                megabytes: 100.0,
            };
            (n, one)
        };
        [50_000, 100_000, 200_000]
            .into_iter()
            .zip(seconds)
            .map(of)
            .collect()
    }

    #[test]
    fn faster_than_linear_is_a_fault() {
        assert_eq!(time_fault(&taken([0.5, 1.0, 2.0])), None);
        // n log n, with noise: 4 * 17.6 / 15.6 = 4.5.
        assert_eq!(time_fault(&taken([0.5, 1.1, 2.6])), None);
        assert!(time_fault(&taken([0.5, 2.0, 8.0])).is_some());
        // Too short to compare.
        assert_eq!(time_fault(&taken([0.03, 0.10, 0.36])), None);
        // 160 s for 200,000 items are 800 us each.
        assert!(time_fault(&taken([40.0, 80.0, 160.0])).is_some());
    }

    #[test]
    fn memory_beyond_its_bound_is_a_fault() {
        let of = |memory| Kind {
            name: "x",
            about: "y",
            per_thousand: 1_000,
            memory,
            form: Form::Capture(|_, _| Ok(())),
        };
        let taken = taken([1.0; 3]);
        assert!(memory_fault(&of(Memory::Fixed(99)), &taken).is_some());
        assert!(memory_fault(&of(Memory::Fixed(101)), &taken).is_none());
        // 128 MB alone are enough.
        assert!(memory_fault(&of(Memory::PerItem(0)), &taken).is_none());
    }

    #[test]
    fn every_kind_writes_its_items() {
        for kind in all_kinds() {
            let (Form::Capture(content)
            | Form::Compressed(_, content)
            | Form::Twice(content)
            | Form::File(_, content)) = &kind.form;
            let sizes = [10, 20].map(|n| {
                let mut bytes = Vec::new();
                content(n, &mut bytes).expect("a vector takes everything");
                bytes.len()
            });
            assert!(sizes[0] > 20 && sizes[1] > sizes[0], "{}: {sizes:?}", kind.name);
        }
    }
}
