//! Replacement of `host` in a build without the probe: nothing to report, open or wait for.

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use roce_capture::Interface;
use roce_capture::live::{Notes, Outlet, Stop};
use rustix::thread::CapabilitySet;

use crate::options::names::Names;
use crate::sandbox::Needs;

// Options that a build with the probe understands: recordings of its runs are read here, too. (A comment
// for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(crate) struct HostArguments {
    #[arg(long, hide = true)]
    probe: bool,

    #[arg(long, hide = true, value_name = "BY", default_value = "pcap", value_parser = ["pcap", "tc"])]
    capture: String,

    #[arg(long, hide = true)]
    gpus: bool,
}

#[expect(clippy::unused_self, reason = "as with the probe")]
impl HostArguments {
    pub(crate) const fn cleanup(&self) -> Option<anyhow::Result<ExitCode>> {
        None
    }

    /// Nothing of it is in this build.
    pub(crate) fn can_be_had(&self) -> anyhow::Result<()> {
        if self.probe || self.gpus || self.capture != "pcap" {
            anyhow::bail!(
                "this roce-analyze was built without the probe\nhint: build it with `--features probe`, or omit --probe, --gpus and --capture"
            );
        }
        Ok(())
    }

    /// No tool is started.
    #[expect(clippy::unnecessary_wraps, reason = "as with the probe")]
    pub(crate) const fn gpus(&self, _: Duration, _: &Names) -> anyhow::Result<Option<Infallible>> {
        Ok(None)
    }

    pub(crate) const fn has_probe(&self) -> bool {
        self.probe
    }

    pub(crate) const fn by_libpcap(&self) -> bool {
        true
    }

    pub(crate) const fn way(&self) -> Option<String> {
        None
    }
}

pub(crate) const fn take_off(_: &[String]) {}

/// The switch that requests a run's end: the devices stop at once.
pub(crate) fn end_switch(stop: &Stop) -> Stop {
    stop.clone()
}

pub(crate) struct Host;

#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the probe")]
impl Host {
    pub(crate) const fn open(
        _: &HostArguments,
        _: &[String],
        _: u32,
        _: Option<&str>,
        _: Option<Infallible>,
    ) -> anyhow::Result<Self> {
        Ok(Self)
    }

    pub(crate) const fn interfaces(&self) -> Vec<Interface> {
        Vec::new()
    }

    pub(crate) const fn filtered(&self) -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn calls(&self) -> Needs {
        Needs::default()
    }

    pub(crate) const fn capabilities(&self) -> CapabilitySet {
        CapabilitySet::empty()
    }

    pub(crate) fn start(
        self,
        _: Vec<Outlet>,
        _: Notes,
        _: Duration,
        _: &Stop,
        _: &Stop,
    ) -> anyhow::Result<Threads> {
        Ok(Threads)
    }
}

pub(crate) struct Threads;

#[expect(clippy::unused_self, reason = "as with the probe")]
impl Threads {
    pub(crate) const fn end(self) {}
}
