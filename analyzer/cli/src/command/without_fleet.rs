//! `joined` of a build without fleet runs.

use std::path::Path;

use roce_pipeline::KnownClock;

use crate::options::arguments::Analyse;

/// Captures of a fleet run.
pub(crate) struct JoinedCaptures {
    pub(crate) arguments: Analyse,
    pub(crate) clocks: Vec<Option<KnownClock>>,
    pub(crate) names: Vec<String>,
}

/// True for the folder of a fleet run: this build knows none.
pub(crate) const fn is_fleet(_: &Path) -> bool {
    false
}

/// The run whose folder is the only argument: none.
#[expect(clippy::unnecessary_wraps, reason = "one with fleet runs can fail")]
pub(crate) const fn joined(_: &Analyse) -> anyhow::Result<Option<JoinedCaptures>> {
    Ok(None)
}
