//! `roce-analyze demo`: a scenario is simulated, its capture is analysed as any other, and explained.
//!
//! This file goes through a demo from one end to the other. Texts are in `demo/lessons`, scenarios in `roce-sim`.

mod catalogue;
mod find;
mod frames;
mod lesson;
mod mrc;
mod show;
mod verdict;

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Parser};
use roce_files::{Access, Directory, FilePlace};
use roce_report::Style;
use roce_sim::{OutputPlan, Scenario, Truth};

use crate::command::analyse;
use crate::command::invocation::{Invocation, RunCommand};
use crate::options::arguments::Analyse;
use crate::options::named::NamedValues;
use crate::options::nearest::nearest;
use crate::output::style::style;
use catalogue::{CatalogueEntry, catalogue};
use lesson::{Lesson, LessonFrames};
use verdict::{Agreement, DemoResults, compare};

/// Run a lesson: simulate a network, analyse its capture, explain what the packets show
#[derive(Args, Debug)]
#[command(after_help = "Exit codes: 0 done, 1 the analysis differs from the simulation, 2 an error.")]
pub(crate) struct Demo {
    /// The demo to run; without a name, all are listed
    #[arg(hide_possible_values = true, value_parser = NamedValues::new(|text| Ok(text.to_owned()), names))]
    pub(crate) name: Option<String>,

    /// Keep the capture, and what is analysed with it: a file, or a folder to put it into
    #[arg(short, long, value_name = "PATH", requires = "name")]
    pub(crate) output: Option<PathBuf>,

    /// Replace an existing file
    #[arg(long, requires = "output")]
    pub(crate) overwrite: bool,

    /// Write the captures of all demos into FOLDER, and nothing else
    #[arg(long, value_name = "FOLDER", hide = true, conflicts_with_all = ["name", "output"])]
    pub(crate) write_captures: Option<PathBuf>,
}

/// The names of the demos, for completions.
fn names() -> Vec<&'static str> {
    roce_sim::demos::DEMOS.iter().map(|demo| demo.name).collect()
}

/// The command that a demo shows.
#[derive(Parser, Debug)]
struct ShownCommand {
    #[command(flatten)]
    analyse: Analyse,
}

/// Name of the analyser in the commands that are shown.
const PROGRAM: &str = "roce-analyze";

impl RunCommand for Demo {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        demo(self)
    }
}

/// Lists the demos, runs one, or writes the captures of all.
fn demo(arguments: &Demo) -> anyhow::Result<ExitCode> {
    let demos = catalogue()?;
    let style = style(usize::MAX);
    let mut out = anstream::stdout();
    if let Some(folder) = &arguments.write_captures {
        let _made = Directory::named(folder, Access::Umask)?;
        for demo in &demos {
            let lesson = parse_lesson(demo)?;
            simulate(demo, &lesson, &folder.join(format!("{}.pcapng", demo.name)), true)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(name) = &arguments.name else {
        out.write_all(show::list(&demos, style).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(number) = demos.iter().position(|demo| demo.name == name) else {
        let hint = nearest(name, demos.iter().map(|demo| demo.name))
            .map_or_else(String::new, |nearest| format!("did you mean '{nearest}'? "));
        bail!("there is no demo '{name}'\nhint: {hint}`{PROGRAM} demo` lists them");
    };
    let (demo, next) = (&demos[number], demos.get(number + 1));
    // Without -o the capture lives as long as the demo.
    let temporary = tempfile::Builder::new()
        .prefix("roce-analyze-")
        .tempdir()
        .context("no temporary folder")?;
    let (path, _folder) = match &arguments.output {
        Some(path) => place(path, demo, arguments.overwrite)?,
        None => (temporary.path().join(format!("{}.pcapng", demo.name)), None),
    };
    teach(demo, &path, arguments, next, style, &mut out)
}

/// Destination of a demo's capture: a file, or a file in a folder. A folder that is made here stays open
/// until the demo's end, and is removed if it is empty then.
fn place(
    path: &Path,
    demo: &CatalogueEntry,
    overwrite: bool,
) -> anyhow::Result<(PathBuf, Option<Directory>)> {
    let is_folder = path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/');
    let (path, folder) = if is_folder {
        let folder = Directory::named(path, Access::Umask)?;
        (path.join(format!("{}.pcapng", demo.name)), Some(folder))
    } else {
        (path.to_owned(), None)
    };
    FilePlace::named(&path)?.refuse_taken(overwrite)?;
    Ok((path, folder))
}

/// Results of a simulation.
struct SimulatedFiles {
    truth: Truth,
    captures: Vec<PathBuf>,
    /// Other files that the analysis reads, each after its option.
    beside: Vec<(&'static str, PathBuf)>,
}

/// Simulates a demo; several captures have the names of their taps before the ending.
fn simulate(
    demo: &CatalogueEntry,
    lesson: &Lesson,
    path: &Path,
    overwrite: bool,
) -> anyhow::Result<SimulatedFiles> {
    let scenario = Scenario::parse(demo.scenario).with_context(|| format!("scenario {}", demo.name))?;
    let plan = OutputPlan::Files {
        path: path.to_owned(),
        overwrite,
    };
    let mut beside = Vec::new();
    let truth = if let Some(every) = lesson.counters {
        let (truth, counters) = roce_sim::simulate_with_counters(&scenario, &plan, every)?;
        let samples = path.with_extension("samples.jsonl");
        counters.write_samples(&samples, overwrite)?;
        beside.push(("--samples", samples));
        let inventory = path.with_extension("fabric.toml");
        write_text(&inventory, &counters.inventory(&truth), overwrite)?;
        beside.push(("--inventory", inventory));
        truth
    } else {
        roce_sim::simulate(&scenario, &plan)?
    };
    let log = training_log(&truth);
    if !log.is_empty() {
        let path = path.with_extension("log");
        write_text(&path, &log, overwrite)?;
        beside.push(("--training-log", path));
    }
    Ok(SimulatedFiles {
        truth,
        captures: plan.paths(&scenario),
        beside,
    })
}

fn write_text(path: &Path, text: &str, overwrite: bool) -> anyhow::Result<()> {
    let mut file = FilePlace::named(path)?.begin(overwrite, Access::Umask)?;
    file.write_all(text.as_bytes())
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(file.finish()?)
}

fn parse_lesson(demo: &CatalogueEntry) -> anyhow::Result<Lesson> {
    Lesson::parse(demo.lesson).with_context(|| format!("lesson {}", demo.name))
}

/// Output of a simulated training script on its first rank.
fn training_log(truth: &Truth) -> String {
    let mut log = String::new();
    for step in &truth.steps {
        let Some(rank) = step.ranks.first() else { continue };
        // Writing to a string does not fail.
        let _ = writeln!(
            log,
            "Iteration {} | AllReduce: {} | Total: {}",
            step.step,
            milliseconds(rank.end.saturating_sub(rank.begin)),
            milliseconds(rank.end.saturating_sub(rank.compute)),
        );
    }
    log
}

/// `45.2ms`.
fn milliseconds(nanos: u64) -> String {
    format!("{}.{:03}ms", nanos / 1_000_000, nanos / 1_000 % 1_000)
}

/// Goes through a demo.
fn teach(
    demo: &CatalogueEntry,
    path: &Path,
    arguments: &Demo,
    next: Option<&CatalogueEntry>,
    style: Style,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let lesson = parse_lesson(demo)?;
    let kept = arguments.output.is_some();
    let made = simulate(demo, &lesson, path, arguments.overwrite)?;
    let frames = frames::read(&made.captures)?;
    let found = LessonFrames::find(&lesson, &frames)?;
    let files: Vec<String> = made.captures.iter().map(|path| name_of(path)).collect();
    out.write_all(show::before(demo, &lesson, &found, &files, style)?.as_bytes())?;

    let shown = command(&made, &lesson, |path| {
        if kept {
            path.display().to_string()
        } else {
            name_of(path)
        }
    });
    out.write_all(b"\n")?;
    out.write_all(show::analysis(&shown, style).as_bytes())?;
    out.flush()?;
    let given = command(&made, &lesson, |path| path.display().to_string());
    let shown = ShownCommand::try_parse_from(&given).context("the demo's own command")?;
    let mut concluded = DemoResults::default();
    analyse::run(&shown.analyse, Some(&mut concluded))?;

    let lines = compare(&lesson, &made.truth, &concluded);
    let mut go_on = vec![if kept {
        format!(
            "The capture is kept: open it in Wireshark, or analyse it again with other options. `{PROGRAM} explain ID` \
             describes a finding and its rule."
        )
    } else {
        let name = demo.name;
        format!(
            "`{PROGRAM} demo {name} -o {name}.pcapng` keeps the capture, to open it in Wireshark or to analyse it again."
        )
    }];
    go_on.extend(next.map(|next| format!("Next: `{PROGRAM} demo {}`, {}.", next.name, next.title)));
    out.write_all(b"\n")?;
    out.write_all(show::after(&lines, &lesson, &go_on, style).as_bytes())?;
    out.flush()?;
    Ok(if lines.iter().all(|line| line.agreement != Agreement::Differs) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The command that analyses what was made.
fn command(made: &SimulatedFiles, lesson: &Lesson, shown: impl Fn(&Path) -> String) -> Vec<String> {
    let mut words = vec![PROGRAM.to_owned()];
    words.extend(made.captures.iter().map(|path| shown(path)));
    words.extend(lesson.options.iter().cloned());
    for (option, path) in &made.beside {
        words.extend([(*option).to_owned(), shown(path)]);
    }
    words
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests;
