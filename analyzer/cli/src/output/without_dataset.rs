//! Builds without datasets: `-o` is refused.

use std::path::Path;
#[cfg(feature = "live")]
use std::time::Duration;

use anyhow::bail;
use roce_model::{RunKey, Sink};
use roce_report::JsonFlows;

pub(crate) fn dataset(_: &Path, _: &RunKey, _: bool, _: bool, _: JsonFlows) -> anyhow::Result<Box<dyn Sink>> {
    bail!("this build cannot write datasets\nhint: build it with the feature `parquet`")
}

#[cfg(feature = "live")]
pub(crate) fn live_dataset(
    _: &Path,
    _: &RunKey,
    _: bool,
    _: Duration,
    _: JsonFlows,
) -> anyhow::Result<Box<dyn Sink + Send>> {
    bail!("this build cannot write datasets\nhint: build it with the feature `parquet`")
}

pub(crate) fn written(dir: &Path) -> String {
    dir.display().to_string()
}
