//! One run of a mapping or a second pass: starts the own binary for it, again after a crash, and gives its manifest. A run that cannot be analysed
//! ends as a row with its error.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use roce_model::text::clean;
use roce_model::{InputSummary, RunKey, RunSummary};
use roce_parquet::Storage;
use roce_pipeline::fleet::FleetRun;
use roce_pipeline::{Manifest, RunStart};
use roce_remote::program::{EndedProgram, Failure, Limits, run_unless};

use crate::own_process::own_process;

/// Bytes of a child's standard output and error that are kept.
const MAX_OUTPUT_BYTES: u64 = 1 << 16;
/// Length of an error in the dataset, in characters.
const MAX_ERROR: usize = 1024;

/// One run.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) key: RunKey,
    /// Keys and sizes of its captures.
    pub(crate) inputs: Vec<(String, u64)>,
    /// Its own arguments, the captures last.
    pub(crate) arguments: Vec<OsString>,
}

/// Settings that all runs have in common.
pub(crate) struct Worker {
    pub(crate) storage: Arc<dyn Storage>,
    /// Folder in which the binary works; the own one if there is none.
    pub(crate) folder: Option<PathBuf>,
    /// Arguments before those of the run itself.
    pub(crate) arguments: Vec<OsString>,
    /// Options that shape the results, for rows of captures that could not be analysed.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) tries: u32,
    pub(crate) timeout: Duration,
}

/// How a capture ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) manifest: Manifest,
    /// How often the binary was started.
    pub(crate) tries: u32,
}

/// How one start of the binary ended.
enum WorkerEnd {
    /// It wrote the run, or the run's error.
    Committed(Box<Manifest>),
    /// It did not, for this reason.
    Failed(String),
    /// The mapping stops.
    Stopped,
}

impl Worker {
    /// Analyses a capture. `None`: the mapping stops, and the capture is as it was before.
    ///
    /// # Errors
    /// When not even the row with the error can be written.
    pub(crate) fn work(&self, task: &Task, stops: impl Fn() -> bool) -> anyhow::Result<Option<Outcome>> {
        let begun = RunStart::now();
        let mut tries = 0;
        let error = loop {
            tries += 1;
            match self.start(task, &stops) {
                WorkerEnd::Committed(manifest) => {
                    return Ok(Some(Outcome {
                        manifest: *manifest,
                        tries,
                    }));
                }
                WorkerEnd::Stopped => return Ok(None),
                WorkerEnd::Failed(error) if tries >= self.tries => break error,
                WorkerEnd::Failed(_) => {}
            }
        };
        let run = RunSummary {
            key: task.key.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: begun.time(),
            elapsed: begun.elapsed(),
            options: self.options.clone(),
            inputs: task
                .inputs
                .iter()
                .map(|(key, bytes)| InputSummary {
                    input: key.clone(),
                    bytes: Some(*bytes),
                    error: Some(error.clone()),
                    ..InputSummary::default()
                })
                .collect(),
            ..RunSummary::default()
        };
        FleetRun::write_failed(&self.storage, &run, std::io::sink())
            .map_err(crate::output::messages::sink_error)?;
        Ok(Some(Outcome {
            manifest: Manifest::new(&run),
            tries,
        }))
    }

    /// Starts the binary once.
    fn start(&self, task: &Task, stops: impl Fn() -> bool) -> WorkerEnd {
        let mut command = own_process();
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
            .args(&self.arguments)
            .args(["--host-name", &task.key.host, "--run-id", &task.key.run_id])
            .args(&task.arguments)
            // Ctrl-C is for the mapping, which ends its children.
            .process_group(0);
        let limits = Limits {
            patience: self.timeout,
            output: MAX_OUTPUT_BYTES,
            errors: MAX_OUTPUT_BYTES,
        };
        match run_unless(&mut command, limits, stops) {
            Err(Failure::Stopped) => WorkerEnd::Stopped,
            Err(Failure::System(error)) => WorkerEnd::Failed(format!("cannot be started: {error}")),
            Err(Failure::NoAnswer) => {
                WorkerEnd::Failed(format!("took longer than {} s", self.timeout.as_secs()))
            }
            Ok(ended) => ending(task, &ended),
        }
    }
}

/// How the binary ended: the last line of its output is the manifest of this run.
fn ending(task: &Task, ended: &EndedProgram) -> WorkerEnd {
    let output = String::from_utf8_lossy(&ended.output);
    let manifest = output.lines().next_back().and_then(Manifest::parse);
    let manifest = manifest.filter(|manifest| manifest.key == task.key);
    match manifest {
        Some(manifest) if manifest.rows.iter().any(|(table, _)| table == "run") => {
            WorkerEnd::Committed(Box::new(manifest))
        }
        Some(Manifest {
            error: Some(error), ..
        }) => WorkerEnd::Failed(short(&error)),
        _ => match (ended.status.signal(), ended.status.code()) {
            (Some(signal), _) => WorkerEnd::Failed(format!("ended by signal {signal}")),
            (None, code) => {
                let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
                let errors = String::from_utf8_lossy(&ended.errors);
                let last = errors
                    .lines()
                    .rfind(|line| !line.trim().is_empty())
                    .unwrap_or("no message");
                WorkerEnd::Failed(short(&format!("ended with code {code}: {last}")))
            }
        },
    }
}

/// An error as a row holds it.
fn short(error: &str) -> String {
    clean(error).chars().take(MAX_ERROR).collect()
}
