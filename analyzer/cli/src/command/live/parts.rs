//! Interface between a run in parts (`fleet`) and the run around it.

#![cfg_attr(
    not(all(feature = "parquet", feature = "object-store")),
    expect(dead_code, reason = "a build without datasets or object stores has no parts")
)]

use std::path::Path;

use roce_pipeline::LiveFeed;

use super::fabric::FabricThread;
use crate::options::format::Format;

/// Options that decide whether there are parts, and where they go.
pub(super) struct Request<'a> {
    /// `-o`: a folder, or a place in a store.
    pub(super) output: Option<&'a Path>,
    pub(super) format: Format,
    pub(super) record: bool,
    pub(super) no_sandbox: bool,
    pub(super) user: Option<&'a str>,
}

/// The stream that becomes parts.
pub(super) struct PartStream {
    pub(super) feed: LiveFeed,
    /// Reads switches and hypervisors.
    pub(super) fabric: Option<FabricThread>,
    /// The devices.
    pub(super) input: String,
    /// Seed of the hashes.
    pub(super) seed: u64,
}
