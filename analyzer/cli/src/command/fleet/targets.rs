//! The hosts of a command: those of the inventory, or those that are named.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use roce_remote::Machine;
use roce_switches::inventory::{HostTarget, Inventory};

use crate::options::fabric::InventoryFile;

/// A host, and how commands are run there.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) host: HostTarget,
    pub(super) machine: Machine,
}

impl Target {
    pub(super) fn name(&self) -> &str {
        &self.host.name
    }
}

/// The hosts with these names; without names all of the inventory. A name that is not in it is a host for ssh.
///
/// # Errors
/// If the inventory cannot be read, or there is no host.
pub(super) fn targets(file: &InventoryFile, names: &[String]) -> anyhow::Result<Vec<Target>> {
    targets_of(&file.found()?.unwrap_or_default(), names)
}

/// As [`targets`], of an inventory.
///
/// # Errors
/// If there is no host, or a name is none.
pub(super) fn targets_of(inventory: &Inventory, names: &[String]) -> anyhow::Result<Vec<Target>> {
    let ssh = Arc::new(inventory.ssh.clone());
    let hosts = inventory.chosen_hosts(names)?;
    if hosts.is_empty() {
        bail!(
            "there is no host\nhint: name hosts, or list them in fabric.toml: [[host]], name = \"gpu1\" (--inventory FILE names another file)"
        );
    }
    let target = |host: HostTarget| Target {
        machine: Machine::host(&host, &ssh),
        host,
    };
    Ok(hosts.into_iter().map(target).collect())
}

/// The exit code of a command over hosts: 0 all, 1 some, 2 none.
pub(super) fn exit_code(good: usize, all: usize) -> ExitCode {
    ExitCode::from(match good {
        good if good == all && all > 0 => 0,
        0 => 2,
        _ => 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_needs_a_host() {
        let error = targets_of(&Inventory::default(), &[]).unwrap_err().to_string();
        assert!(error.contains("there is no host"), "{error}");
        let one = targets_of(&Inventory::default(), &["gpu1".to_owned()]).unwrap();
        assert_eq!(one[0].name(), "gpu1");
    }
}
