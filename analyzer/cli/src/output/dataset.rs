//! The sink that writes the folder of `-o`.

use std::path::Path;
#[cfg(feature = "live")]
use std::time::Duration;

use roce_model::{RunKey, Sink};
use roce_pipeline::folder::{DOCUMENT, Folder, PAGE};
use roce_report::JsonFlows;

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
