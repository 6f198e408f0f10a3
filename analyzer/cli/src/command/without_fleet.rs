//! `joined` of a build without fleet runs.

use std::path::Path;

use roce_pipeline::KnownCapture;

use crate::options::arguments::RunOptions;

/// True for the folder of a fleet run: this build knows none.
pub(crate) const fn is_fleet(_: &Path) -> bool {
    false
}

/// The options of a run whose folder is the only capture: none.
#[expect(clippy::unnecessary_wraps, reason = "one with fleet runs can fail")]
pub(crate) const fn joined(_: &RunOptions) -> anyhow::Result<Option<(RunOptions, Vec<KnownCapture>)>> {
    Ok(None)
}
