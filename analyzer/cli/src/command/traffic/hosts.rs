//! The hosts of a plan: those of the inventory, or those that `--host` names.

use std::path::Path;

use anyhow::{anyhow, bail};
use clap::Args;
use roce_jobs::traffic::{Concern, Endpoint, Gravity, TrafficPlan};
use roce_switches::inventory::{HostTarget, Inventory};

use crate::options::fabric::InventoryFile;
use crate::output::messages;

/// Bytes of a plan.
const MAX_BYTES: u64 = 4 << 20;

/// Which hosts a plan may name.
#[derive(Args, Debug)]
pub(super) struct HostArguments {
    #[command(flatten)]
    inventory: InventoryFile,

    /// Hosts that may be used, separated by commas: names of the inventory, or addresses for ssh [default: all of the inventory]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    host: Vec<String>,
}

impl HostArguments {
    /// The inventory, without hosts where there is none.
    pub(super) fn inventory(&self) -> anyhow::Result<Inventory> {
        Ok(self.inventory.found()?.unwrap_or_default())
    }

    /// The ends that `--host` names, `host` or `host:device`.
    pub(super) fn ends(&self) -> anyhow::Result<Vec<Endpoint>> {
        let mut ends: Vec<Endpoint> = Vec::new();
        for text in &self.host {
            let end = Endpoint::parse(text.trim()).map_err(|error| anyhow!("--host: {error}"))?;
            if ends.contains(&end) {
                bail!("--host: '{end}' is named twice");
            }
            ends.push(end);
        }
        Ok(ends)
    }

    /// The hosts that may be used.
    pub(super) fn hosts(&self, inventory: &Inventory) -> anyhow::Result<Vec<HostTarget>> {
        let mut names: Vec<String> = Vec::new();
        // Several devices of a host are one host.
        for end in self.ends()? {
            if !names.contains(&end.host) {
                names.push(end.host);
            }
        }
        Ok(inventory.chosen_hosts(&names)?)
    }
}

/// The plan in a file.
pub(super) fn read_plan(path: &Path) -> anyhow::Result<(TrafficPlan, String)> {
    let text = roce_files::read_text(path, MAX_BYTES)?;
    let plan = TrafficPlan::parse(&text).map_err(|error| anyhow!("{}:{error}", path.display()))?;
    Ok((plan, text))
}

/// Says concerns on standard error; true if one of them is an error.
pub(super) fn say(concerns: &[Concern]) -> bool {
    for concern in concerns {
        match concern.gravity {
            Gravity::Error => messages::error(&concern.text),
            Gravity::Warning => messages::warn("plan", &concern.text),
            Gravity::Note => messages::note("plan", &concern.text),
        }
    }
    concerns.iter().any(|concern| concern.gravity == Gravity::Error)
}
