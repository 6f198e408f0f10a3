//! Other hosts over the system's ssh: `roce-analyze doctor --record -` runs there, and its recording is judged here.
//!
//! ssh_config, agents and jump hosts are the user's own. ssh asks for no password and accepts no new host key.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use roce_fabric::doctor::Host;

use super::archive;
use crate::command::program::{self, Ended, Failure, Limits};
use crate::sandbox;

/// Hosts that are read at once.
const MAX_AT_ONCE: usize = 16;
/// Bytes of a compressed recording.
const MAX_BYTES: u64 = 64 << 20;
/// Bytes of what ssh says.
const MAX_MESSAGE_BYTES: u64 = 64 << 10;
/// The longest that a host may take, beside the time for which counters are watched.
const PATIENCE: Duration = Duration::from_mins(1);

/// Options of ssh: no questions, and a connection that is dead ends.
const OPTIONS: [&str; 8] = [
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=5",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=2",
];

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
    let mut ssh = Command::new("ssh");
    ssh.args(OPTIONS)
        .args(["-T", "--", name])
        .arg(format!("roce-analyze doctor --record -{duration}"));
    let limits = Limits {
        patience,
        output: MAX_BYTES,
        errors: MAX_MESSAGE_BYTES,
    };
    let Ended {
        status,
        output,
        errors,
    } = match program::run(&mut ssh, limits) {
        Ok(ended) => ended,
        Err(Failure::System(error)) => {
            return Err(error).context("ssh cannot be started\nhint: the package openssh-client has it");
        }
        Err(Failure::NoAnswer) => bail!("it did not answer within {} s", patience.as_secs()),
    };
    let said = String::from_utf8_lossy(&errors);
    let last = said
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    match status.code() {
        Some(0) => Ok(output),
        Some(255) => bail!("ssh cannot connect: {last}"),
        // The shell's code of a command that it does not find.
        Some(127) => bail!(
            "roce-analyze is not installed there\nhint: copy it there, or run `roce-analyze doctor --record host.tar.zst` on the host \
             and `roce-analyze doctor --root host.tar.zst` here"
        ),
        _ => bail!("roce-analyze failed there: {last}"),
    }
}
