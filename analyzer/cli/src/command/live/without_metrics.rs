//! Replacement of `metrics` in a build without HTTP: nothing to serve.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use roce_capture::Interface;
use roce_capture::live::Counters;
use roce_model::{Nanos, Sink};

use super::fleet::PartCounts;

// Options that a build with HTTP understands: recordings of its runs are read here, too. (A comment for the compiler would become the
// help's first line.)
#[derive(Args, Debug)]
pub(super) struct MetricsArguments {
    #[arg(long, hide = true, value_name = "ADDRESS")]
    metrics: Option<String>,

    #[arg(long, hide = true, value_name = "N")]
    metrics_flows: Option<usize>,

    #[arg(long, hide = true, value_name = "FILE")]
    web_config: Option<String>,

    #[arg(long, hide = true)]
    listen_anywhere_unprotected: bool,
}

/// Never made.
pub(super) struct Metrics(Infallible);

/// Never made.
pub(super) struct MetricsThread(Infallible);

impl MetricsThread {
    pub(super) fn end(self) {
        match self.0 {}
    }
}

impl Metrics {
    pub(super) fn open(arguments: &MetricsArguments) -> anyhow::Result<Option<Self>> {
        let MetricsArguments {
            metrics,
            metrics_flows: _,
            web_config: _,
            listen_anywhere_unprotected: _,
        } = arguments;
        if metrics.is_some() {
            bail!("--metrics: this program was built without it\nhint: build it with the feature http");
        }
        Ok(None)
    }

    pub(super) fn folders(&self) -> Vec<PathBuf> {
        match self.0 {}
    }

    pub(super) fn serve(
        self,
        _: Nanos,
        _: &str,
        _: &[Interface],
        _: Arc<Counters>,
        _: Option<Arc<PartCounts>>,
    ) -> anyhow::Result<(MetricsThread, Box<dyn Sink + Send>)> {
        match self.0 {}
    }
}
