//! The hosts of a command: those of the inventory, or those that are named.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use roce_fabric::inventory::{HostTarget, Inventory};
use roce_remote::Machine;

use crate::options::fabric::HostsFile;

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
pub(super) fn targets(file: &HostsFile, names: &[String]) -> anyhow::Result<Vec<Target>> {
    targets_of(&file.found()?.unwrap_or_default(), names)
}

/// As [`targets`], of an inventory.
///
/// # Errors
/// If there is no host, or a name is none.
pub(super) fn targets_of(inventory: &Inventory, names: &[String]) -> anyhow::Result<Vec<Target>> {
    let ssh = Arc::new(inventory.ssh.clone());
    let mut hosts: Vec<HostTarget> = Vec::new();
    for name in names {
        if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
            bail!("'{name}' is no name of a host");
        }
        if hosts.iter().any(|host| host.name == *name) {
            bail!("{name} is named twice");
        }
        let known = inventory.host(name).cloned();
        hosts.push(known.unwrap_or_else(|| HostTarget::named(name)));
    }
    if names.is_empty() {
        hosts.clone_from(&inventory.hosts);
    }
    if hosts.is_empty() {
        bail!(
            "there is no host\nhint: name hosts, or list them in fabric.toml: [[host]], name = \"gpu1\" (--hosts FILE names another file)"
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
    fn hosts_are_those_of_the_inventory_or_those_that_are_named() {
        let inventory = Inventory::parse(
            "[[host]]\nname = \"gpu1\"\naddress = \"192.0.2.1\"\n[[host]]\nname = \"gpu2\"\naddress = \"local\"\n",
        )
        .unwrap();
        let names = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let found = targets_of(&inventory, &names)?;
            anyhow::Ok(
                found
                    .iter()
                    .map(|target| target.host.address().to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(names(&[]).unwrap(), ["192.0.2.1", "local"]);
        assert_eq!(names(&["gpu2", "other"]).unwrap(), ["local", "other"]);
        for wrong in [&["gpu1", "gpu1"][..], &["-oProxyCommand=x"], &[""], &["a b"]] {
            assert!(names(wrong).is_err(), "{wrong:?}");
        }
        assert!(targets_of(&Inventory::default(), &[]).is_err());
    }
}
