//! `fabric switch`: readings of switches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use roce_remote::DeviceReader;
use roce_switches::inventory::{Inventory, SwitchKind, SwitchTarget, Transport};

use super::device::{self, DeviceArguments, Target, node_of};

/// Read switches: PFC by interface and priority, 802.3x pauses, drops, ECN marks, queues, neighbours
///
/// Reads the switches of the inventory over ssh or NX-API, or a folder with recorded answers, and shows what was counted; with --duration
/// what changed in this time, and how fast. Only asks: no setting and no counter of a switch is changed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze fabric switch leaf1 leaf2 --duration 10s   what changed in ten seconds, and how fast
  roce-analyze fabric switch --read leaf1 --kind nexus    a folder with recorded answers, one file for each command")]
pub(super) struct SwitchArguments {
    /// Names of switches in the inventory [default: all of them]
    #[arg(value_name = "NAME", conflicts_with = "read")]
    names: Vec<String>,

    /// Operating system of the switch whose answers are read: nexus, sonic, eos, cumulus
    #[arg(long, value_name = "KIND", requires = "read", value_parser = parse_kind)]
    kind: Option<SwitchKind>,

    #[command(flatten)]
    device: DeviceArguments,
}

fn parse_kind(text: &str) -> Result<SwitchKind, String> {
    let kinds = [
        SwitchKind::Nexus,
        SwitchKind::Sonic,
        SwitchKind::Eos,
        SwitchKind::Cumulus,
    ];
    let found = kinds.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| "nexus, sonic, eos or cumulus".to_owned())
}

/// Reads switches and shows them.
pub(super) fn switch(arguments: &SwitchArguments) -> anyhow::Result<ExitCode> {
    let options = &arguments.device;
    if !options.read.is_empty() {
        let Some(kind) = arguments.kind else {
            bail!("--read needs the kind of the switch\nhint: --kind nexus, sonic, eos or cumulus");
        };
        let inventory = options.fabric.found()?.unwrap_or_default();
        let target = |folder: &PathBuf| recorded(folder, kind, &inventory);
        let targets = options.read.iter().map(target).collect::<anyhow::Result<_>>()?;
        return device::recorded(targets, options, &inventory.cluster);
    }
    let inventory = options.fabric.required()?;
    let known = inventory.switches.iter().map(|switch| switch.name.as_str());
    let names = device::chosen(&arguments.names, known, "switch")?;
    let chosen = inventory
        .switches
        .iter()
        .filter(|switch| names.contains(&switch.name.as_str()));
    let targets = chosen
        .map(|switch| target(switch, &inventory))
        .collect::<anyhow::Result<_>>()?;
    device::running(targets, options, &inventory.cluster)
}

fn target(switch: &SwitchTarget, inventory: &Inventory) -> anyhow::Result<Target> {
    let reader = DeviceReader::switch(switch, &Arc::new(inventory.ssh.clone()))
        .with_context(|| format!("switch '{}'", switch.name))?;
    Ok(Target {
        kind: switch.kind.name(),
        transport: switch.transport.name(),
        reader,
    })
}

/// A folder with recorded answers.
fn recorded(folder: &Path, kind: SwitchKind, inventory: &Inventory) -> anyhow::Result<Target> {
    let switch = SwitchTarget {
        name: node_of(folder),
        kind,
        address: None,
        transport: Transport::Files,
        user: None,
        every: Duration::from_secs(15),
        switch_ports: BTreeMap::new(),
        equal_cost: Vec::new(),
        url: None,
        password_file: None,
        password_env: None,
        ca: None,
        fingerprint: None,
        files: Some(device::folder_text(folder)?),
    };
    target(&switch, inventory)
}
