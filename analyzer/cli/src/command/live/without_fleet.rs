//! Replacement of `fleet` in a build without datasets or object stores: no run in parts.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use crossbeam_channel::Receiver;
use roce_capture::live::Stop;
use roce_model::{RunKey, Sink};
use roce_pipeline::Tick;

use super::parts::{PartStream, Request};
use crate::options::arguments::Layout;
use crate::options::names::Names;
use crate::options::settings::RunSettings;

// Options that a whole build understands. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(super) struct FleetArguments {
    #[arg(long, hide = true, value_enum, default_value = "run")]
    layout: Layout,

    #[arg(long, hide = true, value_name = "TIME")]
    every: Option<String>,

    #[arg(long, hide = true, value_name = "SIZE")]
    keep: Option<String>,

    #[arg(long, hide = true, value_name = "DIR")]
    spool: Option<String>,

    #[arg(long, hide = true, value_name = "TIME")]
    upload_wait: Option<String>,
}

/// Never made.
#[derive(Debug)]
pub(super) struct PartCounts(Infallible);

impl PartCounts {
    pub(super) fn never(&self) -> ! {
        match self.0 {}
    }
}

/// Never made.
pub(super) struct Fleet(Infallible);

/// Never made.
pub(super) struct OpenFleet(Infallible);

impl FleetArguments {
    pub(super) fn start(&self, _: &Request<'_>) -> anyhow::Result<Option<Fleet>> {
        let Self {
            layout,
            every: _,
            keep: _,
            spool: _,
            upload_wait: _,
        } = self;
        if *layout == Layout::Fleet {
            bail!(
                "--layout fleet: this program was built without it\nhint: build it with the features parquet and object-store"
            );
        }
        Ok(None)
    }
}

impl Fleet {
    pub(super) fn folder(&self) -> PathBuf {
        match self.0 {}
    }

    pub(super) fn open(self, _: &RunKey) -> anyhow::Result<OpenFleet> {
        match self.0 {}
    }
}

impl OpenFleet {
    pub(super) fn counts(&self) -> Arc<PartCounts> {
        match self.0 {}
    }

    pub(super) fn run(
        self,
        _: PartStream,
        _: &Names,
        _: &RunSettings,
        _: &Receiver<Tick>,
        _: Option<Box<dyn Sink + Send>>,
        _: &Stop,
    ) -> anyhow::Result<ExitCode> {
        match self.0 {}
    }
}
