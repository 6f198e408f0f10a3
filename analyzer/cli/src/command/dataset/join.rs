//! `dataset join`: captures that saw the same flows are analysed together, for what only two of them show: hops, and how their clocks differ. Which
//! captures those are is left to `roce_pipeline::fleet::groups`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use roce_files::Access;
use roce_model::{RunKey, Span};
use roce_parquet::{FolderStorage, Storage, TABLES};
use roce_pipeline::fleet::groups::{GroupTask, MAX_TASK, groups, tasks};
use roce_pipeline::fleet::shared::{Day, day};
use roce_pipeline::{RunNames, capture_key};

use super::compact::parse_day;
use super::map::summary::Summary;
use super::map::worker::{Task, Worker};
use super::map::{analysis, parse_jobs, pool, usual_jobs};
use crate::options::duration::parse_duration;
use crate::output::dataset::storage;
use crate::output::messages;

/// Folder of the second pass in the dataset. It is a dataset of the same layout.
const FOLDER: &str = "joined";
/// Its host: the rows are of many.
const HOST: &str = "joined";
/// Its tables.
const WRITTEN: &str = "run,taps,hops,hop_timeline";

/// Analyse captures together that saw the same flows: losses, marks and delays between hosts, and their clocks
///
/// Captures of a day that share a flow while their times overlap are one group. Each group is analysed as one run, with matched taps and aligned
/// clocks, into the dataset DS/joined: the tables hops, hop_timeline, taps (with the clocks) and run. Groups of more than 32 captures are cut by
/// destination: the receiver with its senders.
#[derive(Args, Debug)]
pub(super) struct Join {
    /// The dataset that `dataset map` wrote
    #[arg(value_name = "DS")]
    dataset: PathBuf,

    /// The folder whose captures it mapped
    #[arg(value_name = "RAW")]
    raw: PathBuf,

    /// The day, in UTC
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_day)]
    date: String,

    /// Difference that the clocks of two hosts may have
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    slack: Span,

    /// Captures that are analysed together, at most
    #[arg(long, value_name = "N", default_value_t = MAX_TASK, value_parser = parse_most)]
    group: usize,

    /// Processes at once [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<usize>,

    /// Time that one group may take
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    timeout: Span,

    /// Print the groups, and analyse nothing
    #[arg(long)]
    plan: bool,

    /// Options of the analysis, such as `-- --bin 100us`
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<OsString>,
}

fn parse_most(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(most) if (2..=MAX_TASK).contains(&most) => Ok(most),
        _ => Err(format!("expected 2 to {MAX_TASK}")),
    }
}

/// Analyses the groups of a day.
pub(super) fn join(arguments: &Join) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let shown = arguments.dataset.display();
    if !arguments.dataset.join("run").is_dir() {
        bail!("{shown}: no dataset of many runs: it has no folder `run`\nhint: `dataset map` writes one");
    }
    let output = arguments.dataset.join(FOLDER);
    if output.is_symlink() {
        bail!(
            "{}: is a link, and nothing below a dataset is written through one\nhint: remove it",
            output.display()
        );
    }
    let (analyse, settings) = analysis(&output, &arguments.options)?;
    let first = FolderStorage::open(&arguments.dataset, Access::Umask)?;
    let mut found = day(&first, &arguments.date)?;
    let joined = groups(&found.captures, &mut found.spans, arguments.slack);
    let planned = tasks(
        &found.captures,
        &joined,
        &found.spans,
        arguments.group,
        arguments.slack,
    );
    let runs: Vec<Task> = planned
        .iter()
        .map(|task| run(arguments, &found, task, &settings.echo))
        .collect();
    if arguments.plan {
        print_plan(&planned, &found)?;
        return Ok(ExitCode::SUCCESS);
    }
    let storage = storage(&output)?;
    remove_others(&*storage, &arguments.date, &runs)?;
    let jobs = arguments.jobs.unwrap_or_else(usual_jobs);
    let mut shared: Vec<OsString> = ["--layout", "fleet", "--quiet", "--tables", WRITTEN, "--run-date"]
        .map(OsString::from)
        .to_vec();
    shared.extend([OsString::from(&arguments.date), OsString::from("-o")]);
    // The binary works in the folder of the captures.
    let absolute = output
        .canonicalize()
        .with_context(|| output.display().to_string())?;
    shared.push(absolute.into_os_string());
    if analyse.run.shape.threads.is_none() && jobs > 1 {
        shared.extend(["--threads", "1"].map(OsString::from));
    }
    shared.extend(arguments.options.iter().cloned());
    let worker = Worker {
        storage,
        folder: Some(arguments.raw.clone()),
        arguments: shared,
        options: settings.echo,
        tries: 3,
        timeout: Duration::from_nanos(arguments.timeout.0),
    };
    let mut summary = pool(&worker, &runs, jobs, false, Summary::new(runs.len()))?;
    summary.seconds = begun.elapsed().as_secs_f64();
    let hosts: BTreeSet<&str> = planned
        .iter()
        .flat_map(|task| &task.captures)
        .filter_map(|at| found.captures.get(*at))
        .map(|capture| capture.host.as_str())
        .collect();
    summary.hosts = hosts.len();
    let text = format!(
        " {:<12}{} of {} captures share flows\n{}",
        "groups",
        joined.iter().map(Vec::len).sum::<usize>(),
        found.keys.len(),
        summary.text(&output)
    );
    anstream::stdout().write_all(text.as_bytes())?;
    if runs.is_empty() {
        messages::plain("no two captures of this day share a flow");
    }
    Ok(summary.exit_code())
}

/// The run of a task.
fn run(arguments: &Join, day: &Day, task: &GroupTask, echo: &[(String, String)]) -> Task {
    let keys: Vec<String> = task
        .captures
        .iter()
        .filter_map(|at| day.keys.get(*at).cloned())
        .collect();
    let size = |key: &String| {
        let found = std::fs::metadata(arguments.raw.join(key));
        found.map_or(0, |found| found.len())
    };
    let inputs: Vec<(String, u64)> = keys.iter().map(|key| (key.clone(), size(key))).collect();
    let mut options = echo.to_vec();
    options.push(("day".to_owned(), arguments.date.clone()));
    let mut own = Vec::new();
    if let Some(destination) = &task.destination {
        options.push(("hops_to".to_owned(), destination.clone()));
        own.extend(["--hops-to".to_owned(), destination.clone()]);
        // Traffic of other hosts takes no time then.
        own.extend(["--only-flow".to_owned(), format!("host {destination}")]);
    }
    own.push("--".to_owned());
    own.extend(keys.iter().cloned());
    let sized: Vec<(String, Option<u64>)> = inputs
        .iter()
        .map(|(key, bytes)| (key.clone(), Some(*bytes)))
        .collect();
    let capture = capture_key(&keys);
    let names = RunNames {
        capture: &capture,
        inputs: &sized,
        options: &options,
        host: Some(HOST),
        started: None,
    };
    Task {
        key: RunKey {
            run_id: names.run_id(),
            host: HOST.to_owned(),
            capture,
        },
        inputs,
        arguments: own.into_iter().map(OsString::from).collect(),
    }
}

/// Removes the groups of this day that an earlier second pass wrote, and that this one does not write: more captures have come since.
fn remove_others(storage: &dyn Storage, date: &str, runs: &[Task]) -> anyhow::Result<()> {
    let folder = |table: &str| format!("{table}/date={date}/host={HOST}");
    let kept: BTreeSet<String> = runs
        .iter()
        .map(|run| format!("{}.parquet", run.key.run_id))
        .collect();
    // `run` first: without its commit the rest of a run is not seen.
    for table in TABLES.iter().rev() {
        for name in storage.list(&folder(table))? {
            if !name.starts_with('.') && !kept.contains(&name) {
                storage.remove(&format!("{}/{name}", folder(table)))?;
            }
        }
    }
    Ok(())
}

/// Prints each group: the destination of a cut one, and its captures.
fn print_plan(tasks: &[GroupTask], day: &Day) -> anyhow::Result<()> {
    let mut text = String::new();
    for (number, task) in tasks.iter().enumerate() {
        let keys: Vec<&str> = task
            .captures
            .iter()
            .filter_map(|at| day.keys.get(*at))
            .map(String::as_str)
            .collect();
        let to = task
            .destination
            .as_deref()
            .map(|to| format!(" to {to}"))
            .unwrap_or_default();
        let line = format!("group {}{to}: {}", number + 1, keys.join(" "));
        text.push_str(&roce_model::text::clean(&line));
        text.push('\n');
    }
    Ok(anstream::stdout().write_all(text.as_bytes())?)
}
