//! `fabric configure`: commands with their reasons, or the smallest change. Nothing is applied.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use roce_model::text::{clean, escape_json};
use roce_probe::{SnapshotOptions, running_snapshot};
use roce_remote::{DeviceReader, ReaderError};
use roce_switches::configure::{
    self, Change, HostTool, MirrorTunnel, NexusGeneration, Persistence, Settings, Step,
};
use roce_switches::inventory::{Inventory, SwitchKind, SwitchTarget};
use serde_json::{Value, json};

use super::device::chosen;
use crate::command::doctor::stored;
use crate::command::pasted::{configuration, described};
use crate::options::fabric;
use crate::options::format::{Format, text_or_json};
use crate::output::messages;
use crate::sandbox;

/// The longest configuration, or recording of a command, that is read.
const MAX_CONFIGURATION_BYTES: u64 = 16 << 20;
/// Version of the JSON document's form.
const SCHEMA_VERSION: u32 = 1;

const AFTER_HELP: &str = "\
Examples:
  roce-analyze fabric configure host -i ens1f0np0 --tool mlnx_qos
      MLNX_OFED's own tool
  roce-analyze fabric configure host -i ens1f0np0 --print systemd
      kept over restarts
  roce-analyze fabric configure switch --kind nexus --generation first
      a template
  roce-analyze fabric configure switch leaf1 --check
      what a switch of fabric.toml lacks
  roce-analyze fabric configure switch --kind nexus --check --read FILE
      what a recorded configuration lacks";

/// Print the configuration of a host, hypervisor or switch for RoCE, or only what has to change
///
/// Each step says why, what it changes, whether the link goes down, and how it is undone. Nothing is applied, here or elsewhere.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Configure {
    /// Kind of the machine that is configured
    #[arg(value_name = "TARGET", value_enum)]
    target: Target,

    /// Hypervisor or switch of the inventory; --check compares its settings
    #[arg(value_name = "NAME", conflicts_with = "read")]
    name: Option<String>,

    /// The network interface of a host, the adapter (vmnic) of an ESXi host, or ports of a switch [default: with --check all ports of a
    /// switch that are not shut down]
    #[arg(short, long, value_name = "NAME", value_parser = parse_name, value_delimiter = ',')]
    interface: Vec<String>,

    /// The inventory, of which [cluster] is taken: priority and DSCPs
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// Set a value: ecn_min, ecn_max (150k, 3m), ecn_probability, mtu, bandwidth, dev, port
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Compare with what is set and print the smallest change; exit with 1 if there is one
    #[arg(long)]
    check: bool,

    /// Compare a recording in place of the device: a host as `doctor --read` reads it, or the file that an error about --check names
    #[arg(long, value_name = "DIR|FILE", requires = "check")]
    read: Option<PathBuf>,

    /// The tool of a host that sets PFC and the priorities of DSCPs [default: dcb]
    #[arg(long, value_enum, value_name = "TOOL")]
    tool: Option<Tool>,

    /// Print files of this kind for a host, which keep settings over a restart, in place of commands
    #[arg(long, value_enum, value_name = "FILES", conflicts_with = "check")]
    print: Option<Print>,

    /// Operating system of a switch [default: that of the inventory]
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Option<SwitchSystem>,

    /// Print a mirror (ERSPAN) of a switch in place of its settings: first and last packets of messages, answers and CNPs, from the switch's address to
    /// that of the host that captures
    #[arg(long, value_name = "FROM,TO", value_parser = parse_tunnel, conflicts_with = "check")]
    mirror: Option<MirrorTunnel>,

    /// Generation of a Nexus 9000 [default: cloud-scale; with --check that of its classes]
    #[arg(long, value_enum, value_name = "GENERATION")]
    generation: Option<Generation>,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Target {
    /// A Linux host
    Host,
    /// An ESXi host
    Esxi,
    /// A switch
    Switch,
}

impl Configure {
    /// An option that is given and belongs to other targets.
    fn misplaced(&self) -> Option<&'static str> {
        let (is_host, is_switch) = (self.target == Target::Host, self.target == Target::Switch);
        let given = [
            ("NAME", self.name.is_some(), !is_host),
            ("--tool", self.tool.is_some(), is_host),
            ("--print", self.print.is_some(), is_host),
            ("--kind", self.kind.is_some(), is_switch),
            ("--mirror", self.mirror.is_some(), is_switch),
            ("--generation", self.generation.is_some(), is_switch),
            ("a second --interface", self.interface.len() > 1, is_switch),
        ];
        let misplaced = given.into_iter().find(|(_, is_given, fits)| *is_given && !*fits);
        misplaced.map(|(option, ..)| option)
    }
}

/// Tools of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Tool {
    /// dcb of iproute2
    Dcb,
    /// mlnx_qos of MLNX_OFED and DOCA
    #[value(name = "mlnx_qos")]
    MlnxQos,
    /// lldptool of lldpad
    Lldptool,
}

/// Files of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Print {
    /// Kernel arguments, for GRUB and OpenShift
    Kernel,
    /// Limits of locked memory
    Memlock,
    /// Several ports in one subnet
    Sysctl,
    /// A unit that runs the commands
    Systemd,
    /// A pod of Kubernetes
    K8s,
    /// A dispatcher of NetworkManager
    #[value(name = "networkmanager")]
    NetworkManager,
    /// A file of netplan, and a dispatcher
    Netplan,
}

impl Print {
    fn kind(self) -> Persistence {
        match self {
            Self::Kernel => Persistence::Kernel,
            Self::Memlock => Persistence::Memlock,
            Self::Sysctl => Persistence::Sysctl,
            Self::Systemd => Persistence::Systemd,
            Self::K8s => Persistence::K8s,
            Self::NetworkManager => Persistence::NetworkManager,
            Self::Netplan => Persistence::Netplan,
        }
    }

    /// True of files that name an interface.
    fn needs_interface(self) -> bool {
        matches!(self, Self::Systemd | Self::NetworkManager | Self::Netplan)
    }
}

/// Operating systems of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum SwitchSystem {
    /// Cisco NX-OS
    Nexus,
    /// SONiC
    Sonic,
    /// Arista EOS
    Eos,
    /// NVIDIA Cumulus Linux
    Cumulus,
}

impl SwitchSystem {
    /// The system of a kind; `None`: its configuration is not known.
    pub(super) fn from_kind(kind: SwitchKind) -> Option<Self> {
        let mut all = Self::value_variants().iter().copied();
        all.find(|system| system.kind() == kind)
    }

    pub(super) fn kind(self) -> SwitchKind {
        match self {
            Self::Nexus => SwitchKind::Nexus,
            Self::Sonic => SwitchKind::Sonic,
            Self::Eos => SwitchKind::Eos,
            Self::Cumulus => SwitchKind::Cumulus,
        }
    }

    /// An interface for a template.
    fn example(self) -> &'static str {
        match self {
            Self::Nexus => "Ethernet1/1",
            Self::Eos => "Ethernet1",
            Self::Sonic => "Ethernet0",
            Self::Cumulus => "swp1",
        }
    }

    /// Name of the recording that `--read` reads, for the error that it is missing.
    fn recording(self) -> &'static str {
        match self {
            Self::Nexus | Self::Eos => "its 'show running-config'",
            Self::Sonic => "its config_db.json",
            Self::Cumulus => "its 'nv config show -o commands'",
        }
    }
}

/// Generations of Nexus 9000.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Generation {
    /// Four queues
    First,
    /// EX, FX, GX and later: eight queues
    CloudScale,
}

fn parse_name(text: &str) -> Result<String, String> {
    configure::check_name(text)?;
    Ok(text.to_owned())
}

fn parse_tunnel(text: &str) -> Result<MirrorTunnel, String> {
    let ends = text.split_once(',');
    let ends = ends.and_then(|(from, to)| Some((from.trim().parse().ok()?, to.trim().parse().ok()?)));
    let (from, to) =
        ends.ok_or("expected two IPv4 addresses: of the switch, and of the host that captures")?;
    Ok(MirrorTunnel { from, to })
}

/// Output of the command: steps of one device, or changes.
enum ShownPlan {
    Steps(Vec<Step>),
    /// Changes, and checks whose values could not be read.
    Changes(Vec<Change>, Vec<(&'static str, String)>),
}

/// Prints steps, or the changes that are needed.
pub(crate) fn configure(arguments: &Configure) -> anyhow::Result<ExitCode> {
    if let Some(option) = arguments.misplaced() {
        bail!("{option} does not belong to this target\nhint: roce-analyze fabric configure --help");
    }
    let (target, mark, shown) = match arguments.target {
        Target::Host => ("host", '#', host(arguments)?),
        Target::Esxi => ("esxi", '#', esxi(arguments)?),
        Target::Switch => {
            let (kind, shown) = switch(arguments)?;
            let mark = if matches!(kind, SwitchKind::Nexus | SwitchKind::Eos) {
                '!'
            } else {
                '#'
            };
            (kind.name(), mark, shown)
        }
    };
    match arguments.format {
        Format::Text => print_text(&shown, mark)?,
        _ => print_json(&shown, target)?,
    }
    Ok(match shown {
        ShownPlan::Changes(changes, _) if !changes.is_empty() => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

/// The inventory that `--inventory` names; with the name of a device also one that is found.
fn inventory(arguments: &Configure, name: Option<&String>) -> anyhow::Result<Inventory> {
    match (&arguments.inventory, name) {
        (None, None) => Ok(Inventory::default()),
        (Some(path), None) => fabric::read(path),
        (named, Some(_)) => match fabric::found(named.as_deref())? {
            Some(inventory) => Ok(inventory),
            None => bail!("there is no inventory fabric.toml, which has the device\nhint: --inventory FILE"),
        },
    }
}

/// Settings that `--set` gives.
fn settings(arguments: &Configure) -> anyhow::Result<Settings> {
    let pairs = arguments.set.iter().map(String::as_str);
    Settings::from_pairs(pairs).map_err(|error| {
        let is_about = |(key, _): &&(&str, &str)| error.starts_with(&format!("{key}: "));
        // The error of a value names its key, of which one line is enough.
        if let Some((key, about)) = configure::KEYS.iter().find(is_about) {
            return anyhow!("--set: {error}\nhint: {key}: {about}");
        }
        let known: Vec<String> = configure::KEYS
            .iter()
            .map(|(key, about)| format!("\n  {key}: {about}"))
            .collect();
        anyhow!("--set: {error}\nhint: the settings are{}", known.concat())
    })
}

fn host(arguments: &Configure) -> anyhow::Result<ShownPlan> {
    let cluster = inventory(arguments, None)?.cluster;
    let settings = settings(arguments)?;
    let tool = match arguments.tool.unwrap_or(Tool::Dcb) {
        Tool::Dcb => HostTool::Dcb,
        Tool::MlnxQos => HostTool::MlnxQos,
        Tool::Lldptool => HostTool::Lldptool,
    };
    let interface = arguments.interface.first().map(String::as_str);
    if let Some(print) = arguments.print {
        if print.needs_interface() && interface.is_none() {
            bail!("these files are for an interface\nhint: --interface NAME");
        }
        let steps = configure::persistence(&cluster, &settings, print.kind(), interface, tool);
        return Ok(ShownPlan::Steps(steps));
    }
    let Some(interface) = interface else {
        bail!("the interface is missing\nhint: --interface NAME");
    };
    if !arguments.check {
        return Ok(ShownPlan::Steps(configure::host(
            &cluster, &settings, interface, tool,
        )));
    }
    let snapshot = if let Some(folder) = &arguments.read {
        sandbox::offline();
        stored(folder)?
    } else {
        let named = [interface.to_owned()];
        let options = SnapshotOptions {
            interfaces: &named,
            process: None,
        };
        running_snapshot(&options, &|_| None).context("the system's files cannot be read")?
    };
    let state = configure::check_host(&cluster, &settings, &snapshot, interface)
        .map_err(|error| anyhow!("{error}\nhint: roce-analyze devices lists the interfaces"))?;
    Ok(ShownPlan::Changes(state.changes, state.unknown))
}

fn esxi(arguments: &Configure) -> anyhow::Result<ShownPlan> {
    let inventory = inventory(arguments, arguments.name.as_ref())?;
    let (cluster, settings) = (&inventory.cluster, settings(arguments)?);
    let Some(vmnic) = arguments.interface.first() else {
        bail!("the adapter is missing\nhint: --interface VMNIC");
    };
    let target = match &arguments.name {
        None => None,
        Some(name) => {
            let known = inventory.hypervisors.iter().map(|known| known.name.as_str());
            chosen(std::slice::from_ref(name), known, "hypervisor")?;
            inventory.hypervisor(name)
        }
    };
    if !arguments.check {
        return Ok(ShownPlan::Steps(configure::esxi(cluster, &settings, vmnic)));
    }
    let question = configure::esxi_question(vmnic);
    let (from, text) = match (&arguments.read, target) {
        (Some(path), _) => (path.display().to_string(), read(path)?),
        (None, Some(target)) => asked(
            &target.name,
            DeviceReader::hypervisor(target, &Arc::new(inventory.ssh.clone())),
            &question,
        )?,
        (None, None) => bail!(
            "--check of an ESXi host needs its settings\nhint: its name in the inventory, or: ssh HOST {question} > dcb.txt, \
             then --read dcb.txt"
        ),
    };
    let changes = configure::check_esxi(cluster, &settings, &text, vmnic);
    Ok(ShownPlan::Changes(
        changes.map_err(|error| anyhow!("{from}: {error}"))?,
        Vec::new(),
    ))
}

/// The answer of a device to one command, and its name. Behind it nothing is started and no socket is opened any more.
fn asked(
    name: &str,
    reader: Result<DeviceReader, ReaderError>,
    question: &str,
) -> anyhow::Result<(String, String)> {
    let mut reader = reader.with_context(|| name.to_owned())?;
    let text = reader
        .answer(question)
        .map_err(|error| anyhow!("{name}: '{question}': {error}"))?;
    // The connection that commands share is that of ssh's own process.
    sandbox::offline();
    Ok((name.to_owned(), text))
}

fn switch(arguments: &Configure) -> anyhow::Result<(SwitchKind, ShownPlan)> {
    let inventory = inventory(arguments, arguments.name.as_ref())?;
    let settings = settings(arguments)?;
    let target = match &arguments.name {
        None => None,
        Some(name) => {
            let known = inventory.switches.iter().map(|known| known.name.as_str());
            chosen(std::slice::from_ref(name), known, "switch")?;
            inventory.switch(name)
        }
    };
    let of_inventory = target.and_then(|target| SwitchSystem::from_kind(target.kind));
    let of_text = match &arguments.read {
        Some(path) if arguments.kind.is_none() => {
            let text = roce_files::read_text(path, MAX_CONFIGURATION_BYTES)?;
            configuration(&text).and_then(|(kind, _)| SwitchSystem::from_kind(kind))
        }
        _ => None,
    };
    let Some(kind) = of_inventory.or(arguments.kind).or(of_text) else {
        bail!("the kind of the switch is missing\nhint: --kind nexus, sonic, eos or cumulus");
    };
    if arguments.kind.is_some_and(|named| named != kind) {
        bail!(
            "--kind: the inventory says that the switch is of kind {}",
            kind.kind()
        );
    }
    let shown = of_switch(arguments, &inventory, target, kind, &settings)?;
    Ok((kind.kind(), shown))
}

fn of_switch(
    arguments: &Configure,
    inventory: &Inventory,
    target: Option<&SwitchTarget>,
    kind: SwitchSystem,
    settings: &Settings,
) -> anyhow::Result<ShownPlan> {
    let cluster = &inventory.cluster;
    let generation = arguments.generation.map(|generation| match generation {
        Generation::First => NexusGeneration::First,
        Generation::CloudScale => NexusGeneration::CloudScale,
    });
    if generation.is_some() && kind != SwitchSystem::Nexus {
        bail!("--generation is of --kind nexus");
    }
    if !arguments.check {
        let mut interfaces = arguments.interface.clone();
        if interfaces.is_empty() {
            interfaces.push(kind.example().to_owned());
        }
        if let Some(tunnel) = arguments.mirror {
            let steps = configure::mirror(kind.kind(), tunnel, &interfaces).map_err(|cause| {
                anyhow!("--mirror: {cause}\nhint: mirror all packets, cut to 160 bytes, or sample them and analyse with --sampled N")
            })?;
            return Ok(ShownPlan::Steps(steps));
        }
        return Ok(ShownPlan::Steps(match kind {
            SwitchSystem::Nexus => {
                let generation = generation.unwrap_or(NexusGeneration::CloudScale);
                configure::nexus(cluster, settings, generation, &interfaces)
            }
            SwitchSystem::Sonic => configure::sonic(cluster, settings, &interfaces),
            SwitchSystem::Eos => configure::eos(cluster, settings, &interfaces),
            SwitchSystem::Cumulus => configure::cumulus(cluster, settings, &interfaces),
        }));
    }
    let (from, text) = match (&arguments.read, target) {
        (Some(path), _) => {
            let text = read(path)?;
            let is_other = configuration(&text).is_none_or(|(found, _)| found != kind.kind());
            let what = described(&text);
            if is_other && !what.is_empty() {
                bail!(
                    "{}: no configuration of {} in it{what}",
                    path.display(),
                    kind.kind()
                );
            }
            (path.display().to_string(), text)
        }
        (None, Some(target)) => asked(
            &target.name,
            DeviceReader::switch(target, &Arc::new(inventory.ssh.clone())),
            configure::switch_question(target.kind),
        )?,
        (None, None) => bail!(
            "--check of a switch needs its configuration\nhint: its name in the inventory, or record {} and give it with --read FILE",
            kind.recording()
        ),
    };
    let interfaces = &arguments.interface;
    let changes = match kind {
        SwitchSystem::Nexus => configure::check_nexus(cluster, settings, generation, &text, interfaces),
        SwitchSystem::Sonic => configure::check_sonic(cluster, settings, &text, interfaces),
        SwitchSystem::Eos => configure::check_eos(cluster, settings, &text, interfaces),
        SwitchSystem::Cumulus => configure::check_cumulus(cluster, settings, &text, interfaces),
    };
    Ok(ShownPlan::Changes(
        changes.map_err(|error| anyhow!("{from}: {error}"))?,
        Vec::new(),
    ))
}

/// A recording. Behind it nothing is started and no socket is opened any more.
fn read(path: &Path) -> anyhow::Result<String> {
    let text = roce_files::read_text(path, MAX_CONFIGURATION_BYTES)?;
    sandbox::offline();
    Ok(text)
}

/// Comments behind `mark`, commands as they are typed, and an empty line between steps.
fn print_text(shown: &ShownPlan, mark: char) -> anyhow::Result<()> {
    let mut out = String::new();
    let mut add = |comments: &mut dyn Iterator<Item = &str>, commands: &[String]| {
        if !out.is_empty() {
            out.push('\n');
        }
        for comment in comments {
            out.push(mark);
            out.push(' ');
            out.push_str(&clean(comment));
            out.push('\n');
        }
        for command in commands {
            out.push_str(&clean(command));
            out.push('\n');
        }
    };
    match shown {
        ShownPlan::Steps(steps) => {
            for step in steps {
                add(&mut step.comments.iter().map(String::as_str), &step.commands);
            }
        }
        ShownPlan::Changes(changes, unknown) => {
            for change in changes {
                let first = format!("{}: {}", change.id, change.text);
                let rest = change.step.comments.iter().map(String::as_str);
                let mut comments = std::iter::once(first.as_str()).chain(rest);
                add(&mut comments, &change.step.commands);
            }
            for (id, why) in unknown {
                messages::note(id, &format!("not compared: {why}"));
            }
            if changes.is_empty() {
                add(&mut std::iter::once("nothing has to change"), &[]);
            }
        }
    }
    std::io::stdout().write_all(out.as_bytes())?;
    Ok(())
}

fn print_json(shown: &ShownPlan, target: &str) -> anyhow::Result<()> {
    let step = |step: &Step| json!({ "comments": step.comments, "commands": step.commands });
    let document = match shown {
        ShownPlan::Steps(steps) => {
            let steps: Vec<Value> = steps.iter().map(step).collect();
            json!({ "schema_version": SCHEMA_VERSION, "target": target, "steps": steps })
        }
        ShownPlan::Changes(changes, unknown) => {
            let changes: Vec<Value> = changes
                .iter()
                .map(|change| {
                    json!({
                        "id": change.id,
                        "text": change.text,
                        "comments": change.step.comments,
                        "commands": change.step.commands,
                    })
                })
                .collect();
            let unknown: Vec<Value> = unknown
                .iter()
                .map(|(id, why)| json!({ "id": id, "reason": why }))
                .collect();
            json!({ "schema_version": SCHEMA_VERSION, "target": target, "changes": changes, "unknown": unknown })
        }
    };
    let text = serde_json::to_string_pretty(&document)?;
    writeln!(std::io::stdout(), "{}", escape_json(&text))?;
    Ok(())
}
