//! The inventory of hosts, switches and hypervisors, as an option.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use roce_fabric::inventory::Inventory;

/// The inventory that is read where none is named.
const DEFAULT: &str = "fabric.toml";
/// Bytes of an inventory.
const MAX_BYTES: u64 = 4 << 20;

// The inventory. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InventoryFile {
    /// The inventory of hosts and how they are reached [default: fabric.toml in the current folder]
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
}

impl InventoryFile {
    /// The inventory; `None`: none is named, and there is no fabric.toml.
    ///
    /// # Errors
    /// If it cannot be read, or has a mistake.
    pub(crate) fn read(&self) -> anyhow::Result<Option<Inventory>> {
        let path = match &self.hosts {
            Some(path) => path,
            None if Path::new(DEFAULT).exists() => Path::new(DEFAULT),
            None => return Ok(None),
        };
        let text = roce_files::read_text(path, MAX_BYTES)
            .with_context(|| format!("the inventory {} cannot be read", path.display()))?;
        let inventory = Inventory::parse(&text).map_err(|error| anyhow!("{}:{error}", path.display()))?;
        Ok(Some(inventory))
    }
}
