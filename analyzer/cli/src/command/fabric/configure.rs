//! `fabric configure`: commands with their reasons, or the smallest change. Nothing is applied.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use roce_fabric::configure::{self, Change, HostTool, NexusGeneration, Persistence, Settings, Step};
use roce_fabric::inventory::{Cluster, SwitchKind};
use roce_model::text::{clean, escape_json};
use roce_probe::{SnapshotOptions, recorded_snapshot, running_snapshot};
use serde_json::{Value, json};

use crate::options::arguments::DocumentFormat;
use crate::options::fabric;
use crate::output::messages;
use crate::sandbox;

/// The longest configuration, or recording of a command, that is read.
const MAX_CONFIGURATION_BYTES: u64 = 16 << 20;
/// Version of the JSON document's form.
const SCHEMA_VERSION: u32 = 1;

const AFTER_HELP: &str = "\
Examples:
  roce-analyze fabric configure host --dev ens1f0np0 --tool mlnx_qos    MLNX_OFED's own tool
  roce-analyze fabric configure host --dev ens1f0np0 --print systemd    kept over restarts
  roce-analyze fabric configure switch --kind nexus --generation first  a template
  roce-analyze fabric configure switch --kind nexus --check --read FILE what it lacks";

/// Print the configuration of a host, hypervisor or switch for RoCE, or only what has to change
///
/// Each step says why, what it changes, whether the link goes down, and how it is undone. Nothing is applied, here or elsewhere.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Configure {
    #[command(subcommand)]
    target: Target,
}

#[derive(Subcommand, Debug)]
enum Target {
    /// A Linux host
    Host(HostArguments),
    /// An ESXi host
    Esxi(EsxiArguments),
    /// A switch
    Switch(SwitchArguments),
}

/// Options of all targets.
#[derive(Args, Debug)]
struct Common {
    /// Inventory, of which [cluster] is taken: priority and DSCPs
    #[arg(long, value_name = "FILE", alias = "hosts")]
    fabric: Option<PathBuf>,

    /// Set a value: ecn_min, ecn_max (150k, 3m), ecn_probability, mtu, bandwidth, dev, port
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Compare with what is set and print the smallest change; exit with 1 if there is one
    #[arg(long)]
    check: bool,

    /// Format of standard output
    #[arg(long, value_enum, default_value = "text")]
    format: DocumentFormat,
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

/// Print commands for a host's interface, or files that keep settings over a restart
#[derive(Args, Debug)]
struct HostArguments {
    /// The network interface
    #[arg(long, value_name = "NAME", value_parser = parse_name, required_unless_present = "print")]
    dev: Option<String>,

    /// The tool that sets PFC and the priorities of DSCPs
    #[arg(long, value_enum, value_name = "TOOL", default_value = "dcb")]
    tool: Tool,

    /// Print files of this kind in place of commands
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "check")]
    print: Option<Print>,

    /// Compare a recorded host, a folder as of `doctor --root`, in place of this one
    #[arg(long, value_name = "DIR", requires = "check")]
    read: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// Print commands for an adapter of an ESXi host
#[derive(Args, Debug)]
struct EsxiArguments {
    /// The adapter
    #[arg(long, value_name = "VMNIC", value_parser = parse_name)]
    vmnic: String,

    /// Compare this output of `esxcli network nic dcb status get -n VMNIC`
    #[arg(long, value_name = "FILE", requires = "check")]
    read: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// Operating systems of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// Cisco NX-OS
    Nexus,
    /// SONiC
    Sonic,
    /// Arista EOS
    Eos,
    /// NVIDIA Cumulus Linux
    Cumulus,
}

impl Kind {
    fn kind(self) -> SwitchKind {
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

    /// What `--read` reads, for the error that it is missing.
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

/// Print the configuration of a switch
#[derive(Args, Debug)]
struct SwitchArguments {
    /// The switch's operating system
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Kind,

    /// The generation of a Nexus 9000 [default: cloud-scale; with --check that of its classes]
    #[arg(long, value_enum, value_name = "GENERATION")]
    generation: Option<Generation>,

    /// Interfaces; with --check all ports that are not shut down
    #[arg(short, long, value_name = "NAME", value_parser = parse_name, value_delimiter = ',')]
    interface: Vec<String>,

    /// Compare this configuration: `show running-config`, config_db.json, or `nv config show -o commands`
    #[arg(long, value_name = "FILE", requires = "check")]
    read: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

fn parse_name(text: &str) -> Result<String, String> {
    configure::check_name(text)?;
    Ok(text.to_owned())
}

/// What is shown.
enum Shown {
    Steps(Vec<Step>),
    /// Changes, and checks whose values could not be read.
    Changes(Vec<Change>, Vec<(&'static str, String)>),
}

/// Prints steps, or the changes that are needed.
pub(crate) fn configure(arguments: &Configure) -> anyhow::Result<ExitCode> {
    let (common, target, mark, shown) = match &arguments.target {
        Target::Host(arguments) => (&arguments.common, "host", '#', host(arguments)?),
        Target::Esxi(arguments) => (&arguments.common, "esxi", '#', esxi(arguments)?),
        Target::Switch(arguments) => {
            let kind = arguments.kind.kind();
            let mark = if matches!(kind, SwitchKind::Nexus | SwitchKind::Eos) {
                '!'
            } else {
                '#'
            };
            (&arguments.common, kind.name(), mark, switch(arguments)?)
        }
    };
    match common.format {
        DocumentFormat::Text => print_text(&shown, mark)?,
        DocumentFormat::Json => print_json(&shown, target)?,
    }
    Ok(match shown {
        Shown::Changes(changes, _) if !changes.is_empty() => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

/// The cluster of the inventory, and what `--set` sets.
fn inputs(common: &Common) -> anyhow::Result<(Cluster, Settings)> {
    let cluster = match &common.fabric {
        None => Cluster::default(),
        Some(path) => fabric::read(path)?.cluster,
    };
    let pairs = common.set.iter().map(String::as_str);
    let settings = Settings::from_pairs(pairs).map_err(|error| {
        let known: Vec<String> = configure::KEYS
            .iter()
            .map(|(key, about)| format!("{key}: {about}"))
            .collect();
        anyhow!("--set: {error}\nhint: {}", known.join("; "))
    })?;
    Ok((cluster, settings))
}

fn host(arguments: &HostArguments) -> anyhow::Result<Shown> {
    let (cluster, settings) = inputs(&arguments.common)?;
    let tool = match arguments.tool {
        Tool::Dcb => HostTool::Dcb,
        Tool::MlnxQos => HostTool::MlnxQos,
        Tool::Lldptool => HostTool::Lldptool,
    };
    let interface = arguments.dev.as_deref();
    if let Some(print) = arguments.print {
        if print.needs_interface() && interface.is_none() {
            bail!("these files are for an interface\nhint: --dev NAME");
        }
        let steps = configure::persistence(&cluster, &settings, print.kind(), interface, tool);
        return Ok(Shown::Steps(steps));
    }
    let Some(interface) = interface else {
        bail!("--dev is missing");
    };
    if !arguments.common.check {
        return Ok(Shown::Steps(configure::host(
            &cluster, &settings, interface, tool,
        )));
    }
    let snapshot = if let Some(folder) = &arguments.read {
        sandbox::offline();
        recorded(folder)?
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
    Ok(Shown::Changes(state.changes, state.unknown))
}

fn recorded(folder: &Path) -> anyhow::Result<roce_fabric::doctor::Host> {
    let is_host = ["sys", "proc", "answers"]
        .iter()
        .any(|name| folder.join(name).is_dir());
    if !is_host {
        bail!(
            "{}: not a recorded host\nhint: the folder has the host's files below sys and proc, and answers; \
             doctor --record writes them",
            folder.display()
        );
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    recorded_snapshot(folder, &name).with_context(|| folder.display().to_string())
}

fn esxi(arguments: &EsxiArguments) -> anyhow::Result<Shown> {
    let (cluster, settings) = inputs(&arguments.common)?;
    let vmnic = &arguments.vmnic;
    if !arguments.common.check {
        return Ok(Shown::Steps(configure::esxi(&cluster, &settings, vmnic)));
    }
    let Some(path) = &arguments.read else {
        bail!(
            "--check of an ESXi host needs a recording\nhint: ssh HOST esxcli network nic dcb status get -n {vmnic} > dcb.txt, \
             then --read dcb.txt"
        );
    };
    let text = read(path)?;
    let changes = configure::check_esxi(&cluster, &settings, &text, vmnic);
    Ok(Shown::Changes(
        changes.map_err(|error| wrong(path, &error))?,
        Vec::new(),
    ))
}

fn switch(arguments: &SwitchArguments) -> anyhow::Result<Shown> {
    let (cluster, settings) = inputs(&arguments.common)?;
    let kind = arguments.kind;
    let generation = arguments.generation.map(|generation| match generation {
        Generation::First => NexusGeneration::First,
        Generation::CloudScale => NexusGeneration::CloudScale,
    });
    if generation.is_some() && kind != Kind::Nexus {
        bail!("--generation is of --kind nexus");
    }
    if !arguments.common.check {
        let mut interfaces = arguments.interface.clone();
        if interfaces.is_empty() {
            interfaces.push(kind.example().to_owned());
        }
        return Ok(Shown::Steps(match kind {
            Kind::Nexus => {
                let generation = generation.unwrap_or(NexusGeneration::CloudScale);
                configure::nexus(&cluster, &settings, generation, &interfaces)
            }
            Kind::Sonic => configure::sonic(&cluster, &settings, &interfaces),
            Kind::Eos => configure::eos(&cluster, &settings, &interfaces),
            Kind::Cumulus => configure::cumulus(&cluster, &settings, &interfaces),
        }));
    }
    let Some(path) = &arguments.read else {
        bail!(
            "--check of a switch needs its configuration\nhint: record {} and give it with --read FILE",
            kind.recording()
        );
    };
    let text = read(path)?;
    let interfaces = &arguments.interface;
    let changes = match kind {
        Kind::Nexus => configure::check_nexus(&cluster, &settings, generation, &text, interfaces),
        Kind::Sonic => configure::check_sonic(&cluster, &settings, &text, interfaces),
        Kind::Eos => configure::check_eos(&cluster, &settings, &text, interfaces),
        Kind::Cumulus => configure::check_cumulus(&cluster, &settings, &text, interfaces),
    };
    Ok(Shown::Changes(
        changes.map_err(|error| wrong(path, &error))?,
        Vec::new(),
    ))
}

/// A recording. Behind it nothing is started and no socket is opened any more.
fn read(path: &Path) -> anyhow::Result<String> {
    let text = roce_files::read_text(path, MAX_CONFIGURATION_BYTES)?;
    sandbox::offline();
    Ok(text)
}

fn wrong(path: &Path, error: &str) -> anyhow::Error {
    anyhow!("{}: {error}", path.display())
}

/// Comments behind `mark`, commands as they are typed, and an empty line between steps.
fn print_text(shown: &Shown, mark: char) -> anyhow::Result<()> {
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
        Shown::Steps(steps) => {
            for step in steps {
                add(&mut step.comments.iter().map(String::as_str), &step.commands);
            }
        }
        Shown::Changes(changes, unknown) => {
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

fn print_json(shown: &Shown, target: &str) -> anyhow::Result<()> {
    let step = |step: &Step| json!({ "comments": step.comments, "commands": step.commands });
    let document = match shown {
        Shown::Steps(steps) => {
            let steps: Vec<Value> = steps.iter().map(step).collect();
            json!({ "schema_version": SCHEMA_VERSION, "target": target, "steps": steps })
        }
        Shown::Changes(changes, unknown) => {
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
