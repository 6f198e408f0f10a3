//! `fleet collect`: goes on where a run was interrupted.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use roce_files::{Access, Directory};
use roce_remote::fleet::manifest::{HostRow, Manifest};

use super::book::Book;
use super::gather::gather;
use super::interrupt::Interrupts;
use super::table;
use super::targets::{Target, exit_code, targets_of};
use crate::options::fabric::InventoryFile;
use crate::output::messages;

/// Fetch what an interrupted `fleet capture` left on the hosts
///
/// Files go on where their transfer stopped, are compared by their SHA-256, and are then removed from the host.
#[derive(Args, Debug)]
pub(super) struct Collect {
    /// The folder of the run, with fleet.json
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Hosts that are not in the inventory
    #[arg(value_name = "HOST")]
    names: Vec<String>,

    #[command(flatten)]
    inventory: InventoryFile,
}

/// The manifest's hosts as the inventory reaches them, or by their names if those are given; `None`: neither knows the host. A manifest
/// alone starts nothing.
pub(super) fn reached(
    manifest: &Manifest,
    inventory: &InventoryFile,
    names: &[String],
) -> anyhow::Result<Vec<Option<Target>>> {
    let inventory = inventory.found()?;
    if inventory.is_none() && names.is_empty() {
        bail!(
            "there is no inventory\nhint: --inventory FILE says how the hosts are reached; the manifest does not"
        );
    }
    let inventory = inventory.unwrap_or_default();
    let target = |row: &HostRow| {
        if inventory.host(&row.name).is_none() && !names.contains(&row.name) {
            return None;
        }
        targets_of(&inventory, std::slice::from_ref(&row.name))
            .ok()?
            .pop()
    };
    Ok(manifest.hosts.iter().map(target).collect())
}

pub(super) fn collect(arguments: &Collect) -> anyhow::Result<ExitCode> {
    let manifest = Manifest::read(&arguments.folder)?;
    let targets = reached(&manifest, &arguments.inventory, &arguments.names)?;
    for (row, target) in manifest.hosts.iter().zip(&targets) {
        if row.is_pending() && target.is_none() {
            messages::warn(&row.name, "it is not in the inventory: its files stay there");
        }
    }
    let folder = Directory::named(&arguments.folder, Access::Private)?;
    // Warnings of the command before were said by it.
    let said: Vec<usize> = manifest.hosts.iter().map(|row| row.warnings.len()).collect();
    let book = Book::new(folder, manifest)?;
    // A host that failed to be reached is asked once more: its old error is not true any more.
    book.change(|manifest| {
        for row in manifest.hosts.iter_mut().filter(|row| row.is_pending()) {
            row.error = None;
        }
    });
    let interrupts = Interrupts::default();
    interrupts.over(|| {
        gather(&book, &targets, &interrupts);
        Ok(())
    })?;
    let manifest = book.now();
    let good = table::print(&manifest, &arguments.folder, &said)?;
    Ok(exit_code(good, manifest.hosts.len()))
}
