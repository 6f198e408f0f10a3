//! The hosts that a command is about: those of the inventory, or those that are named.

use std::collections::BTreeSet;

use crate::inventory::{HostTarget, Inventory};

/// Why a name cannot be a host's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostNameError {
    /// It is no word that ssh takes for a host.
    #[error("'{0}' is no name of a host")]
    NoName(String),
    /// It was there before.
    #[error("{0} is named twice")]
    Twice(String),
}

impl Inventory {
    /// The hosts with these names, in their order; without names all of the inventory. A name that is not in it is a host for ssh.
    ///
    /// # Errors
    /// A name is none, or is there twice.
    pub fn chosen_hosts(&self, names: &[impl AsRef<str>]) -> Result<Vec<HostTarget>, HostNameError> {
        if names.is_empty() {
            return Ok(self.hosts.clone());
        }
        let mut seen = BTreeSet::new();
        let mut hosts = Vec::new();
        for name in names {
            let name = name.as_ref();
            let is_odd = |character: char| character.is_whitespace() || character.is_control();
            if name.is_empty() || name.starts_with('-') || name.contains(is_odd) {
                return Err(HostNameError::NoName(name.to_owned()));
            }
            if !seen.insert(name) {
                return Err(HostNameError::Twice(name.to_owned()));
            }
            let known = self.host(name).cloned();
            hosts.push(known.unwrap_or_else(|| HostTarget::named(name)));
        }
        Ok(hosts)
    }
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
        let addresses = |names: &[&str]| {
            let found = inventory.chosen_hosts(names)?;
            Ok::<_, HostNameError>(
                found
                    .iter()
                    .map(|host| host.address().to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(addresses(&[]).unwrap(), ["192.0.2.1", "local"]);
        assert_eq!(addresses(&["gpu2", "other"]).unwrap(), ["local", "other"]);
        for wrong in [&["gpu1", "gpu1"][..], &["-oProxyCommand=x"], &[""], &["a b"]] {
            assert!(addresses(wrong).is_err(), "{wrong:?}");
        }
    }
}
