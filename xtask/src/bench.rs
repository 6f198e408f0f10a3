//! `cargo xtask bench`: how fast it is, beside what else reads captures, in one run.
//!
//! Measurements are data: `FILES` and `rows`; targets are in `targets`. Programs take turns (A B A B) on one
//! file after the other, pinned to one core, so that what disturbs the machine disturbs them alike; the median
//! of the rounds counts. Times are of whole processes, start and end included.

mod files;
mod scrape;
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::need::{self, C_COMPILER, LIBPCAP};
use crate::profile;
use crate::workspace::{Profile, Workspace, execute, line, on_path, output, step};
use files::{
    CAPINFOS, Capture, Captures, F4K_3, F4K_30, F100K_3, F100K_30, F100K_QUARTER, FILES, FLOOR, FULL,
    HOSTILE, MIXED, MeasuredFile, NDPI, NFPCAPD, NO_OUTPUT, NO_OUTPUT_WIDE, PARQUET, PARQUET_WIDE, SHORT,
    SHORT_MIXED, TSHARK, find,
};
use scrape::SCRAPE;
use targets::{TargetBound, targets};

pub(crate) const ABOUT: &str = "measure speed and memory, print or write the table of docs/performance.md";
pub(crate) const ARGUMENTS: &str = "[--packets N] [--rounds N] [--only TEXT]... [--no-build] [--write]";

/// One thing to measure on one file.
pub(crate) struct Row {
    pub(crate) file: &'static str,
    pub(crate) what: &'static str,
    pub(crate) cores: usize,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
}

/// Packets of the large files.
const PACKETS: u64 = 10_000_000;

/// No verdicts when `capinfos -c`, which never changes, moved by more than this share.
const MAX_NOISE: f64 = 0.15;

struct Options {
    packets: u64,
    rounds: usize,
    /// The table goes into docs/performance.md.
    write: bool,
    /// Files and rows with one of these texts; empty for all.
    only: Vec<String>,
    build: bool,
}

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    if on_path("taskset").is_none() {
        bail!(
            "taskset is not installed: nothing can be pinned to a core\nhint: install the package util-linux"
        );
    }
    if options.build {
        step("build", || build(workspace))?;
    }
    let wants_scrape = options.only.is_empty() || options.only.iter().any(|only| only == SCRAPE);
    if wants_scrape {
        for target in step("metrics serve", || scrape::measure(workspace))? {
            println!("{}", target.line());
        }
    }
    if wants_scrape && options.only.iter().any(|only| only == SCRAPE) {
        return Ok(());
    }
    let captures = step("captures", || generate(workspace, options.packets))?;
    let rows: Vec<Row> = rows(workspace, &captures)
        .into_iter()
        .filter(|row| {
            let name = format!("{} {}", row.file, row.what);
            options.only.is_empty() || options.only.iter().any(|only| name.contains(only))
        })
        .collect();
    let mut measured = Vec::new();
    for file in FILES {
        let here: Vec<&Row> = rows.iter().filter(|row| row.file == file.name).collect();
        if !here.is_empty() {
            step(file.about, || {
                measure(workspace, &here, options.rounds, &mut measured)
            })?;
        }
    }
    let table = table(&measured, &captures, options.rounds);
    println!("\n{table}");
    if options.write {
        write_table(&workspace.root.join("docs/performance.md"), &table)?;
    }
    let noise = noise(&measured);
    for target in targets(&measured, &captures) {
        match noise {
            Some(noise) if noise > MAX_NOISE => println!("too noisy     {}", target.text()),
            _ => println!("{}", target.line()),
        }
    }
    if let Some(noise) = noise {
        println!("\n`capinfos -c` moved by {:.0} % within the run.", noise * 100.0);
    }
    if let Some(capture) = captures.get(SHORT_MIXED)
        && options.only.is_empty()
    {
        let program = workspace.program(Profile::Release, "roce-analyze");
        let costs = profile::thread_costs(workspace, &program, &capture.path, 16)?;
        for (name, most, cost) in [
            (
                "mixed: serial instructions at 16 threads, x those of one",
                0.05,
                costs.map(|costs| costs.serial),
            ),
            (
                "mixed: instructions of 16 threads, x those of one",
                1.5,
                costs.map(|costs| costs.all),
            ),
        ] {
            println!("{}", TargetBound::AtMost.target(name, most, cost).line());
        }
    }
    if options.only.is_empty() && on_path("valgrind").is_some() {
        profile::gate(workspace, options.write)?;
    }
    if options.packets < PACKETS {
        println!("\nThe targets are for {PACKETS} packets: with fewer, start and end weigh too much.");
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        packets: PACKETS,
        rounds: 5,
        write: false,
        only: Vec::new(),
        build: true,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--no-build" {
            options.build = false;
            continue;
        }
        if argument == "--write" {
            options.write = true;
            continue;
        }
        let text = arguments
            .next()
            .with_context(|| format!("{argument} needs a value\nhint: {ARGUMENTS}"))?;
        let wrong = || format!("{argument}: '{text}' is not a number");
        match argument.as_str() {
            "--packets" => options.packets = text.parse().with_context(wrong)?,
            "--rounds" => options.rounds = text.parse::<usize>().with_context(wrong)?.max(1),
            "--only" => options.only.push(text.clone()),
            other => bail!("'{other}' is not understood\nhint: {ARGUMENTS}"),
        }
    }
    Ok(options)
}

fn build(workspace: &Workspace) -> Result<()> {
    need::ensure(&[C_COMPILER, LIBPCAP])?;
    execute(&mut workspace.cargo(["build", "--release", "--locked", "--package", "roce-analyze"]))?;
    let examples = [
        "--example",
        "bench_capture",
        "--example",
        "read_alone",
        "--example",
        "read_frames",
        "--example",
        "decode_alone",
    ];
    let mut build = workspace.cargo(["build", "--release", "--locked", "--package", "roce-capture"]);
    execute(build.args(examples))?;
    Ok(())
}

/// Makes the captures that are not there yet.
fn generate(workspace: &Workspace, packets: u64) -> Result<Captures> {
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let program = workspace.example(Profile::Release, "bench_capture");
    // A generator that changed makes other files.
    let source = workspace.root.join("analyzer/capture/examples/bench_capture.rs");
    let source = fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
    let mut captures = Captures::new();
    for file in FILES {
        let path = folder.join(format!("{}.pcap", file.name));
        let packets = (packets / file.one_in).to_string();
        let mut arguments = vec![
            "--packets",
            &packets,
            "--flows",
            file.flows,
            "--captured",
            file.captured,
            "--per-row",
            file.per_row,
        ];
        arguments.extend(file.more);
        let stamp = format!("{}\n# {source}", arguments.join(" "));
        let (stamp_path, counts_path) = (path.with_extension("stamp"), path.with_extension("txt"));
        let fresh = path.is_file() && fs::read_to_string(&stamp_path).is_ok_and(|stored| stored == stamp);
        if !fresh {
            println!("   {}: {packets} packets", workspace.shown(&path));
            let counts = output(Command::new(&program).arg(&path).args(&arguments))?;
            for (path, text) in [(&counts_path, &counts), (&stamp_path, &stamp)] {
                fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        let counts = fs::read_to_string(&counts_path)
            .with_context(|| format!("cannot read {}", counts_path.display()))?;
        let count = |key: &str| {
            let value = counts
                .lines()
                .find_map(|line| line.strip_prefix(key)?.trim().parse::<f64>().ok());
            value.with_context(|| format!("{}: no '{key}'", counts_path.display()))
        };
        captures.insert(
            file.name,
            Capture {
                packets: count("packets")?,
                rows: count("rows")?,
                path: path.clone(),
            },
        );
    }
    Ok(captures)
}

/// Everything that is measured. What is not installed is left out.
fn rows(workspace: &Workspace, captures: &Captures) -> Vec<Row> {
    let analyze = workspace.program(Profile::Release, "roce-analyze");
    let example = |name: &str| workspace.example(Profile::Release, name);
    let dataset = workspace
        .target
        .join("bench")
        .join("dataset")
        .display()
        .to_string();
    let flow_files = workspace.target.join("bench").display().to_string();
    let mut rows = Vec::new();
    let mut add = |file: &'static str,
                   what: &'static str,
                   cores: usize,
                   program: Option<PathBuf>,
                   arguments: &[&str]| {
        let (Some(program), Some(capture)) = (program, captures.get(file)) else {
            return;
        };
        let capture = capture.path.display().to_string();
        let arguments = arguments
            .iter()
            .map(|text| text.replace("{file}", &capture).replace("{dataset}", &dataset));
        rows.push(Row {
            file,
            what,
            cores,
            program,
            arguments: arguments.collect(),
        });
    };
    // The generator counts rows in bins of 1 ms. Without the option, short captures get narrower ones.
    let none: &[&'static str] = &["{file}", "--format", "none", "--bin", "1ms"];
    let parquet: &[&'static str] = &[
        "{file}",
        "--format",
        "none",
        "--bin",
        "1ms",
        "--overwrite",
        "--output",
        "{dataset}",
    ];
    let wide = |arguments: &[&'static str]| -> Vec<&'static str> {
        let width = |text: &&'static str| if *text == "1ms" { "1s" } else { *text };
        arguments.iter().map(width).collect()
    };
    for (what, arguments) in [(NO_OUTPUT_WIDE, none), (PARQUET_WIDE, parquet)] {
        add(MIXED, what, 1, Some(analyze.clone()), &wide(arguments));
    }
    add(HOSTILE, FLOOR, 1, Some(example("read_alone")), &["{file}"]);
    add(HOSTILE, NO_OUTPUT, 1, Some(analyze.clone()), none);
    for file in [MIXED, F4K_30, F4K_3, F100K_30, F100K_3, FULL] {
        add(file, FLOOR, 1, Some(example("read_alone")), &["{file}"]);
        if matches!(file, F4K_30 | FULL) {
            add(
                file,
                "records alone",
                1,
                Some(example("read_frames")),
                &["{file}"],
            );
            add(
                file,
                "decode alone",
                1,
                Some(example("decode_alone")),
                &["{file}"],
            );
        }
        add(file, NO_OUTPUT, 1, Some(analyze.clone()), none);
        add(file, PARQUET, 1, Some(analyze.clone()), parquet);
        add(file, NO_OUTPUT, 2, Some(analyze.clone()), none);
        add(file, PARQUET, 2, Some(analyze.clone()), parquet);
        if matches!(file, MIXED | F4K_30 | FULL) {
            add(file, CAPINFOS, 1, on_path("capinfos"), &["-c", "{file}"]);
            add(
                file,
                "tcpdump -w /dev/null",
                1,
                on_path("tcpdump"),
                &["-r", "{file}", "-w", "/dev/null"],
            );
        }
        if matches!(file, MIXED | F4K_30 | F100K_30) {
            // Flows of any IP traffic, as engineers have them from these packages: nfdump, and libndpi-bin.
            add(
                file,
                NFPCAPD,
                1,
                on_path("nfpcapd"),
                &["-r", "{file}", "-w", &flow_files],
            );
            add(file, NDPI, 1, on_path("ndpiReader"), &["-q", "-i", "{file}"]);
        }
    }
    add(F100K_QUARTER, NO_OUTPUT, 1, Some(analyze.clone()), none);
    add(F100K_QUARTER, PARQUET, 1, Some(analyze), parquet);
    let fields = "frame.time_epoch ip.src ip.dst ip.dsfield infiniband.bth.opcode infiniband.bth.destqp infiniband.bth.psn";
    let mut tshark = vec!["-n", "-r", "{file}", "-T", "fields"];
    tshark.extend(fields.split(' ').flat_map(|field| ["-e", field]));
    add(SHORT, TSHARK, 1, on_path("tshark"), &tshark);
    rows
}

/// Runs everything once to warm up, and then in turns.
pub(crate) fn measure(
    workspace: &Workspace,
    rows: &[&Row],
    rounds: usize,
    measured: &mut Vec<MeasuredFile>,
) -> Result<()> {
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut runs: Vec<Vec<(f64, Option<f64>)>> = rows.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (row, runs) in rows.iter().zip(&mut runs) {
            let run = once(workspace, row).with_context(|| format!("{} on {}", row.what, row.file))?;
            if round > 0 {
                runs.push(run);
            }
        }
    }
    for (row, mut runs) in rows.iter().zip(runs) {
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(first), Some(last), Some(median)) = (runs.first(), runs.last(), runs.get(runs.len() / 2))
        else {
            continue;
        };
        measured.push(MeasuredFile {
            file: row.file,
            what: row.what,
            cores: row.cores,
            seconds: median.0,
            span: (first.0, last.0),
            peak_megabytes: runs.iter().filter_map(|run| run.1).reduce(f64::max),
        });
    }
    Ok(())
}

/// One run: seconds, and the peak memory in MB where `time` is installed to tell it.
fn once(workspace: &Workspace, row: &Row) -> Result<(f64, Option<f64>)> {
    let report = workspace.target.join("bench").join("time.txt");
    let time = Path::new("/usr/bin/time");
    let mut command = workspace.command("taskset");
    command.args(["-c", if row.cores == 1 { "0" } else { "0,1" }]);
    if time.is_file() {
        command.arg(time).args(["-f", "%M", "-o"]).arg(&report);
    }
    command
        .arg(&row.program)
        .args(&row.arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let begun = Instant::now();
    let done = command
        .output()
        .with_context(|| format!("cannot run `{}`", line(&command)))?;
    let seconds = begun.elapsed().as_secs_f64();
    if !done.status.success() {
        bail!(
            "`{}` failed: {}\n{}",
            line(&command),
            done.status,
            String::from_utf8_lossy(&done.stderr)
        );
    }
    let kilobytes = fs::read_to_string(&report)
        .ok()
        .and_then(|text| text.trim().parse::<f64>().ok());
    Ok((
        seconds,
        kilobytes
            .filter(|_| time.is_file())
            .map(|kilobytes| kilobytes * 1024.0 / 1e6),
    ))
}

/// How far `capinfos -c` moved: the widest span of its times over their median.
fn noise(measured: &[MeasuredFile]) -> Option<f64> {
    let constant = measured.iter().filter(|row| row.what == CAPINFOS);
    constant
        .map(|row| (row.span.1 - row.span.0) / row.seconds)
        .reduce(f64::max)
}

/// Replaces the first table of the page.
fn write_table(page: &Path, table: &str) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).collect();
    let is_row = |line: &&str| line.starts_with('|');
    let before: Vec<&str> = text.lines().take_while(|line| !is_row(line)).collect();
    let after = text.lines().skip(before.len()).skip_while(is_row);
    let all: Vec<&str> = before.iter().copied().chain(rows).chain(after).collect();
    fs::write(page, all.join("\n") + "\n").with_context(|| format!("cannot write {}", page.display()))
}

/// The Markdown table.
fn table(measured: &[MeasuredFile], captures: &Captures, rounds: usize) -> String {
    let mut lines = vec![
        format!("Medians of {rounds} runs, taking turns on warm files; whole processes."),
        String::new(),
        "| file | what | cores | Mpkt/s | ns/packet | fastest to slowest | x read() alone | x capinfos -c | peak MB |".to_owned(),
        "|---|---|--:|--:|--:|--:|--:|--:|--:|".to_owned(),
    ];
    for row in measured {
        let Some(capture) = captures.get(row.file) else {
            continue;
        };
        let about = FILES
            .iter()
            .find(|file| file.name == row.file)
            .map_or(row.file, |file| file.about);
        let nanos = |seconds: f64| seconds * 1e9 / capture.packets;
        let floor =
            find(measured, row.file, FLOOR, 1).map(|floor| format!("{:.1}", row.seconds / floor.seconds));
        let capinfos =
            find(measured, row.file, CAPINFOS, 1).map(|other| format!("{:.2}", other.seconds / row.seconds));
        let peak = row.peak_megabytes.map(|peak| format!("{peak:.0}"));
        lines.push(format!(
            "| {about} | {} | {} | {:.2} | {:.1} | {:.1} to {:.1} | {} | {} | {} |",
            row.what,
            row.cores,
            1e3 / nanos(row.seconds),
            nanos(row.seconds),
            nanos(row.span.0),
            nanos(row.span.1),
            floor.unwrap_or_default(),
            capinfos.unwrap_or_default(),
            peak.unwrap_or_default(),
        ));
    }
    lines.push(String::new());
    lines.push(
        "x read() alone: time over that of reading alone. x capinfos -c: its time over this one's."
            .to_owned(),
    );
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use TargetBound::{AtLeast, AtMost};

    #[test]
    fn missed_bounds_are_reported() {
        let line = |limit: TargetBound, value| limit.target("x", 2.0, value).line();
        assert!(line(AtLeast, Some(2.5)).starts_with("reached "));
        assert!(line(AtLeast, Some(1.5)).starts_with("NOT REACHED"));
        assert!(line(AtMost, Some(1.5)).starts_with("reached "));
        assert!(line(AtMost, None).starts_with("not measured"));
    }

    #[test]
    fn noise_is_the_widest_span_of_the_program_that_never_changes() {
        let row = |what, first: f64, last: f64| MeasuredFile {
            file: MIXED,
            what,
            cores: 1,
            seconds: 2.0,
            span: (first, last),
            peak_megabytes: None,
        };
        let all = [
            row(CAPINFOS, 1.9, 2.1),
            row(NO_OUTPUT, 1.0, 9.0),
            row(CAPINFOS, 1.8, 2.4),
        ];
        // (2.4 - 1.8) / 2
        assert!((noise(&all).unwrap() - 0.3).abs() < 1e-9);
        assert!(noise(&all[1..2]).is_none());
    }

    #[test]
    fn every_target_speaks_of_a_row() {
        let captures: Captures = FILES
            .iter()
            .map(|file| {
                (
                    file.name,
                    Capture {
                        path: file.name.into(),
                        packets: 10.0,
                        rows: 5.0,
                    },
                )
            })
            .collect();
        let everything: Vec<MeasuredFile> = FILES
            .iter()
            .flat_map(|file| {
                [
                    FLOOR,
                    NO_OUTPUT,
                    NO_OUTPUT_WIDE,
                    PARQUET,
                    NFPCAPD,
                    NDPI,
                    PARQUET_WIDE,
                    CAPINFOS,
                    TSHARK,
                ]
                .map(|what| (file.name, what))
            })
            .flat_map(|(file, what)| [1, 2].map(|cores| (file, what, cores)))
            .map(|(file, what, cores)| MeasuredFile {
                file,
                what,
                cores,
                seconds: 1.0,
                span: (1.0, 1.0),
                peak_megabytes: Some(1.0),
            })
            .collect();
        for target in targets(&everything, &captures) {
            assert!(target.value.is_some(), "{}", target.what);
        }
        assert_eq!(
            table(&everything, &captures, 5).lines().count(),
            4 + everything.len() + 2
        );
    }
}
