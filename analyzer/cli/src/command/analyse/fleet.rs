//! Runs that become a part of a dataset of many (`--layout fleet`). Standard output is a manifest line, also
//! when the run fails.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use roce_model::{InputSummary, RunKey, RunSummary};
use roce_pipeline::{Manifest, OpenRun};

use crate::command::request::PreparedRun;
use crate::options::arguments::Analyse;
use crate::options::format::Format;
use crate::output::dataset::failed_run;

/// Refuses options that this layout has no use for.
pub(super) fn check(arguments: &Analyse) -> anyhow::Result<()> {
    if arguments.format != Format::Text && arguments.format != Format::None {
        bail!(
            "--layout fleet writes a manifest line to standard output, and no other format\nhint: omit --format"
        );
    }
    if arguments.overwrite {
        bail!(
            "--overwrite replaces a dataset, and --layout fleet adds a run to one\nhint: omit it; results of the same run are replaced"
        );
    }
    Ok(())
}

/// Writes the manifest line of the run `key` that `error` ended.
pub(super) fn line(key: &RunKey, error: &anyhow::Error) -> anyhow::Result<()> {
    let line = Manifest::failed(key, &format!("{error:#}")).line();
    Ok(std::io::stdout().write_all(line.as_bytes())?)
}

/// Notes a run none of whose captures could be opened: in the dataset, by a row of `run` for each with its error, and in the manifest line.
pub(super) fn unreadable(
    arguments: &Analyse,
    prepared: &PreparedRun,
    open: &OpenRun,
) -> anyhow::Result<ExitCode> {
    let captures = &prepared.options.captures;
    let name = |path: &PathBuf| match &prepared.options.capture {
        Some(capture) if captures.len() == 1 => capture.clone(),
        _ => roce_pipeline::path_key(path),
    };
    if captures.iter().any(|path| !roce_capture::is_whole(path)) {
        // A file that is not there is no capture of the fleet, and its run has no lasting name.
        let errors: Vec<&str> = open.errors().collect();
        bail!("none of the captures could be read: {}", errors.join("; "));
    }
    let inputs = captures.iter().zip(open.errors());
    let run = RunSummary {
        key: prepared.key.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: prepared.begun.time(),
        elapsed: prepared.begun.elapsed(),
        options: prepared.settings.echo.clone(),
        inputs: inputs
            .map(|(path, error)| InputSummary {
                input: name(path),
                bytes: roce_capture::size(path),
                // The paths of this machine are no concern of the fleet.
                error: Some(error.replace(&path.display().to_string(), &name(path))),
                ..InputSummary::default()
            })
            .collect(),
        ..RunSummary::default()
    };
    if let Some(place) = &arguments.output {
        failed_run(place, &run)?;
    }
    Ok(ExitCode::from(2))
}
