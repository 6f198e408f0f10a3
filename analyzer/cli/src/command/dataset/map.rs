//! `dataset map`: all captures below a folder become one dataset, by a pool of processes of the own binary.

pub(super) mod hosts;
pub(super) mod walk;
pub(super) mod worker;

pub(super) mod summary;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use clap::{Args, Parser};
use roce_model::Span;
use roce_pipeline::fleet::CommittedRuns;
use roce_pipeline::time_of_day;
use roce_remote::each;

use self::hosts::Hosts;
use self::summary::Summary;
use self::worker::{Task, Worker};
use super::stop::until_signal;
use crate::options::arguments::{Analyse, Layout};
use crate::options::duration::parse_duration;
use crate::options::names::Names;
use crate::options::settings::RunSettings;
use crate::output::dataset::storage;
use crate::output::messages;

/// Processes at once, at most.
const MAX_JOBS: usize = 256;
/// Tries of a capture, at most.
const MAX_TRIES: u32 = 100;

/// Analyse all captures below a folder into one dataset, with a pool of processes
///
/// Each capture is a run of its own in the layout that `--layout fleet` writes. The largest come first. A capture that ends the process, or takes
/// too long, is tried again, and after its last try it becomes a row of the table `run` with its error. Links are not followed.
/// Standard output has a summary; with --manifest it has the manifest line of each capture.
///
/// Exit codes: 0 all captures, 1 some of them failed, 2 none was analysed, or an error.
#[derive(Args, Debug)]
pub(super) struct Map {
    /// Folder with captures: *.pcap, *.pcapng, *.cap, *.ntar, also with .gz or .zst
    #[arg(value_name = "RAW")]
    raw: PathBuf,

    /// The dataset
    #[arg(short, long, value_name = "DS")]
    output: PathBuf,

    /// Processes at once [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<usize>,

    /// Pass over captures whose run is in the dataset; those with an error are tried again
    #[arg(long)]
    resume: bool,

    /// The inventory whose hosts name their captures: paths of files or folders below RAW [default: the first folder below RAW, or the file's
    /// name before its first dot]
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// Starts of the analysis of one capture before it counts as failed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TRIES)))]
    tries: u32,

    /// Time that one capture may take
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    timeout: Span,

    /// Print the manifest line of each capture as it ends, in place of the summary
    #[arg(long)]
    manifest: bool,

    /// Options of the analysis, such as `-- --bin 100us --config site.toml`
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<OsString>,
}

pub(super) fn parse_jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs) if (1..=MAX_JOBS).contains(&jobs) => Ok(jobs),
        _ => Err(format!("expected 1 to {MAX_JOBS}")),
    }
}

/// The command line of the analysis of one capture.
#[derive(Parser)]
#[command(name = "roce-analyze", no_binary_name = true)]
struct Analysis {
    #[command(flatten)]
    analyse: Analyse,
}

/// Analyses the captures below a folder.
pub(super) fn map(arguments: &Map) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let (analyse, settings) = analysis(&arguments.output, &arguments.options)?;
    let hosts = match &arguments.inventory {
        Some(path) => Hosts::read(path)?,
        None => Hosts::default(),
    };
    let walked = walk::captures(&arguments.raw)?;
    let raw = arguments.raw.display().to_string();
    for path in &walked.unnamed {
        messages::warn(
            &path.display().to_string(),
            "passed over: its name cannot be the key of a capture, or it lies too deep",
        );
    }
    if walked.captures.is_empty() {
        bail!(
            "{raw}: no capture below this folder\nhint: their names end in .pcap, .pcapng, .cap or .ntar, also with .gz or .zst"
        );
    }
    let tasks = walked.captures.into_iter().map(|found| {
        let names = Names {
            host: Some(hosts.host(&found.key)),
            run_id: None,
        };
        let paths = [found.path.clone()];
        let key = names.key_of_captures(&paths, Some(&found.key), None, &settings.echo, time_of_day());
        let arguments = ["--capture", &found.key, "--"].map(OsString::from);
        Task {
            key,
            inputs: vec![(found.key, found.bytes)],
            arguments: arguments
                .into_iter()
                .chain([found.path.into_os_string()])
                .collect(),
        }
    });
    let mut tasks: Vec<Task> = tasks.collect();
    let mut summary = Summary::new(tasks.len());
    let storage = storage(&arguments.output)?;
    if arguments.resume {
        let committed = CommittedRuns::read(&*storage)?;
        tasks.retain(|task| !committed.has(&task.key));
        summary.present = summary.captures - tasks.len();
    }
    let jobs = arguments.jobs.unwrap_or_else(usual_jobs);
    let mut shared: Vec<OsString> = ["--layout", "fleet", "--quiet", "-o"]
        .map(OsString::from)
        .to_vec();
    shared.push(arguments.output.clone().into_os_string());
    if analyse.run.shape.threads.is_none() && jobs > 1 {
        shared.extend(["--threads", "1"].map(OsString::from));
    }
    shared.extend(arguments.options.iter().cloned());
    let worker = Worker {
        storage,
        folder: None,
        arguments: shared,
        options: settings.echo,
        tries: arguments.tries,
        timeout: Duration::from_nanos(arguments.timeout.0),
    };
    let mut summary = pool(&worker, &tasks, jobs, arguments.manifest, summary)?;
    summary.seconds = begun.elapsed().as_secs_f64();
    let hosts: BTreeSet<&str> = tasks.iter().map(|task| task.key.host.as_str()).collect();
    summary.hosts = hosts.len();
    if !arguments.manifest {
        anstream::stdout().write_all(summary.text(&arguments.output).as_bytes())?;
    }
    Ok(summary.exit_code())
}

/// Does all tasks in `jobs` processes at once, until they are done or a signal comes. With `prints` the manifest lines go to standard output.
///
/// # Errors
/// When the dataset takes no more rows.
pub(super) fn pool(
    worker: &Worker,
    tasks: &[Task],
    jobs: usize,
    prints: bool,
    summary: Summary,
) -> anyhow::Result<Summary> {
    let stops = AtomicBool::new(false);
    let summary = Mutex::new(summary);
    let failures = Mutex::new(Vec::new());
    let message = "fleet: interrupted: running analyses are ended, and what is done stays";
    until_signal(&stops, message, || {
        each(tasks, jobs, |_, task| {
            let stopped = || stops.load(Ordering::Relaxed);
            if stopped() {
                return;
            }
            match worker.work(task, stopped) {
                Ok(Some(outcome)) => {
                    if prints {
                        // Nobody may read it to its end.
                        let _ = std::io::stdout()
                            .lock()
                            .write_all(outcome.manifest.line().as_bytes());
                    }
                    if let Some(error) = &outcome.manifest.error {
                        messages::warn(&task.key.capture, error);
                    }
                    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
                    summary.add(&outcome);
                }
                Ok(None) => {}
                Err(error) => {
                    // The dataset takes no more rows.
                    stops.store(true, Ordering::Relaxed);
                    failures
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(error);
                }
            }
        });
        Ok(())
    })?;
    if let Some(error) = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .pop()
    {
        return Err(error);
    }
    Ok(summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The number of processes at once, if no option gives it.
pub(super) fn usual_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The options of the analysis that are passed on, and what they mean.
///
/// # Errors
/// When they are not understood, or name what the mapping itself decides.
pub(super) fn analysis(output: &Path, options: &[OsString]) -> anyhow::Result<(Analyse, RunSettings)> {
    let own = ["capture.pcap", "--layout", "fleet", "-o"].map(OsString::from);
    let line = own
        .into_iter()
        .chain([output.as_os_str().to_owned()])
        .chain(options.iter().cloned());
    let parsed = Analysis::try_parse_from(line);
    let analyse = parsed
        .map_err(|error| anyhow!("options behind --: {}", error.to_string().trim_end()))?
        .analyse;
    let names = [
        (analyse.run.captures.len() > 1, "captures"),
        (analyse.run.names.host.is_some(), "--host-name"),
        (analyse.run.names.run_id.is_some(), "--run-id"),
        (analyse.run.capture.is_some(), "--capture"),
        (analyse.overwrite, "--overwrite"),
        (analyse.layout != Layout::Fleet, "--layout"),
    ];
    if let Some((_, name)) = names.iter().find(|(is_given, _)| *is_given) {
        bail!("options behind --: {name} is decided for each capture");
    }
    let settings = RunSettings::from_captures(&analyse.run, false)?;
    Ok((analyse, settings))
}
