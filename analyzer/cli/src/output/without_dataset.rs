//! Builds without datasets: `-o` is refused.

use std::path::Path;
#[cfg(feature = "live")]
use std::time::Duration;

use anyhow::bail;
use roce_model::{RunKey, RunSummary, Sink, Time};
use roce_report::JsonFlows;

use crate::options::arguments::FleetScope;

pub(crate) fn dataset(_: &Path, _: &RunKey, _: bool, _: bool, _: JsonFlows) -> anyhow::Result<Box<dyn Sink>> {
    bail!("this build cannot write datasets\nhint: build it with the feature `parquet`")
}

pub(crate) fn fleet_run(
    _: &Path,
    _: &RunKey,
    _: Option<Time>,
    _: &FleetScope,
    _: bool,
) -> anyhow::Result<Box<dyn Sink>> {
    bail!("this build cannot write datasets\nhint: build it with the feature `parquet`")
}

pub(crate) fn failed_run(_: &Path, _: &RunSummary) -> anyhow::Result<()> {
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
