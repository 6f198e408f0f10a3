//! `fabric hypervisor`: readings of hypervisors.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use roce_remote::DeviceReader;
use roce_switches::inventory::{HypervisorKind, HypervisorTarget, Inventory, Transport};

use super::device::{self, DeviceArguments, Target, node_of};

/// Read the adapters of hypervisors: 802.3x pauses and PFC apart, drops, errors, DCB
///
/// Reads the ESXi hosts of the inventory over ssh, or a folder with recorded answers, and shows what their adapters (vmnics) counted;
/// with --duration what changed in this time, and how fast. Changes nothing there.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze fabric hypervisor esxi1 --duration 10s   what changed in ten seconds, and how fast
  roce-analyze fabric hypervisor --read esxi1           a folder with recorded answers, one file for each command")]
pub(super) struct HypervisorArguments {
    /// Names of hypervisors in the inventory [default: all of them]
    #[arg(value_name = "NAME", conflicts_with = "read")]
    names: Vec<String>,

    #[command(flatten)]
    device: DeviceArguments,
}

/// Reads hypervisors and shows them.
pub(super) fn hypervisor(arguments: &HypervisorArguments) -> anyhow::Result<ExitCode> {
    let options = &arguments.device;
    if !options.read.is_empty() {
        let inventory = options.fabric.found()?.unwrap_or_default();
        let target = |folder: &PathBuf| recorded(folder, &inventory);
        let targets = options.read.iter().map(target).collect::<anyhow::Result<_>>()?;
        return device::recorded(targets, options, &inventory.cluster);
    }
    let inventory = options.fabric.required()?;
    let known = inventory.hypervisors.iter().map(|known| known.name.as_str());
    let names = device::chosen(&arguments.names, known, "hypervisor")?;
    let chosen = inventory
        .hypervisors
        .iter()
        .filter(|known| names.contains(&known.name.as_str()));
    let targets = chosen
        .map(|known| target(known, &inventory))
        .collect::<anyhow::Result<_>>()?;
    device::running(targets, options, &inventory.cluster)
}

fn target(hypervisor: &HypervisorTarget, inventory: &Inventory) -> anyhow::Result<Target> {
    let reader = DeviceReader::hypervisor(hypervisor, &Arc::new(inventory.ssh.clone()))
        .with_context(|| format!("hypervisor '{}'", hypervisor.name))?;
    Ok(Target {
        kind: "esxi",
        transport: hypervisor.transport.name(),
        reader,
    })
}

/// A folder with recorded answers.
fn recorded(folder: &Path, inventory: &Inventory) -> anyhow::Result<Target> {
    let hypervisor = HypervisorTarget {
        name: node_of(folder),
        kind: HypervisorKind::Esxi,
        address: None,
        transport: Transport::Files,
        user: None,
        every: Duration::from_secs(15),
        vmnics: Vec::new(),
        switch_ports: std::collections::BTreeMap::new(),
        files: Some(device::folder_text(folder)?),
    };
    target(&hypervisor, inventory)
}
