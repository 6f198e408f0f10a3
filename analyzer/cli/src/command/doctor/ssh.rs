//! Other hosts over the system's ssh: `roce-analyze doctor --record -` runs there, and its recording is judged here.
//!
//! ssh_config, agents and jump hosts are the user's own. ssh asks for no password and accepts no new host key.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use roce_fabric::doctor::Host;
use roce_fabric::inventory::SshSettings;
use roce_remote::{Machine, RemoteError};

use super::archive;
use crate::sandbox;

/// Hosts that are read at once.
const MAX_AT_ONCE: usize = 16;
/// Bytes of a compressed recording.
const MAX_BYTES: u64 = 64 << 20;
/// The longest that a host may take, beside the time for which counters are watched.
const PATIENCE: Duration = Duration::from_mins(1);

/// Reads hosts, some at once, in the order of their names. What they sent is decoded when all have answered: behind it nothing is
/// started any more, and a hostile recording finds no right to start anything.
pub(super) fn read_all(
    names: &[String],
    seconds: Option<u64>,
) -> anyhow::Result<Vec<(String, anyhow::Result<Host>)>> {
    if let Some(name) = names.iter().find(|name| name.starts_with('-') || name.is_empty()) {
        bail!("'{name}' is no name of a host");
    }
    let mut all = Vec::new();
    for chunk in names.chunks(MAX_AT_ONCE) {
        let read = std::thread::scope(|scope| {
            let threads: Vec<_> = chunk
                .iter()
                .map(|name| scope.spawn(move || read(name, seconds)))
                .collect();
            let results = threads.into_iter().map(|thread| {
                let result = thread.join();
                result.unwrap_or_else(|_| Err(anyhow!("it could not be read")))
            });
            results.collect::<Vec<_>>()
        });
        all.extend(chunk.iter().cloned().zip(read));
    }
    sandbox::offline();
    let decoded = all.into_iter().map(|(name, bytes)| {
        let host = bytes.and_then(|bytes: Vec<u8>| archive::read(bytes.as_slice(), &name));
        (name, host)
    });
    Ok(decoded.collect())
}

/// The recording that a host sends.
fn read(name: &str, seconds: Option<u64>) -> anyhow::Result<Vec<u8>> {
    let duration = seconds.map_or_else(String::new, |seconds| format!(" --duration {seconds}s"));
    let patience = PATIENCE + Duration::from_secs(seconds.unwrap_or(0));
    let machine = Machine::new(name, name, None, &Arc::new(SshSettings::default()));
    let script = format!("roce-analyze doctor --record -{duration}");
    machine
        .run_within(&script, patience, MAX_BYTES)
        .map_err(|error| match error {
            RemoteError::NotFound(_) => anyhow!(
                "roce-analyze is not installed there\nhint: copy it there, or run `roce-analyze doctor --record host.tar.zst` on the host \
             and `roce-analyze doctor --root host.tar.zst` here"
            ),
            RemoteError::Failed { text, .. } => anyhow!("roce-analyze failed there: {text}"),
            error => error.into(),
        })
}
