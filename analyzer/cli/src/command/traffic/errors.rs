//! Errors of programs' logs beside a capture: the end of each connection in its packets.

use std::path::PathBuf;

use anyhow::bail;
use roce_model::JobError;
use roce_report::ends::{Ends, MAX_ERRORS};

use super::form::Input;
use crate::command::request::rows;
use crate::options::arguments::{RunOptions, Shape};
use crate::output::messages;

/// The ends of the connections that the logs among `inputs` report; `None`: no capture is given.
///
/// # Errors
/// When the logs have no such error, or no capture can be read.
pub(super) fn ends(inputs: &[Input], captures: &[PathBuf]) -> anyhow::Result<Option<Ends>> {
    if captures.is_empty() {
        return Ok(None);
    }
    let errors: Vec<JobError> = inputs
        .iter()
        .filter_map(|input| Some((&input.name, input.results.log.as_ref()?)))
        .flat_map(|(name, log)| {
            log.errors
                .iter()
                .map(move |found| found.job_error(format!("{name}:{}", found.line)))
        })
        .collect();
    if errors.is_empty() {
        bail!(
            "--capture: no error of a known program is in these files\nhint: --capture explains lines that report a failed request; --beside DIR \
             shows what a dataset has in the time of each run"
        );
    }
    // Those of which the log says that they follow others come last.
    let (first, flushed): (Vec<JobError>, Vec<JobError>) =
        errors.into_iter().partition(|error| !error.is_consequence);
    let count = first.len() + flushed.len();
    if let Some(left) = count.checked_sub(MAX_ERRORS).filter(|left| *left > 0) {
        messages::warn(
            "--capture",
            &format!("{left} of {count} errors are not explained"),
        );
    }
    let mut ends = Ends::new(first.into_iter().chain(flushed));
    let options = RunOptions {
        captures: captures.to_vec(),
        shape: Shape::from_words(["--quiet".into()])?,
        ..RunOptions::default()
    };
    rows(&options, &mut ends)?;
    Ok(Some(ends))
}
