//! `fleet clean`: removes what a run has left on hosts.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use roce_remote::each;
use roce_remote::fleet::manifest::Manifest;

use super::collect::reached;
use super::gather::clear;
use super::targets::exit_code;
use crate::options::fabric::InventoryFile;
use crate::output::messages;

/// Hosts that are cleaned at once.
const MAX_AT_ONCE: usize = 32;

/// Remove what a run has left on the hosts: captures that were not collected, and programs of --push
///
/// Only the folder that this run made is removed. A host whose capture is still running is left alone.
#[derive(Args, Debug)]
pub(super) struct Clean {
    /// The folder of the run, with fleet.json
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Hosts that are not in the inventory
    #[arg(value_name = "HOST")]
    names: Vec<String>,

    #[command(flatten)]
    inventory: InventoryFile,
}

pub(super) fn clean(arguments: &Clean) -> anyhow::Result<ExitCode> {
    let manifest = Manifest::read(&arguments.folder)?;
    let targets = reached(&manifest, &arguments.inventory, &arguments.names)?;
    let hosts: Vec<_> = manifest.hosts.iter().zip(&targets).collect();
    let results = each(&hosts, MAX_AT_ONCE, |_, (row, target)| {
        let Some(target) = target else {
            messages::warn(&row.name, "it is not in the inventory");
            return false;
        };
        // A host that never answered has nothing.
        let Some(place) = row.place(&manifest.run) else {
            return true;
        };
        match clear(&target.machine, &place, true) {
            Ok(was_there) => {
                let said = if was_there {
                    "its captures of this run are removed"
                } else {
                    "nothing of this run is left"
                };
                messages::note(&row.name, said);
                true
            }
            Err(error) => {
                messages::error(&format!("{}: {error:#}", row.name));
                false
            }
        }
    });
    let good = results.iter().filter(|good| **good).count();
    Ok(exit_code(good, results.len()))
}
