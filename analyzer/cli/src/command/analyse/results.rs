//! Results in the folder of `-o`: of one run, or beside those of other runs.

use roce_model::{Sink, Time};

use crate::command::request::PreparedRun;
use crate::options::arguments::{Analyse, Layout};
use crate::output::dataset::{dataset, fleet_run, written};
use crate::output::messages;

/// The sink that writes to the folder of `-o`, if there is one. The time of the run's first frame is `first`.
///
/// # Errors
/// The folder has results already, or cannot be written.
pub(super) fn sink(
    arguments: &Analyse,
    prepared: &PreparedRun,
    first: Option<Time>,
) -> anyhow::Result<Option<Box<dyn Sink>>> {
    let Some(dir) = &arguments.output else {
        return Ok(None);
    };
    let (key, settings) = (&prepared.key, &prepared.settings);
    let parallel = settings.threads > 1;
    let sink = match arguments.layout {
        Layout::Fleet => fleet_run(dir, key, first, &arguments.scope, parallel)?,
        Layout::Run => dataset(dir, key, arguments.overwrite, parallel, settings.json_flows)?,
    };
    Ok(Some(sink))
}

/// Says where the results of a run are.
pub(super) fn note(arguments: &Analyse) {
    let is_noted =
        !arguments.run.shape.quiet && !arguments.is_output_elsewhere && arguments.layout == Layout::Run;
    if let Some(dir) = arguments.output.as_deref().filter(|_| is_noted) {
        messages::wrote(&written(dir));
    }
}
