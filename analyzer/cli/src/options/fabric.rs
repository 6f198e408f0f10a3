//! The inventory of switches, hypervisors and hosts: where it is, and its mistakes by file and line.

use std::path::Path;
#[cfg(feature = "live")]
use std::path::PathBuf;

#[cfg(feature = "live")]
use anyhow::bail;
use anyhow::{Context, anyhow};
#[cfg(feature = "live")]
use clap::Args;
use roce_switches::inventory::Inventory;

/// The inventory in the current folder.
#[cfg(feature = "live")]
const HERE: &str = "fabric.toml";
/// The inventory of a user, below the folder of configurations.
#[cfg(feature = "live")]
const OF_USER: &str = "roce-analyze/fabric.toml";
/// Switches and hypervisors of an inventory that are read at once.
#[cfg(feature = "live")]
pub(crate) const MAX_AT_ONCE: usize = 32;
/// Bytes of an inventory.
const MAX_BYTES: u64 = 16 << 20;

// The inventory. (A comment for the compiler would become the help's first line.)
#[cfg(feature = "live")]
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InventoryFile {
    /// The inventory of hosts, switches and hypervisors, and how they are reached
    /// [default: fabric.toml in the current folder, else in ~/.config/roce-analyze]
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
}

#[cfg(feature = "live")]
impl InventoryFile {
    /// The inventory that is named or found; `None`: there is none.
    ///
    /// # Errors
    /// If it cannot be read, or has a mistake: then its file and line are named.
    pub(crate) fn found(&self) -> anyhow::Result<Option<Inventory>> {
        found(self.inventory.as_deref())
    }

    /// The inventory that is named or found.
    ///
    /// # Errors
    /// As those of [`found`](Self::found), and if there is none.
    pub(crate) fn required(&self) -> anyhow::Result<Inventory> {
        match self.found()? {
            Some(inventory) => Ok(inventory),
            None => bail!(
                "there is no inventory {HERE}\nhint: --inventory FILE; the file lists switches, hypervisors and hosts (docs/switches.md)"
            ),
        }
    }
}

/// The inventory that is named, else that of the current folder, else the user's own; `None`: there is none.
///
/// # Errors
/// If it cannot be read, or has a mistake.
#[cfg(feature = "live")]
pub(crate) fn found(named: Option<&Path>) -> anyhow::Result<Option<Inventory>> {
    if let Some(path) = named {
        return read(path).map(Some);
    }
    let places = [Some(PathBuf::from(HERE)), of_user()];
    let path = places.into_iter().flatten().find(|path| path.exists());
    path.as_deref().map(read).transpose()
}

/// The place of a user's own inventory, by the XDG Base Directory Specification.
#[cfg(feature = "live")]
fn of_user() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join(OF_USER))
}

/// An inventory. Files that it names are beside it, unless their paths are absolute.
///
/// # Errors
/// If it cannot be read, or has a mistake.
pub(crate) fn read(path: &Path) -> anyhow::Result<Inventory> {
    let text = roce_files::read_text(path, MAX_BYTES).context("the inventory cannot be read")?;
    let mut inventory = Inventory::parse(&text).map_err(|error| {
        let is_list = path.extension().is_some_and(|extension| extension == "csv");
        let hint = if is_list {
            "\nhint: an inventory is a fabric.toml: rack, job, rank, addresses and captures are keys of [[host]]"
        } else {
            ""
        };
        anyhow!("{}:{error}{hint}", path.display())
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let beside = |name: &mut Option<String>| {
        if let Some(name) = name
            && let Some(joined) = folder.join(&*name).to_str()
        {
            joined.clone_into(name);
        }
    };
    beside(&mut inventory.ssh.config);
    for switch in &mut inventory.switches {
        beside(&mut switch.files);
        beside(&mut switch.password_file);
        beside(&mut switch.ca);
    }
    for hypervisor in &mut inventory.hypervisors {
        beside(&mut hypervisor.files);
    }
    Ok(inventory)
}

#[cfg(feature = "live")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_beside_their_inventory() {
        let folder = std::env::temp_dir().join(format!("roce-analyze-inventory-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("fabric.toml");
        let text = "[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\nread = \"leaf1\"\n\
[[switch]]\nname = \"leaf2\"\nkind = \"nexus\"\nread = \"/srv/leaf2\"\n";
        std::fs::write(&path, text).unwrap();
        let file = InventoryFile {
            inventory: Some(path.clone()),
        };
        let inventory = file.required().unwrap();
        let files: Vec<_> = inventory
            .switches
            .iter()
            .map(|switch| PathBuf::from(switch.files.clone().unwrap()))
            .collect();
        assert_eq!(files, [folder.join("leaf1"), PathBuf::from("/srv/leaf2")]);
        std::fs::write(&path, "[[switch]]\nname = \"leaf1\"\nkind = \"junos\"\n").unwrap();
        let error = file.found().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{}:3: ", path.display())),
            "the file and the line: {error}"
        );
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(
            file.required()
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }

    #[test]
    fn a_named_file_is_not_looked_for_elsewhere() {
        let missing = InventoryFile {
            inventory: Some(PathBuf::from("/nonexistent/fabric.toml")),
        };
        assert!(missing.found().is_err());
    }
}
