//! `fabric counters`: readings of switches and hypervisors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use roce_files::FileTree;
use roce_remote::DeviceReader;
use roce_switches::inventory::{
    HypervisorKind, HypervisorTarget, Inventory, SwitchKind, SwitchTarget, Transport,
};
use roce_switches::pasted::{PastedDevice, pasted};

use super::configure::SwitchSystem;
use super::device::{self, DeviceArguments, Target, node_of};
use crate::command::pasted::described;

/// Bytes of a pasted text.
const MAX_PASTED_BYTES: u64 = 8 << 20;
/// Files of a folder that are looked at for what they are the answers of.
const MAX_LOOKED_AT: usize = 256;

/// Read switches and hypervisors: PFC, 802.3x pauses, drops, ECN marks, queues, errors
///
/// Reads the devices of the inventory over ssh or NX-API, or a folder with recorded answers, and shows what was counted; with --duration
/// what changed in this time, and how fast. Only asks: no setting and no counter of a device is changed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze fabric counters leaf1 esxi1 --duration 10s
      what changed in ten seconds, and how fast
  roce-analyze fabric counters --kind switch
      all switches of the inventory
  roce-analyze fabric counters --read leaf1 --kind nexus
      a folder with recorded answers, one file for each command
  roce-analyze fabric counters --read queuing.txt
      a pasted answer or session, whose content says what it is")]
pub(super) struct CountersArguments {
    /// Names of switches and hypervisors in the inventory [default: all of them]
    #[arg(value_name = "NAME", conflicts_with = "read")]
    names: Vec<String>,

    /// Read only devices of this kind; with --read the kind of the device whose answers are read
    #[arg(long, value_name = "KIND", value_enum, overrides_with = "kind")]
    kind: Option<Kind>,

    #[command(flatten)]
    device: DeviceArguments,
}

/// Kinds of devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Switches with this operating system.
    Of(SwitchSystem),
    /// Switches whose recordings alone are read.
    Recorded,
    Esxi,
    AllSwitches,
}

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Of(SwitchSystem::Nexus),
            Self::Of(SwitchSystem::Sonic),
            Self::Of(SwitchSystem::Eos),
            Self::Of(SwitchSystem::Cumulus),
            Self::Esxi,
            Self::AllSwitches,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Of(system) => system.to_possible_value(),
            Self::Recorded => None,
            Self::Esxi => Some(PossibleValue::new("esxi").help("VMware ESXi")),
            Self::AllSwitches => Some(PossibleValue::new("switch").help("All switches")),
        }
    }
}

impl Kind {
    /// The kind of switches of this operating system.
    fn from_switch(kind: SwitchKind) -> Self {
        SwitchSystem::from_kind(kind).map_or(Self::Recorded, Self::Of)
    }

    /// The kind of a switch; `None`: of hypervisors, or of all switches.
    fn of_switch(self) -> Option<SwitchKind> {
        match self {
            Self::Of(system) => Some(system.kind()),
            Self::Recorded => Some(SwitchKind::Other),
            Self::Esxi | Self::AllSwitches => None,
        }
    }

    /// True if switches of a kind are read.
    fn has(self, kind: SwitchKind) -> bool {
        self == Self::AllSwitches || self.of_switch() == Some(kind)
    }
}

/// Reads devices and shows them.
pub(super) fn counters(arguments: &CountersArguments) -> anyhow::Result<ExitCode> {
    let options = &arguments.device;
    if !options.read.is_empty() {
        let inventory = options.inventory.found()?.unwrap_or_default();
        let target = |folder: &PathBuf| recorded(folder, arguments.kind, &inventory);
        let targets = options.read.iter().map(target).collect::<anyhow::Result<_>>()?;
        return device::recorded(targets, options, &inventory.cluster);
    }
    let inventory = options.inventory.required()?;
    let is_read = |kind: SwitchKind| arguments.kind.is_none_or(|wanted| wanted.has(kind));
    let switches: Vec<_> = inventory
        .switches
        .iter()
        .filter(|switch| is_read(switch.kind))
        .collect();
    let hypervisors = match arguments.kind {
        None | Some(Kind::Esxi) => inventory.hypervisors.as_slice(),
        Some(_) => &[],
    };
    let known = switches.iter().map(|switch| switch.name.as_str());
    let known = known.chain(hypervisors.iter().map(|known| known.name.as_str()));
    let what = match arguments.kind {
        None => "switch]] or [[hypervisor",
        Some(Kind::Esxi) => "hypervisor",
        Some(_) => "switch",
    };
    let names = device::chosen(&arguments.names, known, what)?;
    let mut targets = Vec::new();
    for switch in switches {
        if names.contains(&switch.name.as_str()) {
            targets.push(of_switch(switch, &inventory)?);
        }
    }
    for hypervisor in hypervisors {
        if names.contains(&hypervisor.name.as_str()) {
            targets.push(of_hypervisor(hypervisor, &inventory)?);
        }
    }
    device::running(targets, options, &inventory.cluster)
}

fn of_switch(switch: &SwitchTarget, inventory: &Inventory) -> anyhow::Result<Target> {
    let reader = DeviceReader::switch(switch, &Arc::new(inventory.ssh.clone()))
        .with_context(|| format!("switch '{}'", switch.name))?;
    Ok(Target {
        kind: switch.kind.name(),
        transport: switch.transport.name(),
        reader,
    })
}

fn of_hypervisor(hypervisor: &HypervisorTarget, inventory: &Inventory) -> anyhow::Result<Target> {
    let reader = DeviceReader::hypervisor(hypervisor, &Arc::new(inventory.ssh.clone()))
        .with_context(|| format!("hypervisor '{}'", hypervisor.name))?;
    Ok(Target {
        kind: "esxi",
        transport: hypervisor.transport.name(),
        reader,
    })
}

/// The kind of a device whose answers were recognised.
fn kind_of(device: PastedDevice) -> Kind {
    match device {
        PastedDevice::Hypervisor => Kind::Esxi,
        PastedDevice::Switch(wanted) => Kind::from_switch(wanted),
    }
}

/// The device whose answers a file has, by its content.
fn pasted_kind(file: &Path) -> anyhow::Result<Kind> {
    let text = roce_files::read_text(file, MAX_PASTED_BYTES)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let Some(found) = pasted(&text, &name) else {
        bail!(
            "{}: no answer of a switch or hypervisor that is known in this text{}\nhint: a session with its prompts, or one whole answer, such as that of \
             show queuing interface, show pfc counters or vsish",
            file.display(),
            described(&text)
        );
    };
    Ok(kind_of(found.device))
}

/// The device whose answers a folder has: that of its name in the inventory, else by the content of its files.
fn folder_kind(folder: &Path, inventory: &Inventory) -> Option<Kind> {
    let name = node_of(folder);
    if let Some(switch) = inventory.switch(&name) {
        return Some(Kind::from_switch(switch.kind));
    }
    if inventory.hypervisor(&name).is_some() {
        return Some(Kind::Esxi);
    }
    let tree = FileTree::recorded(folder).ok()?;
    let names = tree.names("").ok()?;
    names.iter().take(MAX_LOOKED_AT).find_map(|file| {
        let text = tree.whole_text(file, MAX_PASTED_BYTES).ok()?;
        let name = Path::new(file).file_stem()?.to_string_lossy();
        Some(kind_of(pasted(&text, &name)?.device))
    })
}

/// A device whose answers are in a folder or a text. The kind is known by itself where it is not said.
pub(super) fn of_recording(path: &Path, inventory: &Inventory) -> anyhow::Result<Target> {
    recorded(path, None, inventory)
}

/// A folder with recorded answers, or a pasted text.
fn recorded(folder: &Path, kind: Option<Kind>, inventory: &Inventory) -> anyhow::Result<Target> {
    let files = Some(device::folder_text(folder)?);
    let found = if folder.is_file() {
        Some(pasted_kind(folder)?)
    } else {
        kind.filter(|kind| *kind != Kind::AllSwitches)
            .or_else(|| folder_kind(folder, inventory))
    };
    let Some(found) = found else {
        bail!(
            "{}: no answer of a switch or hypervisor that is known in this folder\nhint: --kind nexus, sonic, eos, cumulus or esxi says what it is",
            folder.display()
        );
    };
    if kind == Some(Kind::AllSwitches) && found == Kind::Esxi {
        bail!(
            "{}: the answers of a hypervisor, and no switch\nhint: fabric hypervisor --read",
            folder.display()
        );
    }
    let kind = Some(found);
    let every = Duration::from_secs(15);
    let Some(kind) = kind.and_then(Kind::of_switch) else {
        let hypervisor = HypervisorTarget {
            name: node_of(folder),
            kind: HypervisorKind::Esxi,
            address: None,
            transport: Transport::Files,
            user: None,
            every,
            vmnics: Vec::new(),
            switch_ports: BTreeMap::new(),
            files,
        };
        return of_hypervisor(&hypervisor, inventory);
    };
    let switch = SwitchTarget {
        name: node_of(folder),
        kind,
        address: None,
        transport: Transport::Files,
        user: None,
        every,
        switch_ports: BTreeMap::new(),
        equal_cost: Vec::new(),
        url: None,
        password_file: None,
        password_env: None,
        ca: None,
        fingerprint: None,
        files,
    };
    of_switch(&switch, inventory)
}
