//! Other hosts over the system's ssh: `roce-analyze doctor --record -` runs there, and its recording is judged here.
//!
//! ssh_config, agents and jump hosts are the user's own. ssh asks for no password and accepts no new host key.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use roce_hosts::doctor::Host;
use roce_remote::{Machine, RemoteError, each, quoted};
use roce_switches::inventory::Inventory;

use super::archive;
use crate::sandbox;

/// Hosts that are read at once.
const MAX_AT_ONCE: usize = 16;
/// Bytes of a compressed recording.
const MAX_BYTES: u64 = 64 << 20;
/// The longest that a host may take, beside the time for which counters are watched.
const PATIENCE: Duration = Duration::from_mins(1);

/// Hosts with these names, without names all of the inventory: those of the inventory as it has them, others for ssh.
///
/// # Errors
/// A name is none.
pub(super) fn machines(inventory: &Inventory, names: &[String]) -> anyhow::Result<Vec<Machine>> {
    let ssh = Arc::new(inventory.ssh.clone());
    let hosts = inventory.chosen_hosts(names)?;
    if hosts.is_empty() {
        bail!(
            "there is no host\nhint: name hosts, or list them in fabric.toml: [[host]], name = \"gpu1\" (--inventory FILE names another file)"
        );
    }
    Ok(hosts.iter().map(|host| Machine::host(host, &ssh)).collect())
}

/// Reads hosts, some at once, in their order. What they sent is decoded when all have answered: behind it nothing is
/// started any more, and a hostile recording finds no right to start anything.
pub(super) fn read_all(machines: &[Machine], seconds: Option<u64>) -> Vec<(String, anyhow::Result<Host>)> {
    let read = each(machines, MAX_AT_ONCE, |_, machine| read(machine, seconds));
    sandbox::offline();
    let decoded = machines.iter().zip(read).map(|(machine, bytes)| {
        let name = machine.name().to_owned();
        let host = bytes.and_then(|bytes: Vec<u8>| archive::read(bytes.as_slice(), &name));
        (name, host)
    });
    decoded.collect()
}

/// The recording that a host sends.
fn read(machine: &Machine, seconds: Option<u64>) -> anyhow::Result<Vec<u8>> {
    let duration = seconds.map_or_else(String::new, |seconds| format!(" --duration {seconds}s"));
    let patience = PATIENCE + Duration::from_secs(seconds.unwrap_or(0));
    // On this machine it is this very program, which may not be installed.
    let own = std::env::current_exe().ok().filter(|_| machine.is_local());
    let own = own
        .as_deref()
        .and_then(|path| path.to_str())
        .unwrap_or("roce-analyze");
    let script = format!("{} doctor --record -{duration}", quoted([own])?);
    machine
        .run_within(&script, patience, MAX_BYTES)
        .map_err(|error| match error {
            RemoteError::NotFound(_) => anyhow!(
                "roce-analyze is not installed there\nhint: copy it there, or run `roce-analyze doctor --record host.tar.zst` on the host \
             and `roce-analyze doctor --read host.tar.zst` here"
            ),
            RemoteError::Failed { text, .. } => anyhow!("roce-analyze failed there: {text}"),
            error => error.into(),
        })
}
