//! The sink that writes the folder of `-o`.

use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "live")]
use std::time::Duration;

use roce_files::Access;
use roce_model::{RunKey, RunSummary, Sink, Time};
use roce_parquet::{FolderStorage, Storage};
use roce_pipeline::fleet::{FleetRun, Scope};
use roce_pipeline::folder::{DOCUMENT, Folder, PAGE};
use roce_report::JsonFlows;

use crate::options::arguments::FleetScope;
use crate::output::messages::sink_error;

/// Begins the results in `dir`.
pub(crate) fn dataset(
    dir: &Path,
    key: &RunKey,
    overwrite: bool,
    parallel: bool,
    flows: JsonFlows,
) -> anyhow::Result<Box<dyn Sink>> {
    Ok(Box::new(Folder::create(dir, key, overwrite, parallel, flows)?))
}

/// The place of a dataset of many runs.
pub(crate) fn storage(place: &Path) -> anyhow::Result<Arc<dyn Storage>> {
    Ok(Arc::new(FolderStorage::open(place, Access::Umask)?))
}

/// Begins the rows of a run in the dataset of many at `place`. The time of its first frame is `first`; the manifest line goes to standard output.
pub(crate) fn fleet_run(
    place: &Path,
    key: &RunKey,
    first: Option<Time>,
    scope: &FleetScope,
    parallel: bool,
) -> anyhow::Result<Box<dyn Sink>> {
    let scope = Scope {
        tables: scope.tables.clone(),
        hops_to: scope.hops_to,
        day: scope.run_date.clone(),
    };
    let run = FleetRun::create(&storage(place)?, key, first, scope, parallel, std::io::stdout())?;
    Ok(Box::new(run))
}

/// Writes a run whose captures cannot be read to the dataset of many at `place`, and its manifest line to standard output.
pub(crate) fn failed_run(place: &Path, run: &RunSummary) -> anyhow::Result<()> {
    FleetRun::write_failed(&storage(place)?, run, std::io::stdout()).map_err(sink_error)
}

/// Starts the results of a live run in `dir`: a part is closed at the first interval after `parts`.
#[cfg(feature = "live")]
pub(crate) fn live_dataset(
    dir: &Path,
    key: &RunKey,
    overwrite: bool,
    parts: Duration,
    flows: JsonFlows,
) -> anyhow::Result<Box<dyn Sink + Send>> {
    Ok(Box::new(Folder::create_live(dir, key, overwrite, parts, flows)?))
}

/// The paths in the folder of results, for people.
pub(crate) fn written(dir: &Path) -> String {
    format!(
        "{}, {} and Parquet tables in {}",
        dir.join(PAGE).display(),
        dir.join(DOCUMENT).display(),
        dir.display()
    )
}
