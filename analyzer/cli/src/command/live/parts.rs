//! Interface between a run in parts (`fleet`) and the run around it. A build without datasets or object stores has no such runs.

use std::path::PathBuf;
use std::process::ExitCode;

use crossbeam_channel::Receiver;
use roce_capture::live::Stop;
use roce_metrics::Exposition;
use roce_model::{RunKey, Sink};
use roce_pipeline::{LiveFeed, Tick};

use super::fabric::FabricThread;
use crate::options::names::Names;
use crate::options::settings::RunSettings;

/// A run in parts, before it has rights given up.
pub(super) trait Parts {
    /// The folder on this machine into which the run writes.
    fn folder(&self) -> PathBuf;

    /// Opens the folder with the rights that are left, and finds the parts in it.
    ///
    /// # Errors
    /// It cannot be written, or another run uploads from it.
    fn open(self: Box<Self>, key: &RunKey) -> anyhow::Result<Box<dyn OpenParts>>;
}

/// A run in parts whose folder is open.
pub(super) trait OpenParts: Send {
    /// Publishes the numbers of parts as metrics.
    fn publisher(&self) -> PartPublisher;

    /// Takes the stream to parts until it ends; then the last uploads, within their time.
    ///
    /// # Errors
    /// The metrics fail, or there is no thread for uploads.
    fn run(self: Box<Self>, stream: PartStream, around: RunAround<'_>) -> anyhow::Result<ExitCode>;
}

/// Adds the numbers of parts to a text of metrics.
pub(super) type PartPublisher = Box<dyn Fn(&mut Exposition) + Send>;

/// The stream that becomes parts.
#[cfg_attr(
    not(feature = "object-store"),
    expect(dead_code, reason = "a build without datasets or object stores has no parts")
)]
pub(super) struct PartStream {
    pub(super) feed: LiveFeed,
    /// Reads switches and hypervisors.
    pub(super) fabric: Option<FabricThread>,
    /// The devices.
    pub(super) input: String,
    /// Seed of the hashes.
    pub(super) seed: u64,
}

/// Settings of the run around the parts, and its ends.
#[cfg_attr(
    not(feature = "object-store"),
    expect(dead_code, reason = "a build without datasets or object stores has no parts")
)]
pub(super) struct RunAround<'a> {
    pub(super) names: &'a Names,
    pub(super) settings: &'a RunSettings,
    pub(super) ticks: &'a Receiver<Tick>,
    pub(super) metrics: Option<Box<dyn Sink + Send>>,
    pub(super) end: &'a Stop,
}
