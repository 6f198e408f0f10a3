//! Replacement of `fabric` in a build without the probe: switches and hypervisors are not read.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use roce_capture::live::{Notes, Stop};
use roce_model::Wiring;

// Options that a build with the probe understands: recordings of its runs are read here, too. (A comment for the compiler would become
// the help's first line.)
#[derive(Args, Debug)]
pub(crate) struct FabricArguments {
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) fabric: Option<PathBuf>,
}

impl FabricArguments {
    /// Nothing of it is in this build.
    pub(crate) fn start(&self, _: Option<&str>, _: bool) -> anyhow::Result<Option<FabricStream>> {
        if self.fabric.is_some() {
            anyhow::bail!(
                "this roce-analyze was built without the probe\nhint: build it with `--features probe`, or omit --inventory"
            );
        }
        Ok(None)
    }
}

/// There is none.
pub(crate) struct FabricStream(Infallible);

impl FabricStream {
    pub(crate) fn begin(self, _: Notes, _: &Stop, _: &Stop) -> anyhow::Result<FabricThread> {
        match self.0 {}
    }
}

/// There is none.
pub(crate) struct FabricThread(Infallible);

impl FabricThread {
    pub(crate) fn wiring(&self) -> Arc<Wiring> {
        match self.0 {}
    }

    pub(crate) fn end(self) {
        match self.0 {}
    }
}
